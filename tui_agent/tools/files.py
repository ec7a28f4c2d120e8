"""The tools that read, write and edit files of the workspace.

Files are opened and replaced by `workspace`, edits are made by `edits`, bytes become text in `encoding`; what
is here is the tools themselves and what they say. All disk work is done in threads.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, TypeVar

from tui_agent.core.tool_facts import Effect, ToolFacts, Use, Uses
from tui_agent.quantities import counted
from tui_agent.terminal_text import escaped_line
from tui_agent.tools.diffs import bounded_diff, unified_diff
from tui_agent.tools.edits import EditError, Replacement, apply_edits, with_line_ends_of
from tui_agent.tools.encoding import SAMPLE, UTF8, BinaryContentError, Encoding, detect, printable
from tui_agent.tools.errors import ToolError
from tui_agent.tools.file_checks import FileChecks
from tui_agent.tools.hints import missing_file
from tui_agent.tools.output import DEFAULT_LIMIT
from tui_agent.tools.tool import ToolContext, ToolOutput, schema, text
from tui_agent.tools.workspace import Workspace, os_failure, quoted

_LINES = 2_000
_LINE_CHARACTERS = 2_000
_COUNTED = 64 * 1024 * 1024
"""Characters after the shown part that are still read to tell the number of lines."""
_SKIPPED = 512 * 1024 * 1024
"""Characters that are skipped to reach `offset`, at most."""
_EDITABLE = 20 * 1024 * 1024
"""Bytes of a file that is edited, or whose replacement is shown as a diff."""

_PATH = text("Path relative to the workspace.")
R = TypeVar("R")


@dataclass(frozen=True)
class ReadFile:
    """`read_file(path, offset?, limit?)`: lines with their numbers; never loads a huge file whole."""

    output_limit: int = DEFAULT_LIMIT
    name: ClassVar[str] = "read_file"
    effect: ClassVar[Effect] = Effect.READ
    uses: ClassVar[Uses] = {"path": Use.READS, "offset": Use.SAYS, "limit": Use.SAYS}
    facts: ClassVar[ToolFacts] = ToolFacts(
        subject="path", beside=(("offset", " from line {}"),), looks="file", folded=3
    )
    description: ClassVar[str] = (
        "Read a text file of the workspace. Each line comes as its number, a tab, and the line; the number "
        f"and the tab are not part of the file. Reads up to {_LINES} lines; go on with `offset`. Also reads "
        "the files in which long outputs are kept, by the name shown with the output."
    )
    parameters: ClassVar[dict[str, Any]] = schema(
        "path",
        path=_PATH,
        offset={"type": "integer", "minimum": 1, "description": "First line to read, counted from 1."},
        limit={"type": "integer", "minimum": 1, "description": f"How many lines (default {_LINES})."},
    )

    def preview(self, arguments: dict[str, Any], workspace: Workspace) -> str:
        """The path, and the lines if only some are read."""
        offset, limit = arguments.get("offset"), arguments.get("limit")
        lines = f" from line {offset or 1}" if offset or limit else ""
        return f"read {arguments['path']}{lines}{f', {limit} lines' if limit else ''}"

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
        """Raises `ToolError`: outside, missing, a directory, binary, `offset` beyond the end."""
        return await asyncio.to_thread(self._read, arguments, context)

    def _read(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
        name = str(arguments["path"])
        offset, limit = int(arguments.get("offset", 1)), int(arguments.get("limit", _LINES))
        path = context.workspace.resolve(name, also=context.output_dir)
        shown = context.workspace.shown(path)

        def read() -> ToolOutput:
            with context.workspace.open(path) as stream:
                encoding = _detect(stream.read(SAMPLE), shown)
                digest = _digest_of(stream) if path.is_relative_to(context.workspace.root) else ""
                stream.seek(len(encoding.mark))
                with io.TextIOWrapper(stream, encoding.codec, "replace", newline="\n") as text:
                    content = _numbered_lines(text, shown, offset, limit, self.output_limit)
            files = {context.workspace.named(path): digest} if digest else {}
            return ToolOutput(content, unframed=content.partition("\t")[2], files=files)

        return _guard(context.workspace, name, path, f"read {quoted(shown)}", read)


@dataclass(frozen=True)
class WriteFile:
    """`write_file(path, content)`: a whole file, in one step or not at all."""

    checks: FileChecks = field(default_factory=FileChecks)
    name: ClassVar[str] = "write_file"
    effect: ClassVar[Effect] = Effect.WRITE
    uses: ClassVar[Uses] = {"path": Use.WRITES, "content": Use.SAYS}
    facts: ClassVar[ToolFacts] = ToolFacts(subject="path", folded=8)
    when_cut: ClassVar[str] = (
        "Write the file in several steps: a short first part with write_file, then each further part with "
        "edit_file, which replaces the last lines by themselves and what follows them."
    )
    description: ClassVar[str] = (
        "Create a file of the workspace, or replace all that an existing one holds. Missing directories are "
        "made. A new file is in UTF-8, exactly as given; an existing one keeps its encoding and line ends. It is "
        "refused when the file changed since you read or wrote it. To change a part of a file, use edit_file."
    )
    parameters: ClassVar[dict[str, Any]] = schema(
        "path",
        "content",
        path=_PATH,
        content={"type": "string", "description": "The whole content of the file."},
    )

    def preview(self, arguments: dict[str, Any], workspace: Workspace) -> str:
        """The whole unified diff, or why the call would fail."""
        return _preview(lambda: _prepare_write(arguments, workspace))

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
        """Raises `ToolError`: outside, a directory, changed since it was read, permissions, a full disk (transient)."""
        change, done = await asyncio.to_thread(self._prepare, arguments, context)
        return await _carried_out(change, done, context, self.checks)

    def _prepare(self, arguments: dict[str, Any], context: ToolContext) -> tuple[_Change, str]:
        change = _prepare_write(arguments, context.workspace)
        change.refuse_if_changed(context.known_files)
        content = str(arguments["content"])
        lines = content.count("\n") + (not content.endswith("\n"))
        size = f"{counted(lines, 'line')}, {len(change.after):,} bytes"
        done = (
            f"Created {change.shown}" if change.before is None else f"Replaced the content of {change.shown}"
        )
        return change, f"{done} ({size})."


_OLD = text("The text to replace, exactly.")
_NEW = {"type": "string", "description": "What takes its place; may be empty."}
_TEXT, _ANY, _FLAG = text(), {"type": "string"}, {"type": "boolean"}
_ALL = {"type": "boolean", "description": "Replace every occurrence (default false)."}


@dataclass(frozen=True)
class EditFile:
    """`edit_file(path, old, new, replace_all?, edits?)`: pieces of text by others."""

    checks: FileChecks = field(default_factory=FileChecks)
    name: ClassVar[str] = "edit_file"
    effect: ClassVar[Effect] = Effect.WRITE
    uses: ClassVar[Uses] = {
        "path": Use.WRITES,
        **dict.fromkeys(("old", "new", "replace_all", "edits"), Use.SAYS),
    }
    facts: ClassVar[ToolFacts] = ToolFacts(subject="path", folded=14)
    when_cut: ClassVar[str] = (
        "Make several smaller edits, each with only as much of 'old' as is needed to find the place."
    )
    description: ClassVar[str] = (
        "Replace `old` by `new` in a file of the workspace. `old` is exactly what the file holds, with its "
        "indentation and without the line numbers that read_file shows, and occurs once, unless `replace_all` is "
        "true. More changes of the same file go into `edits`; all of them are made, in their order, or none. It is "
        "refused when the file changed since you read or wrote it."
    )
    parameters: ClassVar[dict[str, Any]] = schema(
        "path",
        "old",
        "new",
        path=_PATH,
        old=_OLD,
        new=_NEW,
        replace_all=_ALL,
        edits={
            "type": "array",
            "minItems": 1,
            "maxItems": 200,
            "description": "Further replacements, made after that of `old`.",
            "items": schema("old", "new", old=_TEXT, new=_ANY, replace_all=_FLAG),
        },
    )
    accepted: ClassVar[dict[str, Any]] = {
        **parameters,
        "required": ["path"],
        "if": {"required": ["edits"]},
        "then": {"dependentRequired": {"old": ["new"], "new": ["old"], "replace_all": ["old"]}},
        "else": {"required": ["old", "new"]},
    }
    """Models also send `edits` alone."""

    def preview(self, arguments: dict[str, Any], workspace: Workspace) -> str:
        """The whole unified diff, or why the call would fail."""
        return _preview(lambda: _prepare_edit(arguments, workspace)[0])

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
        """Raises `ToolError`: outside, missing, binary, changed since it was read, `old` not found or ambiguous,
        permissions, a full disk.
        """
        change, said = await asyncio.to_thread(
            _prepare_edit, arguments, context.workspace, context.known_files
        )
        return await _carried_out(change, f"Edited {change.shown}: {said}", context, self.checks)


@dataclass(frozen=True)
class _Change:
    """A file's bytes before (None: no file) and after."""

    name: str
    path: Path
    named: str
    before: bytes | None
    after: bytes
    encoding: Encoding = UTF8

    @property
    def shown(self) -> str:
        """Its path on one line."""
        return escaped_line(self.named)

    def diff(self) -> str:
        """The whole change; "" if either side is no text or too large to compare."""
        if max(len(self.before or b""), len(self.after)) > _EDITABLE:
            return ""
        try:
            codec = self.encoding if self.before is None else detect(self.before)
            before = codec.decode(self.before or b"")
            after = self.encoding.decode(self.after)
        except (UnicodeError, BinaryContentError):
            before = (self.before or b"").decode("utf-8", "replace")
            after = self.after.decode("utf-8", "replace")
        return printable(unified_diff(before, after, self.shown, new=self.before is None))

    def refuse_if_changed(self, known_files: Mapping[str, str]) -> None:
        """Raises `ToolError` if the file is another than the model read or wrote last."""
        known = known_files.get(self.named)
        if known is not None and self.before is not None and _digest(self.before) != known:
            raise ToolError(
                f"{quoted(self.shown)} changed since you read it; read it again, then make the change. Nothing was "
                "changed now."
            )

    def write(self, workspace: Workspace) -> ToolOutput:
        """Put the file in its place, which makes it known."""
        diff = self.diff()
        _guard(
            workspace, self.name, self.path, f"write {quoted(self.shown)}",
            lambda: workspace.replace(self.path, self.after),
        )  # fmt: skip
        return self.output("", diff)

    def output(self, content: str, diff: str) -> ToolOutput:
        """The result of the change."""
        files = {self.named: _digest(self.after)}
        before = {} if self.before is None else {self.named: _digest(self.before)}
        changed = (self.named,)
        return ToolOutput(content, changed=changed, diff=bounded_diff(diff), files=files, before=before)


