"""Attacks by a command in the background that puts a link in the place of a folder, while the file tools work there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.adversarial.attack import Attack, attack, attacks
from tests.sandbox.boxes import MECHANISMS, folder_at_home, needed
from tests.tools.box import Box
from tui_agent.sandbox.mechanisms import Mechanism, Sandbox
from tui_agent.sandbox.policy import SandboxPolicy
from tui_agent.store.checkpoints import Checkpoints
from tui_agent.tools.errors import ToolError
from tui_agent.tools.files import EditFile, ReadFile, WriteFile
from tui_agent.tools.find import Glob, Grep, ListDir
from tui_agent.tools.registry import ToolRegistry
from tui_agent.tools.search import Search

ROUNDS, MANY = 15, 1_000
SWAPS = """
import ctypes, os, sys
os.chdir(sys.argv[1])
rename = ctypes.CDLL(None, use_errno=True).renameat2
if rename(-100, b"d", -100, b"l", 2):
    sys.exit(3)
print("begun", flush=True)
while True:
    rename(-100, b"d", -100, b"l", 2)
"""
"""A folder `d` and a link `l` change places, each time in one step."""


@contextmanager
def swapping(box: Box, outside: Path) -> Iterator[None]:
    for folder, text in ((outside, "THE-SECRET\n"), (box.root / "d", "inside\n")):
        (folder / "sub").mkdir(parents=True)
        (folder / "a.txt").write_text(text)
        (folder / "sub" / "b.txt").write_text(text)
    (outside / "name-outside.txt").touch()
    (box.root / "l").symlink_to(outside)
    swaps = subprocess.Popen([sys.executable, "-I", "-S", "-c", SWAPS, str(box.root)], stdout=subprocess.PIPE)
    try:
        assert swaps.stdout is not None
        if not swaps.stdout.readline():
            pytest.skip("this file system cannot exchange two names")
        yield
    finally:
        swaps.kill()
        swaps.communicate()


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("read_file", {"path": "d/a.txt"}),
    ("list_dir", {"path": "d"}),
    ("list_dir", {"path": "d/sub"}),
    ("glob", {"pattern": "**/*.txt"}),
    ("glob", {"pattern": "d/*"}),
    ("grep", {"pattern": "THE|inside"}),
    ("grep", {"pattern": "THE|inside", "path": "d"}),
    ("write_file", {"path": "d/a.txt", "content": "written\n"}),
    ("write_file", {"path": "d/new/c.txt", "content": "written\n"}),
    ("edit_file", {"path": "d/sub/b.txt", "old": "i", "new": "I"}),
]


@pytest.mark.process
@attacks(
    *(
        Attack(
            f"swapped_{engine}_{rounds}",
            f"A folder and a link out of the workspace change places without a pause, {rounds} rounds of "
            f"every file tool ({engine} engine)",
            "Nothing outside is read, named, written or made",
            "in 2 of 100 rounds glob named files outside, and grep showed what they hold",
            slow=rounds == MANY or engine == "python",
            value=(engine, rounds),
        )
        for engine in ("auto", "python")
        for rounds in (ROUNDS, MANY)
    )
)
async def test_a_folder_and_a_link_change_places(row: Attack, box: Box, tmp_path: Path) -> None:
    engine, rounds = row.value
    search = Search(engine)
    box.registry = ToolRegistry(
        [ReadFile(), WriteFile(), EditFile(), ListDir(), Glob(search=search), Grep(search=search)]
    )
    outside = tmp_path / "outside"
    with swapping(box, outside):
        for _ in range(rounds):
            for tool, arguments in CALLS:
                try:
                    said = (await box.call(tool, **arguments)).content
                except ToolError as error:
                    said = str(error)
                assert "THE-SECRET" not in said, tool
                assert "name-outside" not in said, tool
    assert sorted(str(path.relative_to(outside)) for path in outside.rglob("*")) == [
        "a.txt", "name-outside.txt", "sub", "sub/b.txt",
    ]  # fmt: skip
    assert {path.read_text() for path in outside.rglob("[ab].txt")} == {"THE-SECRET\n"}


@attack(
    "What a search found outside, through a link that stood there for an instant",
    "Left out, and said: each file is opened again, step by step without a link",
    fell="shown",
)
async def test_what_a_search_found_through_a_link(
    box: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search that is unlucky, played by a program in its place."""
    box.put("d/a.txt", "inside\nsame\n")
    match = {"path": {"text": "./d/a.txt"}, "submatches": [{"start": 0}]}
    rows = [{"type": "begin", "data": {"path": {"text": "./d/a.txt"}}}]
    for number, text in ((1, "THE-SECRET\n"), (2, "same\n"), (9, "THE-SECRET\n")):
        rows.append({"type": "match", "data": {**match, "lines": {"text": text}, "line_number": number}})
    rows.append({"type": "end", "data": {"binary_offset": None}})
    lines = "\n".join(map(json.dumps, rows))
    programs = tmp_path / "programs"
    programs.mkdir()
    names = r"'./d/a.txt\0./d/name-outside.txt\0'"
    (programs / "rg").write_text(
        f"#!/bin/sh\ncase \"$*\" in *--files*) printf {names};; *) cat <<'EOF'\n{lines}\nEOF\nesac\n"
    )
    (programs / "rg").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    found = (await box.call("grep", pattern="x")).content
    assert (
        found
        == "d/a.txt:2: same\n(2 results left out: changed, or no longer in the workspace, when looked at again)"
    )
    assert (await box.call("glob", pattern="**/*.txt")).content.splitlines()[0] == "d/a.txt"
    assert "name-outside" not in (await box.call("glob", pattern="**/*.txt")).content


GIT = """#!/bin/sh
case "$1" in
update-index|read-tree) cat '{outside}/a.txt' > "$GIT_DIR/shown-$1"; echo x > '{outside}/made-by-'$1 ;;
esac
exec /usr/bin/git "$@"
"""
"""What a git does that is unlucky with every name: it reads and writes behind the link."""


@attack(
    "A checkpoint is made and gone back to, while a folder and a link out of the workspace change places",
    "git reads and writes names of the workspace in the sandbox of commands: nothing outside is there for it",
    fell="in 1 of 50 rounds a checkpoint held what a file outside holds",
)
@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_checkpoints_while_links_are_swapped(
    mechanism: Mechanism, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed(mechanism)
    with folder_at_home() as home:
        workspace, outside, programs, state = (home / name for name in ("w", "outside", "programs", "state"))
        for folder in (workspace, outside, programs, state / "s1" / "tmp"):
            folder.mkdir(parents=True)
        (outside / "a.txt").write_text("THE-SECRET\n")
        (workspace / "a.txt").write_text("inside\n")
        (programs / "git").write_text(GIT.format(outside=outside))
        (programs / "git").chmod(0o755)
        monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
        policy = SandboxPolicy.around(workspace, state / "s1" / "tmp", state_dir=state, show=(str(programs),))
        checkpoints = Checkpoints(state, workspace, "s1")
        checkpoints.inside(Sandbox(mechanism, policy))
        saved = await checkpoints.save("before")
        (workspace / "a.txt").write_text("changed\n")
        await checkpoints.restore(saved.ref)
        assert (workspace / "a.txt").read_text() == "inside\n"
        shown = [path.read_text() for path in state.rglob("shown-*")]
        assert (len(shown), set(shown)) == (2, {""})
        assert [path.name for path in outside.iterdir()] == ["a.txt"]
