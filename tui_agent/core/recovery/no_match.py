"""Commands whose exit code is an answer: a search that found nothing, a comparison that found a difference, a probe
for a program that is not there.

Pure, and bounded in time for any text. It recognises our own failure texts and those of recorded runs; if
another command could have set the exit code, or an error stands in the output, the failure stays one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tui_agent.core.recovery.exit_code import (
    HARMLESS,
    code_and_output,
    complains,
    is_loud,
    program_words,
    read_command,
)
from tui_agent.shell_programs import GIT_OPTIONS, behind_options, program_name, unwrapped
from tui_agent.shell_syntax import Simple

_SEARCH = frozenset({
    "grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack", "pgrep", "pidof", "which", "command", "type",
})  # fmt: skip
_COMPARISON = frozenset({"diff", "cmp", "zdiff", "zcmp", "sdiff"})
_CONDITION = frozenset({"test", "[", "[[", "expr", "let"})
_QUIET_GIT = {
    "grep": (),
    "check-ignore": (),
    "diff": ("--exit-code", "--quiet", "--no-index", "--check"),
    "merge-base": ("--is-ancestor",),
    "show-ref": ("--verify", "--quiet", "-q", "--exists"),
    "config": ("--get", "--get-all", "--get-regexp"),
}
"""Subcommands of git that answer by exit code 1, and the options of which one must be there."""
_NOT_FOUND = 127
_ASKS = frozenset({"--version", "-version", "-v", "-V", "version", "--help", "-help", "-h", "help"})
_MISSING = re.compile(r"(?:command )?not found$|No such file or directory$|[Uu]nknown command")
PROBE = "probe of "
"""Begins the name of a probe: it asks for the version of a program that is not there."""
_COMPLAINTS = re.compile(
    r"^.{0,80}?(?:command not found|no such file or directory|permission denied|not a git repository"
    r"|syntax error|command timed out|malformed command)"
    r"|^(?:traceback \(most recent|usage:|fatal:|error:|\w+(?:error|exception):)",
    re.IGNORECASE | re.MULTILINE,
)
"""Errors that any program prints."""


def finds_nothing(command: str, message: str) -> bool:
    """True if this failure only says that a search found nothing, or that compared files differ.

    `message` is the failure's text: ours, or the one of a recorded run. Exit code 1 is needed (123 of `xargs
    grep`, which stands for it), no text of an error, and that no other command can have set the code.
    """
    return bool(nothing_found_by(command, message))


def nothing_found_by(command: str, message: str) -> str:
    """The name of the search or comparison that said so by exit code 1, or the probe by 127; "" for a real failure."""
    code, output = code_and_output(message)
    if code == _NOT_FOUND:
        return _probed(command, output)
    if code not in (1, 123):
        return ""
    read = read_command(command)
    if read is None:
        return ""
    script, candidates = read
    names = [_answers_by_code(one, code) for one in candidates]
    if not any(names) or any(
        not name and not is_loud(one) for name, one in zip(names, candidates, strict=True)
    ):
        return ""
    name = next(name for name in reversed(names) if name)
    if _COMPLAINTS.search(output) and name not in _COMPARISON:
        return ""
    programs = {program_name(word) for word in program_words(script)} | {name.partition(" ")[0]}
    if any(complains(line, programs) for line in output.splitlines()):
        return ""
    if name in _COMPARISON or name == "git diff":
        # The output is the difference, which may hold any text.
        return name
    printed = len(script.lists) > 1 or len(candidates) > 1
    return name if printed or _only_nothing(name, output) else ""


def _probed(command: str, output: str) -> str:
    """The program that is not there, if all that was asked of it is its version or its help."""
    read = read_command(command)
    if read is None or any(
        line.strip() and not _MISSING.search(line) and line.strip() not in command
        for line in output.splitlines()
    ):
        return ""
    words = [unwrapped(one.words) for one in read[1]]
    probes = all(one and len(one) > 1 and _ASKS.issuperset(one[1:]) for one in words)
    return f"{PROBE}{program_name(words[-1][0])}" if words and probes else ""


def _only_nothing(name: str, output: str) -> bool:
    """True if this is the output of a search that finds nothing: no line, a count of 0, or warnings."""
    return all(
        not line.strip() or re.fullmatch(r"(?:[^\n:]+:)?0", line.strip()) or HARMLESS.search(line)
        for line in output.splitlines()
    )


def in_words(name: str) -> str:
    """The meaning of exit code 1 of the search or comparison called `name`, and of 127 of a probe."""
    if name.startswith(PROBE):
        return f"{name.removeprefix(PROBE)} is not there"
    if name in _COMPARISON or name == "git diff":
        return f"{name} found differences"
    if name in _CONDITION or name == "((":
        return f"the condition of {name} does not hold"
    return f"{name} found nothing"


def _answers_by_code(command: Simple, code: int) -> str:
    """The name of the search or comparison that this command is; "" for any other."""
    words = unwrapped(command.words)
    if not words:
        return ""
    name = program_name(words[0])
    if name == "xargs" or code == 123:
        return _search_of_xargs(words) if name == "xargs" else ""
    if name == "find":
        # With `+`, find ends with 1 if one of the commands it ran did.
        run = next((index for index, word in enumerate(words) if word in ("-exec", "-execdir")), None)
        inner = words[run + 1 :] if run is not None and words[-1] == "+" else []
        return program_name(inner[0]) if inner and program_name(inner[0]) in _SEARCH else ""
    if name == "git":
        return _git(words[1:])
    if name == "command":
        return name if any(word in ("-v", "-V") for word in words[1:]) else ""
    if name.startswith("((") or name in _CONDITION:
        return "((" if name.startswith("((") else name
    return name if name in _SEARCH or name in _COMPARISON else ""


def _search_of_xargs(words: Sequence[str]) -> str:
    """`xargs` ends with 123 if a command that it ran ended with 1 to 125."""
    return next((program_name(word) for word in words[1:] if program_name(word) in _SEARCH | _COMPARISON), "")


def _git(words: Sequence[str]) -> str:
    rest = behind_options(words, GIT_OPTIONS)
    if not rest or rest[0] not in _QUIET_GIT:
        return ""
    needed = _QUIET_GIT[rest[0]]
    return f"git {rest[0]}" if not needed or any(option in rest for option in needed) else ""
