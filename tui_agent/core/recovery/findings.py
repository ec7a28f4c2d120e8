"""Programs that say by an exit code what they found: test runners, linters, type checkers, formatters, compilers.

The codes are those of each program's own documentation. Their crashes stay failures: usage and collection errors, no
tests, a runner that cannot be started. Pure, and bounded in time for any text; asked only about calls that failed.

Facts that are easily got wrong: pytest 1 is failed tests, 2 to 5 are not. pylint's code is a bit mask (2 error, 4
warning, 8 refactor, 16 convention); its bits 1 (fatal) and 32 (usage) are no findings. `go vet` says 1, and 2 for a
wrong invocation. cargo says 101, nextest 100 for tests and 101 for the build. stylelint and psalm say 2, and 1 when
they break. tsc says 1 or 2 by whether it wrote its output. eslint, ruff, mypy, rubocop and prettier say 1, and 2 when
they break.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from tui_agent.core.recovery.exit_code import (
    code_and_output,
    complains,
    is_loud,
    program_words,
    read_command,
)
from tui_agent.shell_programs import SHELLS, base_name, interprets, run_by_xargs, unwrapped, working

Codes = tuple[int, ...]

LARGEST_CODE = 125
"""126 and 127 are the shell's own, and beyond them stand signals: no program finds anything by them."""

_OF_XARGS = 123
"""`xargs` says so if a command that it ran ended with 1 to 125."""

_ANY_CODE: Codes = tuple(range(1, LARGEST_CODE + 1))
_PYLINT: Codes = tuple(range(2, 32, 2))


def _all(names: str, *codes: int) -> dict[str, Codes]:
    return dict.fromkeys(names.split(", "), codes)


PROGRAMS: dict[str, Codes] = {
    # Test runners
    **_all("pytest, py.test, unittest, doctest, nose2, nosetests, nose, behave, robot, trial, stestr", 1),
    **_all("jest, vitest, ava, tap, karma, playwright test, node --test, bun test, deno test", 1),
    **_all("go test, bats, rspec, minitest, busted, forge test, dart test, flutter test", 1),
    **_all("cargo test, cargo bench", 101),
    "cargo nextest": (100, 101),
    "mocha": _ANY_CODE,
    "ctest": (8,),
    "prove": _ANY_CODE,
    "phpunit": (1, 2),
    "pest": (1, 2),
    "mix test": (1, 2),
    "bazel test": (1, 3),
    # Linters and type checkers
    **_all("flake8, ruff, ruff check, pycodestyle, pydocstyle, pyflakes, bandit, yamllint, codespell", 1),
    **_all("mypy, dmypy, pyright, basedpyright, pyre, pytype, ty check, pip check, pre-commit, refurb", 1),
    **_all("eslint, tslint, oxlint, biome, standard, xo, svelte-check, markdownlint, html-validate", 1),
    **_all("shellcheck, hadolint, actionlint, golangci-lint, staticcheck, revive, go vet, clang-tidy", 1),
    **_all("rubocop, phpstan, ktlint, luacheck, sqlfluff, dart analyze, flutter analyze, deno lint", 1),
    **_all("stylelint, psalm, ansible-lint, swiftlint, tflint", 2),
    "pylint": _PYLINT,
    "vulture": (3,),
    "phpcs": (1, 2, 3),
    "cargo clippy": (101,),
    # Formatters in check mode
    **_all("black, isort, prettier, rustfmt, ruff format, cargo fmt, yapf, dart format, mix format", 1),
    "terraform fmt": (3,),
    "git diff": (2,),
    # Compilers and builds of documents
    **_all(
        "gcc, g++, cc, c++, clang, clang++, javac, kotlinc, scalac, rustc, ghc, py_compile, compileall", 1
    ),
    **_all("json.tool, node, ruby", 1),
    **_all(", ".join(SHELLS), 1, 2),
    **_all("go build, deno check, zig build, swiftc, valac, ocamlc, elm make", 1),
    **_all("cargo build, cargo check, cargo doc", 101),
    **_all("tsc, vue-tsc", 1, 2),
    # Checkers of links
    **_all("linkchecker, markdown-link-check", 1),
    "lychee": (2,),
    **_all("sphinx-build, sphinx", 1),
}
"""By program, or by program and subcommand: the exit codes that mean findings."""

