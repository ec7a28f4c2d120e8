"""Replies that only give back what the engine wrote: its note, a refusal, the note's tag, the description of its tools.

Small models copy what stands last in their prompt. Such text is no answer (`form.echo`); an answer that quotes some of
it is one. Pure: texts in, words out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from tui_agent.core.events import CallProblem, FailureKind
from tui_agent.core.recovery.iteration import REFUSED, CallStatus
from tui_agent.core.recovery.note import NOTE_TAG
from tui_agent.core.recovery.rules import Rule

if TYPE_CHECKING:
    from tui_agent.core.recovery.engine import RecoveryState

_WORD = re.compile(r"\w+")
_RUN = 4
"""Words in a row that are compared."""

_MOSTLY = 0.75
"""The share of a reply's runs of words that must stand in the text that it repeats."""

_LONGEST = 20_000
"""Characters of a reply that are compared; a longer one is looked at from its beginning."""

_JSON = re.compile(r"\s*(?:```\w*\s*)?[\[{<]")


def echo_in(text: str, note: str | None, recovery: RecoveryState, tools: str) -> CallProblem | None:
    """Why a reply of text is no answer; None: it may be one. `note`: as it was sent; `tools`: see `echoed`."""
    repeated = echoed(text, NOTE_TAG, [note or "", *_refusals(recovery)], tools)
    if not repeated:
        return None
    return CallProblem(
        kind=FailureKind.NO_TOOL_CALL,
        message=f"The reply only repeats {repeated}. Go on with the task in your own words: call a tool, or give "
        "the answer.",
        rule=Rule.FORM_ECHO,
    )


def _refusals(recovery: RecoveryState) -> Iterator[str]:
    """The last refusals without the error, the hint or the earlier result, which an answer may well quote."""
    for result in () if recovery.last is None else recovery.last.results:
        if result.status in REFUSED or result.status is CallStatus.BLOCKED:
            yield "\n".join(result.content.splitlines()[:2])


def echoed(text: str, tag: str, engine: Iterable[str], tools: str) -> str:
    """The source that `text` mostly repeats, in words for the model; "" if it says something of its own.

    `engine`: the note and the refusals that the model read last. `tools`: the description of the tools as JSON, which
    only text that looks like it can repeat: a list of the tools in prose is an answer.
    """
    shown = text[:_LONGEST]
    without = re.sub(rf"</?{tag}>", " ", shown)
    tagged = len(without) != len(shown)
    words = tuple(_WORD.findall(without.casefold()))
    if tagged and (not words or (shown.lstrip().startswith(f"<{tag}>") and _repeats(words, engine))):
        return f"the <{tag}> message"
    if len(words) < _RUN:
        return ""
    if _repeats(words, engine):
        return "the recovery engine's own message"
    if _JSON.match(shown) and _share(words, _runs(tools)) >= _MOSTLY:
        return "the description of the tools"
    return ""


def _repeats(words: tuple[str, ...], engine: Iterable[str]) -> bool:
    return any(_share(words, _runs(source)) >= _MOSTLY for source in engine if source)


@lru_cache(maxsize=8)
def _runs(source: str) -> frozenset[tuple[str, ...]]:
    words = _WORD.findall(source.casefold())
    return frozenset(tuple(words[at : at + _RUN]) for at in range(len(words) - _RUN + 1))


def _share(words: tuple[str, ...], known: frozenset[tuple[str, ...]]) -> float:
    runs = [words[at : at + _RUN] for at in range(len(words) - _RUN + 1)]
    return sum(run in known for run in runs) / len(runs) if runs else 0.0
