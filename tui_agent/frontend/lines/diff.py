"""A unified diff as numbered lines, added and removed lines marked by sign and by colour."""

from __future__ import annotations

import re
from itertools import islice, zip_longest
from typing import NamedTuple

from tui_agent.frontend.lines.highlight import highlight, language_of
from tui_agent.frontend.lines.styled import Line, Span, fit, width_of, wrap, wrap_spans
from tui_agent.terminal_text import sanitize

_HUNK = re.compile(
    r"^@@ -(?P<old>\d+)(?:,(?P<olds>\d+))? \+(?P<new>\d+)(?:,(?P<news>\d+))? @@ ?(?P<heading>.*)$"
)
_SIGNS = frozenset("+- ")

_MOST_LINES = 20_000
_ROLES = {
    "+": ("diff-add", "on:diff-add-background"),
    "-": ("diff-remove", "on:diff-remove-background"),
}


def diff_counts(diff: str) -> tuple[int, int]:
    added = removed = 0
    in_hunk = False
    for line in diff.split("\n"):
        if line.startswith("@@"):
            in_hunk = True
        elif line.startswith(("--- ", "+++ ")) and not in_hunk:
            continue
        elif line.startswith("+"):
            added += 1
        elif line.startswith("-"):
            removed += 1
    return added, removed


class FileDiff(NamedTuple):
    """The changes of one file, as unified diffs one behind the other."""

    name: str
    diff: str
    added: int
    removed: int


def files_of(patch: str) -> list[FileDiff]:
    """The files of a patch in git's form, in its order."""
    sections = re.split(r"^(?=diff --git )", patch, flags=re.MULTILINE)
    return [
        file_diff(_name_in(section), section) for section in sections if section.startswith("diff --git ")
    ]


def file_diff(name: str, diff: str) -> FileDiff:
    """With its lines counted."""
    pairs = [pair for pairs, _ in _hunks(diff) for pair in pairs]
    removed = sum(old is not None and old.sign == "-" for old, _ in pairs)
    return FileDiff(name, diff, sum(new is not None and new.sign == "+" for _, new in pairs), removed)


def _name_in(section: str) -> str:
    """The path that a section is about: that of the new file, of a file that was deleted the old one's."""
    for mark in ("+++ b/", "--- a/", '+++ "b/', '--- "a/'):
        found = re.search(f"^{re.escape(mark)}(.*)$", section, re.MULTILINE)
        if found is not None:
            return found[1].rstrip('"\t')
    first = section.partition("\n")[0]
    return first.rpartition(" b/")[2]


def draw_diff(diff: str, width: int, limit: int | None = None) -> tuple[list[Line], int]:
    """Up to `limit` lines of the diff, and how many source lines were left out. Long lines are wrapped."""
    rows = list(_rows(diff))
    kept = rows if limit is None or len(rows) <= limit + 1 else rows[:limit]
    digits = max((len(number) for _, number, _ in kept), default=1)
    lines: list[Line] = []
    for kind, number, text in kept:
        lines.extend(_draw(kind, number.rjust(digits), text, width))
    return lines, len(rows) - len(kept)


def _rows(diff: str) -> list[tuple[str, str, str]]:
    """(sign, line number, text) of every line that is shown."""
    old = new = 0
    rows: list[tuple[str, str, str]] = []
    for line in islice(diff.split("\n"), _MOST_LINES):
        hunk = _HUNK.match(line)
        if hunk:
            old, new = int(hunk["old"]), int(hunk["new"])
            if rows:
                rows.append(("@", "", sanitize(hunk["heading"])))
        elif not old and not new:
            continue
        elif line.startswith("+"):
            rows.append(("+", str(new), sanitize(line[1:])))
            new += 1
        elif line.startswith("-"):
            rows.append(("-", str(old), sanitize(line[1:])))
            old += 1
        elif line.startswith(" "):
            rows.append((" ", str(new), sanitize(line[1:])))
            old, new = old + 1, new + 1
    return rows


def _draw(kind: str, number: str, text: str, width: int) -> list[Line]:
    if kind == "@":
        return [(Span(fit(f"{' ' * len(number)} ⋯ {text}".rstrip(), width), "muted"),)]
    role, back = _ROLES.get(kind, ("code", ""))
    room = max(1, width - len(number) - 3)
    lines: list[Line] = []
    for position, piece in enumerate(wrap(text, room)):
        margin = number if not position else " " * len(number)
        sign = kind if not position else " "
        lines.append(
            (
                Span(f"{margin} ", f"{'muted' if not back else role} {back}".strip()),
                Span(f"{sign} ", f"{role} bold {back}".strip()),
                Span(piece, f"{role} {back}".strip()),
                Span("", back),
            )
        )
    return lines


# --- old and new side by side --------------------------------------------------------------------------------

_GAP = " │ "


class _Half(NamedTuple):
    """One line of the old or the new file."""

    sign: str
    number: str
    spans: list[Span]


