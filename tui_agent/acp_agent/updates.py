"""Events as updates of an Agent Client Protocol session, in the form of protocol version 1.

The only place that writes updates: another version of the protocol is another class beside `Updates`. What happened
is said as it is: a call that failed is failed, and its exit code stands beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tui_agent.acp.content import Block, content, diffs, kind_of, locations, text_block
from tui_agent.call_names import subject_of
from tui_agent.core import events
from tui_agent.core.fold import apply
from tui_agent.core.names import UPDATE_PLAN
from tui_agent.core.projections.entries import PROGRESS_TAIL
from tui_agent.core.projections.plan import plan_of
from tui_agent.core.state import RunState
from tui_agent.core.tool_facts import facts_of
from tui_agent.event_lines import WORDS, event_line
from tui_agent.frontend.lines.incident import recovered_words
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from tui_agent.core.projections.incidents import Incident

Update = dict[str, Any]
META = "agent-tui"
"""The key of what is ours in `_meta`."""
_LONGEST_TITLE = 200


class Announced(NamedTuple):
    """Things that a client says it takes, beyond those that every client does."""

    notices: bool = False
    compaction: bool = False
    forms: bool = False
    """Forms of elicitation."""
    addresses: bool = False
    """Addresses to open, by elicitation."""
    terminal_login: bool = False
    """It can start this program in a terminal, for a login."""

    @classmethod
    def of(cls, capabilities: object) -> Announced:
        """Read `clientCapabilities`, whatever stands there."""

        def there(*keys: str) -> bool:
            found = capabilities
            for key in keys:
                found = found.get(key) if isinstance(found, dict) else None
            return found is not None and found is not False

        return cls(
            notices=there("session", "notices"),
            compaction=there("session", "compaction"),
            forms=there("elicitation", "form"),
            addresses=there("elicitation", "url"),
            terminal_login=there("auth", "terminal") or there("_meta", "terminal-auth"),
        )


class Updates:
    """The updates of one session, from its events in their order. `replaying`: they are history."""

    def __init__(self, workspace: Path, announced: Announced, *, replaying: bool = False) -> None:
        self._workspace = workspace
        self._announced = announced
        self._replaying = replaying
        self._message = 0
        """The event that opened the model's newest message."""
        self._said = ""
        """The model's newest message, as far as it has come."""
        self._thought = False
        self._output: dict[str, str] = {}
        self._recovered = 0

    def of(self, event: events.Event, state: RunState) -> Iterator[Update]:
        """Say what a client should know of an event; `state` is that after it."""
        match event:
            case events.ModelCallStarted():
                self._message, self._said, self._thought = event.seq, "", False
            case events.ReplyDelta():
                yield from self._piece(event.text, event.reasoning)
            case events.ReplyFinished():
                yield from self._reply(event, state)
            case events.ToolStarted() | events.ToolProgress() | events.ToolResult():
                yield from self._call(event, state, "")
            case events.RunStarted() | events.OperatorSpoke() | events.RunFinished() | events.TitleChanged():
                yield from self._run(event, state)
            case events.CompactionStarted() | events.Compacted() | events.CompactionFailed():
                yield from self._compaction(event, state)
            case events.LaneEvent():
                yield from self._lane(event, state)
            case events.EscalationRaised():
                pass  # it is asked
            case _:
                yield from self._notice(event, event_line(event, WORDS))
        yield from self._newly_recovered(state)

    # --- the model ------------------------------------------------------------------------------------------

    def _piece(self, text: str, reasoning: str) -> Iterator[Update]:
        if reasoning:
            yield self._chunk("agent_thought_chunk", reasoning, f"t{self._message}")
        if text:
            yield self._chunk("agent_message_chunk", text, f"m{self._message}")
        self._said += text
        self._thought = self._thought or bool(reasoning)

    def _reply(self, event: events.ReplyFinished, state: RunState) -> Iterator[Update]:
        rest = event.text[len(self._said) :] if event.text.startswith(self._said) else ""
        yield from self._piece(rest, "" if self._thought else event.reasoning)
        for call in event.calls:
            yield from self._requested(call)
        used, size = event.prompt_tokens, state.windows.get(state.run.model) or state.run.context_tokens
        if used is not None and size and not self._replaying:
            cost = state.metrics.session_usage.cost
            update = {
                "sessionUpdate": "usage_update",
                "used": used + (event.completion_tokens or 0),
                "size": size,
            }
            yield update | ({"cost": {"amount": cost, "currency": "USD"}} if cost else {})

    def _chunk(self, kind: str, text: str, message: str) -> Update:
        return {"sessionUpdate": kind, "messageId": message, "content": text_block(text)}

    # --- calls ----------------------------------------------------------------------------------------------

    def _requested(self, call: events.ToolCall, lane: str = "") -> Iterator[Update]:
        arguments = _arguments(call)
        started = events.ToolStarted(call_id=call.id, tool=call.name, input=arguments, facts=call.facts)
        if not facts_of(started).aside:
            yield {
                "sessionUpdate": "tool_call",
                "status": "pending",
                **described(started, self._workspace, lane),
            }

    def _call(
        self, event: events.ToolStarted | events.ToolProgress | events.ToolResult, state: RunState, lane: str
    ) -> Iterator[Update]:
        name = {"sessionUpdate": "tool_call_update", "toolCallId": f"{lane}{event.call_id}"}
        match event:
            case events.ToolProgress():
                if not self._replaying:
                    text = (self._output.get(event.call_id, "") + event.text)[-PROGRESS_TAIL:]
                    self._output[event.call_id] = text
                    yield name | {"content": content(text)}
            case events.ToolSucceeded(tool=tool) if tool == UPDATE_PLAN:
                entries = [
                    {"content": step.text, "priority": "medium", "status": step.status}
                    for step in plan_of(event.input).steps
                ]
                yield {"sessionUpdate": "plan", "entries": entries}
            case _ if facts_of(event).aside:
                pass
            case events.ToolStarted():
                # The operator may have edited what the model asked for.
                yield name | {"status": "in_progress", **described(event, self._workspace, lane)}
            case events.ToolResult():
                self._output.pop(event.call_id, None)
                yield name | self._result(event, state)

    def _result(self, event: events.ToolResult, state: RunState) -> Update:
        """Say how a call ended, in the protocol's words and in ours."""
        raw: dict[str, Any] = {"output": event.content}
        said: dict[str, Any] = {"duration": round(event.duration, 3)}
        status, blocks = "failed", content(event.content)
        match event:
            case events.ToolSucceeded():
                status = "completed"
                path = event.changed[0] if event.changed else str(event.input.get("path", ""))
                blocks = [*diffs(event.diff, self._workspace / path)] or blocks
                raw |= {} if event.exit_code is None else {"exit_code": event.exit_code}
                recovered = [recovered_words(one) for one in self._new(state)]
                said |= {"recovered": recovered} if recovered else {}
            case events.ToolFailed():
                answer = state.metrics.incidents.answer(event)
                # A search that found nothing has done its work.
                status = "completed" if answer == "no_match" else "failed"
                raw |= {"error": event.failure.message, "kind": event.failure.kind.value}
                raw |= {} if event.exit_code is None else {"exit_code": event.exit_code}
                said |= {"answer": answer} if answer else {}
            case events.ToolRefused():
                raw |= {"error": event.reason, "refused": event.refusal}
                said |= {"refused": event.refusal, "rule": event.rule}
            case events.ToolCancelled():
                raw |= {"cancelled": True}
                said |= {"cancelled": True}
                blocks = blocks or content(event.reason or "cancelled")
            case events.ToolEnded():
                status = "completed"
                said |= {"unknown": True}
        if "exit_code" in raw:
            said["exitCode"] = raw["exit_code"]
        return {"status": status, "content": blocks, "rawOutput": raw, "_meta": {META: said}}

    def _lane(self, event: events.LaneEvent, state: RunState) -> Iterator[Update]:
        inner, prefix, lane = event.placed, f"{event.lane}/", state.lane(event.lane)
        match inner:
            case events.ReplyFinished():
                for call in inner.calls:
                    yield from self._requested(call, prefix)
            case events.ToolStarted() | events.ToolResult():
                yield from self._call(inner, lane, prefix)
            case events.EscalationRaised():
                pass
            case _:
                yield from self._notice(event, event_line(event, WORDS).strip())

    # --- runs -----------------------------------------------------------------------------------------------

    def _run(
        self,
        event: events.RunStarted | events.OperatorSpoke | events.RunFinished | events.TitleChanged,
        state: RunState,
    ) -> Iterator[Update]:
        match event:
            case events.RunStarted():
                self._recovered = 0
                if self._replaying:
                    yield self._chunk("user_message_chunk", event.task, f"u{event.seq}")
                elif event.run == 1:
                    yield {"sessionUpdate": "session_info_update", "title": state.session.title}
            case events.OperatorSpoke():
                if self._replaying:
                    yield self._chunk("user_message_chunk", event.text, f"u{event.seq}")
            case events.TitleChanged():
                yield {"sessionUpdate": "session_info_update", "title": event.title}
            case events.RunFinished():
                yield from self._closing(event)

    def _closing(self, event: events.RunFinished) -> Iterator[Update]:
        """Close a turn: the answer, unless it was said, and how the run ended if it was not answered.

        A client that has cancelled a turn reads nothing more of it.
        """
        if event.outcome is events.Outcome.INTERRUPTED:
            return
        answer = event.answer.strip()
        if answer and answer != self._said.strip():
            # Clients that know no ids of messages run one into the other.
            apart = "\n\n" if self._said.strip() else ""
            yield self._chunk("agent_message_chunk", apart + event.answer, f"a{event.seq}")
        self._said = ""
        if event.outcome is not events.Outcome.ANSWERED:
            rule = f" [{event.rule}]" if event.rule else ""
            said = f"The run ended, {event.outcome.in_words}: {one_line(event.reason)}{rule}"
            yield from self._said_aside(said, event.seq, "warning")

    # --- notices --------------------------------------------------------------------------------------------

    def _notice(self, event: events.Event, line: str) -> Iterator[Update]:
        if line:
            yield from self._said_aside(line, event.seq, _severity(event))

    def _said_aside(self, line: str, seq: int, severity: str, number: int = 0) -> Iterator[Update]:
        """Say something that is no part of the conversation: as a notice, or to other clients as a thought."""
        if self._replaying:
            return
        if self._announced.notices:
            title = one_line(line, _LONGEST_TITLE)
            update = {"sessionUpdate": "notice", "severity": severity, "title": title}
            yield update if title == line else update | {"description": line}
        else:
            yield self._chunk("agent_thought_chunk", f"\n{line}\n", f"n{seq}.{number}")

    def _new(self, state: RunState) -> list[Incident]:
        """The incidents that were recovered since the last look."""
        recovered = state.metrics.incidents.recovered
        found = [recovered[place] for place in range(min(self._recovered, len(recovered)), len(recovered))]
        return [one for one in found if one.recovery is not None and one.recovery.why != "not_needed"]

    def _newly_recovered(self, state: RunState) -> Iterator[Update]:
        for number, incident in enumerate(self._new(state), 1):
            yield from self._said_aside(f"recovered: {recovered_words(incident)}", state.seq, "info", number)
        self._recovered = len(state.metrics.incidents.recovered)

    def _compaction(
        self, event: events.CompactionStarted | events.Compacted | events.CompactionFailed, state: RunState
    ) -> Iterator[Update]:
        if not self._announced.compaction:
            said = "summary: the older part of the conversation is being summarised"
            started = isinstance(event, events.CompactionStarted)
            yield from self._notice(event, said if started else event_line(event, WORDS))
            return
        if isinstance(event, events.CompactionStarted):
            self._message = event.seq
            about: Update = {"status": "in_progress"}
        elif isinstance(event, events.Compacted):
            about = {"status": "completed", "summary": [text_block(event.summary)]}
        else:
            about = {"status": "failed", "error": one_line(event.in_words)}
        yield {"sessionUpdate": "compaction_update", "compactionId": f"c{self._message}", **about}