_ONLY_WITH: dict[str, tuple[str, ...]] = {
    "black": ("--check",),
    "isort": ("--check", "--check-only", "-c"),
    "prettier": ("--check", "-c", "--list-different", "-l"),
    "rustfmt": ("--check",),
    "ruff format": ("--check", "--diff"),
    "cargo fmt": ("--check",),
    "yapf": ("-d", "--diff", "-q", "--quiet"),
    "dart format": ("--set-exit-if-changed",),
    "mix format": ("--check-formatted",),
    "terraform fmt": ("-check", "--check"),
    "git diff": ("--check",),
    **dict.fromkeys(SHELLS, ("-n",)),
    "node": ("--check", "-c"),
    "ruby": ("-c",),
}
"""Programs that report only with one of these options."""

_LAUNCHERS = frozenset({
    "make", "gmake", "ninja", "cmake", "meson", "bazel", "npm", "pnpm", "yarn", "bun", "deno", "tox", "nox", "just",
    "rake", "task", "inv", "invoke", "mvn", "mvnw", "gradle", "gradlew", "ant", "sbt", "lein", "dotnet", "swift",
    "xcodebuild", "mix", "composer", "hatch", "pdm", "poe", "cargo", "go", "manage", "django-admin", "runtests",
    "runtest", "run_tests", "run-tests", "run_test", "test", "tests", "check", "lint", "build", "ci",
})  # fmt: skip
"""Programs and scripts of a project that run others: their code means findings if the output reports some."""

_REPORT = re.compile(
    r"""
      ^(?:
          =+\ [^\n]{0,200}?\b\d+\ (?:failed|errors?)\b | \d+\ failed\b                     # pytest
        | FAILED\ \((?:failures|errors|unexpected) | tests\ finished:\ [^\n]{0,200}(?:failed|exceptions)
        | \s*(?:Tests:?\s[^\n]{0,200}?\b\d+\ failed\b | \d+\ failing\s*$)                  # jest, vitest, mocha
        | [#ℹ]\ fail\ [1-9] | not\ ok\ \d                                                 # node, TAP
        | ---\ FAIL:\  | FAIL\t | \S+\.go:\d+:\d+:\                                       # go
        | test\ result:\ FAILED | error:\ could\ not\ compile                             # cargo
        | FAILURES!$ | ERRORS!$                                                            # phpunit
        | Failed!\  | Passed!\ +-\ Failed:\  | \s*failed:\ [1-9]\d*$ | \s*[1-9]\d*\ Error\(s\)$    # dotnet
        | [^\s:(][^\n:(]{0,200}(?::\d+(?::\d+)?|\(\d+,\d+\)):\ (?:fatal\ )?(?:error|warning)\b # compilers
        | [^\s:]{1,200}:\d+:\d+:?\ [A-Z]+\d+\  | Found\ \d+\ errors?                      # linters
        | \([^\n()]{1,200}:\ +line\ +\d+\)\ +broken\b                                      # links of documents
      )
    | T(?:ests\ run:\ [^\n]{0,200}?(?:Failures|Errors):\ [1-9] | est\ Run\ (?:Failed|Successful\.)) # maven, dotnet
    | COMPILATION\ ERROR | There\ were\ failing\ tests | Compilation\ failed;\ see       # maven, gradle
    | \d(?<!\w\d)\d*\ (?:examples?|runs),\ [^\n]{0,200}?\b[1-9]\d*\ (?:failures?|errors)\b  # rspec, minitest
    | tests(?<!\wtests)\ failed\ out\ of\ \d | \(VSTest\ target\(s\)\)\ --\ FAILED       # ctest, dotnet
    | ✖\ \d+\ problem                                                                   # eslint
    """,
    re.VERBOSE | re.MULTILINE,
)
"""Lines by which test runners, linters and compilers say what they found."""

