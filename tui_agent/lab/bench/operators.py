"""Who answers: nobody, or somebody who answers well, badly, late or never. All of it costs time on the run's clock."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Literal

from tui_agent.core.events import ApprovalAsked, EscalationRaised, ServerAsked
from tui_agent.core.names import OnEscalation
from tui_agent.lab.bench.case import Case
from tui_agent.lab.bench.clock import Clock
from tui_agent.runtime.operator import ApprovalReply, EscalationReply, GateReply, RequestOutline, ServerReply

Kind = Literal["absent", "well", "badly", "late", "never"]
OPERATORS: tuple[Kind, ...] = ("absent", "well", "badly", "late", "never")

_SECONDS = {"well": 20.0, "badly": 20.0, "late": 900.0, "never": 3_600.0}
"""Until the answer comes; the one who never answers is waited for so long, then the run is ended."""

CARRY_ON = "Go on as you were; nothing is wrong."
"""The words of somebody who knows about a healthy run."""


class BenchOperator:
    """Implements `runtime.operator.Operator`. `next_note` may change what the model is told before each step, and
    may end the run by never coming back.
    """

    def __init__(
        self,
        kind: Kind,
        case: Case,
        clock: Clock,
        stop: Callable[[str], None],
        next_note: Callable[[str | None], Awaitable[str | None]],
        on_escalation: OnEscalation,
    ) -> None:
        self.kind = kind
        self.asked = 0
        """Questions that somebody was asked."""
        self.first_asked: float | None = None
        """Second of the run in which somebody was asked first."""
        self._case = case
        self._clock = clock
        self._stop = stop
        self._next_note = next_note
        self._on_escalation = on_escalation

    @property
    def present(self) -> bool:
        return self.kind != "absent"

    @property
    def words(self) -> str:
        """This operator's answer."""
        if self.kind == "badly":
            return self._case.bad
        return self._case.good or CARRY_ON

    async def think(self) -> None:
        """Wait until an answer comes; for ever if none does."""
        self.asked += 1
        if self.first_asked is None:
            self.first_asked = self._clock.passed
        self._clock.pass_(_SECONDS[self.kind])
        if self.kind == "never":
            self._stop("Nobody answered for an hour.")
            await asyncio.Event().wait()

    async def approve(self, asked: ApprovalAsked) -> ApprovalReply:
        """Nothing needs an approval here but what no mode allows."""
        return ApprovalReply("deny", "nobody allows that here", by="policy")

    async def answer(self, raised: EscalationRaised) -> EscalationReply:
        """By words if somebody is here. A model that cannot be used is tried again once by the one who knows."""
        if not self.present:
            return EscalationReply(self._on_escalation, by="policy")
        await self.think()
        if raised.source == "model":
            return EscalationReply("retry" if self.asked < 4 else "partial")
        if self.kind == "badly" and self.asked % 2:
            return EscalationReply("retry")
        return EscalationReply("answer", self.words)

    async def consult(self, asked: ServerAsked) -> ServerReply:
        """No server is started."""
        return ServerReply("decline", by="policy")

    async def gate(self, outline: RequestOutline) -> GateReply:
        """The next iteration goes out with the note as the contestant wants it."""
        return GateReply(await self._next_note(outline.note))
