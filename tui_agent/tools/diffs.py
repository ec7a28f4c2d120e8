"""Unified diffs of two texts, at a cost that stays bounded for texts of any size."""

from __future__ import annotations

import difflib
from collections import Counter

_ALIGNED_LINES = 2_000
"""Differing lines on either side up to which they are aligned; beyond, the block is replaced as a whole."""

_ALIGNED_PAIRS = 200_000
"""Pairs of equal lines up to which all are compared."""

_CONTEXT = 3


def split_lines(text: str) -> list[str]:
    """Lines with their ends. Only `\\n` ends a line, unlike `str.splitlines`, which also knows form feeds
    and more.
    """
    lines = text.split("\n")
    last = lines.pop()
    kept = [line + "\n" for line in lines]
    return [*kept, last] if last else kept


def unified_diff(before: str, after: str, path: str, *, new: bool = False) -> str:
    """The change from `before` to `after` as a unified diff; "" if nothing differs. `new`: there was no file."""
    if before == after and not new:
        return ""
    old, fresh = split_lines(before), split_lines(after)
    start = 0
    while start < min(len(old), len(fresh)) and old[start] == fresh[start]:
        start += 1
    end = 0
    while end < min(len(old), len(fresh)) - start and old[-1 - end] == fresh[-1 - end]:
        end += 1
    head = f"--- {'/dev/null' if new else 'a/' + path}\n+++ b/{path}\n"
    if max(len(old), len(fresh)) - start - end > _ALIGNED_LINES:
        return head + _block(old, fresh, start, end)
    low = max(0, start - _CONTEXT)
    cut = max(0, end - _CONTEXT)
    a, b = old[low : len(old) - cut], fresh[low : len(fresh) - cut]
    lines: list[str] = []
    # Aligning lines that occur often takes cubic time: beyond a bound they are no anchors any more.
    often = Counter(b)
    dense = sum(often[line] for line in a) > _ALIGNED_PAIRS
    for group in difflib.SequenceMatcher(None, a, b, autojunk=dense).get_grouped_opcodes(_CONTEXT):
        first, last = group[0], group[-1]
        lines.append(_header(first[1] + low, last[2] + low, first[3] + low, last[4] + low))
        for tag, a1, a2, b1, b2 in group:
            if tag == "equal":
                lines += [" " + line for line in a[a1:a2]]
            else:
                lines += ["-" + line for line in a[a1:a2]]
                lines += ["+" + line for line in b[b1:b2]]
    return head + "".join(map(_ended, lines))


def bounded_diff(diff: str, limit: int = 100_000) -> str:
    """A diff in at most about `limit` characters, cut at a line, with a notice on what is left out."""
    if len(diff) <= limit:
        return diff
    kept = diff[: diff.rfind("\n", 0, limit) + 1] or diff[:limit] + "\n"
    return f"{kept}[... {len(diff) - len(kept):,} of {len(diff):,} characters of the diff left out ...]\n"


def _block(old: list[str], fresh: list[str], start: int, end: int) -> str:
    low = max(0, start - _CONTEXT)
    after = min(end, _CONTEXT)
    lines = [_header(low, len(old) - end + after, low, len(fresh) - end + after)]
    lines += [" " + line for line in old[low:start]]
    lines += ["-" + line for line in old[start : len(old) - end]]
    lines += ["+" + line for line in fresh[start : len(fresh) - end]]
    lines += [" " + line for line in old[len(old) - end : len(old) - end + after]]
    return "".join(map(_ended, lines))


def _header(a1: int, a2: int, b1: int, b2: int) -> str:
    return f"@@ -{_span(a1, a2)} +{_span(b1, b2)} @@\n"


def _span(start: int, stop: int) -> str:
    length = stop - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"


def _ended(line: str) -> str:
    return line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"
