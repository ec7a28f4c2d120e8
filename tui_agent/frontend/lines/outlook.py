"""The confidence, as every place shows it: its figure and its gauge, what speaks against it and for it, and what is
proven.

The confidence is FunnelCanary's, which is counted under every policy. The chance that the next step works is an
estimate from recorded runs: it stands among what speaks against, and only if it held in every recorded set.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tui_agent.core.names import MODEL_CALL, REPLY_FORM
from tui_agent.core.projections.tally import tally, with_lanes
from tui_agent.frontend.lines.glyphs import FALLING, LEVEL, RISING
from tui_agent.frontend.lines.styled import Line, Span
from tui_agent.headline import headline
from tui_agent.quantities import counted
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from tui_agent.core.projections.incidents import Incident
    from tui_agent.core.recovery.engine import RecoveryState
    from tui_agent.core.recovery.policy import RecoveryPolicy
    from tui_agent.core.state import RunState


LOW, HIGH = 0.3, 0.7
"""FunnelCanary's thresholds, and the grades of every value: bad below LOW, good from HIGH on."""


def confidence_role(value: float) -> str:
    """Choose the role of a confidence in [0, 1], the same wherever it is shown: between the marks it is no colour's
    matter.
    """
    return "error" if value < LOW else "" if value < HIGH else "ok"


def trend(history: Sequence[float], value: float) -> str:
    """Choose a sign for the direction that led to `value`; the newest of the history may be that value, or the one
    before.
    """
    before = list(history[-2:])
    if before and before[-1] == value:
        before.pop()
    if not before or before[-1] == value:
        return LEVEL
    return RISING if value > before[-1] else FALLING


class Figure(NamedTuple):
    """The confidence, and the sign of where it goes."""

    value: float
    direction: str

    @property
    def span(self) -> Span:
        """The figure in its role."""
        return Span(f"{self.value:.2f} {self.direction}", confidence_role(self.value))


def course(recovery: RecoveryState) -> list[float]:
    """List the confidence from the start of the run on."""
    from tui_agent.core.recovery.cognition import CognitiveState

    return [recovery.policy.confidence_start, *(each for _, each in recovery.of(CognitiveState).history)]


def figure(recovery: RecoveryState) -> Figure:
    """Give the one figure for how well it goes."""
    from tui_agent.core.recovery.cognition import CognitiveState

    value = recovery.of(CognitiveState).confidence
    return Figure(value, trend(course(recovery), value))


# --- the gauge -----------------------------------------------------------------------------------------------


def marks(policy: RecoveryPolicy) -> tuple[tuple[float, str], ...]:
    """List the confidences at which something happens, with what; under a policy that does not act on the confidence
    they say how good it is.
    """
    if policy.cognition != "walk":
        return ((LOW, "low"), (HIGH, "high"))
    return ((policy.degrade_threshold, "may give up"), (policy.confidence_threshold, "answer due"))


def gauge(value: float, width: int, thresholds: Sequence[float]) -> Line:
    """Draw a bar of `width` cells for a value in [0, 1], with the thresholds marked on it."""
    filled = round(value * width)
    marked = {_cell(threshold, width) for threshold in thresholds}
    role = confidence_role(value)
    spans: list[Span] = []
    for cell in range(width):
        full = cell < filled
        glyph = ("╋" if full else "┼") if cell in marked else ("━" if full else "─")
        style = role if full else "muted" if cell in marked else "faint"
        if spans and spans[-1].style == style:
            spans[-1] = Span(spans[-1].text + glyph, style)
        else:
            spans.append(Span(glyph, style))
    return tuple(spans)


def scale(policy: RecoveryPolicy, width: int) -> str:
    """Write below a gauge what each mark stands for: with words if they fit, else its number alone."""
    with_words, fits = _scale(policy, width, with_words=True)
    return with_words if fits else _scale(policy, width, with_words=False)[0]


def _scale(policy: RecoveryPolicy, width: int, *, with_words: bool) -> tuple[str, bool]:
    cells, free, fits = [" "] * width, 0, True
    for at, words in marks(policy):
        number = f"{at:g}".removeprefix("0")
        label = f"{number} {words}" if with_words else number
        start = max(0, min(_cell(at, width) - 1, width - len(number)))
        fits &= free <= start and start + len(label) <= width
        cells[start : start + len(label)] = label
        free = start + len(label) + 1
    return "".join(cells[:width]), fits


