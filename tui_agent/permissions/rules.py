"""One permission rule: `tool` or `tool(pattern)`, and the calls it applies to.

The pattern of a tool that takes a command is a command with wildcards, that of a tool for files a path glob, that
of a tool for addresses a domain. Which rule wins is decided in `judge`.
"""

from __future__ import annotations

import glob
import re
import shlex
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tui_agent.core.names import Decision
from tui_agent.core.tool_facts import COMMAND_TOOL, Use
from tui_agent.disk import with_home
from tui_agent.globs import GlobError, path_pattern
from tui_agent.permissions.uses import OF_RULES
from tui_agent.sandbox.obeyed import BY_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tui_agent.permissions.commands import Word

_RULE = re.compile(r"([\w*?][\w.*?:-]*)(?:\((.*)\))?", re.DOTALL)
GUARDED = (".git", ".agent-tui.toml")
"""Hold commands that run later without anybody's approval: never written by the file tools, nor under their rules."""
READS = frozenset(name for name, uses in OF_RULES.items() if Use.READS in uses.values())
WRITES = frozenset(name for name, uses in OF_RULES.items() if Use.WRITES in uses.values())
"""A rule with a path for one of these applies to the others too: who may not read a file may not search it either."""
_SENDS = frozenset(name for name, uses in OF_RULES.items() if Use.SENDS in uses.values())


@dataclass(frozen=True)
class PermissionRule:
    """One rule: its `text` as it was written, and its `origin` in words that a person can follow."""

    decision: Decision
    text: str
    origin: str
    tool: str
    pattern: str | None = None
    """None: every call of the tool."""

    def __str__(self) -> str:
        return f"{self.decision} {self.text} ({self.origin})"

    def names(self, tool: str) -> bool:
        """Tell if it is about this tool, whatever the call."""
        if {self.tool, tool} <= WRITES or (self.pattern is not None and {self.tool, tool} <= READS):
            return True
        return fnmatchcase(tool, self.tool)

    def concerns(self, tool: str, use: Use) -> bool:
        """Tell if it is about this tool, or about any tool that uses an argument so."""
        if self.names(tool):
            return True
        match use:
            case Use.READS:
                return self.tool in READS and self.pattern is not None
            case Use.WRITES:
                return self.tool in WRITES
            case Use.RUNS:
                return self.tool == COMMAND_TOOL
            case Use.SENDS:
                return (
                    self.decision is not Decision.ALLOW and self.tool in _SENDS and self.pattern is not None
                )
            case _:
                return False

    @property
    def covers_all(self) -> bool:
        """It applies to every call of its tools."""
        return self.pattern is None or self.pattern in {"*", "**"}

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The pattern as a command: its words, each a glob; () if it is an exact command."""
        if (self.pattern or "").startswith(EXACTLY):
            return ()
        return tuple(shlex.split(self.pattern or "", posix=True))

    def may_begin_with(self, word: Word) -> bool:
        """Tell if a command whose program is this word may be one that the rule is about."""
        first = self.words[0] if self.words else ""
        if word.kind != "literal" or first in {"*", "**"} or "=" in first:
            return True
        return word_matches(first, word.text) or word_matches(first, word.text.rpartition("/")[2])

    @cached_property
    def path_pattern(self) -> str:
        """The pattern of a rule for files, the home folder in place of `~`."""
        pattern = self.pattern or ""
        home = with_home("~")
        return f"{glob.escape(home)}{pattern[1:]}" if pattern == "~" or pattern.startswith("~/") else pattern

    def matches_path(self, path: str) -> bool:
        """Tell if the path glob matches `path`, relative to the workspace or absolute."""
        if self.covers_all:
            return True
        pattern = self.path_pattern
        if pattern.startswith("/") != path.startswith("/"):
            return False
        return any(path_pattern(one).fullmatch(path.removeprefix("/")) for one in _with_inside(pattern))

    def matches_domain(self, host: str) -> bool:
        """Tell if the pattern matches a host: itself, or `*.domain` for those below it."""
        return self.covers_all or fnmatchcase(host.lower().rstrip("."), (self.pattern or "").lower())

    def is_exactly(self, command: str) -> bool:
        """Tell if the pattern is this command, letter by letter."""
        return self.pattern is not None and self.pattern == exact_pattern(command)


def names_file(rule: PermissionRule, path: str) -> bool:
    """Tell if a rule allows a file, relative to the workspace, by its own name or by that of the folder for whose sake
    it is special (`.vscode/**`), and not by a wildcard.
    """
    parts = path.split("/")
    special = {part for part in parts if part.casefold() in BY_NAME} or {*parts[-2:]}
    return (
        rule.decision is Decision.ALLOW
        and not rule.covers_all
        and bool(special & set(rule.path_pattern.split("/")))
        and rule.matches_path(path)
    )


def host_of(url: str) -> str:
    """Read the host from an address; "" if it names none."""
    try:
        parts = urlsplit(url)
        return (parts.hostname or "").rstrip(".") if parts.scheme in {"http", "https", "ftp", "ssh"} else ""
    except ValueError:
        return ""


def _with_inside(pattern: str) -> tuple[str, ...]:
    """A folder's name covers what is in it."""
    if pattern.endswith("/**"):
        return pattern.removesuffix("/**") or "/", pattern
    bare = pattern.rstrip("/")
    return (bare, f"{bare}/**") if "/" in bare or pattern.endswith("/") else (bare, f"**/{bare}/**")


