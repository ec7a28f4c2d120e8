"""Which commands can have set a command line's exit code, and what the code and the output were.

Pure, and bounded in time for any text. It reads our own failure texts and those of recorded runs; what a code means is
not said here (`no_match`, `findings`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache

from tui_agent.shell_programs import SHELLS, handed_over, program_name, shell_code, unwrapped
from tui_agent.shell_syntax import CommandGroup, Compound, Script, Simple, UnreadableCommand, parse

_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        r"\A<returncode>\s*(\d{1,5})\s*</returncode>",
        r"\A(?:error:\s*)?(?:the command failed with )?exit(?:ed with)?[ _](?:code|status):? ?(\d{1,5})\b[.:]?",
        r"\[?(?:the command completed with |command finished with )?exit code:? (\d{1,5})\.?\]?\s*\Z",
    )
)
"""How recordings and our own shell tool say an exit code: before the output, or in a line behind it."""
_FRAME = re.compile(
    r"^[^\S\n]*(?:</?(?:output|stdout|stderr|result)>|\(no output\)|output:|stdout:|stderr:|wall time: .*"
    r"|command failed: .*|return ?code: \d+)[^\S\n]*$",
    re.IGNORECASE | re.MULTILINE,
)
_HEAD, _TAIL = 4_000, 4_000
"""Characters of the output that are looked at, at each end."""
_LONGEST_JSON = 1_000_000

_LOUD = frozenset({
    "cd", "pushd", "popd", "export", "source", ".", "set", "echo", "printf", "cat", "ls", "head", "tail", "sed",
    "awk", "cut", "sort", "uniq", "wc", "tr", "nl", "tee", "find", "mkdir", "touch", "cp", "mv", "rm", "chmod",
    "ln", "pwd", "true", ":", "sleep", "date", "git", "xargs", "basename", "dirname", "unset", "shopt", "ulimit",
    "column", "paste", "jq", "tac", "rev", "strings", "file", "stat", "realpath", "readlink",
})  # fmt: skip
"""Programs that do not fail without saying why: exit code 1 in silence is not theirs."""
HARMLESS = re.compile(r"\bwarning\b|^which: no |\btype: .*: not found$", re.IGNORECASE)
_COMPLAINT = re.compile(r"(?P<program>[\w./+-]{1,80}): \S")


def complains(line: str, programs: set[str]) -> bool:
    """True if a line is the error message of one of the programs, or of the shell that ran them."""
    match = _COMPLAINT.match(line)
    return bool(match and program_name(match["program"]) in programs | SHELLS and not HARMLESS.search(line))


@lru_cache(maxsize=32)
def code_and_output(message: str) -> tuple[int | None, str]:
    """The exit code that a failure's text names, and the output in it, without what frames both."""
    text = message.strip()
    if text.startswith("{") and len(text) <= _LONGEST_JSON:
        return _from_json(text)
    if len(text) > _HEAD + _TAIL:
        text = f"{text[:_HEAD]}\n{text[-_TAIL:]}"
    for form in _FORMS:
        if match := form.search(text):
            rest = text[: match.start()] + text[match.end() :]
            return int(match[1]), _FRAME.sub("", rest).strip()
    return None, ""


def _from_json(text: str) -> tuple[int | None, str]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None, ""
    if not isinstance(value, dict):
        return None, ""
    facts = value["metadata"] if isinstance(value.get("metadata"), dict) else value
    code = next((facts[key] for key in ("exit_code", "returncode") if type(facts.get(key)) is int), None)
    parts = [value[key] for key in ("output", "stdout", "stderr") if isinstance(value.get(key), str)]
    return code, "\n".join(parts)[: _HEAD + _TAIL].strip()


def _strict_options(script: Script) -> frozenset[str]:
    """Which of `errexit` and `pipefail` the command sets for itself."""
    found: set[str] = set()
    for simple in script.simple_commands():
        if simple.words and simple.words[0] == "set":
            options = simple.words[1:]
            if any(re.fullmatch(r"-[a-zA-Z]*e[a-zA-Z]*", option) for option in options):
                found.add("errexit")
            if "pipefail" in options:
                found.add("pipefail")
    return frozenset(found)


def program_words(script: Script) -> Iterator[str]:
    """The first word of each simple command."""
    for simple in script.simple_commands():
        yield from simple.words[:1]


class Unknown(Simple):
    """Something that can end with any code."""


_ANYTHING = Unknown(())


@lru_cache(maxsize=32)
def read_command(command: str) -> tuple[Script, tuple[Simple, ...]] | None:
    """The structure of a command line, and the commands of which one has set its exit code; None: unreadable."""
    try:
        script = parse(command)
    except UnreadableCommand:
        return None
    return script, tuple(_deciding(script, _strict_options(script)))


def _deciding(script: Script, strict: frozenset[str]) -> Iterator[Simple]:
    if not script.lists:
        return
    for one in script.lists if "errexit" in strict else script.lists[-1:]:
        if one.background:
            yield _ANYTHING
            continue
        # What fails before a `||` has another one run in its place.
        first = max((at for at, operator in enumerate(one.operators, 1) if operator == "||"), default=0)
        for pipeline in one.pipelines[first:]:
            if pipeline.negated:
                yield _ANYTHING
                continue
            for command in pipeline.commands if "pipefail" in strict else pipeline.commands[-1:]:
                match command:
                    case CommandGroup(body):
                        yield from _deciding(body, strict)
                    case Compound():
                        yield _ANYTHING
                    case _:
                        yield from _inside(command, strict)


def _inside(command: Simple, strict: frozenset[str]) -> Iterator[Simple]:
    """The command behind wrappers, `bash -c`, `su -c` and `docker exec`."""
    words = unwrapped(command.words)
    code = shell_code(words) or handed_over(words)
    if isinstance(code, str) and code:
        try:
            inner = parse(code)
        except UnreadableCommand:
            yield _ANYTHING
            return
        yield from _deciding(inner, strict | _strict_options(inner))
    elif code:
        yield from _inside(Simple(tuple(code)), strict)
    else:
        yield command


def is_loud(command: Simple) -> bool:
    """True if the command never fails without a message."""
    if isinstance(command, Unknown):
        return False
    words = unwrapped(command.words)
    return not words or program_name(words[0]) in _LOUD
