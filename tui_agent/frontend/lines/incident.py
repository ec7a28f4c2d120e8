"""The present failure as one story, in three lines; one calm line when all is well.

The first line names the failure and its cause, the second its course, the third the ladder with the present
rung and the next one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from tui_agent.call_names import subject_of
from tui_agent.core.badge import badge_of
from tui_agent.core.names import MODEL_CALL, OF_NO_FAILURE, REPLY_FORM, Level
from tui_agent.frontend.lines.glyphs import BADGES, EMPTY, LEVELS, OUTCOMES
from tui_agent.frontend.lines.outlook import next_step
from tui_agent.frontend.lines.styled import Line, Span, clip, fit_middle, justified, width_of
from tui_agent.headline import headline
from tui_agent.quantities import counted
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from tui_agent.core import events
    from tui_agent.core.projections.incidents import Attempt, Incident
    from tui_agent.core.state import RunState

CALM_AFTER = 10
"""Steps after the last open failure from which on all is calm again."""
LOUD = 5
"""Steps for which a failure takes more than a line; after them it counts as a problem left open."""


class Rung(NamedTuple):
    """One step of the ladder: its word, and the words for what happens there."""

    word: str
    happens: str


LADDER: dict[str, Rung] = {
    "guide": Rung("hint", "the model gets a hint for this error"),
    "withhold": Rung("held back", "the call is not run again"),
    "pivot": Rung("other way", "the model is asked for another approach"),
    "escalate": Rung("asks you", "you are asked"),
    "degrade": Rung("partial", "the run ends with a partial answer"),
    "stop": Rung("stop", "the run is stopped"),
}
"""The ladder from the mildest rung to the last, by verdict level (and `withhold`)."""

MODEL_LADDER: dict[str, Rung] = {
    "model.retry": Rung("retry", "the model is called again"),
    "model.wait": Rung("waits", "the run waits until the limit resets"),
    "model.text_calls": Rung("calls as text", "the model writes its calls as text"),
    "model.shrink": Rung("shorter request", "the request is shortened"),
    "model.fallback": Rung("next model", "another model is called"),
    "model.next_iteration": Rung("next step", "the next step tries again"),
    "model.ask": LADDER["escalate"],
    "model.degrade": LADDER["degrade"],
    "model.stop": LADDER["stop"],
}
"""That of a failed model call, by rule."""


_WIDE = 100
"""Columns from which the counts are said in words."""

ROOMY = 30
"""Rows of the terminal from which the strip takes three of them; while a question is put, it takes one below that."""


def is_calm(state: RunState) -> bool:
    """Say that nothing fails: nobody is asked about recovery, nothing goes in circles, and no failure was open in the
    last steps.
    """
    from tui_agent.core.recovery.ring import ErrorRing

    incidents, verdict = state.metrics.incidents, state.verdict
    if state.escalation is not None or state.recovery.of(ErrorRing).filled:
        return False
    if state.running and verdict is not None and verdict.level.rank >= Level.PIVOT.rank:
        return False
    newest, recovered = next(reversed(incidents.open.values()), None), incidents.recovered
    last = [] if newest is None else [newest.newest.iteration]
    if recovered and (end := recovered[-1].recovery) is not None:
        last.append(end.iteration)
    return all(state.run.iteration - step >= CALM_AFTER for step in last)


def incident_lines(state: RunState, width: int, *, roomy: bool, alone: bool = False) -> list[Line]:
    """Draw up to three lines while something is wrong and the run goes on, two if that is not `roomy`; else one.

    `alone`: the error ring is not in sight, and stands in the one line.
    """
    incident = state.metrics.incidents.current
    without = state.escalation is not None and _stuck(state) is not None
    if incident is None or without or not state.running or _is_past(state, incident):
        return [_calm(state, width, alone=alone)]
    if not roomy:
        lines = [_what(state, incident, width), _ladder(state, incident, width)]
        return lines[:1] if _asks(state) else lines
    return [draw(state, incident, width) for draw in (_what, _course, _ladder)]


def _asks(state: RunState) -> bool:
    """A question is put to the operator."""
    return state.asked is not None


def _asks_about(state: RunState, incident: Incident) -> bool:
    """The question is about this incident, and not another matter that waits for the operator meanwhile."""
    return incident.key in state.metrics.incidents.asked_about


def _is_past(state: RunState, incident: Incident) -> bool:
    """The run has gone on since without it, and nobody is asked."""
    return not _asks(state) and state.run.iteration - incident.newest.iteration > LOUD


def _joined(parts: list[tuple[Span, ...]]) -> Line:
    spans: list[Span] = []
    for number, part in enumerate(parts):
        if number:
            spans.append(Span(" · ", "faint"))
        spans.extend(part)
    return tuple(spans)


def _fitted(parts: list[tuple[Span, ...]], width: int) -> Line:
    """As many parts, from the first on, as fit."""
    while len(parts) > 1 and width_of(_joined(parts)) > width:
        parts.pop()
    return clip(_joined(parts), width)


def _calm(state: RunState, width: int, *, alone: bool) -> Line:
    """Draw what stands: the question or the end, what is left open, and the chance of the next step."""
    from tui_agent.core.recovery.ring import ErrorRing

    incidents, ended, stuck = state.metrics.incidents, state.run.outcome, _stuck(state)
    parts: list[tuple[Span, ...]] = []
    if stuck is not None:
        parts.append((stuck,))
    if ended is not None:
        sign = OUTCOMES[ended]
        parts.append((Span(f"{sign.glyph} {sign.word}", f"{sign.role} bold"),))
    if incidents.standing:
        left = f"{counted(len(incidents.standing), 'problem')} left open"
        parts.append((Span(left if ended is not None else f"○ {left}", "warn"),))
    elif ended is None and stuck is None:
        well = (Span("✓ ", "ok"), Span("all is well", "muted"))
        if alone and not state.recovery.of(ErrorRing).filled:
            said = " all is well" if incidents.failures else " nothing failed"
            well = (
                Span(" ".join(EMPTY for _ in state.recovery.of(ErrorRing).slots), "faint"),
                Span(said, "muted"),
            )
        parts.append(well if alone or state.run.number else (Span("○ nothing has failed yet", "muted"),))
    cognition = state.recovery.policy.cognition
    if state.running and cognition != "off" and stuck is None and not _silent(state):
        parts.append(next_step(state))
        badge = badge_of(state)
        if badge != "CONTINUE":
            parts.append((Span(badge, f"{BADGES[badge]} bold"),))
    if state.note is not None:
        parts.append((Span(f"→ {_note_words(state)}", "note"),))
    return _fitted(parts, width)


def _stuck(state: RunState) -> Span | None:
    """Trouble without a failure: the open question about it, or a run that goes in circles."""
    asked, verdict = state.escalation, state.verdict
    if asked is not None:
        about_none = asked.source not in OF_NO_FAILURE
        if about_none and not state.metrics.incidents.asked_about:
            return Span(f"▲ {one_line(asked.question)}", "operator bold")
    elif state.running and verdict is not None and verdict.level.rank and _without_failure(state, verdict):
        sign = LEVELS[str(verdict.level)]
        return Span(f"{sign.glyph} {one_line(verdict.reason)}", f"{sign.role} bold")
    return None


def _without_failure(state: RunState, verdict: events.VerdictReached) -> bool:
    """Nothing failed in the step that the verdict is about."""
    from tui_agent.core.recovery.stuck import StuckPatterns

    last = state.recovery.last
    return verdict.detector == StuckPatterns.name or (
        last is not None and not last.failed and bool(verdict.reason)
    )


def _silent(state: RunState) -> bool:
    """The model does not reply, and the policy goes by a chance: it is of steps that the model takes."""
    from tui_agent.core.recovery.model_faults import ModelFaults

    recovery = state.recovery
    return recovery.policy.cognition == "chance" and recovery.of(ModelFaults).last is not None


def _note_words(state: RunState) -> str:
    """The state of the pending note."""
    return "the policy would send a note" if state.session.recorded else "the model reads a note next"


def incident_name(incident: Incident) -> str:
    """The thing that failed: the call, or the model's part."""
    if incident.key == MODEL_CALL:
        return "the model call"
    if incident.key == REPLY_FORM:
        return "the reply's form"
    return f"{one_line(incident.tool)} {subject_of(incident)}".strip()


