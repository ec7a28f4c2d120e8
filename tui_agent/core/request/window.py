"""The sliding window: which groups of the history go into a request, and when the oldest leave it.

Only whole groups stay or go. The run's first message, the operator's last one and the newest group always
stay: without them the model would not know what it is doing. A cut frees much at once, so that the requests
after it begin alike and a provider's prompt cache holds. If a summary replaced exchanges (`compaction`), it
stands in their place.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence

from tui_agent.core.events import WindowCut
from tui_agent.core.evolve import evolve
from tui_agent.core.projections.history import Group, History, Message, Summary, estimate_tokens
from tui_agent.core.recovery.rules import Rule
from tui_agent.terminal_text import escaped_line

KEPT_SHARE = 0.6
"""Of the budget, what a cut leaves filled."""

_SHORTEST_RESULT = 400
"""Characters that a tool result keeps, however small the budget."""


def groups_in_window(history: History, run: int) -> list[Group]:
    """The groups that a request of this run holds, in order: those after the newest cut, and the pinned ones. A
    summary is a group in the place of what it replaced.
    """
    first = _first(history)
    return [*_kept_before(history, run, first), *history.groups.tail(first)]


def tokens_in_window(history: History, run: int) -> int:
    """Estimate for `messages_in_window`, in a time that does not grow with them unless results are shortened."""
    cut = history.cut
    if cut is not None and cut.longest_result:
        return tokens_of(messages_in_window(history, run))
    first = _first(history)
    remark = estimate_tokens(cut.remark) if cut is not None and cut.remark else 0
    return tokens_of(_kept_before(history, run, first)) + remark + history.tokens(first)


def messages_in_window(history: History, run: int) -> list[Group]:
    """The same with the cut's remark in its place and long results shortened, as the model reads them."""
    groups = groups_in_window(history, run)
    cut = history.cut
    if cut is None:
        return groups
    shown = _shortened(groups, cut.longest_result)
    place = next((at for at, group in enumerate(shown) if group.seq > cut.to_seq), len(shown))
    remark = Group(
        "summary", ({"role": "user", "content": cut.remark},), estimate_tokens(cut.remark), run, cut.to_seq
    )
    return [*shown[:place], remark, *shown[place:]] if cut.remark else shown


def _first(history: History) -> int:
    """Place of the first group that neither a cut nor a summary took; what follows is in the window."""
    gone = history.gone_up_to
    return bisect_right(history.groups, gone, key=_seq) if gone else 0


def _kept_before(history: History, run: int, first: int) -> list[Group]:
    """The window's content from before place `first`, in order."""
    if not first:
        return []
    groups, summary = history.groups, history.summary
    places = {place for place in _pinned(history, run) if place < first}
    if summary is None:
        return [groups[place] for place in sorted(places)]
    if places and groups[max(places)].kind == "exchange" and groups[max(places)].seq <= summary.to_seq:
        places.discard(max(places))  # the newest one, and a fresh start took it
    kept = [groups[place] for place in sorted(places.union(_words_kept(history, summary)))]
    kept.insert(bisect_right(kept, summary.to_seq, key=_seq), summary.group)
    return kept


def _pinned(history: History, run: int) -> set[int]:
    """Places of the newest group, of the operator's newest message and of the run's first."""
    groups, places = history.groups, history.messages_at
    said = (place for place in reversed(places) if groups[place].kind in {"task", "operator"})
    first = (place for place in reversed(places) if groups[place].kind == "task" and groups[place].run == run)
    return {place for place in (len(groups) - 1, next(said, -1), next(first, -1)) if place >= 0}


def _words_kept(history: History, summary: Summary) -> Sequence[int]:
    """Places of the operator's messages that a summary left beside it, and no cut took since."""

    def seq(place: int) -> int:
        return history.groups[place].seq

    places = history.messages_at
    start = bisect_left(places, max(summary.words_from, history.cut_up_to + 1), key=seq)
    return places[start : bisect_right(places, summary.to_seq, key=seq)]


def _seq(group: Group) -> int:
    return group.seq


def tokens_of(groups: Iterable[Group]) -> int:
    """Estimate for all of them."""
    return sum(group.tokens for group in groups)


