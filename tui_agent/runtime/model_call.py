"""One model call: the request goes out, the reply streams in and is parsed, or a fault comes back as an event.

What to do about a fault is decided in `core.decision`; nothing is retried here.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import aclosing
from itertools import count
from pathlib import Path
from typing import Any, Literal, NamedTuple

from tui_agent.config.profiles import ModelParameters
from tui_agent.core import events
from tui_agent.core.decision.advice import ADVISES
from tui_agent.core.decision.model_calls import model_faulted
from tui_agent.core.decision.steps import Advise, CallModel, Summarise
from tui_agent.core.names import FINISH
from tui_agent.core.projections.history import History
from tui_agent.core.recovery.claims import files_claimed
from tui_agent.core.recovery.echo import echo_in
from tui_agent.core.recovery.implicit import ImplicitFailures
from tui_agent.core.recovery.model_faults import TRANSIENT
from tui_agent.core.recovery.note import shortened
from tui_agent.core.recovery.repetition import REPEATED, RepetitionWatch, repetition_in, without_repetition
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.recovery.signature import raw_call_key
from tui_agent.core.recovery.work import files_meant
from tui_agent.core.request import compaction, text_calls, tokens
from tui_agent.core.request.broken_reply import broken_reply
from tui_agent.core.request.build import BuiltRequest, build
from tui_agent.core.request.coherence import Validator
from tui_agent.core.request.spoken import spoken
from tui_agent.core.request.text_calls import writes_calls
from tui_agent.core.request.written_calls import calls_of, with_own_name, written_calls
from tui_agent.core.tool_facts import carried
from tui_agent.models.protocol import Delta, Model, ModelFault, ModelRequest, Reply
from tui_agent.runtime.claimed_files import Unseen, absent, unseen, unwritten
from tui_agent.runtime.coalesce import ReplyStream
from tui_agent.runtime.operator import RequestOutline
from tui_agent.runtime.recorder import Recorder
from tui_agent.runtime.waiting import Wait
from tui_agent.tools.registry import InvalidCall, ParsedCall, ToolRegistry
from tui_agent.tools.tool import facts_of

_NO_PARAMETERS = ModelParameters()
"""Those of the profile are added by whoever knows the model; a default would be copied for each request."""

SHORTEST_PROMPT_WAIT = 600.0
"""Seconds that a server nearby gets for any prompt, unless the operator set how long it may be silent."""

SLOWEST_PROMPT = 10.0
"""Tokens of a prompt that a processor alone reads in a second, at the least."""

ADVICE_TOKENS, ADVICE_PATIENCE = 1_000, 45.0
"""Tokens and seconds that a suggestion may take."""

_NO_END = events.Fault(kind=events.FaultKind.STREAM_CUT, message="the reply ended before it was complete")


class _Heard:
    """The part of a reply that has come, text and reasoning apart, each watched for repetition."""

    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {"text": [], "reasoning": []}
        self._watches = {kind: RepetitionWatch() for kind in self._texts}

    def add(self, delta: Delta) -> bool:
        """True if the reply repeats itself now."""
        found = False
        for kind, piece in (("text", delta.text), ("reasoning", delta.reasoning)):
            if piece:
                self._texts[kind].append(piece)
                found |= self._watches[kind].add(piece)
        return found

    def reply(self, model: str) -> Reply:
        """The text that came, with repeated parts once."""
        said = {kind: without_repetition("".join(pieces)) for kind, pieces in self._texts.items()}
        return Reply(text=said["text"], reasoning=said["reasoning"], finish_reason=REPEATED, model=model)


class _Offer(NamedTuple):
    """The tools that a request offers."""

    specifications: list[dict[str, Any]]
    names: tuple[str, ...]


class ModelCaller:
    """Makes the model calls of a session."""

    def __init__(
        self,
        recorder: Recorder,
        model: Model,
        tools: ToolRegistry,
        *,
        api_base: str | None,
        silence_timeout: float,
        waits_for_prompts: bool,
        tools_ready: Callable[[], Awaitable[None]],
        server_of: Callable[[str], str],
        images: Path,
        workspace: Path,
        jitter: Callable[[], float],
        wait: Wait,
    ) -> None:
        """`silence_timeout` in seconds; `waits_for_prompts`: a server nearby may take longer for its first
        word. `images`: the folder with the copies of the images that messages hold. `workspace`: the folder
        in which files that an answer names are looked for. `server_of`: the host that a model's calls go to.
        `tools_ready` is awaited before every call: bounded, for tools that are still being connected to.
        `jitter` gives a number from 0 to 1 for each wait between tries.
        """
        self._recorder = recorder
        self._model = model
        self._tools = tools
        self._api_base = api_base
        self._silence_timeout = silence_timeout
        self._waits_for_prompts = waits_for_prompts
        self._wait = wait
        self._tools_ready = tools_ready
        self._server_of = server_of
        self._images = images
        self._jitter = jitter
        self._workspace = workspace
        self._validator = Validator(self._with_files)
        self._offers: dict[tuple[int, frozenset[str]], _Offer] = {}
        self._left_out: set[tuple[str, tuple[str, ...]]] = set()
        """Parameters that models do not take, as far as the operator knows of it."""
        self._writers: set[str] = set()
        """Models that wrote calls as text, as far as the operator knows of it."""
        self._namers: set[str] = set()
        """Models that named tools with more than their names, as far as the operator knows of it."""
        self._newest: tuple[History, str | None, BuiltRequest] | None = None
        self._remarks: set[str] = set()
        """Oddities of replies that were said already."""
        self._ids: set[str] | None = None
        """Ids of all calls so far, also of those that a rewind took back."""

    def _taken(self) -> set[str]:
        """Ids that no new call may have."""
        if self._ids is None:
            messages = (
                message for group in self._recorder.state.history.groups for message in group.messages
            )
            self._ids = {str(call["id"]) for message in messages for call in message.get("tool_calls") or ()}
        return self._ids

    def outline(self) -> RequestOutline:
        """The next request as it would go out now."""
        state = self._recorder.state
        built = self._built(state.note)
        return RequestOutline(
            state.run.iteration + 1,
            state.run.model,
            len(built.messages),
            round(built.tokens * tokens.scale(state, state.run.model)),
            built.dropped_groups,
            self._offered().names,
            state.note,
        )

    async def learn_window(self, model: str) -> None:
        """Ask how long a prompt of `model` may be, and record the answer."""
        try:
            tokens = await self._model.context_tokens(model)
        except ModelFault:
            tokens = None  # the call itself says what is wrong
        self._recorder.record(events.ModelWindowLearned(model=model, tokens=tokens))

    async def summarise(self, step: Summarise) -> None:
        """Ask for a summary, and record it, or why there is none."""
        state, began = self._recorder.state, time.monotonic()
        groups = compaction.request(state, step.plan.to_seq)
        messages, _ = self._validator.messages(groups)
        asking = compaction.instruction(step.plan.longest, step.instructions)
        size = step.plan.tokens + tokens.overhead(state, None)
        started = self._recorder.record(
            events.CompactionStarted(
                model=step.model,
                to_seq=step.plan.to_seq,
                groups=step.plan.groups,
                tokens=round(size * tokens.scale(state, step.model)),
                instructions=step.instructions,
                rule=step.rule,
            )
        )
        system = {"role": "system", "content": state.run.system_prompt}
        question = {"role": "user", "content": asking}
        # Estimates of tokens differ from a tokenizer's, and models count words badly.
        room = 2 * step.plan.longest
        request = self._request(step.model, [system, *messages, question], size, ephemeral=1, reply_room=room)
        usage: dict[str, Any] = {"model": step.model}
        try:
            reply = await self._whole(request, watched=state.recovery.policy.reads_text)
        except ModelFault as raised:
            made: events.Compacted | str = raised.fault.message
            usage["transient"] = raised.fault.kind in TRANSIENT
        else:
            usage = {
                "model": reply.model or step.model,
                "prompt_tokens": reply.prompt_tokens,
                "cached_tokens": reply.cached_tokens,
                "cache_write_tokens": reply.cache_write_tokens,
                "completion_tokens": reply.completion_tokens,
                "cost": reply.cost,
            }
            made = compaction.compacted(state, started, step.plan, reply.text, reply.finish_reason)
            self._say_learnt(reply)
        usage["duration"] = time.monotonic() - began
        if isinstance(made, str):
            failed = events.CompactionFailed(
                reason=made, next_model=step.instead, rule=Rule.WINDOW_SUMMARY_FAILED
            )
            self._recorder.record(failed.model_copy(update=usage))
        else:
            self._recorder.record(made.model_copy(update=usage))

    async def advise(self, step: Advise) -> None:
        """Ask for another approach, and record the suggestion, or why there is none."""
        began, iteration = time.monotonic(), self._recorder.state.run.iteration
        request = ModelRequest(
            model=step.model,
            messages=[
                {"role": "system", "content": ADVISES},
                {"role": "user", "content": step.question},
            ],
            api_base=self._api_base,
            parameters=ModelParameters(max_tokens=ADVICE_TOKENS),
            silence_timeout=min(self._silence_timeout, ADVICE_PATIENCE),
            total_timeout=ADVICE_PATIENCE,
        )
        said: dict[str, Any] = {"reason": "it was interrupted"}
        try:
            async with asyncio.timeout(ADVICE_PATIENCE):
                reply = await self._whole(request, watched=True)
        except ModelFault as raised:
            said = {"reason": raised.fault.message}
        except TimeoutError:
            said = {"reason": f"nothing came within {ADVICE_PATIENCE:.0f} s"}
        else:
            self._say_learnt(reply)
            text = shortened(reply.text.strip())
            said = {
                **({"text": text} if text else {"reason": "the reply is empty"}),
                "prompt_tokens": reply.prompt_tokens,
                "cached_tokens": reply.cached_tokens,
                "cache_write_tokens": reply.cache_write_tokens,
                "completion_tokens": reply.completion_tokens,
                "cost": reply.cost,
            }
        finally:
            self._recorder.record(
                events.Advised(
                    iteration=iteration,
                    model=step.model,
                    duration=time.monotonic() - began,
                    rule=Rule.NOTE_ADVISOR,
                    **said,
                )
            )

    async def call(self, step: CallModel) -> Mapping[str, ParsedCall]:
        """The reply's calls by their ids, with exact arguments: in the recorded ones secrets are masked. None
        if the call failed.
        """
        await self._tools_ready()
        if step.delay or step.until is not None:
            await self._wait.wait(step.delay, step.until)
        self._wait.over()
        try:
            return await self._attempt(step)
        except ModelFault as raised:
            state = self._recorder.state
            now = self._wait.wall()
            self._recorder.record(model_faulted(state, raised.fault, step.model, self._jitter(), now))
            return {}

    def skip_wait(self) -> None:
        """Make the next try of the call that waits now."""
        self._wait.skip()

    async def _attempt(self, step: CallModel) -> Mapping[str, ParsedCall]:
        state = self._recorder.state
        built, offer = self._built(step.note), self._offered()
        iteration, scale = state.run.iteration, tokens.scale(state, step.model)
        if built.repairs:
            self._recorder.record(events.CoherenceRepaired(iteration=iteration, repairs=dict(built.repairs)))
        began = time.monotonic()
        self._recorder.record(
            events.ModelCallStarted(
                iteration=iteration,
                attempt=step.attempt,
                model=step.model,
                messages=len(built.messages),
                tokens=round(built.tokens * scale),
                calibration=scale,
                budget=tokens.budget(state, step.model),
                dropped_groups=built.dropped_groups,
                tools=offer.names,
                note=step.note,
                server=self._server_of(step.model),
            )
        )
        request = self._request(step.model, built.messages, built.tokens, ephemeral=1 if step.note else 0)
        reads_text = state.recovery.policy.reads_text
        reply = await (self._read if reads_text else self._stream)(request, watched=reads_text)
        if not request.tools and not reply.calls and writes_calls(state, step.model):
            reply = _with_written_call(reply, offer.names)
        broken, native = None, bool(request.tools)
        written = False
        if not reply.calls and reads_text:
            reply = self._with_calls_in_text(reply, step.model, native=native)
            written = native and bool(reply.calls)
            broken = None if reply.calls else self._broken(reply, step.note, native=native)
        empty = not reply.text.strip() and not reply.calls and broken is None
        if empty and not state.recovery.rejects_text(""):
            raise ModelFault(
                events.Fault(
                    kind=events.FaultKind.BAD_OUTPUT, message="the reply has neither text nor a tool call"
                )
            )
        cut = reply.finish_reason == "length"
        exact: dict[str, ParsedCall] = {}
        taken = self._taken()
        own = _with_own_ids(reply.calls, iteration, taken)
        taken |= {call.id for call in own}
        calls = tuple(self._parsed(call, exact, cut=cut) for call in own)
        untold, lost = await self._untold(reply.text, exact)
        self._recorder.record(
            events.ReplyFinished(
                text=reply.text,
                reasoning=reply.reasoning,
                calls=calls,
                finish_reason=reply.finish_reason,
                model=reply.model or step.model,
                prompt_tokens=reply.prompt_tokens,
                cached_tokens=reply.cached_tokens,
                cache_write_tokens=reply.cache_write_tokens,
                completion_tokens=reply.completion_tokens,
                cost=reply.cost,
                carried=reply.carried,
                written=written,
                broken=broken,
                missing=untold.missing,
                unread=untold.unread,
                unwritten=lost,
                absent=await self._absent(),
                duration=time.monotonic() - began,
            )
        )
        self._say_learnt(reply)
        if reply.left_out and (step.model, reply.left_out) not in self._left_out:
            self._left_out.add((step.model, reply.left_out))
            text = _left_out(step.model, reply.left_out)
            self._recorder.record(events.Notice(severity="warning", text=text, origin="parameters"))
        return exact

    def _say_learnt(self, reply: Reply) -> None:
        """Tell the operator what the call taught about its server."""
        for sentence in reply.learnt:
            self._recorder.record(events.Notice(text=sentence, origin="server"))
        for remark in reply.remarks:
            if remark not in self._remarks:
                self._remarks.add(remark)
                text = f"A reply was taken although {remark}."
                self._recorder.record(events.Notice(text=text, origin="server"))

    async def _untold(self, text: str, calls: Mapping[str, ParsedCall]) -> tuple[Unseen, tuple[str, ...]]:
        """Files that a reply, perhaps the answer, tells about without having looked at them; and those that it says
        were written, and that are not there.
        """
        state = self._recorder.state
        implicit = state.recovery.of(ImplicitFailures)
        if not state.recovery.policy.verify_claims or any(
            call.tool.name != FINISH for call in calls.values()
        ):
            return Unseen(), ()
        said = "\n".join((text, *(str(call.arguments.get("answer", "")) for call in calls.values())))
        lost = await asyncio.to_thread(unwritten, self._workspace, state, said)
        if not implicit.unshown:
            return Unseen(), lost
        claimed = () if implicit.called else files_claimed(said, implicit.unshown)
        return await asyncio.to_thread(unseen, self._workspace, state, claimed), lost

    async def _absent(self) -> tuple[str, ...]:
        """The files that the task is about, if none of them is here; asked before the run's first call."""
        state = self._recorder.state
        implicit = state.recovery.of(ImplicitFailures)
        if implicit.called or not (state.recovery.policy.implicit and implicit.work.existing):
            return ()
        return await asyncio.to_thread(absent, self._workspace, files_meant(state.run.task))

    async def _read(self, request: ModelRequest, *, watched: bool) -> Reply:
        """Read a reply: thoughts and tokens apart from its text, its calls under the tools' own names. What the server
        could not read of a call is read here.
        """
        try:
            reply = await self._stream(request, watched=watched)
        except ModelFault as raised:
            if raised.fault.generation is None:
                raise
            text = f"The server could not read the call that {request.model} wrote: {raised.fault.message}"
            self._recorder.record(events.Notice(text=text, origin="form", rule=Rule.FORM_LOST_CALL))
            said = spoken(raised.fault.generation)
            found = calls_of(said.text, self._tools.names)
            reply = Reply(reasoning=said.reasoning, finish_reason="tool_calls", model=request.model)
            return reply if found is None else reply.model_copy(update={"calls": found.calls})
        said = spoken(reply.text, reply.reasoning)
        calls = tuple(self._under_its_name(call, request.model) for call in reply.calls)
        return reply.model_copy(update={**said._asdict(), "calls": calls})

    def _under_its_name(self, call: events.ToolCall, model: str) -> events.ToolCall:
        """Put a call of the API under the name of the tool that its name means; say once that the name was odd."""
        own = with_own_name(call, self._tools.names)
        if own.name != call.name and own.name in self._tools.names and model not in self._namers:
            self._namers.add(model)
            text = f"{model} named a tool {call.name[:100]!r}, which is taken for {own.name}, here and from now on."
            self._recorder.record(events.Notice(text=text, origin="form", rule=Rule.FORM_TEXT_CALL))
        return own

    def _with_calls_in_text(self, reply: Reply, model: str, *, native: bool) -> Reply:
        """The reply with the calls that it holds as text, if they are beyond doubt, or resemble calls of their tools.
        `native`: it was to call tools as the API has it, so that it is said once.
        """
        cut = reply.finish_reason == "length"
        found = written_calls(reply.text, self._tools.names, cut=cut)
        if found is None or not (found.sure or all(map(self._resembles, found.calls))):
            return reply
        if self._is_quoted(found.raw):
            return reply
        if native and model not in self._writers:
            self._writers.add(model)
            text = f"{model} wrote its call as text; it is carried out like any other."
            self._recorder.record(events.Notice(text=text, origin="form", rule=Rule.FORM_TEXT_CALL))
        return reply.model_copy(update={"text": found.text, "calls": found.calls})

    def _is_quoted(self, raw: str) -> bool:
        """Tell if a call stands line for line in what a tool gave: whoever wrote that is not the model."""
        lines = [line for each in raw.splitlines() if (line := each.strip())]
        results = (
            str(message["content"])
            for group in self._recorder.state.history.groups
            for message in group.messages
            if message["role"] == "tool"
        )
        return bool(lines) and any(all(line in text for line in lines) for text in results)

    def _resembles(self, call: events.ToolCall) -> bool:
        """Tell if a call fits its tool, or shares an argument with it: then the model reads what is wrong."""
        try:
            self._tools.parse(call)
        except InvalidCall as wrong:
            tool = self._tools.get(call.name)
            known = {} if tool is None else tool.parameters.get("properties", {})
            return not known.keys().isdisjoint(wrong.problem.input)
        return True

    def _broken(self, reply: Reply, note: str | None, *, native: bool) -> events.CallProblem | None:
        """Why a reply of text is no answer, whatever the policy takes for one."""
        repetition = repetition_in(reply.text, reply.finish_reason)
        if repetition is not None:
            return repetition
        rejected = None if (last := self._recorder.state.recovery.last) is None else last.rejected
        broken = broken_reply(
            reply.text,
            reply.reasoning,
            reply.finish_reason,
            self._tools.names,
            native=native,
            lost_before=rejected is not None and rejected.rule == Rule.FORM_LOST_CALL,
        )
        if broken is not None:
            return broken
        tools = json.dumps(self._offered().specifications, ensure_ascii=False)
        return echo_in(reply.text, note, self._recorder.state.recovery, tools)

    def _parsed(self, call: events.ToolCall, exact: dict[str, ParsedCall], *, cut: bool) -> events.ToolCall:
        """The call with its identity, which is computed here and nowhere else, and what is wrong with it."""
        if call.problem is not None and not cut:
            return call.model_copy(update={"key": raw_call_key(call.name, call.arguments)})
        try:
            parsed = self._tools.parse(call, cut=cut)
        except InvalidCall as wrong:
            key = raw_call_key(call.name, call.arguments)
            return call.model_copy(update={"key": key, "problem": wrong.problem})
        exact[call.id] = parsed
        key = self._recorder.state.recovery.key(call.name, parsed.arguments)
        facts = carried(call.name, facts_of(parsed.tool))
        return call.model_copy(update={"key": key, "effect": parsed.tool.effect.value, "facts": facts})

    def _request(
        self,
        model: str,
        messages: list[dict[str, Any]],
        size: int,
        *,
        ephemeral: int,
        reply_room: int | None = None,
    ) -> ModelRequest:
        """`size`: the estimate of its tokens."""
        state, offered = self._recorder.state, self._offered().specifications
        as_text = writes_calls(state, model)
        return ModelRequest.model_construct(
            model=model,
            messages=text_calls.as_text(messages, offered) if as_text else messages,
            tools=[] if as_text else offered,
            native_calls=state.run.tool_calls == "native",
            api_base=self._api_base,
            ephemeral=ephemeral,
            parameters=_NO_PARAMETERS,
            reply_room=reply_room,
            extra_headers={},
            extra_body={},
            silence_timeout=self._silence_timeout,
            prompt_timeout=self._prompt_timeout(size),
            total_timeout=max(1_800.0, self._silence_timeout),
        )

    def _prompt_timeout(self, size: int) -> float | None:
        """Seconds for which a server nearby may process such a prompt; None: no longer than it may be silent."""
        if not self._waits_for_prompts:
            return None
        return max(self._silence_timeout, SHORTEST_PROMPT_WAIT, size / SLOWEST_PROMPT)

    def _with_files(self, message: dict[str, Any]) -> dict[str, Any]:
        """The message with the paths of its images, which are in the session's folder whatever a journal says."""
        if "images" not in message:
            return message
        images = [
            {**image, "path": str(self._images / Path(image["file"]).name)} for image in message["images"]
        ]
        return {**message, "images": images}

    async def _whole(self, request: ModelRequest, *, watched: bool) -> Reply:
        """The reply alone, without showing how it comes in. `watched` as for one that is shown."""
        heard = _Heard()
        async with aclosing(self._model.stream(request)) as stream:
            async for piece in stream:
                if isinstance(piece, Reply):
                    said = spoken(piece.text, piece.reasoning) if watched else None
                    return piece if said is None else piece.model_copy(update=said._asdict())
                if watched and heard.add(piece):
                    return heard.reply(request.model)
        raise ModelFault(_NO_END)

    async def _stream(self, request: ModelRequest, *, watched: bool) -> Reply:
        """The reply as it comes in. `watched`: one that repeats itself is cut, and ends as `REPEATED`."""
        deltas = ReplyStream(self._recorder)
        heard = _Heard() if watched else None
        try:
            async with aclosing(self._model.stream(request)) as stream:
                async for piece in stream:
                    if isinstance(piece, Reply):
                        deltas.drop()
                        return piece
                    deltas.add(piece)
                    if heard is not None and heard.add(piece):
                        deltas.drop()
                        return heard.reply(request.model)
        finally:
            deltas.flush()
        raise ModelFault(_NO_END)

    def _built(self, note: str | None) -> BuiltRequest:
        """The request for the state as it is, built once however often it is looked at."""
        state = self._recorder.state
        newest = self._newest
        if newest is None or newest[0] is not state.history or newest[1] != note:
            self._newest = newest = state.history, note, build(state, note, self._validator)
        return newest[2]

    def _offered(self) -> _Offer:
        """The tools that can be called now; made once a set."""
        withheld = self._recorder.state.recovery.open_tools()
        key = (self._tools.version, withheld)
        if key not in self._offers:
            names = tuple(name for name in self._tools.names if name not in withheld)
            self._offers = {
                known: made for known, made in self._offers.items() if known[0] == self._tools.version
            }
            self._offers[key] = _Offer(self._tools.specifications(without=withheld), names)
        return self._offers[key]


