"""Questions put to a client, and what becomes of its answers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from acp.exceptions import RequestError

from tui_agent.acp_agent.questions import ClientQuestions
from tui_agent.acp_agent.updates import Announced
from tui_agent.core.events import ApprovalAsked, EscalationRaised, HeldFile, ServerAsked
from tui_agent.core.names import ABOUT_PLAN
from tui_agent.core.state import RunState
from tui_agent.runtime.operator import ApprovalReply, EscalationReply, ServerReply

ALL = Announced(forms=True, addresses=True)


def selected(option: str) -> dict[str, Any]:
    return {"outcome": {"outcome": "selected", "optionId": option}}


class Client:
    """Answers in order; an error is raised. `asked` has each method with its parameters."""

    def __init__(self, *answers: Any, announced: Announced = ALL) -> None:
        self.answers = [*answers]
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.updates: list[dict[str, Any]] = []
        self.questions = ClientQuestions(self.request, announced)
        self.questions.begin("s", self.updates.append, RunState)
        self.operator = self.questions.operator

    async def request(self, method: str, params: dict[str, Any]) -> Any:
        self.asked.append((method, params))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


TRUST = ServerAsked(id="s", server="files", purpose="trust", message="Run: npx files")
FIELDS = {"day": {"type": "string"}, "count": {"type": "integer"}}
FORM = ServerAsked(id="s", server="notes", purpose="elicitation", message="Which day?", fields=FIELDS)
ADDRESS = ServerAsked(
    id="s", server="notes", purpose="elicitation", message="Log in", url="https://x.example/"
)


@pytest.mark.parametrize(
    ("asked", "answer", "announced", "reply"),
    [
        (TRUST, selected("accept"), ALL, ServerReply("accept")),
        (TRUST, selected("decline"), ALL, ServerReply("decline")),
        (TRUST, {"outcome": {"outcome": "cancelled"}}, ALL, ServerReply("cancel")),
        (TRUST, RequestError(-32601, "no"), ALL, ServerReply("cancel")),
        (TRUST, ConnectionError("gone"), ALL, ServerReply("cancel")),
        (
            FORM,
            {"action": "accept", "content": {"day": "mon", "else": 1}},
            ALL,
            ServerReply("accept", {"day": "mon"}),
        ),
        (FORM, {"action": "decline"}, ALL, ServerReply("cancel")),
        (FORM, {"action": "accept", "content": "mon"}, ALL, ServerReply("cancel")),
        (FORM, None, Announced(), ServerReply("decline", by="policy")),
        (ADDRESS, {"action": "accept"}, ALL, ServerReply("accept")),
        (ADDRESS, {"action": "decline"}, ALL, ServerReply("decline")),
        (ADDRESS, "what?", ALL, ServerReply("cancel")),
        (ADDRESS, selected("accept"), Announced(), ServerReply("accept")),
    ],
)
async def test_a_server_is_answered(
    asked: ServerAsked, answer: Any, announced: Announced, reply: ServerReply
) -> None:
    client = Client(answer, announced=announced)
    assert await client.operator.consult(asked) == reply
    assert all(
        "never" not in str(params) for method, params in client.asked if method == "elicitation/create"
    )
    shown = [one["status"] for one in client.updates]
    assert shown in (["pending", "completed"], ["completed"], ["failed"]), shown


OWN = EscalationRaised(id="q", question="Which port?", source="ask_operator", options=("8080", "a " * 40))
FAILING = EscalationRaised(
    id="q", question="bash failed", source="attempts", tool="bash", input={"command": "x"}
)
MODEL = EscalationRaised(id="q", question="No such key", source="model", options=("openai/gpt-5",))
PLAN = EscalationRaised(id="q", question="Carry it out?", source=ABOUT_PLAN, options=("yes, asking", "yes"))


@pytest.mark.parametrize(
    ("asked", "answers", "reply"),
    [
        (OWN, [selected("option:1")], EscalationReply("answer", "a " * 40)),
        (OWN, [selected("skip")], EscalationReply("skip")),
        (FAILING, [selected("retry")], EscalationReply("retry")),
        (FAILING, [selected("stop")], EscalationReply("stop")),
        (MODEL, [selected("option:0")], EscalationReply("retry", "openai/gpt-5")),
        (PLAN, [selected("keep")], EscalationReply("keep")),
        (
            OWN,
            [selected("words"), {"action": "accept", "content": {"answer": " 70 "}}],
            EscalationReply("answer", "70"),
        ),
        (
            FAILING,
            [selected("words"), {"action": "accept", "content": {"answer": "Skip"}}],
            EscalationReply("skip"),
        ),
        (
            OWN,
            [selected("words"), {"action": "cancel"}, selected("option:0")],
            EscalationReply("answer", "8080"),
        ),
        (OWN, [selected("words"), {"action": "cancel"}] * 3, EscalationReply("partial", by="policy")),
        (OWN, [{"outcome": {"outcome": "cancelled"}}], EscalationReply("partial", by="policy")),
        (FAILING, [RequestError(-32603, "no")], EscalationReply("partial", by="policy")),
    ],
)
async def test_an_escalation_is_answered_by_a_choice_or_in_words(
    asked: EscalationRaised, answers: list[Any], reply: EscalationReply
) -> None:
    client = Client(*answers)
    assert await client.operator.answer(asked) == reply
    assert client.answers == []
    begun, ended = client.updates
    assert (begun["toolCallId"], begun["status"]) == ("q", "pending")
    assert ended["status"] == ("failed" if reply.by == "policy" else "completed")


async def test_what_a_command_left_is_taken_back_or_kept() -> None:
    held = (HeldFile(path=".git/hooks/x", why="git runs it", text="rm -rf /\n"),)
    asked = ApprovalAsked(id="a", call_id="c", tool="bash", input={"command": "x"}, held=held)
    client = Client(selected("once"), selected("deny"), RequestError(1, "no"))
    decisions = [(await client.operator.approve(asked)).decision for _ in range(3)]
    assert decisions == ["once", "deny", "deny"]
    call = client.asked[0][1]["toolCall"]
    assert "rm -rf /" in str(call["content"])
    assert [one["optionId"] for one in client.asked[0][1]["options"]] == ["deny", "once"]


async def test_a_question_that_is_withdrawn_asks_nothing_more_and_one_that_breaks_holds_nobody_up() -> None:
    client = Client()
    client.request = lambda *_: asyncio.get_running_loop().create_future()
    client.questions._request = client.request
    asking = asyncio.ensure_future(client.operator.answer(OWN))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    assert client.updates[-1]["status"] == "failed"
    assert not client.questions.take_answer("8080")
    broken = Client(ZeroDivisionError("a bug"))
    asked = ApprovalAsked(id="a", call_id="c", tool="bash", input={"command": "x"})
    with pytest.raises(ZeroDivisionError):
        await broken.operator.approve(asked)
    assert isinstance(await Client(selected("once")).operator.approve(asked), ApprovalReply)
