"""Plays a case through the pure core: `decide` says what comes next, the case's steps say what the world answers.

Nothing runs here and no time passes. What a tool would have recorded is made from the call's own words; everything else
(verdicts, notes, refusals, questions, the end) comes from the core.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from tests.cases import (
    Action,
    Answer,
    Breaker,
    Call,
    Case,
    Compact,
    End,
    Fault,
    Message,
    Reply,
    Request,
    Task,
)
from tests.cases.view import View, broken
from tui_agent.core import events
from tui_agent.core.decision import steps
from tui_agent.core.decision.answers import escalation_answered
from tui_agent.core.decision.decide import decide
from tui_agent.core.decision.model_calls import model_faulted
from tui_agent.core.decision.tool_calls import as_error
from tui_agent.core.fold import apply
from tui_agent.core.names import ASK_OPERATOR, FINISH, Phase
from tui_agent.core.recovery.echo import echo_in
from tui_agent.core.recovery.policy import preset
from tui_agent.core.recovery.repetition import repetition_in
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.recovery.signature import raw_call_key
from tui_agent.core.request import compaction, text_calls
from tui_agent.core.request.broken_reply import broken_reply
from tui_agent.core.request.coherence import validate
from tui_agent.core.request.written_calls import written_calls
from tui_agent.core.state import RunState

EFFECTS = {
    "read_file": "read",
    "list_dir": "read",
    "glob": "read",
    "grep": "read",
    "write_file": "write",
    "edit_file": "write",
    FINISH: "dialogue",
    ASK_OPERATOR: "dialogue",
}
"""What the tools of the cases may do; any other is a command."""

MOST_STEPS = 200
"""Decisions between two steps of a case; more would be a loop without an end."""


@dataclass
class Player:
    """One case on its way. `happened` holds the events of the step that was played last."""

    case: Case
    changes: dict[str, Any] = field(default_factory=dict)
    """Parameters of the policy beside the case's own, to take a rule away."""
    state: RunState = field(default_factory=RunState)
    happened: list[events.Event] = field(default_factory=list)
    seen: list[events.VerdictReached] = field(default_factory=list)
    demand: steps.CallModel | steps.Ask | None = None
    """What the core waits for; None when the run has ended."""
    sent: tuple[str, ...] = ()
    repairs: tuple[str, ...] = ()
    _calls: dict[str, Call] = field(default_factory=dict)
    _hook: str = ""

    def __post_init__(self) -> None:
        self._feed(events.SessionStarted(session_id="case", workspace="/work"))
        self._start("a task")

    def play(self, action: Action) -> None:
        """One step, up to the next demand on the model or the operator."""
        self.happened = []
        match action:
            case Reply():
                self._reply(action)
            case Fault():
                self._fault(action)
            case Answer():
                self._answer(action)
            case Message():
                self._feed(events.MessageQueued(id=f"queued-{self.state.seq}", text=action.text))
            case Task():
                self._start(action.text)
            case Breaker():
                self._feed(events.BreakerSet(tool=action.tool, open=action.opened))
            case End():
                rule = Rule.RUN_ERROR if action.outcome == "error" else Rule.RUN_INTERRUPTED
                outcome = events.Outcome(action.outcome)
                self._feed(events.StopRequested(reason=action.reason, outcome=outcome, rule=rule))
            case Request():
                self._request(action)
                return
            case Compact():
                # The call that is due has gone out already.
                self._feed(events.CompactionRequested(instructions=action.instructions))
                return
        self._settle()

    def _feed(self, *recorded: events.Event) -> None:
        for event in recorded:
            seq = self.state.seq + 1
            stamped = event.stamped(seq, float(seq))
            self.state = apply(self.state, stamped)
            self.happened.append(stamped)
            if isinstance(stamped, events.VerdictReached):
                self.seen.append(stamped)

    # --- the core's demands ---------------------------------------------------------------------------------

    def _settle(self) -> None:
        self.demand = None
        for _ in range(MOST_STEPS):
            if self.state.phase is Phase.DONE:
                return
            match decide(self.state):
                case steps.Record(recorded):
                    self._feed(*recorded)
                case steps.StartIteration(number):
                    self._feed(events.IterationStarted(iteration=number))
                case steps.LearnWindow(model):
                    self._feed(events.ModelWindowLearned(model=model, tokens=None))
                case steps.Advise(model):
                    iteration = self.state.run.iteration
                    self._feed(events.Advised(iteration=iteration, model=model, text=self.case.advice))
                case steps.Summarise() as step:
                    self._summary(step)
                case steps.RunCalls(groups):
                    self._run([call for group in groups for call in group])
                case steps.Ask(question) if self.case.operator == "absent":
                    choice = self.case.on_escalation
                    self._feed(escalation_answered(question, choice, by="policy"))
                case steps.Finish(finished):
                    self._feed(finished)
                case demand:
                    self.demand = demand
                    return
        raise AssertionError(f"{self.case.id}: {MOST_STEPS} decisions without a demand: {self.happened[-4:]}")

    def _start(self, task: str) -> None:
        case = self.case
        policy = preset(case.policy, **{"closing_turn": False, **case.settings, **self.changes})
        self.seen = []
        self._feed(
            events.RunStarted(
                run=self.state.run.number + 1,
                task=task,
                policy=policy.name,
                policy_settings=policy.model_dump(mode="json"),
                model="first/model",
                tools=tuple(sorted(self._tools())),
                approve=events.Approval.ALL,
                max_iterations=case.max_iterations,
                asks_for_steps=case.asks_for_steps,
                max_cost=case.max_cost,
                budgets=case.budgets,
                context_tokens=case.context_tokens,
                tool_calls=case.tool_calls,
                advisor="other/model" if case.advice else "",
                fallback_models=case.fallbacks,
                fallbacks=case.fallbacks_by_kind,
                on_limit=case.on_limit,
                wait_at_most=case.wait_at_most,
                operator_present=case.operator == "present",
                on_escalation=case.on_escalation,
            )
        )
        self._settle()

    def _run(self, calls: list[events.ToolCall]) -> None:
        for call in calls:
            self._look_at_workspace(call)
            self._feed(*self._result(call))

    def _look_at_workspace(self, call: events.ToolCall) -> None:
        """As the loop does it before the first call of a run that may write."""
        before = f"run {self.state.run.number}"
        if call.effect != "read" and all(saved.before != before for saved in self.state.checkpoints[:]):
            self._feed(events.CheckpointSaved(ref="case", before=before))

    def _tools(self) -> set[str]:
        if self.case.tools:
            return set(self.case.tools)
        replies = [step.action for step in self.case.steps if isinstance(step.action, Reply)]
        named = {call.tool for reply in replies for call in reply.calls if call.outcome != "unknown"}
        return named | EFFECTS.keys() | {"bash"}

    # --- the model ------------------------------------------------------------------------------------------

    def _called(self) -> steps.CallModel:
        call = self.demand
        assert isinstance(call, steps.CallModel), f"{self.case.id}: the model is not asked now, but {call}"
        iteration = self.state.run.iteration
        self._feed(
            events.ModelCallStarted(
                iteration=iteration,
                attempt=call.attempt,
                model=call.model,
                note=call.note,
                tokens=sum(group.tokens for group in self.state.history.groups[:]),
            )
        )
        return call

    def _reply(self, reply: Reply) -> None:
        called = self._called()
        number = self.state.run.iteration
        calls = tuple(self._tool_call(f"{number}.{at}", call) for at, call in enumerate(reply.calls))
        self._calls = {made.id: call for made, call in zip(calls, reply.calls, strict=True)}
        self._hook = reply.hook
        as_text = text_calls.writes_calls(self.state, called.model)
        written = text_calls.read(reply.text) if as_text else None
        if written is not None and written.problem is not None:
            key = raw_call_key(written.name, written.arguments)
            made = events.ToolCall(id=f"{number}.0", name=written.name, key=key, problem=written.problem)
            calls = (made,)
        text, broken, found = reply.text, None, None
        if not calls and self.state.recovery.policy.reads_text:
            found = written_calls(text, self._tools(), cut=reply.cut)
            if found is not None:
                assert reply.written is not None, (
                    f"{self.case.id}: the text is a call, and the case says none"
                )
                (calls, text) = (self._tool_call(f"{number}.0", reply.written),), found.text
                self._calls = {calls[0].id: reply.written}
            else:
                broken = repetition_in(text, "length" if reply.cut else "stop")
                broken = broken or self._broken(reply, native=not as_text)
                broken = broken or echo_in(text, called.note, self.state.recovery, "")
        reason = "length" if reply.cut else "tool_calls" if calls else reply.finish or "stop"
        spent = {"cost": reply.cost, "prompt_tokens": reply.tokens, "broken": broken}
        spent["written"] = found is not None and not as_text
        spent["reasoning"] = reply.reasoning
        self._feed(events.ReplyFinished(text=text, calls=calls, finish_reason=reason, **spent))

    def _broken(self, reply: Reply, *, native: bool) -> events.CallProblem | None:
        last = self.state.recovery.last
        return broken_reply(
            reply.text,
            reply.reasoning,
            "length" if reply.cut else reply.finish,
            self._tools(),
            native=native,
            lost_before=last is not None
            and last.rejected is not None
            and last.rejected.rule == "form.lost_call",
        )

    def _tool_call(self, identity: str, call: Call) -> events.ToolCall:
        if call.outcome == "malformed":
            kind, message = events.FailureKind.INVALID_TOOL_CALL, f"The arguments are no JSON: {call.text}"
            problem = events.CallProblem(kind=kind, message=message)
            key = raw_call_key(call.tool, call.text)
            return events.ToolCall(id=identity, name=call.tool, arguments=call.text, key=key, problem=problem)
        arguments = json.dumps(call.input)
        key = self.state.recovery.key(call.tool, call.input)
        if call.outcome == "unknown":
            kind = events.FailureKind.UNKNOWN_TOOL
            problem = events.CallProblem(
                kind=kind, message=f"There is no tool {call.tool}.", input=call.input
            )
            return events.ToolCall(id=identity, name=call.tool, arguments=arguments, key=key, problem=problem)
        effect = EFFECTS.get(call.tool, "command")
        return events.ToolCall.model_validate(
            {"id": identity, "name": call.tool, "arguments": arguments, "key": key, "effect": effect}
        )

    def _fault(self, fault: Fault) -> None:
        call = self._called()
        message = fault.message if fault.limit is None else f"the maximum is {fault.limit} tokens"
        happened = events.Fault(
            kind=fault.kind,
            message=message,
            status=fault.status,
            retry_after=fault.retry_after,
            resets_at=None if fault.resets_in is None else self.state.at + fault.resets_in,
            window=fault.limit,
        )
        self._feed(model_faulted(self.state, happened, call.model, 0.5))

    def _summary(self, step: steps.Summarise) -> None:
        plan = step.plan
        started = events.CompactionStarted(
            model=step.model, to_seq=plan.to_seq, groups=plan.groups, tokens=plan.tokens, rule=step.rule
        )
        self._feed(started)
        made = compaction.compacted(self.state, started, plan, self.case.summary)
        self._feed(compaction.failed(self.state, made) if isinstance(made, str) else made)

    # --- tools ----------------------------------------------------------------------------------------------

    def _result(self, issued: events.ToolCall) -> list[events.Event]:
        call = self._calls[issued.id]
        reply = self.state.recovery.reply
        index = next(at for at, other in enumerate(reply.calls if reply else ()) if other.id == issued.id)
        place = {
            "call_id": issued.id,
            "tool": call.tool,
            "input": call.input,
            "index": index,
            "key": issued.key,
        }
        started = events.ToolStarted.model_validate(place)
        if call.outcome == "denied":
            facts = {
                "refusal": "denied",
                "rule": Rule.OPERATOR_DENIED,
                "reason": call.text,
                "content": call.text,
            }
            return [events.ToolRefused.model_validate({**place, **facts})]
        if call.outcome == "cancelled":
            reason = "another call of the reply failed"
            return [started, events.ToolCancelled.model_validate({**place, "reason": reason})]
        failure = self._failure(call)
        if failure is None:
            done = {**place, "content": call.text, "changed": call.changed, "files": call.files}
            done["contradiction"] = call.contradiction
            return [started, events.ToolSucceeded.model_validate(done)]
        failed = {**place, "content": as_error(failure.message), "failure": failure}
        result: list[events.Event] = [started, events.ToolFailed.model_validate(failed)]
        if self._hook:
            hook = {"hook": "PostToolUseFailure", "command": "explain", "status": "ok", "context": self._hook}
            result.append(events.HookReported.model_validate(hook))
        return result

    def _failure(self, call: Call) -> events.Failure | None:
        message, every_tool = call.text, self.state.recovery.policy.error_prefix == "every_tool"
        match call.outcome:
            case "succeeds" if every_tool and call.text.startswith("Error:"):
                pass
            case "exits" if call.exit_code:
                message = f"The command failed with exit code {call.exit_code}.\n{call.text or '(no output)'}"
            case "succeeds" | "exits":
                return None
        return events.Failure(
            kind=events.FailureKind.TOOL_EXECUTION,
            tool=call.tool,
            input=call.input,
            message=message,
            iteration=self.state.run.iteration,
            transient=call.transient,
            unknown_effect=call.outcome == "times_out",
            hint=call.hint,
            known=None if call.known is None else events.Suggestion.model_validate(call.known),
        )

    # --- the operator ---------------------------------------------------------------------------------------

    def _answer(self, answer: Answer) -> None:
        asked = self.demand
        assert isinstance(asked, steps.Ask), f"{self.case.id}: nothing is asked now"
        edited = None
        if answer.call is not None:
            edited = answer.call.input
            self._calls = {f"operator-{self.state.run.iteration + 1}": answer.call}
        self._feed(escalation_answered(asked.question, answer.choice, answer.says, edited))

    # --- requests -------------------------------------------------------------------------------------------

    def _request(self, request: Request) -> None:
        coherent, repairs = validate([_message(words) for words in request.messages])
        self.sent = tuple(_words(message) for message in coherent)
        self.repairs = tuple(repairs)

    @property
    def view(self) -> View:
        """What the step that was played last has brought."""
        call = self.demand if isinstance(self.demand, steps.CallModel) else None
        return View(
            state=self.state,
            happened=self.happened,
            seen=self.seen,
            note=call.note if call else None,
            model=call.model if call else "",
            question=self.demand.question if isinstance(self.demand, steps.Ask) else None,
            sent=self.sent,
            repairs=self.repairs,
        )


def _message(words: str) -> dict[str, Any]:
    role, *ids = words.split()
    match role:
        case "user":
            return {"role": "user", "content": "words"}
        case "empty":
            return {"role": "assistant", "content": None}
        case "assistant":
            message: dict[str, Any] = {"role": "assistant", "content": "words"}
            if ids:
                message["tool_calls"] = [{"id": one, "function": {"name": "t"}} for one in ids]
            return message
        case _:
            return {"role": "tool", "tool_call_id": ids[0], "content": "done"}


def _words(message: dict[str, Any]) -> str:
    if message["role"] == "tool":
        return f"result {message['tool_call_id']}"
    return " ".join([message["role"], *(call["id"] for call in message.get("tool_calls", ()))])


def broken_expectations(case: Case, changes: dict[str, Any] | None = None) -> list[str]:
    """What the case expects and does not get; `changes` are parameters of the policy that differ from the case's."""
    player = Player(case, changes or {})
    failed = []
    for number, step in enumerate(case.steps, 1):
        try:
            for _ in range(step.times):
                player.play(step.action)
        except AssertionError as stuck:
            return [*failed, f"step {number}: {stuck}"]
        if step.then is not None:
            failed += [f"step {number}: {words}" for words in broken(player.view, step.then)]
    return failed
