"""Learnt habits of servers from one run to the next: one file in the state folder, by address and model.

Read before the first request to a server and written once a request with new habits has succeeded. A file that cannot
be used is as good as none, and is said; it is written anew with the next lesson.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tui_agent.disk import replace_whole
from tui_agent.models.habits import Habits, as_json, from_json, in_words

FILE = "servers.json"
MOST_SERVERS = 200
"""The newest are kept."""
LONGEST_FILE = 512 * 1024
"""Bytes that are read; what is larger is not ours, and cut it is damaged."""
KEPT_FOR = timedelta(days=60)
"""Servers and their models change; what was learnt is learnt again then."""
_LONGEST_NAME = 300


@dataclass(frozen=True)
class KeptServer:
    """The learnt habits of a model at an address."""

    server: str
    model: str
    learnt: date
    values: dict[str, Any]

    @property
    def habits(self) -> Habits:
        """The habits as they are kept."""
        return from_json(self.values)

    @property
    def in_words(self) -> tuple[str, ...]:
        """Their peculiarities."""
        return in_words(self.habits)


def server_name(api_base: str | None, provider: str) -> str:
    """How a server is called, in the file and in words: its address without what is secret in it, or its provider."""
    if not api_base:
        return provider or "the provider"
    try:
        parts = urlsplit(api_base)
    except ValueError:
        return "the server"
    path = parts.path.rstrip("/").removesuffix("/v1")
    return f"{parts.netloc.rpartition('@')[2]}{path}"[:_LONGEST_NAME] or "the server"


def read(folder: Path) -> tuple[list[KeptServer], str]:
    """The kept habits, newest last, and a fault of the file; "" for none."""
    path = folder / FILE
    try:
        data = _bytes(path)
    except FileNotFoundError:
        return [], ""
    except OSError as error:
        return [], f"{path} cannot be read ({error.strerror}): what was learnt of servers is not used."
    try:
        servers = [_row(row) for row in json.loads(data)["servers"]]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return [], f"{path} is damaged: what was learnt of servers is not used, and it is written anew."
    return [server for server in servers if server is not None][-MOST_SERVERS:], ""


def _bytes(path: Path) -> bytes:
    """The beginning of an ordinary file; nothing waits for what is none. Raises `OSError`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no ordinary file")
        return file.read(LONGEST_FILE)


def _row(row: Any) -> KeptServer | None:
    """An entry of the file; None for one that is too old. Raises `ValueError` and others for one that is none."""
    server, model, learnt, values = (
        row["server"],
        row["model"],
        date.fromisoformat(row["learnt"]),
        row["habits"],
    )
    if not (isinstance(server, str) and isinstance(model, str) and isinstance(values, dict)):
        raise TypeError("no server")
    return KeptServer(server, model, learnt, values) if today() - learnt <= KEPT_FOR else None


def today() -> date:
    """The day, the same everywhere."""
    return datetime.now(UTC).date()


def keep(folder: Path, newest: KeptServer) -> None:
    """Keep what was learnt of a model at an address, in the place of what was kept of it. Raises `OSError`."""
    with _alone(folder):
        others = [
            each for each in read(folder)[0] if (each.server, each.model) != (newest.server, newest.model)
        ]
        _write(folder, [*others, newest])


def forget(folder: Path, server: str | None = None) -> list[KeptServer]:
    """Forget what was learnt of the servers with this address, or of all; what is forgotten. Raises `OSError`."""
    if not (folder / FILE).exists():
        return []
    wanted = None if server is None else {server, server_name(server, "")}
    with _alone(folder):
        servers, _ = read(folder)
        gone = [each for each in servers if wanted is None or each.server in wanted]
        _write(folder, [each for each in servers if each not in gone])
    return gone


def _write(folder: Path, servers: list[KeptServer]) -> None:
    rows = [
        {"server": each.server, "model": each.model, "learnt": each.learnt.isoformat(), "habits": each.values}
        for each in servers[-MOST_SERVERS:]
    ]
    replace_whole(folder / FILE, json.dumps({"servers": rows}, indent=1) + "\n")


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold off other processes that write the file. None is waited for: what is lost then is learnt again."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(folder / f".{FILE}.lock", flags, 0o600)
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


class HabitBook:
    """The habits of all servers that a host calls: from the start, kept, and learnt since."""

    def __init__(self) -> None:
        self._habits: dict[tuple[str, str], Habits] = {}
        self._read: dict[str, dict[tuple[str, str], KeptServer]] = {}
        self._unsaid: list[str] = []
        """News for the operator that no reply has told yet."""

    def of(self, server: str, model: str, start: Habits, folder: str | None) -> Habits:
        """The habits of a model at an address; `start`: those that it is known to have. `folder` is the state folder;
        None: whoever asks does not know it.
        """
        key = server, model
        if key in self._habits:
            return self._habits[key]
        kept = self._kept(folder).get(key) if folder else None
        habits = from_json(kept.values, start) if kept is not None else start
        if folder:
            self._habits[key] = habits
        return habits

    def learn(self, server: str, model: str, habits: Habits, start: Habits, folder: str | None) -> None:
        """Take over habits with which a request has just succeeded; written down if they are kept at all."""
        key = server, model
        before = self.of(server, model, start, folder)
        if habits == before:
            return
        self._habits[key] = habits
        # What is left out of a request is said with each reply that went without.
        told = replace(habits, refused=before.refused, images=before.images)
        phrases = in_words(told, before)
        if phrases:
            self._unsaid.append(f"{server} {'; it also '.join(phrases)}.")
        values = as_json(habits, start)
        if not folder or values == as_json(before, start):
            return
        try:
            keep(Path(folder), KeptServer(server, model, today(), values))
        except OSError as error:
            why = error.strerror or error
            self._unsaid.append(
                f"What was learnt of {server} cannot be kept ({why}): the next run learns it again."
            )

    def unsaid(self) -> tuple[str, ...]:
        """News for the operator; each is given once."""
        said, self._unsaid = tuple(dict.fromkeys(self._unsaid)), []
        return said

    def _kept(self, folder: str) -> dict[tuple[str, str], KeptServer]:
        if folder not in self._read:
            servers, problem = read(Path(folder))
            self._read[folder] = {(each.server, each.model): each for each in servers}
            if problem:
                self._unsaid.append(problem)
        return self._read[folder]
