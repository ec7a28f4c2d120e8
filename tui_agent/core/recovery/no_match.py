"""Commands whose exit code 1 is an answer: a search that found nothing, a comparison that found a difference.

Pure, and bounded in time for any text. It recognises our own failure texts and those of recorded runs; where
another command could have set the exit code, or an error stands in the output, the failure stays one.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from tui_agent.shell_syntax import AndOr, Compound, Group, Script, Simple, UnreadableCommand, parse

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        r"\A<returncode>\s*(\d{1,5})\s*</returncode>",
        r"\A(?:error:\s*)?(?:the command failed with )?exit(?:ed with)?[ _](?:code|status):? ?(\d{1,5})\b[.:]?",
        r"\[?(?:the command completed with |command finished with )?exit code:? (\d{1,5})\.?\]?\s*\Z",
    )
)
"""How recordings and our own shell tool say an exit code: before the output, or in a remark behind it."""
_FRAME = re.compile(
    r"^\s*(?:</?(?:output|stdout|stderr|result)>|\(no output\)|output:|stdout:|stderr:|wall time: .*"
    r"|command failed: .*|return ?code: \d+)\s*?$",
    re.IGNORECASE | re.MULTILINE,
)
_HEAD, _TAIL = 4_000, 4_000
"""Characters of the output that are looked at, at each end."""
_LONGEST_JSON = 1_000_000

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
_WRAPPERS = {
    "timeout": "ksfpv", "nice": "n", "env": "uCS", "nohup": "", "stdbuf": "ioe", "time": "fo", "sudo": "ugpCh",
    "builtin": "", "exec": "", "ionice": "cnp", "setsid": "", "unbuffer": "",
}  # fmt: skip
"""Programs that run the one after them, with the letters of their options that take a value."""
_SYSTEM_FOLDERS = frozenset({"", "/bin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"})
_SHELLS = frozenset({"bash", "sh", "dash", "zsh", "ksh"})
_LOUD = frozenset({
    "cd", "pushd", "popd", "export", "source", ".", "set", "echo", "printf", "cat", "ls", "head", "tail", "sed",
    "awk", "cut", "sort", "uniq", "wc", "tr", "nl", "tee", "find", "mkdir", "touch", "cp", "mv", "rm", "chmod",
    "ln", "pwd", "true", ":", "sleep", "date", "git", "xargs", "basename", "dirname", "unset", "shopt", "ulimit",
    "column", "paste", "jq", "tac", "rev", "strings", "file", "stat", "realpath", "readlink",
})  # fmt: skip
"""Programs that do not fail without saying why: exit code 1 in silence is not theirs."""
_COMPLAINTS = re.compile(
    r"^.{0,80}?(?:command not found|no such file or directory|permission denied|not a git repository"
    r"|syntax error|command timed out|malformed command)"
    r"|^(?:traceback \(most recent|usage:|fatal:|error:|\w+(?:error|exception):)",
    re.IGNORECASE | re.MULTILINE,
)
"""Errors that any program prints."""
_HARMLESS = re.compile(r"\bwarning\b|^which: no |\btype: .*: not found$", re.IGNORECASE)
_COMPLAINT = re.compile(r"(?P<program>[\w./+-]{1,80}): \S")


def finds_nothing(command: str, message: str) -> bool:
    """Whether this failure only says that a search found nothing, or that what was compared differs.

    `message` is the failure's text: ours, or the one of a recorded run. Exit code 1 is needed (123 of `xargs
    grep`, which stands for it), no text of an error, and that no other command can have set the code.
    """
    return bool(nothing_found_by(command, message))


def nothing_found_by(command: str, message: str) -> str:
    """The name of the search or comparison that said so by exit code 1; "" for a real failure."""
    code, output = _code_and_output(message)
    if code not in (1, 123):
        return ""
    try:
        script = parse(command)
    except UnreadableCommand:
        return ""
    candidates = list(_deciding(script, _strict(script)))
    names = [_answers_by_code(one, code) for one in candidates]
    if not any(names) or any(
        not name and not _is_loud(one) for name, one in zip(names, candidates, strict=True)
    ):
        return ""
    name = next(name for name in reversed(names) if name)
    if _COMPLAINTS.search(output) and name not in _COMPARISON:
        return ""
    programs = {_name(word) for word in _programs(script)} | {name.partition(" ")[0]}
    if any(_complains(line, programs) for line in output.splitlines()):
        return ""
    if name in _COMPARISON or name == "git diff":
        # The output is the difference, which may hold any text.
        return name
    printed = len(script.lists) > 1 or len(candidates) > 1
    return name if printed or _only_nothing(name, output) else ""


def _complains(line: str, programs: set[str]) -> bool:
    """Whether a line is the error message of one of the programs, or of the shell that ran them."""
    match = _COMPLAINT.match(line)
    return bool(match and _name(match["program"]) in programs | _SHELLS and not _HARMLESS.search(line))


def _only_nothing(name: str, output: str) -> bool:
    """Whether this is what a search prints that finds nothing: no line, a count of 0, or warnings."""
    return all(
        not line.strip() or re.fullmatch(r"(?:[^\n:]+:)?0", line.strip()) or _HARMLESS.search(line)
        for line in output.splitlines()
    )


def in_words(name: str) -> str:
    """What exit code 1 of the search or comparison called `name` says."""
    if name in _COMPARISON or name == "git diff":
        return f"{name} found differences"
    if name in _CONDITION or name == "((":
        return f"the condition of {name} does not hold"
    return f"{name} found nothing"


def _code_and_output(message: str) -> tuple[int | None, str]:
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


def _strict(script: Script) -> frozenset[str]:
    """Which of `errexit` and `pipefail` the command sets for itself."""
    found: set[str] = set()
    for one in script.lists:
        for simple in _simples(one):
            if simple.words and simple.words[0].text == "set":
                options = [word.text for word in simple.words[1:]]
                if any(re.fullmatch(r"-[a-zA-Z]*e[a-zA-Z]*", option) for option in options):
                    found.add("errexit")
                if "pipefail" in options:
                    found.add("pipefail")
    return frozenset(found)


def _simples(one: AndOr) -> Iterator[Simple]:
    for pipeline in one.pipelines:
        for command in pipeline.commands:
            match command:
                case Simple():
                    yield command
                case Group(body):
                    for inner in body.lists:
                        yield from _simples(inner)


def _programs(script: Script) -> Iterator[str]:
    for one in script.lists:
        for simple in _simples(one):
            yield from (word.text for word in simple.words[:1])


class _Unknown(Simple):
    """Something that can end with any code."""


_ANYTHING = _Unknown(())


def _deciding(script: Script, strict: frozenset[str]) -> Iterator[Simple]:
    """The commands of which one has set the exit code of the whole."""
    if not script.lists:
        return
    for one in script.lists if "errexit" in strict else script.lists[-1:]:
        if "||" in one.operators or one.background:
            yield _ANYTHING
            continue
        for pipeline in one.pipelines:
            if pipeline.negated:
                yield _ANYTHING
                continue
            for command in pipeline.commands if "pipefail" in strict else pipeline.commands[-1:]:
                match command:
                    case Group(body):
                        yield from _deciding(body, strict)
                    case Compound():
                        yield _ANYTHING
                    case _:
                        yield from _inside(command, strict)


def _inside(command: Simple, strict: frozenset[str]) -> Iterator[Simple]:
    """The command behind wrappers and `bash -c`."""
    words = _unwrapped([word.text for word in command.words])
    if words and _name(words[0]) in _SHELLS:
        flag = next(
            (index for index, word in enumerate(words[1:], 1) if re.fullmatch(r"-[a-z]*c", word)), None
        )
        if flag is not None and flag + 1 < len(words):
            try:
                inner = parse(words[flag + 1])
            except UnreadableCommand:
                yield _ANYTHING
                return
            yield from _deciding(inner, strict | _strict(inner))
            return
    yield command


def _name(word: str) -> str:
    """The program's name; a script of the project (`bin/test`) keeps its path, and so is none of ours."""
    folder, _, name = word.rpartition("/")
    return name if folder in _SYSTEM_FOLDERS else word


def _unwrapped(words: list[str]) -> list[str]:
    """The words from the program on that does the work."""
    while words and _name(words[0]) in _WRAPPERS:
        wrapper, words = _name(words[0]), words[1:]
        valued = _WRAPPERS[wrapper]
        while words and words[0].startswith("-"):
            takes_next = len(words[0]) == 2 and words[0][1] in valued
            words = words[2:] if takes_next else words[1:]
        if wrapper == "env":
            while words and re.match(r"\w+=", words[0]):
                words = words[1:]
        elif wrapper == "timeout":
            words = words[1:]
    return words


def _answers_by_code(command: Simple, code: int) -> str:
    """The name of the search or comparison that this command is; "" for any other."""
    words = _unwrapped([word.text for word in command.words])
    if not words:
        return ""
    name = _name(words[0])
    if name == "xargs" or code == 123:
        return _search_of_xargs(words) if name == "xargs" else ""
    if name == "find":
        # With `+`, find ends with 1 where one of the commands it ran did.
        run = next((index for index, word in enumerate(words) if word in ("-exec", "-execdir")), None)
        inner = words[run + 1 :] if run is not None and words[-1] == "+" else []
        return _name(inner[0]) if inner and _name(inner[0]) in _SEARCH else ""
    if name == "git":
        return _git(words[1:])
    if name == "command":
        return name if any(word in ("-v", "-V") for word in words[1:]) else ""
    if name.startswith("((") or name in _CONDITION:
        return "((" if name.startswith("((") else name
    return name if name in _SEARCH or name in _COMPARISON else ""


def _search_of_xargs(words: Sequence[str]) -> str:
    """`xargs` ends with 123 where a command that it ran ended with 1 to 125."""
    return next((_name(word) for word in words[1:] if _name(word) in _SEARCH | _COMPARISON), "")


def _git(words: Sequence[str]) -> str:
    rest = list(words)
    while rest and rest[0].startswith("-"):
        rest = rest[2:] if rest[0] in ("-C", "-c", "--git-dir", "--work-tree") else rest[1:]
    if not rest or rest[0] not in _QUIET_GIT:
        return ""
    needed = _QUIET_GIT[rest[0]]
    return f"git {rest[0]}" if not needed or any(option in rest for option in needed) else ""


def _is_loud(command: Simple) -> bool:
    if isinstance(command, _Unknown):
        return False
    words = _unwrapped([word.text for word in command.words])
    return not words or _name(words[0]) in _LOUD
