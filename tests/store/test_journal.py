"""The journal: nothing is lost, nothing is overwritten, and what is wrong with a file is named."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.full_disk import FullDisk
from tests.store.session_events import one_of_every_type, stamp, start, write_session
from tui_agent.core.events import EVENT_TYPES, SCHEMA_VERSION, Event, Notice
from tui_agent.store import journal as journal_module
from tui_agent.store import lines
from tui_agent.store.errors import JournalError, SessionBusyError
from tui_agent.store.journal import JOURNAL_NAME, Journal, read_journal
from tui_agent.store.journal_index import JournalIndex
from tui_agent.store.lock import SessionLock


def notices(count: int) -> list[Event]:
    return stamp([start(), *(Notice(text=f"notice {number} ü") for number in range(2, count + 1))])


def test_every_type_of_event_is_in_the_sample():
    assert {type(event) for event in one_of_every_type()} == set(EVENT_TYPES.values())


@pytest.mark.parametrize("event", stamp(one_of_every_type()), ids=lambda event: event.type)
def test_an_event_comes_back_from_its_line_as_it_was(event: Event):
    line = lines.encode(event)
    assert line.count(b"\n") == 1
    assert lines.decode(line) == event
    assert lines.head(line) == (event.seq, event.at, SCHEMA_VERSION, event.__dict__["type"])
    assert json.loads(line) == event.model_dump(mode="json")


async def test_what_is_written_is_read_again(tmp_path: Path):
    events = notices(50)
    journal = await Journal.create(tmp_path / "s1")
    for event in events:
        journal.write(event)
    await journal.barrier()
    assert read_journal(tmp_path / "s1").events == events
    await journal.close()
    assert read_journal(tmp_path / "s1" / JOURNAL_NAME).events == events


async def test_a_journal_is_readable_only_by_its_owner(tmp_path: Path):
    journal = await Journal.create(tmp_path / "s1")
    await journal.close()
    assert (journal.path.stat().st_mode & 0o777, journal.folder.stat().st_mode & 0o777) == (0o600, 0o700)


def slow_disk(patch: pytest.MonkeyPatch, journal: Journal) -> tuple[asyncio.Event, threading.Event]:
    """Set when the journal's thread is about to write, and what it then waits for."""
    at_the_disk, gate = asyncio.Event(), threading.Event()
    loop, real, slow = asyncio.get_running_loop(), os.write, journal.path.stat()

    def write(descriptor: int, chunk: bytes) -> int:
        if os.path.samestat(os.fstat(descriptor), slow):
            loop.call_soon_threadsafe(at_the_disk.set)
            gate.wait(60)
        return real(descriptor, chunk)

    patch.setattr(os, "write", write)
    return at_the_disk, gate


async def test_writing_does_not_wait_for_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    journal = await Journal.create(tmp_path / "s1")
    at_the_disk, gate = slow_disk(monkeypatch, journal)
    events = notices(20)
    for event in events[:10]:
        journal.write(event)
    await at_the_disk.wait()
    for event in events[10:]:
        journal.write(event)
    assert journal.path.read_bytes() == b""
    barrier = asyncio.create_task(journal.barrier())
    gate.set()
    await barrier
    assert read_journal(journal.path).events == events
    await journal.close()


async def test_what_nobody_waits_for_is_written_together_and_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    journal = await Journal.create(tmp_path / "s1")
    writes: list[int] = []
    synced = asyncio.Event()
    loop, write, sync = asyncio.get_running_loop(), os.write, os.fsync

    def counted(descriptor: int, chunk: bytes) -> int:
        writes.append(chunk.count(b"\n"))
        return write(descriptor, chunk)

    def noticed(descriptor: int) -> None:
        sync(descriptor)
        loop.call_soon_threadsafe(synced.set)

    monkeypatch.setattr(os, "write", counted)
    monkeypatch.setattr(os, "fsync", noticed)
    for event in notices(7):
        journal.write(event)
        journal.sync_soon()
        await asyncio.sleep(0)
    await asyncio.wait_for(synced.wait(), 60)
    assert writes == [7]
    assert len(read_journal(journal.path).events) == 7
    await journal.close()


