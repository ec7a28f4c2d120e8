"""The forecast of the next rung is what the detectors say when the same thing fails once more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.recovery.player import Player, fail, ok
from tui_agent.core.events import Failure, FailureKind
from tui_agent.core.recovery.forecast import if_it_fails_again
from tui_agent.core.recovery.note import compose
from tui_agent.core.recovery.policy import PRESETS

WRITE = {"tool": "write_file", "input": {"path": "a"}, "ok": True, "content": "done"}
COURSES: dict[str, Sequence[Sequence[dict[str, Any]]]] = {
    "the same call": [[fail("a")]] * 5,
    "the same call between others that work": [[fail("a")], [ok("x")], [fail("a")], [ok("y")], [fail("a")]],
    "the same call after changes": [[fail("a")], [WRITE], [fail("a")], [WRITE], [fail("a")]],
    "another call after each other": [[fail("a")], [fail("b")], [fail("c")], [fail("d")]],
    "several of one reply": [[fail("a"), fail("b")], [fail("a"), ok("z")], [fail("a")]],
}


@pytest.mark.parametrize("operator_present", [True, False])
@pytest.mark.parametrize("policy", PRESETS)
@pytest.mark.parametrize("course", COURSES)
def test_the_forecast_after_each_step_comes_true(course: str, policy: str, operator_present: bool) -> None:
    for length, calls in enumerate(COURSES[course], 1):
        player = Player(policy=PRESETS[policy], operator_present=operator_present)
        for step in COURSES[course][:length]:
            player.batch(*step)
        call = next((call for call in reversed(calls) if not call["ok"]), None)
        if call is None:
            continue
        tool, arguments = call["tool"], call["input"]
        key = player.state.key(tool, arguments)
        failure = Failure(kind=FailureKind.TOOL_EXECUTION, message=call["error"], tool=tool, input=arguments)
        forecast, noted = if_it_fails_again(player.state, failure, key)
        player.batch(call)
        said = player.state.strongest()
        assert (forecast.level, forecast.rule) == (said.level, said.rule), (length, forecast, said)
        assert noted == (compose(player.state).text is not None)
