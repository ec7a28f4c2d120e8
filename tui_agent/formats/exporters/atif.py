"""The session as a trajectory in ATIF 1.8 (Harbor's RFC 0001), for what reads that: Harbor, Inspect Scout, trainers.

The format has no mark of failure, so each result says in `extra` how it ended: `is_error` and `exit_code`, as other
converters do, and under `OURS` what brings the events back (`importers.atif` reads it). Sub-agents are trajectories
of their own within the document.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tui_agent import __version__
from tui_agent.core import events
from tui_agent.core.fold import fold
from tui_agent.formats.exporters.json import written
from tui_agent.formats.importers.atif import OURS, VERSION

Step = dict[str, Any]


def to_atif(told: Sequence[events.Event]) -> str:
    """The document."""
    state = fold(told)
    main = _Trajectory()
    lanes: dict[str, _Trajectory] = {}
    for event in told:
        if isinstance(event, events.LaneEvent):
            lanes.setdefault(event.lane, _Trajectory(event.name)).take(event.placed)
        else:
            main.take(event)
    document = main.document(state.session.id, state.session.id, lanes)
    usage = state.metrics.session_usage
    document["final_metrics"] = {
        "total_prompt_tokens": usage.prompt_tokens,
        "total_completion_tokens": usage.completion_tokens,
        "total_cached_tokens": usage.cached_tokens,
        "total_cost_usd": usage.cost,
        "total_steps": len(document["steps"]),
    }
    document["extra"] = {
        OURS: {
            "title": state.session.title,
            "workspace": state.session.workspace,
            "policy": state.run.policy,
            "outcome": str(state.run.outcome or ""),
            "reason": state.run.reason,
            "answer": state.run.answer,
            "failures": state.metrics.failures,
            "recoveries": state.metrics.recoveries,
            "unrecovered": state.metrics.unrecovered,
        }
    }
    if lanes:
        document["subagent_trajectories"] = [
            lane.document(state.session.id, key, {}) for key, lane in lanes.items()
        ]
    return written(document)


@dataclass
class _Trajectory:
    """The steps of one agent; `name` of a sub-agent."""

    name: str = ""
    model: str = ""
    prompt: str = ""
    steps: list[tuple[int, Step]] = field(default_factory=list)
    """Each with the number of its event."""
    before: dict[int, list[tuple[int, Step]]] = field(default_factory=dict)
    """The steps before each rewind, by the number of its event."""

    def take(self, event: events.Event) -> None:
        """Add what the event tells."""
        match event:
            case events.RunStarted():
                self.model = self.model or event.model
                if event.system_prompt and not self.steps:
                    self._step(event, "system", event.system_prompt)
                self._step(event, "user", events.with_images_named(event.task, event.images))
            case events.OperatorSpoke():
                self._step(event, "user", events.with_images_named(event.text, event.images))
            case events.ReplyFinished():
                self._reply(event)
            case events.ReplyRejected():
                self._last()[OURS].update(rejected=event.failure.message, kind=event.failure.kind.value)
            case events.ModelFaulted():
                fault = event.fault.model_dump(mode="json", exclude_defaults=True)
                self._step(event, "system", event.fault.message, fault=fault, delay=event.delay)
            case events.ToolResult():
                self._result(event)
            case events.Rewound() if event.scope != "files":
                self.before[event.seq] = self.steps
                standing = [(seq, step) for seq, step in self.steps if seq <= event.to_seq]
                self.steps = list(self.before.get(event.undoes, standing))
            case events.RunFinished(outcome=events.Outcome.ANSWERED):
                self._last()[OURS]["answer"] = event.answer
            case events.RunFinished():
                told = {name: getattr(event, name) for name in ("answer", "detector", "rule")}
                self._step(event, "system", event.reason, outcome=event.outcome.value, **told)

    def document(self, session: str, key: str, lanes: Iterable[str]) -> dict[str, Any]:
        """The trajectory, in which results of calls that started a lane refer to it."""
        steps = [step for _, step in self.steps] or [{"source": "system", "message": ""}]
        started = set(lanes)
        for number, step in enumerate(steps, start=1):
            step["step_id"] = number
            for result in step.get("observation", {}).get("results", ()):
                if result["source_call_id"] in started:
                    result["subagent_trajectory_ref"] = [{"trajectory_id": result["source_call_id"]}]
        agent = {"name": self.name or "agent-tui", "version": __version__, "model_name": self.model or None}
        return {
            "schema_version": VERSION,
            "session_id": session,
            "trajectory_id": key,
            "agent": {name: value for name, value in agent.items() if value is not None},
            "steps": steps,
        }

    def _step(self, event: events.Event, source: str, message: str, **ours: Any) -> Step:
        moment = datetime.fromtimestamp(event.at, UTC).isoformat()
        step: Step = {"step_id": 0, "timestamp": moment, "source": source, "message": message}
        if ours or source == "agent":
            step["extra"] = {OURS: ours}
        self.steps.append((event.seq, step))
        return step

    def _last(self) -> dict[str, Any]:
        """The `extra` of the newest reply."""
        replies = (step["extra"] for _, step in reversed(self.steps) if step["source"] == "agent")
        return next(replies, {OURS: {}})

    def _reply(self, event: events.ReplyFinished) -> None:
        step = self._step(event, "agent", event.text, finish_reason=event.finish_reason)
        step["llm_call_count"] = int(event.by == "model")
        if event.model:
            step["model_name"] = event.model
        if event.by == "model":
            step["metrics"] = {
                "prompt_tokens": event.prompt_tokens,
                "completion_tokens": event.completion_tokens,
                "cached_tokens": event.cached_tokens,
                "cost_usd": event.cost,
            }
            step["reasoning_content"] = event.reasoning or None
        if event.calls:
            step["tool_calls"] = [_call(call) for call in event.calls]

    def _result(self, event: events.ToolResult) -> None:
        """A result stands in the step of its call."""
        for _, step in reversed(self.steps):
            if any(call["tool_call_id"] == event.call_id for call in step.get("tool_calls", ())):
                results = step.setdefault("observation", {"results": []})["results"]
                results.append(
                    {"source_call_id": event.call_id, "content": event.content, "extra": _ending(event)}
                )
                return


def _call(call: events.ToolCall) -> dict[str, Any]:
    """A call; arguments that are no object stand beside it as they were written."""
    try:
        given = json.loads(call.arguments or "{}")
    except ValueError:
        given = None
    plain = {"tool_call_id": call.id, "function_name": call.name, "arguments": given}
    if isinstance(given, dict):
        return plain
    return plain | {"arguments": {}, "extra": {OURS: {"arguments": call.arguments}}}


def _ending(event: events.ToolResult) -> dict[str, Any]:
    ours: dict[str, Any] = {"duration": event.duration, "at": event.at}
    found: dict[str, Any] = {OURS: ours}
    if isinstance(event, events.ToolSucceeded | events.ToolFailed) and event.exit_code is not None:
        found["exit_code"] = event.exit_code
    match event:
        case events.ToolSucceeded():
            found["is_error"] = False
            ours |= {"status": "ok", "changed": list(event.changed), "diff": event.diff}
        case events.ToolFailed():
            found["is_error"] = True
            kept = {"kind": event.failure.kind.value, "message": event.failure.message}
            ours |= {"status": "failed", "unknown_effect": event.failure.unknown_effect, **kept}
        case events.ToolRefused():
            found["is_error"] = True
            ours |= {"status": "denied", "refusal": event.refusal, "message": event.reason}
        case events.ToolCancelled():
            found["is_error"] = True
            ours |= {"status": "cancelled", "message": event.reason}
        case _:
            ours["status"] = "unknown"
    return found
