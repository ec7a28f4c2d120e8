"""The second model at a pivot: what it says, what a machine makes of it, and what it costs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.lab.bench.harness import journal, ran
from tui_agent.lab.bench import advisers
from tui_agent.lab.bench.behaviours import BEHAVIOURS
from tui_agent.lab.bench.figures import summaries
from tui_agent.lab.bench.report import markdown
from tui_agent.lab.bench.run import Row
from tui_agent.runtime.model_call import ADVICE_PATIENCE

CASE = "failing-edit/quotes"
"""Its error names nothing, so that a machine which minds no note comes to a pivot."""
CURE, WRONG = "return 'Hello, ' + name", ' return "Hello, " + name'


@pytest.fixture(autouse=True)
def does_what_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    own = replace(BEHAVIOURS["adapts-when-asked"], told=1.0, noted=0.0, refused=0.0)
    monkeypatch.setitem(BEHAVIOURS, "adapts-when-asked", own)


async def advised(folder: Path, policy: str, case: str = CASE) -> tuple[Row, list[str]]:
    """A run, and the `old` of each edit that it tried after it was advised."""
    row = await ran(folder, case, policy, "adapts-when-asked")
    events = journal(folder)
    first = next((place for place, one in enumerate(events) if one["type"] == "advised"), 0)
    tried = [one["input"].get("old", "") for one in events[first:] if one["type"] == "tool_started"]
    return row, tried


async def test_a_machine_does_what_the_adviser_names(tmp_path: Path) -> None:
    alone, _ = await advised(tmp_path, "combined")
    right, tried = await advised(tmp_path, "adviser-right")
    assert (alone.pivots > 0, alone.advised, right.advised) == (True, 0, 1)
    assert (alone.solved, right.solved) == (False, True)
    assert CURE in tried
    _, tried = await advised(tmp_path, "adviser-wrong")
    assert tried[0] == WRONG


async def test_what_an_adviser_reads_and_writes_counts_and_takes_time(tmp_path: Path) -> None:
    await advised(tmp_path, "adviser-right")
    said = next(one for one in journal(tmp_path) if one["type"] == "advised")
    assert said["model"] == advisers.ADVISER
    row, _ = await advised(tmp_path, "adviser-right")
    assert row.advice_tokens == said["prompt_tokens"] + said["completion_tokens"] > 100


async def test_one_that_says_nothing_costs_time_and_no_tokens(tmp_path: Path) -> None:
    alone, _ = await advised(tmp_path, "combined")
    late, _ = await advised(tmp_path, "adviser-late")
    assert (late.advised, late.advice_tokens, late.tokens) == (alone.pivots, 0, alone.tokens)
    assert late.seconds == pytest.approx(alone.seconds + ADVICE_PATIENCE * late.advised)


async def test_it_names_no_way_that_only_a_person_knows_and_calls_a_healthy_run_healthy(
    tmp_path: Path,
) -> None:
    for case in ("only-a-person-knows/account", "probing-commands/ls-seven"):
        row, _ = await advised(tmp_path, "adviser-right", case)
        said = [one["text"] for one in journal(tmp_path) if one["type"] == "advised"]
        assert row.pivots
        assert set(said) == {advisers.CARRY_ON}


async def test_only_runs_that_come_to_a_pivot_are_compared(tmp_path: Path) -> None:
    rows = [
        (await advised(tmp_path, policy, case))[0]
        for case in (CASE, "wrong-path/typo", "probing-commands/ls-seven")
        for policy in ("combined", "adviser-right", "adviser-late")
    ]
    text = markdown(rows, summaries(rows))
    _, _, section = text.partition("## An adviser at the pivot\n")
    assert "2 of its 3 runs come to a pivot." in section
    assert "In 1 of them nothing is wrong. In 1 something is" in section
    assert (
        "of a machine that takes no way that is named, or cases that only a person can solve. Of the other 1, 0"
        in section
    )
    assert "| `adviser-right` |" in section
    assert "--policies adviser-right,adviser-late --seed 1" in section
    assert "adviser" not in text.partition("## An adviser")[0]
