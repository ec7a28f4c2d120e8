"""The per-tool circuit breaker."""

from __future__ import annotations

from typing import Any

import pytest

from tests.recovery.player import Player, bash, fail, ok
from tui_agent.core import events
from tui_agent.core.recovery.policy import PRESETS, preset
from tui_agent.core.recovery.tool_breaker import BreakerPhase, ToolBreakers


def broken(player: Player, times: int = 5, **facts: Any) -> None:
    for number in range(times):
        player.batch(fail(f"{player.iteration} {number}", "grep", **facts), ok(f"{player.iteration}", "glob"))


def phase(player: Player, tool: str = "grep") -> str:
    state = player.state.of(ToolBreakers).states.get(tool)
    return "closed" if state is None else state.phase.value


def test_a_tool_that_fails_five_times_over_different_inputs_is_left_out_for_three_iterations() -> None:
    player = Player()
    broken(player, 4)
    assert player.state.open_tools() == frozenset()
    broken(player, 1)
    assert player.state.open_tools() == {"grep"}
    assert player.state.of(ToolBreakers).states["grep"].reopen_at == 9
    assert player.permit("grep", {"pattern": "x"}).refusal == "breaker"
    record = next(verdict for verdict in player.state.last_verdicts if verdict.detector == "breaker")
    assert (record.level, record.reason) == (events.Level.GUIDE, "grep is left out for 3 steps")
    phases = []
    for _ in range(3):
        player.batch(ok(f"{player.iteration}", "glob"))
        phases.append(phase(player))
    assert phases == ["open", "open", "half_open"]
    assert player.state.open_tools() == frozenset()


def half_open(player: Player) -> None:
    broken(player)
    for _ in range(3):
        player.batch(ok(f"{player.iteration}", "glob"))
    assert phase(player) == "half_open"


def test_a_refusal_says_how_the_tool_failed_and_nothing_that_did_not_happen() -> None:
    player = Player()
    broken(player)
    said = player.permit("grep", {"pattern": "x"}).reason
    assert "it failed 5 times in a row over different inputs. Work without it." in said
    for _ in range(3):
        player.batch(ok(f"{player.iteration}", "glob"))
    player.batch(fail("probe", "grep"), ok("other", "glob"))
    said = player.permit("grep", {"pattern": "x"}).reason
    assert "over different inputs, and again when one call was tried. Work without it." in said

    away = Player()
    for _ in range(5):
        away.batch(fail("same", "grep", transient=True), ok(f"{away.iteration}", "glob"))
    assert "it failed 5 times in a row. Work" in away.permit("grep", {"pattern": "x"}).reason


def test_half_open_lets_one_probe_through() -> None:
    player = Player()
    half_open(player)
    assert player.permit("grep", {"pattern": "x"}).allowed
    second = player.permit("grep", {"pattern": "y"}, ("glob", {}), ("grep", {"pattern": "x"}))
    assert second.refusal == "breaker"


def test_a_probe_that_succeeds_closes_it_and_one_that_fails_opens_it_for_twice_as_long() -> None:
    good, bad = Player(), Player()
    for player in (good, bad):
        half_open(player)
    good.batch(ok("x", "grep"))
    assert phase(good) == "closed"
    for span in (6, 12):
        bad.batch(fail(f"p{span}", "grep"), ok(f"p{span}", "glob"))
        assert bad.state.of(ToolBreakers).states["grep"].span == span
        waited = 0
        while phase(bad) == "open":
            bad.batch(ok(f"{bad.iteration}", "glob"))
            waited += 1
        assert waited == span


def test_the_same_call_does_not_open_a_breaker_but_infrastructure_does() -> None:
    mine = preset("combined", attempts="off", stuck=False)
    same, gone = Player(mine), Player(mine)
    for _ in range(6):
        same.batch(fail("a", "grep"), ok(f"{same.iteration}", "glob"))
        gone.batch(fail("a", "grep", transient=True), ok(f"{gone.iteration}", "glob"))
    assert (phase(same), phase(gone)) == ("closed", "open")


def test_wrong_calls_and_refused_calls_do_not_count() -> None:
    player = Player()
    for number in range(8):
        player.wrong_call(events.FailureKind.INVALID_TOOL_CALL, "grep", {"n": number}, f"wrong {number}")
        player.batch(ok(f"{number}", "grep", denied=True), ok(f"{number}", "glob"))
    assert phase(player) == "closed"


def test_an_edit_test_cycle_with_changing_commands_does_not_open_bash() -> None:
    player = Player()
    for number in range(10):
        player.batch(bash(f"{20 - number} failed", f"pytest -q -k t{number}"))
        player.batch(ok(f"a{number}.py", "edit_file"))
        assert phase(player, "bash") == "closed"


def test_the_ways_to_end_and_to_ask_never_open() -> None:
    player = Player()
    for number in range(6):
        for tool in ("finish", "ask_operator"):
            player.batch(fail(f"{number}", tool), ok(f"{number}", "glob"))
    player.feed(events.BreakerSet(tool="finish", open=True))
    assert player.state.open_tools() == frozenset()
    assert player.permit("finish", {}).allowed


@pytest.mark.parametrize("name", PRESETS)
def test_the_operator_opens_and_closes_by_hand_under_every_policy(name: str) -> None:
    player = Player(PRESETS[name])
    player.feed(events.BreakerSet(tool="bash", open=True))
    for _ in range(5):
        player.batch(ok(f"{player.iteration}", "glob"))
    assert player.state.open_tools() == {"bash"}
    assert player.permit("bash", {}).refusal == "breaker"
    player.start("another task")
    assert player.state.open_tools() == {"bash"}
    player.feed(events.BreakerSet(tool="bash", open=False))
    assert player.state.open_tools() == frozenset()
    assert player.permit("bash", {}).allowed


def test_a_tripped_breaker_does_not_poison_the_next_run() -> None:
    player = Player()
    broken(player)
    player.start("another task")
    assert player.state.open_tools() == frozenset()
    assert player.state.of(ToolBreakers).states == {}


def test_closing_by_hand_starts_afresh() -> None:
    player = Player()
    broken(player)
    player.feed(events.BreakerSet(tool="grep", open=False))
    broken(player, 4)
    assert phase(player) == BreakerPhase.CLOSED.value
