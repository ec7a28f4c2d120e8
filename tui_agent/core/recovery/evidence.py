"""Evidence: what the results show of checks (tests, builds, linters), and what an answer claims of tests against it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from tui_agent.core.evolve import evolve
from tui_agent.core.recovery.claims import Kind, claims_tests_pass
from tui_agent.core.recovery.exit_code import code_and_output
from tui_agent.core.recovery.iteration import command_of
from tui_agent.core.recovery.output_signs import quoted
from tui_agent.core.recovery.remarks import Remark, claim
from tui_agent.headline import telling_line
from tui_agent.terminal_text import clipped

if TYPE_CHECKING:
    from tui_agent.core.recovery.command_reading import CommandReading
    from tui_agent.core.recovery.iteration import CallResult
    from tui_agent.core.recovery.output_signs import RanTests

_MOST_COMMANDS = 40
"""Commands that are remembered, the newest."""
_LONGEST_COMMAND = 200

_WHOLE_NUMBER = re.compile(r"(?<![\d.])\d+(?![\d.])")
_REMOVES = re.compile(r"\b(?:rm|mv|unlink|trash|git (?:clean|stash|checkout|restore|reset))\b")
_LINTERS = frozenset({
    "flake8", "ruff", "ruff check", "ruff format", "pycodestyle", "pydocstyle", "pyflakes", "pylint", "bandit", "mypy",
    "dmypy", "pyright", "basedpyright", "pytype", "ty check", "eslint", "tslint", "oxlint", "biome", "xo", "stylelint",
    "prettier", "black", "isort", "yapf", "rubocop", "phpstan", "psalm", "shellcheck", "hadolint", "golangci-lint",
    "staticcheck", "go vet", "vue-tsc", "svelte-check", "clang-tidy", "ktlint", "swiftlint", "rustfmt", "pre-commit",
    "cargo clippy", "cargo fmt", "cargo check", "deno lint", "lint",
})  # fmt: skip
_COMPILERS = frozenset({
    "gcc", "g++", "cc", "c++", "clang", "clang++", "javac", "kotlinc", "scalac", "rustc", "ghc", "tsc", "py_compile",
    "compileall", "swiftc", "sphinx-build", "go build", "cargo build", "zig build", "elm make", "deno check",
})  # fmt: skip
_NO_BUILD = re.compile(r"\s(?:\w*clean|help|install|--version)\b")
_BUILD_TOOLS = frozenset({"make", "gmake", "ninja", "cmake", "meson", "build"})
"""Their build may run a project's tests."""


@dataclass(frozen=True)
class Check:
    """A command that checked something: how it ended, in which step, and what was changed since."""

    label: str
    failed: bool
    line: str
    """What it said, in a line."""
    code: int | None
    step: int
    """0: in an earlier run."""
    edits: int = 0
    """Changes since."""


