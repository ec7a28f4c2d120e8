"""The shared recovery cases, and how they become our events.

`load_cases()` reads every case file but the peers' (`load_peer_cases()`); both give nothing where the files are
absent, so that a module parametrised over them is skipped. `Player` turns a case's steps into the events that the
production loop would make of them and feeds a `RecoveryState` with nothing else:

- `{"batch": [...]}` becomes a reply with those calls; each is asked for its permit first and ends as succeeded,
  failed or refused. A successful write or edit changes the file that its input names.
- `{"text": ...}` is an answer or a rejected reply, as the state says; `{"invalid": ...}` and `{"unknown": ...}` are
  failures of their kinds; `{"model_fault": ...}` is planned by `model_faults.plan`.
- `{"operator": ...}` answers the escalation that the strongest verdict raises; `{"new_run": ...}` starts a run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tui_agent import events as e
from tui_agent.recovery import model_faults
from tui_agent.recovery.engine import RecoveryState
from tui_agent.recovery.policy import PRESETS, RecoveryPolicy

SHARED = Path(os.environ.get("AGENT_TUI_SHARED", "") or Path(__file__).resolve().parents[2].parent / "shared")
CASES_DIR = SHARED / "cases"

TOOLS = ("read_file", "write_file", "edit_file", "glob", "grep", "list_dir", "bash", "ask_operator", "finish")
WRITERS = frozenset({"write_file", "edit_file"})


@dataclass(frozen=True)
class Case:
    """One case. `events` are fed in order; each of `expect` names the 1-based event `after` which it holds."""

    id: str
    preset: str
    events: tuple[dict[str, Any], ...]
    expect: tuple[dict[str, Any], ...]
    operator_present: bool = False
    note: str = ""


@dataclass(frozen=True)
class PeerCase:
    """A case from another project's suite, in the form that its file's `conventions` describe."""

    id: str
    events: tuple[dict[str, Any], ...]
    expected: dict[str, Any]


def load_cases() -> list[Case]:
    """All cases of the five presets; an empty list where they are not at hand."""
    cases = []
    for path in sorted(CASES_DIR.glob("*.json")):
        raw = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(raw, list):
            cases += [
                Case(
                    one["id"],
                    one["preset"],
                    tuple(one["events"]),
                    tuple(one["expect"]),
                    one.get("operator_present", False),
                    one.get("note", ""),
                )
                for one in raw
            ]
    return cases


def load_peer_cases() -> list[PeerCase]:
    """The peers' cases; an empty list where they are not at hand."""
    path = CASES_DIR / "peers.json"
    if not path.exists():
        return []
    raw = json.loads(path.read_text(encoding="utf-8"))
    return [PeerCase(one["id"], tuple(one["events"]), one["expected"]) for one in raw["cases"]]


def fail(path: str = "a", tool: str = "read_file", **facts: Any) -> dict[str, Any]:
    """A call that fails, for `Player.batch`."""
    return {"tool": tool, "input": {"path": path}, "ok": False, "error": f"file not found: {path}", **facts}


def ok(path: str = "z", tool: str = "read_file", **facts: Any) -> dict[str, Any]:
    """A call that succeeds, for `Player.batch`."""
    return {"tool": tool, "input": {"path": path}, "ok": True, "content": f"text of {path}", **facts}


def named(value: object) -> str:
    """The id of a row of a table: its words."""
    return value if isinstance(value, str) else ""


