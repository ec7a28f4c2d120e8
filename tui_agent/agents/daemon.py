"""The process that knows the conversations of other agents and answers their hooks; it ends when nobody comes.

One for each user, at a socket that only that user can open. Events are taken one after another, so that the hooks of
one batch, which run at once, cannot get between each other. Its death loses nothing: the next one reads the journals.
"""

from __future__ import annotations

import json
import logging
import logging.handlers
import os
import signal
import socket
import sys
import time
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, cast, get_args

from tui_agent.agents import dialects
from tui_agent.agents.advisor import Advice, Advise, AdvisedConversation, lane_folder
from tui_agent.agents.dialect import Dialect, Heard, Moment
from tui_agent.agents.hook_client import LARGEST
from tui_agent.config.settings import Settings, load_settings
from tui_agent.core.recovery.policy import preset
from tui_agent.store.journal import sessions_folder
from tui_agent.store.redaction import Redactor

STAY = 600.0
"""Seconds after the last event."""
_PATIENCE = 2.0
"""Seconds for a hook to say what it has to say."""
_LOOK = 5.0
"""Seconds between two looks whether the socket is still there."""
_LARGEST_HEAD = 1 << 16
_LANES = 64
"""Conversations that are kept in memory; the others are read again when they go on."""
LOG = "hooks.log"
"""In the state folder: errors of ours, and one line for each answer."""

_ENDS = frozenset({Moment.ANSWERED, Moment.ENDED})
"""Events with which a run of a conversation may have ended."""

logger = logging.getLogger("tui_agent.hooks")


class Daemon:
    """The lanes, and what is answered to each event."""

    def __init__(self) -> None:
        self._lanes: dict[tuple[str, str, str, str], AdvisedConversation] = {}
        self._ended: list[tuple[Path, Settings]] = []
        """Conversations in which a run has ended since the playbook last learned."""

    def learn(self) -> None:
        """Have the runs that ended teach the playbook, once their agents have their answers. Never raises."""
        while self._ended:
            folder, settings = self._ended.pop()
            try:
                # No hook has to wait until the readers of all formats are loaded.
                from tui_agent.playbook.learning import learn_file

                learn_file(folder, settings.state_dir, settings.workspace)
            except Exception:
                logger.exception("nothing was learned from %s", folder.name)

    def answer(self, words: list[str], event: bytes, *, again: bool = False) -> dict[str, Any]:
        """The answer to an event, {} for none. `words`: agent, advise, policy, folder, variables. `again`: another
        daemon died over it, and may have recorded it. Never raises.
        """
        try:
            agent, advise, policy, folder, *variables = words
            environment = dict(variable.split("=", 1) for variable in variables)
            settings = _settings(folder, tuple(sorted(environment.items())))
        except Exception:
            logger.exception("an event without settings")
            return {}
        _log_to(settings.state_dir)
        try:
            return self._answer(agent, _advise(advise), policy, settings, event, again=again)
        except Exception:
            logger.exception("an event of %s was not understood", agent or "an agent")
            return {}

    def close(self) -> None:
        """Let another daemon have the lanes."""
        while self._lanes:
            self._lanes.popitem()[1].close()

    def _answer(
        self,
        agent: str,
        advise: Advise,
        policy: str,
        settings: Settings,
        event: bytes,
        *,
        again: bool,
    ) -> dict[str, Any]:
        record = json.loads(event)
        dialect = dialects.named(agent) if agent else dialects.of(record)
        heard = dialect.read(record)
        if heard is None:
            return {}
        now = time.time()
        _touch(settings.state_dir / "hooks" / f"{dialect.name}.heard")
        lane = self._lane(dialect, heard, policy, settings, now)
        advice = lane.hear(heard, now, advise, again=again)
        if heard.moment in _ENDS and settings.recovery.overrides().get("playbook", True):
            self._ended.append((lane.folder, settings))
        answer = _formed(dialect, heard, advice)
        if answer:
            kind = next(name for name in ("ask", "refuse", "go_on", "note") if getattr(advice, name))
            logger.info("%s %s: %s", dialect.name, heard.event, kind)
        return answer

    def _lane(
        self, dialect: Dialect, heard: Heard, policy: str, settings: Settings, now: float
    ) -> AdvisedConversation:
        sessions = sessions_folder(settings.state_dir)
        key = (str(sessions), dialect.name, heard.session, heard.lane)
        lane = self._lanes.pop(key, None)
        if lane is None:
            chosen = preset(policy or settings.policy, **settings.recovery.overrides())
            folder = lane_folder(sessions, *key[1:], now)
            lane = AdvisedConversation(
                folder, heard, dialect, chosen, Redactor.from_environment(os.environ), now
            )
        self._lanes[key] = lane
        while len(self._lanes) > _LANES:
            self._lanes.pop(next(iter(self._lanes))).close()
        return lane


