"""Attacks on what runs unasked because it only reads: commands that look like reading and write, run or send."""

from __future__ import annotations

import json
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.adversarial.attack import Attack, attack, attacks
from tests.runtime.scripted import ScriptedOperator
from tests.runtime.session_harness import start_session
from tui_agent.config.layers import Layer, without_personal_keys
from tui_agent.core import events
from tui_agent.core.names import Approval, Decision
from tui_agent.permissions.findings import Judgement
from tui_agent.permissions.judge import Permissions
from tui_agent.permissions.programs_there import run_by_git
from tui_agent.permissions.rules import parse_rule
from tui_agent.sandbox.mechanisms import Sandbox
from tui_agent.sandbox.policy import TEMPORARY, SandboxPolicy

_TABLE = tomllib.loads(Path(__file__).with_name("reads.toml").read_text("utf-8"))
READ: list[str] = _TABLE["read"]
NO_READS: list[str] = [one for group in _TABLE["asks"].values() for one in group]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    (root / "src").mkdir(parents=True)
    for name in ("a.txt", "b.txt", "src/x.py"):
        (root / name).write_text("a\n")
    (root / "link").symlink_to("/etc/passwd")
    (root / ".env").write_text("KEY=1\n")
    git(root, "init", "-q")
    git(root, "add", "a.txt", "b.txt", "src")
    git(root, "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "x")
    return root


def git(root: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=root, check=True, capture_output=True)


def judge(root: Path, command: str, *, deny: str = "", allow: str = "", **how: Any) -> Judgement:
    given = {Decision.DENY: deny, Decision.ALLOW: allow}
    rules = [parse_rule(decision, text, "test") for decision, text in given.items() if text]
    chosen = {"reads_free": True, **how}
    return Permissions(rules, root, **chosen).judge("bash", "command", {"command": command})


@attack("Seventy commands that only read", "They run unasked, and say why")
def test_reading_is_free(tree: Path) -> None:
    asked = [one for one in READ if not judge(tree, one).reads_only]
    assert not asked
    assert {judge(tree, one).by for one in READ} == {"reads only"}


@attack(
    f"{len(NO_READS)} spellings that write, run, send, read elsewhere or cannot be told from it",
    "None of them is taken for reading",
)
def test_nothing_else_is_taken_for_reading(tree: Path) -> None:
    assert len(NO_READS) > 200
    taken = [one for one in NO_READS if judge(tree, one).decision is not Decision.ASK]
    assert not taken


@attack("The same beside a command that only reads", "The whole is asked about")
def test_one_part_that_does_more_makes_the_whole_ask(tree: Path) -> None:
    for command in NO_READS:
        for joined in (f"ls; {command}", f"cat a.txt && {command}"):
            assert judge(tree, joined).decision is Decision.ASK or command in {"", ": "}, joined


@attack(
    'Reading without a sandbox, with a network, under `reads = "ask"`, and under a rule that asks', "It asks"
)
def test_reading_asks_where_it_may_do_more(tree: Path) -> None:
    assert judge(tree, "ls", reads_free=False).decision is Decision.ASK
    asks = [parse_rule(Decision.ASK, "bash(ls *)", "test")]
    judged = Permissions(asks, tree, reads_free=True).judge("bash", "command", {"command": "ls src"})
    assert judged.decision is Decision.ASK
    assert judge(tree, "ls", deny="bash(ls *)").decision is Decision.DENY


SETTINGS = {
    "fsmonitor": "core.fsmonitor=./x.sh",
    "hooks": "core.hooksPath=.githooks",
    "external": "diff.external=./x.sh",
    "textconv": "diff.t.textconv=./x.sh",
    "driver": "diff.t.command=./x.sh",
    "clean": "filter.f.clean=./x.sh",
    "process": "filter.f.process=./x.sh",
    "include": "include.path=../x",
    "include_if": "includeIf.gitdir:/.path=x",
    "signature": "log.showSignature=true",
    "gpg": "gpg.program=./x.sh",
    "pretty": "pretty.p=%G?",
    "format": "format.pretty=%GK",
    "pager": "core.pager=./x.sh",
    "worktree": "core.worktree=/",
    "attributes": "core.attributesFile=x",
    "ssh": "core.sshCommand=./x.sh",
    "unknown": "future.program=./x.sh",
    "remote": "remote.o.uploadpack=./x.sh",
    "address": "remote.o.url=ext::sh -c id",
}


@attacks(
    *(
        Attack(
            f"git_{name}",
            f"A repository's own settings of git say `{said}`",
            "`git status`, `diff` and `log` ask, and name the setting",
            value=said,
        )
        for name, said in SETTINGS.items()
    )
)
def test_settings_of_git_that_run_something(row: Attack, tree: Path) -> None:
    key, _, value = row.value.partition("=")
    git(tree, "config", key, value)
    for command in ("git status", "git diff", "git log -p", "cd src && git show HEAD", "git -C src status"):
        judged = judge(tree, command)
        assert judged.decision is Decision.ASK
        assert "settings of git may run a program" in judged.speaking.why, command


@attack("A submodule, and a folder that is a repository without a work tree", "Git asks there")
def test_repositories_within(tree: Path) -> None:
    git(tree, "init", "-q", "--bare", "bare.git")
    git(tree / "bare.git", "config", "core.fsmonitor", "./x.sh")
    assert judge(tree, "cd bare.git && git log").decision is Decision.ASK
    assert judge(tree, "git log").reads_only
    (tree / ".gitmodules").write_text("")
    assert judge(tree, "git status").decision is Decision.ASK


@attack("A program of that name in the workspace, by a folder of PATH, a relative one, a shim", "It asks")
def test_programs_of_the_workspace(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tree / "bin" / "cat"
    own.parent.mkdir()
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    for first in (f"{own.parent}:", ".:", "bin:"):
        monkeypatch.setenv("PATH", f"{first}/usr/bin:/bin")
        assert judge(tree, "cat a.txt").decision is Decision.ASK
    shim = tmp_path / "shims" / "python3"
    shim.parent.mkdir()
    shim.write_text("#!/bin/sh\n")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", f"{shim.parent}:/usr/bin:/bin")
    assert judge(tree, "python3 --version").reads_only
    (tree / ".python-version").write_text("../../evil\n")
    assert judge(tree, "python3 --version").decision is Decision.ASK


@attack(
    "A file that a rule denies: by name, link, wildcard, redirection, git's object, and by commands that walk folders",
    "Denied where it is named, asked about where it may be among others",
)
def test_denied_files_stay_denied(tree: Path) -> None:
    rule = "read_file(**/.env)"
    (tree / "other").symlink_to(".env")
    for named in (
        "cat .env",
        "cat .e*",
        "cat other",
        "head -1 < .env",
        "git show HEAD:.env",
        "cd src && cat ../.env",
        "grep . .env",
    ):
        assert judge(tree, named, deny=rule).decision is Decision.DENY, named
    for walks in (
        "grep -r KEY .",
        "grep -R KEY",
        "rg KEY",
        "diff -r . src",
        "git diff",
        "git log -p",
        "git show HEAD",
        "git grep KEY",
    ):
        assert judge(tree, walks, deny=rule).decision is Decision.ASK, walks
    for plain in (
        "ls -a",
        "cat a.txt",
        "git status",
        "git log --oneline",
        "git diff --stat",
        "find . -name .e",
    ):
        assert judge(tree, plain, deny=rule).reads_only, plain
    (tree / ".env").unlink()
    (tree / "other").unlink()
    assert judge(tree, "rg KEY", deny=rule).reads_only


@attack(
    "Reading beside what a rule allows",
    "Git's settings may change meanwhile, so git asks; the rest goes along",
)
def test_reading_beside_what_is_allowed(tree: Path) -> None:
    rule = "bash(make *)"
    assert judge(tree, "ls && make", allow=rule).decision is Decision.ALLOW
    assert not judge(tree, "ls && make", allow=rule).reads_only
    assert judge(tree, "make; git status", allow=rule).decision is Decision.ASK


@attack("Files that are named like options, behind a wildcard", "It asks")
def test_files_named_like_options(tree: Path) -> None:
    for command in ("sort *.txt", "wc -l *.txt", "find *.txt", "git log *.txt", "rg a *.txt"):
        assert judge(tree, command).reads_only
    (tree / "-o.txt").touch()
    for command in ("sort *.txt", "wc -l *.txt", "find *.txt", "git log *.txt", "rg a *.txt"):
        assert judge(tree, command).decision is Decision.ASK


@attack("A variable of the environment that changes what git does", "Git asks")
def test_variables_of_git(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_by_git(str(tree)) == ""
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "./x.sh")
    assert judge(tree, "git diff").decision is Decision.ASK


@attack(
    "Reading under `--approve all` and in plan mode",
    "Nothing asks; in plan mode it is the only thing that runs",
)
def test_reading_in_the_other_modes(tree: Path) -> None:
    assert judge(tree, "ls", approve=Approval.ALL).by == "--approve all"
    assert judge(tree, "ls", approve=Approval.PLAN).reads_only
    assert judge(tree, "ls", approve=Approval.PLAN, reads_free=False, confined=False).decision is Decision.ASK
    assert judge(tree, "make", approve=Approval.PLAN, confined=False).decision is Decision.DENY


@attack(
    "Commands that run unasked, in a real sandbox, in a repository with hooks and a monitor that write",
    "Nothing of the workspace changes, and each call says that it ran unasked",
    slow=True,
)
async def test_what_runs_unasked_changes_nothing(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    git(root, "init", "-q")
    hook = root / ".git" / "hooks" / "post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ntouch hooked\n")
    hook.chmod(0o755)
    commands = ["ls", "git status", "cat a.txt | wc -l"]
    script = [{"calls": [{"tool": "bash", "args": {"command": one}}]} for one in commands]
    operator = ScriptedOperator()
    live = await start_session(
        tmp_path, [*script, "Done."], operator=operator, files={"a.txt": "a\n"}, approve="ask", sandbox="auto"
    )
    await live.run()
    sandbox = await live.session.sandbox.ready()
    await live.close()
    if not sandbox.is_closed:
        pytest.skip("no sandbox works here")
    assert not operator.asked
    assert [one.allowed_by for one in live.of(events.ToolStarted)] == ["reads only"] * 3
    assert sorted(path.name for path in root.iterdir()) == [".git", "a.txt"]


@attack(
    "`network = true`, where what is read could be sent",
    "Reading asks as ever",
    slow=True,
)
async def test_with_a_network_reading_asks(tmp_path: Path) -> None:
    script = [{"calls": [{"tool": "bash", "args": {"command": "ls"}}]}, "Done."]
    operator = ScriptedOperator()
    live = await start_session(
        tmp_path, script, operator=operator, approve="ask", sandbox={"mode": "auto", "network": True}
    )
    await live.run()
    await live.close()
    assert [one.input["command"] for one in operator.asked] == ["ls"]


@attack("A checkout's own file says `reads`", "It may bring the question back, and may not take it away")
def test_reads_in_a_checkouts_file() -> None:
    for value, left in (("allow", {}), ("ask", {"reads": "ask"})):
        layer = Layer("file", {"permissions": {"reads": value}})
        problems = without_personal_keys(layer, Layer("user", {}), {})
        assert (layer.values["permissions"], bool(problems)) == (left, value == "allow")


@attack(
    "The sandbox of what only reads, as each mechanism has it, with a network and places that may be written",
    "No place but the temporary folder and the private home can be written, and there is no network",
)
def test_the_sandbox_of_what_only_reads(tmp_path: Path) -> None:
    places = tmp_path / "tree", tmp_path / "more", tmp_path / "scratch"
    for place in places:
        place.mkdir()
    root, more, scratch = map(str, places)
    policy = SandboxPolicy.around(places[0], places[2], network=True, writable=(more,))
    bubblewrap = Sandbox("bubblewrap", policy).only_reading().wrap(["true"])
    writable = [at for how, at in zip(bubblewrap, bubblewrap[2:], strict=False) if how == "--bind"]
    assert set(writable) <= {*TEMPORARY, str(policy.home)}
    assert "--share-net" not in bubblewrap
    assert ["--ro-bind", root, root] == bubblewrap[bubblewrap.index(root) - 1 :][:3]
    landlock = json.loads(Sandbox("landlock", policy).only_reading().wrap(["true"])[-2])
    assert (landlock["write"], landlock["network"]) == ([scratch], False)
    macos = Sandbox("sandbox-exec", policy).only_reading().wrap(["true"])[2]
    allowed = [line for line in macos.splitlines() if line.startswith("(allow file-write*")]
    assert not any(f'"{place}"' in line for line in allowed for place in (root, more))
    assert "(deny network*)" in macos
    assert Sandbox().only_reading() == Sandbox()
