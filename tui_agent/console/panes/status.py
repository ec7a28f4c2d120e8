"""Status line: model, policy, mode, iteration, tokens, cost and time in one row that gives up detail by width."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.strip import Strip
from textual.widget import Widget

from tui_agent.console.panes.glyphs import MODES, spinner
from tui_agent.console.panes.styled_line import Line, Palette, Span, clip, fit_middle, to_strip, width_of
from tui_agent.console.quantities import compact, seconds
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from tui_agent.core.state import RunState


class LineWidget(Widget):
    """One row that is drawn as a line."""

    DEFAULT_CSS = """
    LineWidget { height: 1; background: $panel; color: $foreground; padding: 0 1; }
    """

    _line: Line = ()
    _state: RunState | None = None
    _now = 0.0

    def show(self, state: RunState, now: float) -> None:
        self._state, self._now = state, now
        self._redraw()

    def draw(self, state: RunState, now: float, width: int) -> Line:
        raise NotImplementedError

    def _redraw(self) -> None:
        width = self.content_region.width
        if self._state is None or width <= 0:
            return
        line = self.draw(self._state, self._now, width)
        if line != self._line:
            self._line = line
            self.refresh()

    def on_resize(self) -> None:
        self._redraw()

    def render_line(self, y: int) -> Strip:
        width = self.content_region.width
        if y:
            return Strip.blank(width, self.rich_style)
        return to_strip(self._line, Palette.of(self.app), self.rich_style, width)


def mode_of(state: RunState) -> str:
    """AUTO, STEP or PAUSED, or WAITING for the operator, or DONE."""
    phase = str(state.phase)
    if phase in ("approval", "escalation"):
        return "WAITING"
    if phase == "done":
        return "DONE"
    return str(state.session.mode)


def elapsed(state: RunState, now: float) -> float:
    """Seconds of the newest run; it stands still when the run has ended."""
    started, ended = state.metrics.started_at, state.metrics.ended_at
    return max(0.0, (now if ended is None else ended) - started) if started else 0.0


class StatusLine(LineWidget):
    """Fields in order of weight; the least important leave first where the row is narrow."""

    def draw(self, state: RunState, now: float, width: int) -> Line:
        """The fields that fit, mode first."""
        mode = MODES.get(mode_of(state), MODES["AUTO"])
        run, usage = state.run, state.metrics.usage
        badge = Span(f" {mode.glyph} {mode.word} ", f"{mode.role} reverse bold")
        model = one_line(run.model or state.session.model) or "no model"
        tokens = usage.prompt_tokens + usage.completion_tokens
        cached = 100 * usage.cached_tokens // max(1, usage.prompt_tokens)
        cost = (
            "cost ?"
            if usage.cost is None
            else f"${usage.cost:.4f}"
            if usage.cost < 1
            else f"${usage.cost:.2f}"
        )
        # (weight, spans): the heaviest stay.
        fields: list[tuple[int, tuple[Span, ...]]] = [
            (9, (Span("it ", "muted"), Span(f"{run.iteration}/{run.max_iterations}", "bold"))),
            (8, (Span(fit_middle(model, max(12, width // 4)), "model"),)),
            (5, (Span(one_line(run.policy or state.session.policy) or "–"),)),
            (4, (Span(compact(tokens)), Span(" tok", "muted"))),
            *([(2, (Span(f"{cached}% cached", "muted"),))] if cached else []),
            (6, (Span(cost, "muted" if usage.cost is None else ""),)),
            (7, (Span(seconds(float(int(elapsed(state, now)))).replace(".0", "")),)),
        ]
        if state.background.running:
            fields.append((7, (Span(f"⚙ {len(state.background.running)}", "accent"),)))
        activity = _activity(state, now)
        if activity:
            urgent = str(state.phase) in ("backoff", "approval", "escalation")
            fields.insert(0, (10 if urgent else 3, activity))
        return _fitted(badge, fields, width)


def _fitted(badge: Span, fields: list[tuple[int, tuple[Span, ...]]], width: int) -> Line:
    separator = Span(" · ", "faint")
    kept = list(fields)
    while kept:
        spans: list[Span] = [badge, Span(" ")]
        for number, (_, field) in enumerate(kept):
            if number:
                spans.append(separator)
            spans.extend(field)
        if width_of(spans) <= width:
            return tuple(spans)
        kept.remove(min(kept, key=lambda item: item[0]))
    return clip((badge,), width)


def _activity(state: RunState, now: float) -> tuple[Span, ...]:
    """What the run is doing, in a word."""
    if state.compacting is not None:
        return (Span(f"{spinner(now)} summary", "model"),)
    match str(state.phase):
        case "model":
            attempt = f" (try {state.run.attempt})" if state.run.attempt > 1 else ""
            return (Span(f"{spinner(now)} model{attempt}", "model"),)
        case "backoff":
            return (Span(f"≈ retry in {seconds(state.run.retry_at - now)}, F8 now", "warn"),)
        case "tools":
            return (Span(f"{spinner(now)} tools", "accent"),)
        case "approval":
            return (Span("? approval", "operator"),)
        case "escalation":
            return (Span("▲ your answer", "operator"),)
        case _:
            return ()
