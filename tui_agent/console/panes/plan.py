"""Plan: how far the model's todo list is, in one line below the panes, or the list itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.console.looks.pane_facts import PaneFacts
from tui_agent.console.panes.rows import Rows
from tui_agent.core.projections.plan import Plan, PlanStep
from tui_agent.frontend.lines.styled import Line, Span, clip, fit, width_of, wrap
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from textual.events import Click

    from tui_agent.core.state import RunState

SHOWN = 8
"""Steps that are listed; of more, those around the one in progress."""
_SIGNS = {"completed": ("✓", "success"), "in_progress": ("▸", "accent bold"), "pending": ("○", "muted")}
_IN_FULL_FIRST = ("in_progress", "pending", "completed")


class PlanLine(Rows):
    """`Plan 2/5 · now: …`; a click or `/plan` opens the list. Takes no room while there is no plan, or only that of an
    earlier task.
    """

    DEFAULT_CSS = """
    PlanLine { display: none; }
    """

    facts = PaneFacts(
        "plan",
        "Plan",
        "How far the model is in the plan that it keeps, in one line; {plan} or a click opens the list.",
    )
    opened = False

    def __init__(self) -> None:
        super().__init__(id=self.facts.name)

    def show(self, state: RunState, now: float) -> None:
        plan = state.conversation.plan
        self.display = plan is not None and not plan.earlier
        super().show(state, now)

    def toggle(self) -> bool:
        """Open the list, or close it. False if there is no plan."""
        self.opened = not self.opened and self.display
        self.redraw()
        return self.display

    def on_click(self, event: Click) -> None:
        event.stop()
        self.toggle()

    def draw(self, state: RunState, now: float, width: int) -> list[Line]:
        plan = state.conversation.plan
        if plan is None:
            return []
        room = min(SHOWN, max(1, self.app.size.height // 3))
        left = not state.running
        return [_headline(plan, left, width), *(_steps(plan, width, room) if self.opened else ())]


def _headline(plan: Plan, left: bool, width: int) -> Line:
    """How far it is; `left`: nobody works on it."""
    count, _, rest = plan.summary.partition(" · ")
    what, colon, step = rest.partition(": ")
    if left and colon:
        what = "left at"
    line = (
        Span("Plan ", "muted"),
        Span(count, "success" if plan.finished else "bold"),
        Span(f" · {what}{colon}", "muted"),
    )
    return clip((*line, Span(fit(one_line(step), max(1, width - width_of(line))))), width)


def _steps(plan: Plan, width: int, room: int) -> list[Line]:
    """Steps around the one in progress, and the numbers left out before and after; in full if there are rows
    for that, first of all the one in progress.
    """
    at = plan.steps.index(plan.now) if plan.now is not None else len(plan.steps)
    rows = room if plan.now is None else max(1, room + 1 - len(_step(plan.now, width)))
    first = max(0, min(at - rows // 2, len(plan.steps) - rows))
    shown = plan.steps[first : first + rows]
    blocks = [_step(step, width, short=True) for step in shown]
    if first:
        blocks[0] = [_left_out(first + 1, "done before", width)]
    after = len(plan.steps) - first - len(shown)
    if after:
        blocks[-1] = [_left_out(after + 1, "more", width)]
    spare = room - len(blocks)
    whole = range(1 if first else 0, len(blocks) - (1 if after else 0))
    for place in sorted(whole, key=lambda place: _IN_FULL_FIRST.index(shown[place].status)):
        block = _step(shown[place], width)
        if len(block) - 1 <= spare:
            spare -= len(block) - 1
            blocks[place] = block
    return [line for block in blocks for line in block]


def _left_out(count: int, what: str, width: int) -> Line:
    return clip((Span(f"  … {count} {what}", "muted"),), width)


def _step(step: PlanStep, width: int, *, short: bool = False) -> list[Line]:
    """The step, wrapped; `short`: in one line."""
    glyph, role = _SIGNS[step.status]
    body = "muted" if step.status == "completed" else role if step.status == "in_progress" else ""
    room = max(1, width - 4)
    texts = [fit(one_line(step.text), room)] if short else wrap(one_line(step.text), room)
    return [
        clip((Span(f"  {' ' if number else glyph} ", role), Span(text, body)), width)
        for number, text in enumerate(texts)
    ]
