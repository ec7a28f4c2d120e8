"""A pane that is added is known wherever panes are: the dashboard, jump mode, the help, the commands."""

from __future__ import annotations

import pytest

from tests.console.live_harness import live
from tui_agent.console import panes
from tui_agent.console.looks.pane_facts import SLIM_WIDTH, PaneFacts
from tui_agent.console.looks.splash import conversation_width
from tui_agent.console.panes.dashboard import FRAME
from tui_agent.console.panes.pane import StatePane
from tui_agent.console.screens.help import sections
from tui_agent.console.screens.jump import OTHERS
from tui_agent.core.state import RunState
from tui_agent.frontend.lines.styled import Line, Span


class StepsPane(StatePane):
    """The step that the run is at."""

    facts = PaneFacts("steps", "Steps", "The step that the run is at.", "s", row=-1)
    _step = 0

    def show(self, state: RunState, now: float) -> None:
        self._step = state.run.iteration
        self.redraw()

    def draw(self, width: int, height: int) -> list[Line]:
        return [(Span(f"at step {self._step}"),)]


async def test_a_pane_needs_its_file_and_one_registration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panes, "RECOVERY_PANES", (*panes.RECOVERY_PANES, StepsPane))
    assert ("Steps", "The step that the run is at.") in [row for _, rows in sections() for row in rows]
    assert dict(sections("steps"))["This pane"] == [("Steps", "The step that the run is at.")]
    async with live((120, 40)) as console:
        console.session.start()
        await console.until(lambda: "at step 1" in console.shown())
        frame = console.screen.query_one("ConversationFrame")
        assert frame.outer_size.width == conversation_width(120, 40)
        order = [
            pane.id for pane in console.screen.query(StatePane) if pane.region.x > frame.region.right - 1
        ]
        assert order == ["steps", "ring", "confidence", "attempts", "note", "timeline"]
        await console.press("ctrl+o")
        await console.until(lambda: " s Steps " in console.shown())
        await console.press("s")
        await console.until(lambda: console.screen.focused.id == "steps")
        await console.press("f3")
        await console.until(lambda: console.screen.focused.id != "steps")
        console.screen.commands.run("jump", "steps")
        await console.until(lambda: console.screen.focused.id == "steps")
        console.screen.commands.run("panes", "full")
        await console.until(lambda: "Trends" in console.shown() and "at step 1" in console.shown())
        await console.pilot.resize_terminal(200, 60)
        console.screen.commands.run("panes", "wide")
        steps, ring, note = (console.screen.query_one(f"#{name}") for name in ("steps", "ring", "confidence"))
        await console.until(lambda: 0 < steps.region.bottom == ring.region.y == note.region.y)
        assert steps.region.right == note.region.right


def test_no_two_panes_have_one_name_one_letter_or_one_place() -> None:
    facts = panes.pane_facts()
    letters = [*(each.letter for each in facts), *OTHERS.values()]
    places = [(pane.facts.row, pane.facts.column) for pane in panes.RECOVERY_PANES]
    for each in (letters, places, [each.name for each in facts], [each.title for each in facts]):
        assert len(set(each)) == len(each)


def test_every_pane_beside_the_conversation_has_room_in_the_slim_side() -> None:
    assert all((pane.facts.columns or 0) <= SLIM_WIDTH - FRAME for pane in panes.RECOVERY_PANES)
