"""What /cost says."""

from __future__ import annotations

from tests.console.panes.stories import tripped
from tui_agent.frontend.lines.reports import cost_lines
from tui_agent.frontend.lines.styled import text_of


def test_a_cost_of_which_nothing_is_known_is_no_least_sum() -> None:
    lines = "\n".join(text_of(line) for line in cost_lines(tripped().state, 0.0, 200))
    assert "cost unknown" in lines
    assert "5 calls of this run without a known price." in lines
