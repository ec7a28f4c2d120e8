"""The present failure as one story, in three lines; one calm line when nothing fails.

The first line names the failure and its cause, the second its course, the third the ladder with the present
rung and the next one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from tui_agent.call_names import subject_of
from tui_agent.core.names import MODEL_CALL, OF_NO_FAILURE, REPLY_FORM, Level
from tui_agent.core.projections.tally import Problem, tally, with_lanes
from tui_agent.frontend.lines.glyphs import EMPTY, LEVELS, OUTCOMES
from tui_agent.frontend.lines.outlook import figure
from tui_agent.frontend.lines.styled import Line, Span, clip, fit_middle, justified, width_of
from tui_agent.headline import headline
from tui_agent.quantities import counted, ordinal
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
    "error": Rung("error shown", "the model sees the error"),
    "note": Rung("note", "the model gets a note"),
    "withhold": Rung("held back", "the call is not run again"),
    "pivot": Rung("other way", "the model is asked for another approach"),
    "escalate": Rung("you are asked", "you are asked"),
    "restart": Rung("fresh start", "the run begins anew with what was learned"),
    "degrade": Rung("partial", "the run ends with a partial answer"),
    "stop": Rung("stop", "the run is stopped"),
}
"""The ladder from the mildest rung to the last, by verdict level (and `withhold`). The level `guide` has two: a note is
sent only if it says more than the error.
"""

_UNASKED = {"continue": "", "partial": "degrade", "stop": "stop"}
"""The rung in place of a question that nobody is there to answer."""

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


_WITH_STEP, _WIDE = 70, 100
"""Columns from which the end names its step, and from which the counts are said in words."""

ROOMY = 30
"""Rows of the terminal from which the strip takes three of them; while a question is put, it takes one below that."""


def is_calm(state: RunState) -> bool:
    """Say that nothing fails: nobody is asked about recovery, nothing goes in circles, and no failure was open in the
    last steps.
    """
    from tui_agent.core.recovery.ring import ErrorRing

    incidents, verdict = state.metrics.incidents, state.verdict
    if _asks_about_failures(state) or state.recovery.of(ErrorRing).filled:
        return False
    if any(_asks_about_failures(lane) or lane.metrics.incidents.open for lane in state.lanes.values()):
        return False
    if state.running and verdict is not None and verdict.level.rank >= Level.PIVOT.rank:
        return False
    newest, recovered = next(reversed(incidents.open.values()), None), incidents.recovered
    last = [] if newest is None else [newest.newest.iteration]
    if recovered and (end := recovered[-1].recovery) is not None:
        last.append(end.iteration)
    return all(state.run.iteration - step >= CALM_AFTER for step in last)


def _asks_about_failures(state: RunState) -> bool:
    return state.escalation is not None and state.escalation.source not in OF_NO_FAILURE


def incident_lines(state: RunState, width: int, *, roomy: bool, alone: bool = False) -> list[Line]:
    """Draw up to three lines while something is wrong and the run goes on, two if that is not `roomy`; else one.

    `alone`: the error ring is not in sight, and stands in the one line.
    """
    problem = told(state)
    without = state.escalation is not None and _stuck(state) is not None
    if problem is None or without or not state.running or _is_past(state, problem):
        return [_calm(state, width, alone=alone)]
    lines = [
        _what(state, problem, width),
        _course(problem.state, problem.incident, width),
        _ladder(problem.state, problem.incident, width),
    ]
    if roomy:
        return lines
    return lines[:1] if _asks(state) else [lines[0], lines[2]]


def told(state: RunState) -> Problem | None:
    """Choose what the strip tells of: what the operator is asked about, else what failed last, in the run or in a
    sub-agent at work.
    """
    for each in with_lanes(state):
        incident = each.metrics.incidents.current
        if incident is not None and _asks_about(each, incident):
            return Problem(incident, each)
    open_now = tally(state).open
    return open_now[-1] if open_now else None


def _asks(state: RunState) -> bool:
    """Tell if a question is put to the operator."""
    return state.asked is not None


def _asks_about(state: RunState, incident: Incident) -> bool:
    """Tell if the question is about this incident, and not about another matter that waits meanwhile."""
    return incident.key in state.metrics.incidents.asked_about


def _is_past(state: RunState, problem: Problem) -> bool:
    """Tell if the work has gone on since without it, and nobody is asked."""
    return not _asks(state) and problem.state.run.iteration - problem.incident.newest.iteration > LOUD


def _joined(parts: list[tuple[Span, ...]]) -> Line:
    spans: list[Span] = []
    for number, part in enumerate(parts):
        if number:
            spans.append(Span(" · ", "faint"))
        spans.extend(part)
    return tuple(spans)


def _fitted(parts: list[tuple[Span, ...]], width: int) -> Line:
    """Join as many parts, from the first on, as fit."""
    while len(parts) > 1 and width_of(_joined(parts)) > width:
        parts.pop()
    return clip(_joined(parts), width)


def _calm(state: RunState, width: int, *, alone: bool) -> Line:
    """Draw what stands: the question or the end, what became of the failures, and the confidence."""
    ended, stuck, count = state.run.outcome, _stuck(state), tally(state)
    parts: list[tuple[Span, ...]] = []
    if stuck is not None:
        parts.append((stuck,))
    if ended is not None:
        sign = OUTCOMES[ended]
        at = f" at step {state.run.iteration}" if width >= _WITH_STEP else ""
        parts.append((Span(f"{sign.glyph} {sign.word}{at}", f"{sign.role} bold"),))
    elif count.open:
        names = dict.fromkeys(_named(problem) for problem in reversed(count.open))
        parts.append((Span(f"{EMPTY} {next(iter(names))} still fails", "warn"),))
    elif stuck is None:
        parts.append(_well(state, failed=bool(count.failures), alone=alone))
    if count.failures:
        parts.append((Span(count.in_words(ended=ended is not None), "warn" if count.left else "muted"),))
    if ended is not None and count.open:
        names = dict.fromkeys(_named(problem) for problem in reversed(count.open))
        parts.append((Span(", ".join(names), "muted"),))
    if state.running and state.recovery.policy.cognition != "off" and stuck is None:
        parts.append((Span("confidence ", "muted"), figure(state.recovery).span))
    if _asks(state) and stuck is None:
        parts.append((Span("waits for you", "operator bold"),))
    if state.note is not None:
        parts.append((Span(f"→ {_note_words(state)}", "note"),))
    return _fitted(parts, width)


def _well(state: RunState, *, failed: bool, alone: bool) -> tuple[Span, ...]:
    """Say that nothing fails; `alone`: behind the empty error ring."""
    from tui_agent.core.recovery.ring import ErrorRing

    begun = bool(state.run.number)
    sign = Span("✓ ", "ok") if begun else Span(f"{EMPTY} ", "muted")
    if alone:
        sign = Span(f"{' '.join(EMPTY for _ in state.recovery.of(ErrorRing).slots)} ", "faint")
    words = "nothing fails now" if failed else "nothing failed" if begun else "nothing has failed yet"
    return sign, Span(words, "muted")


def _stuck(state: RunState) -> Span | None:
    """Name trouble without a failure: the open question about it, or a run that goes in circles."""
    asked, verdict = state.escalation, state.verdict
    if asked is not None:
        about_none = asked.source not in OF_NO_FAILURE
        if about_none and not state.metrics.incidents.asked_about:
            return Span(f"▲ {one_line(asked.in_words)}", "operator bold")
    elif state.running and verdict is not None and verdict.level.rank and _without_failure(state, verdict):
        sign = LEVELS[str(verdict.level)]
        return Span(f"{sign.glyph} {one_line(verdict.reason)}", f"{sign.role} bold")
    return None


def _without_failure(state: RunState, verdict: events.VerdictReached) -> bool:
    """Tell if nothing failed in the step that the verdict is about."""
    from tui_agent.core.recovery.stuck import StuckPatterns

    last = state.recovery.last
    return verdict.detector == StuckPatterns.name or (
        last is not None and not last.failed and bool(verdict.reason)
    )


def _note_words(state: RunState) -> str:
    """Say what becomes of the pending note."""
    return "the policy would send a note" if state.session.recorded else "the model reads a note next"


def _named(problem: Problem) -> str:
    """Name what fails, with the sub-agent in which it does."""
    name = incident_name(problem.incident)
    return f"{one_line(problem.lane)} › {name}" if problem.lane else name


def incident_name(incident: Incident) -> str:
    """Name the thing that failed: the call, or the model's part."""
    if incident.key == MODEL_CALL:
        return "the model call"
    if incident.key == REPLY_FORM:
        return "the reply's form"
    return f"{one_line(incident.tool)} {subject_of(incident)}".strip()


