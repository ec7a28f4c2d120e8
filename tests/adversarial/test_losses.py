"""Attacks on files that git does not have: commands that take them away ask by themselves, name what would be lost, and
`/undo` brings it back.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections import deque
from pathlib import Path
from typing import Any

import pytest

from tests.adversarial.attack import Attack, attack, attacks
from tests.mcp.harness import call, turns
from tests.runtime.scripted import ScriptedOperator
from tests.runtime.session_harness import LiveSession, start_session
from tui_agent.core import events
from tui_agent.core.names import Approval
from tui_agent.permissions.losses import loss_of
from tui_agent.runtime.operator import ApprovalReply
from tui_agent.store.checkpoints import CheckpointLimits, Checkpoints

ASKS = "It asks, although a mode or a rule allows it, and names what would be lost"
FELL = "it ran unasked, and what git ignores was gone for good"
LOSSES = {
    "clean": ("git clean -fd", "notes.txt and 1 more|drafts/a.md|notes.txt"),
    "clean_everything": ("git clean -ffdx", "local.db"),
    "clean_the_ignored": ("git -C . clean -fX", "local.db"),
    "checkout": ("git checkout -- .", "changed.py"),
    "checkout_of_a_file": ("git checkout changed.py", "changed.py"),
    "checkout_by_force": ("git checkout -f", "changed.py"),
    "restore": ("git restore .", "changed.py"),
    "reset": ("git reset -q --hard HEAD", "changed.py"),
    "switch": ("git switch --discard-changes main", "changed.py"),
    "stash": ("git stash -u", "notes.txt"),
    "stash_all": ("git stash push --all", "local.db"),
    "rm": ("rm -rf drafts", "drafts/a.md"),
    "rm_by_a_wildcard": ("cd drafts && rm *.md", "drafts/a.md"),
    "rm_in_a_shell": ("sudo -n true; bash -c 'rm -f notes.txt'", "notes.txt"),
    "rm_behind_a_program": ("env X=1 nice rm notes.txt", "notes.txt"),
    "git_rm": ("git rm -f changed.py", "changed.py"),
    "mv_over": ("mv src/a.py notes.txt", "notes.txt"),
    "mv_into": ("mkdir -p x && cp src/a.py drafts/a.md", "drafts/a.md"),
    "cp_over": ("cp -r src/. src2 ; cp src/a.py local.db", "local.db"),
    "link_over": ("ln -sf src/a.py notes.txt", "notes.txt"),
    "redirection": ("echo new > notes.txt", "notes.txt"),
    "redirection_in_a_folder": ("cd drafts; : > a.md", "drafts/a.md"),
    "tee": ("echo x | tee local.db", "local.db"),
    "truncate": ("truncate -s 0 local.db", "local.db"),
    "dd": ("dd if=/dev/zero of=local.db count=0", "local.db"),
    "find": ("find . -name '*.md' -delete", "drafts/a.md"),
    "find_rm": ("find drafts -type f -exec rm {} +", "drafts/a.md"),
    "shred": ("shred -u notes.txt", "notes.txt"),
}
UNSEEN = "it ran unasked: only what stood in the command by itself was looked at"
SCRIPTED = {
    "clean_in_a_shell": ("sh -c 'git clean -fd'", "notes.txt"),
    "clean_in_a_shell_with_options": ("bash -euxc 'cd drafts; git clean -fd .'", "drafts/a.md"),
    "find_by_name": (
        "find . -name 'n*.txt' -delete",
        "1 file that git does not have would be lost (29 bytes): notes.txt",
    ),
    "find_and_a_shell": ("find drafts -type f -exec sh -c 'rm \"$1\"' _ {} ';'", "drafts/a.md"),
    "xargs": ("find drafts -name '*.md' | sort | xargs rm -f", "drafts/a.md"),
    "xargs_of_git": ("git ls-files -oz --exclude-standard | xargs -0 rm", "notes.txt"),
    "xargs_one_by_one": ("ls drafts/*.md | xargs -I{} rm {}", "drafts/a.md"),
    "xargs_of_words": ("printf '%s\\n' notes.txt | xargs rm", "notes.txt"),
    "parallel": ("ls drafts/*.md | parallel rm", "drafts/a.md"),
    "a_loop": ('for f in *.txt; do rm "$f"; done', "notes.txt"),
    "a_loop_that_reads": ('find drafts -type f | while read -r f; do rm -- "$f"; done', "drafts/a.md"),
    "a_variable": ('d=drafts; rm -rf "$d"', "drafts/a.md"),
    "the_folder_itself": ('rm -rf "$PWD"/drafts', "drafts/a.md"),
    "braces": ("rm -rf {drafts,private}", "drafts/a.md"),
    "a_substitution": ("rm $(git ls-files -o --exclude-standard)", "notes.txt"),
    "the_folder_above": ("cd src && rm -rf ../../w", "drafts/a.md"),
    "eval": ("eval 'rm -rf drafts'", "drafts/a.md"),
    "a_here_document": ("bash <<'E'\nrm -rf drafts\nE", "drafts/a.md"),
    "a_pipe_into_a_shell": ("echo 'rm -rf drafts' | sh", "drafts/a.md"),
    "python": ("python3 -c \"import shutil; shutil.rmtree('drafts')\"", "drafts/a.md"),
    "python_that_writes": ("python3 -c \"open('notes.txt', 'w')\"", "notes.txt"),
    "python_with_a_wildcard": (
        "python -c 'import glob, os\nfor f in glob.glob(\"*.txt\"): os.remove(f)'",
        "notes.txt",
    ),
    "python_in_a_here_document": ("python3 - <<E\nimport os\nos.unlink('notes.txt')\nE", "notes.txt"),
    "python_and_a_shell": ("python3 -c 'import os; os.system(\"rm -rf drafts\")'", "drafts/a.md"),
    "python_and_a_list": (
        'python3 -c \'import subprocess as s; s.run(["rm", "-rf", "drafts"])\'',
        "drafts/a.md",
    ),
    "perl": ("perl -e 'unlink \"notes.txt\"'", "notes.txt"),
    "perl_with_a_wildcard": ("perl -e 'unlink <*.txt>'", "notes.txt"),
    "node": ('node -e \'require("fs").rmSync("drafts", {recursive: true})\'', "drafts/a.md"),
    "ruby": ("ruby -e 'File.delete(\"notes.txt\")'", "notes.txt"),
    "truncate_of_many": ("truncate -s 0 src/a.py local.db", "local.db"),
    "a_download": ("curl -s -o notes.txt http://127.0.0.1:9/", "notes.txt"),
    "a_here_string": ("sh <<< 'rm -rf drafts'", "drafts/a.md"),
    "a_here_string_for_python": ("python3 <<< \"import os; os.remove('notes.txt')\"", "notes.txt"),
    "a_trap": ("trap 'rm -rf drafts' EXIT", "drafts/a.md"),
    "tar_that_removes": ("tar --remove-files -cf x.tar drafts", "drafts/a.md"),
    "zip_that_moves": ("zip -rm x.zip notes.txt", "notes.txt"),
    "sponge": ("sort notes.txt | sponge notes.txt", "notes.txt"),
    "rsync_that_deletes": ("rsync -a --delete src/ drafts/", "drafts/a.md"),
}
HELD = {"clean_in_a_shell", "the_folder_above", "truncate_of_many"}
HARMLESS = (
    *(
        "git clean -nfd",
        "git checkout main",
        "git restore --staged .",
        "git stash list",
        "git stash",
        "git reset HEAD",
    ),
    *("rm -f src/a.py", "rm -rf node_modules target __pycache__", "rm -f missing", "mv notes.txt kept.txt"),
    *(
        "echo x >> notes.txt",
        "echo x | tee -a local.db",
        "cp -n src/a.py notes.txt",
        "cat notes.txt > new.txt",
    ),
    *(
        "rm made.txt",
        "echo x > made.txt",
        "git checkout -- src",
        "git rm --cached changed.py",
        "ls > /dev/null",
    ),
    *(
        "find . -name '*.pyc' -delete",
        "python3 -c \"print(open('notes.txt').read())\"",
        "git ls-files -o | xargs wc -l",
        "echo rm -rf drafts",
        "printf 'rm -rf drafts' > new.sh",
        'for f in *.txt; do cat "$f"; done',
        "echo 'rm -rf drafts'; bash build.sh",
        "curl -s -o new.txt http://127.0.0.1:9/",
        "perl -ne 'print' notes.txt",
        "cat notes.txt 1<> local.db",
    ),
)


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def furnished(folder: Path) -> Path:
    """A checkout with work that git does not have."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    for name in ("src/a.py", "changed.py", ".gitignore"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(
            "local.db\nnode_modules/\ntarget/\nprivate/\n" if name == ".gitignore" else "x = 1\n"
        )
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "a")
    (folder / "changed.py").write_text("x = 2\n")
    for name in (
        "drafts/a.md",
        "notes.txt",
        "local.db",
        "private/key.txt",
        "node_modules/m.js",
        "target/CACHEDIR.TAG",
    ):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(f"{name}, which exists once\n")
    return folder


