"""Every case through the pure core, and without the rule that it proves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.cases import Case, load_cases
from tests.cases.player import broken_expectations
from tui_agent.core import events
from tui_agent.core.recovery.attempts import AttemptLedger
from tui_agent.core.recovery.iteration import CallResult, result_of_call
from tui_agent.core.recovery.policy import RecoveryPolicy

CASES = load_cases()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_core_does_what_the_case_says(case: Case) -> None:
    assert broken_expectations(case) == []


@pytest.mark.parametrize("case", [case for case in CASES if case.without], ids=lambda case: case.id)
def test_the_case_fails_once_its_rule_is_taken_away(case: Case) -> None:
    assert broken_expectations(case, case.without) != []


def _cancelled_as_failed(event: events.ToolResult, policy: RecoveryPolicy) -> CallResult:
    if not isinstance(event, events.ToolCancelled):
        return result_of_call(event, policy)
    failure = events.Failure(
        kind=events.FailureKind.TOOL_EXECUTION, message="cancelled", tool=event.tool, input=event.input
    )
    facts = {name: getattr(event, name) for name in ("call_id", "tool", "input", "index", "key")}
    failed = events.ToolFailed.model_validate({**facts, "failure": failure})
    return result_of_call(failed.stamped(event.seq, event.at), policy)


def _every_answer_allows(ledger: AttemptLedger, keys: Any, _: Any) -> AttemptLedger:
    return ledger.allow(keys)


CORE = "tui_agent.core"
TAKEN_AWAY: list[tuple[str, str, Callable[..., Any]]] = [
    ("failure.sibling", f"{CORE}.recovery.folding.result_of_call", _cancelled_as_failed),
    ("operator.retry", f"{CORE}.recovery.attempts.AttemptLedger.allow", lambda ledger, _: ledger),
    ("operator.edit", f"{CORE}.decision.decide._operators_iteration", lambda *_: iter(())),
    ("operator.skip", f"{CORE}.recovery.attempts.AttemptLedger.settle", _every_answer_allows),
    ("operator.answer", f"{CORE}.recovery.attempts.AttemptLedger.settle", _every_answer_allows),
    ("partial.answer", f"{CORE}.decision.endings.compose_partial_answer", lambda *_: ""),
]
"""Rules that no parameter switches off, and what stands in for the code that carries them."""


@pytest.mark.parametrize(("rule", "place", "instead"), TAKEN_AWAY, ids=[row[0] for row in TAKEN_AWAY])
def test_a_case_of_the_rule_fails_once_its_code_is_taken_away(
    rule: str, place: str, instead: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, instead)
    assert any(broken_expectations(case) for case in CASES if rule in case.proves)
