"""The second model of a run, which `[recovery] advisor` asks at a pivot: scripted, and in front of the first one.

It knows the case and the machine's position in it, which no real model does. So `right` is the most that a
suggestion can bring, and `wrong` about the most harm that one can do.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Literal

from tui_agent.core.events import Fault
from tui_agent.core.names import FaultKind
from tui_agent.lab.bench.behaviours import Machine, clocked
from tui_agent.lab.bench.case import Call
from tui_agent.lab.bench.clock import Clock
from tui_agent.lab.bench.operators import CARRY_ON
from tui_agent.models.protocol import Delta, Model, ModelFault, ModelRequest, Reply
from tui_agent.runtime.model_call import ADVICE_PATIENCE

ADVISER = "adviser"
"""The name of the second model."""

Kind = Literal["", "right", "wrong", "late"]
"""Names what works here, or a call that does not; or says nothing until its time is over."""

_NOWHERE = Call("list_dir", {"path": "backup"})
"""The way that `wrong` names if the case has no wrong way of its own."""


class AdvisedModel:
    """Implements `models.protocol.Model`: the model of a run, and its adviser."""

    def __init__(self, model: Model, kind: Kind, machine: Machine, clock: Clock) -> None:
        self._model = model
        self._kind = kind
        self._machine = machine
        self._clock = clock
        self.start, self.context_tokens, self.close = model.start, model.context_tokens, model.close

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta | Reply, None]:
        """See `protocol.Model`."""
        if request.model != ADVISER:
            async for piece in self._model.stream(request):
                yield piece
        elif self._kind == "late":
            self._clock.pass_(ADVICE_PATIENCE)
            raise ModelFault(Fault(kind=FaultKind.TIMEOUT, message="The adviser is silent"))
        else:
            yield clocked(Reply(text=self._words(), finish_reason="stop"), request, self._clock)

    def _words(self) -> str:
        step = self._machine.step
        if self._kind == "wrong":
            named = next(iter((*step.other, *step.near)), _NOWHERE) if step else _NOWHERE
        elif step is None or step.fails or step.only_told:
            return CARRY_ON
        else:
            # What heals by itself: the call in other words, since the very same one may be barred by now.
            named = next(iter((*step.cure, *step.near)), step.call)
        return f"Do something else: {named.tool} {named.sent}"
