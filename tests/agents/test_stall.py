"""A silent stall is told from work: by a simulated clock, and by real processes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.agents.conftest import Supervise
from tests.agents.test_supervise import DONE, runs, until
from tui_agent.agents import supervision
from tui_agent.agents.stall import SAID, Signs, Silence, tree
from tui_agent.agents.waiting import Clock

STILL = Signs(10, ("s.jsonl", 100), frozenset({1, 2}), 5.0)
LOOK = 5.0
SEEN: dict[str, tuple[Callable[[float], Signs], float, bool]] = {
    "nothing moves": (lambda _: STILL, 660, True),
    "a node that looks at its timers": (lambda at: Signs(10, STILL.record, STILL.processes, 5 + at * 0.004), 660, True),
    "40 minutes without a word, with the processor": (
        lambda at: Signs(10, STILL.record, STILL.processes, 5 + at * 0.3), 2_400, False,
    ),
    "a build in bursts": (
        lambda at: Signs(10, STILL.record, STILL.processes, 5 + at // 550 * 2), 2_400, False,
    ),
    "short commands one after another": (
        lambda at: Signs(10, STILL.record, frozenset({1, int(at // 240)}), 5.0), 2_400, False,
    ),
    "a word from time to time": (lambda at: Signs(int(at // 500), STILL.record, STILL.processes, 5.0), 2_400, False),
    "a record that grows": (
        lambda at: Signs(10, ("s.jsonl", int(at // 500)), STILL.processes, 5.0), 2_400, False,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SEEN)
def test_only_what_does_nothing_at_all_counts_as_silent(case: str) -> None:
    signs, seconds, silent = SEEN[case]
    quiet, told = Silence(signs(0.0), 0.0), 0
    for look in range(1, int(seconds / LOOK) + 1):
        quiet = quiet.after(signs(look * LOOK), look * LOOK)
        if quiet.to_tell(look * LOOK):
            quiet, told = quiet.has_told(), told + 1
    assert told == int(silent)


def test_a_model_that_thinks_for_a_quarter_of_an_hour_is_said_once_and_then_works() -> None:
    quiet = Silence(STILL, 0.0)
    assert not quiet.after(STILL, SAID - 1).to_tell(SAID - 1)
    assert quiet.after(STILL, SAID).to_tell(SAID)
    quiet = quiet.has_told().after(Signs(500, STILL.record, STILL.processes, 5.1), 900.0)
    assert (quiet.since, quiet.told) == (900.0, False)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_the_tree_has_all_descendants_and_their_time() -> None:
    running = subprocess.Popen(["sh", "-c", "sleep 600 & sh -c 'sleep 600 & wait' & wait"])
    try:
        until(lambda: len((tree(running.pid) or (frozenset(), 0.0))[0]) == 4)
        assert tree(2**22 + 1) is None
    finally:
        for pid in (tree(running.pid) or (frozenset(), 0.0))[0]:
            subprocess.run(["kill", "-9", str(pid)], check=False)
        running.wait()


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
@pytest.mark.parametrize(
    ("options", "code", "said"),
    [(("--max-silence", "3600"), 4, "(--max-silence)"), ((), 0, "no new record")],
)
def test_a_stall_is_said_first_and_ended_only_at_a_limit_that_was_set(
    options: tuple[str, ...],
    code: int,
    said: str,
    home: Path,
    supervise: Supervise,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each look at the clock is five minutes after the one before."""
    monkeypatch.setattr(supervision, "_COUNT", 0.0)
    looks = 0

    def ticks(_: Clock) -> float:
        nonlocal looks
        looks += 1
        return looks * 300.0

    monkeypatch.setattr(Clock, "ticks", ticks)
    play: list[Any] = [("wait", 600)] if options else [("wait", 3), DONE]
    done = supervise([play], *options)
    assert (done.returncode, len(runs(home))) == (code, 1)
    assert "silent for" in done.stderr
    assert said in done.stderr
