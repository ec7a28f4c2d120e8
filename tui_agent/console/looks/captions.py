"""A demo's captions: what is on the screen, said once at the moments that matter.

A request waits while one is read; none of it is recorded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from textual.content import Content
from textual.widget import Widget

from tui_agent.console.looks.hints import key_line
from tui_agent.core.names import Phase
from tui_agent.models.scenario import Caption, CaptionMoment

if TYPE_CHECKING:
    from tui_agent.core.events import Event
    from tui_agent.core.state import RunState


def _another_way(state: RunState) -> bool:
    return state.verdict is not None and state.verdict.level == "pivot"


def _recovered(state: RunState) -> bool:
    """A tool's failure was made good by another call."""
    made_good = (incident.recovery for incident in state.metrics.incidents.recovered)
    return any(recovery is not None and recovery.tool for recovery in made_good)


HOLDS: Mapping[CaptionMoment, Callable[[RunState], bool]] = {
    CaptionMoment.BEGUN: lambda state: state.run.number > 0,
    CaptionMoment.FAILED: lambda state: state.metrics.tool_errors > 0,
    CaptionMoment.ANOTHER_WAY: _another_way,
    CaptionMoment.RECOVERED: _recovered,
    CaptionMoment.MODEL_FAULT: lambda state: state.phase is Phase.BACKOFF,
    CaptionMoment.SUMMARISED: lambda state: state.compacting is not None,
    CaptionMoment.APPROVAL: lambda state: bool(state.approvals),
    CaptionMoment.QUESTION: lambda state: state.escalation is not None,
    CaptionMoment.DONE: lambda state: state.phase is Phase.DONE,
}
QUESTIONS = frozenset({CaptionMoment.APPROVAL, CaptionMoment.QUESTION})
"""Moments that last until the operator has answered: a card has the keys."""

LOW = 24
"""Rows of a terminal below which a card needs all the room there is."""


class Captions(Widget):
    """One caption at a time; each goes when it was read, that of a question with its answer."""

    DEFAULT_CSS = """
    Captions {
        display: none; height: auto; padding: 0 1; background: $panel; border-left: thick $accent;
    }
    """

    def __init__(self, captions: Sequence[Caption]) -> None:
        super().__init__()
        self._all = captions
        self._coming = list(captions)
        self.shown: Caption | None = None
        self._read = asyncio.Event()
        self._read.set()

    def take(self, _: Event, state: RunState) -> None:
        """Show the caption whose moment has come, unless another one is being read."""
        if self.shown is not None and self.shown.moment in QUESTIONS and not HOLDS[self.shown.moment](state):
            self._show(None)
        if self.shown is None:
            caption = next((each for each in self._coming if HOLDS[each.moment](state)), None)
            if caption is not None:
                self._coming.remove(caption)
                self._show(caption)

    async def wait_until_read(self) -> None:
        """Wait while a caption is shown that is no question's."""
        await self._read.wait()

    @property
    def waits(self) -> bool:
        """A caption waits to be read: Enter goes on."""
        return self.shown is not None and self.shown.moment not in QUESTIONS

    def go_on(self) -> None:
        """The caption was read."""
        if self.waits:
            self._show(None)

    def skip(self) -> None:
        """Show no more captions."""
        self._coming.clear()
        self._show(None)

    def _show(self, caption: Caption | None) -> None:
        self.shown = caption
        self.display = caption is not None and (self.waits or self.app.size.height >= LOW)
        if self.waits:
            self._read.clear()
        else:
            self._read.set()
        self.refresh(layout=True)

    def on_click(self) -> None:
        self.go_on()

    def render(self) -> Content:
        """The text, which one it is of how many, and the keys."""
        if self.shown is None:
            return Content()
        ways = (("Enter", "go on"),) if self.waits else ()
        place = f"{self._all.index(self.shown) + 1} of {len(self._all)}"
        last = Content.assemble((f"{place}  ", "$text-muted"), key_line(*ways, ("Esc", "no captions")))
        return Content(f"{self.shown.text}\n").append(last)
