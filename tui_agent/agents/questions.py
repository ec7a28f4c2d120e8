"""Questions that a link answers: each is kept on the disk until it is answered, once, or its time is over.

The process that asks keeps its questions in a folder of its own, with a key that signs their links and a lock that
ends with it. Whoever serves the links (`answer_page`) puts the answer beside the question, and only one fits there.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import hmac
import os
import re
import secrets
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from pydantic import BaseModel, ValidationError

from tui_agent.agents.waiting import Clock
from tui_agent.disk import replace_whole
from tui_agent.store.private import make_private, private

LONGEST_ANSWER = 2_000
"""Characters."""
_LOOK = 1.0
"""Seconds between two looks for an answer."""
_KEPT = 86_400.0
"""Seconds for which the questions of a process that is gone can still say so."""
_KEY = "key"
_NAME = re.compile(r"([0-9a-f]{16})-([0-9]{1,6})-([0-9]{1,12})-([A-Za-z0-9_-]{43})")


class Question(BaseModel, frozen=True):
    """A question, in which secrets are masked."""

    title: str
    text: str
    choices: tuple[str, ...]


class Answer(BaseModel, frozen=True):
    """The end of a question. `said` is None if it was settled in another way."""

    said: str | None


class Standing(Enum):
    """How a question stands, in the words for whoever opens its link."""

    OPEN = "It waits for an answer."
    UNKNOWN = "This link belongs to no question. It is incomplete, or the question is long gone."
    ANSWERED = "This question is answered already. A link answers once."
    SETTLED = "This question is settled already: it was answered elsewhere, or nobody waits for it any more."
    LATE = "It is too late: the time for an answer is over."
    ALONE = "Nobody waits for this answer any more: the run that asked has ended."


@dataclass(frozen=True)
class Link:
    """One question's link."""

    address: str
    path: Path
    """The question."""


class Questions:
    """The questions of this process, whose links begin with `base`."""

    def __init__(self, base: str, folder: Path, clock: Clock) -> None:
        self._base = base.rstrip("/")
        self._folder = folder
        self._clock = clock
        self._run: Path | None = None
        self._lock = -1
        self._asked = 0

    def ask(self, question: Question, patience: float) -> Link:
        """Keep a question, to be answered within `patience` seconds. Raises `OSError`."""
        run = self._run or self._begin()
        self._asked += 1
        expires = int(self._clock.now() + patience)
        name = f"{run.name}-{self._asked}-{expires}"
        path = run / f"{self._asked}.json"
        replace_whole(path, question.model_dump_json())
        return Link(f"{self._base}/{name}-{_signature((run / _KEY).read_bytes(), name)}", path)

    async def answered(self, link: Link) -> str:
        """The words that somebody answers by the link."""
        while True:
            if (answer := _answer_to(link.path)) is not None and answer.said is not None:
                return answer.said
            await self._clock.sleep(_LOOK)

    def settle(self, link: Link) -> str | None:
        """Take no more answers by the link; the one that was quicker, if there is one."""
        with suppress(OSError):
            if not _put(link.path, Answer(said=None)) and (answer := _answer_to(link.path)) is not None:
                return answer.said
        return None

    def close(self) -> None:
        """Let go of the questions: their links say that nobody waits any more."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1
            self._run = None

    def _begin(self) -> Path:
        make_private(self._folder)
        _remove_old(self._folder)
        run = self._folder / secrets.token_hex(8)
        run.mkdir(mode=0o700)
        self._lock = private(run / _KEY, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        os.write(self._lock, secrets.token_bytes(32))
        self._run = run
        return run


def standing(folder: Path, name: str, now: float) -> tuple[Standing, Question | None]:
    """How the question of a link stands, and the question while it is open."""
    if (found := _found(folder, name)) is None:
        return Standing.UNKNOWN, None
    path, expires = found
    if (answer := _answer_to(path)) is not None:
        return Standing.SETTLED if answer.said is None else Standing.ANSWERED, None
    if now >= expires:
        return Standing.LATE, None
    if not _held(path.parent):
        return Standing.ALONE, None
    try:
        return Standing.OPEN, Question.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return Standing.UNKNOWN, None


def answer(folder: Path, name: str, said: str, now: float) -> Standing:
    """Answer the question of a link; how it stood before: what is not open takes no answer. Raises `OSError`."""
    stands, _ = standing(folder, name, now)
    if stands is Standing.OPEN and (found := _found(folder, name)) is not None:
        path, _ = found
        if not _put(path, Answer(said=said.strip()[:LONGEST_ANSWER])):
            return standing(folder, name, now)[0]
    return stands


def _found(folder: Path, name: str) -> tuple[Path, int] | None:
    """The question of a link whose signature is right, and the end of its time."""
    if (matched := _NAME.fullmatch(name)) is None:
        return None
    run, number, expires, signature = matched.groups()
    try:
        key = (folder / run / _KEY).read_bytes()
    except OSError:
        return None
    right = len(key) == 32 and hmac.compare_digest(_signature(key, f"{run}-{number}-{expires}"), signature)
    return (folder / run / f"{number}.json", int(expires)) if right else None


def _signature(key: bytes, name: str) -> str:
    made = hmac.new(key, name.encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(made).decode().rstrip("=")


def _answer_to(path: Path) -> Answer | None:
    with suppress(OSError, ValidationError):
        return Answer.model_validate_json(path.with_suffix(".answer").read_bytes())
    return None


def _put(path: Path, answer: Answer) -> bool:
    """Put the answer beside its question, whole and on the disk; False if one is there. Raises `OSError`."""
    beside = path.with_suffix(f".{secrets.token_hex(8)}.part")
    replace_whole(beside, answer.model_dump_json())
    try:
        os.link(beside, path.with_suffix(".answer"))
    except FileExistsError:
        return False
    finally:
        beside.unlink(missing_ok=True)
    return True


def _held(run: Path) -> bool:
    """The process that asked is still there."""
    with suppress(FileNotFoundError), (run / _KEY).open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _remove_old(folder: Path) -> None:
    for run in folder.iterdir():
        with suppress(OSError):
            if time.time() - run.stat().st_mtime > _KEPT and not _held(run):
                shutil.rmtree(run)
