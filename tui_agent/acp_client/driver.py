"""A run whose steps another agent takes: the driver of our own runs, with the agent in the place of model and tools.

A call of the model is the agent's next reply, and running its calls is waiting for what it says of them. All that is
decided is decided as for our own runs, and what the agent is told goes out as its next prompt, never into a running
turn.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Literal, Protocol

from tui_agent.acp_client.agent import AgentFault
from tui_agent.acp_client.calls import AgentCall
from tui_agent.acp_client.permissions import AgentPermissions
from tui_agent.acp_client.turn import Aside, Beneath, Ended, Item, News, Permission, Piece, Turn, Usage
from tui_agent.core import events
from tui_agent.core.decision.model_calls import model_faulted
from tui_agent.core.decision.steps import Advise, CallModel, Summarise
from tui_agent.core.decision.tool_calls import UNKNOWN_EFFECT, arguments_of, as_error, wrong_call
from tui_agent.core.request import compaction
from tui_agent.core.state import RunState
from tui_agent.formats.importers.faults import classified
from tui_agent.models.protocol import Delta
from tui_agent.runtime.checkpointer import Checkpointer
from tui_agent.runtime.coalesce import ReplyStream
from tui_agent.runtime.driver import Driver
from tui_agent.runtime.operator import EscalationReply, Operator, RequestOutline
from tui_agent.runtime.recorder import Recorder
from tui_agent.runtime.waiting import Wait

Advice = Literal["off", "note", "steer"]

GO_ON = (
    "The service of the model failed, and your last step was cut off. Go on with the task where you stopped."
)
CUT_OFF = (
    "You were cut off: the program that you run in has ended. Look at what is done, and go on with the task."
)
LENGTH = "Your reply was cut by a limit. Go on where you stopped."
SILENCE = 600.0
"""Seconds without a word of the agent after which the operator is told."""
QUIET = 1.0
"""Seconds after which calls that were told of, but have not begun, are shown."""
LONGEST_REPLY = 1_000_000
"""Characters of a reply that are kept."""
NO_WORD = "(The agent ended its turn without a word.)"
SUMMARISES_ITSELF = (
    "The agent keeps its conversation itself; tell it to summarise, if it has a command for that"
)
_STOPS = {
    "max_tokens": "its longest reply",
    "max_turn_requests": "its own limit of steps in a turn",
    "refusal": "a refusal: it takes this prompt, and what follows it, out of its conversation",
    "cancelled": "a cancellation that nobody here asked for",
}
"""Ends of a turn that are no answer, in words."""
_CUT = {"max_tokens": "length"}


class Prompted(Protocol):
    """Whoever answers prompts."""

    async def ready(self) -> None:
        """Be ready for one. Raises `AgentFault`."""

    def prompt(self, text: str, taken: set[str]) -> Turn:
        """Take one. Raises `AgentFault`."""

    def leave(self) -> None:
        """Cancel the turn that goes on."""

    def over(self) -> None:
        """The turn has come to its end."""


class Lanes(Protocol):
    """Whoever follows the agent's sub-agents. `tell` takes words for the agent's next prompt."""

    tell: Callable[[str], None]

    async def follow(self, call: AgentCall, turn: Turn) -> None:
        """Record the work of the sub-agent that a call has started, up to its end."""


class AgentDriver(Driver):
    """Runs tasks with another agent. `left`: lets go of the turn that a run leaves open."""

    def __init__(
        self,
        recorder: Recorder,
        agent: Prompted,
        operator: Operator,
        checkpointer: Checkpointer,
        permissions: AgentPermissions,
        lanes: Lanes,
        *,
        advise: Advice,
        jitter: Callable[[], float],
        wait: Wait,
    ) -> None:
        steps = AgentSteps(recorder, agent, checkpointer, advise=advise, jitter=jitter, wait=wait)
        calls = AgentCalls(recorder, steps, checkpointer, permissions, lanes.follow)
        super().__init__(recorder, steps, calls, InWords(operator, steps), checkpointer)
        permissions.tell = lanes.tell = steps.tell
        self._steps = steps

    async def resume(self) -> events.RunFinished:
        """As for our own runs; a turn that is still open when the run ends is cancelled."""
        try:
            return await super().resume()
        finally:
            self._steps.leave()


class AgentSteps:
    """The agent in the place of the model: each call gives its next reply."""

    def __init__(
        self,
        recorder: Recorder,
        agent: Prompted,
        checkpointer: Checkpointer,
        *,
        advise: Advice,
        jitter: Callable[[], float],
        wait: Wait,
    ) -> None:
        self._recorder = recorder
        self._agent = agent
        self._checkpointer = checkpointer
        self._advise = advise
        self._jitter = jitter
        self._wait = wait
        self.turn: Turn | None = None
        """The one that goes on, or whose end was not looked at yet."""
        self._told = recorder.state.seq
        """The last event of which the agent knows what the operator said."""
        self._unheard = ""
        """The newest prompt, until something comes of it."""
        self._words: list[str] = []
        """Further words for its next prompt."""
        self._cost = 0.0
        self._tokens: int | None = None
        self._taken = _ids(recorder.state)
        self._silent = False
        self.gathered: list[AgentCall] = []
        """The calls of the newest reply."""

    def outline(self) -> RequestOutline:
        """The next step: the agent keeps its conversation itself."""
        run = self._recorder.state.run
        return RequestOutline(run.iteration + 1, run.model, 0, 0, 0, (), self._recorder.state.note)

    async def learn_window(self, model: str) -> None:
        """The window is the agent's own."""
        self._recorder.record(events.ModelWindowLearned(model=model, tokens=None))

    async def summarise(self, _: Summarise) -> None:
        """There is no summary of ours."""
        self._recorder.record(compaction.failed(self._recorder.state, SUMMARISES_ITSELF))

    async def advise(self, step: Advise) -> None:
        """Nobody is asked."""
        self._recorder.record(
            events.Advised(iteration=self._recorder.state.run.iteration, model=step.model, reason=NO_WORD)
        )

    def skip_wait(self) -> None:
        """Make the next try of the prompt that waits now."""
        self._wait.skip()

    def tell(self, words: str) -> None:
        """Let the next prompt say this, too."""
        self._words.append(words)

    def leave(self) -> None:
        """Cancel the turn that goes on."""
        if self.turn is not None:
            self.turn, self._unheard = None, ""
            self._agent.leave()

    async def call(self, step: CallModel) -> Mapping[str, Any]:
        """Record the agent's next reply, or the fault that came instead."""
        if step.delay or step.until is not None:
            await self._wait.wait(step.delay, step.until)
        self._wait.over()
        try:
            await self._reply(step)
        except AgentFault as raised:
            self.turn = None
            self._agent.over()
            now = self._wait.wall()
            self._recorder.record(
                model_faulted(self._recorder.state, raised.fault, step.model, self._jitter(), now)
            )
        except asyncio.CancelledError:
            self.leave()
            raise
        return {}

    async def _reply(self, step: CallModel) -> None:
        state, began = self._recorder.state, time.monotonic()
        if self._steers(state, step):
            self.leave()
        note = step.note if self.turn is None and self._advise != "off" else None
        again = state.fault is not None
        self._recorder.record(
            events.ModelCallStarted(
                iteration=state.run.iteration, attempt=step.attempt, model=step.model, note=note
            )
        )
        if self.turn is None:
            await self._prompt(note, again=again)
        gathered = _Gathered(self._recorder)
        try:
            reason = await self._gather(gathered)
        finally:
            gathered.stream.drop()
        self.gathered = gathered.calls
        calls = tuple(call.as_call(self._key(call)) for call in gathered.calls)
        cost, self._cost = self._cost, 0.0
        self._recorder.record(
            events.ReplyFinished(
                text=gathered.text or ("" if calls else NO_WORD),
                reasoning=gathered.reasoning,
                calls=calls,
                finish_reason=_CUT.get(reason, reason),
                model=step.model,
                prompt_tokens=self._tokens,
                cost=cost or None,
                duration=time.monotonic() - began,
            )
        )

    def _steers(self, state: RunState, step: CallModel) -> bool:
        """A turn that goes wrong is cancelled for what the agent should know now."""
        reached = state.verdict
        return (
            self._advise == "steer"
            and self.turn is not None
            and bool(step.note)
            and reached is not None
            and reached.level.rank >= events.Level.PIVOT.rank
        )

    def _key(self, call: AgentCall) -> str:
        return self._recorder.state.recovery.key(call.name, call.input)

    async def _prompt(self, note: str | None = None, *, again: bool = False) -> None:
        """Send what the agent does not know yet; `again`: after a fault. Raises `AgentFault`."""
        await self._checkpointer.before_effect()
        await self._agent.ready()
        state = self._recorder.state
        words = "\n\n".join([*([self._unheard] if self._unheard else []), *self._untold(state)])
        if not words:
            words = GO_ON if again else note or self._reminder(state)
        elif note:
            words = f"{words}\n\n{note}"
        self._unheard, self._told, self._words = words, state.seq, []
        self.turn = self._agent.prompt(words, self._taken)

    def has_words(self, state: RunState) -> bool:
        """There is something to prompt it with, now that its turn is over."""
        return bool(self._untold(state))

    def _untold(self, state: RunState) -> list[str]:
        """Words of the operator since the last prompt."""
        found: list[str] = []
        for group in reversed(state.history.groups):
            if group.seq <= self._told:
                break
            if group.kind in {"task", "operator", "news"}:
                found.insert(0, str(group.messages[0]["content"]))
        return [*dict.fromkeys([*self._words, *found])]

    @staticmethod
    def _reminder(state: RunState) -> str:
        last = state.recovery.last
        rejected = None if last is None else last.rejected
        return rejected.message if rejected is not None else LENGTH if state.cut_text else CUT_OFF

    @property
    def _open(self) -> Turn:
        """The turn that goes on. Raises `AgentFault`."""
        if self.turn is None:
            raise AgentFault(events.Fault(kind=events.FaultKind.STREAM_CUT, message="the turn is over"))
        return self.turn

    # --- what comes -----------------------------------------------------------------------------------------

    async def _gather(self, gathered: _Gathered) -> str:
        """Take what the agent says up to the beginning of its calls, or its end; the reason. Raises `AgentFault`."""
        while True:
            shown = gathered.calls and all(call.told or call.begun for call in gathered.calls)
            item = await self.next(QUIET if shown else None)
            if isinstance(item, Ended):
                if gathered.calls:
                    self._open.put_back(item)
                    return "tool_calls"
                reason = self._ended(item, gathered.text)
                if not self.has_words(self._recorder.state):
                    return reason
                await self._prompt()
            elif item is None or not gathered.take(item):
                if item is not None:
                    self._open.put_back(item)
                return "tool_calls"
            elif gathered.begun and not self._open.waits:
                return "tool_calls"

    def _ended(self, ended: Ended, said: str) -> str:
        """Close the turn; how it ended. `said`: its last reply. Raises `AgentFault`."""
        broken = self._open.broken
        self.turn = None
        self._agent.over()
        if broken:
            raise AgentFault(classified(said.strip().rpartition("\n\n")[2]))
        if ended.fault is not None:
            raise AgentFault(ended.fault)
        if ended.reason in _STOPS:
            text = f"The agent ended its turn with {_STOPS[ended.reason]}."
            self._recorder.record(events.Notice(severity="warning", text=text))
        return ended.reason

    async def next(self, quiet: float | None = None) -> Item | None:
        """The next thing that the agent says; None if nothing comes for `quiet` seconds."""
        turn = self._open
        while True:
            try:
                async with asyncio.timeout(quiet or SILENCE):
                    item = await turn.next()
            except TimeoutError:
                if quiet is not None:
                    return None
                self._say_silence()
                continue
            self._silent = False
            if turn.heard:
                self._unheard = ""
            if isinstance(item, Usage):
                self._take_usage(item)
            elif isinstance(item, Aside):
                self._recorder.record(item.event)
            else:
                return item

    def _say_silence(self) -> None:
        if not self._silent:
            self._silent = True
            text = f"The agent has said nothing for {SILENCE / 60:.0f} minutes. It goes on; /stop ends it."
            self._recorder.record(events.Notice(severity="warning", text=text))

    def _take_usage(self, usage: Usage) -> None:
        self._tokens = usage.tokens if usage.tokens is not None else self._tokens
        if usage.cost is not None:
            known = self._recorder.state.metrics.session_usage.cost or 0.0
            self._cost = max(0.0, usage.cost - known)


