"""Status line: mode, step, model, policy, context, tokens, cost and time in one row that gives up detail by width."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tui_agent.console.panes.rows import Rows
from tui_agent.core.names import Approval, Phase
from tui_agent.frontend.lines.glyphs import MODES, spinner
from tui_agent.frontend.lines.mode import elapsed, mode_of, server_asks
from tui_agent.frontend.lines.styled import Line, Span, clip, fit, fit_middle, width_of
from tui_agent.quantities import compact, counted, dollars, resets, seconds, whole_seconds
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from tui_agent.core.state import RunState

CELLS = 5
"""Of the bar that shows how full the window is."""

NEARLY_FULL = 0.8
"""Share of the window from which on the bar warns."""

SILENT = 5.0
"""Seconds without a piece of a reply that has begun after which that is said: it hangs, or writes a long call."""

RATED = 10.0
"""Seconds of work before a cost per minute means anything."""


class StatusLine(Rows):
    """Mode, work, step, model, policy, context, tokens, cost and time: shortened, then left out, by their weight."""

    lines = [(Span(" … OPENING ", "muted reverse bold"),)]
    """Until there is a state."""

    def __init__(self) -> None:
        super().__init__()
        self.still = False
        """Time does not go on: a paused replay, a run that an earlier process left open."""
        self.left_open = False
        """An earlier process left the run open: nothing goes on until the operator says so."""
        self.held = False
        """A card is open: between steps nothing goes on until it is answered."""
        self.next_model = ""
        """Values of the next run, if the session has not said them yet."""
        self.next_policy = ""
        self.next_approve = ""
        self.view = ""
        """How densely the conversation is drawn; the usual one is not named."""
        self.elsewhere = 0
        """Questions that wait for the operator in other tabs."""

    def draw(self, state: RunState, now: float, width: int) -> list[Line]:
        """The fields that fit, mode first."""
        mode = MODES.get("PAUSED" if self.left_open else mode_of(state), MODES["AUTO"])
        run = state.run
        badge = Span(f" {mode.glyph} {mode.word} ", f"{mode.role} reverse bold")
        model = one_line(state.model or self.next_model) or ("model ?" if run.number else "no model")
        policy = one_line(run.policy or state.session.policy or self.next_policy) or "–"
        fields = [
            _Field(
                8, [fit_middle(model, 32), fit_middle(model, 20), fit(model.rpartition("/")[2], 14)], "model"
            ),
            _Field(5, [policy]),
            *_sums(state, now),
        ]
        approve = state.session.approve or self.next_approve
        if approve in _MODES_SHOWN and not state.session.recorded:
            fields.append(_Field(8, *_MODES_SHOWN[approve]))
        if run.sandbox:
            fields.append(_sandbox_field(run.sandbox))
        if self.view in ("compact", "full"):
            fields.append(_Field(1, [f"{self.view} view"], "muted"))
        if state.background.running:
            fields.append(_Field(7, [f"⚙ {len(state.background.running)}"], "accent"))
        if run.number:
            step = [f"step {run.iteration}"]
            if run.last_step is not None:
                step = [f"step {run.iteration} of {run.last_step}", f"{run.iteration}/{run.last_step}"]
            fields.insert(0, _Field(9, step, "bold"))
        if self.elsewhere:
            questions = counted(self.elsewhere, "question")
            fields.insert(0, _Field(8, [f"● {questions} in other tabs", f"● {self.elsewhere}"], "operator"))
        turning = None if self.app.animation_level == "none" else now
        stands = self.still or (self.held and state.phase is Phase.READY)
        activity = () if stands else _activity(state, now, turning)
        if activity:
            text, style = activity[0]
            # Nothing else on the screen says that the model is being started, or that it has paused.
            starting = text.removesuffix(" the model")
            alone = starting != text or "," in text
            urgent = state.phase is Phase.BACKOFF or style == "operator" or alone
            fields.insert(0, _Field(10 if urgent else 3, list(dict.fromkeys((text, starting))), style))
        return [_fitted(badge, [field for field in fields if field.forms], width)]


def _sandbox_field(sandbox: str) -> _Field:
    """The sandbox of commands."""
    if sandbox == "off":
        return _Field(3, ["no sandbox"], "warn")
    mechanism, _, network = sandbox.partition(", ")
    if network == "network":
        return _Field(3, [f"▣ {mechanism} + network", "▣ + network"], "warn")
    return _Field(2, [f"▣ {mechanism}", "▣"], "muted")


_MODES_SHOWN: dict[str, tuple[list[str], str]] = {
    Approval.PLAN: (["plan mode", "plan"], "accent"),
    Approval.WRITES: (["edits run"], ""),
    Approval.ALL: (["approve all"], "warn"),
}
"""How an approval mode that is not the careful default is shown."""


class _Field(NamedTuple):
    """A field in its forms, the longest first. The heaviest stay longest."""

    weight: int
    forms: list[str]
    style: str = ""


def _fitted(badge: Span, fields: list[_Field], width: int) -> Line:
    while fields:
        line: list[Span] = [badge, Span(" ")]
        for number, field in enumerate(fields):
            line += [Span(" · ", "faint")] if number else []
            line.append(Span(field.forms[0], field.style))
        if width_of(line) <= width:
            return tuple(line)
        long = [field for field in fields if len(field.forms) > 1]
        lightest = min(long or fields, key=lambda field: field.weight)
        if long:
            del lightest.forms[0]
        else:
            fields.remove(lightest)
    return clip((badge,), width)


def _context(state: RunState) -> _Field:
    """Say how full the model's window was with the newest request."""
    run = state.run
    used = state.metrics.last_prompt_tokens or run.request_tokens
    room = run.request_budget or run.context_tokens or state.windows.get(run.model)
    if not used or not room:
        return _Field(0, [])
    share = min(1.0, used / room)
    cells = round(share * CELLS)
    bar = "▰" * cells + "▱" * (CELLS - cells)
    said = f"{compact(used)} of {compact(room)}".replace(".0", "")
    forms = [f"ctx {bar} {said}", f"ctx {said}", f"ctx {share:.0%}"]
    return _Field(6, forms, "warn" if share >= NEARLY_FULL else "")


