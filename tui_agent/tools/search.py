"""Searching a tree in a process of its own: ripgrep if it is installed, else our own engine.

Both answer in ripgrep's JSON lines and follow the same rules (`.gitignore` of the workspace only, hidden
files included, links not followed, binary files left out), so that one reader serves both. A process can be
stopped: on cancellation, after a time, and when an expression never ends.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, Literal
from weakref import WeakKeyDictionary

from tui_agent import processes
from tui_agent.globs import path_pattern
from tui_agent.quantities import counted
from tui_agent.terminal_text import escaped_line
from tui_agent.tools.errors import ToolError
from tui_agent.tools.found_inside import files_inside, lines_inside, same
from tui_agent.tools.search_scope import IgnoreFile, SearchScope
from tui_agent.tools.workspace import quoted

_COUNTED_LINES = 10_000
_COUNTED_FILES = 200_000
_LONGEST_RECORD = 64 * 1024 * 1024
_LONGEST_EXPRESSION = 2_000
_MEMORY = 2 << 30
"""Bytes that a search may take: ripgrep reads whole lines, and a `.gitignore` may be a link to /dev/zero."""
_PACKAGES = os.fspath(Path(__file__).resolve().parents[2])
_SIMPLE_NAME = re.compile(r"[\w.*?-]+", re.ASCII)
_RIPGREP = (
    *("--no-config", "--no-messages", "--no-ignore-messages", "--color", "never", "--sort", "path"),
    *("--hidden", "--no-require-git", "--no-ignore-parent", "--no-ignore-dot"),
    *("--no-ignore-global", "--no-ignore-exclude"),
)


@dataclass(frozen=True)
class MatchedLine:
    """A line that matches: its path as shown, its number from 1, its text, and the column of the match."""

    path: str
    number: int
    text: str
    column: int


@dataclass
class SearchResult:
    """Findings: the first items, the number of all, a mark if that is all, and a remark."""

    items: list[Any] = field(default_factory=list)
    more: int = 0
    complete: bool = True
    notice: str = ""

    def add(self, item: Any, keep: int) -> None:
        if len(self.items) < keep:
            self.items.append(item)
        else:
            self.more += 1

    @property
    def total(self) -> int:
        return len(self.items) + self.more


def check_expression(pattern: str) -> None:
    """Refuse what no engine can be asked. Raises `ToolError`."""
    if len(pattern) > _LONGEST_EXPRESSION:
        raise ToolError(
            f"The expression is longer than {_LONGEST_EXPRESSION:,} characters. Search for a part of it."
        )
    if "\n" in pattern or re.search(r"(?<!\\)(?:\\\\)*\\n", pattern):
        raise ToolError(
            "The expression holds a line break, but lines are matched one by one. Search for one line of it."
        )
    if "\0" in pattern or any("\ud800" <= c <= "\udfff" for c in pattern):
        raise ToolError(
            "The expression holds a character that no text file has (NUL or half of a surrogate pair)."
        )


@dataclass(frozen=True)
class Search:
    """The engine: `auto` is ripgrep if it is on the PATH. `timeout` in seconds."""

    engine: Literal["auto", "ripgrep", "python"] = "auto"
    timeout: float = 30.0

    async def files(self, scope: SearchScope, only: str, keep: int = 500) -> SearchResult:
        """Files whose path fits the glob `only`, in the order of a walk. Raises `ToolError`, `GlobError`."""
        found, fits = SearchResult(), path_pattern(only)

        def take(record: bytes) -> bool:
            path = os.fsdecode(record).removeprefix("./")
            if scope.holds(path) and fits.fullmatch(shown := scope.label + path):
                found.add(shown, keep)
            return found.total < _COUNTED_FILES

        if (ripgrep := self._ripgrep(scope.root)) is not None:
            with IgnoreFile(scope) as ignore:
                argv = [ripgrep, *_RIPGREP, "--ignore-file", ignore, "--files", "--null", *_typed(only), "./"]
                ended = await self._run(argv, b"", scope.top, b"\0", take)
        else:
            ended = await self._run_python({"files": True}, scope, b"\0", take)
        inside = await asyncio.to_thread(files_inside, scope.root, found.items)
        return _left(self._judged(found, ended), inside)

    async def lines(
        self, scope: SearchScope, pattern: str, only: str | None, keep: int = 200
    ) -> SearchResult:
        """Lines that match the expression `pattern`, of files that fit the glob `only`. Raises
        `ToolError`, `GlobError`.
        """
        reader = _LineReader(scope, path_pattern(only) if only else None, keep)
        if (ripgrep := self._ripgrep(scope.root)) is not None:
            with IgnoreFile(scope) as ignore:
                what = f"./{scope.start}" if scope.is_file else "./"
                argv = [
                    ripgrep, *_RIPGREP, "--ignore-file", ignore, "--json", "--crlf", "--no-mmap",
                    *(_typed(only) if only and not scope.is_file else ()), "-e", pattern, "--", what,
                ]  # fmt: skip
                ended = await self._run(argv, b"", scope.top, b"\n", reader.take)
            if (
                not reader.found.items
                and ended.code == 2
                and re.search(r"regex|unrecognized flag|look-", ended.stderr)
            ):
                # Expressions that only Python's dialect has (look-around, back-references) are worth the
                # slower engine.
                return await Search("python", self.timeout).lines(scope, pattern, only, keep)
        else:
            _check_python(pattern)
            request = {"pattern": pattern}
            ended = await self._run_python(request, scope, b"\n", reader.take)
        inside = await asyncio.to_thread(_lines_inside, scope.root, reader.found.items)
        return _left(self._judged(reader.found, ended), inside)

    def _ripgrep(self, root: Path) -> str | None:
        if self.engine == "python":
            return None
        path = processes.own_program("rg", root)
        if path is None and self.engine == "ripgrep":
            raise ToolError("ripgrep (rg) is not installed.")
        return path

    def _judged(self, found: SearchResult, ended: _Ended) -> SearchResult:
        if ended.timed_out:
            if not found.items:
                raise ToolError(
                    f"The search took longer than {self.timeout:g} s and was stopped, with nothing found so "
                    "far. Narrow it to a directory or a kind of file, or use a simpler expression."
                )
            found.complete = False
            found.notice = f"(stopped after {self.timeout:g} s: not everything was searched)"
        elif ended.stopped:
            found.complete = False
        elif "memory allocation" in ended.stderr:
            if not found.items:
                raise ToolError(
                    f"The search was stopped at {_MEMORY >> 20:,} MB of memory: a file holds a very long line, or a "
                    ".gitignore is no plain file. Narrow the search to other files."
                )
            found.complete = False
            found.notice = f"(stopped at {_MEMORY >> 20:,} MB of memory: not everything was searched)"
        elif ended.code not in (0, 1) and not found.items and ended.stderr.strip():
            raise ToolError(f"The search failed: {escaped_line(ended.stderr.strip()[:500])}")
        return found

    async def _run_python(
        self, request: dict[str, Any], scope: SearchScope, separator: bytes, take: Callable[[bytes], bool]
    ) -> _Ended:
        request |= {"top": os.fspath(scope.top), "start": scope.start, "is_file": scope.is_file}
        # `-P`: a file of the workspace must never be imported in scope of a module.
        argv = [sys.executable, "-P", "-m", "tui_agent.tools.search_process"]
        return await self._run(argv, json.dumps(request).encode(), scope.top, separator, take)

    async def _run(
        self, argv: list[str], request: bytes, cwd: Path, separator: bytes, take: Callable[[bytes], bool]
    ) -> _Ended:
        """Run a search and hand each record to `take` until it says False; leaves no process behind."""
        async with _slots():
            return await self._run_now(argv, request, cwd, separator, take)

    async def _run_now(
        self, argv: list[str], request: bytes, cwd: Path, separator: bytes, take: Callable[[bytes], bool]
    ) -> _Ended:
        try:
            child = await processes.start(
                argv, cwd=cwd, env={**processes.without_secrets(os.environ), "PYTHONPATH": _PACKAGES}
            )
        except OSError as error:
            raise ToolError(f"The search could not be started: {error.strerror}.", transient=True) from None
        processes.limit_memory(child, _MEMORY)
        complaints = asyncio.ensure_future(processes.beginning(child.process.stderr, _COMPLAINTS))
        timed_out = stopped = False
        try:
            async with asyncio.timeout(self.timeout):
                await child.send(request)
                stopped = not await _records(child.process.stdout, separator, take)
                if not stopped:
                    await child.process.wait()
        except TimeoutError:
            timed_out = True
        finally:
            await child.end()
        return _Ended(child.code or 0, (await complaints).decode("utf-8", "replace"), timed_out, stopped)


def _lines_inside(root: Path, lines: Iterable[MatchedLine]) -> list[MatchedLine]:
    inside: list[MatchedLine] = []
    for path, group in groupby(lines, key=lambda line: line.path):
        found = list(group)
        there = lines_inside(root, path, (line.number for line in found))
        inside += [line for line in found if same(line.text, there.get(line.number))]
    return inside


def _left(found: SearchResult, inside: list[Any]) -> SearchResult:
    """`found` with what is `inside` alone."""
    gone = len(found.items) - len(inside)
    if gone:
        said = f"({counted(gone, 'result')} left out: changed, or no longer in the workspace, when looked at again)"
        found.items, found.notice = inside, f"{found.notice} {said}".strip()
    return found


_AT_ONCE = 4
_COMPLAINTS = 4_000
_waiting: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


def _slots() -> asyncio.Semaphore:
    """Lets `_AT_ONCE` searches run at a time: a reply may hold hundreds."""
    loop = asyncio.get_running_loop()
    return _waiting.setdefault(loop, asyncio.Semaphore(_AT_ONCE))


@dataclass(frozen=True)
class _Ended:
    code: int
    stderr: str
    timed_out: bool
    stopped: bool


class _LineReader:
    """Reads ripgrep's JSON lines. What was found in a file counts when the file turns out to be text."""

    def __init__(self, scope: SearchScope, only: re.Pattern[str] | None, keep: int) -> None:
        self.found = SearchResult()
        self._place = scope
        self._only = only
        self._keep = keep
        self._pending = SearchResult()

    def take(self, record: bytes) -> bool:
        """One record; False when enough is counted."""
        message = json.loads(record)
        data = message["data"]
        match message["type"]:
            case "begin":
                self._pending = SearchResult()
            case "match" if self._wanted(
                shown := self._place.label + _text(data["path"]).removeprefix("./"), data
            ):
                if self.found.total + self._pending.total < self._keep:
                    self._pending.items.append(_line(shown, data))
                else:
                    self._pending.more += 1
            case "end":
                if data.get("binary_offset") is None:
                    self._keep_pending()
                self._pending = SearchResult()
        if self.found.total + self._pending.total < _COUNTED_LINES:
            return True
        self._keep_pending()
        return False

    def _keep_pending(self) -> None:
        self.found.items += self._pending.items
        self.found.more += self._pending.more

    def _wanted(self, shown: str, data: dict[str, Any]) -> bool:
        if not self._place.holds(_text(data["path"]).removeprefix("./")):
            return False
        return self._only is None or self._only.fullmatch(shown) is not None