def content(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not {".git", "node_modules", "target"} & set(path.relative_to(folder).parts)
    }


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return furnished(tmp_path_factory.mktemp("checkout") / "w")


@attacks(
    *(
        Attack(name, f"`{command}`", ASKS, FELL, value=(command, lost))
        for name, (command, lost) in LOSSES.items()
    ),
    *(
        Attack(name, f"`{command}`", ASKS, "" if name in HELD else UNSEEN, value=(command, lost))
        for name, (command, lost) in SCRIPTED.items()
    ),
)
def test_what_would_be_lost(row: Attack, checkout: Path) -> None:
    command, lost = row.value
    loss = loss_of(command, checkout, time.time() + 60)
    assert loss is not None, command
    assert any(one in str(loss) for one in lost.split("|")), loss


@pytest.mark.parametrize("command", HARMLESS)
def test_what_loses_nothing_asks_nothing(command: str, checkout: Path) -> None:
    since = time.time() + 60
    made = checkout / "made.txt"
    made.unlink(missing_ok=True)
    if "made.txt" in command:
        while made.write_text("x") and made.stat().st_ctime < (since := time.time() - 30):
            pass  # it is newer than what began before it
    assert loss_of(command, checkout, since) is None


def of(live: LiveSession, kind: type[Any]) -> list[Any]:
    return list(live.of(kind))


