"""Signs of tests and errors in the output of a program, whatever its exit code: counts of tests, and an
error's line.

Pure, and bounded in time for any text: the beginning and the end are looked at, line by line. Whether the text is a
program's own or the content of a file that it printed is the caller's to know.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from tui_agent.terminal_text import clipped

_HEAD, _TAIL = 4_000, 12_000
"""Characters of an output that are looked at, at each end: summaries stand last."""
_LONGEST_LINE = 300
"""Characters of a line that are looked at."""
_LONGEST_QUOTE = 160
"""Characters of a line that is quoted."""

_COLOUR = re.compile(r"\x1b\[[0-9;]{0,20}[A-Za-z]")


@dataclass(frozen=True)
class RanTests:
    """The figures of test runners' summaries, added up. `line` is the one that says most, shortened."""

    passed: int
    failed: int
    line: str

    @property
    def none_ran(self) -> bool:
        """It ended, and ran no test."""
        return not self.passed and not self.failed

    def with_more(self, other: RanTests) -> RanTests:
        """Both together."""
        line = other.line if other.failed or not self.failed else self.line
        return RanTests(self.passed + other.passed, self.failed + other.failed, line)


def quoted(line: str) -> str:
    """A line of an output, as short as a remark can hold it."""
    return clipped(" ".join(line.strip(" =\t\r").split()), _LONGEST_QUOTE)


@lru_cache(maxsize=4)
def _seen(output: str) -> str:
    """What is looked at of an output: each line of it stands behind a line break."""
    if len(output) > _HEAD + _TAIL:
        output = f"{output[:_HEAD]}\n{output[-_TAIL:]}"
    return "\n" + (_COLOUR.sub("", output) if "\x1b[" in output else output)


def _has(text: str, told_by: Sequence[str]) -> bool:
    return any(one in text for one in told_by)


def _lines(text: str) -> list[str]:
    return [line[:_LONGEST_LINE].rstrip() for line in text.split("\n")]


# --- tests ---------------------------------------------------------------------------------------------------

_SUMMARY = re.compile(
    r"""(?x:
      =*\ *(?:\d+\ \w+,\ )*\d+\ (?:passed|failed|errors?|skipped|deselected|xfailed|xpassed)\b.*
          \ in\ [\d.:]+\ ?s(?:econds)?\b.*                                         # pytest
    | =*\ *tests\ finished:\ .*\bpassed\b.*                                       # sympy
    | test\ result:\ \w+\.\ \d+\ passed;\ \d+\ failed;.*                          # cargo
    | \s*Tests:?\s+\d+\ (?:failed|passed|skipped|todo|total)\b.*                  # jest, vitest
    | \s*\d+\ (?:passing|failing|passed|failed|pass|fail)(?:\ \([\d.]+\ ?\w+\))?  # mocha, playwright, bun
    | (?:ok|FAILED)\ \|\ \d+\ passed\b.*\|\ \d+\ failed\b.*                       # deno
    | \d+\ (?:examples?|runs|tests),\ (?:\d+\ assertions,\ )?\d+\ failures?\b.*   # rspec, minitest, exunit
    | (?:\[\w+\]\ )?Tests\ run:\ *\d+,\ Failures:\ \d+.*                          # surefire, junit
    | Tests:\ \d+,\ Assertions:\ \d+.*                                            # phpunit
    | OK\ \(\d+\ tests?,\ \d+\ assertions?\)                                      # phpunit
    | (?:Passed|Failed)!\ +-\ Failed:\ +\d+,\ Passed:\ +\d+.*                     # dotnet
    | \d+%\ tests\ passed,\ \d+\ tests\ failed\ out\ of\ \d+                      # ctest
    )"""
)
_NONE_FAILED = re.compile(r"\s*0 fail(?:ing|ed)?")
"""A line that does not say how many passed: its like stands above or below, or in another form."""
_COUNT = re.compile(
    r"(?P<n>\d{1,7}) (?P<what>passed|passing|pass|failed|failing|fail|failures?|errors?|exceptions|xfailed|xpassed"
    r"|examples?|runs|tests?|total)\b"
    r"|\b(?P<named>Tests run|Tests(?=: \d+,)|Failures|Failed|Errors|Passed): *(?P<m>\d{1,7})"
)
_PASSED = frozenset({"passed", "passing", "pass", "xfailed", "xpassed"})
_FAILED = frozenset({"failed", "failing", "fail", "failure", "failures", "error", "errors", "exceptions"})
_NONE_RAN = re.compile(
    r"=* ?(?:no tests ran\b.*|no tests? (?:were )?(?:found|executed|to run|collected)\b.*"
    r"|no tests were found!*|no test (?:files?|suites?) found.*)",
    re.IGNORECASE,
)
_RAN = re.compile(r"Ran (\d{1,7}) tests? in [\d.]+s")
_UNITTEST_END = re.compile(r"(OK|FAILED)(?: \((.{0,120})\))?")
_FAILED_OF = re.compile(r"(?<!expected )\b(?:failures|errors|unexpected successes)=(\d{1,7})")
_SKIPPED_OF = re.compile(r"\bskipped=(\d{1,7})")
_GO = re.compile(
    r"(?:(ok|FAIL)\s+\S+\s+(?:[\d.]+s|\(cached\)|\[[a-z ]+ failed\]).*|(--- FAIL: ).*|\?\s+\S+\s+\[no test files\])"
)
_TAP = re.compile(r"(?:#|ℹ) (pass|fail) (\d{1,7})")
_BEGINS = re.compile(
    r"""
    [\s=]*(?:
        \d+(?:%\ tests|\ (?:\w+,\ |pass|fail|error|skipped|deselected|xfailed|xpassed|example|runs|tests))
      | test\ result:|tests\ finished:|Tests(?:\ run:|:?\s+\d)|(?i:no\ tests?\ )
      | ok\s|OK|FAIL|---\ FAIL|Ran\ |(?:Passed|Failed)!|\?\s|[#ℹ]\ (?:pass|fail)|\[\w+\]\ Tests
    )
    """,
    re.VERBOSE,
)
"""How a line of a summary begins: most lines are done with by this alone."""


