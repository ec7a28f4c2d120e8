"""Attacks through what the operator's own settings, variables and hooks name in the workspace: what a command leaves
there would run outside, with the next ordinary command of the operator.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.adversarial.attack import Attack, attacks
from tests.sandbox.boxes import folder_at_home, needed
from tests.sandbox.test_planted import Desk, desk_for, furnished
from tui_agent.sandbox.mechanisms import Mechanism
from tui_agent.sandbox.obeyed import TABLE, Obeyed

RUNS = "It does not run, the file is as it was, and the model is told what would have run it"
FELL = "it ran with the operator's next command, and nothing was said"
COMMIT = "git add -A; git -c user.name=o -c user.email=o@o.o commit -qm x --allow-empty"


@dataclass(frozen=True)
class Named:
    """What the operator has set up, what a command leaves, and what the operator does next."""

    setup: str
    command: str
    then: str
    variables: dict[str, str] = field(default_factory=dict)
    told: str = ""
    """Stands in what the model is told."""


def script(path: str, *, new: bool = True, reads: bool = True) -> str:
    folder = f"mkdir -p $(dirname {path}); " if "/" in path else ""
    text = f"#!/bin/sh\\nMARK\\n{'cat' if reads else ''}\\n"
    return f"{folder}printf '{text}' {'>' if new else '>>'} {path}; chmod +x {path}"


GLOBAL = "git config --global"
OWN = "printf '#!/bin/sh\\ncat\\n' > {0}; chmod +x {0}; git add {0}; git commit -qm own; "
HUSKY = (
    "git config core.hooksPath .husky/_; mkdir -p .husky/_; printf ':\\n' > .husky/pre-commit;"
    'printf \'#!/bin/sh\\nn=$(basename "$0")\\ns=$(dirname "$(dirname "$0")")/$n\\n[ ! -f "$s" ] && exit 0\\n'
    'sh -e "$s" "$@"\\n\' > .husky/_/h; chmod +x .husky/_/h;'
    'for h in pre-commit post-commit; do printf \'#!/bin/sh\\n. "$(dirname "$0")/h"\\n\' > .husky/_/$h;'
    "chmod +x .husky/_/$h; done"
)


def hook(text: str) -> str:
    return f"printf '#!/bin/sh\\n{text}\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit"


def manager(name: str, file: str) -> str:
    """A program that manages hooks, which runs what its settings say."""
    return (
        f"mkdir -p $HOME/bin; printf '#!/bin/sh\\n[ -f {file} ] && sh {file}\\n' > $HOME/bin/{name};"
        f"chmod +x $HOME/bin/{name}; {hook(f'exec $HOME/bin/{name} run pre-commit')}"
    )


CASES: dict[str, tuple[str, Named]] = {
    "hooks_path": (
        "A folder of hooks in the tree, named in ~/.gitconfig",
        Named(
            f"{GLOBAL} core.hooksPath .githooks",
            script(".githooks/pre-commit"),
            COMMIT,
            told="core.hookspath in ~/.gitconfig",
        ),
    ),
    "hooks_path_of_xdg": (
        "The same, named in the settings of XDG, by another spelling",
        Named(
            "mkdir -p $HOME/.config/git; printf '[CORE]\\nHooksPath = ./.githooks/\\n' > $HOME/.config/git/config",
            script(".githooks/pre-commit"),
            COMMIT,
        ),
    ),
    "hooks_path_absolute": (
        "The same, by its whole path",
        Named(f"{GLOBAL} core.hooksPath $PWD/my/hooks", script("my/hooks/post-commit"), COMMIT),
    ),
    "hooks_path_changed": (
        "A hook that is there is changed, by a link that takes its place, and by its folder renamed",
        Named(
            f"{GLOBAL} core.hooksPath .githooks; mkdir .githooks; printf '#!/bin/sh\\n' > .githooks/pre-commit;"
            "chmod +x .githooks/pre-commit",
            f"{script('evil')}; ln -sf ../evil .githooks/pre-commit; mv .githooks old; mkdir .githooks;"
            f"{script('.githooks/pre-commit')}; true",
            COMMIT,
        ),
    ),
    "included": (
        "A file that ~/.gitconfig includes names the folder",
        Named(
            f"{GLOBAL} include.path more; git config --file $HOME/more core.hooksPath .githooks",
            script(".githooks/pre-commit"),
            COMMIT,
        ),
    ),
    "included_on_a_branch": (
        "A file that is included on a branch, which the command makes",
        Named(
            f"{GLOBAL} includeIf.onbranch:evil.path more; git config --file $HOME/more core.fsmonitor ./mon.sh",
            f"git checkout -qb evil; {script('mon.sh')}",
            "git status",
        ),
    ),
    "included_from_the_tree": (
        "~/.gitconfig includes a file of the tree, into which a command writes",
        Named(
            f"{GLOBAL} include.path $PWD/shared.gitconfig",
            "git config --file shared.gitconfig core.fsmonitor 'MARK;'",
            "git status",
        ),
    ),
    "fsmonitor": (
        "A monitor in the tree that is there, changed in place with its old time",
        Named(
            OWN.format("mon.sh") + f"{GLOBAL} core.fsmonitor ./mon.sh",
            "cp -p mon.sh t; echo MARK >> mon.sh; touch -r t mon.sh",
            "git status",
        ),
    ),
    "fsmonitor_by_a_hard_link": (
        "The same, through a hard link",
        Named(
            OWN.format("mon.sh") + f"{GLOBAL} core.fsmonitor ./mon.sh",
            "ln mon.sh other; echo MARK >> other; true",
            "git status",
        ),
    ),
    "clean_filter": (
        "A filter, with attributes by the command",
        Named(
            f"{GLOBAL} filter.f.clean './f.sh %f'",
            f"{script('f.sh')}; echo '*.txt filter=f' > .gitattributes; echo x > new.txt",
            "git add -A",
        ),
    ),
    "filter_process": (
        "A filter by an interpreter, in a folder",
        Named(
            f"{GLOBAL} filter.f.process 'sh -e tools/f.sh'",
            f"{script('tools/f.sh')}; echo '*.txt filter=f' > .gitattributes; echo x > new.txt",
            "git add -A",
        ),
    ),
    "textconv": (
        "What turns files into text for a diff",
        Named(
            f"{GLOBAL} diff.t.textconv ./t.sh",
            f"{script('t.sh')}; echo '*.txt diff=t' > .gitattributes; echo b >> a.txt",
            "git diff",
        ),
    ),
    "diff_driver": (
        "A driver of diffs",
        Named(
            f"{GLOBAL} diff.t.command 'env X=1 ./t.sh'",
            f"{script('t.sh')}; echo '*.txt diff=t' > .gitattributes; echo b >> a.txt",
            "git diff",
        ),
    ),
    "merge_driver": (
        "A driver of merges",
        Named(
            f"{GLOBAL} merge.m.driver './m.sh %O %A %B'",
            f"{script('m.sh')}; echo '*.txt merge=m' > .gitattributes; git checkout -qb o; echo 1 > a.txt;"
            f"git commit -qam 1; git checkout -q main; echo 2 > a.txt; git commit -qam 2",
            "git merge o",
        ),
    ),
    "credential_helper": (
        "What is asked for passwords",
        Named(
            f"{GLOBAL} credential.helper '!./cred.sh'",
            script("cred.sh"),
            "printf 'protocol=https\\nhost=x\\n\\n' | GIT_TERMINAL_PROMPT=0 git credential fill",
        ),
    ),
    "gpg": (
        "What signs commits",
        Named(f"{GLOBAL} gpg.program ./gpg.sh; {GLOBAL} commit.gpgsign true", script("gpg.sh"), COMMIT),
    ),
    "ssh": (
        "What connects to other machines",
        Named(f"{GLOBAL} core.sshCommand './ssh.sh -q'", script("ssh.sh", reads=False), "git ls-remote ssh://localhost/x"),
    ),
    "alias": ("An alias", Named(f"{GLOBAL} alias.st '!f() {{ ./st.sh; }}; f'", script("st.sh"), "git st")),
    "editor": (
        "The editor of messages",
        Named(f"{GLOBAL} core.editor ./ed.sh", script("ed.sh"), "git commit --allow-empty"),
    ),
    "sequence_editor": (
        "The editor of rebases",
        Named(f"{GLOBAL} sequence.editor 'bash ./ed.sh'", script("ed.sh"), f"{COMMIT}; git rebase -i HEAD~1"),
    ),
    "upload_pack": (
        "What serves a fetch, named in the repository's own settings before",
        Named(
            "git remote add x file://$PWD/sub; git config remote.x.uploadpack ./up.sh",
            script("up.sh", reads=False),
            "git fetch x",
        ),
    ),
    "template": (
        "What new repositories begin with",
        Named(
            f"{GLOBAL} init.templateDir $PWD/templ",
            script("templ/hooks/post-checkout"),
            f"git init -q $HOME/n; cd $HOME/n; {COMMIT}; git checkout -qb y",
        ),
    ),
    "settings_of_a_worktree": (
        "The settings of a worktree name a monitor",
        Named(
            "git config extensions.worktreeConfig true; git config --worktree core.fsmonitor ./mon.sh",
            script("mon.sh"),
            "git status",
        ),
    ),
    "settings_of_the_environment": (
        "Settings in variables name a monitor",
        Named(
            "true",
            script("mon.sh"),
            "git status",
            {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.fsmonitor", "GIT_CONFIG_VALUE_0": "./mon.sh"},
        ),
    ),
    "another_file_of_settings": (
        "GIT_CONFIG_GLOBAL is another file",
        Named(
            "git config --file $HOME/other core.fsmonitor ./mon.sh",
            script("mon.sh"),
            "git status",
            {"GIT_CONFIG_GLOBAL": "HOME/other"},
        ),
    ),
    "variables": (
        "Variables name the editor, and what ssh is",
        Named(
            "true",
            f"{script('bin/ed')}; {script('bin/ssh', reads=False)}",
            "git commit --allow-empty; git ls-remote ssh://localhost/x",
            {"GIT_EDITOR": "bin/ed", "GIT_SSH_COMMAND": "bin/ssh"},
        ),
    ),
    "husky": (
        "What a hook of husky sources",
        Named(HUSKY, script(".husky/pre-commit", new=False), COMMIT, told=".husky"),
    ),
    "husky_new": ("What a hook of husky would source", Named(HUSKY, script(".husky/post-commit"), COMMIT)),
    "hook_that_sources": (
        "A script that a hook sources, and one that this sources in its turn",
        Named(
            "mkdir -p scripts; printf '. ./scripts/lib.sh\\n' > scripts/check.sh; : > scripts/lib.sh;"
            + hook(". ./scripts/check.sh"),
            "echo MARK >> scripts/lib.sh; echo MARK >> scripts/check.sh",
            COMMIT,
            told="the hook pre-commit runs it",
        ),
    ),
    "hook_that_runs": (
        "A script that a hook runs by the place of the repository",
        Named(
            hook('exec sh "$(git rev-parse --show-toplevel)/tools/check"'),
            script("tools/check"),
            COMMIT,
        ),
    ),
    "lefthook": (
        "Settings of lefthook, whose hook is installed",
        Named(manager("lefthook", "lefthook.yml"), "echo MARK > lefthook.yml", COMMIT),
    ),
    "pre_commit": (
        "Settings of pre-commit, whose hook is installed",
        Named(manager("pre-commit", ".pre-commit-config.yaml"), "echo MARK > .pre-commit-config.yaml", COMMIT),
    ),
    "overcommit": (
        "Hooks of overcommit, whose hook is installed",
        Named(
            manager("overcommit", ".git-hooks/pre_commit/x"),
            "mkdir -p .git-hooks/pre_commit; echo MARK > .git-hooks/pre_commit/x",
            COMMIT,
        ),
    ),
    "lint_staged": (
        "Settings of lint-staged, which a hook runs",
        Named(manager("lint-staged", ".lintstagedrc.json"), "echo MARK > .lintstagedrc.json", COMMIT),
    ),
    "path": (
        "A program of git's name in a folder of the tree that is on PATH",
        Named(
            "mkdir -p env/bin",
            f"{script('env/bin/git')}; {script('env/bin/mytool')}",
            "git status",
            {"PATH": "TREE/env/bin:PATH"},
        ),
    ),
}  # fmt: skip
QUICK = {"hooks_path", "fsmonitor", "husky", "hook_that_sources", "included_on_a_branch"}


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with folder_at_home() as folder:
        (folder / "operator").mkdir()
        monkeypatch.setenv("HOME", str(folder / "operator"))
        for name in ("XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"):
            monkeypatch.delenv(name, raising=False)
        yield folder


def set_up(desk: Desk, case: Named, monkeypatch: pytest.MonkeyPatch) -> None:
    furnished(desk)
    desk.operator("bash", "-c", case.setup)
    for name, value in case.variables.items():
        known = {"HOME": os.environ["HOME"], "TREE": str(desk.workspace), "PATH": os.environ["PATH"]}
        for word, stands_for in known.items():
            value = value.replace(word, stands_for) if name in {"PATH", "GIT_CONFIG_GLOBAL"} else value
        monkeypatch.setenv(name, value)


@attacks(
    *(
        Attack(
            f"{name}_under_{mechanism}",
            tried,
            RUNS,
            FELL
            if name not in {"upload_pack", "settings_of_a_worktree"}
            else "it ran with the next fetch or status",
            slow=name not in QUICK,
            value=(case, mechanism),
        )
        for name, (tried, case) in CASES.items()
        for mechanism in ("bubblewrap", "landlock")
    )
)
def test_named(row: Attack, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case, mechanism = row.value
    needed(mechanism)
    desk = desk_for(mechanism, place)
    set_up(desk, case, monkeypatch)
    ended, text = desk.command(case.command)
    desk.operator("bash", "-c", case.then.replace("MARK", f"touch {desk.marker}"))
    assert not desk.marker.exists()
    said = " ".join(map(str, ended.taken))
    assert case.told in said or mechanism == "bubblewrap"
    assert said or any(one in text for one in ("ead-only", "busy", "ross-device")), text


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in CASES],
)
def test_it_would_have_run_without_the_sandbox(
    name: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attacks are real ones."""
    desk = desk_for("landlock", place)
    case = CASES[name][1]
    set_up(desk, case, monkeypatch)
    desk.operator("bash", "-c", case.command.replace("MARK", f"touch {desk.marker}"))
    assert not desk.marker.exists()
    desk.operator("bash", "-c", case.then)
    assert desk.marker.exists()