@dataclass
class Player:
    """Feeds steps to a recovery state as the loop would; `events` keeps what was fed.

    `fallbacks` and `jitter` go to `model_faults.plan`. `refused` holds the refusals of the newest step.
    """

    policy: RecoveryPolicy = PRESETS["combined"]
    operator_present: bool = False
    tools: Sequence[str] = TOOLS
    fallbacks: Sequence[str] = ()
    jitter: float = 0.5
    state: RecoveryState = field(default_factory=RecoveryState)
    events: list[e.Event] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    iteration: int = 0
    run: int = 0

    def __post_init__(self) -> None:
        self.start("a task")

    def feed(self, *events: e.Event) -> None:
        """Fold events, numbered and one second apart."""
        for event in events:
            place = len(self.events) + 1
            stamped = event.stamped(place, float(place))
            self.events.append(stamped)
            self.state = self.state.apply(stamped)

    def start(self, task: str) -> None:
        """A run begins."""
        self.run += 1
        self.iteration = 0
        self.feed(
            e.RunStarted(
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
                self.wrong_call(e.FailureKind.INVALID_TOOL_CALL, call["tool"], {}, message)
            case {"unknown": call}:
                message = f"there is no tool {call['tool']}"
                self.wrong_call(e.FailureKind.UNKNOWN_TOOL, call["tool"], call["input"], message)
            case {"model_fault": kind}:
                self.fault(e.Fault(kind=e.FaultKind(kind), message="scripted"))
            case {"operator": text}:
                self.answer("answer", text)
            case {"new_run": task}:
                self.start(task)
            case _:
                raise ValueError(f"a step of an unknown form: {step}")

    def batch(self, *calls: Mapping[str, Any]) -> None:
        """One iteration with these calls: `{"tool", "input", "ok", "error"?, "content"?, ...facts of the failure}`."""
        self._open(len(calls))
        let_through: list[tuple[str, dict[str, Any]]] = []
        results = []
        for index, call in enumerate(calls):
            tool, arguments = call["tool"], dict(call["input"])
            permit = self.state.permit(tool, arguments, let_through)
            place = {"call_id": f"{self.iteration}.{index}", "tool": tool, "input": arguments, "index": index}
            if not permit.allowed:
                self.refused.append(permit.refusal)
                results.append(
                    e.ToolRefused(**place, refusal=permit.refusal or "denied", reason=permit.reason)
                )
                continue
            if call.get("denied"):
                results.append(e.ToolRefused(**place, refusal="denied", reason="no"))
                continue
            let_through.append((tool, arguments))
            results.append(self._result(call, place))
        self.feed(*results)
        self._close()

    def _result(self, call: Mapping[str, Any], place: dict[str, Any]) -> e.ToolResult:
        tool, arguments = place["tool"], place["input"]
        if call.get("cancelled"):
            return e.ToolCancelled(**place, reason="interrupted")
        if call["ok"]:
            changed = (str(arguments.get("path", "a")),) if tool in WRITERS else ()
            changed = tuple(call.get("changed", changed))
            return e.ToolSucceeded(**place, content=call.get("content", "done"), changed=changed)
        error = call.get("error", "failed")
        failure = e.Failure(
            kind=call.get("kind", e.FailureKind.TOOL_EXECUTION),
            message=error,
            tool=tool,
            input=arguments,
            iteration=self.iteration,
            transient=call.get("transient", False),
            unknown_effect=call.get("unknown_effect", False),
        )
        return e.ToolFailed(**place, content=f"Error: {error}", failure=failure)

    def text(self, text: str, *, reject: bool = False) -> None:
        """One iteration with a reply without calls."""
        self._open(0, text)
        if reject or not self.state.takes_text_as_answer():
            self.feed(
                e.ReplyRejected(
                    failure=e.Failure(
                        kind=e.FailureKind.NO_TOOL_CALL,
                        message="The reply has no tool call.",
                        iteration=self.iteration,
                    )
                )
            )
        self._close()

    def wrong_call(self, kind: e.FailureKind, tool: str, arguments: dict[str, Any], message: str) -> None:
        """One iteration with a call that was wrong before it could run."""
        self._open(1)
        failure = e.Failure(kind=kind, message=message, tool=tool, input=arguments, iteration=self.iteration)
        self.feed(
            e.ToolFailed(
                call_id=f"{self.iteration}.0", tool=tool, input=arguments, content=message, failure=failure
            )
        )
        self._close()

    def fault(self, fault: e.Fault, tries: int = 1, shrinks: int = 0) -> model_faults.FaultPlan:
        """A failed model call, in an iteration of its own where it is the first try."""
        if tries == 1 and shrinks == 0:
            self.iteration += 1
            self.feed(e.IterationStarted(iteration=self.iteration))
        self.feed(e.ModelCallStarted(iteration=self.iteration, attempt=tries + shrinks))
        plan = model_faults.plan(
            self.state, fault, tries=tries, shrinks=shrinks, fallbacks=self.fallbacks, jitter=self.jitter
        )
        self.feed(
            e.ModelFaulted(
                fault=fault,
                iteration=self.iteration,
                attempt=tries + shrinks,
                action=plan.action,
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
        tool, arguments = self.state.subject() or ("", {})
        number = f"escalation-{len(self.events)}"
        self.feed(
            e.EscalationRaised(
                id=number, question=asked.reason, source=asked.detector, tool=tool, input=arguments
            ),
            e.EscalationAnswered.model_validate(
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

    def _open(self, calls: int, text: str = "") -> None:
        self.iteration += 1
        self.refused = []
        self.feed(
            e.IterationStarted(iteration=self.iteration),
            e.ModelCallStarted(iteration=self.iteration),
            e.ReplyFinished(
                text=text,
                calls=tuple(e.ToolCall(id=f"{self.iteration}.{index}", name="t") for index in range(calls)),
            ),
        )

    def _close(self) -> None:
        self.feed(e.IterationFinished(iteration=self.iteration))


def measured(player: Player) -> dict[str, Any]:
    """What a case's `expect` may name, as the player's state has it."""
    state = player.state
    return {
        "verdict": player.level,
        "ring": state.ring.filled,
        "attempts": state.attempts.highest,
        "streak": state.streak.count,
        "confidence": state.cognition.confidence,
        "stall": state.cognition.stall,
        "strategy": state.cognition.strategy.value,
        "blocked": "blocked" in player.refused,
    }
