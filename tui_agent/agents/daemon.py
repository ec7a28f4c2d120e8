"""The process that knows the conversations of other agents and answers their hooks; it ends when nobody comes.

One for each user, at a socket that only that user can open; who connects is asked all the same. Events are
taken one after another, so that the hooks of one batch, which run at once, cannot get between each other. A
slow client holds up no other. Its death loses nothing: the next one reads the journals. Keys come with each
event, so that their values can be masked, and go with it; what is known of a conversation goes with its end.
"""

from __future__ import annotations

import json
import logging
import logging.handlers
import os
import resource
import selectors
import signal
import socket
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, cast, get_args

from tui_agent import untrusted_files
from tui_agent.agents import dialects
from tui_agent.agents.advisor import Advice, Advise, AdvisedConversation, lane_folder
from tui_agent.agents.dialect import Dialect, Heard, Moment
from tui_agent.agents.hook_client import LARGEST, require_same_user
from tui_agent.config.settings import Settings, load_settings
from tui_agent.core.recovery.policy import preset
from tui_agent.secret_names import named_like_a_secret
from tui_agent.store.journal import sessions_folder
from tui_agent.store.redaction import Redactor

STAY = 600.0
"""Seconds after the last event."""
_PATIENCE = 2.0
"""Seconds for a hook to say what it has to say, and for it to take the answer."""
_CALLERS = 256
"""Hooks that are listened to at once."""
_LOOK = 5.0
"""Seconds between two looks whether the socket is still there."""
_LARGEST_HEAD = 4 << 20
"""Bytes: with all variables that a process can have."""
_LARGEST_FIRST = 64
"""Bytes of the line of lengths."""
_LANES = 64
"""Conversations that are kept in memory; the others are read again when they go on."""
_SETTINGS = ("AGENT_TUI_", "XDG_", "HOME")
"""Beginnings of the variables that settings are made of."""
LOG = "hooks.log"
"""In the state folder: errors of ours, and one line for each answer."""

_ENDS = frozenset({Moment.ANSWERED, Moment.ENDED})
"""Events with which a run of a conversation may have ended."""

logger = logging.getLogger("tui_agent.hooks")


