"""What the strip says comes next is what the loop then does."""

from __future__ import annotations

from collections import deque
from pathlib import Path

import pytest

from tests.runtime.scripted import ScriptedOperator
from tests.runtime.session_harness import start_session
from tui_agent.core import events
from tui_agent.core.recovery.policy import PRESETS
from tui_agent.core.state import RunState
from tui_agent.frontend.lines.incident import LADDER, incident_lines, next_words, rung_of, told
from tui_agent.frontend.lines.styled import text_of
from tui_agent.runtime.operator import EscalationReply

FAILS = {"calls": [{"tool": "read_file", "args": {"path": "missing.py"}}]}


@pytest.mark.parametrize("present", [True, False])
@pytest.mark.parametrize("policy", PRESETS)
async def test_the_next_rung_that_the_strip_names_is_the_one_that_comes(
    tmp_path: Path, policy: str, present: bool
) -> None:
    reply = EscalationReply("answer", "try again") if present else EscalationReply("partial", by="policy")
    operator = ScriptedOperator(present=present, answers=deque([reply] * 2))
    live = await start_session(tmp_path, [FAILS] * 7 + ["Nothing there."], operator=operator, policy=policy)
    foreseen: list[str] = []
    came: list[str] = []
    """Of each step in which the call failed again, or was not run."""

    def follow(event: events.Event, state: RunState) -> None:
        match event:
            case events.ModelCallStarted():
                problem = told(state)
                foreseen.append("" if problem is None else next_words(problem.state, problem.incident))
                came.append("")
                ladder = " ".join(text_of(line) for line in incident_lines(state, 200, roomy=True))
                assert present or LADDER["escalate"].word not in ladder
            case events.ToolRefused():
                came[-1] = LADDER["withhold"].happens
            case events.ToolFailed():
                came[-1] = "failed"
            case events.VerdictReached(level=level) if came[-1] == "failed":
                ends = level is events.Level.ESCALATE and not present
                rung = LADDER.get("degrade" if ends else rung_of(level, noted=False))
                came[-1] = "" if rung is None else rung.happens
            case events.NotePrepared(text=str()) if came[-1] == LADDER["error"].happens:
                came[-1] = LADDER["note"].happens

    live.session.subscribe(follow)
    await live.run()
    await live.close()
    again = len([event for event in live.events if isinstance(event, events.ToolResult)])
    assert again > 1
    assert foreseen[1:again] == came[1:again]