def _formed(dialect: Dialect, heard: Heard, advice: Advice) -> dict[str, Any]:
    forms = dialect.answers
    if advice.ask and forms.ask is not None:
        return forms.ask(heard.event, advice.ask)
    if advice.refuse:
        return forms.refuse(heard.event, advice.refuse)
    if advice.go_on and forms.go_on is not None:
        return forms.go_on(heard.event, advice.go_on)
    return forms.note(heard.event, advice.note) if advice.note else {}


def last_event(state_dir: Path, agent: str) -> float | None:
    """When an agent's event was heard last, in seconds since the epoch."""
    with suppress(OSError):
        return (state_dir / "hooks" / f"{agent}.heard").stat().st_mtime
    return None


def log_counts(state_dir: Path, agent: str) -> tuple[int, int]:
    """Answers to an agent, and errors with its events, of which the log knows."""
    lines: list[str] = []
    with suppress(OSError):
        lines = (state_dir / LOG).read_text("utf-8", "replace").splitlines()
    answers = sum(f" INFO {agent} " in line for line in lines)
    return answers, sum(" ERROR " in line and agent in line for line in lines)


def _touch(path: Path) -> None:
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, exist_ok=True)
        path.touch(mode=0o600)


def _advise(text: str) -> Advise:
    return cast("Advise", text) if text in get_args(Advise) else "refuse"


@lru_cache(maxsize=64)
def _settings(folder: str, environment: tuple[tuple[str, str], ...]) -> Settings:
    return load_settings({"workspace": folder}, environ=dict(environment), cwd=Path(folder))


@lru_cache(maxsize=8)
def _log_to(state_dir: Path) -> None:
    state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    handler = logging.handlers.RotatingFileHandler(state_dir / LOG, maxBytes=1 << 20, backupCount=1)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger.handlers[:] = [handler]
    logger.setLevel(logging.INFO)
    logger.propagate = False


# --- the process -----------------------------------------------------------------------------------------------------


def serve(listener: socket.socket, path: Path, daemon: Daemon, stay: float = STAY) -> None:
    """Answer until nobody has come for `stay` seconds, or the socket is no longer at `path`."""
    ends = time.monotonic() + stay
    while (left := ends - time.monotonic()) > 0 and path.exists():
        listener.settimeout(min(left, _LOOK))
        try:
            caller, _ = listener.accept()
        except TimeoutError:
            continue
        with caller, suppress(OSError, ValueError):
            caller.settimeout(_PATIENCE)
            again, words, event = _request(caller)
            answer = daemon.answer(words, event, again=again)
            caller.sendall((json.dumps(answer, ensure_ascii=False) if answer else "").encode() + b"\n")
        daemon.learn()
        ends = time.monotonic() + stay


def _request(caller: socket.socket) -> tuple[bool, list[str], bytes]:
    """What a hook sends: how often it was sent before and two lengths in a line, its words, the event.

    Raises `OSError`, `ValueError`.
    """
    with caller.makefile("rb") as stream:
        again, head, event = map(int, stream.readline(64).split())
        if not (0 < head <= _LARGEST_HEAD and 0 <= event <= LARGEST):
            raise ValueError("the request is too large")
        words = stream.read(head).split(b"\0")
        return again > 0, [os.fsdecode(word) for word in words], stream.read(event)


def main() -> None:
    """Serve at the socket whose path is the first argument; the second is the lock that makes us the only one."""
    path, lock = Path(sys.argv[1]), int(sys.argv[2])
    os.set_inheritable(lock, False)
    os.ftruncate(lock, 0)
    os.write(lock, str(os.getpid()).encode())
    for name in (signal.SIGINT, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(256)
        serve(listener, path, Daemon())
    path.unlink(missing_ok=True)