@dataclass(frozen=True)
class Evidence:
    """Evidence of the results about checks. It outlives a run: the next message may ask for no more than the answer.

    `checks`: the newest of each kind. `changed`: what was changed since tests ran. `other`: something ran since of
    which nothing is known; it may have been the tests. `ran`: the newest commands by their text, each once.
    """

    checks: Mapping[Kind, Check] = field(default_factory=dict)
    changed: str = ""
    other: bool = False
    ran: Mapping[str, Check] = field(default_factory=dict)

    @property
    def tests(self) -> Check | None:
        """The newest test run."""
        return self.checks.get("tests")

    def of_earlier_run(self) -> Evidence:
        """The same, seen from the next run."""
        checks = {kind: evolve(check, step=0) for kind, check in self.checks.items()}
        return evolve(self, checks=checks, ran={}) if self.checks or self.ran else self

    def after_command(
        self, result: CallResult, reading: CommandReading, counts: RanTests | None, step: int
    ) -> Evidence:
        """Take in a command; `counts`: what its output says of tests."""
        state = self._with_command(result, step)
        if counts is not None and not counts.none_ran:
            check = _check(result, reading, step, bool(counts.failed), _in_all(counts))
            return evolve(state, checks={**state.checks, "tests": check}, changed="", other=False)
        if reading.checker and not reading.only_lists and counts is None:
            kind = kind_of(reading.checker)
            if kind is None:
                return evolve(state, other=True)
            if _NO_BUILD.search(reading.label):
                return state
            check = _check(result, reading, step, not result.passed, telling_line(result.outcome))
            other = state.other or reading.runs_other or reading.checker in _BUILD_TOOLS
            return evolve(state, checks={**state.checks, kind: check}, other=other)
        if reading.runs_other or not result.passed:
            return evolve(state, other=True)
        return state.after_change() if reading.edits else state

    def after_change(self, path: str = "") -> Evidence:
        """Take in a change of a file; "" if its name is not known."""
        checks = {kind: evolve(check, edits=check.edits + 1) for kind, check in self.checks.items()}
        return evolve(self, checks=checks, changed=path or self.changed or "a file", other=False)

    def removed(self, name: str) -> bool:
        """Tell if a command of the run has removed or renamed a file of this name."""
        removing = (text for text in self.ran if _REMOVES.search(text))
        words = (word.rpartition("/")[2] for text in removing for word in text.split())
        return any(word == name or ("*" in word and fnmatchcase(name, word)) for word in words)

    def _with_command(self, result: CallResult, step: int) -> Evidence:
        command = " ".join((command_of(result.input) or "")[:_LONGEST_COMMAND].split())
        rest = {known: check for known, check in self.ran.items() if known != command}
        if len(rest) >= _MOST_COMMANDS:
            del rest[next(iter(rest))]
        code = 0 if result.passed else code_and_output(result.outcome)[0]
        return evolve(self, ran={**rest, command: Check(command, not result.passed, "", code, step)})

    def against(self, answer: str) -> Remark | None:
        """Remark on an answer that claims that tests pass though no result shows it; None if it does not."""
        tests = self.tests
        if self.other or not ((tests is not None and tests.failed) or self.changed):
            return None
        words = claims_tests_pass(answer)
        if not words:
            return None
        if tests is None:
            shown = f"no result shows that a test was run, and {self.changed} was changed"
        elif tests.failed:
            shown = f"the last test run failed ({tests.label}: {tests.line})"
            if self.changed:
                shown = f"{shown}, and none followed the change of {self.changed}"
        else:
            shown = f"{self.changed} was changed after the last test run ({tests.label})"
        text = (
            f"Your answer says: “{words}” But {shown}. Run the tests now, then answer by what they show; where "
            "they cannot be run, say so in the answer."
        )
        return claim(f"The answer claims that tests pass, but {shown}", text)


def kind_of(checker: str) -> Kind | None:
    """Name the kind of a program that checks; None if it runs tests, or may."""
    if checker in _LINTERS:
        return "lint"
    return "build" if checker in _COMPILERS | _BUILD_TOOLS else None


def _in_all(counts: RanTests) -> str:
    """Say the figures of all summaries together; the line of a single one stays as it is."""
    if str(counts.failed or counts.passed) in _WHOLE_NUMBER.findall(counts.line):
        return counts.line
    if counts.line.startswith(("ok", "FAIL", "---")):  # go counts packages
        return (
            counts.line
            if counts.passed + counts.failed == 1
            else f"{counts.passed} packages ok, {counts.failed} failed"
        )
    failed = f", {counts.failed} failed" if counts.failed else ""
    return f"{counts.passed} passed{failed}"


def _check(result: CallResult, reading: CommandReading, step: int, failed: bool, line: str) -> Check:
    code = 0 if result.passed else code_and_output(result.outcome)[0]
    # Behind a pipe or `|| true` the code says nothing of the check.
    shown = None if reading.hidden_by else code
    return Check(clipped(reading.label, 60) or "the last command", failed, quoted(line), shown, step)