def _sums(state: RunState, now: float) -> list[_Field]:
    """Give tokens, window, cost and time of the run, and of the session if it had another run."""
    metrics = state.metrics
    usage, whole = metrics.usage, metrics.session_usage
    passed, waited = elapsed(state, now), metrics.waited(now)
    cached = 100 * usage.cached_tokens // max(1, usage.prompt_tokens)
    # A recording may keep no count: no reply is made without tokens.
    tokens = "tok ?" if metrics.course and not usage.tokens else f"{compact(usage.tokens)} tok"
    cost = "cost ?" if usage.cost is None else dollars(usage.cost)
    limit = state.run.limits.get("max_cost")
    if limit is not None and usage.cost is not None:
        cost += f" of {dollars(limit)}"
    near = limit is not None and usage.priced >= limit * state.run.budget_warning
    said = whole_seconds if metrics.ended_at is None else seconds
    time = said(passed)
    long = [tokens, cost, time]
    if metrics.session_seconds:
        all_cost = "?" if whole.cost is None else dollars(whole.cost)
        all_time = said(metrics.session_seconds + passed)
        long = [
            f"{tokens} ({compact(whole.tokens)} in all)" if whole.tokens else tokens,
            cost if whole.cost is None and usage.cost is None else f"{cost} ({all_cost} in all)",
            f"{time} ({all_time} in all)",
        ]
    worked = passed - waited
    rate = f" {dollars(60 * usage.cost / worked)}/min" if usage.cost and worked >= RATED else ""
    role = "warn" if near else "muted" if usage.cost is None else ""
    return [
        _Field(4, list(dict.fromkeys((long[0], tokens)))),
        _Field(2, [f"{cached}% cached"] if cached else [], "muted"),
        _context(state),
        _Field(6, list(dict.fromkeys((long[1] + rate, long[1], cost))), role),
        _Field(7, list(dict.fromkeys((long[2], time)))),
        _Field(2, [f"waited {whole_seconds(waited)}"] if waited >= 1 else [], "operator"),
    ]


def _activity(state: RunState, now: float, turning: float | None) -> tuple[Span, ...]:
    """The run's activity, in a word."""
    if state.compacting is not None:
        return (Span(f"{spinner(turning)} summary", "model"),)
    match state.phase:
        case Phase.MODEL:
            attempt = f" (try {state.run.attempt})" if state.run.attempt > 1 else ""
            reply = state.conversation.reply
            silent = now - (reply.heard or reply.at) if reply is not None else 0.0
            what = "no text" if reply is not None and reply.heard else "no word yet"
            pause = f", {what} for {whole_seconds(silent)}" if silent >= SILENT else ""
            return (Span(f"{spinner(turning)} model{attempt}{pause}", "model"),)
        case Phase.BACKOFF if state.waiting is not None:
            return (Span(f"≈ limit {resets(state.waiting.until, now)}", "warn"),)
        case Phase.BACKOFF:
            return (Span(f"≈ retry in {seconds(state.run.retry_at - now)}", "warn"),)
        case Phase.READY:
            what = "next" if state.metrics.model_calls else "starting the model"
            return (Span(f"{spinner(turning)} {what}", "muted"),)
        case Phase.TOOLS if server_asks(state):
            return (Span("? server", "operator"),)
        case _ if state.asked is not None:
            answer = state.asked.type == "escalation_raised"
            return (Span("▲ your answer" if answer else "? approval", "operator"),)
        case Phase.TOOLS:
            return (Span(f"{spinner(turning)} tools", "accent"),)
        case _:
            return ()
