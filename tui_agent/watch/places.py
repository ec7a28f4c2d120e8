"""Where agents keep their sessions, and which of them are being written now.

Only names, times and the first bytes of files are looked at. Nothing is made: an agent that was never here has none.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from tui_agent.formats.importers.databases import sessions_in
from tui_agent.formats.importers.load import find_transcripts
from tui_agent.formats.importers.reading import is_database
from tui_agent.store.journal import JOURNAL_NAME, sessions_folder
from tui_agent.store.provenance import is_foreign

RUNNING = 900.0
"""Seconds since it was written last within which a session is taken for running: a command may take long."""
_HEAD = 1 << 16
_NEWEST = 40
"""Sessions of one agent of which more than the time is asked."""
_WORKSPACE = re.compile(rb'"(?:cwd|working_directory|directory|workspace)"\s*:\s*("(?:[^"\\]|\\.){1,4096}")')


@dataclass(frozen=True)
class Found:
    """A session of an agent."""

    agent: str
    path: Path
    modified: float
    """When it was written last, in seconds since the epoch."""
    workspace: str = ""
    """The folder that it works in, where the beginning of its file says so."""

    def works_in(self, folder: Path) -> bool:
        """Whether it works there, or below."""
        return bool(self.workspace) and Path(self.workspace).is_relative_to(folder)


def _home(variable: str, name: str) -> Path:
    return Path(os.environ.get(variable) or Path.home() / name)


def _claude_code() -> Iterable[Path]:
    return _home("CLAUDE_CONFIG_DIR", ".claude").glob("projects/*/*.jsonl")


def _codex() -> Iterable[Path]:
    home = _home("CODEX_HOME", ".codex")
    for folder in ("sessions", "archived_sessions"):
        yield from (home / folder).rglob("rollout-*.jsonl*")


def _gemini_cli() -> Iterable[Path]:
    return (_home("GEMINI_CLI_HOME", "") / ".gemini").glob("tmp/*/chats/session-*.json*")


def _copilot() -> Iterable[Path]:
    return _home("COPILOT_HOME", ".copilot").glob("session-state/*/events.jsonl")


def _mistral_vibe() -> Iterable[Path]:
    sessions = _home("VIBE_HOME", ".vibe") / "logs" / "session"
    yield from (folder for folder in sessions.glob("session_*") if (folder / "messages.jsonl").is_file())
    yield from (folder for folder in sessions.glob("unified/*") if (folder / "CURRENT").is_file())


def _openhands() -> Iterable[Path]:
    return (folder.parent for folder in _home("OPENHANDS_HOME", ".openhands").glob("conversations/*/events"))


def _opencode() -> Iterable[Path]:
    database = _home("XDG_DATA_HOME", ".local/share") / "opencode" / "opencode.db"
    return [database] if database.is_file() else []


AGENTS: dict[str, Callable[[], Iterable[Path]]] = {
    "claude-code": _claude_code,
    "codex": _codex,
    "gemini-cli": _gemini_cli,
    "copilot": _copilot,
    "mistral-vibe": _mistral_vibe,
    "opencode": _opencode,
    "openhands": _openhands,
}
"""Their names as `--agent` takes them, and where their sessions are."""
OURS = "agent-tui"
NAMES = (*AGENTS, OURS)


def sessions_of(agent: str, state_dir: Path) -> list[Found]:
    """The sessions of an agent, the newest first."""
    return _newest(agent, _paths(agent, state_dir))


def _paths(agent: str, state_dir: Path) -> Iterable[Path]:
    if agent == OURS:
        return (journal.parent for journal in sessions_folder(state_dir).glob(f"*/{JOURNAL_NAME}"))
    return AGENTS[agent]()


def sessions_below(folder: Path) -> list[Found]:
    """The sessions in a folder, the newest first."""
    return _newest("", find_transcripts([folder]))


def running(state_dir: Path, now: float) -> list[Found]:
    """All sessions on this machine that are being written, the newest first. `now`: in seconds since the epoch.

    Of a session that our hooks keep too, the agent's own file is the one.
    """
    found = [one for agent in AGENTS for one in sessions_of(agent, state_dir)]
    kept = sessions_folder(state_dir)
    found += [one for one in sessions_of(OURS, state_dir) if not is_foreign(one.path, kept)]
    return sorted((one for one in found if now - one.modified < RUNNING), key=_age)


def _age(found: Found) -> float:
    return -found.modified


def _newest(agent: str, paths: Iterable[Path]) -> list[Found]:
    dated: list[Found] = []
    for path in paths:
        if is_database(path):
            dated += [Found(agent, one, at, folder) for one, at, folder in sessions_in(path)]
        elif modified := _modified(path):
            dated.append(Found(agent, path, modified))
    dated.sort(key=_age)
    asked = [
        one if one.workspace else replace(one, workspace=_workspace(one.path)) for one in dated[:_NEWEST]
    ]
    return [*asked, *dated[_NEWEST:]]


def _modified(path: Path) -> float:
    """When it was written last; 0 where it is gone."""
    with suppress(OSError):
        return max(file.stat().st_mtime for file in _files(path))
    return 0.0


def _files(path: Path) -> Iterator[Path]:
    yield path
    if path.is_dir():
        yield from path.glob("*.jsonl")
        yield from path.glob("events")
        yield from path.glob("journal/*.jsonl")


def _workspace(path: Path) -> str:
    for file in (path / "meta.json", *_files(path)):
        with suppress(OSError, ValueError), file.open("rb") as opened:
            if match := _WORKSPACE.search(opened.read(_HEAD)):
                return str(json.loads(match[1]))
    if (root := path.parent.parent / ".project_root").is_file():
        with suppress(OSError):
            return root.read_text("utf-8", "replace").strip()
    return ""
