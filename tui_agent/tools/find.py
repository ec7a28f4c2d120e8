"""The tools that find things: files by name, lines by content, what a directory holds.

Searching itself is a process of its own (see `search`), so that it can be stopped; here is what is asked and
shown.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from tui_agent.core.tool_facts import Effect, ToolFacts, Use, Uses
from tui_agent.globs import GlobError, path_pattern
from tui_agent.terminal_text import escaped_line
from tui_agent.tools.encoding import printable
from tui_agent.tools.errors import ToolError
from tui_agent.tools.hints import missing_file
from tui_agent.tools.ignore import IgnoreChain
from tui_agent.tools.output import DEFAULT_LIMIT
from tui_agent.tools.search import MatchedLine, Search, check_expression
from tui_agent.tools.search_scope import SearchScope
from tui_agent.tools.tool import ToolContext, ToolOutput, schema, text
from tui_agent.tools.walk import chain_at
from tui_agent.tools.workspace import Workspace, is_directory, os_failure, quoted

_FILES = 500
_MATCHES = 200
_ENTRIES = 500
_LINE_CHARACTERS = 300
_BEFORE_MATCH = 100


@dataclass(frozen=True)
class Glob:
    """`glob(pattern)`: names of files, sorted."""

    output_limit: int = DEFAULT_LIMIT
    search: Search = field(default_factory=Search)
    name: ClassVar[str] = "glob"
    effect: ClassVar[Effect] = Effect.READ
    uses: ClassVar[Uses] = {"pattern": Use.READS}
    facts: ClassVar[ToolFacts] = ToolFacts(subject="pattern", looks="search")
    description: ClassVar[str] = (
        "Find files of the workspace by name. `*` and `?` match within a name, `**` any directories, {a,b} "
        "either. A pattern without `/` matches names at any depth: *.py, src/**/*.ts, tests/test_{a,b}*.py. "
        "What .gitignore leaves out is left out, unless the pattern names an ignored directory."
    )
    parameters: ClassVar[dict[str, Any]] = schema(
        "pattern",
        pattern=text("The glob, relative to the workspace."),
    )

    def preview(self, arguments: dict[str, Any], workspace: Workspace) -> str:
        return f"find files named {arguments['pattern']}"

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
        """Raises `ToolError`: not a glob, leads out of the workspace, the search failed or took too long."""
        workspace = context.workspace
        pattern = _inside(str(arguments["pattern"]), workspace)
        fixed = _fixed_part(pattern)
        start = await asyncio.to_thread(workspace.resolve, fixed or ".")
        if not is_directory(start) or start != workspace.root / fixed:
            # The names of a directory reached by a link are those behind it: nothing is below the name
            # itself.
            return ToolOutput(await asyncio.to_thread(_no_files, workspace, pattern))
        place = await asyncio.to_thread(SearchScope.at, workspace.root, start)
        found = await self.search.files(place, pattern, _FILES)
        shown = _fitting(map(escaped_line, found.items), self.output_limit)
        if not shown:
            return ToolOutput(found.notice or await asyncio.to_thread(_no_files, workspace, pattern))
        return ToolOutput(_with_rest(shown, found.total, "files", found.complete, found.notice))


@dataclass(frozen=True)
class Grep:
    """`grep(pattern, path?, glob?)`: matching lines as `path:line: text`, sorted by path."""

    output_limit: int = DEFAULT_LIMIT
    search: Search = field(default_factory=Search)
    name: ClassVar[str] = "grep"
    effect: ClassVar[Effect] = Effect.READ
    uses: ClassVar[Uses] = {"pattern": Use.SAYS, "path": Use.READS, "glob": Use.SAYS}
    facts: ClassVar[ToolFacts] = ToolFacts(
        subject="pattern", beside=(("path", " in {}"), ("glob", " in {}")), looks="search", folded=5
    )
    description: ClassVar[str] = (
        "Search the lines of the workspace's text files for a regular expression; results come as path:line: "
        "text. Start with (?i) to ignore case. `path` narrows it to a directory or file, `glob` to files by "
        "name (*.py, src/**/*.ts). What .gitignore leaves out is searched only when `path` names it."
    )
    parameters: ClassVar[dict[str, Any]] = schema(
        "pattern",
        pattern=text("The regular expression, matched line by line."),
        path=text("Directory or file (default: the workspace)."),
        glob=text("Only files whose name or path fits."),
    )

    def preview(self, arguments: dict[str, Any], workspace: Workspace) -> str:
        """The expression and the scope of the search."""
        only = f", in files named {arguments['glob']}" if "glob" in arguments else ""
        return f"search for {arguments['pattern']} in {arguments.get('path', '.')}{only}"

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
        """Raises `ToolError`: not an expression or glob, outside, missing path, the search failed or took
        too long.
        """
        workspace = context.workspace
        pattern, name = str(arguments["pattern"]), str(arguments.get("path", "."))
        check_expression(pattern)
        only = _inside(str(arguments["glob"]), workspace) if "glob" in arguments else None
        start = await asyncio.to_thread(_existing, workspace, name, context.output_dir)
        place = await asyncio.to_thread(SearchScope.at, workspace.root, start)
        found = await self.search.lines(place, pattern, only, _MATCHES)
        may_read = {path: context.may_read(path) for path in {match.path for match in found.items}}
        kept_back = [path for path, may in may_read.items() if not may]
        readable = [match for match in found.items if may_read[match.path]]
        shown = _fitting(map(_shown_line, readable), self.output_limit)
        notice = found.notice
        if kept_back:
            files = "a file" if len(kept_back) == 1 else f"{len(kept_back)} files"
            notice = f"{notice} Matches in {files} are left out: a permission rule keeps that from being read.".strip()
        if not shown:
            return ToolOutput(notice or "No matches.")
        total = len(readable) + found.more
        return ToolOutput(_with_rest(shown, total, "matches", found.complete, notice))


@dataclass(frozen=True)
class ListDir:
    """`list_dir(path?)`: one directory, sorted by name; directories end in `/`, links in `@`."""

    output_limit: int = DEFAULT_LIMIT
    name: ClassVar[str] = "list_dir"
    effect: ClassVar[Effect] = Effect.READ
    uses: ClassVar[Uses] = {"path": Use.READS}
    facts: ClassVar[ToolFacts] = ToolFacts(subject="path", looks="folder")
    description: ClassVar[str] = (
        "List one directory of the workspace: directories end in /, symbolic links in @, files come with "
        "their size in bytes. Names that .gitignore leaves out come last, without what they hold."
    )
    parameters: ClassVar[dict[str, Any]] = schema(
        path=text("The directory (default: the workspace)."),
    )

    def preview(self, arguments: dict[str, Any], workspace: Workspace) -> str:
        return f"list {arguments.get('path', '.')}"

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
        """Raises `ToolError`: outside, missing, not a directory, permissions."""
        return ToolOutput(await asyncio.to_thread(self._list, str(arguments.get("path", ".")), context))

    def _list(self, name: str, context: ToolContext) -> str:
        workspace = context.workspace
        directory = _existing(workspace, name, context.output_dir)
        shown = workspace.shown(directory)
        if not is_directory(directory):
            raise ToolError(f"{quoted(shown)} is a file, not a directory. Use read_file to read it.")
        inside = directory.is_relative_to(workspace.root)
        top = workspace.root if inside else directory
        start = directory.relative_to(top).as_posix() if directory != top else ""
        chain, prefix = chain_at(top, start), f"{start}/" if start else ""
        if chain is None:
            # An ignored directory is listed by its own rules: whoever names it wants to see it.
            chain, prefix = IgnoreChain().entering("", directory), ""
        kept, ignored = list[str](), list[str]()
        try:
            with workspace.scan(directory) as scan:
                for item in sorted(scan, key=lambda item: os.fsencode(item.name)):
                    is_dir = item.is_dir(follow_symlinks=False)
                    left_out = chain.ignores(prefix + item.name, directory=is_dir)
                    (ignored if left_out else kept).append(_entry(item, is_dir))
        except OSError as error:
            raise os_failure(error, f"list {quoted(shown)}") from None
        lines, size = list[str](), 0
        for line in kept:
            if len(lines) == _ENTRIES or size + len(line) > self.output_limit:
                break
            lines.append(line)
            size += len(line) + 1
        if len(lines) < len(kept):
            lines.append(
                f"[... {len(kept) - len(lines):,} of {len(kept):,} entries left out here; use glob ...]"
            )
        if ignored:
            names = ", ".join(line.partition("  ")[0] for line in ignored[:20])
            lines.append(
                f"(ignored: {names}{f' and {len(ignored) - 20:,} more' if len(ignored) > 20 else ''})"
            )
        return "\n".join(lines) or f"({shown} is empty)"


def _entry(item: os.DirEntry[str], is_dir: bool) -> str:
    name = escaped_line(item.name)
    if is_dir:
        return f"{name}/"
    if item.is_symlink():
        return f"{name}@"
    try:
        return f"{name}  {item.stat(follow_symlinks=False).st_size:,}"
    except OSError:
        return name


def _existing(workspace: Workspace, name: str, also: Path) -> Path:
    path = workspace.resolve(name, also=also)
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise ToolError(missing_file(workspace, name, path, kind="file or directory")) from None
    except OSError as error:
        raise os_failure(error, f"look at {quoted(workspace.shown(path))}") from None
    if not stat.S_ISDIR(mode):
        workspace.only_regular(mode, path)
    return path


def _inside(pattern: str, workspace: Workspace) -> str:
    """A glob relative to the workspace. Raises `ToolError` when it leads out or is none."""
    absolute = f"{workspace.root.as_posix()}/"
    pattern = pattern.removeprefix(absolute)
    while pattern.startswith("./"):
        pattern = pattern[2:]
    if pattern.startswith("/") or ".." in pattern.split("/") or "\0" in pattern or not pattern:
        raise ToolError(
            f"The pattern {quoted(pattern)} leads out of the workspace. Give one relative to it, such as "
            "'src/**/*.py'."
        )
    try:
        path_pattern(pattern)
    except GlobError as error:
        raise ToolError(f"The pattern {quoted(pattern)} is not a glob: {escaped_line(str(error))}.") from None
    return pattern


def _fixed_part(pattern: str) -> str:
    """The directories that the pattern names outright, without wildcards."""
    fixed: list[str] = []
    for part in pattern.split("/")[:-1]:
        if any(c in part for c in "*?[{\\") or not part:
            break
        fixed.append(part)
    return "/".join(fixed)


def _no_files(workspace: Workspace, pattern: str) -> str:
    text = "No files match."
    try:
        if workspace.resolve(pattern).is_dir():
            place = pattern.rstrip("/")
            return f"{text} {quoted(place)} is a directory: use {quoted(f'{place}/**')} for the files in it."
    except (ToolError, OSError):
        pass
    return text


def _shown_line(match: MatchedLine) -> str:
    text, column = match.text, match.column
    start = max(0, column - _BEFORE_MATCH) if column > _LINE_CHARACTERS - _BEFORE_MATCH else 0
    cut = text[start : start + _LINE_CHARACTERS]
    before, after = "[...] " if start else "", " [...]" if start + _LINE_CHARACTERS < len(text) else ""
    return f"{escaped_line(match.path)}:{match.number}: {before}{printable(cut)}{after}"


def _fitting(lines: Iterable[str], limit: int) -> list[str]:
    """Those that fit into `limit` characters."""
    shown, size = list[str](), 0
    for line in lines:
        if size + len(line) <= limit:
            shown.append(line)
            size += len(line) + 1
    return shown


def _with_rest(shown: list[str], count: int, what: str, complete: bool, notice: str) -> str:
    if len(shown) < count or not complete:
        of = f"of {count:,}" if complete else f"of more than {count:,}"
        shown.append(f"[... the first {len(shown):,} {of} {what}; narrow the search to see others ...]")
    if notice:
        shown.append(notice)
    return "\n".join(shown)
