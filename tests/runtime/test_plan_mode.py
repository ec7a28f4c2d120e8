"""Plan mode: nothing is changed, the answer is a plan, and the operator's word carries it out."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.scripted import ScriptedOperator
from tests.runtime.session_harness import assert_coherent, replayed, start_session
from tui_agent.core import events
from tui_agent.core.decision.planning import WAYS
from tui_agent.core.names import Approval, Decision, next_approval
from tui_agent.core.request.build import PLANNING
from tui_agent.permissions.judge import Permissions
from tui_agent.permissions.rules import parse_rule
from tui_agent.runtime.operator import EscalationReply

WRITE: dict[str, Any] = {
    "calls": [{"tool": "write_file", "args": {"path": "tax.py", "content": "rate = 0.19\n"}}]
}


def answering(*answers: str) -> ScriptedOperator:
    return ScriptedOperator(answers=deque(EscalationReply("answer", text) for text in answers))


async def test_an_approved_plan_is_carried_out_in_the_same_run(tmp_path: Path) -> None:
    operator = answering("round to cents, too", "carry it out, edits run")
    turns = [WRITE, "Plan: write tax.py.", "Plan: write tax.py, rounded.", WRITE, "Done."]
    live = await start_session(tmp_path, turns, operator=operator, approve="plan")
    finished = await live.run("plan the tax")
    assert (finished.outcome, finished.answer) == (events.Outcome.ANSWERED, "Done.")
    assert [one.question for one in operator.raised] == [
        "Plan: write tax.py.",
        "Plan: write tax.py, rounded.",
    ]
    (refused,) = live.of(events.ToolRefused)
    assert "in plan mode nothing is changed" in refused.content
    assert "permission rule" not in refused.content
    assert (tmp_path / "workspace" / "tax.py").read_text() == "rate = 0.19\n"
    assert [live.sent(call)[-1]["content"].startswith(PLANNING) for call in range(5)] == [True] * 3 + [
        False
    ] * 2
    said = [message["content"] for message in live.sent(-1) if message["role"] == "user"]
    assert said == ["plan the tax", "round to cents, too", "The plan is approved: carry it out."]
    assert not live.of(events.NotePrepared)
    assert live.state.session.approve is Approval.WRITES
    assert live.state.metrics.escalations == 0
    for call in range(5):
        assert_coherent(live.sent(call))
    await live.close()
    assert replayed(live.session) == live.state


@pytest.mark.parametrize("choice", ["keep", "skip", "partial", "stop", "continue"])
async def test_a_plan_that_is_not_approved_is_the_answer(tmp_path: Path, choice: Any) -> None:
    operator = ScriptedOperator(answers=deque([EscalationReply(choice)]))
    live = await start_session(tmp_path, ["A plan."], operator=operator, approve="plan")
    finished = await live.run()
    assert (finished.outcome, finished.answer) == (events.Outcome.ANSWERED, "A plan.")
    assert live.state.session.approve is Approval.PLAN
    (answer,) = live.of(events.EscalationAnswered)
    assert answer.choice == choice
    assert choice != "keep" or answer.in_words == "keep it as the answer"
    await live.close()


async def test_a_plan_given_by_finish_is_asked_about_too(tmp_path: Path) -> None:
    turns = [{"calls": [{"tool": "finish", "args": {"answer": "A plan."}}]}, "Done."]
    live = await start_session(tmp_path, turns, operator=answering(next(iter(WAYS))), approve="plan")
    finished = await live.run()
    assert finished.answer == "Done."
    assert live.state.session.approve is Approval.ASK
    await live.close()


async def test_without_an_operator_the_run_ends_with_the_plan(tmp_path: Path) -> None:
    live = await start_session(
        tmp_path, ["A plan."], operator=ScriptedOperator(present=False), approve="plan"
    )
    assert (await live.run()).answer == "A plan."
    assert not live.operator.raised
    await live.close()


@pytest.mark.parametrize(
    ("command", "decision"),
    [("pytest -q", "allow"), ("make", "ask"), ("cat a > b.txt", "deny"), ("cat a", "ask")],
)
def test_in_plan_mode_writing_is_refused_whatever_a_rule_allows(
    tmp_path: Path, command: str, decision: str
) -> None:
    texts = ("edit_file(**)", "bash(pytest *)", "write_file")
    rules = [parse_rule(Decision.ALLOW, text, "test") for text in texts]
    judge = Permissions(rules, tmp_path, Approval.PLAN).judge
    assert judge("bash", "command", {"command": command}).decision == decision
    assert judge("write_file", "write", {"path": "a.py", "content": ""}).decision == "deny"
    assert judge("edit_file", "write", {"path": "a.py"}).decision == "deny"
    assert judge("read_file", "read", {"path": "a.py"}).decision == "allow"


def test_the_modes_go_round_from_the_most_careful_one() -> None:
    assert [next_approval(mode) for mode in Approval] == ["ask", "writes", "all", "plan"]
