"""The content of the window: the tokens of the next request by kind, as `/context` shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from tui_agent.core.projections.history import Group, estimate_tokens
from tui_agent.core.recovery.note import tagged
from tui_agent.core.request.tokens import budget, scale
from tui_agent.core.request.window import messages_in_window
from tui_agent.core.state import RunState

Kind = Literal["system", "tools", "summary", "task", "operator", "replies", "results", "note"]
"""`summary` also stands for the remark on steps that left the window."""

KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class Part:
    """One kind: estimated tokens, and of how many (tools, messages, results)."""

    kind: Kind
    tokens: int
    count: int


@dataclass(frozen=True)
class ContextUse:
    """The parts of the next request, in `KINDS`' order, empty ones left out. Tokens are corrected by the
    provider's count (`calibration`); `budget` is None if the window is not known.
    """

    model: str
    parts: tuple[Part, ...]
    budget: int | None
    calibration: float
    compact_at: int | None
    """Tokens from which on a summary is made by itself; None: none is."""
    left_out: int
    """Steps that a summary replaced or that left the window."""

    @property
    def tokens(self) -> int:
        """Of the whole request."""
        return sum(part.tokens for part in self.parts)


def context_use(state: RunState) -> ContextUse:
    """The content of the next request if it went out now."""
    run = state.run
    model = state.model
    factor, limit = scale(state, model), budget(state, model)
    tokens, counts = Counter[Kind](), Counter[Kind]()
    for kind, size, count in _sizes(state):
        tokens[kind] += size
        counts[kind] += count
    parts = tuple(
        Part(kind, round(tokens[kind] * factor), counts[kind])
        for kind in KINDS
        if tokens[kind] or counts[kind]
    )
    history = state.history
    shown = sum(group.kind == "exchange" for group in messages_in_window(history, run.number))
    exchanges = sum(group.kind == "exchange" for group in history.groups)
    compact_at = None
    if limit is not None and run.compact_at:
        beside = round((tokens["system"] + tokens["tools"] + tokens["note"]) * factor)
        compact_at = beside + round(max(0, limit - beside) * run.compact_at)
    return ContextUse(model, parts, limit, factor, compact_at, exchanges - shown)


def _sizes(state: RunState) -> Iterator[tuple[Kind, int, int]]:
    run = state.run
    if run.number:
        yield "system", run.system_tokens, 1
        yield "tools", run.tools_tokens, len(run.tools)
    for group in messages_in_window(state.history, run.number):
        yield from _of_group(group)
    if state.note:
        yield "note", estimate_tokens(tagged(state.note)), 1


def _of_group(group: Group) -> Iterator[tuple[Kind, int, int]]:
    if group.kind != "exchange":
        # News of background commands come with results as a rule.
        yield ("results" if group.kind == "news" else group.kind), group.tokens, 1
        return
    results = [str(message["content"]) for message in group.messages if message["role"] == "tool"]
    size = sum(estimate_tokens(result) for result in results)
    if results:
        yield "results", size, len(results)
    yield "replies", group.tokens - size, 1
