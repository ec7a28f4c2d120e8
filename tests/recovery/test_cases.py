"""Every shared case, event by event, through the recovery state alone."""

from __future__ import annotations

import pytest

from tests.recovery.cases import CASES_DIR, Case, Player, load_cases, measured
from tui_agent.recovery.policy import PRESETS, RecoveryPolicy, preset

CASES = load_cases()

pytestmark = pytest.mark.skipif(not CASES, reason=f"no recovery cases in {CASES_DIR}")


def broken_expectations(case: Case, policy: RecoveryPolicy) -> list[str]:
    """What a case expects and does not get."""
    player = Player(policy, case.operator_present)
    wanted: dict[int, dict[str, object]] = {}
    for expect in case.expect:
        wanted.setdefault(expect["after"], {}).update(expect)
    broken = []
    for number, step in enumerate(case.events, 1):
        player.step(step)
        shown = measured(player)
        for name, value in wanted.pop(number, {}).items():
            if name != "after" and shown[name] != value:
                broken.append(f"after {number}: {name} is {shown[name]}, expected {value}")
    assert not wanted, f"expectations after events that the case does not have: {wanted}"
    return broken


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_case_holds_after_each_event_it_names(case: Case) -> None:
    assert broken_expectations(case, PRESETS[case.preset]) == []


DISCONNECTED = [
    ("forge-five-identical", {"ring": False}),
    ("forge-break-pattern", {"ring": False}),
    ("gigi-three", {"attempts": "off"}),
    ("hpd-limit", {"streak": "off"}),
    ("fc-down-degrade", {"cognition": "off"}),
    ("fc-pivot", {"cognition": "off"}),
    ("combined-identical-no-operator", {"attempts": "off"}),
    ("combined-identical-operator", {"ring": False}),
    ("combined-different", {"streak": "off"}),
    ("combined-different", {"cognition": "off"}),
    ("combined-blocked", {"attempts": "advise"}),
    ("combined-gives-up", {"text_only": "answer"}),
    ("combined-edit-test-progress", {"attempts_reset": "never"}),
    ("combined-volatile", {"ring_signature": "exact_note", "attempts_limit": 9}),
    ("gigi-key-order", {"attempts_key": "canonical"}),
    ("gigi-batch", {"batch_once": True}),
    ("gigi-no-reset", {"attempts_reset": "progress"}),
]


@pytest.mark.parametrize(("name", "change"), DISCONNECTED, ids=str)
def test_a_case_fails_once_its_detector_or_rule_is_taken_away(name: str, change: dict[str, object]) -> None:
    case = next(case for case in CASES if case.id == name)
    assert broken_expectations(case, preset(case.preset, **change)) != []