_FORMATTED = 6_000
"""Characters of what a formatter changed that the model reads."""


async def _carried_out(change: _Change, done: str, context: ToolContext, checks: FileChecks) -> ToolOutput:
    """Write the file, format and check it, and say that it is `done`."""
    if change.before == change.after:
        said = f"{change.shown} already holds exactly this. Nothing was changed."
        return ToolOutput(said, files={change.named: _digest(change.after)})
    output = await asyncio.to_thread(change.write, context.workspace)
    notices = [done]
    if checks.formats(change.named):
        notices += await checks.formatted(change.named, context)
        now = await asyncio.to_thread(_bytes_now, change, context.workspace)
        if now is not None and now != change.after:
            by_formatter = replace(change, before=change.after, after=now)
            shown = bounded_diff(await asyncio.to_thread(by_formatter.diff), _FORMATTED)
            notices.append(f"Then it was formatted, which changed this:\n{shown}".rstrip("\n"))
            change = replace(change, after=now)
            output = change.output("", await asyncio.to_thread(change.diff))
    notices += await checks.checked(change.named, context)
    return replace(output, content="\n".join(notices))


def _bytes_now(change: _Change, workspace: Workspace) -> bytes | None:
    try:
        with workspace.open(change.path) as stream:
            return stream.read(_EDITABLE)
    except (OSError, ToolError):
        return None


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _digest_of(stream: BinaryIO) -> str:
    """Of a whole file; "" for one too large to be edited."""
    stream.seek(0)
    data = stream.read(_EDITABLE + 1)
    return _digest(data) if len(data) <= _EDITABLE else ""


