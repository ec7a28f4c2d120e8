"""Another agent's questions about its calls: answered by the permission rules, the approval mode or the operator.

A call that does what one of our tools does is judged as that tool's; what is decided for longer than once is kept as a
rule of ours, and the agent is told `once`. Options that are more than yes and no are put to the operator as they are.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from tui_agent.acp_client.turn import Permission
from tui_agent.core import events
from tui_agent.core.decision.answers import escalation_answered
from tui_agent.core.names import ASK_OPERATOR, Approval, Decision
from tui_agent.core.recovery.rules import Rule
from tui_agent.permissions.findings import Judgement
from tui_agent.permissions.offers import rules_in_words
from tui_agent.runtime.approvals import Approvals
from tui_agent.runtime.operator import ApprovalReply, Operator
from tui_agent.runtime.recorder import Recorder
from tui_agent.sandbox.mechanisms import Sandbox
from tui_agent.terminal_text import one_line
from tui_agent.tools.registry import ToolRegistry
from tui_agent.tools.tool import Tool

CANCELLED = {"outcome": "cancelled"}
_ALLOWS, _REJECTS = ("allow_once", "allow_always"), ("reject_once", "reject_always")


class AgentPermissions:
    """Answers permission requests. `answer` sends an outcome for a request of the agent's."""

    def __init__(
        self,
        recorder: Recorder,
        operator: Operator,
        approvals: Approvals,
        tools: ToolRegistry,
        answer: Callable[[int | str, dict[str, Any]], None],
    ) -> None:
        self.tell: Callable[[str], None] = lambda _: None
        """Takes what the agent should read of an answer: the protocol has no place for it."""
        self._recorder = recorder
        self._operator = operator
        self._approvals = approvals
        self._tools = tools
        self._answer = answer

    async def ask(self, asked: Permission) -> None:
        """Answer one request, one at a time if the operator is asked; nothing if that is given up."""
        if _is_choice(asked.options):
            async with self._approvals.asking:
                outcome = await self._choose(asked)
        else:
            outcome = await self._decide(asked)
        asked.call.asked -= 1
        self._answer(asked.request, outcome)

    def give_up(self, asked: Permission) -> None:
        """The agent did not wait for the answer: its call, or its turn, has ended."""
        self._answer(asked.request, CANCELLED)

    async def _decide(self, asked: Permission) -> dict[str, Any]:
        own = self._own(asked)
        judgement = await self._judged(own)
        decision = None if judgement is None else judgement.decision
        if own is None and self._recorder.state.session.approve is Approval.ALL:
            decision = Decision.ALLOW
        if decision is Decision.DENY and judgement is not None:
            asked.call.denied = judgement.speaking.words()
            return _outcome(asked.options, _REJECTS)
        if decision is Decision.ALLOW:
            asked.call.allowed_by = judgement.by if judgement is not None else "the approval mode"
            return _outcome(asked.options, _ALLOWS)
        async with self._approvals.asking:
            reply = await self._asked(asked, own, judgement)
        if reply.decision != "deny" and reply.input is not None and reply.input != asked.call.input:
            wanted = json.dumps(reply.input, ensure_ascii=False)
            reply = ApprovalReply("deny", f"it should be called with {wanted} instead", by=reply.by)
        if reply.decision == "deny":
            asked.call.denied = reply.reason or "no reason was given"
            if reply.reason and reply.by == "operator":
                self.tell(f"I did not let {asked.call.name} run ({asked.call.title}): {reply.reason}")
            return _outcome(asked.options, _REJECTS)
        asked.call.allowed_by = f"the operator ({reply.decision})"
        return _outcome(asked.options, _ALLOWS)

    def _own(self, asked: Permission) -> tuple[Tool, dict[str, Any]] | None:
        """The call of a tool of ours that does the same."""
        own = asked.call.own
        tool = None if own is None else self._tools.get(own[0])
        return None if own is None or tool is None else (tool, own[1])

    async def _judged(self, own: tuple[Tool, dict[str, Any]] | None) -> Judgement | None:
        if own is None:
            return None
        self._approvals.sandbox = Sandbox()  # ours is not around what the agent runs
        return await asyncio.to_thread(self._approvals.judge, self._recorder.state, *own)

    async def _asked(
        self, asked: Permission, own: tuple[Tool, dict[str, Any]] | None, judgement: Judgement | None
    ) -> ApprovalReply:
        call, state = asked.call, self._recorder.state
        rules: tuple[str, ...] = ()
        if own is not None and judgement is not None:
            rules = await asyncio.to_thread(self._approvals.suggestions, state, *own, judgement)
        event = self._recorder.record(
            events.ApprovalAsked(
                id=f"approve-{call.key}",
                call_id=call.key,
                tool=call.name,
                input=call.input,
                preview=call.diff or call.printed or call.title,
                covers=rules_in_words(rules),
                rules=rules,
                why="the agent asks" if judgement is None else judgement.speaking.words(),
            )
        )
        reply = await self._operator.approve(event)
        kept = reply.rules or rules
        keep = {"always": self._approvals.keep, "everywhere": self._approvals.keep_everywhere}
        if kept and reply.decision in keep:
            await asyncio.to_thread(keep[reply.decision], kept)
        self._recorder.record(
            events.ApprovalAnswered(
                id=event.id, decision=reply.decision, reason=reply.reason, by=reply.by, rules=reply.rules
            )
        )
        return reply

    async def _choose(self, asked: Permission) -> dict[str, Any]:
        """Let the operator choose among the agent's own options."""
        names = {_name(option): option for option in asked.options}
        question = self._recorder.record(
            events.EscalationRaised(
                id=f"choose-{asked.call.key}-{self._recorder.state.seq}",
                question="\n\n".join(filter(None, (asked.call.title, asked.call.printed))),
                source=ASK_OPERATOR,
                rule=Rule.OPERATOR_ANSWER,
                tool=asked.call.name,
                options=tuple(names),
            )
        )
        reply = await self._operator.answer(question)
        answered = escalation_answered(question, reply.choice, reply.text, None, reply.by)
        self._recorder.record(answered.model_copy(update={"message": ""}))
        chosen = names.get(reply.text.strip())
        if chosen is not None:
            return _selected(chosen)
        asked.call.denied = reply.text or "nothing was chosen"
        return _outcome(asked.options, _REJECTS)


def _is_choice(options: list[dict[str, Any]]) -> bool:
    """True if yes or no would not say which of the options is meant."""
    kinds = [option.get("kind") for option in options]
    return kinds.count("allow_once") > 1 or any(kind not in (*_ALLOWS, *_REJECTS) for kind in kinds)


def _name(option: dict[str, Any]) -> str:
    return one_line(str(option.get("name") or option.get("optionId")), 200)


def _outcome(options: list[dict[str, Any]], kinds: tuple[str, ...]) -> dict[str, Any]:
    """The option of the first of these kinds that there is."""
    found = (option for kind in kinds for option in options if option.get("kind") == kind)
    chosen = next(found, None)
    return CANCELLED if chosen is None else _selected(chosen)


def _selected(option: dict[str, Any]) -> dict[str, Any]:
    return {"outcome": "selected", "optionId": option.get("optionId")}
