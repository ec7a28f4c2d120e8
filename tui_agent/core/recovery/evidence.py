"""Evidence: what the results show of checks (tests, builds, linters), and what an answer claims of them against it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from tui_agent.core.evolve import evolve
from tui_agent.core.recovery.claims import Kind, claims_pass
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
_NAMED_ALONE = (_LINTERS | _COMPILERS | {"clippy"}) - {"lint"}
"""Programs that an answer may name."""
_TOLD_BY: Mapping[Kind, tuple[Kind, ...]] = {"build": ("build", "tests", "lint"), "lint": ("lint", "build")}
"""Checks that tell of a claim: tests of what is compiled build it first, and compilers check types."""
_CALLED: Mapping[Kind, str] = {"tests": "test run", "build": "build", "lint": "check of the code"}


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
    which nothing is known; it may have been the tests. `edited`: what was changed last; `unknown`: what `other` is,
    since that change. `ran`: the newest commands by their text, each once.
    """

    checks: Mapping[Kind, Check] = field(default_factory=dict)
    changed: str = ""
    other: bool = False
    edited: str = ""
    unknown: bool = False
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
                return state.after_unknown()
            if _NO_BUILD.search(reading.label):
                return state
            check = _check(result, reading, step, not result.passed, telling_line(result.outcome))
            state = evolve(state, checks={**state.checks, kind: check})
            if reading.runs_other:
                return state.after_unknown()
            return evolve(state, other=True) if reading.checker in _BUILD_TOOLS else state
        if reading.runs_other or not result.passed:
            return state.after_unknown()
        return state.after_change() if reading.edits else state

    def after_change(self, path: str = "") -> Evidence:
        """Take in a change of a file; "" if its name is not known."""
        checks = {kind: evolve(check, edits=check.edits + 1) for kind, check in self.checks.items()}
        changed = path or self.changed or "a file"
        return evolve(self, checks=checks, changed=changed, other=False, edited=changed, unknown=False)

    def after_unknown(self) -> Evidence:
        """Take in that something ran of which nothing is known."""
        return self if self.other and self.unknown else evolve(self, other=True, unknown=True)

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
        """Remark on an answer that claims that a check passes though no result shows it; None if it does not."""
        for kind in _CALLED:
            words = claims_pass(answer, kind)
            shown = self._against_tests() if kind == "tests" else self._against(kind, words)
            if words and shown:
                text = (
                    f"Your answer says: “{words}” But {shown}. {_RUN_NOW[kind]} now, then answer by what it shows; "
                    "where that cannot be done, say so in the answer."
                )
                claimed = "tests pass" if kind == "tests" else f"the {_CALLED[kind]} passes"
                return claim(f"The answer claims that {claimed}, but {shown}", text)
        return None

    def _against_tests(self) -> str:
        """Say what the results show against a claim that tests pass; "" if nothing does."""
        tests = self.tests
        if self.other or not ((tests is not None and tests.failed) or self.changed):
            return ""
        if tests is None:
            return f"no result shows that a test was run, and {self.changed} was changed"
        if not tests.failed:
            return f"{self.changed} was changed after the last test run ({tests.label})"
        followed = f", and none followed the change of {self.changed}" if self.changed else ""
        return f"the last test run failed ({tests.label}: {tests.line}){followed}"

    def _against(self, kind: Kind, words: str) -> str:
        """Say what the results show against the claim in `words`, of a build or a linter; "" if nothing does."""
        check, called = self.checks.get(kind), f"a {_CALLED[kind]}"
        named = _NAMED_ALONE & set(_WORD.findall(words.lower()))
        if named and (check is None or not named & set(_WORD.findall(check.label))):
            if any(named & set(_WORD.findall(text)) for text in self.ran):
                return ""
            check, called = None, f"a run of {' or '.join(sorted(named))}"
        since = [one for told in _TOLD_BY[kind] if (one := self.checks.get(told)) and not one.edits]
        if self.unknown or any(one is not check or not one.failed for one in since):
            return ""
        if check is None:
            return f"no result shows {called}, and {self.edited} was changed" if self.edited else ""
        if not check.failed:
            return f"{self.edited} was changed after the last {_CALLED[kind]} ({check.label})"
        followed = f", and none followed the change of {self.edited}" if check.edits else ""
        return f"the last {_CALLED[kind]} failed ({check.label}: {check.line}){followed}"


_WORD = re.compile(r"[\w+-]+")
_RUN_NOW: Mapping[Kind, str] = {"tests": "Run the tests", "build": "Build it", "lint": "Run the check"}


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