def recovered_words(incident: Incident) -> str:
    """Say how a failure was recovered: what failed, on which try, and what helped."""
    recovery = incident.recovery
    if recovery is None:
        return incident_name(incident)
    helped = {"answer": ", after your answer", "note": ", after a note"}.get(incident.helped_by, "")
    how = "" if recovery.how == "same_call" else ", by another call"
    return f"{incident_name(incident)}, on the {ordinal(recovery.tries)} try{how}{helped}"


def _what(state: RunState, problem: Problem, width: int) -> Line:
    """Name the call, the cause, and the number of such failures, in words if they take no room from the call."""
    incident, name = problem.incident, _named(problem)
    said = headline(incident.newest.message)
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
    """Say how often it failed and what else is open: in words, shorter, and in signs."""
    words = f"the same error {incident.same} times" if incident.same > 1 else ""
    if incident.times > incident.same:
        words = f"{words}, {incident.times} in all" if words else f"{incident.times} failures in all"
    sign = f"{incident.times}×" if incident.times > 1 else ""
    others = tally(state).left - incident.times
    named = f"{counted(others, 'other failure')} open" if others else ""
    signed = f"+{others} other{'s' if others > 1 else ''}" if others else ""
    forms = ((words, named), (words, signed), (sign, signed))
    return [" · ".join(part for part in form if part) for form in forms]