@attack(
    "`git clean -ffdx` by a rule `bash(git *)`, then `/undo`",
    "It asks with the figure; allowed, all of it is back, also what git ignores",
    fell=FELL,
)
async def test_asked_and_brought_back(tmp_path: Path) -> None:
    workspace = furnished(tmp_path / "workspace")
    before = content(workspace)
    _wait(workspace)
    live = await start_session(
        tmp_path,
        turns(call("bash", command="git clean -ffdx && git checkout -- . && rm -rf drafts")),
        operator=ScriptedOperator(approvals=deque([ApprovalReply("once")])),
        permissions={"allow": ["bash(git *)", "bash(rm *)"]},
        approve="ask",
    )
    await live.run()
    (asked,) = of(live, events.ApprovalAsked)
    assert "files that git does not have would be lost" in asked.why
    assert "local.db" in asked.why
    after = content(workspace)
    assert after != before
    (saved, *_) = of(live, events.CheckpointSaved)
    restored = await live.session.checkpoints.restore(saved.ref)
    assert content(workspace) == before
    assert {"local.db", "private/key.txt"} <= {change.path for change in restored.changes}
    await live.session.checkpoints.restore(restored.undo_ref)
    # What git ignores is never deleted by going back.
    assert content(workspace).keys() - after.keys() <= {"local.db", "private/key.txt"}
    await live.close()


BROUGHT_BACK = "`/undo` brings all of it back"
UNREADABLE = {
    "a_makefile": ("make clean", "Makefile", "clean:\n\trm -rf drafts private local.db notes.txt\n"),
    "a_script": (
        "sh ./clean.sh",
        "clean.sh",
        "for one in drafts private; do rm -rf $one; done; : > notes.txt\n",
    ),
    "a_program": (
        "python3 clean.py",
        "clean.py",
        """
import os, shutil
for one in os.listdir():
    if not one.startswith('.'):
        shutil.rmtree(one) if os.path.isdir(one) else os.unlink(one)
""",
    ),
}


@attacks(
    *(
        Attack(f"loss_by_{name}", f"`{row[0]}`, which does not say what it deletes", BROUGHT_BACK, value=row)
        for name, row in UNREADABLE.items()
    )
)
async def test_what_nothing_foresaw(row: Attack, tmp_path: Path) -> None:
    command, name, text = row.value
    if shutil.which(command.split()[0]) is None:
        pytest.skip(f"{command.split()[0]} is not installed")
    workspace = furnished(tmp_path / "workspace")
    (workspace / name).write_text(text)
    before = content(workspace)
    live = await start_session(tmp_path, turns(call("bash", command=command)), approve=Approval.ALL)
    await live.run()
    after = content(workspace)
    assert {"drafts/a.md", "private/key.txt"}.isdisjoint(after)
    assert after.get("notes.txt", b"") == b""
    (saved, *_) = of(live, events.CheckpointSaved)
    await live.session.checkpoints.restore(saved.ref)
    assert content(workspace) == before
    await live.close()


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf " + "{a," * 5_000,
        "rm " + "{" + "a," * 9_000 + "}",
        "python3 - " + "<<E " * 3_000,
        "python3 -c '" + "open(" * 3_000 + "'",
        "python3 -c 'open(" + ", " * 8_000 + "'",
        "x=*; " + "rm $x " * 2_000,
        "bash -c '" * 500 + "rm a",
    ],
)
def test_looking_for_losses_takes_no_long_time(command: str, tmp_path: Path) -> None:
    began = time.thread_time()
    loss_of(command, tmp_path, time.time() + 60)
    assert time.thread_time() - began < 1