def _line(path: str, data: dict[str, Any]) -> MatchedLine:
    text = _text(data["lines"]).rstrip("\n").removesuffix("\r")
    start = data["submatches"][0]["start"] if data["submatches"] else 0
    column = len(text.encode("utf-8", "surrogateescape")[:start].decode("utf-8", "replace"))
    return MatchedLine(path, data["line_number"], text, column)


def _text(value: dict[str, str]) -> str:
    if "text" in value:
        return value["text"]
    return base64.b64decode(value["bytes"]).decode("utf-8", "surrogateescape")


def _check_python(pattern: str) -> None:
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ToolError(
            f"The pattern {quoted(pattern)} is not a regular expression: {error}. "
            "Put a backslash before characters that stand for themselves, such as \\( \\[ \\{ \\. \\*."
        ) from None


def _typed(glob: str) -> tuple[str, ...]:
    """Options that make ripgrep pass over files whose name cannot fit `glob`; its `--glob` would override
    ignores.
    """
    name = glob.rpartition("/")[2]
    if "**" in name or not _SIMPLE_NAME.fullmatch(name):
        return ()
    return ("--type-add", f"wanted:{name}", "--type", "wanted")


async def _records(
    stream: asyncio.StreamReader | None, separator: bytes, take: Callable[[bytes], bool]
) -> bool:
    """Hand on each record of a stream; False when `take` has enough."""
    rest = bytearray()
    while stream is not None and (chunk := await stream.read(1 << 18)):
        rest += chunk
        if separator in chunk:
            *whole, last = bytes(rest).split(separator)
            rest = bytearray(last)
            for record in whole:
                if record and not take(record):
                    return False
        if len(rest) > _LONGEST_RECORD:
            raise ToolError("A file holds a line too long to search. Narrow the search to other files.")
    return True
