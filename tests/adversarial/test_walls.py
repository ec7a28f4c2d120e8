"""Attacks on the file tools: names, links, kinds, sizes by which a tool could leave the workspace or hang."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import socket
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.adversarial.attack import Attack, attack, attacks
from tests.runtime.session_harness import start_session
from tests.tools.box import Box
from tui_agent.core.events import ToolSucceeded
from tui_agent.terminal_text import is_safe
from tui_agent.tools.errors import ToolError
from tui_agent.tools.find import Glob, Grep
from tui_agent.tools.registry import ToolRegistry, default_tools
from tui_agent.tools.search import Search

SOON = 90.0
"""Seconds: more than any tool's own limit, so that only what holds it without end gets here."""
GIGABYTE = 1 << 30


async def said(box: Box, tool: str, **arguments: object) -> str:
    """What the model reads of a call, done or refused; a call that hangs fails the test."""
    async with asyncio.timeout(SOON):
        try:
            return (await box.call(tool, **arguments)).content
        except ToolError as error:
            return error.message


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.fspath(path))


def make_device(path: Path) -> None:
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("only root makes devices")


@attacks(
    Attack(
        "fifo",
        "A named pipe without a writer, given to every file tool",
        "Refused or passed over at once",
        value=make_fifo,
    ),
    Attack("socket", "A socket as a file", "Refused or passed over at once", value=make_socket),
    Attack(
        "device", "A node of /dev/zero as a file", "Refused or passed over, never read", value=make_device
    ),
)
async def test_special_files(row: Attack, box: Box) -> None:
    box.put("plain.txt", "needle\n")
    row.value(box.root / "special")
    for tool, rest in (
        ("read_file", {}),
        ("edit_file", {"old": "a", "new": "b"}),
        ("write_file", {"content": "x"}),
    ):
        assert re.search("Only regular files|not a file", await said(box, tool, path="special", **rest))
    assert "plain.txt:1" in await said(box, "grep", pattern="needle")
    await said(box, "grep", pattern="needle", path="special")
    assert "special" in await said(box, "list_dir")
    assert "plain.txt" in await said(box, "glob", pattern="*")
    for engine in ("python", *(["ripgrep"] if shutil.which("rg") else [])):
        search = Search(engine, timeout=60)
        box.registry = ToolRegistry([Grep(search=search), Glob(search=search)])
        assert "plain.txt:1" in await said(box, "grep", pattern="needle")
        await said(box, "grep", pattern="needle", path="special")


@contextmanager
def swapping(one: Path, other: Path) -> Iterator[None]:
    """`one` and `other` change places all the time."""
    stop, spare = threading.Event(), one.with_name("spare")

    def swap() -> None:
        while not stop.is_set():
            with suppress(OSError):
                one.rename(spare)
                other.rename(one)
                time.sleep(0)
                one.rename(other)
                spare.rename(one)

    thread = threading.Thread(target=swap, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _link_world(box: Box, tmp_path: Path) -> Path:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "OUTSIDE-NAME").write_text("OUTSIDE-TEXT\n")
    (outside / "file.txt").write_text("OUTSIDE-TEXT\n")
    box.put("d/file.txt", "inside\n")
    (box.root / "away").symlink_to(outside)
    return outside


@attack(
    "A directory and a link out of the workspace change places while it is read, written and listed",
    "Nothing outside is read, named or changed",
    fell="list_dir looked at the path again after checking it, and named what lies outside",
)
async def test_link_swapped_in(box: Box, tmp_path: Path) -> None:
    outside = _link_world(box, tmp_path)
    with swapping(box.root / "d", box.root / "away"):
        end = time.monotonic() + 0.7
        while time.monotonic() < end:
            for text in (
                await said(box, "read_file", path="d/file.txt"),
                await said(box, "list_dir", path="d"),
                await said(box, "write_file", path="d/file.txt", content="inside\n"),
                await said(box, "edit_file", path="d/file.txt", old="inside", new="inside"),
            ):
                assert "OUTSIDE" not in text
    assert (outside / "file.txt").read_text() == "OUTSIDE-TEXT\n"
    assert sorted(path.name for path in outside.iterdir()) == ["OUTSIDE-NAME", "file.txt"]


