"""Plays a case through the production loop: a session with its journal, a model and tools that the case scripts.

The loop runs until it waits for the model or the operator; then the next step of the case is what they say.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cases import Answer, Breaker, Call, Case, Compact, End, Fault, Message, Reply, Step, Task
from tests.cases.player import EFFECTS
from tests.cases.view import View, broken
from tui_agent.config.settings import Settings
from tui_agent.core import events
from tui_agent.core.decision.advice import ADVISES
from tui_agent.core.recovery.work import Work, files_meant
from tui_agent.core.request import compaction
from tui_agent.core.state import RunState
from tui_agent.core.tool_facts import Effect
from tui_agent.lab.bench.kept import MemoryCheckpoints
from tui_agent.models import protocol
from tui_agent.runtime.operator import ApprovalReply, EscalationReply, GateReply, RequestOutline
from tui_agent.session.opening import open_session
from tui_agent.session.session import Session
from tui_agent.tools.dialogue import AskOperator, FinishRun
from tui_agent.tools.errors import ToolError
from tui_agent.tools.registry import ToolRegistry
from tui_agent.tools.tool import ToolContext, ToolOutput
from tui_agent.tools.workspace import Workspace

LONGEST_WAIT = 30.0
"""Seconds until a loop that neither ends nor asks for anything fails the test."""


def can_be_played(case: Case) -> bool:
    """Whether tools and a model can bring about what the case describes.

    Nothing in a live run cancels a sibling, hands over an incoherent history or breaks the program on demand; hints
    come from the real tools, what is known of a failure from earlier runs, and how much of a window the system prompt
    takes is not the case's to say.
    """
    replies = [step.action for step in case.steps if isinstance(step.action, Reply)]
    calls = [call for reply in replies for call in reply.calls]
    return (
        all(
            isinstance(step.action, Reply | Fault | Answer | Message | Task | Breaker | Compact | End)
            for step in case.steps
        )
        and not any(isinstance(step.action, End) and step.action.outcome == "error" for step in case.steps)
        and not any(call.outcome == "cancelled" or call.hint or call.known for call in calls)
        and case.context_tokens is None
    )


@dataclass
class CaseModel:
    """Says what it is given, one action a call."""

    actions: asyncio.Queue[tuple[int, Reply | Fault]] = field(default_factory=asyncio.Queue)
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    summary: str = ""
    advice: str = ""

    async def stream(
        self, request: protocol.ModelRequest
    ) -> AsyncGenerator[protocol.Delta | protocol.Reply, None]:
        if str(request.messages[-1]["content"]).startswith(compaction.OPENING):
            yield protocol.Reply(text=self.summary)
            return
        if request.messages[0]["content"] == ADVISES:
            yield protocol.Reply(text=self.advice)
            return
        self.asked.set()
        number, action = await self.actions.get()
        if isinstance(action, Fault):
            message = action.message if action.limit is None else f"the maximum is {action.limit} tokens"
            raise protocol.ModelFault(
                events.Fault(
                    kind=action.kind,
                    message=message,
                    status=action.status,
                    retry_after=_quick(action.retry_after),
                    resets_at=None if action.resets_in is None else time.time() + action.resets_in,
                    window=action.limit,
                )
            )
        reason = "length" if action.cut else "tool_calls" if action.calls else action.finish or "stop"
        calls = tuple(_tool_call(f"{number}.{at}", call) for at, call in enumerate(action.calls))
        spent = {"cost": action.cost, "prompt_tokens": action.tokens}
        yield protocol.Reply(
            text=action.text, reasoning=action.reasoning, calls=calls, finish_reason=reason, **spent
        )

    async def context_tokens(self, model: str) -> int | None:
        return None

    async def close(self) -> None:
        pass


def _quick(seconds: float | None) -> float | None:
    """No test waits; a wait that is too long to be made stays what it is."""
    return seconds if seconds is None or seconds > 300 else 0.0


def _skipped(session: Session, event: events.Event) -> None:
    """No test waits for a limit either."""
    if isinstance(event, events.LimitWaitStarted):
        asyncio.get_running_loop().call_soon(session.skip_wait)


def _tool_call(identity: str, call: Call) -> events.ToolCall:
    raw = call.text if call.outcome == "malformed" else json.dumps(call.input)
    return events.ToolCall(id=identity, name=call.tool, arguments=raw)


@dataclass
class CaseOperator:
    """Answers what the case says; where nobody is there, by `--on-escalation`."""

    case: Case
    calls: dict[str, Call]
    answers: asyncio.Queue[EscalationReply] = field(default_factory=asyncio.Queue)
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def present(self) -> bool:
        return self.case.operator == "present"

    async def approve(self, asked: events.ApprovalAsked) -> ApprovalReply:
        call = self.calls.get(asked.call_id)
        if call is not None and call.outcome == "denied":
            return ApprovalReply("deny", call.text)
        return ApprovalReply("once")

    async def answer(self, raised: events.EscalationRaised) -> EscalationReply:
        if not self.present:
            return EscalationReply(self.case.on_escalation, by="policy")
        self.asked.set()
        return await self.answers.get()

    async def gate(self, outline: RequestOutline) -> GateReply:
        return GateReply(outline.note)


@dataclass(frozen=True)
class CaseTool:
    """A tool that does what the case says of its calls."""

    name: str
    effect: Effect
    calls: dict[str, Call]
    description: str = "A tool of a case."

    @property
    def parameters(self) -> dict[str, Any]:
        return {"type": "object"}

    def preview(self, arguments: dict[str, Any], workspace: Workspace) -> str:
        return str(arguments)

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
        call = self.calls[context.call_id]
        if call.outcome == "exits" and call.exit_code:
            output = call.text or "(no output)"
            raise ToolError(f"The command failed with exit code {call.exit_code}.\n{output}")
        if call.outcome in {"fails", "times_out"}:
            unknown = call.outcome == "times_out"
            raise ToolError(call.text, transient=call.transient, unknown_effect=unknown)
        self._write(call, context.workspace)
        return ToolOutput(call.text, changed=call.changed, files=call.files)

    @staticmethod
    def _write(call: Call, workspace: Workspace) -> None:
        """What the call writes is there, unless the case says that something else is."""
        against = call.contradiction
        path = against.path if against else call.input.get("path") if call.files and call.changed else None
        if path is not None:
            text = call.held if against else str(call.input.get("new", call.input.get("content", "")))
            (workspace.root / path).parent.mkdir(parents=True, exist_ok=True)
            (workspace.root / path).write_text(f"{text}\n", encoding="utf-8")


@dataclass
class LoopPlayer:
    """One case on its way through a session in `folder`. What has changed in the workspace is seen without git, whose
    processes would take most of the time of a case.
    """

    case: Case
    folder: Path
    calls: dict[str, Call] = field(default_factory=dict)
    happened: list[events.Event] = field(default_factory=list)
    seen: list[events.VerdictReached] = field(default_factory=list)
    number: int = 0

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    async def play(self) -> list[str]:
        """Every step; what was expected and did not come."""
        self.workspace.mkdir()
        self.model = CaseModel(summary=self.case.summary, advice=self.case.advice)
        self.operator = CaseOperator(self.case, self.calls)
        session = await open_session(
            self._settings(),
            self.operator,
            self.model,
            tools=self._tools(),
            environment={},
            checkpoints=MemoryCheckpoints(self.workspace),
        )
        session.subscribe(self._heard)
        session.subscribe(lambda event, _: _skipped(session, event))
        try:
            await session.submit("a task")
            await self._settled(session)
            failed: list[str] = []
            for number, step in enumerate(self.case.steps, 1):
                await self._step(session, step)
                if step.then is not None:
                    failed += [f"step {number}: {words}" for words in broken(self._view(session), step.then)]
            return failed
        finally:
            await session.close()

    def _make_files(self, task: str) -> None:
        """The files of a task about what exists are there: a case tells only what its calls give."""
        for name in files_meant(task) if Work.of(task).existing else ():
            path = self.workspace / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()

    def _settings(self) -> Settings:
        case, hooks = self.case, {}
        words = next(
            (step.action.hook for step in case.steps if isinstance(step.action, Reply) and step.action.hook),
            "",
        )
        if words:
            command = {"type": "command", "command": f"printf %s '{words}'"}
            hooks = {"hooks": {"PostToolUseFailure": [{"matcher": "*", "hooks": [command]}]}}
        settings = Settings(
            model="first/model",
            policy=case.policy,
            approve="ask",
            sandbox="off",
            workspace=self.workspace,
            state_dir=self.folder / "state",
            max_iterations=case.max_iterations,
            max_cost=case.max_cost,
            **case.budgets,
            fallback_models=case.fallbacks,
            fallbacks=case.fallbacks_by_kind,
            on_limit=case.on_limit,
            wait_at_most=case.wait_at_most,
            tool_calls=case.tool_calls,
            on_escalation=case.on_escalation,
            recovery={
                "backoff_base": 0.0,
                "closing_turn": False,
                "advisor": "other/model" if case.advice else "",
                **case.settings,
            },
            **hooks,
        )
        if case.asks_for_steps:
            settings._sources["max_iterations"] = "config.toml"  # as no option names them
        return settings

    def _tools(self) -> ToolRegistry:
        replies = [step.action for step in self.case.steps if isinstance(step.action, Reply)]
        named = {call.tool for reply in replies for call in reply.calls if call.outcome != "unknown"}
        names = (set(self.case.tools) or named | EFFECTS.keys() | {"bash"}) - {"finish", "ask_operator"}
        made = [CaseTool(name, Effect(EFFECTS.get(name, "command")), self.calls) for name in sorted(names)]
        return ToolRegistry([*made, AskOperator(), FinishRun()])

    def _heard(self, event: events.Event, _: RunState) -> None:
        self.happened.append(event)
        if isinstance(event, events.RunStarted):
            self.seen.clear()
        if isinstance(event, events.VerdictReached):
            self.seen.append(event)

    async def _step(self, session: Session, step: Step) -> None:
        for _ in range(step.times):
            self.happened.clear()
            match step.action:
                case Reply() | Fault() as action:
                    assert self.model.asked.is_set(), "the model is not asked now"
                    self.model.asked.clear()
                    self.number += 1
                    for at, call in enumerate(action.calls if isinstance(action, Reply) else ()):
                        self.calls[f"{self.number}.{at}"] = call
                    if isinstance(action, Reply) and action.written is not None:
                        self.calls[f"call_{session.state.run.iteration}_0"] = action.written
                    self.model.actions.put_nowait((self.number, action))
                case Answer() as answer:
                    assert self.operator.asked.is_set(), "nothing is asked now"
                    self.operator.asked.clear()
                    edited = None
                    if answer.call is not None:
                        edited = answer.call.input
                        self.calls[f"operator-{session.state.run.iteration + 1}"] = answer.call
                    self.operator.answers.put_nowait(EscalationReply(answer.choice, answer.says, edited))
                case Message(text=text):
                    await session.submit(text)
                case Task(text=text):
                    self._make_files(text)
                    assert not session.running, "the run before has not ended"
                    await session.submit(text)
                case Breaker(tool=tool, opened=opened):
                    session.set_breaker(tool, opened=opened)
                case Compact(instructions=words):
                    session.compact(words)
                case End() as end:
                    await session.stop(end.reason)
            await self._settled(session)

    async def _settled(self, session: Session) -> None:
        """Until the loop waits for the model or the operator, or the run has ended."""
        ways = (self.model.asked.wait(), self.operator.asked.wait(), session.wait())
        tasks = [asyncio.ensure_future(way) for way in ways]
        done, pending = await asyncio.wait(tasks, timeout=LONGEST_WAIT, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        assert done, "the loop neither ended nor asked for anything"

    def _view(self, session: Session) -> View:
        state, call = session.state, None
        if self.model.asked.is_set():
            started = [event for event in self.happened if isinstance(event, events.ModelCallStarted)]
            call = started[-1] if started else None
        return View(
            state=state,
            happened=self.happened,
            seen=self.seen,
            note=call.note if call else None,
            model=call.model if call else "",
            question=state.escalation,
        )
