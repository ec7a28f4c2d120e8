"""The content of the model's context window, by kind, and the point of the next summary: the lines that
`/context` shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tui_agent.frontend.lines.styled import Line, Span, clip, pad, wrap
from tui_agent.quantities import compact, counted
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from tui_agent.core.request.context import ContextUse, Part

_ROLES = {
    "system": "muted",
    "tools": "blocked",
    "summary": "accent",
    "task": "operator",
    "operator": "operator",
    "replies": "model",
    "results": "ok",
    "note": "note",
}
NOTHING = "Nothing was said yet: the first request decides."
"""Said if there are no parts."""

UNITS = {"tools": ("tool", "tools"), "results": ("result", "results"), "replies": ("reply", "replies")}
_MARK = "┃"


def context_lines(use: ContextUse, width: int) -> list[Line]:
    """A bar over the whole window, then a line a kind with a bar of its own."""
    if not use.parts:
        return [(Span(line, "muted"),) for line in wrap(NOTHING, width)]
    whole = max(use.budget or use.tokens, use.tokens, 1)
    share = f" of {compact(use.budget)} ({use.tokens / use.budget:.0%})" if use.budget else ""
    lines: list[Line] = [
        clip((Span(one_line(use.model, 60), "model bold"),), width),
        clip((Span(compact(use.tokens), "bold"), Span(f" tokens{share}")), width),
        tuple(_bar(use, whole, width)),
        (),
    ]
    lines += [_row(part, whole, width) for part in use.parts]
    if use.budget:
        free = max(0, use.budget - use.tokens)
        lines.append(_columns("free", free, free / whole, "", "faint", "·", width))
    lines.append(())
    for sentence in sentences(use):
        lines += [(Span(text, "muted"),) for text in wrap(sentence, width)]
    return lines


def _bar(use: ContextUse, whole: int, width: int) -> Iterator[Span]:
    """The window from left to right; the mark is the point at which a summary is made."""
    mark = None if use.compact_at is None else min(width - 1, use.compact_at * width // whole)
    cells: list[str] = []
    sum_of_tokens = 0
    for part in use.parts:
        sum_of_tokens += part.tokens
        cells += [_ROLES[part.kind]] * (round(sum_of_tokens * width / whole) - len(cells))
    cells += [""] * (width - len(cells))
    for at, role in enumerate(cells[:width]):
        if at == mark:
            yield Span(_MARK, f"warn on:{role}" if role else "warn")
        else:
            yield Span("█", role) if role else Span("·", "faint")


def _row(part: Part, whole: int, width: int) -> Line:
    one, many = UNITS.get(part.kind, ("message", "messages"))
    count = f"{part.count} {one if part.count == 1 else many}"
    return _columns(part.kind, part.tokens, part.tokens / whole, count, _ROLES[part.kind], "█", width)


def _columns(name: str, tokens: int, share: float, count: str, role: str, sign: str, width: int) -> Line:
    room = max(0, min(24, width - 42))
    bar = sign * max(1, round(share * room)) if room and tokens else ""
    return clip(
        (
            Span(pad("■ " if sign == "█" else "□ ", 2), role),
            Span(pad(name, 10)),
            Span(f"{compact(tokens):>7} ", "bold"),
            Span(f"{share:>5.1%}  ", "muted"),
            Span(pad(bar, room) + ("  " if room else ""), role),
            Span(count, "muted"),
        ),
        width,
    )


def sentences(use: ContextUse) -> Iterator[str]:
    """Lines about steps that left the window, the point of the next summary, and the provider's count."""
    if use.left_out:
        yield f"{counted(use.left_out, 'earlier step')} are left out of requests, or replaced by a summary."
    if use.compact_at is not None:
        yield f"{_MARK} A summary is made at about {compact(use.compact_at)} tokens; /compact makes one now."
    elif use.budget is None:
        yield "The context window of this model is unknown; set it with --context-tokens. /compact makes a summary."
    else:
        yield "No summary is made by itself (compact_at = 0); /compact makes one."
    if use.calibration != 1.0:
        yield f"The provider counts {use.calibration:.2f} tokens for each that is estimated here; that is counted in."
