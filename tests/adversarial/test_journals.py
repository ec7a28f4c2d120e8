"""Attacks on what is kept: two processes, kills, disks that fill or vanish, damage, clocks, strangers' recordings."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.adversarial.attack import Attack, attack, attacks
from tests.cli.conftest import CommandLine
from tests.runtime.session_harness import replayed, start_session
from tests.scripted_model import scripted_model
from tests.tools.box import processes_with, wait_until
from tui_agent.formats.exporters import FORMATS, export_session
from tui_agent.store.errors import JournalError, SessionBusyError
from tui_agent.store.journal import JOURNAL_NAME, Journal, read_journal
from tui_agent.terminal_text import is_safe

ROOT = Path(__file__).resolve().parents[2]
ANSWER = '[[turns]]\ntext = "done"\n'
WRITE = {"calls": [{"tool": "write_file", "args": {"path": "a.txt", "content": "x"}}]}


def saved(cli: CommandLine, turns: str = ANSWER) -> Path:
    """A session that ended, made by the command line."""
    done = cli("run", "go", "--model", cli.scenario(turns), "--approve", "all")
    assert done.code == 0, done
    (folder,) = (cli.state / "sessions").iterdir()
    return folder


def forged(cli: CommandLine, **changes: dict[str, Any]) -> Path:
    """A journal like ours whose events of a type are changed; `add` holds further ones."""
    lines = (saved(cli) / JOURNAL_NAME).read_text().splitlines()
    events = [json.loads(line) for line in lines]
    for event in events:
        event.update(changes.get(event["type"], {}))
    file = cli.home / "stranger.jsonl"
    file.write_text("".join(json.dumps(event) + "\n" for event in events))
    shutil.rmtree(cli.state / "sessions")
    return file


@attack(
    "Six processes open one session at the same time",
    "One writes, the others are refused with who holds it; no line is torn or out of order",
    slow=True,
)
async def test_two_processes(tmp_path: Path) -> None:
    live = await start_session(tmp_path, ["done"])
    await live.run()
    await live.close()
    folder = live.session.folder
    code = (
        "import asyncio, sys\nfrom pathlib import Path\nfrom tui_agent.core.events import Notice\n"
        "from tui_agent.store.journal import Journal\nfrom tui_agent.store.errors import SessionBusyError\n"
        "async def main():\n"
        "    try: journal = await Journal.open_to_append(Path(sys.argv[1]))\n"
        "    except SessionBusyError as busy: print('busy', busy.why); return\n"
        "    for number in range(200):\n"
        "        journal.write(Notice(text='x').stamped(len(journal.contents.events) + 1 + number, 1.0))\n"
        "    await journal.barrier(); sys.stdin.read(); await journal.close(); print('wrote')\n"
        "asyncio.run(main())\n"
    )
    pipe, command = subprocess.PIPE, [sys.executable, "-c", code, folder]
    children = [subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) for _ in range(6)]
    # The one that writes holds the session until all others have been refused.
    assert await wait_until(lambda: sum(child.poll() is None for child in children) == 1)
    said = sorted(child.communicate(timeout=60)[0] for child in children)
    assert all("busy" in text and "process" in text for text in said[:5])
    assert "wrote" in said[5]
    events = read_journal(folder).events
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert sum(event.type == "notice" for event in events) == 200


@attack(
    "40 kills at random moments of a session at work, half of them with the end of the journal cut",
    "Each time the session opens, keeps what was promised, and goes on",
    slow=True,
)
def test_kills() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "kill_journal.py", "--kills", "40", "--seed", "11"],
        capture_output=True, text=True, check=False, timeout=580,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@attack(
    "The folder of the session, or of all sessions, is deleted while its run goes on",
    "The run ends as an error that says so",
    fell="it ended as answered, without a word, and nothing was kept",
)
def test_folder_deleted(cli: CommandLine) -> None:
    turns = (
        '[[turns]]\ncalls = [{ tool = "bash", args = { command = "rm -rf %s" } }]\n'
        '[[turns]]\ncalls = [{ tool = "bash", args = { command = "touch later" } }]\n' + ANSWER
    )
    done = cli(
        *("run", "go", "--model", cli.scenario(turns % cli.state), "--approve", "all", "--output", "json"),
        *("--sandbox", "off"),
    )
    assert done.code == 1, done
    assert "Traceback" not in done.err
    assert json.loads(done.out)["outcome"] == "error"
    assert not (cli.workspace / "later").exists()


@attack(
    "A clock that goes back by a day in the middle of a session, to before 1970, and on to the year 9999",
    "The journal opens, its order is that of the numbers, exports and lists are made",
)
async def test_clock_goes_back(tmp_path: Path) -> None:
    from tests.runtime.scripted import ScriptedOperator
    from tui_agent.config.settings import Settings
    from tui_agent.session.opening import open_session
    from tui_agent.store.session_store import SessionStore

    times = iter([1.8e9, 1.8e9 - 86_400, -5e9, 0.0, 2.5e11, 1.8e9] * 100)
    (tmp_path / "workspace").mkdir()
    settings = Settings(
        workspace=tmp_path / "workspace", state_dir=tmp_path / "state", model="x", approve="all"
    )
    model = scripted_model([WRITE, "done"])
    session = await open_session(settings, ScriptedOperator(), model, clock=lambda: next(times))
    await session.submit("go")
    await asyncio.wait_for(session.wait(), 30)
    await session.close()
    assert replayed(session) == session.state
    for form in FORMATS:
        assert export_session(session.folder, form)
    store = SessionStore(tmp_path / "state")
    store.refresh()
    assert [row.id for row in store.rows()] == [session.id]


def _index(cli: CommandLine) -> Path:
    (found,) = cli.state.glob("index.sqlite3")
    return found


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:1_000])


def noise(path: Path) -> None:
    path.write_bytes(os.urandom(50_000))


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def locked_schema(path: Path) -> None:
    import sqlite3

    with sqlite3.connect(path) as base:
        base.execute("DROP TABLE IF EXISTS sessions")
        base.execute("CREATE TABLE sessions (evil TEXT)")


@attacks(
    Attack("index_truncated", "The index cut after 1,000 bytes", "The list is made anew", value=truncated),
    Attack("index_noise", "The index overwritten by noise", "The list is made anew", value=noise),
    Attack("index_emptied", "An empty index", "The list is made anew", value=emptied),
    Attack(
        "index_other_tables", "An index whose tables are others", "The list is made anew", value=locked_schema
    ),
    Attack(
        "index_directory", "A directory in the place of the index", "The sessions are listed", value=directory
    ),
    Attack("index_fifo", "A FIFO in the place of the index", "Listed, at once", slow=True, value=fifo),
)
def test_index_damaged(row: Attack, cli: CommandLine) -> None:
    folder = saved(cli)
    assert cli("sessions").code == 0
    row.value(_index(cli))
    listed = cli.process if row.slow else cli
    done = listed("sessions", "list", "--json")
    assert done.code == 0, done.err
    assert folder.name in done.out
    assert "Traceback" not in done.err


def line(**changes: Any) -> bytes:
    """A line of a journal; SEQ becomes the next number, and a string that begins with `raw:` stands as it is."""
    event = {"seq": "raw:SEQ", "at": 1, "v": 2, "type": "notice", "text": "x", **changes}
    return re.sub(r'"raw:([^"]*)"', r"\1", json.dumps(event)).encode() + b"\n"


NAMED = "Named or left out; lists and exports are made or refused in words"


@attacks(
    Attack(
        "nan", "NaN as the time of an event", NAMED, fell="lists and exports broke", value=line(at="raw:NaN")
    ),
    Attack("infinity", "Infinity as the time", NAMED, fell="as NaN", value=line(at="raw:Infinity")),
    Attack(
        "times_1e999", "1e999 and 1e300 as the time", NAMED, value=line(at="raw:1e999") + line(at="raw:1e300")
    ),
    Attack(
        "huge_numbers", "A time of 5,000 digits", NAMED, fell="as NaN", value=line(at="raw:" + "9" * 5_000)
    ),
    Attack(
        "deep", "A line nested 100,000 deep", NAMED, value=line(text="raw:" + "[" * 100_000 + "]" * 100_000)
    ),
    Attack(
        "version", "A version of a thousand years from now", "Refused with what to do", value=line(v=9_999)
    ),
    Attack("unknown_type", "A type that nobody knows", NAMED, value=line(type="shutdown")),
    Attack("nul_bytes", "A megabyte of NUL, as a failing disk leaves it", NAMED, value=b"\0" * 1_000_000),
    Attack(
        "torn", "A line that breaks off in mid-character", "Dropped with a notice", value=line(text="ö")[:-6]
    ),
    Attack("repeated", "A number that was there already", NAMED, value=line(seq=1)),
)
def test_journal_damaged(row: Attack, cli: CommandLine) -> None:
    folder = saved(cli)
    journal = folder / JOURNAL_NAME
    count = len(journal.read_bytes().splitlines())
    body = row.value
    for number in range(body.count(b"SEQ")):
        body = body.replace(b"SEQ", str(count + 1 + number).encode(), 1)
    with journal.open("ab") as stream:
        stream.write(body)
    commands = [
        ("replay", folder.name, "--print"), ("sessions", "list"), ("sessions", "show", folder.name),
        *(("sessions", "export", folder.name, "--format", form) for form in FORMATS),
    ]  # fmt: skip
    for command in commands:
        done = cli(*command)
        assert done.code in {0, 2}, (command, done.err[:500])
        assert "fault of agent-tui" not in done.err
        assert len(done.err) < 3_000
        if done.code == 2:
            assert folder.name in done.err or "line" in done.err


@attacks(
    Attack(
        "replay_fifo",
        "`replay --print` of a FIFO, and of a link to /dev/zero",
        "Refused at once",
        fell="it waited without end",
        slow=True,
        value=(("replay", "x.jsonl", "--print"), ("replay", "zero.json", "--print")),
    ),
    Attack(
        "import_fifo",
        "`sessions import` of a FIFO, and of a folder with one",
        "Refused or passed over at once",
        slow=True,
        value=(("sessions", "import", "x.jsonl"), ("sessions", "import", ".")),
    ),
    Attack(
        "analyze_fifo",
        "`analyze` of a folder with a FIFO, and a link to /dev/zero",
        "Passed over at once",
        slow=True,
        value=(("analyze", "."),),
    ),
)
def test_recordings_that_are_none(row: Attack, cli: CommandLine) -> None:
    os.mkfifo(cli.workspace / "x.jsonl")
    (cli.workspace / "zero.json").symlink_to("/dev/zero")
    for command in row.value:
        process = cli.start(*command)
        out, err = process.communicate(timeout=60)
        assert "Traceback" not in out + err
        assert process.returncode in {0, 2}, (command, err)


NAMES = [
    "../../evil",
    "/tmp/evil-session",
    "..",
    ".",
    "",
    "a/b",
    "a\0b",
    "x" * 300,
    "\u202egnp",
    ".hidden",
    "con\n",
]


@attack(
    "Recordings whose session ids are paths, links, dots, 300 characters or hold NUL",
    "Refused in words, or saved below the sessions' folder under a name of ours",
)
def test_hostile_names(cli: CommandLine) -> None:
    lines = [json.loads(line) for line in (saved(cli) / JOURNAL_NAME).read_text().splitlines()]
    before = {path for path in cli.home.rglob("*") if "state" not in path.parts}
    for number, name in enumerate(NAMES):
        lines[0]["session_id"] = name
        file = cli.workspace / f"r{number}.jsonl"
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        done = cli("sessions", "import", str(file))
        assert done.code in {0, 2}, (name, done)
        assert "fault of agent-tui" not in done.err
        assert is_safe(done.err.replace("\n", "")), name
    after = {path for path in cli.home.rglob("*") if "state" not in path.parts}
    assert after - before <= {cli.home / "scenario.toml"}
    assert {path.parent for path in cli.state.rglob(JOURNAL_NAME)} <= set((cli.state / "sessions").iterdir())


@attacks(
    Attack(
        "stranger_approves", "A stranger's session that says `approve = all`, resumed", "Its commands ask here",
        fell="commands ran unasked", value="setting",
    ),
    Attack(
        "stranger_workspace", "A stranger's session in a workspace elsewhere, resumed", "The work is done here",
        fell="it was done there", value="workspace",
    ),
)  # fmt: skip
def test_stranger_resumed(row: Attack, cli: CommandLine) -> None:
    elsewhere = cli.home / "elsewhere"
    elsewhere.mkdir()
    changes = {
        "session_started": {"workspace": str(elsewhere)},
        "setting_changed": {"name": "approve", "value": "all"},
    }
    file = forged(cli, **changes)
    text = file.read_text()
    assert '"approve"' in text
    done = cli("sessions", "import", str(file))
    assert done.code == 0, done
    (folder,) = (path for path in (cli.state / "sessions").iterdir() if path.is_dir())
    turns = '[[turns]]\ncalls = [{ tool = "bash", args = { command = "touch PWNED" } }]\n' + ANSWER
    done = cli("run", "go on", "--resume", folder.name, "--model", cli.scenario(turns), "--approve", "ask")
    assert not (cli.workspace / "PWNED").exists()
    assert not (elsewhere / "PWNED").exists()
    turns = turns.replace("PWNED", "MADE")
    cli("run", "go on", "--resume", folder.name, "--model", cli.scenario(turns), "--approve", "all")
    assert not (elsewhere / "MADE").exists()


@attack(
    "A session full of escape sequences, markup and scripts, exported in every form and as lines of a run",
    "No form holds a character that a terminal acts on; HTML holds no element of it",
    fell="JSON and JSON lines held C1 controls and bidirectional marks",
)
async def test_exports_of_hostile_text(tmp_path: Path) -> None:
    bad = "\x1b]0;t\x07\x9b2J\u202e<script>alert(1)</script><img src=x onerror=y>[/red]]]>&lt;\x00\x85"
    live = await start_session(
        tmp_path,
        [{"text": bad, "calls": [{"tool": "bash", "args": {"command": f"echo '{bad[:12]}'"}}]}, bad],
    )
    await live.run(bad)
    live.session.set_title(bad)
    await live.close()
    for form in FORMATS:
        text = export_session(live.session.folder, form)
        assert all(is_safe(line.replace("\t", "")) for line in text.split("\n")), form
        if form == "html":
            assert "<script>alert" not in text
            assert "<img src=x" not in text


@attack(
    "The disk of the state folder is full from the first byte, and fills in the middle of a run",
    "An error that says so, exit code 1 or 2, and no effect that could not be recorded",
    slow=True,
)
def test_disk_full(cli: CommandLine) -> None:
    turns = (
        '[[turns]]\ncalls = [{ tool = "write_file", args = { path = "a.txt", content = "a" } }]\n' + ANSWER
    )
    command = [sys.executable, "-m", "tui_agent", "run", "x", "--output", "json", "--approve", "all"]
    command += ["--model", cli.scenario(turns)]
    for blocks in (0, 1, 3):
        done = subprocess.run(
            ["bash", "-c", f'ulimit -f {blocks}; exec "$@"', "bash", *command],
            cwd=cli.workspace, env=cli.environ(PYTHONDONTWRITEBYTECODE="1"), stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        assert done.returncode in {1, 2}, (blocks, done)
        assert "Traceback" not in done.stderr
        assert not (cli.workspace / "a.txt").exists()


@attack(
    "A journal that grows by a second hand while it is open: foreign lines, truncation to nothing",
    "The session ends without a crash; what is read again is valid or named",
)
async def test_written_by_another_hand(tmp_path: Path) -> None:
    for damage in (lambda path: path.open("ab").write(b"noise\n"), lambda path: os.truncate(path, 0)):
        folder = tmp_path / str(id(damage))
        folder.mkdir()
        live = await start_session(folder, [WRITE, WRITE, "done"])
        await live.run()
        damage(live.session.folder / JOURNAL_NAME)
        await live.run("more")
        await live.close()
        with suppress(JournalError):
            read_journal(live.session.folder)


@attack(
    "SIGTERM, SIGHUP, SIGINT and SIGQUIT at random moments of a run with a command under way",
    "The run ends within seconds, its journal opens, and no process is left",
    slow=True,
)
async def test_signals(cli: CommandLine) -> None:
    mark = f"94{os.getpid()}.5"
    turns = f'[[turns]]\ncalls = [{{ tool = "bash", args = {{ command = "sleep {mark}" }} }}]\n' + ANSWER
    model = cli.scenario(turns)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        process = cli.start("run", "go", "--model", model, "--approve", "all")
        assert await wait_until(lambda: processes_with(f"sleep\0{mark}"))
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
        assert "Traceback" not in err
        assert await wait_until(lambda: not processes_with(f"sleep\0{mark}"), 20)
    for folder in (cli.state / "sessions").iterdir():
        read_journal(folder)


@pytest.fixture
def recordings(cli: CommandLine) -> Callable[[bytes], Path]:
    def write(body: bytes) -> Path:
        file = cli.home / "r.json"
        file.write_bytes(body)
        return file

    return write


def chat(*messages: Any) -> bytes:
    return json.dumps({"messages": messages}).encode()


HOSTILE = {
    "array_deep": b"[" * 200_000 + b"]" * 200_000,
    "million_empty": b'{"messages":[' + b"{}," * 300_000 + b"{}]}",
    "key_huge": chat({"role": "user", "content": "x", "k" * 3_000_000: 1}),
    "numbers": b'{"messages":[{"role":"user","content":' + b"9" * 6_000 + b"}]}",
    "surrogates": chat(
        {"role": "user", "content": "\ud800 \udc00"}, {"role": "assistant", "content": "\udfff"}
    ),
    "roles": chat({"role": ["user"], "content": {"a": 1}}, {"role": None}, {"role": "system"}, 7, None),
    "calls": chat(
        {"role": "user", "content": "x"},
        {
            "role": "assistant",
            "tool_calls": [{"id": 7, "function": {"name": [], "arguments": {"a": []}}}, 5, None],
        },
    ),
    "utf16": chat({"role": "user", "content": "x"}).decode().encode("utf-16"),
}


@attacks(
    *(
        Attack(
            f"import_{name}",
            f"A recording made for a breakdown: {name.replace('_', ' ')}",
            "A session, or a refusal of a few lines, in bounded time",
            value=body,
        )
        for name, body in HOSTILE.items()
    )
)
def test_hostile_recordings(row: Attack, cli: CommandLine, recordings: Callable[[bytes], Path]) -> None:
    file = recordings(row.value)
    begun = time.monotonic()
    for command in (("sessions", "import", str(file)), ("replay", str(file), "--print")):
        done = cli(*command)
        assert done.code in {0, 2}, done.err[:500]
        assert "fault of agent-tui" not in done.err
        assert len(done.err) < 3_000
    assert time.monotonic() - begun < 60


@attack(
    "The lock of a session is deleted and made anew, held by a process that is dead, and holds noise",
    "Two writers never write at once; a dead holder keeps nobody out",
)
async def test_locks(tmp_path: Path) -> None:
    live = await start_session(tmp_path, ["done"])
    await live.run()
    with pytest.raises(SessionBusyError):
        await Journal.open_to_append(live.session.folder)
    await live.close()
    (lock,) = (path for path in live.session.folder.iterdir() if "lock" in path.name)
    lock.write_bytes(b"999999999999 \xff\x00 nowhere\n")
    journal = await Journal.open_to_append(live.session.folder)
    await journal.close()