_CRASHED = re.compile(
    r"""
      ^(?:
          (?:\S*/)?python[\d.]*:\ (?:No\ module\ named|can't\ open\ file|Error\ while\ finding)
        | (?:usage:|Usage:|INTERNALERROR|internal\ error)
        | (?:No\ tests?\ (?:found|ran|were)|No\ test\ files\ found|Ran\ 0\ tests|no\ tests\ (?:ran|to\ run))
        | npm\ (?:ERR!|error)\ (?:Missing\ script|could\ not\ determine|code\ E)
        | error:\ (?:could\ not\ find\ .Cargo|no\ such\ (?:sub)?command|failed\ to\ |unexpected\ argument
            |file\ not\ found|invalid\ flag|no\ source\ files)
        | go:\ (?!downloading|finding|extracting|found) | no\ required\ module
        | \S*(?:gcc|cc|g\+\+|c\+\+|clang\S*)(?:-\d+)?:\ (?:fatal\ )?error:
        | \S*\bld(?:\.\w+)?:\ cannot\ find\b
        | \S*sh:\ (?:\d+:\ )?(?:cannot|can't)\ open | \S*sh:\ \S+:\ No\ such\ file
        | error\ TS(?:5|6|18)\d{3}: | make\S*:\ \*\*\*\ No\ (?:rule|targets)
      )
    | Failed\ to\ import\ test\ module | \[setup\ failed\]
    """,
    re.VERBOSE | re.MULTILINE,
)
"""Lines by which they say that they could not do their work."""

_TRACEBACK = "Traceback (most recent call last)"
_FRAME = re.compile(r'^\s*File "([^"\n]{1,400})", line \d+.*\n\s*(.*)', re.MULTILINE)
_RAISED = re.compile(r"^([A-Za-z_][\w.]{0,100})(?::|$)", re.MULTILINE)
_OWN_MISTAKES = ("SyntaxError", "IndentationError", "TabError", "ImportError", "ModuleNotFoundError")
_TRIAL = re.compile(r"(?:^|[_.-])(?:repro|test|verif|check|demo)[a-z]*(?:[_.-]|$)", re.IGNORECASE)
_SCRIPT = re.compile(r"\.(?:py|js|mjs|cjs|ts|rb|sh|php|pl)$")

_VERSION = re.compile(r"-?\d[\d.]*$")
_LONGEST_WORD = 1_000
"""Characters of a word that names a program."""
_MOST_WORDS = 12
"""Words behind a runner among which the program that does the work is looked for."""


def found_by(command: str, message: str, more: Mapping[str, Codes] | None = None) -> str:
    """The program that reported findings by the exit code in `message`; "" if that is a real failure.

    `message` is the failure's text: ours, or the one of a recorded run. `more`: further programs with their codes.
    """
    return _found_by(command, message, tuple(more.items()) if more else ())


@lru_cache(maxsize=16)
def _found_by(command: str, message: str, more: tuple[tuple[str, Codes], ...]) -> str:
    code, output = code_and_output(message)
    if code is None or not 0 < code <= LARGEST_CODE:
        return ""
    read = read_command(command)
    if read is None:
        return ""
    script, candidates = read
    codes = {**PROGRAMS, **dict(more)} if more else PROGRAMS
    names, others = [], []
    for one in candidates:
        name = _reporter(one.words, code, output, codes)
        if name:
            names.append(name)
        elif not is_loud(one):
            others.append(one)
    if not names or _CRASHED.search(output):
        return ""
    if len(candidates) > 1:
        if others and not _REPORT.search(output):
            return ""
        heard = {word.rpartition("/")[2] for word in program_words(script)} - set(names)
        if any(complains(line, heard) for line in output.splitlines()):
            return ""
    return names[-1]