def _wait(workspace: Path) -> None:
    """Until a file that is made now would be newer."""
    last = max(path.lstat().st_ctime for path in workspace.rglob("*"))
    while time.time() <= last + 0.02:
        pass


@attack(
    "2,000 files that git does not know and 60 that it ignores, of 30 MB (by hand: 300 MB), are cleaned away",
    "All of them are back, byte for byte",
    fell=FELL,
    slow=True,
)
async def test_many_and_large(tmp_path: Path) -> None:
    many = int(os.environ.get("AGENT_TUI_TEST_MB", "30"))
    workspace = furnished(tmp_path / "w")
    for number in range(2_000):
        path = workspace / "data" / str(number % 40) / f"{number}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(number.to_bytes(4, "big") * (many * 100))
    for number in range(60):
        (workspace / "private" / f"{number}.bin").write_bytes(os.urandom(many * 3_000))
    before = content(workspace)
    kept = Checkpoints(tmp_path / "state", workspace, "a")
    saved = await kept.save("before", ignored=True)
    git(workspace, "clean", "-qffdx")
    (workspace / "changed.py").write_text("")
    (workspace / "private").mkdir()
    (workspace / "private" / "1.bin").write_text("truncated")
    await kept.restore(saved.ref)
    assert content(workspace) == before


async def test_what_is_ignored_is_no_change_of_the_run(tmp_path: Path) -> None:
    workspace = furnished(tmp_path / "w")
    kept = Checkpoints(tmp_path / "state", workspace, "a")
    await kept.save("before", ignored=True)
    (workspace / "local.db").write_text("other")
    assert (await kept.save("step 1")).files == ()


async def test_two_runs_that_change_only_what_is_ignored_go_back_to_their_own(tmp_path: Path) -> None:
    workspace = furnished(tmp_path / "w")
    kept = Checkpoints(tmp_path / "state", workspace, "a")
    first = await kept.save("run 1", ignored=True)
    (workspace / "local.db").write_text("two")
    second = await kept.save("run 2", ignored=True)
    assert first.ref != second.ref
    (workspace / "local.db").unlink()
    await kept.restore(second.ref)
    assert (workspace / "local.db").read_text() == "two"
    await kept.restore(first.ref)
    assert (workspace / "local.db").read_text() == "local.db, which exists once\n"


async def test_large_ignored_files_and_secrets_are_left_out(tmp_path: Path) -> None:
    workspace = furnished(tmp_path / "w")
    (workspace / "private" / "huge").write_bytes(bytes(2_000))
    (workspace / "private" / "token").write_text("THE-SECRET")
    limits = CheckpointLimits(ignored_file=1_000)
    kept = Checkpoints(tmp_path / "state", workspace, "a", limits, secrets=(b"THE-SECRET",))
    saved = await kept.save("before", ignored=True)
    git(workspace, "clean", "-qffdX")
    await kept.restore(saved.ref)
    assert sorted(path.name for path in (workspace / "private").iterdir()) == ["key.txt"]


OWN_KIND = {
    "direnv": ".envrc",
    "code": ".vscode/settings.json",
    "agents": "deep/.kiro/settings/mcp.json",
    "npm": ".npmrc",
    "by_a_link": "linked/tasks.json",
}


@attacks(
    *(
        Attack(
            f"edit_of_{name}",
            f"`write_file` of {path}, under `--approve writes` and a rule `edit_file(**)`",
            "It asks by itself, says which program obeys it, and offers a rule for this file alone",
            "`--approve writes` and wide rules let it be written unasked",
            value=path,
        )
        for name, path in OWN_KIND.items()
    )
)
async def test_an_edit_of_what_others_obey(row: Attack, tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    (workspace / ".vscode").mkdir(parents=True)
    (workspace / "linked").symlink_to(".vscode")
    live = await start_session(
        tmp_path,
        turns(
            call("write_file", path=row.value, content="x"), call("write_file", path="plain.txt", content="x")
        ),
        permissions={"allow": ["edit_file(**)"]},
        approve=Approval.WRITES,
    )
    await live.run()
    (asked,) = of(live, events.ApprovalAsked)
    assert "obeys it by itself" in asked.why
    assert len(asked.rules) == 1
    assert "*" not in asked.rules[0]
    assert asked.others == ()
    await live.close()


async def test_a_rule_that_names_it_lets_it_be_written(tmp_path: Path) -> None:
    paths = (".envrc", ".vscode/settings.json", "deep/.npmrc")
    live = await start_session(
        tmp_path,
        turns(*(call("write_file", path=path, content="x") for path in paths)),
        permissions={"allow": ["edit_file(.envrc)", "edit_file(.vscode/**)", "edit_file(**/.npmrc)"]},
        approve="ask",
    )
    await live.run()
    assert of(live, events.ApprovalAsked) == []
    await live.close()
