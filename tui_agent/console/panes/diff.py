"""A unified diff as numbered lines, added and removed lines marked by sign and by colour."""

from __future__ import annotations

import re
from itertools import islice

from tui_agent.console.panes.styled_line import Line, Span, fit, wrap
from tui_agent.terminal_text import sanitize

_HUNK = re.compile(r"^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@ ?(.*)$")


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
    for line in islice(diff.split("\n"), 20_000):
        hunk = _HUNK.match(line)
        if hunk:
            old, new = int(hunk.group(1)), int(hunk.group(2))
            if rows:
                rows.append(("@", "", sanitize(hunk.group(3))))
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
    role, back = {
        "+": ("diff-add", "on:diff-add-background"),
        "-": ("diff-remove", "on:diff-remove-background"),
    }.get(kind, ("code", ""))
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
