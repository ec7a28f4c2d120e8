"""Places in which agents keep their sessions, and the sessions that are being written now.

Only names, times and the first bytes of files are looked at, through `untrusted_files`. Nothing is made: an agent that
was never here has none.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from tui_agent import untrusted_files
from tui_agent.formats.importers.codex_threads import is_started
from tui_agent.formats.importers.databases import sessions_in
from tui_agent.formats.importers.load import find_transcripts
from tui_agent.formats.importers.reading import DOCUMENT_FILE, is_database
from tui_agent.formats.importers.values import objects_at, parsed, text_at
from tui_agent.store.journal import JOURNAL_NAME, sessions_folder
from tui_agent.store.provenance import is_foreign

RUNNING = 900.0
"""Seconds since it was written last within which a session is taken for running: a command may take long."""
_HEAD = 1 << 16
_LONGEST_PATH = 4_096
_NEWEST = 40
"""Sessions of one agent of which more than the time is asked."""
_UUID = "-".join("?" * length for length in (8, 4, 4, 4, 12))
_WORKSPACE = re.compile(rb'"(?:cwd|working_directory|directory|workspace)"\s*:\s*("(?:[^"\\]|\\.){1,4096}")')


@dataclass(frozen=True)
class Found:
    """A session of an agent."""

    agent: str
    path: Path
    modified: float
    """When it was written last, in seconds since the epoch."""
    workspace: str = ""
    """The folder that it works in, if the beginning of its file says so."""
    within: Path | None = None
    """The folder of sessions that it was found in, out of which no link may lead; None if somebody named the
    session.
    """

    def works_in(self, folder: Path) -> bool:
        """True if it works there, or below."""
        return bool(self.workspace) and Path(self.workspace).is_relative_to(folder)


def _home(variable: str, name: str) -> Path:
    return Path(os.environ.get(variable) or Path.home() / name)


@dataclass(frozen=True)
class _Search:
    """A folder and a pattern that find the sessions of an agent."""

    root: Path
    pattern: str
    folders: bool = False
    inside: str = ""
    """The file that a folder has to hold."""
    above: bool = False
    """The pattern finds a file within the session's folder."""

    def found(self) -> Iterator[Path]:
        """The sessions."""
        for path in untrusted_files.found(self.root, self.pattern, folders=self.folders, own=True):
            if not self.inside or untrusted_files.is_file(path / self.inside, self.root):
                yield path.parent if self.above else path


def _claude_code() -> list[_Search]:
    return [_Search(_home("CLAUDE_CONFIG_DIR", ".claude") / "projects", "*/*.jsonl")]


def _codex() -> list[_Search]:
    home = _home("CODEX_HOME", ".codex")
    return [_Search(home / folder, "**/rollout-*.jsonl*") for folder in ("sessions", "archived_sessions")]


def _gemini_cli() -> list[_Search]:
    return [_Search(_home("GEMINI_CLI_HOME", "") / ".gemini" / "tmp", "*/chats/session-*.json*")]


def _copilot() -> list[_Search]:
    return [_Search(_home("COPILOT_HOME", ".copilot") / "session-state", "*/events.jsonl")]


def _mistral_vibe() -> list[_Search]:
    sessions = _home("VIBE_HOME", ".vibe") / "logs" / "session"
    return [
        _Search(sessions, "session_*", folders=True, inside="messages.jsonl"),
        _Search(sessions, "unified/*", folders=True, inside="CURRENT"),
    ]


def _openhands() -> list[_Search]:
    root = _home("OPENHANDS_HOME", ".openhands") / "conversations"
    return [_Search(root, "*/events", folders=True, above=True)]


def _opencode() -> list[_Search]:
    return [_Search(_home("XDG_DATA_HOME", ".local/share") / "opencode", "opencode.db")]


def _qwen_code() -> list[_Search]:
    return [_Search(_home("QWEN_HOME", ".qwen") / "projects", "*/chats/*.jsonl")]


def _kimi_code() -> list[_Search]:
    return [_Search(_home("KIMI_CODE_HOME", ".kimi-code") / "sessions", "*/*/agents/main/wire.jsonl")]


def _pi() -> list[_Search]:
    return [_Search(_home("PI_CODING_AGENT_DIR", ".pi/agent") / "sessions", "*/*.jsonl")]


def _oh_my_pi() -> list[_Search]:
    return [_Search(Path.home() / ".omp" / "agent" / "sessions", "*/*.jsonl")]


def _openclaw() -> list[_Search]:
    return [_Search(_home("OPENCLAW_STATE_DIR", ".openclaw") / "agents", f"*/sessions/{_UUID}.jsonl")]


def _cursor() -> list[_Search]:
    root = _home("CURSOR_CONFIG_DIR", ".cursor") / "projects"
    return [_Search(root, f"*/agent-transcripts/{name}") for name in ("*.jsonl", "*/*.jsonl")]