def checking_program(words: Sequence[str]) -> str:
    """The name of the program that the words run, if it is one that checks: one of the table, or one that
    runs such a program.
    """
    words = _checked_by(words)
    for name in _names(words):
        if name in PROGRAMS and _reports(name, words):
            return name
    if not words:
        return ""
    launcher = _SCRIPT.sub("", script_of(words) or base_name(words[0]))
    return launcher if launcher in _LAUNCHERS else ""


def _reporter(words: Sequence[str], code: int, output: str, codes: Mapping[str, Codes]) -> str:
    """The name of the program that the words run, if `code` is its sign for findings."""
    inner = run_by_xargs(unwrapped(words)) if code == _OF_XARGS else ()
    words = _checked_by(inner or words)
    for name in _names(words):
        if (code in codes.get(name, ()) or (inner and name in codes)) and _reports(name, words):
            # Its report comes first; a traceback there is the program's own end.
            return "" if output.startswith(_TRACEBACK) else name
    if not words:
        return ""
    script = script_of(words)
    if script and code == 1 and _TRIAL.search(script) and _failed_as_meant(script, output):
        return script
    launcher = _SCRIPT.sub("", script or base_name(words[0]))
    return (script or launcher) if launcher in _LAUNCHERS and _REPORT.search(output) else ""


def _reports(name: str, words: Sequence[str]) -> bool:
    """True if a program of the table is called in the way in which it reports."""
    options = _ONLY_WITH.get(name)
    return options is None or any(option in words for option in options)


def _names(words: Sequence[str]) -> list[str]:
    """By what the table may know it: with its subcommand, by its name, without a version in the name."""
    if not words or len(words[0]) > _LONGEST_WORD:
        return []
    name = base_name(words[0])
    arguments = [word for word in words[1:] if not word.startswith(("-", "+"))][:1]
    if words[1:2] == ["--test"]:
        arguments = ["--test"]
    plain = _VERSION.sub("", name) or name
    subcommands = [f"{one} {sub}" for one in (name, plain) for sub in arguments]
    return [*subcommands, *dict.fromkeys((name, plain))]


def _checked_by(words: Sequence[str]) -> Sequence[str]:
    words = working(words)
    # `yarn jest` runs jest, `yarn test` a script of the project.
    return (
        words[1:] if words[:1] == ["yarn"] and any(name in PROGRAMS for name in _names(words[1:])) else words
    )


def _runs_code(word: str) -> bool:
    name = base_name(word)
    return name in SHELLS or interprets(name)


def script_of(words: Sequence[str]) -> str:
    """The script's file name, if an interpreter or the shell itself runs one."""
    if _runs_code(words[0]):
        name = base_name(next((word for word in words[1:_MOST_WORDS] if not word.startswith("-")), ""))
        return name if _SCRIPT.search(name) else ""
    return base_name(words[0]) if "/" in words[0] else ""


def _failed_as_meant(script: str, output: str) -> bool:
    """True if a test or a reproduction came to its end: it said so itself, an assertion did, or the code that
    it calls raised. A mistake in the script itself is a failure.
    """
    begins = output.rfind(_TRACEBACK)
    if begins == -1:
        return bool(output)
    trace = output[begins:]
    frames = list(_FRAME.finditer(trace))
    rest = trace[frames[-1].end() :] if frames else trace
    raised = [match[1].rpartition(".")[2] for match in _RAISED.finditer(rest)]
    name = raised[0] if raised else ""
    if name in _OWN_MISTAKES:
        return False
    if name == "AssertionError" or not frames:
        return name == "AssertionError"
    file, line = frames[-1].groups()
    own = base_name(file) == script or file.startswith("<")
    return not own or line.startswith(("raise", "assert"))
