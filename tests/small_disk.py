"""Sessions on a disk that fills up or is read-only, in a mount namespace of its own: a program that tests start.

`python -m tests.small_disk KIND ROOM…`: for each ROOM a fresh disk (tmpfs) holds a session and what is kept beside it,
and has only so many free pages (`pages`), files (`files`), or may not be written (`read-only`). Everything that writes
is tried; then there is room again, and nothing may be lost. What went wrong is a line each on standard output.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from tests.runtime.scripted import ScriptedOperator
from tests.runtime.session_harness import start_session
from tui_agent.cli import main as command_line
from tui_agent.core.events import SessionStarted, ToolStarted
from tui_agent.formats.exporters import FORMATS, export_session
from tui_agent.frontend import preferences
from tui_agent.frontend.commands.export import export_file
from tui_agent.frontend.prompt_history import PromptHistory
from tui_agent.runtime.operator import ApprovalReply
from tui_agent.session.fork import ForkChoice, fork_session
from tui_agent.store import saved_state
from tui_agent.store.errors import SessionError
from tui_agent.store.journal import JOURNAL_NAME, read_journal
from tui_agent.store.kept_rules import KeptRules
from tui_agent.store.retention import put_away
from tui_agent.store.session_store import SessionStore
from tui_agent.store.trust_file import TrustFile

PAGE = 4_096
PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d4944415478da63fcff9fa11e000782027f3dc"
    "8efb30000000049454e44ae426082"
)


def turns(number: int) -> list[Any]:
    """Every kind of write: files, kept output, a command in the background, rules."""
    return [
        {"calls": [{"tool": "write_file", "args": {"path": f"a{number}.txt", "content": "x"}}]},
        {"calls": [{"tool": "bash", "args": {"command": "seq 1 30000"}}]},
        {"calls": [{"tool": "bash", "args": {"command": "seq 1 9000; true", "background": True}}]},
        {"calls": [{"tool": "write_file", "args": {"path": f"b{number}.txt", "content": "x"}}]},
        "done",
    ]


class Disk:
    """A tmpfs with a state folder and a workspace outside of it."""

    def __init__(self, folder: Path) -> None:
        self.root, self.outside, self.saved = folder / "disk", folder / "outside", folder / "saved"
        for made in (self.root, self.outside):
            made.mkdir()
        (self.outside / "workspace").mkdir()
        (self.outside / "workspace" / "p.png").write_bytes(PICTURE)
        self.state = self.root / "state"
        self.problems: list[str] = []
        self.refusals: list[str] = []

    def mount(self, options: str) -> None:
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", self.root], check=True)

    def narrow(self, kind: str, room: int) -> None:
        """Leave so much room and no more."""
        found = os.statvfs(self.root)
        pages, files = found.f_blocks - found.f_bfree + room, found.f_files - found.f_ffree + room
        options = {"pages": f"size={pages * PAGE}", "files": f"nr_inodes={files}", "read-only": "ro"}[kind]
        subprocess.run(["mount", "-o", f"remount,{options}", self.root], check=True)

    def widen(self) -> None:
        subprocess.run(["mount", "-o", "remount,rw,size=64m,nr_inodes=9000", self.root], check=True)

    def attempt(self, name: str, work: Callable[[], Any]) -> Any:
        """Do it; an error in words is what is wanted, anything else is a problem."""
        try:
            made = work()
            return asyncio.run(made) if isinstance(made, Coroutine) else made
        except SessionError as refused:
            self.refusals.append(f"{name}: {refused}")
            if not (refused.what and refused.why and refused.todo):
                self.problems.append(f"{name}: no three parts: {refused}")
        except Exception:
            self.problems.append(f"{name}: {traceback.format_exc()[-1_500:]}")
        return None

    def command(self, *arguments: str) -> None:
        """The command line."""
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = command_line(["sessions", *arguments])
        said = err.buffer.getvalue().decode()
        if "fault of agent-tui" in said or (code and not said):
            self.problems.append(f"{arguments}: {code} {said}")
        elif code:
            self.refusals.append(f"{arguments[0]}: {said}")


async def work(disk: Disk, number: int, resume: Path | None = None) -> Path:
    """A whole session, in which every call is allowed for the workspace, to its end."""
    operator = ScriptedOperator()
    operator.approvals.extend(ApprovalReply("workspace") for _ in range(9))
    os.chdir(disk.outside / "workspace")
    live = await start_session(disk.root, turns(number), operator=operator, resume=resume, approve="ask")
    try:
        await live.session.submit("look at @p.png")
        await asyncio.wait_for(live.session.wait(), 60)
    finally:
        try:
            await live.session.close()
        finally:
            await put_away(disk.state, live.session.id, 30, time.time())
    return live.session.folder


def beside(disk: Disk, session: Path, word: str) -> None:
    """What is written beside the sessions."""
    history = PromptHistory()
    history.load(disk.state / "prompts")
    disk.attempt("history", lambda: history.add(word))
    disk.attempt("preferences", lambda: preferences.save(disk.state, theme=word))
    with contextlib.suppress(OSError):
        KeptRules(disk.state, disk.outside).add([f"bash({word})"])
    with contextlib.suppress(OSError):
        TrustFile(disk.state / "trust.json", disk.outside).keep(word, {}, True)
    for form in FORMATS:
        disk.attempt("export", lambda form=form: export_file(session, f"{form} {disk.root}/{word}.{form}"))
    disk.command(
        "export", session.name, "--to", str(disk.root / "export.html"), "--format", "html", "--force"
    )
    disk.attempt("fork", lambda: fork_session(session, disk.state / "sessions", ForkChoice(None)))
    disk.command("rename", session.name, word)
    disk.command("list")
    disk.command("search", "done")


def held(disk: Disk, session: Path, journal: bytes) -> None:
    """Nothing of what there was is lost, and all of it can be used."""
    kept = {
        "the journal": (session / JOURNAL_NAME).read_bytes().startswith(journal),
        "a kept rule": "bash(before)" in [rule.text for rule in KeptRules(disk.state, disk.outside).rules()],
        "an answer": TrustFile(disk.state / "trust.json", disk.outside).answer("before") is True,
        "a preference": preferences.load(disk.state).get("theme") in {"before", "after"},
        "the history": "before" in (disk.state / "prompts").read_text(),
        "an export": "</html>" in (disk.root / "export.html").read_text(),
        "the exports": all(file.stat().st_size for file in disk.root.glob("*.*")),
        "tidiness": not [*disk.root.rglob("*.part")],
        "folders with something in them": all(
            any(folder.iterdir()) for folder in (disk.state / "sessions").iterdir()
        ),
    }
    for folder in (disk.state / "sessions").iterdir():
        if (folder / JOURNAL_NAME).is_file() and (folder / JOURNAL_NAME).stat().st_size:
            kept |= {f"{folder.name} as {form}": export_session(folder, form) for form in FORMATS}
            kept[f"an effect of {folder.name}"] = told(disk, folder, 3 if folder == session else 2)
    store = SessionStore(disk.state)
    store.refresh()
    kept["a row of the list"] = session.name in {row.id for row in store.rows()}
    disk.attempt("resume", lambda: work(disk, 9, session))
    kept["the way on"] = read_journal(session).events[-1].type in {"run_finished", "checkpoint_saved"}
    disk.problems += [f"lost: {what}" for what, there in kept.items() if not there]


def told(disk: Disk, folder: Path, number: int) -> bool:
    """Whether the journal holds the write of a file that was made."""
    events = read_journal(folder).events
    made = (disk.outside / "workspace" / f"a{number}.txt").exists()
    forked = isinstance(events[0], SessionStarted) and events[0].parent is not None
    return (
        forked
        or not made
        or f"a{number}.txt" in str([each for each in events if isinstance(each, ToolStarted)])
    )


def run(kind: str, rooms: list[int]) -> int:
    saved_state.LONG = 0
    failed = 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.environ["AGENT_TUI_STATE_DIR"] = f"{folder}/disk/state"
        os.environ["XDG_CONFIG_HOME"] = f"{folder}/config"
        disk = Disk(Path(folder))
        disk.mount("size=64m,nr_inodes=9000")
        (disk.root / "workspace").symlink_to(disk.outside / "workspace")
        session = asyncio.run(work(disk, 1))
        beside(disk, session, "before")
        if disk.problems or disk.refusals:
            print("with room:", disk.problems, disk.refusals)
            return 1
        journal = (session / JOURNAL_NAME).read_bytes()
        shutil.copytree(disk.root, disk.saved, symlinks=True)
        subprocess.run(["umount", disk.root], check=True)
        for room in rooms:
            for name in ("a2.txt", "a3.txt", "b2.txt", "b3.txt"):
                (disk.outside / "workspace" / name).unlink(missing_ok=True)
            disk.problems, disk.refusals = [], []
            disk.mount("size=64m,nr_inodes=9000")
            shutil.copytree(disk.saved, disk.root, symlinks=True, dirs_exist_ok=True)
            disk.narrow(kind, room)
            disk.attempt("new session", lambda: work(disk, 2))
            disk.attempt("resumed session", lambda: work(disk, 3, session))
            beside(disk, session, "after")
            disk.widen()
            try:
                held(disk, session, journal)
            except Exception:
                disk.problems.append(f"with room again: {traceback.format_exc()[-1_500:]}")
            subprocess.run(["umount", disk.root], check=True)
            failed += bool(disk.problems)
            print(
                json.dumps(
                    {
                        "kind": kind,
                        "room": room,
                        "refused": len(disk.refusals),
                        "problems": disk.problems,
                        "words": disk.refusals,
                    }
                )
            )
            sys.stdout.flush()
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(run(sys.argv[1], [int(room) for room in sys.argv[2:]]))