def _cell(value: float, width: int) -> int:
    return min(width - 1, round(value * width))


# --- what speaks against it and for it -----------------------------------------------------------------------


def against(state: RunState) -> Iterator[str]:
    """Say what speaks against a good next step, the gravest first: each in a line, with counts."""
    from tui_agent.core.recovery.cognition import CognitiveState

    recovery, cognition = state.recovery, state.recovery.of(CognitiveState)
    if state.running:
        for each in with_lanes(state):
            yield from (_of_lane(each, said) for said in _no_answer(each.recovery))
    if state.running and cognition.stall > 1:
        yield _stall(recovery.policy, cognition.stall)
    opened = tally(state).open
    rejected = sum(found.incident.times for found in opened if found.incident.key == REPLY_FORM)
    if rejected:
        yield f"{'1 reply' if rejected == 1 else f'{rejected} replies'} without a usable call"
    problems = [found for found in opened if found.incident.key not in {REPLY_FORM, MODEL_CALL}]
    named = problems[-_NAMED:]
    for problem in reversed(named):
        yield _of_lane(problem.state, _still_fails(problem.state, problem.incident))
    if problems[:-_NAMED]:
        others = sum(problem.incident.times for problem in problems[:-_NAMED])
        yield f"{counted(others, 'other failure')} {'open' if state.running else 'left open'}"
    if state.running and cognition.next_step.outlook == "unlikely":
        yield cognition.next_step.words


_NAMED = 2
"""Calls that fail and are named one by one, the newest; the others are counted."""


def _of_lane(state: RunState, said: str) -> str:
    return f"{one_line(state.lane_name)} › {said}" if state.lane_name else said


def _stall(policy: RecoveryPolicy, stall: int) -> str:
    then = {"walk": "it gives up or tries another way", "chance": "another way is asked for", "off": ""}[
        policy.cognition
    ]
    ahead = f"; at {policy.stall_threshold} {then}" if then and stall < policy.stall_threshold else ""
    return f"{stall} steps in a row without a success{ahead}"


def _no_answer(recovery: RecoveryState) -> Iterator[str]:
    from tui_agent.core.recovery.model_faults import ModelFaults

    faults = recovery.of(ModelFaults)
    if faults.last is not None:
        row = f", {faults.in_row} failed calls in a row" if faults.in_row > 1 else ""
        yield f"the model does not answer: {faults.last.fault.kind.in_words}{row}"


def _still_fails(state: RunState, incident: Incident) -> str:
    """Say what fails, how often, and whether anything has changed since."""
    from tui_agent.core.recovery.attempts import AttemptLedger

    entry = state.recovery.of(AttemptLedger).entries.get(incident.key)
    tool, said = one_line(incident.tool), headline(incident.newest.message)
    if incident.same < 2:
        return f"{tool} failed: {said}"
    since = ""
    if entry is not None and entry.on_trial:
        since = f", after {counted(entry.trials, 'change')}"
    elif entry is not None and state.recovery.unchanged_since(entry):
        since = ", nothing changed since"
    return f"{tool}: same error {incident.same} times{since}: {said}"


def in_favour(state: RunState) -> Iterator[str]:
    """Say what speaks for a good next step: each in a line, with counts."""
    steps, worked = len(state.metrics.course), state.metrics.completed_iterations
    if steps and worked:
        yield f"{worked} of {counted(steps, 'step')} worked"
    count = tally(state)
    if count.recovered:
        yield f"{counted(count.recovered, 'failure')} of {count.failures} recovered"


def proven(state: RunState) -> Iterator[tuple[bool, str]]:
    """Say at the end what results show, and what they do not: each with whether it is proven."""
    from tui_agent.core.recovery.implicit import ImplicitFailures

    evidence, changed = state.recovery.of(ImplicitFailures).evidence, state.metrics.files_changed
    tests = evidence.tests
    if tests is not None and not evidence.other:
        said = f"{one_line(tests.label)}: {one_line(tests.line)}".removesuffix(": ")
        if tests.failed:
            yield False, f"the last test run failed: {said}"
        else:
            yield not evidence.changed, f"tests ran: {said}"
        if evidence.changed:
            yield False, f"{one_line(evidence.changed)} was changed after it"
    elif changed and not evidence.other:
        yield False, f"no test ran since {counted(len(changed), 'file')} changed"