def ran_tests(output: str) -> RanTests | None:
    """The summaries of test runners in an output, added up; None if there is none."""
    found: RanTests | None = None
    ran: int | None = None
    tap: dict[str, int] = {}
    for whole in _seen(output).split("\n"):
        if not _BEGINS.match(whole):
            continue
        line = whole[:_LONGEST_LINE].rstrip()
        counts: RanTests | None = None
        if match := _RAN.fullmatch(line):
            ran = int(match[1])
        elif ran is not None and (match := _UNITTEST_END.fullmatch(line)):
            details = match[2] or ""
            failed = max(sum(map(int, _FAILED_OF.findall(details))), int(match[1] == "FAILED"))
            left_out = sum(map(int, _SKIPPED_OF.findall(details)))
            words = f"Ran {ran} tests: {line}" if ran != 1 else f"Ran 1 test: {line}"
            counts, ran = RanTests(max(0, ran - failed - left_out), failed, words), None
        elif match := _TAP.fullmatch(line):
            tap[match[1]] = int(match[2])
        elif match := _GO.fullmatch(line):
            bad = match[1] == "FAIL" or bool(match[2])
            passed = match[1] == "ok" and "no tests to run" not in line
            counts = RanTests(int(passed), int(bad), quoted(line))
        elif _NONE_RAN.fullmatch(line):
            counts = RanTests(0, 0, quoted(line))
        elif _SUMMARY.fullmatch(line) and not _NONE_FAILED.fullmatch(line):
            counts = _counted(line)
        if counts is not None:
            found = counts if found is None else found.with_more(counts)
    if found is None and ran is not None:
        return RanTests(ran, 0, f"Ran {ran} tests")
    if found is None and tap.keys() == {"pass", "fail"}:
        return RanTests(tap["pass"], tap["fail"], f"{tap['pass']} passed, {tap['fail']} failed")
    return found