def without_images(model: str, gets: Literal["gets", "got"]) -> str:
    """Words for the operator about the images of a request."""
    return f"{model} cannot see images: it {gets} their names alone. /model chooses one that can."


def _left_out(model: str, names: Sequence[str]) -> str:
    """A sentence or two about content that a model does not take."""
    said = []
    parameters = [name for name in names if name != "images"]
    if parameters:
        said.append(f"{model} does not take {', '.join(parameters)}: called without.")
    if "images" in names:
        said.append(without_images(model, "got"))
    return " ".join(said)


def _with_written_call(reply: Reply, tools: Sequence[str]) -> Reply:
    """The reply of a model that writes its calls as text, with the call that it holds."""
    said = text_calls.read(reply.text, tools)
    if not said.called:
        return reply
    own = None if said.problem is None else written_calls(reply.text, tools)
    if own is not None and len(own.calls) == 1 and own.calls[0].name in tools:
        # Not in the form that was asked for, but in the model's own.
        return reply.model_copy(update={"text": own.text, "calls": own.calls})
    call = events.ToolCall(id="", name=said.name, arguments=said.arguments, problem=said.problem)
    return reply.model_copy(update={"text": said.text, "calls": (call,)})


def _with_own_ids(
    calls: Sequence[events.ToolCall], iteration: int, taken: AbstractSet[str]
) -> tuple[events.ToolCall, ...]:
    """Calls with ids that are there and unique in the history (`taken`); some servers send none, the same one twice,
    or the same ones with every reply.
    """
    seen = set(taken)
    unique: list[events.ToolCall] = []
    for index, call in enumerate(calls):
        if not call.id or call.id in seen:
            new = f"call_{iteration}_{index}"
            again = (f"{new}_{number}" for number in count(1))
            call = call.model_copy(
                update={"id": new if new not in seen else next(a for a in again if a not in seen)}
            )
        seen.add(call.id)
        unique.append(call)
    return tuple(unique)