def _course(state: RunState, incident: Incident, width: int) -> Line:
    """Draw each failure with its step, the answer to it, and the present state; the newest ones that fit."""
    ends: list[Span] = []
    if _asks_about(state, incident):
        ends = [Span("──▶ ", "operator"), Span("you", "operator bold")]
    elif incident.newest.answer or incident.refused:
        words = [f"answered at step {incident.newest.iteration}"] if incident.newest.answer else []
        words += [f"not run again ×{incident.refused}"] if incident.refused else []
        words += [_what_became(state, incident)]
        ends = [
            Span(f"── {' · '.join(filter(None, words))}", "operator" if incident.newest.answer else "blocked")
        ]
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


def _what_became(state: RunState, incident: Incident) -> str:
    """Say when the call of an incident may run again."""
    from tui_agent.core.recovery.attempts import AttemptLedger

    entry = state.recovery.of(AttemptLedger).entries.get(incident.key)
    if entry is None or not entry.blocked:
        return ""
    if state.recovery.blocks(entry):
        return "runs again once something changes"
    return "may run once more" if entry.allowed else "may run again"


_ANSWERS = {
    "answer": "your words",
    "retry": "run it again",
    "wait": "wait",
    "edit": "changed the call",
    "skip": "leave it",
    "partial": "partial answer",
    "stop": "stop",
    "continue": "go on",
}
"""The operator's choice in words."""


def _station(attempt: Attempt, in_new_step: bool) -> list[Span]:
    spans = [Span("✗", "error")]
    if in_new_step:
        spans.insert(0, Span(f"step {attempt.iteration} ", "muted"))
    if attempt.answer:
        spans.append(Span(f" you: {_ANSWERS.get(attempt.answer, attempt.answer)}", "operator"))
    elif attempt.noted:
        spans.append(Span(" note", "note"))
    return spans