def parse_rule(decision: Decision, text: str, origin: str) -> PermissionRule:
    """Read a rule from its text. Raises `ValueError` with what is wrong with it."""
    found = _RULE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no rule: write `tool` or `tool(pattern)`, as `bash(pytest *)`")
    tool, pattern = found[1], found[2]
    if pattern is not None:
        pattern = pattern.strip()
        if not pattern:
            raise ValueError(f"{text!r} has an empty pattern; `{tool}` alone applies to every call")
        try:
            if tool == COMMAND_TOOL:
                if not pattern.startswith(EXACTLY):
                    shlex.split(pattern, posix=True)
            elif tool in READS | WRITES:
                for one in _with_inside(pattern):
                    path_pattern(one)
        except (GlobError, ValueError) as error:
            raise ValueError(f"{text!r} has a pattern that cannot be read: {str(error).lower()}") from error
    return PermissionRule(decision, text.strip(), origin, tool, pattern)


EXACTLY = "="
"""Before a command in a pattern: this command and no other, letter by letter."""


def exact_pattern(command: str) -> str:
    """Write the pattern that matches one command as it stands."""
    return f"{EXACTLY}{command.strip()}"


def literal_pattern(words: Sequence[Word]) -> str:
    """Write the pattern that matches these words alone."""
    return " ".join(shlex.quote(re.sub(r"([*?\[])", r"[\1]", word.text)) for word in words)


def word_matches(pattern: str, text: str) -> bool:
    """Match one word of a pattern with one word of a command."""
    return fnmatchcase(text, pattern)


def words_match(
    patterns: Sequence[str],
    words: Sequence[Word],
    covered: Callable[[Word], bool],
    same: Callable[[str, Word], bool],
) -> bool:
    """Match a command's words with a pattern's, of which `*` takes any number that are `covered`, `**` any at all."""
    reachable = {0}
    for word in words:
        after: set[int] = set()
        for place in _past_stars(patterns, reachable):
            if place == len(patterns):
                continue
            pattern = patterns[place]
            if pattern == "**" or (pattern == "*" and covered(word)):
                after.add(place)
            elif pattern != "*" and same(pattern, word):
                after.add(place + 1)
        reachable = after
        if not reachable:
            return False
    return len(patterns) in _past_stars(patterns, reachable)


def _past_stars(patterns: Sequence[str], places: set[int]) -> set[int]:
    """These places in a pattern, and those behind stars that take nothing."""
    found = set(places)
    for place in places:
        while place < len(patterns) and patterns[place] in {"*", "**"}:
            place += 1
            found.add(place)
    return found
