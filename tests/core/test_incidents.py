"""Incidents: the course of what failed, and how it was recovered."""

from __future__ import annotations

from tests.store.session_events import stamp
from tui_agent.core.events import (
    EscalationAnswered,
    EscalationRaised,
    Event,
    Failure,
    FailureKind,
    Fault,
    FaultKind,
    IterationFinished,
    IterationStarted,
    Level,
    ModelCallStarted,
    ModelFaulted,
    NotePrepared,
    ReplyFinished,
    RunStarted,
    ToolFailed,
    ToolRefused,
    ToolSucceeded,
    VerdictReached,
)
from tui_agent.core.fold import fold
from tui_agent.core.projections.incidents import MODEL, Incident, Incidents

MAKE = {"command": "make"}


def failed(message: str = "exit code 2: no rule", **arguments: str) -> ToolFailed:
    failure = Failure(kind=FailureKind.TOOL_EXECUTION, message=message, tool="bash")
    return ToolFailed(call_id="c", tool="bash", input=arguments or MAKE, content=message, failure=failure)


def iteration(
    number: int, *results: Event, level: Level = Level.GUIDE, note: str | None = "n", read: str | None = "n"
) -> list[Event]:
    """`note`: what is prepared for the next request; `read`: what this one carries."""
    return [
        IterationStarted(iteration=number),
        ModelCallStarted(iteration=number, model="m", note=read),
        ReplyFinished(),
        *results,
        IterationFinished(iteration=number),
        VerdictReached(iteration=number, level=level, rule="attempts.guide"),
        NotePrepared(text=note),
    ]


def incidents(*events: Event) -> Incidents:
    return fold(stamp([RunStarted(run=1, task="t", policy="combined", model="m"), *events])).metrics.incidents


def only(found: Incidents) -> Incident:
    (incident,) = found.open.values()
    return incident


def test_the_course_holds_each_failure_with_its_verdict_and_whether_a_note_was_sent() -> None:
    incident = only(
        incidents(*iteration(1, failed()), *iteration(3, failed(), level=Level.ESCALATE, note=None))
    )
    course = [(attempt.iteration, attempt.level, attempt.noted) for attempt in incident.course]
    assert course == [(1, Level.GUIDE, True), (3, Level.ESCALATE, False)]
    assert (incident.times, incident.same, incident.target) == (2, 2, "make")


def test_a_note_that_no_request_carried_was_not_read() -> None:
    went = ToolSucceeded(call_id="c", tool="bash", input=MAKE, content="fine")
    (incident,) = incidents(*iteration(1, failed()), *iteration(2, went, read=None)).recovered
    assert (incident.newest.noted, incident.helped_by) == (False, "")


def test_another_error_of_the_same_call_starts_the_count_of_equal_ones_anew() -> None:
    incident = only(incidents(*iteration(1, failed()), *iteration(2, failed("exit code 2: another"))))
    assert (incident.times, incident.same) == (2, 1)


def test_a_recovery_says_how_by_which_try_and_after_what() -> None:
    raised = EscalationRaised(id="e", question="?", source="attempts")
    answered = EscalationAnswered(id="e", choice="retry", message="once more")
    went = ToolSucceeded(call_id="c", tool="bash", input=MAKE, content="fine")
    found = incidents(
        *iteration(1, failed()), *iteration(2, failed()), raised, answered, *iteration(3, went, note=None)
    )
    (incident,) = found.recovered
    recovery = incident.recovery
    assert recovery is not None
    assert (recovery.how, recovery.tries, recovery.iteration) == ("same_call", 3, 3)
    assert (incident.asked, incident.helped_by) == (1, "answer")
    assert found.open == {}


def test_another_command_for_the_same_target_works_round_it() -> None:
    went = ToolSucceeded(call_id="c", tool="bash", input={"command": "make all"}, content="fine")
    (incident,) = incidents(*iteration(1, failed()), *iteration(2, went)).recovered
    assert incident.recovery is not None
    assert (incident.recovery.how, incident.helped_by) == ("worked_round", "note")


def test_calls_that_are_not_executed_any_more_are_counted() -> None:
    refused = ToolRefused(call_id="c", tool="bash", input=MAKE, refusal="blocked", reason="no")
    assert only(incidents(*iteration(1, failed()), *iteration(2, refused))).refused == 1


def test_the_model_recovers_with_the_next_proper_reply() -> None:
    fault = ModelFaulted(fault=Fault(kind=FaultKind.TIMEOUT, message="silence"), action="retry")
    started = IterationStarted(iteration=1)
    assert incidents(started, fault, fault).open[MODEL].times == 2
    (incident,) = incidents(started, fault, fault, ReplyFinished(), IterationFinished(iteration=1)).recovered
    assert (incident.key, incident.times) == (MODEL, 2)


def test_a_recovery_is_a_line_of_the_timeline() -> None:
    went = ToolSucceeded(call_id="c", tool="bash", input=MAKE, content="fine")
    start = RunStarted(run=1, task="t", policy="combined", model="m")
    state = fold(stamp([start, *iteration(1, failed()), *iteration(2, went)]))
    lines = [(line.kind, line.text) for line in state.timeline.lines]
    assert ("recovered", "bash after 1 failure") in lines