class Daemon:
    """The lanes, and what is answered to each event."""

    def __init__(self) -> None:
        self._lanes: dict[tuple[str, str, str, str], AdvisedConversation] = {}
        self._heard: dict[tuple[str, str, str, str], float] = {}
        """When each was heard last, by `time.monotonic`."""
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
            said = {
                name: value
                for name, value in environment.items()
                if name.startswith(_SETTINGS) and not named_like_a_secret(name)
            }
            settings = _settings(folder, tuple(sorted(said.items())))
        except Exception:
            logger.exception("an event without settings")
            return {}
        _log_to(settings.state_dir)
        try:
            redactor = Redactor.from_environment(environment)
            return self._answer(agent, _advise(advise), policy, settings, event, redactor, again=again)
        except Exception:
            logger.exception("an event of %s was not understood", agent or "an agent")
            return {}

    def close(self) -> None:
        """Let another daemon have the lanes."""
        for key in [*self._lanes]:
            self._forget(key)

    def forget(self, idle: float = STAY) -> None:
        """Forget the conversations that were not heard for `idle` seconds: they are read again when they go on."""
        for key in [key for key, heard in self._heard.items() if time.monotonic() - heard > idle]:
            self._forget(key)

    def _forget(self, key: tuple[str, str, str, str]) -> None:
        del self._heard[key]
        self._lanes.pop(key).close()

    def _answer(
        self,
        agent: str,
        advise: Advise,
        policy: str,
        settings: Settings,
        event: bytes,
        redactor: Redactor,
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
        key = (str(sessions_folder(settings.state_dir)), dialect.name, heard.session, heard.lane)
        lane = self._lane(key, dialect, heard, policy, settings, now, redactor)
        advice = lane.hear(heard, now, advise, redactor, again=again)
        if heard.moment in _ENDS and settings.recovery.overrides().get("playbook", True):
            self._ended.append((lane.folder, settings))
        answer = _formed(dialect, heard, advice)
        if answer:
            kind = next(name for name in ("ask", "refuse", "go_on", "note") if getattr(advice, name))
            logger.info("%s %s: %s", dialect.name, heard.event, kind)
        if heard.moment is Moment.ENDED:
            self._forget(key)
        return answer

    def _lane(
        self,
        key: tuple[str, str, str, str],
        dialect: Dialect,
        heard: Heard,
        policy: str,
        settings: Settings,
        now: float,
        redactor: Redactor,
    ) -> AdvisedConversation:
        lane = self._lanes.pop(key, None)
        if lane is None:
            chosen = preset(policy or settings.policy, **settings.recovery.overrides())
            folder = lane_folder(Path(key[0]), *key[1:], now)
            lane = AdvisedConversation(folder, heard, dialect, chosen, redactor, now)
        self._lanes[key], self._heard[key] = lane, time.monotonic()
        while len(self._lanes) > _LANES:
            self._forget(next(iter(self._lanes)))
        return lane


def _formed(dialect: Dialect, heard: Heard, advice: Advice) -> dict[str, Any]:
    forms = dialect.answers
    if advice.ask and forms.ask is not None:
        return forms.ask(heard.event, advice.ask)
    if advice.refuse:
        return forms.refuse(heard.event, advice.refuse)
    if advice.go_on and forms.go_on is not None:
        return forms.go_on(heard.event, advice.go_on)
    return forms.note(heard.event, advice.note) if advice.note and forms.note is not None else {}


def last_event(state_dir: Path, agent: str) -> float | None:
    """When an agent's event was heard last, in seconds since the epoch."""
    with suppress(OSError):
        return (state_dir / "hooks" / f"{agent}.heard").stat().st_mtime
    return None


def log_counts(state_dir: Path, agent: str) -> tuple[int, int]:
    """Answers to an agent, and errors with its events, of which the log knows."""
    lines: list[str] = []
    with suppress(OSError):
        lines = untrusted_files.tail(state_dir / LOG, 2 << 20).decode("utf-8", "replace").splitlines()
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


@dataclass
class _Caller:
    """A hook that is heard, or answered."""

    connection: socket.socket
    ends: float
    """When it is given up, by `time.monotonic`."""
    heard: bytearray = field(default_factory=bytearray)
    answer: bytes = b""

    def request(self) -> tuple[bool, list[str], bytes] | None:
        """The client's message, once all of it is there: a line with the number of earlier sends and two
        lengths, its words, the event. Raises `ValueError`.
        """
        first, line_end, _ = bytes(self.heard[:_LARGEST_FIRST]).partition(b"\n")
        if not line_end:
            if len(self.heard) >= _LARGEST_FIRST:
                raise ValueError("the request has no lengths")
            return None
        again, head, event = map(int, first.split())
        if not (0 < head <= _LARGEST_HEAD and 0 <= event <= LARGEST):
            raise ValueError("the request is too large")
        begins = len(first) + 1
        if len(self.heard) < begins + head + event:
            return None
        words = bytes(self.heard[begins : begins + head]).split(b"\0")
        return again > 0, [os.fsdecode(word) for word in words], bytes(self.heard[begins + head :][:event])


class _Listening:
    """The socket and those who have come. Nothing waits for a single one of them."""

    def __init__(self, listener: socket.socket, daemon: Daemon) -> None:
        listener.setblocking(False)
        self._listener = listener
        self._daemon = daemon
        self._callers: dict[int, _Caller] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ)

    def step(self, patience: float) -> bool:
        """Wait for news at most so many seconds, and answer whoever has said all; whether somebody came."""
        waits = [caller.ends - time.monotonic() for caller in self._callers.values()]
        came = False
        for key, _ in self._selector.select(max(0.0, min([patience, *waits]))):
            if key.fileobj is self._listener:
                came = True
                self._accept()
            elif caller := self._callers.get(key.fd):
                self._go_on(caller)
        for caller in [*self._callers.values()]:
            if time.monotonic() > caller.ends:
                self._leave(caller)
        return came

    def close(self) -> None:
        for caller in [*self._callers.values()]:
            self._leave(caller)
        self._selector.close()

    def _accept(self) -> None:
        with suppress(OSError):
            connection, _ = self._listener.accept()
            try:
                require_same_user(connection)
            except OSError:
                connection.close()
                return
            connection.setblocking(False)
            if len(self._callers) >= _CALLERS:
                self._leave(next(iter(self._callers.values())))
            self._callers[connection.fileno()] = _Caller(connection, time.monotonic() + _PATIENCE)
            self._selector.register(connection, selectors.EVENT_READ)

    def _go_on(self, caller: _Caller) -> None:
        try:
            if caller.answer:
                caller.answer = caller.answer[caller.connection.send(caller.answer) :]
                if not caller.answer:
                    self._leave(caller)
                return
            piece = caller.connection.recv(1 << 18)
            caller.heard += piece
            request = caller.request()
            if request is None:
                if not piece:
                    self._leave(caller)
                return
        except BlockingIOError:
            return
        except (OSError, ValueError):
            self._leave(caller)
            return
        caller.heard.clear()
        again, words, event = request
        answer = self._daemon.answer(words, event, again=again)
        caller.answer = (json.dumps(answer, ensure_ascii=False) if answer else "").encode() + b"\n"
        caller.ends = time.monotonic() + _PATIENCE
        self._selector.modify(caller.connection, selectors.EVENT_WRITE)
        self._go_on(caller)

    def _leave(self, caller: _Caller) -> None:
        del self._callers[caller.connection.fileno()]
        self._selector.unregister(caller.connection)
        caller.connection.close()


def serve(listener: socket.socket, path: Path, daemon: Daemon, stay: float = STAY) -> None:
    """Answer until nobody has come for `stay` seconds, or the socket is no longer at `path`."""
    ends = time.monotonic() + stay
    listening = _Listening(listener, daemon)
    try:
        while (left := ends - time.monotonic()) > 0 and path.exists():
            if listening.step(min(left, _LOOK)):
                ends = time.monotonic() + stay
            daemon.learn()
            daemon.forget(stay)
    finally:
        listening.close()


def main() -> None:
    """Serve at the socket whose path is the first argument; the second is the lock that makes us the only one, the
    third the folder through which the path leads.
    """
    path, lock, folder = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    for descriptor in (lock, folder):
        os.set_inheritable(descriptor, False)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # what it holds is not for the disk
    os.ftruncate(lock, 0)
    os.write(lock, str(os.getpid()).encode())
    for name in (signal.SIGINT, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(_CALLERS)
        serve(listener, path, Daemon())
    path.unlink(missing_ok=True)