def _prepare_write(arguments: dict[str, Any], workspace: Workspace) -> _Change:
    name = str(arguments["path"])
    path = workspace.resolve_for_writing(name)
    shown = workspace.shown(path)

    def read() -> bytes | None:
        try:
            with workspace.open(path) as stream:
                return stream.read()
        except FileNotFoundError:
            return None

    before = _guard(workspace, name, path, f"write {quoted(shown)}", read)
    try:
        data, encoding = _as_before(str(arguments["content"]), before)
    except UnicodeEncodeError as error:
        raise ToolError(
            f"'content' holds half of a character (at {error.start}); it cannot be written as UTF-8."
        ) from None
    return _Change(name, path, workspace.named(path), before, data, encoding)


def _as_before(content: str, before: bytes | None) -> tuple[bytes, Encoding]:
    """`content` in the encoding, with the byte order mark and with the line ends of the file it replaces, or
    in UTF-8 if that file was empty, no text, or has no such characters. Raises `UnicodeEncodeError`.
    """
    if before and len(before) <= _EDITABLE:
        try:
            encoding = detect(before)
            fitted = with_line_ends_of(encoding.decode(before), content)
            content.encode("utf-8")
            if encoding.codec != "utf-8" or encoding.mark:
                return encoding.encode(fitted), encoding
            return fitted.encode("utf-8"), UTF8
        except (BinaryContentError, UnicodeError):
            pass
    return content.encode("utf-8"), UTF8