def described(call: events.ToolStarted | events.ApprovalAsked, workspace: Path, lane: str = "") -> Block:
    """A call as a client shows it. `lane`: the beginning of the ids of a sub-agent's calls."""
    facts = call.facts if isinstance(call, events.ToolStarted) else None
    started = events.ToolStarted(call_id=call.call_id, tool=call.tool, input=call.input, facts=facts)
    known = facts_of(started)
    subject = subject_of(started)
    return {
        "toolCallId": f"{lane}{call.call_id}",
        "title": one_line(f"{known.label or call.tool} {subject}".strip(), _LONGEST_TITLE),
        "name": one_line(call.tool, 100),
        "kind": kind_of(known),
        "rawInput": dict(call.input),
        "locations": locations(known, call.input, workspace),
        "_meta": {META: {"tool": call.tool}},
    }


def _arguments(call: events.ToolCall) -> dict[str, Any]:
    import json

    if call.problem is not None:
        return dict(call.problem.input)
    try:
        found = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _severity(event: events.Event) -> str:
    inner = event.event if isinstance(event, events.LaneEvent) else event
    match inner:
        case events.Notice():
            return inner.severity
        case events.VerdictReached():
            return "info" if inner.level is events.Level.GUIDE else "warning"
        case events.ModelFaulted():
            return "error" if inner.action in {"stop", "degrade"} else "warning"
        case (
            events.ReplyRejected()
            | events.CompactionFailed()
            | events.HookReported()
            | events.LimitWaitStarted()
        ):
            return "warning"
    return "info"


def history(journal: Iterable[events.Event], workspace: Path, announced: Announced) -> list[Update]:
    """The updates that bring back what a session's journal holds, without what was rewound."""
    recorded = list(journal)
    gone: dict[int, int] = {}
    for event in recorded:
        if isinstance(event, events.Rewound) and event.undoes:
            gone.pop(event.undoes, None)
        elif isinstance(event, events.Rewound) and event.scope != "files":
            gone[event.seq] = event.to_seq
    updates, state = Updates(workspace, announced, replaying=True), RunState()
    found: list[Update] = []
    for event in recorded:
        state = apply(state, event)
        said = [] if isinstance(event, events.ReplyDelta) else [*updates.of(event, state)]
        if not any(to_seq < event.seq <= seq for seq, to_seq in gone.items()):
            found += said
    return found