def _what(state: RunState, incident: Incident, width: int) -> Line:
    """The call, the cause, and the number of such failures, in words if they take no room from the call."""
    said = headline(incident.newest.message)
    name = incident_name(incident)
    forms = _how_often(state, incident)[0 if width >= _WIDE else -1 :]
    taken = cell_len(name) + cell_len(said) + 7
    right = next((form for form in forms if taken + cell_len(form) <= width), forms[-1])
    room = max(8, width - cell_len(right) - 3)
    left = (
        Span("✗ ", "error bold"),
        Span(f"{fit_middle(name, max(8, room * 2 // 5))}  ", "bold"),
        Span(said, "error"),
    )
    return justified(left, (Span(right, "warn"),) if right else (), width, 2)


def _how_often(state: RunState, incident: Incident) -> list[str]:
    """How often it failed and what else is open: in words, shorter, and in signs."""
    words = f"the same error {incident.same} times" if incident.same > 1 else ""
    if incident.times > incident.same:
        words = f"{words}, {incident.times} in all" if words else f"{incident.times} failures in all"
    sign = f"{incident.times}×" if incident.times > 1 else ""
    others = len(state.metrics.incidents.standing) - 1
    named = f"{counted(others, 'other problem')} open" if others else ""
    signed = f"+{others} other{'s' if others > 1 else ''}" if others else ""
    forms = ((words, named), (words, signed), (sign, signed))
    return [" · ".join(part for part in form if part) for form in forms]