def cut(history: History, run: int, budget: int, changed_files: Sequence[str] = ()) -> WindowCut | None:
    """The cut that brings the history to `KEPT_SHARE` of `budget` tokens; None if it fits or nothing can go.

    Results are shortened if whole groups alone do not make it fit.
    """
    if tokens_in_window(history, run) <= budget:
        return None
    groups = groups_in_window(evolve(history, cut=None), run)
    staying = [history.groups[place] for place in _pinned(history, run)]
    pinned = {place for place, group in enumerate(groups) if group.kind == "summary" or group in staying}
    room = int(budget * KEPT_SHARE) - tokens_of(groups[place] for place in pinned)
    first = len(groups)
    while first and (first - 1 in pinned or groups[first - 1].tokens <= room):
        first -= 1
        room -= 0 if first in pinned else groups[first].tokens
    to_seq = max(groups[first - 1].seq if first else 0, history.cut_up_to)
    left = [group for place, group in enumerate(groups) if group.seq <= to_seq and place not in pinned]
    kept = [group for place, group in enumerate(groups) if group.seq > to_seq or place in pinned]
    remark = _remark(left, changed_files)
    space = budget - (estimate_tokens(remark) if remark else 0)
    before = history.cut.longest_result if history.cut is not None else 0
    longest = before
    if tokens_of(_shortened(kept, longest)) > space:
        longest = _longest_result(kept, space, longest)
    if longest == before and (not left or to_seq == history.cut_up_to):
        return None
    return WindowCut(
        to_seq=to_seq,
        groups=len(left),
        tokens=tokens_of(_shortened(kept, longest)),
        longest_result=longest,
        remark=remark,
        rule=Rule.WINDOW_CUT,
    )


def _longest_result(groups: list[Group], budget: int, before: int) -> int:
    """The limit at which the groups fit, halved from the longest result down; the smallest one if none does."""
    lengths = [len(str(m["content"])) for g in groups for m in g.messages if _may_be_cut(g, m)]
    limit = before or max(lengths, default=0)
    if limit <= _SHORTEST_RESULT:
        return before
    while limit > _SHORTEST_RESULT:
        limit = max(_SHORTEST_RESULT, limit // 2)
        if tokens_of(_shortened(groups, limit)) <= budget:
            break
    return limit


def _may_be_cut(group: Group, message: Message) -> bool:
    return message["role"] == "tool" or group.kind == "summary"


def _shortened(groups: list[Group], limit: int) -> list[Group]:
    """With results of at most `limit` characters (0: as they are)."""
    return [_shortened_group(group, limit) for group in groups] if limit else groups


def _shortened_group(group: Group, limit: int) -> Group:
    if all(not _may_be_cut(group, m) or len(str(m["content"])) <= limit for m in group.messages):
        return group
    messages = tuple(_shortened_message(m, limit) if _may_be_cut(group, m) else m for m in group.messages)
    saved = sum(
        estimate_tokens(str(old["content"])) - estimate_tokens(str(new["content"]))
        for old, new in zip(group.messages, messages, strict=True)
        if old is not new
    )
    return evolve(group, messages=messages, tokens=group.tokens - saved)


def _shortened_message(message: Message, limit: int) -> Message:
    text = str(message["content"])
    if len(text) <= limit:
        return message
    half = limit // 2
    return {
        **message,
        "content": f"{text[:half]}\n[… {len(text) - 2 * half:,} characters left out …]\n{text[-half:]}",
    }


def _remark(left: Sequence[Group], changed_files: Sequence[str]) -> str:
    """Words for the model about the steps that left: their number, their tools, the files that they changed."""
    if not left:
        return ""
    tools: Counter[str] = Counter(
        str(call["function"]["name"])
        for group in left
        for message in group.messages
        for call in message.get("tool_calls") or ()
    )
    used = ", ".join(f"{name} ×{count}" for name, count in tools.most_common(8))
    parts = [
        f"[{len(left)} earlier steps of this conversation are not shown any more, to keep it within the context window."
    ]
    if used:
        parts.append(f"They called: {used}.")
    if changed_files:
        more = f" and {len(changed_files) - 20} more" if len(changed_files) > 20 else ""
        parts.append(f"Files changed so far: {', '.join(map(escaped_line, changed_files[:20]))}{more}.")
    return " ".join(parts) + " Read again what you need.]"
