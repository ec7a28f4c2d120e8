"""The cost of a call by litellm's table (`catalogue`): tiers by the prompt's length, cached and reasoning
tokens.

A model without a price has an unknown cost, never 0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

_TIER = re.compile(r"^input_cost_per_token_above_(\d+)(k?)_tokens$")
_INCLUSIVE = frozenset({"xai"})
"""Providers that bill the higher tier from its first token on (xAI's pricing page)."""
_CACHED_AT_HALF = frozenset({"fireworks_ai"})
"""Providers that bill a cached token at half of a new one when the table says nothing else."""


class _Rates(NamedTuple):
    """USD per token."""

    prompt: float
    completion: float
    cached: float
    written: float
    reasoning: float


def cost_of(facts: Mapping[str, Any], usage: Mapping[str, Any]) -> float | None:
    """The cost in USD of a call with this usage, in OpenAI's form; None when the table has no price.

    `facts`: the model's row of the table. Prices by the hour are those of now.
    """
    prompt, completion = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
    rates = _rates(_at_that_hour(facts, datetime.now(UTC)), prompt)
    if rates is None:
        return None
    read, written = cache_tokens(usage)
    cached, new = min(read or 0, prompt), written or 0
    thought = min(_count(_table(usage, "completion_tokens_details"), "reasoning_tokens"), completion)
    return (
        max(0, prompt - cached - new) * rates.prompt
        + cached * rates.cached
        + new * rates.written
        + (completion - thought) * rates.completion
        + thought * rates.reasoning
    )


def cache_tokens(usage: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Tokens read from the provider's cache and written to it, in the words of OpenAI, Anthropic and DeepSeek."""
    details = _table(usage, "prompt_tokens_details")

    def first(*counts: Any) -> int | None:
        return next((count for count in counts if isinstance(count, int)), None)

    read = first(
        details.get("cached_tokens"),
        usage.get("cache_read_input_tokens"),
        usage.get("prompt_cache_hit_tokens"),
    )
    return read, first(details.get("cache_creation_tokens"), usage.get("cache_creation_input_tokens"))


def _rates(facts: Mapping[str, Any], prompt: int) -> _Rates | None:
    tiers = facts.get("tiered_pricing")
    if isinstance(tiers, list):
        row, suffix = _tier(tiers, prompt), ""
    else:
        row, suffix = facts, _suffix(facts, prompt)
    for_prompt = _rate(row, f"input_cost_per_token{suffix}", row.get("input_cost_per_token"))
    for_reply = _rate(row, f"output_cost_per_token{suffix}", row.get("output_cost_per_token"))
    if for_prompt is None and for_reply is None:
        return None
    usual = for_prompt or 0.0
    cached = _rate(row, f"cache_read_input_token_cost{suffix}", row.get("cache_read_input_token_cost"))
    if cached is None and facts.get("litellm_provider") in _CACHED_AT_HALF:
        cached = usual / 2
    written = _rate(
        row, f"cache_creation_input_token_cost{suffix}", row.get("cache_creation_input_token_cost")
    )
    thought = _rate(row, "output_cost_per_reasoning_token", None)
    return _Rates(
        usual,
        for_reply or 0.0,
        usual if cached is None else cached,
        usual if written is None else written,
        (for_reply or 0.0) if thought is None else thought,
    )


def _at_that_hour(facts: Mapping[str, Any], at: datetime) -> Mapping[str, Any]:
    """The row with its prices off peak, while one of its windows is open."""
    off_peak = facts.get("off_peak_pricing")
    if not isinstance(off_peak, Mapping):
        return facts
    windows = off_peak.get("windows")
    if not isinstance(windows, list) or not any(_is_open(window, at) for window in windows):
        return facts
    return {**facts, **{name: off_peak[name] for name in off_peak if name.endswith(("_token", "_cost"))}}


def _is_open(window: Any, at: datetime) -> bool:
    """A window: hours as `HH:MM-HH:MM` in UTC (equal ones: the whole day), and days of the week from 1, Monday."""
    if not isinstance(window, Mapping) or at.isoweekday() not in window.get("weekdays", range(1, 8)):
        return False
    hours = window.get("hours_utc")
    now = at.strftime("%H:%M")
    for each in [hours] if isinstance(hours, str) else hours or ():
        start, _, end = str(each).partition("-")
        if (start <= now < end) if start < end else (now >= start or now < end):
            return True
    return False


def _tier(tiers: list[Any], prompt: int) -> Mapping[str, Any]:
    """The tier whose range holds the prompt; the last for a longer one."""
    rows = [tier for tier in tiers if isinstance(tier, Mapping)]
    for row in rows:
        low_high = row.get("range")
        if isinstance(low_high, list) and len(low_high) == 2 and low_high[0] <= prompt <= low_high[1]:
            return row
    return rows[-1] if rows else {}


def _suffix(facts: Mapping[str, Any], prompt: int) -> str:
    """The end of the names of the highest tier's prices that the prompt reaches; empty: the usual ones."""
    inclusive = facts.get("litellm_provider") in _INCLUSIVE
    reached = [
        (limit, name.removeprefix("input_cost_per_token"))
        for name in facts
        if (found := _TIER.match(name)) is not None
        and (
            prompt > (limit := int(found[1]) * (1_000 if found[2] else 1)) or (inclusive and prompt == limit)
        )
    ]
    return max(reached)[1] if reached else ""


def _rate(row: Mapping[str, Any], name: str, otherwise: Any) -> float | None:
    found = row.get(name, otherwise)
    return float(found) if isinstance(found, int | float) and not isinstance(found, bool) else None


def _table(usage: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = usage.get(name)
    return found if isinstance(found, Mapping) else {}


def _count(usage: Mapping[str, Any], name: str) -> int:
    found = usage.get(name)
    return found if isinstance(found, int) else 0