def _replacements(arguments: dict[str, Any]) -> list[Replacement]:
    first = [arguments] if "old" in arguments else []
    return [
        Replacement(str(edit["old"]), str(edit["new"]), bool(edit.get("replace_all")))
        for edit in (*first, *arguments.get("edits", ()))
    ]


def _prepare_edit(
    arguments: dict[str, Any], workspace: Workspace, known_files: Mapping[str, str] | None = None
) -> tuple[_Change, str]:
    """The change, and what it does in words."""
    name = str(arguments["path"])
    replacements = _replacements(arguments)
    path = workspace.resolve_for_writing(name)
    shown = workspace.shown(path)

    def read() -> bytes:
        with workspace.open(path) as stream:
            return stream.read(_EDITABLE + 1)

    data = _guard(workspace, name, path, f"edit {quoted(shown)}", read)
    if len(data) > _EDITABLE:
        raise ToolError(
            f"{quoted(shown)} is larger than {_EDITABLE:,} bytes. Edit it with a command (sed, a script) instead."
        )
    encoding = _detect(data, shown)
    unchanged = _Change(name, path, workspace.named(path), data, data, encoding)
    unchanged.refuse_if_changed(known_files or {})
    try:
        edit = apply_edits(encoding.decode(data), replacements)
        after = encoding.encode(edit.text)
    except EditError as error:
        raise ToolError(f"{quoted(shown)}: {printable(str(error))}") from None
    except UnicodeEncodeError as error:
        raise ToolError(
            f"{quoted(shown)} is kept in {encoding.codec}, which has no {error.object[error.start]!r}. "
            "Use other characters, or replace the whole file with write_file, in UTF-8."
        ) from None
    except UnicodeDecodeError as error:
        raise ToolError(f"{quoted(shown)} is damaged {encoding.codec} text: {error.reason}.") from None
    where = ", ".join(map(str, edit.lines[:10])) + (", ..." if len(edit.lines) > 10 else "")
    if len(replacements) > 1:
        said = f"made {len(replacements)} edits, {counted(len(edit.lines), 'occurrence')} replaced."
    elif len(edit.lines) > 1:
        said = f"replaced {len(edit.lines)} occurrences, at lines {where}."
    else:
        said = f"replaced 1 occurrence, at line {where}."
    return replace(unchanged, after=after), f"{said} {edit.notice}".rstrip()