async def test_barriers_at_any_moment_return_only_with_their_lines_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    journal = await Journal.create(tmp_path / "s1")
    on_disk, sync = 0, os.fsync

    def counted(descriptor: int) -> None:
        nonlocal on_disk
        there = journal.path.read_bytes().count(b"\n")
        sync(descriptor)
        on_disk = there

    monkeypatch.setattr(os, "fsync", counted)

    async def writer(numbers: range) -> None:
        for number in numbers:
            journal.write(events[number])
            await asyncio.sleep(0.0007 * (number % 4))
            if number % 3 == 0:
                await journal.barrier()
                assert on_disk > number

    events = notices(60)
    await writer(range(20))
    async with asyncio.TaskGroup() as tasks:
        done = asyncio.Event()

        async def others() -> None:
            while not done.is_set():
                written = 60 - len(left)
                await journal.barrier()
                assert on_disk >= written

        left = events[20:]
        for _ in range(3):
            tasks.create_task(others())
        while left:
            journal.write(left.pop(0))
            await asyncio.sleep(0.0005)
        done.set()
    await journal.close()
    assert read_journal(journal.path).events == events


async def test_going_on_appends_behind_what_is_there(tmp_path: Path):
    events = notices(6)
    write_session(tmp_path / "s1", events[:4], stamped=True)
    journal = await Journal.open_to_append(tmp_path / "s1")
    assert journal.contents.events == events[:4]
    for event in events[4:]:
        journal.write(event)
    await journal.close()
    assert read_journal(tmp_path / "s1").events == events


async def test_a_torn_last_line_is_dropped_counted_and_written_over_by_the_next_event(tmp_path: Path):
    events = notices(4)
    write_session(tmp_path / "s1", events[:3], stamped=True)
    torn = lines.encode(events[3])[:25]
    with (tmp_path / "s1" / JOURNAL_NAME).open("ab") as file:
        file.write(torn)
    assert read_journal(tmp_path / "s1").dropped_bytes == len(torn)
    journal = await Journal.open_to_append(tmp_path / "s1")
    assert (journal.contents.dropped_bytes, len(journal.contents.events)) == (len(torn), 3)
    journal.write(events[3])
    await journal.close()
    assert read_journal(tmp_path / "s1").events == events


async def test_a_journal_cut_at_any_byte_opens_and_loses_at_most_the_torn_line(tmp_path: Path):
    events = notices(4)
    whole = b"".join(lines.encode(event) for event in events)
    ends = [sum(len(lines.encode(event)) for event in events[:count]) for count in range(1, 5)]
    path = tmp_path / "s1" / JOURNAL_NAME
    path.parent.mkdir()

    async def go_on(kept: int) -> None:
        journal = await Journal.open_to_append(path.parent)
        assert journal.contents.events == events[:kept]
        for event in events[kept:]:
            journal.write(event)
        await journal.close()

    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        # A line that lacks only its line break is whole.
        kept = sum(1 for end in ends if cut >= end - 1)
        if not kept:
            with pytest.raises(JournalError, match="holds no session"):
                read_journal(path)
            continue
        contents = read_journal(path)
        assert contents.events == events[:kept], cut
        assert contents.dropped_bytes == max(0, cut - ends[kept - 1]), cut
        await go_on(kept)
        assert path.read_bytes() == whole, cut


def _line(event: Event, **changes: Any) -> bytes:
    return json.dumps({**event.model_dump(mode="json"), **changes}).encode() + b"\n"


FIRST, SECOND, THIRD = notices(3)
BAD_FILES: dict[str, tuple[bytes, str, int]] = {
    "empty": (b"", "the file is empty", 0),
    "only torn": (b'{"seq":1,"at"', "no whole event", 0),
    "other text": (b"# Title\n\ntext\n", "is not a session of agent-tui", 1),
    "other JSON": (b'{"role": "user"}\n', "is not a session of agent-tui", 1),
    "binary": (bytes(range(256)) + b"\n", "is not a session of agent-tui", 1),
    "not at its start": (lines.encode(SECOND.stamped(1, 0.0)), "is not a session of agent-tui", 1),
    "damaged inside": (
        lines.encode(FIRST) + b'{"seq":2,"at":0\n' + lines.encode(THIRD),
        "damaged in line 2",
        2,
    ),
    "damaged last line": (lines.encode(FIRST) + b"\0\0\0\n", "damaged in line 2", 2),
    "an empty line": (lines.encode(FIRST) + b"\n" + lines.encode(SECOND), "damaged in line 2", 2),
    "a list": (lines.encode(FIRST) + b"[1]\n", "damaged in line 2", 2),
    "bottomless": (lines.encode(FIRST) + b"[" * 100_000 + b"\n", "damaged in line 2", 2),
    "a missing line": (
        lines.encode(FIRST) + lines.encode(THIRD),
        "event 2 is expected there, and it is event 3",
        2,
    ),
    "a doubled line": (lines.encode(FIRST) * 2, "event 2 is expected there, and it is event 1", 2),
    "an unknown field": (lines.encode(FIRST) + _line(SECOND, colour="red"), "damaged in line 2", 2),
    "an unknown type": (lines.encode(FIRST) + _line(SECOND, type="dance"), "damaged in line 2", 2),
    "newer": (lines.encode(FIRST) + _line(SECOND, v=99), "written by a newer agent-tui", 2),
    "newer and torn at its line break": (
        lines.encode(FIRST) + _line(SECOND, v=99)[:-1],
        "written by a newer agent-tui",
        2,
    ),
}