def place_of(one: Obeyed, number: int) -> str:
    inside = one.entries[0] if one.entries else "x/y"
    return f"{'deep/' if number % 2 else ''}{one.name}{f'/{inside}' if one.folder else ''}"


PLACES = [place_of(one, number) for number, one in enumerate(TABLE)]
"""A file of each row of the table."""


@attacks(
    *(
        Attack(
            f"obeyed_under_{mechanism}",
            f"Each of {len(PLACES)} files that agents, editors, shells, and tools take up, and two of new agents",
            "All are taken back, each with a copy and with whose it is; what is work stays",
            "settings of agents and tools that no list named stayed",
            value=mechanism,
        )
        for mechanism in ("bubblewrap", "landlock")
    )
)
def test_obeyed(row: Attack, place: Path) -> None:
    needed(row.value)
    desk = desk_for(row.value, place)
    files = [*PLACES, "my.code-workspace", "x.pth", "deep/.next-agent/hooks.json", "next/mcp.json"]
    work = (
        "conftest.py",
        "Makefile",
        "package.json",
        "env/lib/site-packages/x.pth",
        "node_modules/x/.npmrc",
        ".env",
    )
    ended, text = desk.command(
        "".join(f"mkdir -p '{Path(file).parent}'; echo planted > '{file}'\n" for file in [*files, *work])
    )
    assert text == "", text
    assert sorted(one.path for one in ended.taken) == sorted(files)
    assert all("by itself" in one.why or one.path == ".agent-tui.toml" for one in ended.taken), ended.taken
    assert [file for file in files if (desk.workspace / file).exists()] == []
    assert all((desk.workspace / file).exists() for file in work)