class _Gathered:
    """One reply, as far as it has come."""

    def __init__(self, recorder: Recorder) -> None:
        self.stream = ReplyStream(recorder)
        self.text = self.reasoning = ""
        self.calls: list[AgentCall] = []
        self.begun = False
        """One of its calls runs, or has run."""

    def take(self, item: Item) -> bool:
        """Add what belongs to this reply; False for what comes after it."""
        match item:
            case Piece() if not self.calls:
                self._add(item)
            case News(call) if self.begun and call in self.calls:
                return False
            case News(call):
                if not (call.replied or call in self.calls):
                    self.calls.append(call)
                self.begun = self.begun or (call.begun and call.told and call in self.calls)
            case Permission(call=call):
                if not (call.replied or call in self.calls):
                    self.calls.append(call)
                return False
            case _:
                return False
        return True

    def _add(self, piece: Piece) -> None:
        room = LONGEST_REPLY - len(self.text) - len(self.reasoning)
        text, reasoning = piece.text[:room], piece.reasoning[:room]
        self.text += text
        self.reasoning += reasoning
        self.stream.add(Delta(text=text, reasoning=reasoning))


class AgentCalls:
    """The agent in the place of our tools: what it says of the calls of its newest reply is recorded."""

    def __init__(
        self,
        recorder: Recorder,
        steps: AgentSteps,
        checkpointer: Checkpointer,
        permissions: AgentPermissions,
        follow: Callable[[AgentCall, Turn], Coroutine[Any, Any, None]] | None = None,
    ) -> None:
        """`follow` records the work of a sub-agent; None: this is one."""
        self._recorder = recorder
        self._steps = steps
        self._checkpointer = checkpointer
        self._permissions = permissions
        self._follow = follow
        self.exact: Mapping[str, Any] = {}

    async def run(self, groups: Sequence[Sequence[events.ToolCall]], *, approved: bool = False) -> None:
        """Wait until each call has its end; questions about them are put meanwhile."""
        turn, told = self._steps.turn, [call for group in groups for call in group]
        reply = self._recorder.state.recovery.reply
        places = {} if reply is None else {call.id: place for place, call in enumerate(reply.calls)}
        known = {} if turn is None else {call.key: call for call in self._steps.gathered}
        running = [_Running(places.get(one.id, 0), one, known[one.id]) for one in told if one.id in known]
        for one in told:
            if one.id not in known:
                self._recorder.record(_not_ours(self._recorder.state, places.get(one.id, 0), one))
        if turn is None:
            return
        try:
            async with asyncio.TaskGroup() as questions:
                await self._until_ended(turn, running, questions)
        except asyncio.CancelledError:
            self._steps.leave()
            raise

    async def report_failure(self, failed: events.ToolFailed) -> None:
        """The agent knows of it already."""

    async def _until_ended(self, turn: Turn, running: list[_Running], questions: asyncio.TaskGroup) -> None:
        later: list[Item] = []
        asking: list[tuple[Permission, asyncio.Task[None]]] = []
        for one in running:
            await self._advance(one)
        while any(not one.ended for one in running):
            item = await self._steps.next()
            match item:
                case Permission():
                    asking.append((item, questions.create_task(self._ask(item, running))))
                case Beneath(call, lane) if (
                    self._follow is not None and (own := _of(running, call)) is not None
                ):
                    await self._advance(own)
                    own.lane = lane, questions.create_task(self._follow(call, lane))
                case News(call):
                    own = _of(running, call)
                    if own is None:
                        self._say_meanwhile(running, call, later)
                        later.append(item)
                    else:
                        await self._advance(own)
                case Ended():
                    later.append(item)
                    for one in running:
                        await one.end_lane(item)
                        self._cut(one, item)
                case _ if item is not None:
                    later.append(item)
        for question, task in asking:
            if task.cancel():
                self._permissions.give_up(question)
        turn.put_back(*later)

    async def _ask(self, item: Permission, running: Sequence[_Running]) -> None:
        """Put a question about a call, which may have begun when it is answered."""
        await self._permissions.ask(item)
        own = _of(running, item.call)
        if own is not None and not item.call.denied:
            await self._advance(own)

    def _say_meanwhile(self, running: list[_Running], call: AgentCall, later: list[Item]) -> None:
        """A call that begins beside others is shown by its title until its turn comes."""
        if not any(isinstance(one, News) and one.call is call for one in later):
            beside = next(one for one in running if not one.ended)
            self._recorder.record(
                events.ToolProgress(call_id=beside.call.key, text=f"meanwhile: {call.title}\n")
            )

    async def _advance(self, one: _Running) -> None:
        """Record what is new of a call."""
        call = one.call
        if call.begun and not one.started and not (call.ended and call.denied):
            if not call.facts.looks_only:
                await self._checkpointer.before_effect()
            one.started = time.monotonic()
            self._recorder.record(events.ToolStarted(**one.facts, allowed_by=call.allowed_by))
        if call.ended and not one.ended:
            await one.end_lane(Ended("end_turn"))
            one.ended = True
            self._recorder.record(self._result(one))
        elif one.started and (printed := call.printed)[: len(one.shown)] == one.shown != printed:
            self._recorder.record(
                events.ToolProgress(call_id=call.key, text=printed[len(one.shown) :][-4_000:])
            )
            one.shown = printed

    def _result(self, one: _Running) -> events.ToolResult:
        call, result = one.call, one.call.result()
        facts = {**one.facts, "content": result.content, "duration": one.seconds}
        if call.denied:
            return events.ToolRefused(**facts, refusal="denied", reason=call.denied)
        if result.status == "ok":
            return events.ToolSucceeded(
                **facts, changed=call.changed, diff=call.diff, exit_code=call.exit_code
            )
        failure = events.Failure(
            kind=result.kind,
            message=result.message,
            tool=call.name,
            input=one.input,
            iteration=self._recorder.state.run.iteration,
            unknown_effect=result.unknown_effect,
        )
        facts["content"] = as_error(result.content or result.message)
        return events.ToolFailed(**facts, failure=failure, exit_code=call.exit_code)

    def _cut(self, one: _Running, ended: Ended) -> None:
        """The turn is over, and nothing was said of the call's end."""
        if one.ended:
            return
        one.ended = True
        facts = {**one.facts, "duration": one.seconds}
        if ended.fault is not None or ended.reason == "cancelled":
            why = ended.fault.message if ended.fault is not None else "the agent cancelled it"
            self._recorder.record(events.ToolCancelled(**facts, content=UNKNOWN_EFFECT, reason=why))
        else:
            self._recorder.record(events.ToolEnded(**facts, content=one.call.printed))


