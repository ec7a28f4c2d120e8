"""Commands in the background and the plan, in the console: seen in a line, opened, stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.console.live_harness import live
from tests.console.real_session import real_live
from tui_agent.console.panes import PlanLine, StatusLine
from tui_agent.console.screens.ask import AskScreen
from tui_agent.console.screens.background import BackgroundScreen
from tui_agent.core.events import Approval, BackgroundStarted, ToolSucceeded
from tui_agent.frontend.lines.styled import text_of


async def test_background_commands_are_counted_listed_and_stopped() -> None:
    async with live((100, 30)) as console:
        await console.say("/background")
        console.session.record(
            BackgroundStarted(id="b1", command="npm run dev\x1b]0;t\x07"),
            BackgroundStarted(id="b2", command="[red]"),
        )
        await console.until(lambda: "⚙ 2" in text_of(console.screen.query_one(StatusLine).lines[0]))
        await console.say("/background")
        await console.opens(BackgroundScreen)
        await console.press("2", "enter")
        await console.until(lambda: list(console.session.state.background.running) == ["b1"])
        await console.until(lambda: "⚙ 1" in text_of(console.screen.query_one(StatusLine).lines[0]))
        await console.say("/background stop b1")
        await console.until(lambda: not console.session.state.background.running)
        await console.until(lambda: "⚙" not in text_of(console.screen.query_one(StatusLine).lines[0]))


async def test_what_a_command_printed_last_is_shown_as_it_comes(tmp_path: Path) -> None:
    log = tmp_path / "background-b1.txt"
    log.write_text("".join(f"line {n}\n" for n in range(3_000)) + "10%\r20%\x1b]0;title\x07\n")
    async with live((80, 24)) as console:
        console.session.record(
            BackgroundStarted(id="b1", command="serve", output_file=str(log)),
            BackgroundStarted(id="b2", command="quiet", output_file=str(tmp_path / "none.txt")),
        )
        await console.say("/background")
        await console.opens(BackgroundScreen)
        await console.until(
            lambda: "line 2999" in console.shown() and "nothing printed yet" in console.shown()
        )
        assert "20%" in console.shown()
        assert "10%" not in console.shown()
        assert "title" not in console.shown()
        with log.open("a") as file:
            file.write("and one more\n")
        await console.until(lambda: "and one more" in console.shown())


async def test_many_long_commands_leave_the_choices_in_sight() -> None:
    async with live((60, 20)) as console:
        console.session.record(
            *(BackgroundStarted(id=f"b{n}", command=f"server {n} {'--option ' * 20}") for n in range(1, 5))
        )
        await console.say("/background")
        await console.opens(BackgroundScreen)
        await console.until(lambda: "4 stop b4" in console.shown() and "PgDn read on" in console.shown())
        assert "⚙ b4" not in console.shown()
        await console.press("pagedown", "pagedown")
        await console.until(lambda: "⚙ b4" in console.shown())


async def test_a_long_question_is_read_to_its_end_in_a_terminal_of_any_size() -> None:
    text = f"{'Some words that are wrapped somewhere else. ' * 40}\n\nIts end."
    async with live((80, 24)) as console:
        await console.app.push_screen(AskScreen("Really?", text, ("y", "yes"), ("n", "no")))
        await console.until(lambda: "PgDn read on" in console.shown())
        await console.pilot.resize_terminal(200, 60)
        await console.until(lambda: "Its end." in console.shown() and "PgDn" not in console.shown())
        await console.pilot.resize_terminal(80, 24)
        await console.until(lambda: "PgDn read on" in console.shown())
        await console.press(*["pagedown"] * 4)
        await console.until(lambda: "Its end." in console.shown())


async def test_the_plan_appears_opens_by_its_key_and_leaves_the_prompt_alone() -> None:
    async with live((60, 24)) as console:
        console.session.start()
        plan: Any = [
            {"step": f"step {n} " * 9, "status": "completed" if n < 3 else "pending"} for n in range(6)
        ]
        console.session.record(ToolSucceeded(call_id="1", tool="update_plan", input={"plan": plan}))
        line = console.screen.query_one(PlanLine)
        await console.until(lambda: line.display and line.size.height == 1)
        assert text_of(line.lines[0]).startswith("Plan 3/6 · next: step 3")
        await console.type("draft")
        await console.press("f7")
        await console.until(lambda: line.size.height == 9)
        assert console.prompt == "draft"
        await console.press("f7")
        await console.until(lambda: line.size.height == 1)


PLAN = "# The plan\n\n1. Read **`cart.py`**.\n2. Add the tax. DONE-MARK"
BY_REPLY: Any = PLAN
BY_FINISH: Any = {"calls": [{"tool": "finish", "args": {"answer": PLAN}}]}


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
@pytest.mark.parametrize("turn", [BY_REPLY, BY_FINISH])
async def test_a_plan_stands_once_and_rendered_and_is_kept_as_kept(
    tmp_path: Path, turn: Any, size: tuple[int, int]
) -> None:
    async with real_live(tmp_path, ["Read cart.py.", turn], size=size) as console:
        session = console.session
        session.set_approve(Approval.PLAN)
        await session.submit("Plan the tax.")
        await console.until(lambda: "s keep it as the answer" in console.shown())
        console.screen.card_host.enter()
        await console.press(*"more", "enter")
        await console.until(
            lambda: "s keep it as the answer" in console.shown() and "MARK" in console.shown()
        )
        seen = console.shown()
        assert ("**" in seen, seen.count("# The plan"), seen.count("DONE-MARK")) == (False, 0, 1)
        console.screen.card_host.enter()
        await console.until(lambda: "PgUp read the plan" in console.shown())
        await console.press("s", "enter")
        await console.until(lambda: not session.running and "keep it as the answer" in console.shown())
        seen = console.shown()
        assert ("**" in seen, seen.count("# The plan"), seen.count("DONE-MARK")) == (False, 0, 1)
        assert session.state.run.answer == PLAN