def draw_sides(file: FileDiff, width: int) -> list[Line]:
    """The file's changes, the old lines at the left and the new ones at the right, in the colours of its language."""
    half = (width - len(_GAP)) // 2
    hunks = list(_hunks(file.diff))
    digits = max((len(one.number) for pairs, _ in hunks for pair in pairs for one in pair if one), default=1)
    language = language_of(file.name)
    lines: list[Line] = []
    for pairs, heading in hunks:
        if lines or heading:
            lines.append((Span(fit(f"{' ' * digits} ⋯ {heading}".rstrip(), width), "muted"),))
        coloured = [_coloured([pair[side] for pair in pairs], language) for side in (0, 1)]
        for left, right in zip(*coloured, strict=True):
            cells = [_cell(one, digits, half) for one in (left, right)]
            for old, new in zip_longest(*cells, fillvalue=(Span(" " * half),)):
                lines.append((*old, Span(_GAP, "faint"), *new))
    return lines


def draw_unified(file: FileDiff, width: int) -> list[Line]:
    """The same in one column."""
    lines: list[Line] = []
    language = language_of(file.name)
    hunks = list(_hunks(file.diff))
    digits = max((len(one.number) for pairs, _ in hunks for pair in pairs for one in pair if one), default=1)
    for pairs, heading in hunks:
        if lines or heading:
            lines.append((Span(fit(f"{' ' * digits} ⋯ {heading}".rstrip(), width), "muted"),))
        olds, news = (_coloured([pair[side] for pair in pairs], language) for side in (0, 1))
        waiting: list[_Half] = []
        for old, new in zip(olds, news, strict=True):
            if old is not None and old.sign == "-":
                lines.extend(_cell(old, digits, width))
            elif waiting:
                lines.extend(line for one in waiting for line in _cell(one, digits, width))
                waiting = []
            if new is not None and new.sign == "+":
                waiting.append(new)
            elif new is not None:
                lines.extend(line for one in waiting for line in _cell(one, digits, width))
                waiting = []
                lines.extend(_cell(new, digits, width))
        lines.extend(line for one in waiting for line in _cell(one, digits, width))
    return lines


_Pair = tuple[_Half | None, _Half | None]


def _hunks(diff: str) -> list[tuple[list[_Pair], str]]:
    """The hunks of a diff: their lines in pairs (what was removed beside what was added there), and their headings."""
    hunks: list[tuple[list[_Pair], str]] = []
    removed: list[_Half] = []
    added: list[_Half] = []
    old = new = old_end = new_end = 0

    def settle() -> None:
        if hunks:
            hunks[-1][0].extend(zip_longest(removed, added))
        removed.clear()
        added.clear()

    for line in islice(diff.split("\n"), _MOST_LINES):
        # What a hunk holds is counted in its head: a line of it may look like the head of a file.
        inside = old < old_end or new < new_end
        hunk = None if inside else _HUNK.match(line)
        if hunk:
            settle()
            old, new = int(hunk["old"]), int(hunk["new"])
            old_end, new_end = old + int(hunk["olds"] or 1), new + int(hunk["news"] or 1)
            hunks.append(([], sanitize(hunk["heading"])))
            continue
        sign = line[:1] or " "
        if not inside or sign not in _SIGNS:
            continue
        text = [Span(sanitize(line[1:]))]
        if sign == "-":
            if added:
                settle()
            removed.append(_Half("-", str(old), text))
            old += 1
        elif sign == "+":
            added.append(_Half("+", str(new), text))
            new += 1
        else:
            settle()
            hunks[-1][0].append((_Half(" ", str(old), text), _Half(" ", str(new), text)))
            old, new = old + 1, new + 1
    settle()
    return hunks


def _coloured(halves: list[_Half | None], language: str) -> list[_Half | None]:
    """The lines of one side in the colours of the language; what has no colour of its own says that it was changed."""
    there = [half for half in halves if half is not None]
    code = highlight("\n".join(half.spans[0].text for half in there), language) if there else None
    spans = iter(code or [[Span(text, "code")] for half in there for text in (half.spans[0].text,)])
    made: list[_Half | None] = []
    for half in halves:
        if half is None:
            made.append(None)
            continue
        role, back = _ROLES.get(half.sign, ("code", ""))
        line = []
        for span in next(spans):
            plain = span.style in {"code", "syntax-comment"} and half.sign != " "
            line.append(Span(span.text, f"{role if plain else span.style} {back}".strip()))
        made.append(half._replace(spans=line))
    return made


def _cell(half: _Half | None, digits: int, width: int) -> list[Line]:
    """The line in its column, wrapped and filled to exactly `width` cells."""
    if half is None:
        return [(Span(" " * width),)]
    role, back = _ROLES.get(half.sign, ("muted", ""))
    lines: list[Line] = []
    for position, piece in enumerate(wrap_spans(half.spans, max(1, width - digits - 3)) or [()]):
        margin = "" if position else half.number
        sign = half.sign if not position else " "
        head = (
            Span(f"{margin.rjust(digits)} ", f"{role} {back}".strip()),
            Span(f"{sign} ", f"{role} bold {back}".strip()),
        )
        rest = width - digits - 3 - width_of(piece)
        lines.append((*head, *piece, Span(" " * max(0, rest), back)))
    return lines