def _tasks(extension: str) -> list[_Search]:
    """Tasks of an extension of VS Code, or of an editor that is made of it."""
    data = (Path.home() / ".config", Path.home() / "Library" / "Application Support")
    pattern = f"*/User/globalStorage/{extension}/tasks/*"
    return [_Search(root, pattern, folders=True, inside=DOCUMENT_FILE) for root in data]


def _cline() -> list[_Search]:
    sessions = _home("CLINE_DIR", ".cline") / "data" / "sessions"
    return [_Search(sessions, "*/*.messages.json"), *_tasks("saoudrizwan.claude-dev")]


def _goose() -> list[_Search]:
    sessions = _home("XDG_DATA_HOME", ".local/share") / "goose" / "sessions"
    return [_Search(sessions, "sessions.db"), _Search(sessions, "*.jsonl")]


def _crush() -> list[_Search]:
    listed = _home("XDG_DATA_HOME", ".local/share") / "crush" / "projects.json"
    folders = [Path.cwd() / ".crush"]
    with suppress(OSError):
        known = parsed(untrusted_files.content(listed, _HEAD, own=True))
        folders += [
            Path(folder) for one in objects_at(known, "projects") if (folder := text_at(one, "data_dir"))
        ]
    return [_Search(folder, "crush.db") for folder in dict.fromkeys(folders)]


def _antigravity() -> list[_Search]:
    pattern = "antigravity*/brain/*/.system_generated/logs/transcript.jsonl"
    return [_Search(Path.home() / ".gemini", pattern)]


def _aider() -> list[_Search]:
    return [_Search(Path.cwd(), ".aider.chat.history.md")]


AGENTS: dict[str, Callable[[], list[_Search]]] = {
    "claude-code": _claude_code,
    "codex": _codex,
    "gemini-cli": _gemini_cli,
    "copilot": _copilot,
    "mistral-vibe": _mistral_vibe,
    "opencode": _opencode,
    "openhands": _openhands,
    "qwen-code": _qwen_code,
    "kimi-code": _kimi_code,
    "cursor": _cursor,
    "cline": _cline,
    "roo-code": lambda: _tasks("rooveterinaryinc.roo-cline"),
    "kilo-code": lambda: _tasks("kilocode.kilo-code"),
    "pi": _pi,
    "oh-my-pi": _oh_my_pi,
    "openclaw": _openclaw,
    "goose": _goose,
    "crush": _crush,
    "aider": _aider,
    "antigravity": _antigravity,
}
"""Places of sessions by the agent's name as `--agent` takes it."""
OURS = "agent-tui"
NAMES = (*AGENTS, OURS)


def sessions_of(agent: str, state_dir: Path) -> list[Found]:
    """The sessions of an agent, the newest first."""
    places = [_Search(sessions_folder(state_dir), f"*/{JOURNAL_NAME}", above=True)]
    if agent != OURS:
        places = AGENTS[agent]()
    return _newest(agent, ((path, place.root) for place in places for path in place.found()))


def root_of(path: Path) -> Path | None:
    """The folder of an agent's sessions in which a session is; None for one from elsewhere."""
    roots = (place.root for places in AGENTS.values() for place in places())
    return next((root for root in roots if path.is_relative_to(root)), None)


def sessions_below(folder: Path) -> list[Found]:
    """The sessions in a folder, the newest first."""
    return _newest("", ((path, folder) for path in find_transcripts([folder])))


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


def _newest(agent: str, paths: Iterable[tuple[Path, Path]]) -> list[Found]:
    dated: list[Found] = []
    for path, within in paths:
        if is_database(path):
            rows = sessions_in(path, within)
            dated += [Found(agent, one, at, folder, within) for one, at, folder in rows]
        elif is_started(path):
            continue  # a part of the session that started it
        elif modified := _modified(path):
            dated.append(Found(agent, path, modified, within=within))
    dated.sort(key=_age)
    asked = [one if one.workspace else replace(one, workspace=_workspace(one)) for one in dated[:_NEWEST]]
    return [*asked, *dated[_NEWEST:]]


def _modified(path: Path) -> float:
    """The time of its last writing, in seconds since the epoch; 0 if it is gone."""
    with suppress(OSError):
        return max(file.stat().st_mtime for file in _files(path))
    return 0.0


def _files(path: Path) -> Iterator[Path]:
    yield path
    if path.is_dir():
        yield from untrusted_files.found(path, "*.jsonl")
        yield from untrusted_files.found(path, "events", folders=True)
        yield from untrusted_files.found(path, "journal/*.jsonl")


def _workspace(one: Found) -> str:
    for file in (one.path / "meta.json", *_files(one.path)):
        with suppress(OSError, ValueError):
            if match := _WORKSPACE.search(untrusted_files.head(file, _HEAD, one.within)):
                return str(json.loads(match[1]))
    root = one.path.parent.parent / ".project_root"
    with suppress(OSError):
        return untrusted_files.content(root, _LONGEST_PATH, one.within).decode("utf-8", "replace").strip()
    return ""
