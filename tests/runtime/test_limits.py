"""A limit of use that is reached: what is asked, what happens alone, and a wait that outlives the process."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.scripted import ScriptedOperator
from tests.runtime.session_harness import LiveSession, start_session
from tui_agent.core import events
from tui_agent.core.names import Phase
from tui_agent.runtime.operator import EscalationReply
from tui_agent.runtime.waiting import Wait

NOW = 1_788_600_000.0
RESETS_IN = 7_980.0
LIMIT: dict[str, Any] = {"fault": {"kind": "usage_limit", "message": "5-hour limit reached.", "status": 429}}


@dataclass
class Clocks:
    """Clocks that a test moves: the wall's, and one that never goes back. Each pause lets its seconds pass at once."""

    wall: float = NOW
    passed: float = 0.0
    pauses: list[float] = field(default_factory=list)
    jumps: list[float] = field(default_factory=list)
    """Seconds by which the wall clock jumps, one a pause."""
    asleep: bool = False
    """The machine sleeps in each pause: the wall clock alone goes on, by an hour."""
    stands: bool = False
    """No pause ends by itself."""

    def wait(self) -> Wait:
        return Wait(lambda: self.wall, lambda: self.passed, self.pause)

    async def pause(self, event: asyncio.Event, seconds: float) -> None:
        self.pauses.append(seconds)
        assert len(self.pauses) < 1_000, "the wait does not end"
        if self.stands:
            await event.wait()
            return
        self.wall += 3_600.0 if self.asleep else seconds + (self.jumps.pop(0) if self.jumps else 0.0)
        self.passed += seconds


@pytest.mark.parametrize(
    ("clocks", "least", "most"),
    [
        (Clocks(), RESETS_IN, RESETS_IN),
        (Clocks(jumps=[4_000.0]), RESETS_IN - 4_001, RESETS_IN - 3_960),
        (Clocks(jumps=[-86_400.0 * 365]), RESETS_IN, RESETS_IN),
        (Clocks(jumps=[1e9]), 0.0, 20.0),
        (Clocks(asleep=True), 0.0, 100.0),
    ],
    ids=["no jump", "an hour ahead", "a year back", "decades ahead", "the machine sleeps"],
)
async def test_a_wait_for_a_moment_ends_however_the_clock_jumps(
    clocks: Clocks, least: float, most: float
) -> None:
    await clocks.wait().wait(RESETS_IN, NOW + RESETS_IN)
    assert least <= clocks.passed <= most
    assert max(clocks.pauses) <= 20.0, "the wall clock is looked at again and again"


@pytest.mark.parametrize("seconds", [0.0, -5.0, RESETS_IN])
async def test_a_moment_that_is_over_is_not_waited_for(seconds: float) -> None:
    clocks = Clocks()
    await clocks.wait().wait(seconds, NOW - 1)
    assert not clocks.pauses


async def limited(
    folder: Path, clocks: Clocks, *more: dict[str, Any] | str, resume: Path | None = None, **settings: Any
) -> LiveSession:
    """A session whose first call meets a limit."""
    return await start_session(
        folder,
        [LIMIT, *more, "Here it is."],
        clock=lambda: clocks.wall,
        wait=clocks.wait,
        resume=resume,
        **settings,
    )


@pytest.fixture
def resets(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit resets so long after the clock of the test, and not of the machine."""
    monkeypatch.setitem(LIMIT["fault"], "resets_in", RESETS_IN)
    monkeypatch.setattr("tui_agent.models.scripted.time.time", lambda: NOW)


@pytest.mark.usefixtures("resets")
async def test_a_run_alone_sleeps_until_the_limit_resets_and_goes_on(tmp_path: Path) -> None:
    clocks = Clocks()
    live = await limited(tmp_path, clocks, on_limit="wait", operator=ScriptedOperator(present=False))
    finished = await live.run()
    await live.close()
    assert (finished.outcome, finished.answer) == (events.Outcome.ANSWERED, "Here it is.")
    (waited,) = live.of(events.LimitWaitStarted)
    assert (waited.rule, waited.by) == ("model.wait", "policy")
    assert RESETS_IN <= waited.until - NOW <= RESETS_IN + 15, "a little late, since clocks differ"
    assert clocks.wall >= waited.until
    assert live.state.run.iteration == 1, "a wait costs no step"


@pytest.mark.usefixtures("resets")
async def test_the_operator_is_told_the_time_and_waits_tries_another_model_or_stops(tmp_path: Path) -> None:
    operator = ScriptedOperator()
    operator.answers.append(EscalationReply("wait"))
    live = await limited(tmp_path, Clocks(), operator=operator)
    finished = await live.run()
    await live.close()
    (asked,) = operator.raised
    assert "limit reached, resets " in asked.question
    assert "(in 2 h 13 min)" in asked.question
    assert asked.until is not None
    (waited,) = live.of(events.LimitWaitStarted)
    assert (waited.rule, waited.by, waited.until) == ("operator.wait", "operator", asked.until)
    assert finished.answer == "Here it is."


@pytest.mark.usefixtures("resets")
async def test_a_wait_is_skipped_and_cancelled_like_any_other(tmp_path: Path) -> None:
    clocks = Clocks(stands=True)
    live = await limited(tmp_path, clocks, on_limit="wait")
    await live.session.submit("go")
    await live.until(lambda state: state.waiting is not None)
    assert live.state.phase is Phase.BACKOFF
    assert live.session.skip_wait()
    assert (await live.ended()).answer == "Here it is."
    await live.close()


@pytest.mark.usefixtures("resets")
@pytest.mark.parametrize("later", [60.0, 2 * RESETS_IN], ids=["before the reset", "after it"])
async def test_a_process_that_is_killed_goes_on_waiting_until_the_same_moment(
    tmp_path: Path, later: float
) -> None:
    clocks = Clocks(stands=True)
    live = await limited(tmp_path, clocks, on_limit="wait", operator=ScriptedOperator(present=False))
    await live.session.submit("go")
    await live.until(lambda state: state.waiting is not None)
    until = live.state.waiting.until if live.state.waiting is not None else 0.0
    await live.session.recorder.barrier()
    killed = tmp_path / "killed"
    killed.mkdir()
    (killed / "events.jsonl").write_bytes((live.session.folder / "events.jsonl").read_bytes())
    await live.close()

    clocks = Clocks(wall=NOW + later)
    again = await start_session(
        tmp_path,
        ["Here it is."],
        clock=lambda: clocks.wall,
        wait=clocks.wait,
        resume=killed,
        operator=ScriptedOperator(present=False),
    )
    assert again.state.waiting is not None
    assert again.state.waiting.until == until
    assert again.session.go_on()
    finished = await again.ended()
    await again.close()
    assert finished.answer == "Here it is."
    assert clocks.passed == pytest.approx(max(0.0, until - NOW - later), abs=1)
    assert again.state.run.iteration == 1


async def test_a_limit_without_a_time_is_looked_at_again_and_again_up_to_the_longest_wait(
    tmp_path: Path,
) -> None:
    clocks = Clocks()
    alone = ScriptedOperator(present=False)
    live = await limited(
        tmp_path, clocks, *[LIMIT] * 8, on_limit="wait", wait_at_most=9_000.0, operator=alone
    )
    finished = await live.run()
    waits = live.of(events.LimitWaitStarted)
    await live.close()
    assert finished.outcome is events.Outcome.MODEL_FAILED
    assert [round(one.until - one.at) for one in waits] == [900, 1_800, 3_600]