@pytest.mark.parametrize("name", BAD_FILES)
async def test_a_bad_file_is_named_with_its_line_and_left_as_it_is(name: str, tmp_path: Path):
    content, message, line = BAD_FILES[name]
    path = tmp_path / "s1" / JOURNAL_NAME
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(JournalError, match=message) as caught:
        read_journal(path)
    assert caught.value.line == line
    assert all((caught.value.what, caught.value.why, caught.value.todo))
    with pytest.raises(JournalError, match=message):
        await Journal.open_to_append(path.parent)
    assert path.read_bytes() == content
    assert not SessionLock.held(path.parent)


def test_a_huge_line_is_named_and_not_read_into_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(journal_module, "MAX_LINE_BYTES", 1000)
    path = tmp_path / JOURNAL_NAME
    path.write_bytes(lines.encode(FIRST) + b'{"seq":2,' + b" " * 2000 + b"}\n" + lines.encode(THIRD))
    with pytest.raises(JournalError, match="line 2: it is longer than"):
        read_journal(path)
    path.write_bytes(lines.encode(FIRST) + b"\0" * 2000)
    with pytest.raises(JournalError, match="line 2: it is longer than"):
        read_journal(path)


def test_salvaging_keeps_what_is_before_the_damage(tmp_path: Path):
    path = tmp_path / JOURNAL_NAME
    path.write_bytes(lines.encode(FIRST) + lines.encode(SECOND) + b"{damage}\n" + lines.encode(THIRD))
    index = JournalIndex(path, salvage=True)
    assert [index.event(number) for number in range(1, len(index) + 1)] == [FIRST, SECOND]
    assert index.damage is not None
    assert index.damage.line == 3


async def test_a_missing_session_is_named(tmp_path: Path):
    for attempt in (
        Journal.open_to_append(tmp_path / "none"),
        asyncio.to_thread(read_journal, tmp_path / "none"),
    ):
        with pytest.raises(JournalError, match="it does not exist"):
            await attempt
    assert not SessionLock.held(tmp_path / "none")


async def test_a_new_session_never_overwrites_one(tmp_path: Path):
    events = write_session(tmp_path / "s1", [start()])
    with pytest.raises(JournalError, match="exists already"):
        await Journal.create(tmp_path / "s1")
    assert read_journal(tmp_path / "s1").events == events
    assert not SessionLock.held(tmp_path / "s1")


async def test_a_second_writer_is_refused_with_who_holds_the_session(tmp_path: Path):
    journal = await Journal.create(tmp_path / "s1")
    with pytest.raises(
        SessionBusyError, match=rf"Session s1 is in use: process {os.getpid()} is writing"
    ) as caught:
        await Journal.open_to_append(tmp_path / "s1")
    assert caught.value.pid == os.getpid()
    assert SessionLock.held(tmp_path / "s1")
    journal.write(FIRST)
    await journal.close()
    assert not SessionLock.held(tmp_path / "s1")
    again = await Journal.open_to_append(tmp_path / "s1")
    await again.close()


def test_a_lock_names_its_holder_and_nobody_before_it(tmp_path: Path):
    (tmp_path / "lock").write_text("99999999999999 a-host-with-a-long-name\n" * 3)
    lock = SessionLock.acquire(tmp_path)
    assert (tmp_path / "lock").read_text() == f"{os.getpid()} {socket.gethostname()}\n"
    lock.release()
    lock.release()


