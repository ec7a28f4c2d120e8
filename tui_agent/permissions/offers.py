"""Permission rules in words, and the rules, from narrow to wide, that an approval may leave behind."""

from __future__ import annotations

import glob
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tui_agent.core.names import Decision
from tui_agent.core.tool_facts import COMMAND_TOOL
from tui_agent.permissions.commands import SimpleCommand, Word, read_command
from tui_agent.permissions.programs import Program, changes_the_shell, is_neutral, known_program
from tui_agent.permissions.risky import still_asks, warning_about
from tui_agent.permissions.rules import (
    EXACTLY,
    READS,
    WRITES,
    PermissionRule,
    exact_pattern,
    host_of,
    literal_pattern,
    parse_rule,
)
from tui_agent.permissions.runners import runs_what_it_is_given
from tui_agent.shell_programs import base_name

_SUBCOMMAND = re.compile(r"[a-z][\w:-]*")
_SUBCOMMAND_WORDS = 2


def in_words(rule: PermissionRule, *, whole: bool = False) -> str:
    """Say what a rule covers, without the rule itself. `whole`: with every option that it takes."""
    if rule.decision is Decision.ALLOW:
        return _allowed(rule, whole=whole)
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


def remarks(rule: PermissionRule) -> str:
    """Say what whoever writes a rule should know of it, in sentences: what it leaves out, and what it lets run
    besides.
    """
    asks = _still_asks(rule)
    return " ".join(filter(None, (f"It still asks for {asks}." if asks else "", warning(rule))))


def _still_asks(rule: PermissionRule) -> str:
    words = rule.words if rule.tool == COMMAND_TOOL and rule.decision is Decision.ALLOW else ()
    if len(words) < 2 or words[-1] != "*" or _known(" ".join(words[:-1])) is not None:
        return ""
    return still_asks(base_name(words[0]))


def warning(rule: PermissionRule) -> str:
    """Warn that a rule lets more run than its name says, as a sentence; "" if it does not."""
    why = _lets_more_run(rule)
    return f"Mind: {why}." if why else ""


def _lets_more_run(rule: PermissionRule) -> str:
    pattern = rule.pattern or ""
    if rule.decision is not Decision.ALLOW or rule.tool != COMMAND_TOOL or pattern.startswith(EXACTLY):
        return ""
    if rule.covers_all:
        return "it lets every command run"
    words = rule.words
    if len(words) < 2 or words[-1] not in {"*", "**"} or _known(" ".join(words[:-1])) is not None:
        return ""
    if words[-1] == "**":
        return "it covers any arguments at all, also those by which a program runs another one"
    why = warning_about(base_name(words[0]))
    return f"{words[0]}: {why}" if why else ""


def _allowed(rule: PermissionRule, *, whole: bool) -> str:
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
        return "exactly this command"
    name = pattern.removesuffix(" *")
    program = _known(name)
    if program is not None and name != pattern:
        options = program.listed() if whole or not program.options else "its harmless options"
        return f"`{name}` with {options}, on paths inside the workspace"
    if pattern.endswith(" **"):
        return f"`{pattern.removesuffix(' **')}` with any arguments at all"
    if name != pattern and not re.search(r"[*?\[]", name):
        asks = _still_asks(rule)
        but = f" but those that run or write ({asks}), which still ask" if asks else ""
        return f"`{name}` with any options{but}, on anything that stays inside the workspace"
    if re.search(r"(?<!\[)[*?]|\[(?![*?\[]\])", pattern):
        return f"commands like `{pattern}`, on anything that stays inside the workspace"
    return "this command word for word, alone or joined to commands that are allowed"


def _known(name: str) -> Program | None:
    """Look up the program that has exactly this name."""
    found = known_program([Word(word) for word in name.split()])
    return found[1] if found is not None and found[0] == name else None


def in_short(texts: Sequence[str]) -> str:
    """Say in a few words what rules that allow cover: to choose from several."""
    rules = [parse_rule(Decision.ALLOW, text, "") for text in texts]
    if all(rule.tool == COMMAND_TOOL and not rule.covers_all for rule in rules):
        patterns = [rule.pattern or "" for rule in rules]
        return ", ".join(f"`{one}`" for one in patterns) if _has_family(patterns) else "this command alone"
    return "; ".join(in_words(rule) for rule in rules)


THIS_COMMAND = "this command"


