"""Replies that break the form, and replies that the length limit cut: a ladder of their own."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.recovery.player import Player, fail, named, ok
from tui_agent.core import events
from tui_agent.core.recovery.cognition import CognitiveState
from tui_agent.core.recovery.form import FormErrors
from tui_agent.core.recovery.policy import PRESETS, preset
from tui_agent.core.recovery.ring import ErrorRing
from tui_agent.core.recovery.streak import ErrorStreak

Step = Callable[[Player, int], None]


def malformed(player: Player, number: int) -> None:
    player.step({"invalid": {"tool": "bash", "raw": f"{{{number}"}})


def unknown(player: Player, number: int) -> None:
    player.step({"unknown": {"tool": f"tool{number}", "input": {}}})


def no_call(player: Player, _: int) -> None:
    player.text("Well.", reject=True)


def form_rule(player: Player) -> str:
    return next(one.rule for one in player.state.last_verdicts if one.detector == "form")


@pytest.mark.parametrize("step", [malformed, unknown, no_call])
@pytest.mark.parametrize(("operator", "guided", "end"), [(True, 3, "form.ask"), (False, 7, "form.degrade")])
def test_identical_replies_that_break_the_form_are_guided_then_asked_about_and_alone_end_much_later(
    step: Step, operator: bool, guided: int, end: str
) -> None:
    player = Player(operator_present=operator)
    rules = []
    for _ in range(guided + 1):
        step(player, 1)
        rules.append(form_rule(player))
    assert rules == ["form.guide"] * guided + [end]
    assert player.level == ("escalate" if operator else "degrade")


@pytest.mark.parametrize("operator", [True, False])
def test_other_replies_that_break_the_form_are_other_tries(operator: bool) -> None:
    """As where another harness rejected replies in 4 to 93 steps of runs that were solved."""
    player = Player(operator_present=operator)
    for number in range(29):
        [malformed, unknown, lambda player, number: player.text(f"Well {number}.", reject=True)][number % 3](
            player, number
        )
        assert (form_rule(player), player.level, player.state.of(FormErrors).count) == (
            "form.guide",
            "guide",
            1,
        )
    assert player.state.of(ErrorRing).filled == 0
    unknown(player, 30)
    assert form_rule(player) == ("form.ask" if operator else "form.degrade")


def test_a_call_that_runs_between_broken_replies_keeps_a_run_going_for_good() -> None:
    player = Player()
    for number in range(93):
        unknown(player, number)
        if number % 20 == 19:
            player.batch(fail(str(number)))
            player.batch(ok())
        else:
            assert player.level == "guide"


def test_replies_that_were_not_kept_are_not_taken_for_identical() -> None:
    player = Player()
    for _ in range(12):
        player.text("", reject=True)
        assert player.level == "guide"


@pytest.mark.parametrize("step", [malformed, unknown, no_call])
def test_errors_of_form_count_neither_in_the_streak_nor_in_the_stall_under_combined(step: Step) -> None:
    combined, hpd = Player(), Player(PRESETS["hpd"])
    for player in (combined, hpd):
        player.batch(fail())
        step(player, 1)
    assert (combined.state.of(ErrorStreak).count, combined.state.of(CognitiveState).stall) == (1, 1)
    assert combined.state.of(FormErrors).count == 1
    assert combined.state.of(ErrorRing).filled == 1
    assert (hpd.state.of(ErrorStreak).count, hpd.state.of(CognitiveState).stall) == (2, 2)


def test_malformed_calls_beside_an_executed_one_break_no_form() -> None:
    player = Player()
    wrong = {**fail("x"), "kind": events.FailureKind.INVALID_TOOL_CALL}
    player.batch(wrong, fail("a"))
    assert (player.state.of(FormErrors).count, player.state.of(ErrorStreak).count) == (0, 1)
    player.batch(wrong, ok())
    assert (player.state.of(FormErrors).count, player.state.of(ErrorStreak).count) == (0, 0)


RESETS: list[tuple[str, Step, int]] = [
    ("a call that succeeds", lambda player, _: player.batch(ok()), 0),
    ("a call that is executed and fails", lambda player, _: player.batch(fail()), 0),
    ("the operator's answer", lambda player, _: player.answer("answer", "Use bash."), 0),
    ("a denial does not", lambda player, _: player.batch(ok(denied=True)), 2),
]


@pytest.mark.parametrize(("what", "step", "count"), RESETS, ids=named)
def test_what_ends_the_row_of_replies_that_break_the_form(what: str, step: Step, count: int) -> None:
    player = Player(operator_present=True)
    for _ in range(2):
        malformed(player, 1)
    step(player, 0)
    assert player.state.of(FormErrors).count == count


@pytest.mark.parametrize("name", PRESETS)
def test_a_cut_text_is_no_answer_and_is_continued_three_times_under_every_policy(name: str) -> None:
    player = Player(PRESETS[name])
    shown = []
    for _ in range(4):
        player.text("The first half of the answer", cut=True)
        verdict = next(one for one in player.state.last_verdicts if one.detector == "form")
        shown.append((verdict.level.value, verdict.rule))
        assert player.whole.text_answer is None
    assert shown == [("guide", "form.cut")] * 3 + [("degrade", "form.cut")]
    assert (player.state.of(ErrorStreak).count, player.state.of(CognitiveState).stall) == (0, 0)


def test_a_cut_text_after_a_failure_is_not_rejected() -> None:
    player = Player()
    player.batch(fail())
    player.text("I looked into a and", cut=True)
    assert player.state.last is not None
    assert player.state.last.rejected is None
    assert player.state.failed_since_success


@pytest.mark.parametrize("name", PRESETS)
def test_the_parts_of_a_cut_answer_are_put_together(name: str) -> None:
    player = Player(PRESETS[name])
    player.text("The first half, ", cut=True)
    assert "Go on exactly where it stopped" in player.note()
    if name == "forge":
        return  # a text is never its answer
    player.text("and the second.")
    assert player.whole.text_answer == "The first half, and the second."


def test_whole_replies_between_cut_ones_start_the_row_anew() -> None:
    player = Player()
    for _ in range(3):
        player.text("long", cut=True)
    player.batch(ok())
    player.text("long", cut=True)
    assert (player.state.of(FormErrors).cut, player.level) == (1, "guide")


def test_without_the_ladder_nothing_is_said_about_the_form() -> None:
    player = Player(preset("combined", form=False))
    for number in range(5):
        malformed(player, number)
        form = next(one for one in player.state.last_verdicts if one.detector == "form")
        assert form.level is events.Level.CONTINUE