def _course(state: RunState, incident: Incident, width: int) -> Line:
    """Each failure with its step, the answer to it, and the present state; the newest ones that fit."""
    ends: list[Span] = []
    if _asks_about(state, incident):
        ends = [Span("──▶ ", "operator"), Span("you", "operator bold")]
    elif incident.refused:
        ends = [Span(f"── ⊘ not run again ×{incident.refused}", "blocked")]
    elif (
        state.note is not None
        and incident.key != MODEL_CALL
        and incident.newest.iteration == state.run.iteration
    ):
        ends = [Span("──▶ ", "note"), Span(_note_words(state), "note")]
    course = incident.course
    while course:
        joined: list[Span] = [Span("  ")]
        left_out = incident.times - len(course)
        if left_out:
            joined.append(Span(f"… {left_out} before ──", "muted"))
        for number, attempt in enumerate(course):
            if number:
                joined.append(Span("──", "faint"))
            joined.extend(_station(attempt, number == 0 or attempt.iteration != course[number - 1].iteration))
        if width_of([*joined, *ends]) <= width or len(course) == 1:
            return clip([*joined, *ends], width)
        course = course[1:]
    return ()


def _station(attempt: Attempt, in_new_step: bool) -> list[Span]:
    spans = [Span("✗", "error")]
    if in_new_step:
        spans.insert(0, Span(f"step {attempt.iteration} ", "muted"))
    if attempt.answer:
        spans.append(Span(f" you: {attempt.answer}", "operator"))
    elif attempt.noted:
        spans.append(Span(" note", "note"))
    return spans


def _ladder(state: RunState, incident: Incident, width: int) -> Line:
    """The rungs: those that were tried, the present one, and the one of the next failure."""
    recovery = state.recovery
    if incident.key == MODEL_CALL:
        return _model_ladder(state, incident, width)
    possible = recovery.policy.ladder
    if incident.key == REPLY_FORM and recovery.policy.form == "ladder":
        possible = frozenset({"guide", "escalate" if recovery.operator_present else "degrade"})
    reached = {str(attempt.level) for attempt in incident.course if attempt.level is not None}
    if incident.refused:
        reached.add("withhold")
    newest = incident.newest.level
    here = "escalate" if _asks_about(state, incident) else "" if newest is None else str(newest)
    whole, tried = _rungs(LADDER, reached, here, possible), _rungs(LADDER, reached, here)
    then = next_words(state, incident)
    if then:
        for spans, words in ((whole, "if it fails again"), (tried, "if it fails again"), (tried, "next")):
            beside = (Span(f"{words}: {then}", "muted"),)
            if width_of(spans) + width_of(beside) + 2 <= width:
                return justified(spans, beside, width, 2)
    return clip(whole if width_of(whole) <= width else tried, width)


def _model_ladder(state: RunState, incident: Incident, width: int) -> Line:
    """The policy's ladder for a model that fails, and the present rung."""
    recovery = state.recovery
    match recovery.policy.model_faults:
        case "retry":
            rules = {"model.retry", "model.ask" if recovery.operator_present else "model.degrade"}
            if state.run.fallback_models or state.run.fallbacks:
                rules.add("model.fallback")
        case "next_iteration":
            rules = {"model.next_iteration"}
        case _:
            rules = {"model.stop"}
    reached = {attempt.rule for attempt in incident.course}
    here = incident.newest.rule if state.waiting is None else "model.wait"
    return clip(_rungs(MODEL_LADDER, reached, here, rules), width)


def _rungs(
    ladder: Mapping[str, Rung], reached: Collection[str], here: str, possible: Collection[str] = ()
) -> list[Span]:
    """The rungs that were reached, marked, the present one, and those that are possible besides."""
    spans: list[Span] = [Span("  ")]
    for name, rung in ladder.items():
        if name not in possible and name not in reached and name != here:
            continue
        if len(spans) > 1:
            spans.append(Span(" › ", "faint"))
        if name == here:
            role = "operator bold" if rung is LADDER["escalate"] else "warn bold"
            spans.append(Span(f"[{rung.word.upper()}]", role))
        elif name in reached:
            spans.append(Span(f"{rung.word} ✓"))
        else:
            spans.append(Span(rung.word, "muted"))
    return spans


def next_words(state: RunState, incident: Incident) -> str:
    """The next rung if the same fails once more; empty if nobody can say."""
    from tui_agent.core.recovery.forecast import if_it_fails_again

    if incident.key in {REPLY_FORM, MODEL_CALL} or _asks_about(state, incident):
        return ""
    verdict = if_it_fails_again(
        state.recovery, incident.tool, incident.input, incident.key, incident.newest.message
    )
    if verdict.level is Level.ESCALATE and not state.recovery.operator_present:
        return "the call is blocked"
    rung = LADDER.get(str(verdict.level))
    return rung.happens if rung is not None else ""
