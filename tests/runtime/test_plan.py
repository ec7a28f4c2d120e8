"""The model's plan: kept by its calls alone, shown, and gone back with the conversation."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from tests.runtime.session_harness import replayed, start_session
from tui_agent.core import events
from tui_agent.core.request import compaction
from tui_agent.headless_output import Outlet, presenter


def planned(*statuses: str) -> dict[str, Any]:
    steps = [{"step": f"step {number}", "status": status} for number, status in enumerate(statuses, start=1)]
    return {"calls": [{"tool": "update_plan", "args": {"plan": steps}}]}


async def test_a_plan_is_the_newest_call_and_asks_nobody(tmp_path: Path) -> None:
    turns = [planned("in_progress", "pending"), planned("in_progress", "in_progress"), planned("completed", "pending"),
             "done"]  # fmt: skip
    live = await start_session(tmp_path, turns, approve="ask")
    errors = io.StringIO()
    shown = presenter("text", Outlet(io.StringIO()), errors)
    live.session.subscribe(shown.event)
    await live.run()
    plan = live.state.conversation.plan
    assert plan is not None
    assert (plan.summary, plan.as_text()) == ("1/2 · next: step 2", "[x] step 1\n[ ] step 2")
    assert not live.operator.asked
    (failed,) = live.of(events.ToolFailed)
    assert "2 steps are in_progress; at most one can be" in failed.failure.message
    assert "✓ plan 0/2 · now: step 1" in errors.getvalue()
    await live.close()
    assert replayed(live.session).conversation.plan == plan


async def test_a_finished_plan_leaves_with_the_next_task_and_a_rewind_brings_the_older_one_back(
    tmp_path: Path,
) -> None:
    turns = [planned("pending"), "first", planned("completed"), "second", "third"]
    live = await start_session(tmp_path, turns)
    await live.run("begin")
    await live.run("go on")
    plan = live.state.conversation.plan
    assert plan is not None
    assert plan.finished
    await live.run("something else")
    assert live.state.conversation.plan is None
    point = next(p for p in live.session.rewinding.points() if p.seq < plan.seq)
    await live.session.rewinding.carry_out(await live.session.rewinding.plan(point, "conversation"))
    older = live.state.conversation.plan
    assert older is not None
    assert older.summary == "0/1 · next: step 1"
    await live.session.rewinding.carry_out(await live.session.rewinding.plan_undo())
    assert live.state.conversation.plan is None
    await live.close()


async def test_plan_and_background_commands_survive_a_summary(tmp_path: Path) -> None:
    summary = {"anywhere": True, "when": {"user": compaction.OPENING}, "text": "Goal: all of it."}
    wait = {"calls": [{"tool": "bash", "args": {"command": "sleep 600", "background": True}}]}
    read = {"calls": [{"tool": "read_file", "args": {"path": "long.txt"}}]}
    turns = [summary, planned("completed", "in_progress"), wait, read, "first", "second"]
    live = await start_session(tmp_path, turns, files={"long.txt": "word " * 4_000})
    await live.run()
    live.session.compact("")
    await live.session.wait()
    await live.run("go on")
    sent = "\n".join(str(message["content"]) for message in live.sent())
    assert "[Your plan as it stands:\n- [x] step 1\n- [>] step 2]" in sent
    assert "[Commands that run in the background:\n- b1: sleep 600]" in sent
    await live.close()