EXCHANGE = """
import ctypes, os, sys
number = {"x86_64": 316}.get(os.uname().machine, 276)
libc = ctypes.CDLL(None, use_errno=True)
sys.exit(libc.syscall(number, -100, os.fsencode(sys.argv[1]), -100, os.fsencode(sys.argv[2]), 2) != 0)
"""
EVIL = (
    "mkdir -p evil/objects evil/refs evil/hooks; echo 'ref: refs/heads/main' > evil/HEAD;"
    "printf '[core]\\n\\tfsmonitor = MARK;\\n' > evil/config; mkdir empty;"
    "echo 'gitdir: evil' > pointer; ln -s evil link;"
)


@attacks(
    *(
        Attack(
            f"exchanged_with_{name}_under_{mechanism}",
            f"`.git` changes places with {what}, in one step",
            "Refused, or put back: the repository is the operator's, with its history",
            "an empty `.git` was left, or another's" if mechanism == "landlock" else "",
            slow=name not in {"empty", "evil"},
            value=(name, mechanism),
        )
        for name, what in {
            "empty": "an empty folder",
            "evil": "a folder of git's that runs something",
            "pointer": "a file that leads to one",
            "link": "a link to one",
            "another": "that of another repository",
        }.items()
        for mechanism in ("bubblewrap", "landlock")
    )
)
def test_exchanged(row: Attack, place: Path) -> None:
    name, mechanism = row.value
    needed(mechanism)
    desk = furnished(desk_for(mechanism, place))
    before = desk.operator("git", "log", "--oneline"), desk.operator("git", "log", "--oneline", place="sub")
    (desk.workspace / "exchange.py").write_text(EXCHANGE)
    other = "sub/.git" if name == "another" else name
    desk.command(f"{EVIL} python3 -I -S exchange.py .git {other}; true")
    desk.operator("git", "status")
    assert not desk.marker.exists()
    assert (
        desk.operator("git", "log", "--oneline"),
        desk.operator("git", "log", "--oneline", place="sub"),
    ) == before
    assert (desk.workspace / ".git").is_dir()
    assert not (desk.workspace / ".git").is_symlink()


def test_what_is_ordinary_stays(place: Path) -> None:
    """A setting that names files which are no programs protects none; a hook's tools are no scripts of the tree."""
    mechanism: Mechanism = "landlock"
    needed(mechanism)
    desk = furnished(desk_for(mechanism, place))
    desk.operator(
        "bash",
        "-c",
        f"{GLOBAL} commit.template .gitmessage; {GLOBAL} blame.ignoreRevsFile .git-blame-ignore-revs;"
        f"{GLOBAL} core.excludesFile .ignored; {GLOBAL} alias.last 'log -1 -- src'; {GLOBAL} core.editor 'vim -p';"
        f"{GLOBAL} alias.x '!git status && make test'; {hook('npm test && make check && pytest tests')}",
    )
    ended, _ = desk.command(
        "for f in .gitmessage .git-blame-ignore-revs .ignored Makefile package.json; do echo x > $f; done;"
        "mkdir -p src tests; echo x > src/a; echo x > tests/test_a.py; git add -A; git commit -qm x --no-verify"
    )
    assert (ended.code, ended.taken) == (0, ())
