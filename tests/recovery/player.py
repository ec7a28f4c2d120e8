"""Plays steps of a run, written in a few words, into the whole state as the loop would, and reads what it says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tui_agent.core.events import (
    EscalationAnswered,
    EscalationRaised,
    Event,
    Failure,
    FailureKind,
    Fault,
    FaultKind,
    IterationFinished,
    IterationStarted,
    ModelCallStarted,
    ModelFaulted,
    ReplyFinished,
    ReplyRejected,
    RunStarted,
    ToolCall,
    ToolCancelled,
    ToolFailed,
    ToolRefused,
    ToolResult,
    ToolSucceeded,
)
from tui_agent.core.fold import apply
from tui_agent.core.recovery import fault_plan
from tui_agent.core.recovery.attempts import AttemptLedger
from tui_agent.core.recovery.cognition import CognitiveState
from tui_agent.core.recovery.engine import Permit, RecoveryState
from tui_agent.core.recovery.model_faults import ModelFaults
from tui_agent.core.recovery.note import compose
from tui_agent.core.recovery.policy import PRESETS, RecoveryPolicy
from tui_agent.core.recovery.ring import ErrorRing
from tui_agent.core.recovery.streak import ErrorStreak
from tui_agent.core.state import RunState

TOOLS = ("read_file", "write_file", "edit_file", "glob", "grep", "list_dir", "bash", "ask_operator", "finish")
WRITERS = frozenset({"write_file", "edit_file"})


def fail(path: str = "a", tool: str = "read_file", **facts: Any) -> dict[str, Any]:
    """A call that fails, for `Player.batch`."""
    return {"tool": tool, "input": {"path": path}, "ok": False, "error": f"file not found: {path}", **facts}


def ok(path: str = "z", tool: str = "read_file", **facts: Any) -> dict[str, Any]:
    """A call that succeeds, for `Player.batch`."""
    return {"tool": tool, "input": {"path": path}, "ok": True, "content": f"text of {path}", **facts}


def bash(error: str | None, command: str = "pytest -q") -> dict[str, Any]:
    return {"tool": "bash", "input": {"command": command}, "ok": error is None, "error": error or ""}


def named(value: object) -> str:
    """The id of a row of a table: its words."""
    return value if isinstance(value, str) else ""


@dataclass
class Player:
    """Feeds steps to a state as the loop would; `events` keeps what was fed.

    `fallbacks` and `jitter` go to `fault_plan.plan`. `refused` holds the refusals of the newest step.
    """

    policy: RecoveryPolicy = PRESETS["combined"]
    operator_present: bool = False
    tools: Sequence[str] = TOOLS
    fallbacks: Sequence[str] = ()
    jitter: float = 0.5
    whole: RunState = field(default_factory=RunState)
    events: list[Event] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    iteration: int = 0
    run: int = 0

    def __post_init__(self) -> None:
        self.start("a task")

    def feed(self, *events: Event) -> None:
        """Fold events, numbered and one second apart."""
        for event in events:
            place = len(self.events) + 1
            stamped = event.stamped(place, float(place))
            self.events.append(stamped)
            self.whole = apply(self.whole, stamped)

    @property
    def state(self) -> RecoveryState:
        """The detectors."""
        return self.whole.recovery

    def note(self, hook_context: Sequence[str] = ()) -> str:
        """The note for the next model call; "" where there is none."""
        return compose(self.state, self.whole.answer, hook_context).text or ""

    def permit(self, tool: str, arguments: dict[str, Any], *earlier: tuple[str, dict[str, Any]]) -> Permit:
        """Whether this call may run now, after the `earlier` calls of the same reply."""
        counts: Counter[str] = Counter()
        for name, fields in earlier:
            counts.update((name, self.state.key(name, fields)))
        return self.state.permit(tool, self.state.key(tool, arguments), counts)

    @property
    def subject(self) -> tuple[str, dict[str, Any]] | None:
        """The call that the strongest verdict is about."""
        about = self.state.subject()
        return None if about is None else (about.tool, dict(about.input))

    def start(self, task: str) -> None:
        """A run begins."""
        self.run += 1
        self.iteration = 0
        self.feed(
            RunStarted(
                run=self.run,
                task=task,
                policy=self.policy.name,
                policy_settings=self.policy.model_dump(mode="json"),
                tools=tuple(self.tools),
                operator_present=self.operator_present,
            )
        )

    def step(self, step: Mapping[str, Any]) -> None:
        """One step in the cases' own words."""
        match step:
            case {"batch": calls}:
                self.batch(*calls)
            case {"text": text}:
                self.text(text)
            case {"invalid": call}:
                message = f"the arguments of {call['tool']} are not JSON: {call['raw']}"
                self.wrong_call(FailureKind.INVALID_TOOL_CALL, call["tool"], {}, message)
            case {"unknown": call}:
                message = f"there is no tool {call['tool']}"
                self.wrong_call(FailureKind.UNKNOWN_TOOL, call["tool"], call["input"], message)
            case {"model_fault": kind}:
                self.fault(Fault(kind=FaultKind(kind), message="scripted"))
            case {"operator": text}:
                self.answer("answer", text)
            case {"new_run": task}:
                self.start(task)
            case _:
                raise ValueError(f"a step of an unknown form: {step}")

    def batch(self, *calls: Mapping[str, Any], text: str = "") -> None:
        """One iteration with these calls: `{"tool", "input", "ok", "error"?, "content"?, ...facts of the failure}`."""
        self._open(len(calls), text)
        let_through: Counter[str] = Counter()
        results = []
        for index, call in enumerate(calls):
            tool, arguments = call["tool"], dict(call["input"])
            key = self.state.key(tool, arguments)
            permit = self.state.permit(tool, key, let_through)
            place = {"call_id": f"{self.iteration}.{index}", "tool": tool, "input": arguments, "index": index}
            if not permit.allowed:
                self.refused.append(permit.refusal)
                results.append(
                    ToolRefused(
                        **place,
                        refusal=permit.refusal or "denied",
                        reason=permit.reason,
                        content=permit.reason,
                        rule=permit.rule,
                    )
                )
                continue
            if call.get("denied"):
                results.append(ToolRefused(**place, refusal="denied", reason="no"))
                continue
            let_through.update((tool, key))
            place["duration"] = call.get("duration", 0.0)
            results.append(self._result(call, place))
        self.feed(*results)
        self._close()

    def _result(self, call: Mapping[str, Any], place: dict[str, Any]) -> ToolResult:
        tool, arguments = place["tool"], place["input"]
        if call.get("cancelled"):
            return ToolCancelled(**place, reason="interrupted")
        if call["ok"]:
            changed = (str(arguments.get("path", "a")),) if tool in WRITERS else ()
            changed = tuple(call.get("changed", changed))
            return ToolSucceeded(**place, content=call.get("content", "done"), changed=changed)
        error = call.get("error", "failed")
        failure = Failure(
            kind=call.get("kind", FailureKind.TOOL_EXECUTION),
            message=error,
            tool=tool,
            input=arguments,
            iteration=self.iteration,
            transient=call.get("transient", False),
            unknown_effect=call.get("unknown_effect", False),
        )
        return ToolFailed(**place, content=f"Error: {error}", failure=failure)

    def text(self, text: str, *, reject: bool = False, cut: bool = False) -> None:
        """One iteration with a reply without calls; `cut`: the length limit ended it."""
        self._open(0, text, "length" if cut else "stop")
        if not cut and (reject or self.state.rejects_text(text)):
            self.feed(
                ReplyRejected(
                    failure=Failure(
                        kind=FailureKind.NO_TOOL_CALL,
                        message="The reply has no tool call.",
                        iteration=self.iteration,
                    )
                )
            )
        self._close()

    def wrong_call(self, kind: FailureKind, tool: str, arguments: dict[str, Any], message: str) -> None:
        """One iteration with a call that was wrong before it could run."""
        self._open(1)
        failure = Failure(kind=kind, message=message, tool=tool, input=arguments, iteration=self.iteration)
        self.feed(
            ToolFailed(
                call_id=f"{self.iteration}.0", tool=tool, input=arguments, content=message, failure=failure
            )
        )
        self._close()

    def fault(self, fault: Fault, *, can_shrink: bool = True) -> fault_plan.FaultPlan:
        """A failed model call: another try of the open iteration, else the first of a new one."""
        self._begin()
        attempt = self.whole.run.attempt
        plan = fault_plan.plan(
            self.policy,
            self.state.of(ModelFaults),
            fault,
            operator_present=self.operator_present,
            fallbacks=tuple(self.fallbacks),
            can_shrink=can_shrink,
            jitter=self.jitter,
        )
        self.feed(
            ModelFaulted(
                fault=fault,
                iteration=self.iteration,
                attempt=attempt,
                action=plan.action,
                rule=plan.rule,
                reason=plan.reason,
                delay=plan.delay,
                next_model=plan.next_model,
            )
        )
        if plan.action not in {"retry", "fallback", "shrink", "ask"}:
            self._close()
        return plan

    def answer(self, choice: str, text: str = "", *, by: str = "operator", edited: Any = None) -> None:
        """The strongest verdict is put to the operator and answered."""
        asked = self.state.strongest()
        subject = self.state.subject()
        tool, arguments = ("", {}) if subject is None else (subject.tool, dict(subject.input))
        number = f"escalation-{len(self.events)}"
        self.feed(
            EscalationRaised(
                id=number,
                question=asked.reason,
                source=asked.detector,
                tool=tool,
                input=arguments,
                key="" if subject is None else subject.key,
            ),
            EscalationAnswered.model_validate(
                {
                    "id": number,
                    "choice": choice,
                    "text": text,
                    "message": text,
                    "tool": tool,
                    "input": arguments if edited is None else edited,
                    "by": by,
                }
            ),
        )

    @property
    def level(self) -> str:
        """The strongest verdict's level."""
        return self.state.strongest().level.value

    def _begin(self) -> None:
        """A model call, in the open iteration where its last call failed and is tried again."""
        if not self.whole.iteration_open:
            self.iteration += 1
            self.feed(IterationStarted(iteration=self.iteration))
        self.feed(ModelCallStarted(iteration=self.iteration, attempt=self.whole.run.attempt + 1))

    def _open(self, calls: int, text: str = "", finish_reason: str = "") -> None:
        self.refused = []
        self._begin()
        self.feed(
            ReplyFinished(
                finish_reason=finish_reason,
                text=text,
                calls=tuple(ToolCall(id=f"{self.iteration}.{index}", name="t") for index in range(calls)),
            ),
        )

    def _close(self) -> None:
        self.feed(IterationFinished(iteration=self.iteration))


def measured(player: Player) -> dict[str, Any]:
    """What a case's `expect` may name, as the player's state has it."""
    state = player.state
    return {
        "verdict": player.level,
        "ring": state.of(ErrorRing).filled,
        "attempts": state.of(AttemptLedger).highest,
        "streak": state.of(ErrorStreak).count,
        "confidence": state.of(CognitiveState).confidence,
        "stall": state.of(CognitiveState).stall,
        "strategy": state.of(CognitiveState).strategy.value,
        "blocked": "blocked" in player.refused,
    }