def _ladder(state: RunState, incident: Incident, width: int) -> Line:
    """Draw the rungs: those that were tried, the present one, and the one of the next failure. A rung is present until
    the model has read the error or the note, or the operator has answered.
    """
    recovery = state.recovery
    if incident.key == MODEL_CALL:
        return _model_ladder(state, incident, width)
    possible = recovery.policy.ladder
    if "guide" in possible and recovery.policy.note != "none":
        possible |= {"note"}
    if incident.key == REPLY_FORM and recovery.policy.form == "ladder":
        alone = {"pivot", "restart"} if recovery.goes_on else {"degrade"}
        possible = frozenset({"note", *({"escalate"} if recovery.operator_present else alone)})
    newest = incident.newest
    noted = newest.noted or incident.key in state.metrics.incidents.advised
    reached = {
        rung_of(attempt.level, noted=attempt.noted or (attempt is newest and noted))
        for attempt in incident.course
        if attempt.level is not None
    }
    if not recovery.operator_present:
        possible, reached = possible - {"escalate"}, reached - {"escalate"}
    if incident.refused:
        reached.add("withhold")
    here = "escalate" if _asks_about(state, incident) else ""
    shown = newest.level is Level.GUIDE and not noted and state.run.iteration > newest.iteration
    if not here and newest.level is not None and not (newest.noted or newest.answer or shown):
        here = rung_of(newest.level, noted=noted)
        if newest.level is Level.ESCALATE and not recovery.operator_present:
            here = _UNASKED[recovery.on_escalation]
    whole, tried = _rungs(LADDER, reached, here, possible), _rungs(LADDER, reached, here)
    then = _next_rung(state, incident)
    if then is not None:
        when = "if it comes again" if then is LADDER["withhold"] else "if it fails again"
        said, shorter = f"{when}: {then.happens}", f"next: {then.happens}"
        for spans, words in ((whole, said), (tried, said), (tried, shorter), (tried, f"next: {then.word}")):
            beside = (Span(words, "muted"),)
            if width_of(spans) + width_of(beside) + 2 <= width:
                return justified(spans, beside, width, 2)
    return clip(whole if width_of(whole) <= width else tried, width)


def _model_ladder(state: RunState, incident: Incident, width: int) -> Line:
    """Say what is done about a model that fails, and what comes if that does not help."""
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
    here = incident.newest.rule if state.waiting is None else "model.wait"
    order = list(MODEL_LADDER)
    after = [
        rule
        for rule in order
        if rule in rules and (here not in order or order.index(rule) > order.index(here))
    ]
    now, then = MODEL_LADDER.get(here), MODEL_LADDER[after[0]] if after else None
    forms = [
        [f"now {now.happens}" if now else "", f"if that does not help, {then.happens}" if then else ""],
        [f"now: {now.word}" if now else "", f"next: {then.word}" if then else ""],
    ]
    lines = [(Span("  "), Span(" · ".join(filter(None, words)), "warn")) for words in forms]
    return clip(next((line for line in lines if width_of(line) <= width), lines[-1]), width)


def _rungs(
    ladder: Mapping[str, Rung], reached: Collection[str], here: str, possible: Collection[str] = ()
) -> list[Span]:
    """Draw the rungs that were reached, marked, the present one, and those that are possible besides."""
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


def rung_of(level: Level, *, noted: bool) -> str:
    """Name the rung of a verdict; `noted`: the model is sent a note beside the error."""
    if level is Level.GUIDE:
        return "note" if noted else "error"
    return str(level)


def next_words(state: RunState, incident: Incident) -> str:
    """Say what comes if the same fails once more; empty if nobody can say."""
    rung = _next_rung(state, incident)
    return "" if rung is None else rung.happens


def _next_rung(state: RunState, incident: Incident) -> Rung | None:
    from tui_agent.core.recovery.forecast import if_it_fails_again

    if incident.key in {REPLY_FORM, MODEL_CALL} or _asks_about(state, incident):
        return None
    recovery = state.recovery
    if not recovery.permit(incident.tool, incident.key).allowed:
        return LADDER["withhold"]
    verdict, noted = if_it_fails_again(recovery, incident.failure, incident.key)
    rung = rung_of(verdict.level, noted=noted)
    if verdict.level is Level.ESCALATE and not recovery.operator_present:
        rung = _UNASKED[recovery.on_escalation]
    return LADDER.get(rung)