@attack(
    "A file and a link to a secret change places while it is read and edited",
    "The secret is neither read nor changed",
)
async def test_file_link_swapped_in(box: Box, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("OUTSIDE-TEXT\n")
    box.put("f", "inside\n")
    (box.root / "away").symlink_to(secret)
    with swapping(box.root / "f", box.root / "away"):
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            assert "OUTSIDE" not in await said(box, "read_file", path="f")
            assert "OUTSIDE" not in await said(box, "edit_file", path="f", old="inside", new="inside")
    assert secret.read_text() == "OUTSIDE-TEXT\n"


@attack(
    "Names of files with line breaks, escape sequences, bidirectional marks and bytes that are no UTF-8",
    "Each is listed on one line without a character that a terminal acts on, and can be read by no other name",
)
async def test_names_with_control_characters(box: Box) -> None:
    names = [
        b"a\nb.txt",
        b"\x1b[2Jc.txt",
        "\u202etxt.exe".encode(),
        b"\xff\xfe.txt",
        b"\x9b31m.txt",
        b"d\r.txt",
    ]
    for name in names:
        (Path(os.fsdecode(os.fsencode(box.root) + b"/" + name))).write_text("needle\n")
    for text in (
        await said(box, "list_dir"),
        await said(box, "glob", pattern="*"),
        await said(box, "grep", pattern="needle"),
        await said(box, "read_file", path="b.txt"),
        await said(box, "read_file", path="\x1b[2J"),
    ):
        assert is_safe(text), text
    assert len((await said(box, "list_dir")).splitlines()) == len(names)


@attack(
    "A sparse file of 5 GB: read, searched, edited and written over",
    "Each call ends within seconds and in bounded memory, with a clear error where it cannot be done",
)
async def test_sparse_file_of_5_gb(box: Box) -> None:
    huge = box.put("huge.txt", "needle\n" * 10)
    os.truncate(huge, 5 * GIGABYTE)
    os.truncate(box.put("zeros.bin"), 5 * GIGABYTE)
    begun = time.monotonic()
    for name in ("huge.txt", "zeros.bin"):
        await said(box, "read_file", path=name)
        await said(box, "read_file", path=name, offset=1_000_000)
        assert "larger than" in await said(box, "edit_file", path=name, old="needle", new="x")
    assert time.monotonic() - begun < SOON
    assert huge.stat().st_blocks * 512 < GIGABYTE


@attack(
    "One line of 10 MB: read, searched for a character, edited",
    "The line is shown cut, the match is shown around its place, the edit lands",
    slow=True,
)
async def test_line_of_10_mb(box: Box) -> None:
    box.put("long.txt", "a" * 10_000_000 + "needle" + "b" * 100 + "\nnext\n")
    text = await said(box, "read_file", path="long.txt")
    assert len(text) < 10_000
    assert "more characters in this line" in text
    assert "next" in text
    found = await said(box, "grep", pattern="needle")
    assert len(found) < 2_000
    assert "needle" in found
    await box.call("edit_file", path="long.txt", old="needle", new="thread")
    assert "thread" in (box.root / "long.txt").read_text()


@attack(
    "One line of 80 MB, every character of which matches",
    "The search ends within its memory, and says why where it finds nothing",
    fell="8 GB, and 46 s",
    slow=True,
)
async def test_line_of_80_mb_of_matches(box: Box) -> None:
    box.put("long.txt", "a" * 80_000_000)
    told = await said(box, "grep", pattern="a")
    assert "very long line" in told or "line too long" in told
    box.registry = ToolRegistry([Grep(search=Search("python"))])
    assert "too long" in await said(box, "grep", pattern="a")


@attack(
    "Edits of files with the modes 0755, 0600 and 04711, and of another owner where possible",
    "Mode and owner are the same afterwards",
)
async def test_mode_and_owner_kept(box: Box) -> None:
    for mode in (0o755, 0o600, 0o4711, 0o640):
        path = box.put(f"f{mode:o}", "old\n")
        if os.geteuid() == 0:
            os.chown(path, 12_345, 23_456)
        path.chmod(mode)
        before = path.stat()
        await box.call("edit_file", path=path.name, old="old", new="new")
        await box.call("write_file", path=path.name, content="newer\n")
        after = path.stat()
        assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)