def _preview(prepare: Callable[[], _Change]) -> str:
    try:
        change = prepare()
    except ToolError as error:
        return f"This call would fail: {error.message}"
    if change.before == change.after:
        return f"{change.shown} already holds exactly this. Nothing would be changed."
    return (
        change.diff()
        or f"{change.shown}: {len(change.before or b''):,} bytes become {len(change.after):,} bytes."
    )


def _guard(workspace: Workspace, name: str, path: Path, doing: str, work: Callable[[], R]) -> R:
    """Do the disk work; turn the system's errors into the tool's, with the nearest names for a missing
    file.
    """
    try:
        return work()
    except FileNotFoundError:
        raise ToolError(missing_file(workspace, name, path)) from None
    except OSError as error:
        raise os_failure(error, doing) from None


def _detect(sample: bytes, shown: str) -> Encoding:
    try:
        return detect(sample)
    except BinaryContentError:
        raise ToolError(
            f"{quoted(shown)} is a binary file, not text. Look at it with a command instead, such as 'file' or "
            "'xxd … | head'."
        ) from None


def _numbered_lines(text: io.TextIOWrapper, shown: str, offset: int, limit: int, characters: int) -> str:
    """Lines `offset` to `offset + limit - 1` with their numbers, up to `characters`, and how to read on."""
    number, skipped = 0, 0
    while number < offset - 1 and skipped < _SKIPPED:
        piece = text.readline(_LINE_CHARACTERS * 100)
        if not piece:
            break
        skipped += len(piece)
        number += piece.endswith("\n")
    if skipped >= _SKIPPED:
        raise ToolError(
            f"Line {offset} is too far into {quoted(shown)} to be read this way. Use a command: sed -n, tail."
        )
    first, size, lines = number + 1, 0, list[str]()
    more = False
    while piece := text.readline(_LINE_CHARACTERS + 1):
        line, size, number = piece, size + 7, number + 1
        dropped = 0
        while not piece.endswith("\n") and (piece := text.readline(_LINE_CHARACTERS * 100)):
            dropped += len(piece.removesuffix("\n"))
        line = line.removesuffix("\n").removesuffix("\r")
        if len(line) > _LINE_CHARACTERS or dropped:
            cut = len(line) - _LINE_CHARACTERS + dropped
            line = f"{line[:_LINE_CHARACTERS]} [... {cut:,} more characters in this line]"
        size += len(line) + 1
        if len(lines) == limit or (lines and size > characters):
            number, more = number - 1, True
            break
        lines.append(f"{number:>6}\t{line}")
    if not lines:
        if offset == 1:
            return f"({shown} is empty)"
        raise ToolError(f"{quoted(shown)} has only {number} lines, so there is nothing from line {offset}.")
    content = "\n".join(lines)
    if more:
        # One line more was read than is shown.
        content += (
            f"\n(lines {first}-{number}, of {_total(text, number + 1)}; read on with offset={number + 1})"
        )
    elif first > 1:
        content += f"\n(lines {first}-{number}, the end)"
    return content


def _total(text: io.TextIOWrapper, seen: int) -> str:
    """The number of lines of a file of which `seen` were read: exactly, if that is cheap to tell."""
    counted, last = 0, "\n"
    while chunk := text.read(1 << 20):
        seen, counted, last = seen + chunk.count("\n"), counted + len(chunk), chunk[-1]
        if counted > _COUNTED:
            return f"more than {seen:,}"
    return str(seen + (last != "\n"))
