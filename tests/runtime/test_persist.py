"""Counters that outlive a run, through the production loop: kept while the workspace is as it was; off by default."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.runtime.session_harness import LiveSession, replayed, start_session
from tui_agent.core import events
from tui_agent.core.recovery.attempts import AttemptLedger
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.recovery.tool_breaker import BreakerPhase, ToolBreakers
from tui_agent.session.counters import OLDEST, Counters

FAILS = {"calls": [{"tool": "bash", "args": {"command": "cat < nowhere.txt"}}]}


def other(number: int) -> dict[str, Any]:
    return {"calls": [{"tool": "read_file", "args": {"path": f"none{number}.txt"}}]}


async def run(folder: Path, *turns: dict[str, Any], persist: bool = True, **recovery: Any) -> LiveSession:
    """One run in a session of its own."""
    settings = {"recovery": {"persist": persist, **recovery}, "sandbox": "off"}
    live = await start_session(folder, [*turns, "Shall I go on?"], **settings)
    await live.run()
    await live.close()
    assert replayed(live.session) == live.state
    return live


def counts(live: LiveSession) -> list[int]:
    return [entry.count for entry in live.state.recovery.of(AttemptLedger).newest_first()]


def verdicts(live: LiveSession) -> list[str]:
    return [verdict.rule for verdict in live.of(events.VerdictReached)]


async def test_failures_of_a_call_count_on_in_the_next_session_of_the_same_workspace(tmp_path: Path) -> None:
    first = await run(tmp_path, FAILS, FAILS)
    assert counts(first) == [2]
    second = await run(tmp_path, FAILS)
    assert counts(second) == [3]
    assert Rule.ATTEMPTS_ESCALATE in verdicts(second)
    # What was blocked has one try left, and no more.
    third = await run(tmp_path, FAILS, FAILS)
    assert counts(third) == [3]
    assert [len(live.of(events.ToolFailed)) for live in (second, third)] == [1, 1]


async def test_a_change_of_the_workspace_begins_anew(tmp_path: Path) -> None:
    await run(tmp_path, FAILS, FAILS)
    (tmp_path / "workspace" / "somewhere.txt").write_text("x\n")
    assert counts(await run(tmp_path, FAILS)) == [1]


async def test_a_count_goes_on_until_its_call_succeeds(tmp_path: Path) -> None:
    await run(tmp_path, FAILS, FAILS)
    await run(tmp_path, {"calls": [{"tool": "bash", "args": {"command": "true"}}]})
    assert counts(await run(tmp_path, FAILS)) == [3]
    (tmp_path / "workspace" / "nowhere.txt").write_text("x\n")
    await run(tmp_path, FAILS)
    (tmp_path / "workspace" / "nowhere.txt").unlink()
    assert counts(await run(tmp_path, FAILS)) == [1]


async def test_it_is_off_by_default(tmp_path: Path) -> None:
    await run(tmp_path, FAILS, FAILS, persist=False)
    assert not (tmp_path / "state" / "counters").exists()
    assert counts(await run(tmp_path, FAILS, persist=False)) == [1]


async def test_a_breaker_that_was_open_lets_one_call_through(tmp_path: Path) -> None:
    await run(tmp_path, *map(other, range(6)))
    live = await run(tmp_path)
    assert live.state.recovery.of(ToolBreakers).states["read_file"].phase is BreakerPhase.HALF_OPEN
    failing = await run(tmp_path, other(9))
    assert failing.state.recovery.of(ToolBreakers).states["read_file"].phase is BreakerPhase.OPEN


@pytest.mark.parametrize("content", [b"", b"[]", b'{"ref": "x", "at": 1e999}', b"\xff", b"[" * 50_000])
async def test_a_damaged_file_is_no_hindrance(tmp_path: Path, content: bytes) -> None:
    await run(tmp_path, FAILS)
    (path,) = (tmp_path / "state" / "counters").glob("*.json")
    path.write_bytes(content)
    assert counts(await run(tmp_path, FAILS)) == [1]


async def test_what_is_older_than_a_day_says_nothing(tmp_path: Path) -> None:
    live = await run(tmp_path, FAILS)
    session, now = live.session, [1_000.0]
    counters = Counters(tmp_path / "other", "w", session.checkpoints, lambda: now[0])
    await counters.keep(live.state)
    now[0] += OLDEST - 1
    assert await counters.begin() is not None
    now[0] += 2
    assert await counters.begin() is None
    now[0] = 0.0
    assert await counters.begin() is None
