"""The plan's line: what it says, what it opens to, and that it takes no room without a plan."""

from __future__ import annotations

from typing import Any

import pytest
from textual.app import App, ComposeResult

from tests.console.panes.stories import Story
from tui_agent.console.panes import PlanLine
from tui_agent.core import events
from tui_agent.frontend.lines.styled import text_of, width_of


class Shown(App[None]):
    def compose(self) -> ComposeResult:
        yield PlanLine()


def planned(*steps: tuple[str, str]) -> Story:
    story = Story().run("Go.")
    story.ask_model()
    plan = [{"step": text, "status": status} for text, status in steps]
    (call,) = story.reply("", ("update_plan", {"plan": plan}))
    return story.succeed(call, "The plan is shown.")


LONG = [(f"step {n}", "completed") for n in range(6)] + [("now\x1b[2J this", "in_progress")] + [
    (f"later {n} [red]", "pending") for n in range(9)
]  # fmt: skip


@pytest.mark.parametrize("size", [(24, 10), (60, 30), (140, 50)])
async def test_the_plan_opens_around_the_step_in_progress_and_fits(size: tuple[int, int]) -> None:
    async with Shown().run_test(size=size) as pilot:
        line = pilot.app.query_one(PlanLine)
        assert not line.display or not line.lines
        assert not line.toggle()
        story: Any = planned(*LONG)
        line.show(story.state, story.now)
        await pilot.pause()
        line.show(story.state, story.now)
        await pilot.pause()
        assert text_of(line.lines[0]).startswith("Plan 6/16 · now: now"[: size[0] - 2])
        assert len(line.lines) == 1
        assert line.toggle()
        rows = [text_of(row) for row in line.lines]
        assert all(width_of(row) <= size[0] - 2 for row in line.lines)
        assert any("▸ now" in row for row in rows)
        assert "\x1b" not in "".join(rows)
        assert "done before" in rows[1]
        assert "more" in rows[-1]
        assert len(rows) <= 1 + max(1, size[1] // 3)
        line.toggle()
        assert len(line.lines) == 1


async def test_a_long_step_is_read_in_full_where_there_are_rows_for_it() -> None:
    now = "change the function so that it does what its name says, wherever it is used, and say so"
    async with Shown().run_test(size=(50, 20)) as pilot:
        line = pilot.app.query_one(PlanLine)
        story: Any = planned(*((f"done {n}", "completed") for n in range(9)), (now, "in_progress"))
        line.show(story.state, story.now)
        await pilot.pause()
        line.toggle()
        rows = [text_of(row) for row in line.lines]
        assert "▸ " + now in " ".join(" ".join(rows).split())
        assert len(rows) <= 1 + 20 // 3


async def test_a_plan_that_nobody_works_on_says_where_it_was_left() -> None:
    async with Shown().run_test(size=(60, 30)) as pilot:
        line = pilot.app.query_one(PlanLine)

        async def headline(story: Story) -> str:
            line.show(story.state, story.now)
            await pilot.pause()
            line.show(story.state, story.now)
            return text_of(line.lines[0])

        steps = (("read", "completed"), ("mend", "in_progress"))
        story: Any = planned(*steps)
        assert await headline(story) == "Plan 1/2 · now: mend"
        story.add(events.RunFinished(outcome=events.Outcome.ANSWERED, answer="Half of it is done."))
        assert await headline(story) == "Plan 1/2 · left at: mend"
        story.run("Something else.")
        line.show(story.state, story.now)
        assert not line.display, "it is the plan of an earlier task"
        story.ask_model()
        (call,) = story.reply("", ("update_plan", {"plan": [{"step": "mend", "status": "in_progress"}]}))
        story.succeed(call, "The plan is shown.")
        assert await headline(story) == "Plan 0/1 · now: mend"