class _Running:
    """A call of the newest reply."""

    def __init__(self, index: int, told: events.ToolCall, call: AgentCall) -> None:
        self.index, self.told, self.call = index, told, call
        self.input = arguments_of(told)
        self.started = 0.0
        self.ended = False
        self.shown = ""
        """Its output, as far as it was shown."""
        self.lane: tuple[Turn, asyncio.Task[None]] | None = None
        """The sub-agent that it has started."""

    async def end_lane(self, end: Ended) -> None:
        """Let its sub-agent's lane come to its end, which stands before the end of the call."""
        lane, self.lane = self.lane, None
        if lane is not None:
            await lane[0].put(end)
            await lane[1]

    @property
    def facts(self) -> dict[str, Any]:
        return {
            "call_id": self.call.key,
            "tool": self.told.name,
            "input": self.input,
            "index": self.index,
            "key": self.told.key,
            "facts": self.told.facts,
        }

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started if self.started else 0.0


def _of(running: Sequence[_Running], call: AgentCall) -> _Running | None:
    return next((one for one in running if one.call is call), None)


def _not_ours(state: RunState, index: int, call: events.ToolCall) -> events.ToolFailed:
    problem = events.CallProblem(
        kind=events.FailureKind.UNKNOWN_TOOL,
        message="Only the agent itself can run its calls; tell it what to do instead.",
    )
    return wrong_call(state, index, call, problem)


