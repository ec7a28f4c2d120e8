"""The operator at the screen: each question to the operator is a value with a future that a card sets.

The loop awaits; the screen shows one question at a time and settles it. A question that is cancelled (the run
was interrupted) leaves the list by itself. Nothing here draws.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from tui_agent.runtime.operator import GateReply

if TYPE_CHECKING:
    from tui_agent.core.events import ApprovalAsked, EscalationRaised, ServerAsked
    from tui_agent.core.names import Mode
    from tui_agent.runtime.operator import (
        ApprovalReply,
        EscalationReply,
        RequestOutline,
        ServerReply,
    )

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")


class Answers(Protocol):
    """Whoever answers questions."""

    async def approve(self, asked: ApprovalAsked) -> ApprovalReply: ...

    async def answer(self, asked: EscalationRaised, /) -> EscalationReply: ...

    async def consult(self, asked: ServerAsked) -> ServerReply: ...


@dataclass(eq=False)
class Question(Generic[Asked, Answer]):
    """Something the loop waits for. `asked` never changes; `future` takes the one answer."""

    asked: Asked
    future: asyncio.Future[Answer] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    since: float = field(default_factory=time.time)
    """When it was asked, in seconds since the epoch."""

    def settle(self, answer: Answer) -> bool:
        """Give the answer. False if the question has been answered or withdrawn already."""
        if self.future.done():
            return False
        self.future.set_result(answer)
        return True


class ApprovalQuestion(Question["ApprovalAsked", "ApprovalReply"]):
    """Asks whether a call may run."""

    async def put_to(self, answers: Answers) -> None:
        """Have it answered by somebody else than the operator at the screen."""
        self.settle(await answers.approve(self.asked))


class EscalationQuestion(Question["EscalationRaised", "EscalationReply"]):
    """Asks how to go on after an escalation."""

    async def put_to(self, answers: Answers) -> None:
        """See `ApprovalQuestion.put_to`."""
        self.settle(await answers.answer(self.asked))


class WatchedQuestion(EscalationQuestion):
    """Our policy would ask about a session that is only looked at. `reach`: whether an answer comes to the agent, in a
    sentence; `reaches`: it does.
    """

    reach: str = ""
    reaches: bool = False


class ServerQuestion(Question["ServerAsked", "ServerReply"]):
    """Asks whether a tool server may start, or asks for a server."""

    async def put_to(self, answers: Answers) -> None:
        """See `ApprovalQuestion.put_to`."""
        self.settle(await answers.consult(self.asked))


class GateQuestion(Question["RequestOutline", "GateReply"]):
    """Asks whether the next request may go out, and with which note."""

    note: str | None = None
    """The note as it will be sent: the outline's, or what the operator made of it."""

    async def put_to(self, answers: Answers) -> None:
        """Let the request go out: nobody else is asked about one."""
        self.settle(GateReply(self.note))


AnyQuestion = ApprovalQuestion | EscalationQuestion | ServerQuestion | GateQuestion


AFTER_INTERRUPT = "Interrupted. What should it do instead?"
"""The question of an interrupted run, which goes on with the next message."""


class ConsoleOperator:
    """The console's implementation of `runtime.operator.Operator`.

    `changed` is called whenever the list of open questions changes. `auto` says whether requests go out without a
    key; until the screen has bound it, they do.
    """

    def __init__(
        self, changed: Callable[[], None] = lambda: None, auto: Callable[[], bool] = lambda: True
    ) -> None:
        self.questions: list[AnyQuestion] = []
        self._changed = changed
        self._auto = auto
        self.interrupted_in: Mode | None = None
        """The mode of the run that the operator interrupted, until it goes on: a message then goes at once."""
        self.before_request: Callable[[], Awaitable[object]] | None = None
        """Awaited before each request: a demo waits while its caption is read."""
        self.ask_away: Callable[[AnyQuestion], Coroutine[Any, Any, None]] | None = None
        """Asks somebody who is away, if nobody answers at the screen."""

    @property
    def present(self) -> bool:
        """Always: this operator sits at the screen."""
        return True

    @property
    def waiting_gate(self) -> GateQuestion | None:
        """The request that waits to go out, if one does."""
        return next((question for question in self.questions if isinstance(question, GateQuestion)), None)

    async def approve(self, asked: ApprovalAsked) -> ApprovalReply:
        """Show an approval card and wait for its decision."""
        question = ApprovalQuestion(asked)
        with self._shown(question):
            return await question.future

    async def answer(self, raised: EscalationRaised) -> EscalationReply:
        """Show an escalation card and wait for its answer."""
        question = EscalationQuestion(raised)
        with self._shown(question):
            return await question.future

    async def consult(self, asked: ServerAsked) -> ServerReply:
        """Show the card of a tool server and wait for its answer."""
        question = ServerQuestion(asked)
        with self._shown(question):
            return await question.future

    async def gate(self, outline: RequestOutline) -> GateReply:
        """Answer at once in AUTO; otherwise show the outline and wait for a key."""
        if self.before_request is not None:
            await self.before_request()
        if self._auto():
            return GateReply(outline.note)
        question = GateQuestion(outline)
        question.note = outline.note
        with self._shown(question):
            return await question.future

    def open_gate(self) -> bool:
        """Let the waiting request go out with its note as it stands. False if none waits."""
        gate = self.waiting_gate
        if gate is None:
            return False
        return gate.settle(GateReply(gate.note))

    def rewrite_note(self, note: str | None) -> bool:
        """Change or drop (None) the note of the waiting request. False if none waits."""
        gate = self.waiting_gate
        if gate is None:
            return False
        gate.note = note
        self._changed()
        return True

    @contextmanager
    def _shown(self, question: AnyQuestion) -> Iterator[None]:
        self.questions.append(question)
        self._changed()
        asking = (
            None
            if self.ask_away is None or isinstance(question, GateQuestion)
            else asyncio.create_task(self.ask_away(question))
        )
        try:
            yield
        finally:
            if asking is not None:
                asking.cancel()
            self.questions.remove(question)
            self._changed()