@attack(
    "A file of the workspace that is a hard link to one outside is edited",
    "The file outside keeps its content",
)
async def test_hard_link_to_a_file_outside(box: Box, tmp_path: Path) -> None:
    outside = tmp_path / "precious"
    outside.write_text("precious\n")
    os.link(outside, box.root / "inner")
    await box.call("edit_file", path="inner", old="precious", new="gone")
    await box.call("write_file", path="inner", content="gone too\n")
    assert outside.read_text() == "precious\n"


@attack(
    "Paths of 6,000 and of 1,000,000 characters, and of 3,000 parts, for every file tool",
    "A refusal of one short paragraph, at once",
)
async def test_path_of_6000_characters(box: Box) -> None:
    for path in ("a" * 6_000, "b" * 1_000_000, "c/" * 3_000 + "d", "../" * 3_000, "./" * 3_000 + "x"):
        for tool, rest in (
            ("read_file", {}),
            ("write_file", {"content": "x"}),
            ("edit_file", {"old": "a", "new": "b"}),
            ("list_dir", {}),
            ("grep", {"pattern": "a"}),
        ):
            if tool == "write_file" and path.startswith(("c/", "./")):
                continue
            assert len(await said(box, tool, path=path, **rest)) < 2_000
        assert len(await said(box, "glob", pattern=path)) < 2_000


