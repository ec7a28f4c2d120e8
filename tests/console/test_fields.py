"""Fields that have no room."""

from __future__ import annotations

import pytest
from textual.app import App, ComposeResult
from textual.widgets import TextArea

from tests.console.waiting import picture
from tui_agent.console.completion import Completions
from tui_agent.console.fields import TextField
from tui_agent.console.prompt import Prompt


@pytest.mark.parametrize("columns", range(1, 6))
async def test_a_placeholder_without_columns_is_not_drawn(columns: int) -> None:
    class Narrow(App[None]):
        CSS = f"Screen > * {{ width: {columns}; padding: 0 1; }}"

        def compose(self) -> ComposeResult:
            yield TextField(placeholder="what goes here")
            yield Prompt(Completions(lambda _: ()))

    async with Narrow().run_test(size=(16, 8)) as pilot:
        await pilot.pause()
        picture(pilot.app)
        assert len(pilot.app.query(TextArea)) == 2
