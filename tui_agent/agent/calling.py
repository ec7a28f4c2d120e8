"""One model call with everything that can go wrong with it (RECOVERY.md, 6).

Streams the reply, and on a fault does what the policy plans: wait and retry, fall back, shrink the window, ask
the operator, or give up. Retries cost no iteration. What to do is decided in `recovery.model_faults`.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Any, NamedTuple

from tui_agent import events as e
from tui_agent.agent import messages
from tui_agent.agent.coalesce import ReplyStream
from tui_agent.agent.coherence import Validator
from tui_agent.agent.ending import Ending, RunEnded
from tui_agent.agent.operator import Operator, RequestOutline
from tui_agent.agent.recorder import Recorder
from tui_agent.folds.history import estimate_tokens
from tui_agent.models.protocol import Model, ModelFault, ModelRequest, Reply
from tui_agent.recovery import model_faults
from tui_agent.tools.registry import ToolRegistry

Sleep = Callable[[float], Awaitable[None]]


class _Offer(NamedTuple):
    """The tools that a request offers, and an estimate of the tokens that their specifications take."""

    specifications: list[dict[str, Any]]
    names: tuple[str, ...]
    tokens: int


class ModelCaller:
    """Makes the model call of an iteration. `fallback_models` are tried in order when a model stays out of reach."""

    def __init__(
        self,
        recorder: Recorder,
        model: Model,
        tools: ToolRegistry,
        operator: Operator,
        *,
        api_base: str | None = None,
        silence_timeout: float = 120.0,
        fallback_models: Sequence[str] = (),
        sleep: Sleep = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._recorder = recorder
        self._model = model
        self._tools = tools
        self._operator = operator
        self._api_base = api_base
        self._silence_timeout = silence_timeout
        self._fallback_models = tuple(fallback_models)
        self._sleep = sleep
        self._jitter = jitter
        self._validator = Validator()
        self._budgets: dict[str, int | None] = {}
        self._offers: dict[frozenset[str], _Offer] = {}
        self._newest: tuple[tuple[object, ...], messages.BuiltRequest] | None = None

    def outline(self) -> RequestOutline:
        """The next request as it would go out now."""
        state = self._recorder.state
        built, tools = self._built(state.note)
        return RequestOutline(
            state.run.iteration + 1,
            state.run.model,
            len(built.messages),
            built.tokens,
            built.dropped_groups,
            tools.names,
            state.note,
        )

    async def call(self) -> e.ReplyFinished | None:
        """The reply, recorded; None where the policy leaves a fault to the next iteration.

        Raises `RunEnded` when the model cannot be used any more.
        """
        attempt, tries, shrinks = 1, 1, 0
        unused = [name for name in self._fallback_models if name != self._recorder.state.run.model]
        while True:
            model = self._recorder.state.run.model
            try:
                await self._learn_budget(model)
                return await self._attempt(attempt, model)
            except ModelFault as raised:
                fault = raised.fault
            plan = model_faults.plan(
                self._recorder.state.recovery,
                fault,
                tries=tries,
                shrinks=shrinks,
                fallbacks=unused,
                jitter=self._jitter(),
            )
            budget = self._shrunk() if plan.action == "shrink" else None
            self._recorder.record(
                e.ModelFaulted(
                    fault=fault,
                    iteration=self._recorder.state.run.iteration,
                    attempt=attempt,
                    model=model,
                    action=plan.action,
                    delay=plan.delay,
                    next_model=plan.next_model,
                    context_tokens=budget,
                )
            )
            attempt += 1
            match plan.action:
                case "retry":
                    tries += 1
                    await self._sleep(plan.delay)
                case "fallback":
                    tries, shrinks = 1, 0
                    unused.remove(plan.next_model)
                    self._recorder.record(e.SettingChanged(setting="model", value=plan.next_model))
                case "shrink":
                    shrinks += 1
                case "next_iteration":
                    return None
                case "ask":
                    tries, shrinks = 1, 0
                    await self._ask(fault, plan.reason)
                case "degrade" | "stop":
                    raise RunEnded(_ending(fault, plan.reason))

    async def _learn_budget(self, model: str) -> None:
        """Ask once what the model takes, unless the run has a budget of its own."""
        if model not in self._budgets:
            own = self._recorder.state.run.context_tokens
            self._budgets[model] = await self._model.context_tokens(model) if own is None else None

    def _budget(self) -> int | None:
        """Tokens that the next request may have: the run's budget or the model's, the smaller where both are."""
        run = self._recorder.state.run
        known = [limit for limit in (run.context_tokens, self._budgets.get(run.model)) if limit is not None]
        return min(known, default=None)

    async def _attempt(self, attempt: int, model: str) -> e.ReplyFinished:
        state = self._recorder.state
        note = state.note if attempt == 1 else state.sent_note
        built, tools = self._built(note)
        iteration = state.run.iteration
        if built.repairs:
            self._recorder.record(e.CoherenceRepaired(iteration=iteration, repairs=dict(built.repairs)))
        began = time.monotonic()
        self._recorder.record(
            e.ModelCallStarted(
                iteration=iteration,
                attempt=attempt,
                model=model,
                messages=len(built.messages),
                tokens=built.tokens,
                budget=self._budget(),
                dropped_groups=built.dropped_groups,
                tools=tools.names,
                note=note,
            )
        )
        request = ModelRequest.model_construct(
            model=model,
            messages=built.messages,
            tools=tools.specifications,
            api_base=self._api_base,
            silence_timeout=self._silence_timeout,
            total_timeout=max(1_800.0, self._silence_timeout),
        )
        reply = await self._stream(request)
        if not reply.text and not reply.calls and state.recovery.takes_text_as_answer():
            raise ModelFault(
                e.Fault(kind=e.FaultKind.BAD_OUTPUT, message="the reply has neither text nor a tool call")
            )
        finished = e.ReplyFinished(
            text=reply.text,
            reasoning=reply.reasoning,
            calls=_with_own_ids(reply.calls, iteration),
            finish_reason=reply.finish_reason,
            model=reply.model or model,
            prompt_tokens=reply.prompt_tokens,
            completion_tokens=reply.completion_tokens,
            cost=reply.cost,
            duration=time.monotonic() - began,
        )
        self._recorder.record(finished)
        # The exact reply goes on to the tools; what was recorded may have secrets masked.
        return finished

    async def _stream(self, request: ModelRequest) -> Reply:
        deltas = ReplyStream(self._recorder)
        try:
            async with aclosing(self._model.stream(request)) as stream:
                async for piece in stream:
                    if isinstance(piece, Reply):
                        deltas.drop()
                        return piece
                    deltas.add(piece)
        finally:
            deltas.flush()
        raise ModelFault(
            e.Fault(kind=e.FaultKind.STREAM_CUT, message="the reply ended before it was complete")
        )

    async def _ask(self, fault: e.Fault, reason: str) -> None:
        raised = self._recorder.record(
            e.EscalationRaised(
                id=f"model-{self._recorder.state.seq + 1}",
                question=f"{reason or fault.message} {fault.advice}".strip(),
                source="model",
                options=self._fallback_models,
            )
        )
        answer = await self._operator.answer(raised)
        self._recorder.record(
            e.EscalationAnswered(id=raised.id, choice=answer.choice, text=answer.text, by=answer.by)
        )
        if answer.choice not in {"retry", "answer", "edit"}:
            raise RunEnded(_ending(fault, reason))
        if answer.text.strip():
            self._recorder.record(e.SettingChanged(setting="model", value=answer.text.strip()))

    def _built(self, note: str | None) -> tuple[messages.BuiltRequest, _Offer]:
        """The request for the state as it is, built once however often it is looked at, and the tools in it."""
        state = self._recorder.state
        offer = self._offered()
        budget = self._budget()
        made_from = (state.history.groups, note, offer, budget)
        if self._newest is None or any(
            old is not new for old, new in zip(self._newest[0], made_from, strict=True)
        ):
            built = messages.build(state, note, offer.tokens, budget, self._validator)
            self._newest = made_from, built
        return self._newest[1], offer

    def _offered(self) -> _Offer:
        """The tools without those whose breaker is open; made once a set."""
        withheld = self._recorder.state.recovery.open_tools()
        if withheld not in self._offers:
            tools = self._tools.specifications(without=withheld)
            names = tuple(name for name in self._tools.names if name not in withheld)
            tokens = sum(estimate_tokens(str(tool)) for tool in tools)
            self._offers[withheld] = _Offer(tools, names, tokens)
        return self._offers[withheld]

    def _shrunk(self) -> int:
        tokens = self._recorder.state.run.request_tokens
        return max(1_000, min(tokens, self._budget() or tokens) // 2)


def _with_own_ids(calls: Sequence[e.ToolCall], iteration: int) -> tuple[e.ToolCall, ...]:
    """Calls with ids that are there and unique in the reply; some servers send none, or the same one twice."""
    seen: set[str] = set()
    unique: list[e.ToolCall] = []
    for index, call in enumerate(calls):
        if not call.id or call.id in seen:
            call = call.model_copy(update={"id": f"call_{iteration}_{index}"})
        seen.add(call.id)
        unique.append(call)
    return tuple(unique)


def _ending(fault: e.Fault, reason: str) -> Ending:
    outcome = e.Outcome.PARTIAL if fault.kind is e.FaultKind.CONTEXT_OVERFLOW else e.Outcome.MODEL_FAILED
    words = reason or f"{fault.kind}: {fault.message}"
    if fault.advice and fault.advice not in words:
        words = f"{words.rstrip('.')}. {fault.advice}"
    return Ending(outcome, words, detector="model faults")