@attack(
    "Directories nested 600 deep, with a file at the bottom",
    "Listing, searching and a missing name beside them end at once; the deep file is found or passed over",
    slow=True,
)
async def test_directories_nested_deep(box: Box) -> None:
    here = os.open(box.root, os.O_RDONLY)
    for _ in range(600):
        os.mkdir("d", dir_fd=here)
        deeper = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(os.open("bottom.txt", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)
    box.put("near.txt", "needle\n")
    assert "near.txt" in await said(box, "glob", pattern="*.txt")
    assert "near.txt:1" in await said(box, "grep", pattern="needle")
    assert "near.txt" in await said(box, "read_file", path="neer.txt")
    box.registry = ToolRegistry([Glob(search=Search("python")), Grep(search=Search("python"))])
    assert "near.txt" in await said(box, "glob", pattern="*.txt")
    assert "near.txt:1" in await said(box, "grep", pattern="needle")


@attack(
    "Settings of git and of this program as targets of a write, by every spelling of their names",
    "Refused: both hold commands that run later without anybody's approval",
    fell="other letter cases of .agent-tui.toml and names with characters that some file systems ignore got through",
)
async def test_settings_that_run_commands(box: Box) -> None:
    box.put(".git/config", "[core]\n")
    box.put("sub/x", "")
    (box.root / "g").symlink_to(".git")
    spellings = [
        ".git/config", ".git/hooks/post-commit", "./.git//hooks/x", ".GIT/config", ".Git/hooks/x", "g/config",
        "sub/../.git/config", "sub/.git", "sub/.git/config", ".agent-tui.toml", "sub/.agent-tui.toml",
        ".AGENT-TUI.toml", ".Agent-Tui.Toml", ".g\u200cit/config", ".agent-tui\u200d.toml", ".git./config",
        ".git /config",
    ]  # fmt: skip
    for path in spellings:
        for tool, rest in (("write_file", {"content": "x"}), ("edit_file", {"old": "[core]", "new": "x"})):
            message = await said(box, tool, path=path, **rest)
            assert "not written by this tool" in message or "There is no file" in message, (path, message)
        assert not (box.root / path).exists() or path in {".git/config", "g/config", "sub/../.git/config"}
    assert (box.root / ".git/config").read_text() == "[core]\n"


PATTERNS = {
    "stars": ("*a" * 14 + "b", "a" * 200),
    "spans": ("**/" + "a*" * 20 + "/**/" + "*b" * 20, "a/" * 40 + "a" * 100),
    "questions": ("?*" * 50 + "b", "a" * 200),
    "classes": ("[a-z]*" * 40 + "0", "a" * 200),
    "directories": ("**/a/" * 30 + "b", "a/" * 100 + "a"),
    "braces": ("{a,b}" * 6 + "*c*d", "ab" * 60),
}


@pytest.mark.process
@attack(
    "Globs and `.gitignore` lines made to backtrack, against names made for them",
    "Listing, searching and hints end within seconds",
    fell="`*a` fourteen times kept the process busy without end",
)
async def test_globs_that_backtrack(box: Box) -> None:
    names = "a" * 200, "ab" * 100
    for name in names:
        box.put(name)
    deep = box.root
    for _ in range(60):
        deep = deep / "a"
    deep.mkdir(parents=True)
    (deep / "a").write_text("x")
    box.put(".gitignore", "\n".join(glob for glob, _ in PATTERNS.values()) + "\n")
    begun = time.monotonic()
    for glob, _ in PATTERNS.values():
        await said(box, "glob", pattern=glob)
        await said(box, "grep", pattern="x", glob=glob)
    await said(box, "list_dir")
    await said(box, "read_file", path="missing")
    box.registry = ToolRegistry([Glob(search=Search("python")), Grep(search=Search("python"))])
    for glob, _ in PATTERNS.values():
        await said(box, "glob", pattern=glob)
    assert time.monotonic() - begun < 2 * SOON


@attack(
    "A `.gitignore` that is a FIFO, a link to /dev/zero, a directory, and one of 5 GB",
    "Listing and searching end within their time and memory",
    fell="a FIFO of that name held every tool that walks; with a link to /dev/zero ripgrep took all memory",
    slow=True,
)
async def test_ignore_files_that_are_none(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    def fifo(path: Path) -> None:
        os.mkfifo(path)

    def zero(path: Path) -> None:
        path.symlink_to("/dev/zero")

    def directory(path: Path) -> None:
        path.mkdir()

    def huge(path: Path) -> None:
        path.write_text("x\n")
        os.truncate(path, 5 * GIGABYTE)

    kinds: list[Callable[[Path], None]] = [fifo, zero, directory, huge]
    for index, make in enumerate(kinds):
        box.put(f"d{index}/file.txt", "needle\n")
        make(box.root / f"d{index}" / ".gitignore")
    monkeypatch.setattr("tui_agent.tools.search._MEMORY", GIGABYTE)
    quick = ToolRegistry([Grep(search=Search("auto", 2))])
    own = ToolRegistry([Grep(search=Search("python"))])
    for index in range(len(kinds)):
        where = f"d{index}"
        box.registry = default_tools()
        assert "file.txt" in await said(box, "list_dir", path=where)
        assert "file.txt" in await said(box, "read_file", path=f"{where}/fil.txt")
        box.registry = quick
        answer = await said(box, "grep", pattern="needle", path=where)
        assert re.search("file.txt:1|took longer|no plain file", answer), answer
        box.registry = own
        assert "file.txt:1" in await said(box, "grep", pattern="needle", path=where)


@attack(
    "A `.gitignore` of 1 MB with 60,000 patterns of their own",
    "Listing and a hint end within seconds, the first rules count",
    fell="a minute for every call: its expressions were made anew each time",
    slow=True,
)
async def test_ignore_file_of_many_patterns(box: Box) -> None:
    box.put("ignored.txt")
    box.put(".gitignore", "ignored.txt\n" + "".join(f"*{number}a*b[xyz]\n" for number in range(60_000)))
    begun = time.monotonic()
    for _ in range(10):
        assert "(ignored: ignored.txt)" in await said(box, "list_dir")
        await said(box, "read_file", path="nothing-like-it")
    assert time.monotonic() - begun < SOON


@attack(
    "A directory that may not be written, and one that is removed while a file in it is replaced",
    "A clear error, the old content, and no temporary file",
)
async def test_directory_that_refuses(box: Box) -> None:
    box.put("d/file.txt", "old\n")
    stop = threading.Event()

    def make_and_remove() -> None:
        while not stop.is_set():
            with suppress(OSError):
                (box.root / "d").rename(box.root / "e")
                (box.root / "e").rename(box.root / "d")

    thread = threading.Thread(target=make_and_remove, daemon=True)
    thread.start()
    for _ in range(100):
        await said(box, "edit_file", path="d/file.txt", old="old", new="old")
    stop.set()
    thread.join()
    assert list((box.root / "d").glob("*.tmp")) == []
    assert (box.root / "d" / "file.txt").read_text() == "old\n"


@attack(
    "10 MB of two-byte lines, searched without ripgrep",
    "The answer comes in time, and the search takes less than 1 GB",
    fell="6.6 GB, and nothing after 30 s",
)
async def test_grep_without_ripgrep_in_bounded_memory(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    box.put("many.txt", "a\n" * 5_000_000)
    box.registry = ToolRegistry([Grep(search=Search("python"))])
    monkeypatch.setattr("tui_agent.tools.search._MEMORY", GIGABYTE)
    assert "many.txt:1" in await said(box, "grep", pattern="a")


@attack(
    "A search that is cancelled, or given up, while its output is not read",
    "It ends at once, and its process with it",
    fell="waiting for the end with a paused output never ended",
    slow=True,
)
async def test_search_cancelled(box: Box) -> None:
    box.put("long.txt", "a" * 80_000_000)
    for _ in range(2):
        task = asyncio.ensure_future(box.call("grep", pattern="a"))
        await asyncio.sleep(0.1)
        task.cancel()
        async with asyncio.timeout(SOON):
            await asyncio.gather(task, return_exceptions=True)


@pytest.mark.process
@attack(
    "24 searches at the same time",
    "A few processes at a time, and every one answers",
    fell="400 processes and 5.3 GB at once",
)
async def test_searches_by_the_hundred(box: Box) -> None:
    box.put("a.txt", "needle\n")
    most = 0

    async def count() -> None:
        nonlocal most
        children = Path(f"/proc/self/task/{threading.get_native_id()}/children")
        while True:
            most = max(most, len(children.read_text().split()))
            await asyncio.sleep(0.002)

    watch = asyncio.ensure_future(count())
    answers = await asyncio.gather(*(said(box, "grep", pattern="needle") for _ in range(24)))
    watch.cancel()
    assert all("a.txt:1" in answer for answer in answers)
    assert most < 16


@attack(
    "`rg`, `git`, `bwrap` and `bash` of a checkout, with `.`, an empty entry and a folder of the checkout in PATH",
    "None of them runs: what is run unasked comes from absolute folders outside of the workspace",
    fell="each of them ran with the first search, checkpoint and command",
)
async def test_programs_of_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = [
        {"calls": [{"tool": "grep", "args": {"pattern": "needle"}}]},
        {"calls": [{"tool": "write_file", "args": {"path": "new.txt", "content": "x"}}]},
        {"calls": [{"tool": "bash", "args": {"command": "echo done"}}]},
        "done",
    ]
    ran, workspace = tmp_path / "ran", tmp_path / "workspace"
    live = await start_session(tmp_path, script, files={"a.txt": "needle"}, sandbox="auto")
    monkeypatch.chdir(workspace)
    (workspace / "bin").mkdir()
    for folder in (workspace, workspace / "bin"):
        for name in ("rg", "git", "bwrap", "bash", "sh"):
            (folder / name).write_text(f"#!/bin/sh\ntouch {ran}\n")
            (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f".::{workspace / 'bin'}:{os.environ['PATH']}")
    await live.run()
    await live.session.close()
    found, _, commanded = (event.content for event in live.of(ToolSucceeded))
    assert "a.txt:1" in found
    assert commanded == "done"
    assert not ran.exists()
