"""Incidents: the course of what failed, and how it was recovered."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    Outcome,
    ReplyFinished,
    RunFinished,
    RunStarted,
    ToolFailed,
    ToolRefused,
    ToolSucceeded,
    VerdictReached,
)
from tui_agent.core.fold import fold
from tui_agent.core.names import MODEL_CALL
from tui_agent.core.projections.incidents import Incident, Incidents

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
    assert incidents(started, fault, fault).open[MODEL_CALL].times == 2
    (incident,) = incidents(started, fault, fault, ReplyFinished(), IterationFinished(iteration=1)).recovered
    assert (incident.key, incident.times) == (MODEL_CALL, 2)


def test_a_recovery_is_a_line_of_the_timeline() -> None:
    went = ToolSucceeded(call_id="c", tool="bash", input=MAKE, content="fine")
    start = RunStarted(run=1, task="t", policy="combined", model="m")
    state = fold(stamp([start, *iteration(1, failed()), *iteration(2, went)]))
    lines = [(line.kind, line.text) for line in state.timeline.lines]
    assert ("recovered", "bash after 1 failure") in lines


def call(tool: str, error: str = "", hint: str = "", **arguments: str) -> Event:
    """A call of a tool, failed with `error` or succeeded."""
    if not error:
        return ToolSucceeded(call_id="c", tool=tool, input=arguments, content="fine")
    failure = Failure(kind=FailureKind.TOOL_EXECUTION, message=error, tool=tool, hint=hint)
    return ToolFailed(call_id="c", tool=tool, input=arguments, content=error, failure=failure)


def bash(command: str, error: str = "", hint: str = "") -> Event:
    return call("bash", error, hint, command=command)


def read(path: str, error: str = "") -> Event:
    return call("read_file", error, path=path)


MISSING = "There is no file '{}' in the workspace."
NO_PYTEST = "exit code 1\n/usr/bin/python3: No module named pytest"


@pytest.mark.parametrize(
    ("failure", "success", "why"),
    [
        (read("carts.py", MISSING.format("carts.py")), read("shop/cart.py"), "corrected"),
        (read("mising.txt", MISSING.format("mising.txt")), read("missing.txt"), "corrected"),
        (
            read("shop/goods.py", MISSING.format("shop/goods.py") + " Did you mean 'shop/cart.py'?"),
            read("shop/cart.py"),
            "named",
        ),
        (read("shop/goods.py", MISSING.format("shop/goods.py")), read("README.md"), ""),
        (read("a.py", "The file is no text."), read("b.py"), ""),
        (bash("make", "exit code 2: no rule"), bash("make all"), "target"),
        (bash("python3 check.py", "exit code 1"), bash("python3 --version"), ""),
        (bash("python3 check.py", "exit code 1"), bash("cd lib && python3 -u check.py -v"), "target"),
        (bash("python3 check.py", "exit code 1"), bash("python3 check_v2.py"), "corrected"),
        (bash("python3 check.py", "exit code 1"), bash("python3 build.py"), ""),
        (bash("python3 -m pytest t/a.py", NO_PYTEST), bash("pytest t/a.py"), "target"),
        (bash("python3 -m pytest t/a.py", NO_PYTEST), bash("bin/test t/a.py"), "corrected"),
        (bash("pytest t/a.py", "exit code 2: usage"), bash("pytest t"), "target"),
        (bash("pytest t/a.py", "exit code 2: usage"), bash("pytest t/b.py"), ""),
        (bash("pytest t/a.py", "exit code 2: usage"), bash("pytest t/a.py::test_x"), ""),
        (bash("pytest t/a.py::test_x", "exit code 2: usage"), bash("pytest t/a.py"), "target"),
        (bash("python3 -m pytest t/a.py", NO_PYTEST), bash("python3 -m pytest --version"), ""),
        (bash("sed -n 1p x.py", "exit code 2: can't read x.py"), bash("sed -n 1p other.py"), ""),
        (bash("ls lib/x", "exit code 2: cannot access 'lib/x': No such file"), bash("ls src/x"), "corrected"),
        (bash("git chekout a", "exit code 1"), bash("git status"), ""),
        (
            bash("pyhton a.py", "exit code 127: pyhton: command not found", "Did you mean 'python'?"),
            bash("python a.py"),
            "named",
        ),
        (bash("fd x", "exit code 127: fd: command not found", "Try fdfind."), bash("fdfind x"), "named"),
        (
            call("get_order", "Error: order not found", order_id="#W1"),
            call("get_order", order_id="#W2"),
            "identifier",
        ),
        (
            call("get_order", "Error: order not found", order_id="#W1"),
            call("get_user", user_id="7"),
            "",
        ),
        (bash("(((", "exit code 2: syntax error"), bash("cat << 'END' > a\nx\nEND"), ""),
    ],
)
def test_another_call_makes_a_failure_good_or_does_not(failure: Event, success: Event, why: str) -> None:
    found = incidents(*iteration(1, failure), *iteration(2, success))
    ended = [incident.recovery.why for incident in found.recovered if incident.recovery]
    assert ended == ([why] if why else [])
    assert found.failures == found.recoveries + sum(incident.times for incident in found.open.values())


ANSWERED = RunFinished(outcome=Outcome.ANSWERED, answer="done")


@pytest.mark.parametrize(
    ("failure", "success", "closed"),
    [
        (read("old/api.md", MISSING.format("old/api.md")), call("grep", pattern="def api"), True),
        (read("old/api.md", MISSING.format("old/api.md")), bash("make"), False),
        (read("old/api.md", "Permission denied."), call("grep", pattern="def api"), False),
        (bash("psql -l", "exit code 127: psql: command not found"), bash("sqlite3 a.db"), True),
        (bash("rm a.py", "exit code 1: rm: cannot remove 'a.py': No such file"), bash("make"), True),
        (bash("make", "exit code 2: no rule"), call("grep", pattern="rule"), False),
    ],
)
def test_an_answer_ends_only_guesses_that_were_not_needed(
    failure: Event, success: Event, closed: bool
) -> None:
    found = incidents(*iteration(1, failure), *iteration(2, success), ANSWERED)
    assert bool(found.recovered) is closed
    assert found.recovered_worked_round == closed


def test_a_guess_is_not_ended_by_what_was_found_before_or_by_a_run_that_did_not_answer() -> None:
    guess = read("old/api.md", MISSING.format("old/api.md"))
    looked = call("grep", pattern="def api")
    assert not incidents(*iteration(1, looked), *iteration(2, guess), ANSWERED).recovered
    partial = RunFinished(outcome=Outcome.PARTIAL, answer="so far")
    assert not incidents(*iteration(1, guess), *iteration(2, looked), partial).recovered


def test_a_corrected_guess_is_not_the_current_failure_any_more() -> None:
    guess = read("carts.py", MISSING.format("carts.py"))
    found = incidents(*iteration(1, failed()), *iteration(2, guess), *iteration(3, read("shop/cart.py")))
    assert found.current is not None
    assert found.current.input == MAKE


@given(st.text(max_size=200), st.text(max_size=200), st.text(max_size=200))
def test_any_text_of_commands_and_errors_is_taken(command: str, error: str, other: str) -> None:
    incidents(*iteration(1, bash(command, error or "x")), *iteration(2, bash(other)), ANSWERED)
