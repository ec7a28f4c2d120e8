"""The five policies side by side: what each switches on, and what each does with the same sequences."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import ValidationError

from tests.recovery.player import Player, fail, named, ok
from tui_agent.core import events
from tui_agent.core.recovery import policy as policy_module
from tui_agent.core.recovery.policy import PRESETS, RecoveryPolicy, policy_of_run, preset
from tui_agent.core.recovery.ring import ErrorRing
from tui_agent.core.recovery.streak import ErrorStreak

NAMES = ("forge", "gigi", "funnelcanary", "hpd", "combined")


def levels(name: str, batches: list[list[dict[str, Any]]], *, operator: bool = False) -> list[str]:
    """The strongest level after each batch; what ends a run is not acted on."""
    player = Player(PRESETS[name], operator)
    shown = []
    for batch in batches:
        player.batch(*batch)
        shown.append(player.level)
    return shown


# --- what each preset switches on ------------------------------------------------------------------------------

FEATURES = {
    "text_only": ["failure", "answer", "answer", "answer", "failure_once"],
    "ring": ["stop", "off", "off", "off", "ask"],
    "attempts": ["off", "advise", "off", "off", "block"],
    "streak": ["off", "off", "off", "stop", "escalate"],
    "cognition": ["off", "off", "walk", "off", "chance"],
    "form": ["count", "count", "count", "count", "ladder"],
    "search_results": [False, False, False, False, True],
    "model_faults": ["terminal", "terminal", "next_iteration", "terminal", "retry"],
    "note": ["forge", "gigi", "funnelcanary", "none", "merged"],
    "stuck": [False, False, False, False, True],
    "breaker": [False, False, False, False, True],
    "error_prefix": ["mute_tools", "mute_tools", "mute_tools", "every_tool", "mute_tools"],
}


@pytest.mark.parametrize(("feature", "values"), FEATURES.items(), ids=FEATURES)
def test_each_preset_has_the_features_of_its_column(feature: str, values: list[object]) -> None:
    assert [getattr(PRESETS[name], feature) for name in NAMES] == values


def test_gigi_keys_by_the_json_as_sent_and_never_resets() -> None:
    assert (PRESETS["gigi"].attempts_key, PRESETS["gigi"].attempts_reset) == ("as_sent", "never")
    assert (PRESETS["combined"].attempts_key, PRESETS["combined"].attempts_reset) == ("canonical", "progress")


def test_forge_compares_exact_notes_and_combined_normalised_signatures() -> None:
    volatile = [[{**fail(), "error": f"gone at 12:00:{second}"}] for second in range(10, 15)]
    for name, identical in (("forge", 1), ("combined", 5)):
        player = Player(preset(name, attempts="off", stuck=False))
        for batch in volatile:
            player.batch(*batch)
        assert player.state.of(ErrorRing).identical == identical


# --- what each preset does -------------------------------------------------------------------------------------

AGAIN = [[fail()]] * 5
FOUR = [[fail(path)] for path in "abcd"]
BETWEEN = [[fail()], [ok()], [fail()], [ok()], [fail()]]
MIXED = [[ok("a"), fail("b"), ok("c")]] * 3
CAGED = [[ok(f"a{turn}"), fail(f"b{turn}"), ok(f"c{turn}")] for turn in range(12)]

ROWS: list[tuple[str, str, list[list[dict[str, Any]]], list[str]]] = [
    ("same call again and again", "forge", AGAIN, ["guide"] * 4 + ["stop"]),
    ("same call again and again", "gigi", AGAIN[:3], ["guide", "guide", "escalate"]),
    ("same call again and again", "funnelcanary", AGAIN[:3], ["continue", "continue", "degrade"]),
    ("same call again and again", "hpd", AGAIN[:4], ["continue"] * 3 + ["stop"]),
    ("same call again and again", "combined", AGAIN[:3], ["guide", "guide", "escalate"]),
    ("four different", "forge", FOUR, ["guide"] * 4),
    ("four different", "gigi", FOUR, ["guide"] * 4),
    ("four different", "funnelcanary", FOUR[:3], ["continue", "continue", "degrade"]),
    ("four different", "hpd", FOUR, ["continue"] * 3 + ["stop"]),
    ("four different", "combined", FOUR, ["guide", "guide", "guide", "degrade"]),
    ("success between", "forge", BETWEEN, ["guide", "continue", "guide", "continue", "guide"]),
    ("success between", "gigi", BETWEEN, ["guide", "continue", "guide", "continue", "escalate"]),
    ("success between", "funnelcanary", BETWEEN, ["continue"] * 5),
    ("success between", "hpd", BETWEEN, ["continue"] * 5),
    ("success between", "combined", BETWEEN, ["guide", "continue", "guide", "continue", "escalate"]),
    ("one of three fails", "forge", MIXED, ["guide"] * 3),
    ("one of three fails", "gigi", MIXED, ["guide", "guide", "escalate"]),
    ("one of three fails", "funnelcanary", MIXED, ["continue"] * 3),
    ("one of three fails", "hpd", MIXED, ["continue"] * 3),
    ("one of three fails", "combined", CAGED, ["guide"] * 4),
]


@pytest.mark.parametrize(("row", "name", "batches", "expected"), ROWS, ids=named)
def test_the_table_of_sequences(
    row: str, name: str, batches: list[list[dict[str, Any]]], expected: list[str]
) -> None:
    assert levels(name, batches)[: len(expected)] == expected


LADDERS = {
    "forge": {"guide", "stop"},
    "gigi": {"guide", "escalate"},
    "funnelcanary": {"pivot", "degrade"},
    "hpd": {"stop"},
    "combined": {"guide", "withhold", "pivot", "escalate", "degrade", "stop"},
}


@pytest.mark.parametrize("operator", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_failing_calls_lead_to_nothing_that_is_not_on_the_ladder(name: str, operator: bool) -> None:
    assert PRESETS[name].ladder == LADDERS[name]
    sequences = (AGAIN * 2, FOUR, BETWEEN, MIXED, CAGED)
    reached = {level for batches in sequences for level in levels(name, batches, operator=operator)}
    assert reached - {"continue"} <= LADDERS[name]


def test_a_batch_in_which_one_of_three_fails_never_stops_combined_by_the_streak() -> None:
    player = Player()
    for batch in CAGED:
        player.batch(*batch)
        assert player.state.of(ErrorStreak).count == 0
        assert player.level not in {"stop", "degrade"}


def test_aaaab_aaaa_does_not_stop_forge_and_one_more_a_does() -> None:
    sequence = [[fail(path)] for path in "aaaabaaaaa"]
    assert levels("forge", sequence) == ["guide"] * 9 + ["stop"]


FAULTS = {"forge": "stop", "gigi": "stop", "funnelcanary": "guide", "hpd": "stop", "combined": "continue"}


@pytest.mark.parametrize(("name", "level"), FAULTS.items(), ids=FAULTS)
def test_a_model_fault_before_an_answer(name: str, level: str) -> None:
    player = Player(PRESETS[name])
    player.step({"model_fault": "server"})
    assert player.level == level
    if level != "stop":
        player.text("done")
        assert player.level == "continue"


@pytest.mark.parametrize("name", NAMES)
def test_a_text_only_reply_first_is_a_failure_for_forge_alone(name: str) -> None:
    player = Player(PRESETS[name])
    assert player.state.rejects_text("Hello.") is (name == "forge")
    player.text("Hello.")
    assert player.state.of(ErrorRing).filled == (1 if name == "forge" else 0)


# --- switches --------------------------------------------------------------------------------------------------

SWITCHES = {
    "ring": {"ring": False},
    "attempts": {"attempts": "off"},
    "streak": {"streak": "off"},
    "cognition": {"cognition": False},
    "form": {"form": False},
    "stuck": {"stuck": False},
    "breaker": {"breaker": False},
}


def _trouble(player: Player) -> Iterator[None]:
    """Something for every detector."""
    for path in "aaabcd":
        player.batch(fail(path))
        yield
    for _ in range(8):
        player.batch(ok())
        yield
    for path in "efghij":
        player.batch(fail(path), {**ok(path), "tool": "glob"})
        yield
    player.step({"invalid": {"tool": "bash", "raw": "{"}})
    yield


@pytest.mark.parametrize(("detector", "switch"), SWITCHES.items(), ids=SWITCHES)
def test_a_detector_that_is_off_gives_no_verdict_and_one_that_is_on_gives_its_own(
    detector: str, switch: dict[str, Any]
) -> None:
    for policy, speaks in ((preset("combined"), True), (preset("combined", **switch), False)):
        player = Player(policy, operator_present=True)
        speaking = {
            verdict.detector
            for _ in _trouble(player)
            for verdict in player.state.last_verdicts
            if verdict.level is not events.Level.CONTINUE
        }
        assert (detector in speaking) is speaks


@pytest.mark.parametrize(
    ("name", "detector", "value"),
    [
        ("forge", "ring", "stop"),
        ("hpd", "ring", "ask"),
        ("gigi", "attempts", "advise"),
        ("hpd", "cognition", "chance"),
    ],
)
def test_a_detector_is_switched_on_as_its_preset_has_it_else_as_combined_has_it(
    name: str, detector: str, value: str
) -> None:
    assert getattr(preset(name, **{detector: True}), detector) == value


@pytest.mark.parametrize("detector", SWITCHES)
def test_detectors_that_are_off_still_fold_so_that_their_panes_show_them(detector: str) -> None:
    on, off = Player(), Player(preset("combined", **SWITCHES[detector]))
    for player in (on, off):
        for path in "abc":
            player.batch(fail(path))
    for judged, shown in zip(on.state.detectors, off.state.detectors, strict=True):
        # What the form breaks is counted elsewhere without its ladder, and a walk is shown where no chance is.
        assert judged == shown or judged.name == detector == "cognition", judged.name


# --- a policy is data ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_policy_survives_the_journal(name: str) -> None:
    policy = preset(name, attempts_limit=7)
    assert RecoveryPolicy.model_validate_json(policy.model_dump_json()) == policy
    player = Player(policy)
    assert player.state.policy == policy
    assert events.parse_event(player.events[0].model_dump_json()) == player.events[0]


def test_a_run_of_a_newer_version_is_judged_by_the_preset_it_names() -> None:
    assert policy_of_run("hpd", {"a_field_of_tomorrow": 1}) == PRESETS["hpd"]
    assert policy_of_run("of tomorrow", {}) == PRESETS["combined"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"attempt_limit": 3},
        {"attempts_limit": 0},
        {"confidence_start": 2},
        *({"finding_codes": {name: (1,)}} for name in ("", "a b c", "a\n", "a;b", "a" * 122)),
    ],
)
def test_unknown_or_impossible_parameters_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        preset("combined", **wrong)
    with pytest.raises(ValueError, match="no policy 'no such policy'; there are forge"):
        preset("no such policy")


def test_every_parameter_says_what_it_is() -> None:
    body = next(
        node
        for node in ast.parse(inspect.getsource(policy_module)).body
        if getattr(node, "name", "") == "RecoveryPolicy"
    ).body
    for field, following in zip(body, [*body[1:], None], strict=True):
        if isinstance(field, ast.AnnAssign):
            assert isinstance(following, ast.Expr), f"{ast.unparse(field.target)} has no line of its own"
