"""What a permission rule covers, in words; and the rules, from narrow to wide, that an approval may leave behind."""

from __future__ import annotations

import glob
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tui_agent.core.names import Decision
from tui_agent.permissions.commands import SimpleCommand, read_command
from tui_agent.permissions.judge import COMMAND_TOOL, host_of
from tui_agent.permissions.programs import PROGRAMS, changes_the_shell, is_neutral
from tui_agent.permissions.rules import (
    EXACTLY,
    READS,
    WRITES,
    Rule,
    exact_pattern,
    literal_pattern,
    parse_rule,
)
from tui_agent.permissions.runners import runs_what_it_is_given

_SUBCOMMAND = re.compile(r"[a-z][\w:-]*")


def in_words(rule: Rule) -> str:
    """What a rule covers, without the rule itself."""
    if rule.decision is Decision.ALLOW:
        return _allowed(rule)
    verb = "never run" if rule.decision is Decision.DENY else "always ask"
    pattern = rule.pattern or ""
    if rule.covers_all:
        return f"calls of {rule.tool} {verb}"
    if rule.tool in READS | WRITES:
        what = "reads" if rule.tool in READS else "edits"
        return f"{what} of {_place(pattern)} {verb}, also by a command that names it or a link to it"
    if rule.tool == COMMAND_TOOL and pattern.startswith(EXACTLY):
        return f"calls of exactly this command {verb}"
    if rule.tool == COMMAND_TOOL:
        return f"`{pattern}` {verb}, however it is written: in any folder, options in any order, behind sudo, xargs, …"
    return f"calls of {rule.tool} to {pattern} {verb}"


def _allowed(rule: Rule) -> str:
    pattern = rule.pattern or ""
    if rule.tool in WRITES:
        return "every file edit inside the workspace" if rule.covers_all else f"edits of {_place(pattern)}"
    if rule.tool in READS and not rule.covers_all:
        return f"reads of {_place(pattern)}"
    if rule.tool != COMMAND_TOOL or rule.covers_all:
        every = (
            "every command, whatever it does" if rule.tool == COMMAND_TOOL else f"every call of {rule.tool}"
        )
        return f"{every}{f' to {pattern}' if pattern and not rule.covers_all else ''}"
    if pattern.startswith(EXACTLY):
        return "exactly this call, again"
    name = pattern.removesuffix(" *")
    program = PROGRAMS.get(name)
    if program is not None and name != pattern:
        return f"`{name}` with {program.listed()}, on paths inside the workspace"
    if pattern.endswith(" **"):
        return f"`{pattern.removesuffix(' **')}` with any arguments at all"
    if name != pattern and not re.search(r"[*?\[]", name):
        return f"`{name}` with any options, on anything that stays inside the workspace"
    if re.search(r"(?<!\[)[*?]|\[(?![*?\[]\])", pattern):
        return f"commands like `{pattern}`, on anything that stays inside the workspace"
    return "exactly this command, also beside others that are allowed"


def _place(pattern: str) -> str:
    if pattern.endswith("/**") and pattern != "/**":
        return f"everything in {pattern.removesuffix('/**')}/"
    return pattern if "/" in pattern else f"{pattern} in every folder"


def offers(tool: str, arguments: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Sets of rules for a call, from narrow to wide. Whether one lets it run is for `Permissions` to say."""
    if tool == COMMAND_TOOL:
        yield from _for_command(str(arguments.get("command", "")))
    elif isinstance(url := arguments.get("url"), str):
        host = host_of(url)
        if host:
            yield (f"{tool}({host})",)
            _, dot, domain = host.partition(".")
            if dot and "." in domain and not domain.replace(".", "").isdigit():
                yield (f"{tool}(*.{domain})",)
    elif tool in WRITES:
        yield from _for_file(posixpath.normpath(str(arguments.get("path", ""))))
        yield ("edit_file(**)",)
        return
    yield (tool,)
    if "__" in tool:
        yield (f"{tool.partition('__')[0]}__*",)


def _for_file(path: str) -> Iterator[tuple[str, ...]]:
    if path.startswith(("..", "/", "~")) or path == ".":
        return
    folder, slash, _ = path.rpartition("/")
    yield (f"edit_file({glob.escape(path)})",)
    if slash:
        yield (f"edit_file({glob.escape(folder)}/**)",)


def _for_command(command: str) -> Iterator[tuple[str, ...]]:
    yield (f"{COMMAND_TOOL}({exact_pattern(command)})",)
    reading = read_command(command)
    if reading.trouble or reading.redirections or not reading.commands:
        return
    # What changes nothing goes along with the rest.
    judged = [one for one in reading.commands if not is_neutral(one)] or reading.commands
    for length in (None, 2, 1):
        patterns = [_pattern(one, length) for one in judged]
        if all(patterns):
            yield tuple(dict.fromkeys(f"{COMMAND_TOOL}({pattern})" for pattern in patterns))


def _pattern(command: SimpleCommand, length: int | None) -> str:
    """The pattern of a command's first words with any arguments; None: of these words alone. "" for none."""
    words = command.words
    if not words or command.assignments or any(word.kind != "literal" for word in words[: length or None]):
        return ""
    if changes_the_shell(command):
        return ""
    if length is None:
        return literal_pattern(words)
    if runs_what_it_is_given(command, prefix=length):
        return ""
    if length > 1 and (
        len(words) < length or not all(_SUBCOMMAND.fullmatch(word.text) for word in words[1:length])
    ):
        return ""
    return f"{literal_pattern(words[:length])} *"


def rules_in_words(texts: Sequence[str]) -> str:
    """Rules that allow, each with what it covers. An exact call is not repeated: it stands beside them."""
    said: dict[str, list[str]] = {}
    for text in texts:
        rule = parse_rule(Decision.ALLOW, text, "")
        shown = rule.tool if (rule.pattern or "").startswith(EXACTLY) else text
        said.setdefault(in_words(rule), []).append(shown)
    return "; ".join(f"{', '.join(shown)}: {words}" for words, shown in said.items())
