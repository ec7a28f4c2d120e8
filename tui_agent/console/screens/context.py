"""The context screen: what fills the model's window, by kind, and when a summary will be made."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import ModalScreen

from tui_agent.console.panes.pane import LinePane
from tui_agent.console.panes.styled_line import Line, Span, clip, pad, wrap
from tui_agent.console.quantities import compact, counted
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_agent.core.request.context import ContextUse, Part
    from tui_agent.core.state import RunState

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
_UNITS = {"tools": ("tool", "tools"), "results": ("result", "results"), "replies": ("reply", "replies")}
_MARK = "┃"


class ContextPane(LinePane):
    """A bar over the whole window, then a line a kind with a bar of its own."""

    DEFAULT_CSS = """
    ContextPane {
        width: 76; max-width: 96%; height: auto; max-height: 90%; padding: 0 1;
        background: $surface; border: round $accent;
        border-title-color: $accent; border-subtitle-color: $text-muted;
        &:focus { border: round $accent; }
    }
    """

    def __init__(self, use: ContextUse) -> None:
        super().__init__()
        self._use = use
        self.styles.height = 2 + len(self.draw(60, 40))

    def show(self, state: RunState, now: float) -> None:
        """The screen shows the moment at which it was opened."""

    def draw(self, width: int, height: int) -> list[Line]:
        use = self._use
        if not use.parts:
            return [(Span("Nothing was said yet: the first request decides.", "muted"),)]
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
        for sentence in _sentences(use):
            lines += [(Span(text, "muted"),) for text in wrap(sentence, width)]
        return lines


def _bar(use: ContextUse, whole: int, width: int) -> Iterator[Span]:
    """The window from left to right; the mark is where a summary is made."""
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
    one, many = _UNITS.get(part.kind, ("message", "messages"))
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


def _sentences(use: ContextUse) -> Iterator[str]:
    if use.left_out:
        yield f"{counted(use.left_out, 'earlier step')} left the window or stand in a summary."
    if use.compact_at is not None:
        yield f"{_MARK} A summary is made at about {compact(use.compact_at)} tokens; /compact makes one now."
    elif use.budget is None:
        yield "How long a prompt of this model may be is not known; --context-tokens says it. /compact makes a summary."
    else:
        yield "No summary is made by itself (compact_at = 0); /compact makes one."
    if use.calibration != 1.0:
        yield f"The provider counts {use.calibration:.2f} tokens for each that is estimated here; that is counted in."


class ContextScreen(ModalScreen[None]):
    """Closed by Esc."""

    DEFAULT_CSS = """
    ContextScreen { align: center middle; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter", "dismiss(None)", "Back", show=False, priority=True),
    ]

    def __init__(self, use: ContextUse) -> None:
        super().__init__()
        self._pane = ContextPane(use)

    def compose(self) -> ComposeResult:
        self._pane.border_title = Content("Context")
        self._pane.border_subtitle = Content("Esc closes")
        yield self._pane

    def on_mount(self) -> None:
        """The pane scrolls by the keys."""
        self._pane.focus()
