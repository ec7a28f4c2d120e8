"""Questions of a run, put to a client as permission requests: the choices of the card are the options.

An escalation may be answered in words too: by a form if the client has forms, else by the next prompt. Clients that
answer by themselves take the first option, or the first that allows once or always. That one never raises a budget and
never lets a failing call run again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from acp.exceptions import RequestError

from tui_agent.acp.content import Block, content, diffs
from tui_agent.acp_agent.updates import META, Announced, Update, described
from tui_agent.call_names import of_lane
from tui_agent.core.names import OF_BOUNDS, OF_NO_FAILURE, unanswered
from tui_agent.core.state import RunState
from tui_agent.frontend.lines import approval, escalation, server_question
from tui_agent.frontend.lines.passages import Choice, Passage
from tui_agent.frontend.operator import (
    AnyQuestion,
    ConsoleOperator,
    EscalationQuestion,
    ServerQuestion,
)
from tui_agent.permissions.offers import called
from tui_agent.runtime.operator import ApprovalReply, EscalationReply, ServerReply
from tui_agent.terminal_text import one_line, reveal

if TYPE_CHECKING:
    from tui_agent.core.events import ApprovalAsked, EscalationRaised, ServerAsked
    from tui_agent.runtime.operator import Decision

Request = Callable[[str, dict[str, Any]], Awaitable[Any]]
"""Asks the client: a method and its parameters to the answer. Raises whatever the connection does."""

ONCE, ALWAYS, REJECT = "allow_once", "allow_always", "reject_once"
_WORDS, _NEXT = "words", "next-prompt"
_ROUNDS = 3
"""Forms that a client may leave empty before a question counts as left open."""


class ClientQuestions:
    """Puts each open question of `operator` to the client, and settles it with the answer."""

    def __init__(self, request: Request, announced: Announced) -> None:
        self._request = request
        self._announced = announced
        self.operator = ConsoleOperator(self._changed)
        self.left_to_prompt = asyncio.Event()
        """A question waits for its answer in the next prompt."""
        self._asking: dict[AnyQuestion, asyncio.Task[None]] = {}
        self._session = ""
        self._post: Callable[[Update], None] = lambda _: None
        self._state: Callable[[], RunState] = RunState

    def begin(self, session: str, post: Callable[[Update], None], state: Callable[[], RunState]) -> None:
        """Ask for this session from now on: nothing is asked before it is open."""
        self._session, self._post, self._state = session, post, state

    @property
    def _workspace(self) -> Path:
        return Path(self._state().session.workspace)

    def take_answer(self, text: str) -> bool:
        """Take a prompt as the answer to an escalation that is open; False if none is."""
        question = next((one for one in self._asking if isinstance(one, EscalationQuestion)), None)
        if question is None or question.future.done():
            return False
        self.left_to_prompt.clear()
        return question.settle(_in_words(question.asked, text))

    def _changed(self) -> None:
        for question in self.operator.questions:
            if question not in self._asking:
                task = asyncio.get_running_loop().create_task(question.put_to(self), name="acp-question")
                self._asking[question] = task
                task.add_done_callback(partial(_withdraw_if_broken, question))
        for question in [one for one in self._asking if one not in self.operator.questions]:
            self._asking.pop(question).cancel()
            self.left_to_prompt.clear()
            self._close_call(question)

    def _open_call(self, call: Block) -> None:
        """Show a question that no call of a tool stands for as a call of its own."""
        self._post({"sessionUpdate": "tool_call", "status": "pending", **call})

    def _close_call(self, question: AnyQuestion) -> None:
        if not isinstance(question, EscalationQuestion | ServerQuestion):
            return
        future = question.future
        answered = future.done() and not future.cancelled() and future.exception() is None
        reply = future.result() if answered else None
        update = {"sessionUpdate": "tool_call_update", "toolCallId": question.asked.id}
        if reply is None or reply.by == "policy":
            self._post(update | {"status": "failed", "rawOutput": {"answered": False}})
        elif isinstance(reply, EscalationReply):
            said = {"choice": reply.choice, "text": reply.text}
            self._post(update | {"status": "completed", "rawOutput": said})
        else:
            self._post(update | {"status": "completed", "rawOutput": {"choice": reply.decision}})

    async def _chosen(self, call: Block, options: Sequence[tuple[str, str, str]]) -> str:
        """Ask the client to choose: options as id, name and kind; the id, "" if it does not choose."""
        params = {
            "sessionId": self._session,
            "toolCall": call,
            "options": [
                {"optionId": key, "name": one_line(name, 200), "kind": kind} for key, name, kind in options
            ],
        }
        outcome = await self._answered("session/request_permission", params, "outcome")
        chosen = outcome.get("optionId") if outcome.get("outcome") == "selected" else ""
        return next((key for key, _, _ in options if key == chosen), "")

    async def _answered(self, method: str, params: dict[str, Any], key: str = "") -> dict[str, Any]:
        """The answer of the client, or the part of it under `key`; empty if it has none."""
        try:
            found = await self._request(method, params)
        except (RequestError, OSError):
            return {}
        found = found.get(key) if key and isinstance(found, dict) else found
        return found if isinstance(found, dict) else {}

    # --- approvals ------------------------------------------------------------------------------------------

    async def approve(self, asked: ApprovalAsked) -> ApprovalReply:
        call = described(asked, self._workspace, self._lane_of(asked)) | {"status": "pending"}
        call["title"] = of_lane(call["title"], asked.lane)
        if asked.held:
            about = [*approval.held_files(asked.held), *approval.held_whole(asked.held)]
            call |= {"title": approval.held_title(asked.held), "content": content(_text(about))}
            options = [("deny", "Take back", REJECT), ("once", "Keep (this once)", ONCE)]
        else:
            path = self._workspace / str(asked.input.get("path", ""))
            shown = [*diffs(asked.preview, path)]
            about = [*([] if shown else approval.subject(asked.preview, asked.input)), *approval.about(asked)]
            call["content"] = [*shown, *content(_text(about))]
            options = [("once", "Allow once", ONCE)]
            if asked.rules:
                rules = called(asked.rules)
                options += [
                    ("session", f"Allow {rules} till the end of the session", ALWAYS),
                    ("always", f"Allow {rules} in this folder for good", ALWAYS),
                ]
            options.append(("deny", "Deny", REJECT))
        chosen = await self._chosen(call, options)
        if not chosen:
            return ApprovalReply("deny", "the client closed the question without an answer")
        return ApprovalReply(cast("Decision", chosen))

    def _lane_of(self, asked: ApprovalAsked) -> str:
        """The beginning of the call's id if it is a sub-agent's."""
        lanes = self._state().lanes.items() if asked.lane else ()
        return next(
            (f"{key}/" for key, lane in lanes if any(one.id == asked.id for one in lane.approvals)), ""
        )

    # --- escalations ----------------------------------------------------------------------------------------

    async def answer(self, asked: EscalationRaised) -> EscalationReply:
        state = self._state()
        subject = escalation.subject(asked, escalation.attempts_before(state.asker(asked), asked), "around")
        call: Block = {
            "toolCallId": asked.id,
            "title": one_line(f"{escalation.title_of(asked)}: {asked.question}", 200),
            "kind": "other",
            "content": content(_text(subject)),
            "_meta": {META: {"question": asked.source, "rule": asked.rule}},
        }
        self._open_call(call)
        in_words = (
            (_WORDS, "Answer in your own words", ONCE)
            if self._announced.forms
            else (_NEXT, "Answer with my next message", ONCE)
        )
        options = [*_options(asked), in_words]
        for _ in range(_ROUNDS):
            chosen = await self._chosen(call, options)
            if chosen == _NEXT:
                self.left_to_prompt.set()
                await asyncio.get_running_loop().create_future()  # until the prompt settles the question
            if chosen != _WORDS:
                return _reply(asked, chosen) if chosen else self._left_open()
            answer = (await self._form(asked.question, _ANSWER)).get("answer")
            if isinstance(answer, str) and answer.strip():
                return _in_words(asked, answer)
        return self._left_open()

    def _left_open(self) -> EscalationReply:
        """The way on if nobody answers, by the policy."""
        return EscalationReply(unanswered(self._state().run.policy, None), by="policy")

    async def _form(
        self, message: str, properties: dict[str, Any], required: Sequence[str] = ("answer",)
    ) -> Block:
        """The values that the client filled in; none if it did not."""
        params = {
            "sessionId": self._session,
            "mode": "form",
            "message": message,
            "requestedSchema": {"type": "object", "properties": properties, "required": [*required]},
        }
        found = await self._answered("elicitation/create", params)
        values = found.get("content") if found.get("action") == "accept" else {}
        return values if isinstance(values, dict) else {}

    # --- tool servers ---------------------------------------------------------------------------------------

    async def consult(self, asked: ServerAsked) -> ServerReply:
        if asked.fields and self._announced.forms:
            values = await self._form(asked.message, dict(asked.fields), asked.required)
            known = {name: value for name, value in values.items() if name in asked.fields}
            return ServerReply("accept", known) if known else ServerReply("cancel")
        if asked.fields:
            return ServerReply("decline", by="policy")  # nobody can fill them in
        if asked.url and self._announced.addresses:
            params = {"sessionId": self._session, "mode": "url", "message": asked.message, "url": asked.url}
            found = await self._answered("elicitation/create", params | {"elicitationId": asked.id})
            action = found.get("action")
            return ServerReply(
                "accept" if action == "accept" else "decline" if action == "decline" else "cancel"
            )
        trust = asked.purpose == "trust"
        title = f"Start the MCP server {asked.server}?" if trust else f"The MCP server {asked.server} asks"
        call: Block = {
            "toolCallId": asked.id,
            "title": one_line(title, 200),
            "kind": "other",
            "content": content(_text(server_question.subject(asked))),
        }
        self._open_call(call)
        kinds = {"accept": ALWAYS if trust else ONCE, "cancel": REJECT, "decline": "reject_always"}
        choices = server_question.TRUST if trust else server_question.FORM
        options = [(one.value, one.label.capitalize(), kinds[one.value]) for one in choices]
        chosen = await self._chosen(call, options)
        return ServerReply(cast("Any", chosen or "cancel"))

    def close(self) -> None:
        """Ask nothing any more."""
        for task in self._asking.values():
            task.cancel()


def _withdraw_if_broken(question: AnyQuestion, asking: asyncio.Task[None]) -> None:
    """Nobody waits for the answer to a question that could not be put."""
    if not asking.cancelled() and (bug := asking.exception()) is not None and not question.future.done():
        question.future.set_exception(bug)


_ANSWER = {"answer": {"type": "string", "title": "Your answer"}}


def _options(asked: EscalationRaised) -> list[tuple[str, str, str]]:
    """The choices of the card, those first that a client may take by itself."""
    choices = [one for one in escalation.choices_for(asked) if one.value not in {"edit", "why"}]
    if asked.source in OF_BOUNDS:
        choices.sort(key=lambda one: one.value != "partial")
    elif asked.source not in OF_NO_FAILURE:
        choices.sort(key=lambda one: one.value != "skip")
    return [(one.value, _label(asked, one), _kind(asked, one.value)) for one in choices]


def _label(asked: EscalationRaised, choice: Choice) -> str:
    kind, _, place = choice.value.partition(":")
    said = asked.options[int(place)] if kind == "option" else choice.label
    return f"{said[:1].upper()}{said[1:]}"


def _kind(asked: EscalationRaised, value: str) -> str:
    ends = {"stop"} if asked.source in OF_BOUNDS else {"partial", "stop"}
    return REJECT if value in ends else ONCE


def _reply(asked: EscalationRaised, chosen: str) -> EscalationReply:
    kind, _, place = chosen.partition(":")
    if kind == "option":
        return _answer(asked, asked.options[int(place)])
    return EscalationReply(cast("Any", kind))


def _in_words(asked: EscalationRaised, text: str) -> EscalationReply:
    """The reply that words make: a choice if they are its name, else an answer."""
    wanted = text.strip()
    names = {_label(asked, one).casefold(): one.value for one in escalation.choices_for(asked)}
    chosen = names.get(wanted.casefold(), "")
    return _reply(asked, chosen) if chosen not in {"", "edit", "why"} else _answer(asked, wanted)


def _answer(asked: EscalationRaised, text: str) -> EscalationReply:
    return EscalationReply("retry" if asked.source == "model" else "answer", text)


def _text(passages: Sequence[Passage] | Any) -> str:
    """Passages of a card as text, whole, with nothing hidden."""
    return "\n".join(" " * passage.indent + reveal(passage.text) for passage in passages)
