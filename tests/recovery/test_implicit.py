"""What outputs, commands and answers say of silent failures; never more than a guide, in bounded time for any text."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.core.events import Failure, FailureKind, Level, ReplyFinished
from tui_agent.core.recovery.claims import (
    claims_pass,
    files_claimed,
    files_made,
    files_named,
    speaks_of,
)
from tui_agent.core.recovery.command_reading import read
from tui_agent.core.recovery.detector import Step
from tui_agent.core.recovery.engine import RecoveryState
from tui_agent.core.recovery.implicit import ImplicitFailures, takes_for_success
from tui_agent.core.recovery.iteration import CallResult, CallStatus, close
from tui_agent.core.recovery.output_signs import error_in, failing_line, ran_tests
from tui_agent.core.recovery.policy import PRESETS, RecoveryPolicy

COMBINED = PRESETS["combined"]


@pytest.mark.parametrize(
    ("output", "passed", "failed"),
    [
        ("==== 2 failed, 69 passed, 1 xfailed in 3.88s ====", 70, 2),
        ("3 passed in 0.01s", 3, 0),
        ("1 skipped in 0.02s", 0, 0),
        ("collected 0 items\n\n====== no tests ran in 0.00s ======", 0, 0),
        ("Ran 5 tests in 0.1s\n\nFAILED (failures=1, errors=1)", 3, 2),
        ("Ran 5 tests in 0.1s\n\nOK (skipped=5)", 0, 0),
        ("Ran 5 tests in 0.1s\n\nOK (expected failures=2)", 5, 0),
        ("======== tests finished: 60 passed, 1 failed, 2 exceptions, in 3.4 seconds ========", 60, 3),
        (
            "test result: ok. 0 passed; 0 failed; 0 ignored\ntest result: FAILED. 3 passed; 1 failed; 0 ignored",
            3,
            1,
        ),
        ("Tests:       1 failed, 5 passed, 6 total", 5, 1),
        (" Test Files  1 passed (1)\n      Tests  5 passed (5)", 5, 0),
        ("  5 passing (3ms)\n  1 failing", 5, 1),
        ("  5 passing (3ms)\n  0 failing", 5, 0),
        ("ok  \ta/b\t0.1s\nFAIL\ta/c\t0.2s\nFAIL", 1, 1),
        ("?   \ta/b\t[no test files]", 0, 0),
        ("[ERROR] Tests run: 5, Failures: 1, Errors: 0, Skipped: 0", 4, 1),
        ("100% tests passed, 0 tests failed out of 5", 5, 0),
        ("Failed!  - Failed:     1, Passed:     5, Skipped:     0, Total:     6", 5, 1),
        ("OK (5 tests, 7 assertions)", 5, 0),
        ("10 examples, 2 failures", 8, 2),
        ("43 tests, 0 failures", 43, 0),
        ("ℹ tests 5\nℹ pass 4\nℹ fail 1", 4, 1),
        ("\x1b[32m3 passed\x1b[0m in 0.01s", 3, 0),
    ],
)
def test_the_summary_of_a_test_runner_is_read(output: str, passed: int, failed: int) -> None:
    counts = ran_tests(f"something before\n{output}\n")
    assert counts is not None
    assert (counts.passed, counts.failed) == (passed, failed)


@pytest.mark.parametrize("output", ["", "42", "We passed 3 exams", "def test_a(): pass", "total 12"])
def test_other_text_is_no_summary(output: str) -> None:
    assert ran_tests(output) is None


@pytest.mark.parametrize(
    ("output", "line"),
    [
        ("Traceback (most recent call last):\n  File 'a'\n    f()\nKeyError: 'x'\nbye", "KeyError: 'x'"),
        ("thread 'main' panicked at src/main.rs:2:5:", "thread 'main' panicked at src/main.rs:2:5:"),
        ("cc a.c\nmake: *** [Makefile:2: a] Error 1", "make: *** [Makefile:2: a] Error 1"),
        ("ValueErrors are raised where Traceback is printed", ""),
    ],
)
def test_the_line_that_says_what_went_wrong(output: str, line: str) -> None:
    assert error_in(output) == line


def test_a_failing_line_is_the_tests_own_where_there_is_one() -> None:
    output = "E   assert 1 == 2\nFAILED tests/test_a.py::test_a - assert 1 == 2\n1 failed in 0.1s"
    assert failing_line(output) == "tests/test_a.py::test_a - assert 1 == 2"


@pytest.mark.parametrize(
    ("command", "checker", "hidden_by"),
    [
        ("pytest -q", "pytest", ""),
        ("cd x && python3 -m pytest a.py 2>&1 | head -50", "pytest", "| head"),
        ("uv run pytest -q | tail -20 && git status", "pytest", "| tail"),
        ("make || true", "make", "|| true"),
        ("pytest; echo done", "pytest", "; echo"),
        ("npm test &", "npm", "&"),
        ("pytest -q; echo $?", "pytest", ""),
        ("set -o pipefail; pytest | tail", "pytest", ""),
        ("pytest a && pytest b", "pytest", ""),
        ("pytest || exit 1", "pytest", ""),
        ("cat log | grep FAILED", "", ""),
        ("if x; then pytest | tail; fi", "", ""),
        ("echo 'unclosed", "", ""),
    ],
)
def test_what_hides_the_exit_code_of_a_program_that_checks(
    command: str, checker: str, hidden_by: str
) -> None:
    reading = read(command)
    assert (reading.checker, reading.hidden_by) == (checker, hidden_by)


@pytest.mark.parametrize(
    "answer",
    [
        "Done. All tests pass.",
        "I fixed the rounding.\n\n- All 12 tests pass now\n",
        "The full test suite is green.",
        "I ran the test suite and it passes.",
        "`make check`: 12/12 tests passed.",
        "The tests are now passing with no failures.",
    ],
)
def test_an_answer_that_claims_that_tests_pass(answer: str) -> None:
    assert claims_pass(answer)


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "Done.",
        "I did not run the tests. All tests passed before.",
        "All tests should pass now.",
        "All tests pass except test_tax, which fails as before.",
        "Do all tests pass?",
        "To see that all tests pass, run make check.",
        "The new test passed, two others still fail.",
        "All tests pass but one failing test is unrelated.",
        "I could not run the suite here, so whether all tests pass is open.",
        "```\nAll tests pass.\n```",
        "The tests are in tests/; passing a name runs one.",
        "All SQLite tests pass. The failures are only for Postgres tests that require Docker.",
        "I exclude two packages to get the remaining tests passing.",
        "I updated the golden files so the full test suite can pass.",
        "Most tests passed; only `lint::fix` failed.",
        "Option 1 is the least invasive and keeps the existing tests passing.",
        "The workspace tests mostly pass, but `try_exists` consistently fails.",
        "Only the slow test timed out; rerun the test suite with more time to complete successfully.",
    ],
)
def test_an_answer_that_claims_no_such_thing(answer: str) -> None:
    assert claims_pass(answer) == ""


@pytest.mark.parametrize(
    ("said", "success"),
    [
        ("It works now.", True),
        ("The error is still there, although one case is fixed.", False),
        ("The script confirms the issue.", False),
        ("", False),
    ],
)
def test_a_reply_takes_a_result_for_success(said: str, success: bool) -> None:
    assert takes_for_success(said) is success


# --- properties ----------------------------------------------------------------------------------------------

TEXTS = st.one_of(
    st.text(max_size=200),
    st.lists(
        st.sampled_from([
            "Traceback (most recent call last):", "  File 'a', line 3", "KeyError: 'x'", "1 failed, 2 passed in 0.1s",
            "Ran 0 tests in 0.0s", "OK", "no tests ran in 0.1s", "grep: a: No such file", "0", "FAIL\ta\t0.1s",
        ]),
        max_size=8,
    ).map("\n".join),
)  # fmt: skip
COMMANDS = st.one_of(
    st.text(max_size=80),
    st.lists(
        st.sampled_from(["pytest", "|", "tail", "||", "true", ";", "echo", "&", "python a.py", ">", "$?", "("]),
        max_size=8,
    ).map(" ".join),
)  # fmt: skip
INPUTS = st.one_of(
    st.fixed_dictionaries({"command": COMMANDS}),
    st.fixed_dictionaries({"path": st.sampled_from(["a.py", "b.md", "c"]), "old": TEXTS, "new": TEXTS}),
    st.dictionaries(
        st.sampled_from(["path", "cmd", "edits", "old"]), st.one_of(st.none(), st.integers(), TEXTS)
    ),
)


@pytest.mark.parametrize(
    ("sentence", "claimed"),
    [
        ("Your message mentions a.py.", ()),
        ("The error of a.py says that b.py fails.", ("a.py",)),
        ("According to **b.py**, nothing is left.", ("b.py",)),
        ("a.py contains b.py.", ("a.py",)),
        ("It contains a list.", ()),
        ("a.py is a small command-line tool.", ("a.py",)),
        ("a.py is a good name.", ()),
        ("```\na.py defines a list.\n```", ()),
    ],
)
def test_a_sentence_tells_of_the_file_that_is_its_subject_or_its_source(
    sentence: str, claimed: tuple[str, ...]
) -> None:
    assert files_claimed(sentence, ("a.py", "b.py"), only=True) == claimed


@st.composite
def results(draw: st.DrawFn) -> CallResult:
    status = draw(st.sampled_from(list(CallStatus)))
    arguments, text = draw(INPUTS), draw(TEXTS)
    failure = None
    if status is CallStatus.FAILED:
        failure = Failure(kind=FailureKind.TOOL_EXECUTION, message=text, tool="bash", input={}, iteration=1)
    tool = draw(st.sampled_from(["bash", "edit_file", "write_file", "read_file", "mcp__x"]))
    return CallResult(status, tool, arguments, "k", 0, text, failure, draw(st.booleans()), 1)


STEPS = st.lists(st.tuples(st.lists(results(), max_size=3), TEXTS), max_size=12)


@given(STEPS, TEXTS)
def test_it_never_says_more_than_guide_never_raises_and_says_nothing_twice(
    steps: list[tuple[list[CallResult], str]], answer: str
) -> None:
    state, said = ImplicitFailures(), []
    for number, (made, text) in enumerate(steps, 1):
        state = state.apply(step_of(tuple(made), text, number))
        assert state.verdict(RecoveryState().standing()).level in {Level.CONTINUE, Level.GUIDE}
        said += [remark.cause for remark in state.remarks]
    assert len(said) == len(set(said))
    state.unproved(answer)


def step_of(results: tuple[CallResult, ...], said: str, number: int = 1) -> Step[RecoveryPolicy]:
    return Step(close(number, results), COMBINED, ReplyFinished(text=said))


def _result(command: str, output: str) -> CallResult:
    return CallResult(CallStatus.SUCCEEDED, "bash", {"command": command}, "k", 0, output, None, False, 1)


def _applied(command: str, output: str) -> None:
    ImplicitFailures().apply(step_of((_result(command, output),), output))


@pytest.mark.parametrize(
    "hostile",
    [
        lambda size: _applied("pytest | tail", "1 passed, " * (size // 10)),
        lambda size: _applied("python a.py", "Traceback (most recent call last):\n" * (size // 35)),
        lambda size: _applied("python a.py", "a:" * (size // 2)),
        lambda size: _applied("python a.py", "=" * size),
        lambda size: _applied("pytest " + "| tail " * (size // 7), "1 failed in 0.1s"),
        lambda size: _applied("echo " + "> a " * (size // 4), ""),
        lambda size: _applied("cat <<A\n" * (size // 8), ""),
        lambda size: claims_pass("all the tests " * (size // 14)),
        lambda size: claims_pass("tests now all still are " * (size // 24)),
        lambda size: claims_pass("not a " * (size // 6)),
        lambda size: files_claimed("a/" * (size // 2), files_named("a/" * (size // 2))),
        lambda size: files_claimed("a/b.c says " * (size // 11), files_named("a/b.c " * (size // 6))),
        lambda size: files_claimed("is a " + "a " * (size // 2), files_named("a.c")),
        lambda size: files_claimed("it says \n" * (size // 9), files_named("a.c"), only=True),
        lambda size: files_made("I created a/b.py. " * (size // 18)),
        lambda size: files_made("created " * (size // 8) + "a.py"),
        lambda size: speaks_of("tests " * (size // 6), "tests", "pytest"),
        lambda size: speaks_of("`a`" * (size // 3), "tests", "pytest"),
        lambda size: takes_for_success("works " * (size // 6)),
    ],
)
def test_a_hostile_text_of_any_length_takes_no_time(hostile: Callable[[int], object]) -> None:
    hostile(1_000)
    before = time.process_time()
    hostile(400_000)
    assert time.process_time() - before < 0.5