def _counted(line: str) -> RanTests:
    passed = failed = total = 0
    for match in _COUNT.finditer(line):
        what = (match["what"] or match["named"]).lower()
        number = int(match["n"] or match["m"])
        if what in _PASSED:
            passed += number
        elif what in _FAILED:
            failed += number
        else:
            total = max(total, number)
    if "% tests passed" in line:
        total = int(re.findall(r"\d{1,7}", line)[-1])
    return RanTests(passed or max(0, total - failed), failed, quoted(line))


# --- errors --------------------------------------------------------------------------------------------------

_TRACEBACK = "Traceback (most recent call last):"
_RAISED = re.compile(r"(?:\w+\.)*\w*(?:Error|Exception|Exit|Interrupt|Warning|Failure|Fault)\b(?:: .*)?")
_PANIC = re.compile(
    r"thread '.*' panicked at .*|panic: .*|Exception in thread \".*|fatal error: .*|Segmentation fault.*"
    r"|Uncaught \w*Error: .*|UnhandledPromiseRejection.*"
)
_BUILD = re.compile(
    r"(?:\[ERROR\] )?BUILD FAIL(?:ED|URE)\b.*|make(?:\[\d+\])?: \*\*\* .*|FAILED: .*|ERROR: .*failed.*"
    r"|npm (?:ERR!|error) .*|error: could not compile .*|Found \d+ errors? in \d+ files?.*|error\[?\w*\]?: .*"
)


_OF_ERRORS = (
    _TRACEBACK, "\nerror", "\nERROR: ", "\nthread '", "\npanic: ", "\nException in thread ", "\nfatal error: ",
    "\nSegmentation fault", "\nUncaught ", "\nUnhandledPromiseRejection", "\nBUILD FAIL", "\n[ERROR] BUILD FAIL",
    "\nmake: ***", "\nmake[", "\nFAILED: ", "\nnpm ERR! ", "\nnpm error ", "\nFound ",
)  # fmt: skip
"""How each of these lines, or the head of its traceback, begins: an output without them is not gone through."""


def error_in(output: str) -> str:
    """The line of a traceback, panic or failed build in an output that names the error; "" if there is none.

    The last one counts: what comes after an error is often its consequence.
    """
    found, in_traceback = "", False
    text = _seen(output)
    for line in _lines(text) if _has(text, _OF_ERRORS) else ():
        if line.endswith(_TRACEBACK):
            in_traceback = True
        elif in_traceback and line and not line.startswith((" ", "\t")):
            in_traceback = False
            found = line
        elif _PANIC.fullmatch(line) or _BUILD.fullmatch(line):
            found = line
    return quoted(found)


_SAID_BY_TESTS = re.compile(
    r"E {3}\s*(?P<why>\S.*)|FAILED (?P<test>\S+.*)|(?P<place>[^\s:(][^:(]{0,200}:\d+(?::\d+)?: (?:fatal )?error\b.*)"
)


_OF_FAILURES = ("\nE   ", "\nFAILED ", ": error", ": fatal error")


_SAYS_NOTHING = re.compile(
    r"""
      (?:\[ERROR\]\ )?BUILD\ FAIL | make(?:\[\d+\])?:\ \*\*\* | FAILURE:\ | panic:\ non-zero\ exit\ code
    | error:\ (?:test\ failed,\ to\ rerun | script\ " | could\ not\ compile | \d+\ targets?\ failed)
    | npm\ (?:ERR!|error)\ (?:code|errno|lifecycle|path|command|test\ failed|a\ complete)
    | .*\b(?:exit(?:ed)?(?:\ with)?\ (?:code|status)|returned)\ -?\d+\W*$
    """,
    re.IGNORECASE | re.VERBOSE,
)


def names_failure(line: str) -> bool:
    """Tell if a failing line says which failure it is; that of a build that broke stands for any."""
    return not _SAYS_NOTHING.match(line)


def failing_line(output: str) -> str:
    """The line by which a failure can be known again when it comes back; "" if none says so much."""
    why = test = ""
    text = _seen(output)
    for line in _lines(text) if _has(text, _OF_FAILURES) else ():
        match = _SAID_BY_TESTS.fullmatch(line)
        if match is not None:
            why, test = match["why"] or match["place"] or why, match["test"] or test
    return quoted(test or why) or error_in(output)