def test_a_lock_frees_itself_when_its_process_is_killed(tmp_path: Path):
    code = """
        import os, signal, sys
        from pathlib import Path
        from tui_agent.store.lock import SessionLock
        lock = SessionLock.acquire(Path(sys.argv[1]))
        print("held", flush=True)
        sys.stdin.read()
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(SessionBusyError, match=f"process {holder.pid} "):
            SessionLock.acquire(tmp_path)
        holder.kill()
        holder.wait()
    SessionLock.acquire(tmp_path).release()


@pytest.mark.parametrize("room", [0, 1, 60, 150, 151, 400])
async def test_a_full_disk_loses_nothing_and_is_reported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
):
    reported: list[JournalError] = []
    journal = await Journal.create(tmp_path / "s1")
    journal.on_error = reported.append
    events = notices(12)
    disk = FullDisk(monkeypatch, journal.folder, room)
    for event in events[:8]:
        journal.write(event)
    with pytest.raises(JournalError, match="the disk is full") as caught:
        await journal.barrier()
    assert "Free some space" in caught.value.todo
    for event in events[8:]:
        journal.write(event)
        await asyncio.sleep(0)
    assert len(reported) == 1
    assert journal.error is not None
    disk.room = 1_000_000
    await journal.barrier()
    assert journal.error is None
    await journal.close()
    assert read_journal(tmp_path / "s1").events == events


async def test_a_journal_that_is_closed_plans_no_more_writing(tmp_path: Path):
    journal = await Journal.create(tmp_path / "s1")
    journal.write(FIRST)
    closing = asyncio.create_task(journal.close())
    while not closing.done():
        await asyncio.sleep(0)
        journal.sync_soon()
    assert journal._gathering is None
    assert [task for task in asyncio.all_tasks() if task.get_name() == "journal"] == []


async def test_a_close_that_is_cancelled_waits_for_the_thread_that_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    journal = await Journal.create(tmp_path / "s1")
    at_the_disk, gate = slow_disk(monkeypatch, journal)
    journal.write(FIRST)
    closing = asyncio.create_task(journal.close())
    await at_the_disk.wait()
    for _ in range(2):
        closing.cancel()
        await asyncio.wait([closing], timeout=0.05)
    assert not journal._file.closed
    assert SessionLock.held(tmp_path / "s1")
    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert journal._file.closed
    assert not SessionLock.held(tmp_path / "s1")
    assert read_journal(journal.path).events == [FIRST]


async def test_closing_on_a_full_disk_says_so_and_frees_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    journal = await Journal.create(tmp_path / "s1")
    FullDisk(monkeypatch, journal.folder, 40)
    journal.write(FIRST)
    with pytest.raises(JournalError, match="the disk is full"):
        await journal.close()
    assert not SessionLock.held(tmp_path / "s1")


@pytest.mark.process
def test_a_real_limit_on_the_files_size_is_reported_and_the_file_stays_readable(tmp_path: Path):
    code = """
        import asyncio, resource, signal, sys
        from pathlib import Path
        from tui_agent.core import events
        from tui_agent.store.errors import JournalError
        from tui_agent.store.journal import Journal
        async def main():
            journal = await Journal.create(Path(sys.argv[1]))
            journal.write(events.SessionStarted(session_id="s1", workspace="/w", seq=1))
            await journal.barrier()
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
            for seq in range(2, 40):
                journal.write(events.Notice(text="x" * 50, seq=seq))
            try:
                await journal.barrier()
            except JournalError as error:
                print(error)
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.getrlimit(resource.RLIMIT_FSIZE)[1],) * 2)
            if sys.argv[2] == "repair":
                await journal.close()
        asyncio.run(main())
    """
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    for ending, expected in (("repair", 39), ("die", 8)):
        folder = tmp_path / ending
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code), str(folder), ending],
            capture_output=True,
            text=True,
            check=True,
        )
        assert "the file reached the largest size allowed" in done.stdout
        contents = read_journal(folder)
        assert [event.seq for event in contents.events] == list(range(1, len(contents.events) + 1))
        assert (len(contents.events) == expected) if ending == "repair" else (contents.dropped_bytes > 0)


def test_a_folder_that_may_not_be_written_is_named():
    root = os.geteuid() == 0
    with tempfile.TemporaryDirectory(prefix="agent-tui-") as name:
        folder = Path(name)
        write_session(folder / "s1", [start()])
        for path in (folder / "s1" / JOURNAL_NAME, folder / "s1", folder):
            path.chmod(0o555)
        try:
            if root:
                os.seteuid(65534)
            for attempt in (Journal.create(folder / "s2"), Journal.open_to_append(folder / "s1")):
                with pytest.raises(JournalError, match="permission is denied") as caught:
                    asyncio.run(attempt)
                assert "AGENT_TUI_STATE_DIR" in caught.value.todo
            assert len(read_journal(folder / "s1").events) == 1
        finally:
            if root:
                os.seteuid(0)
            folder.chmod(0o700)
            (folder / "s1").chmod(0o700)


@pytest.mark.parametrize("event", one_of_every_type(), ids=lambda event: str(event.type))
def test_every_line_tells_number_time_version_and_type_in_its_first_bytes(event: Event) -> None:
    stamped = event.stamped(7, 1_700_000_000.25)
    kind = stamped.__dict__["type"]
    assert lines.head(lines.encode(stamped)) == (7, 1_700_000_000.25, SCHEMA_VERSION, kind)
    assert stamped == event.model_copy(update={"seq": 7, "at": 1_700_000_000.25})
    assert lines.decode(lines.encode(stamped)) == stamped
