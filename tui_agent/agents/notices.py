"""Words for a person who is away: questions, limits and ends go to a webhook, an ntfy topic or a command of their own,
and answers come back by a topic or by a link.

Nothing is sent unless a person has configured it. Secrets are masked, and a text is short. What cannot be sent is tried
again until it can, in its order, by the next process if need be; the run waits for none of it.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from tui_agent.agents import ntfy
from tui_agent.agents.leash import leashed
from tui_agent.agents.outbox import Notice, Outbox
from tui_agent.agents.questions import Link, Question, Questions
from tui_agent.agents.waiting import Clock
from tui_agent.config.sections import NotifySettings
from tui_agent.config.settings import Settings
from tui_agent.store.redaction import Redactor
from tui_agent.terminal_text import clipped, one_line, sanitize

LONGEST_TEXT, _TITLE = 1_000, 100
"""Characters."""
_SECONDS = 10.0
"""Longest time of one try."""
PATIENCE, HASTE = 10.0, 0.5
"""Seconds at the end for what was not sent yet; of a run that a person or its limit ended."""
_FIRST, _LAST = 5.0, 300.0
"""Seconds before another try, doubled from the first to the last."""
_MOST = 200
"""Notices that wait; beyond them the oldest is dropped."""
_BUTTONS = 3
"""Buttons that ntfy shows on a message."""


class Notices:
    """Sends notices in their order, and takes answers. `say` tells a person at the terminal what could not be sent;
    what waits is kept in `folder`.
    """

    def __init__(
        self,
        settings: NotifySettings,
        folder: Path,
        clock: Clock,
        say: Callable[[str], None],
        redactor: Redactor,
    ) -> None:
        self._ways = dict(_ways(settings))
        self._replies = settings.replies.rstrip("/")
        self._questions = Questions(settings.link, questions_in(folder), clock) if settings.link else None
        self._patience = settings.patience
        self._clock = clock
        self._say = say
        self._redactor = redactor
        self._outbox: Outbox | None = Outbox(folder)
        self._waiting: dict[str, list[tuple[int, Notice]]] = {way: [] for way in self._ways}
        self._sending: dict[str, asyncio.Task[None]] = {}

    @property
    def answers(self) -> bool:
        """Answers can come back."""
        return bool((self._replies or self._questions) and self._ways)

    def begin(self) -> None:
        """Send what processes that are gone left behind."""
        if self._outbox is not None and self._ways:
            for notice, ways in self._outbox.left_behind():
                self._queue(notice, [way for way in ways if way in self._ways])

    def put(self, title: str, text: str) -> None:
        """Send a notice when it can be sent."""
        self._put(title, text)

    async def ask(self, title: str, text: str, choices: Sequence[str]) -> str | None:
        """The words of a person who is away, one of the choices or their own; None if none came in time, or none can
        come.
        """
        if not self.answers:
            self.put(title, text)
            return None
        code = secrets.token_urlsafe(9) if self._replies else ""
        link = self._link(title, text, choices)
        buttons = [(each, f"{code} {each}") for each in choices] if code else []
        self._put(title, text, buttons, code, link.address if link is not None else "")
        answers = []
        if code:
            answers.append(ntfy.answered(self._replies, code, self._clock))
        if link is not None and self._questions is not None:
            answers.append(self._questions.answered(link))
        waiting = [asyncio.ensure_future(one) for one in answers]
        late = None
        try:
            done, _ = await asyncio.wait(waiting, timeout=self._patience, return_when=asyncio.FIRST_COMPLETED)
            said = next((one.result() for one in waiting if one in done), None)
        finally:
            for one in waiting:
                one.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
            if link is not None and self._questions is not None:
                late = self._questions.settle(link)
        said = late if said is None else said
        return None if said is None else sanitize(said)

    def _link(self, title: str, text: str, choices: Sequence[str]) -> Link | None:
        """The link of a question; None if none was asked for, or the disk takes nothing."""
        if self._questions is None:
            return None
        mask = self._redactor.text
        question = Question(
            title=one_line(mask(title), _TITLE),
            text=one_line(mask(text), LONGEST_TEXT),
            choices=tuple(one_line(mask(each), _TITLE) for each in choices),
        )
        try:
            return self._questions.ask(question, self._patience)
        except OSError as error:
            self._say(f"a question has no link: {error.strerror or error}")
            return None

    def _put(
        self, title: str, text: str, answers: Sequence[tuple[str, str]] = (), code: str = "", link: str = ""
    ) -> None:
        """Send a notice when it can be sent. `answers`: label and body of buttons; a code and a link take words too."""
        mask = self._redactor.text
        ways = [
            *([f"an answer in words: publish {code} and what you say to {self._replies}"] if code else []),
            *([f"answer at {link}"] if link else []),
        ]
        how = f" ({'; '.join(ways)})"[:LONGEST_TEXT] if ways else ""
        notice = Notice(
            one_line(mask(title), _TITLE),
            clipped(one_line(mask(text), LONGEST_TEXT), LONGEST_TEXT - len(how)) + how,
            tuple(answers[:_BUTTONS]),
            link,
        )
        self._queue(notice, list(self._ways))

    async def close(self, seconds: float = PATIENCE) -> None:
        """Try for a little longer, and say what waits for the next process."""
        if self._sending:
            await asyncio.wait(self._sending.values(), timeout=seconds)
        for task in self._sending.values():
            task.cancel()
        await asyncio.gather(*self._sending.values(), return_exceptions=True)
        later = "" if self._outbox is None else " yet, and kept for the next run"
        for notice in {each: None for waiting in self._waiting.values() for _, each in waiting}:
            self._say(f"not sent{later}: {notice.title}: {notice.text}")
        self._write(lambda outbox: outbox.close())
        if self._questions is not None:
            self._questions.close()

    def _queue(self, notice: Notice, ways: Sequence[str]) -> None:
        number = self._write(lambda outbox: outbox.keep(notice, ways)) if ways else None
        for way in ways:
            waiting = self._waiting[way]
            waiting.append((-1 if number is None else number, notice))
            while len(waiting) > _MOST:
                self._gone(way, 1)  # the first is perhaps on its way
            if way not in self._sending or self._sending[way].done():
                self._sending[way] = asyncio.create_task(self._send(way))

    async def _send(self, way: str) -> None:
        waiting, delay = self._waiting[way], _FIRST
        while waiting:
            try:
                await self._ways[way](waiting[0][1])
            except (OSError, ValueError, TimeoutError):
                await self._clock.sleep(delay)
                delay = min(2 * delay, _LAST)
            else:
                self._gone(way, 0)
                delay = _FIRST

    def _gone(self, way: str, place: int) -> None:
        number, _ = self._waiting[way].pop(place)
        self._write(lambda outbox: outbox.gone(number, way))

    def _write(self, do: Callable[[Outbox], int | None]) -> int | None:
        """Write to the disk. If it takes nothing, notices wait in memory alone."""
        if self._outbox is not None:
            try:
                return do(self._outbox)
            except OSError as error:
                self._outbox = None
                self._say(f"notices that wait are not kept: {error.strerror or error}")
        return None


def questions_in(folder: Path) -> Path:
    """Where the questions of links are kept, in the folder of notices."""
    return folder / "questions"


def notices_folder(state_dir: Path) -> Path:
    """Where notices that wait are kept."""
    return state_dir / "notices"


def notices_of(settings: Settings, say: Callable[[str], None] = lambda _: None) -> Notices:
    """The notices of these settings; what waits is kept in the state folder."""
    redactor = Redactor.from_environment(os.environ)
    return Notices(settings.notify, notices_folder(settings.state_dir), Clock(), say, redactor)


async def tell(settings: Settings, title: str, text: str) -> None:
    """Tell a person who is away of an end, if the settings say how."""
    if settings.notify.reaches_out:
        notices = notices_of(settings)
        notices.begin()
        notices.put(title, text)
        await notices.close()


def _ways(settings: NotifySettings) -> Iterator[tuple[str, Callable[[Notice], Awaitable[None]]]]:
    if settings.webhook:
        yield "webhook", partial(_posted, settings.webhook, _for_webhook, {})
    if settings.ntfy:
        server, _, topic = settings.ntfy.rstrip("/").rpartition("/")
        form = partial(_for_ntfy, topic, settings.replies.rstrip("/"))
        yield "ntfy", partial(_posted, f"{server}/", form, ntfy.access())
    if settings.command:
        yield "command", partial(_by_command, settings.command)


Form = Callable[[Notice], dict[str, object]]


def _for_webhook(notice: Notice) -> dict[str, object]:
    return {"title": notice.title, "text": notice.text, **({"link": notice.link} if notice.link else {})}


def _for_ntfy(topic: str, replies: str, notice: Notice) -> dict[str, object]:
    return ntfy.published(topic, notice.title, notice.text, replies, notice.answers, notice.link)


async def _posted(address: str, form: Form, headers: dict[str, str], notice: Notice) -> None:
    await ntfy.in_a_thread(lambda: ntfy.post(address, form(notice), headers))


async def _by_command(command: tuple[str, ...], notice: Notice) -> None:
    """Run a command with the notice in its variables. Raises `OSError` if it fails."""
    told = {
        "AGENT_TUI_TITLE": notice.title,
        "AGENT_TUI_TEXT": notice.text,
        "AGENT_TUI_LINK": notice.link,
    }
    async with (
        asyncio.timeout(_SECONDS),
        leashed(command, cwd=Path.home(), env={**os.environ, **told}) as running,
    ):
        await running.child.output(limit=0)
        if running.code:
            raise OSError(f"exit code {running.code}")