def _ids(state: RunState) -> set[str]:
    """Ids of all calls so far."""
    messages = (message for group in state.history.groups for message in group.messages)
    return {str(call["id"]) for message in messages for call in message.get("tool_calls") or ()}


class InWords:
    """The operator of a run whose calls only the agent can run: a call to retry or edit becomes words, and what was
    answered is not asked again before the agent knows the answer.
    """

    def __init__(self, operator: Operator, steps: AgentSteps) -> None:
        self._operator = operator
        self._steps = steps
        self._answered: tuple[str, Turn] | None = None
        """The call and the turn of the newest answer."""
        self.approve, self.consult, self.gate = operator.approve, operator.consult, operator.gate

    @property
    def present(self) -> bool:
        return self._operator.present

    async def answer(self, raised: events.EscalationRaised) -> EscalationReply:
        turn = self._steps.turn
        if raised.key and turn is not None and self._answered == (raised.key, turn):
            return EscalationReply("continue", by="policy")
        reply = await self._operator.answer(raised)
        self._answered = None if turn is None else (raised.key, turn)
        if reply.choice not in {"retry", "edit"} or not raised.tool:
            return reply
        given = raised.input if reply.input is None else reply.input
        words = f"Run {raised.tool} once more, with {given}. {reply.text}".strip()
        return EscalationReply("answer", words, by=reply.by)