def called(texts: Sequence[str]) -> str:
    """Name what rules that allow cover, as short as a choice needs it: `all "pytest …"`, `this command`."""
    rules = [parse_rule(Decision.ALLOW, text, "") for text in texts]
    if all(rule.tool in WRITES and rule.covers_all for rule in rules):
        return "all edits here"
    if any(rule.tool == COMMAND_TOOL and rule.covers_all for rule in rules):
        return "every command, whatever it does"
    if all(rule.tool == COMMAND_TOOL for rule in rules):
        patterns = [rule.pattern or "" for rule in rules]
        if not _has_family(patterns):
            return THIS_COMMAND
        return "all " + ", ".join(f'"{re.sub(r" [*]{1,2}$", " …", one)}"' for one in patterns)
    return "; ".join(in_words(rule) for rule in rules)


def _has_family(patterns: Sequence[str]) -> bool:
    return any(pattern.endswith(" *") and not pattern.startswith(EXACTLY) for pattern in patterns)


def examples(texts: Sequence[str], arguments: Mapping[str, Any]) -> tuple[str, str]:
    """Give a call that rules from a card cover, and one that they do not; both in words, commands in backquotes."""
    rule = parse_rule(Decision.ALLOW, next((text for text in texts if text.endswith(" *)")), texts[0]), "")
    pattern, tool = rule.pattern or "", rule.tool
    if tool == COMMAND_TOOL and rule.covers_all:
        return "`rm -rf .`", "what another rule denies"
    if tool == COMMAND_TOOL and not _has_family([pattern]):
        return "this command once more", "the same with one word changed"
    if tool == COMMAND_TOOL:
        name = pattern.removesuffix(" *")
        known = known_program([Word(word) for word in name.split()])
        such, never = (known[1].such, known[1].never) if known else ("--option other-file", "../other-file")
        parent, space, _ = name.rpartition(" ")
        return f"`{name} {such}`", f"`{name} {never}`" + (f" or `{parent} other`" if space else "")
    if tool in WRITES:
        if rule.covers_all:
            return "any other file", "a command"
        folder = pattern.endswith("/**")
        return (
            (f"{pattern[:-2]}other-file", "files beside this folder")
            if folder
            else ("this file", "another file")
        )
    if "url" in arguments:
        return ("another page there", "another host") if pattern else ("any page of any host", "another tool")
    return "a call with other arguments", "other servers" if tool.endswith("*") else "other tools"


def _place(pattern: str) -> str:
    if pattern.endswith("/**") and pattern != "/**":
        return f"everything in {pattern.removesuffix('/**')}/"
    return pattern if "/" in pattern else f"{pattern} in every folder"


def offers(tool: str, arguments: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Make sets of rules for a call, from narrow to wide. `Permissions` says if one lets it run."""
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
    reading = read_command(command)
    plain = not (reading.trouble or reading.redirections) and bool(reading.commands)
    # What changes nothing goes along with the rest.
    judged = [one for one in reading.commands if not is_neutral(one)] or reading.commands
    alone = [_pattern(one, None) for one in judged] if plain else []
    if not plain or not all(alone):
        yield (f"{COMMAND_TOOL}({exact_pattern(command)})",)
    for patterns in (alone, *([_pattern(one, length) for one in judged] for length in _FAMILIES if plain)):
        if patterns and all(patterns):
            yield tuple(dict.fromkeys(f"{COMMAND_TOOL}({pattern})" for pattern in patterns))


_FAMILIES = (4, 3, 2, 1)
"""Words of a family's name: `uv run ruff check`, `npm run test`, `git commit`, `make`."""


def _pattern(command: SimpleCommand, length: int | None) -> str:
    """Write the pattern of a command's first words with any arguments (None: of these words alone); "" for none."""
    words = command.words
    if not words or command.assignments or any(word.kind != "literal" for word in words[: length or None]):
        return ""
    if changes_the_shell(command):
        return ""
    if length is None:
        return literal_pattern(words)
    if runs_what_it_is_given(command, prefix=length):
        return ""
    if len(words) < length:
        return ""
    named = length == _SUBCOMMAND_WORDS and _SUBCOMMAND.fullmatch(words[1].text) is not None
    if length > 1 and not named and _known(" ".join(word.text for word in words[:length])) is None:
        return ""
    return f"{literal_pattern(words[:length])} *"


def rules_in_words(texts: Sequence[str]) -> str:
    """Say of rules that allow what each covers. An exact call is not repeated: it stands beside them."""
    said: dict[str, list[str]] = {}
    for text in texts:
        rule = parse_rule(Decision.ALLOW, text, "")
        shown = rule.tool if (rule.pattern or "").startswith(EXACTLY) else text
        said.setdefault(in_words(rule), []).append(shown)
    return "; ".join(f"{', '.join(shown)}: {words}" for words, shown in said.items())
