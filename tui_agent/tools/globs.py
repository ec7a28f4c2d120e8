"""Glob patterns as regular expressions, in the two dialects that are met: `.gitignore` lines and the tools'
globs.

One translation for both, so that a listing made by ripgrep and one made here agree.
"""

from __future__ import annotations

import re
from functools import lru_cache

_CLASSES = {
    "alpha": "a-zA-Z", "digit": "0-9", "alnum": "a-zA-Z0-9", "upper": "A-Z", "lower": "a-z", "space": r"\s",
    "xdigit": "0-9A-Fa-f", "punct": r"!-/:-@\[-`{-~", "word": r"\w", "blank": r" \t",
}  # fmt: skip
_LONGEST = 2_000


class GlobError(ValueError):
    """The pattern is no glob; the message says why."""


@lru_cache(maxsize=256)
def path_pattern(pattern: str) -> re.Pattern[str]:
    """A tool's glob as an expression for `fullmatch` on a relative path. Raises `GlobError`.

    `*`, `?` and `[...]` stay within a name, `**` spans directories, `{a,b}` are alternatives. Without a `/`
    the pattern is matched against the name, at any depth.
    """
    if len(pattern) > _LONGEST:
        raise GlobError(f"the pattern is longer than {_LONGEST:,} characters")
    anchored = "/" in pattern
    source = translate(pattern.removeprefix("/"), braces=True)
    try:
        return re.compile(source if anchored else f"(?:.*/)?{source}", re.DOTALL)
    except re.error as error:
        raise GlobError(str(error)) from None


def translate(glob: str, *, braces: bool = False) -> str:
    """The source of a regular expression that matches what `glob` does, as a whole. Raises `GlobError`."""
    out: list[str] = []
    at, depth = 0, 0
    while at < len(glob):
        char = glob[at]
        at += 1
        if char == "*":
            source, at = _stars(glob, at - 1)
            out.append(source)
        elif char == "?":
            out.append("[^/]")
        elif char == "[":
            source, at = _set(glob, at)
            out.append(source)
        elif char == "\\":
            if at == len(glob):
                raise GlobError("it ends in a backslash")
            out.append(re.escape(glob[at]))
            at += 1
        elif braces and char == "{":
            depth += 1
            out.append("(?:")
        elif braces and depth and char == "}":
            depth -= 1
            out.append(")")
        elif braces and depth and char == ",":
            out.append("|")
        else:
            out.append(re.escape(char))
    if depth:
        raise GlobError("a `{` is not closed")
    return "".join(out)


def _stars(glob: str, start: int) -> tuple[str, int]:
    """The expression for the stars at `start`, and where the pattern goes on. `**` counts only as a whole
    part.
    """
    end = start
    while end < len(glob) and glob[end] == "*":
        end += 1
    opens = start == 0 or glob[start - 1] == "/"
    if end - start == 2 and opens:
        if end == len(glob):
            return (".+" if start else ".*"), end
        if glob[end] == "/":
            # `a/**/**/b` is `a/**/b`: repeated groups would be slow to fail.
            while glob.startswith("**/", end + 1):
                end += 3
            return "(?:.*/)?", end + 1
    return "[^/]*", end


def _set(glob: str, at: int) -> tuple[str, int]:
    """The expression for a `[...]` whose bracket opened before `at`. Raises `GlobError` when it is not
    closed.
    """
    negated = at < len(glob) and glob[at] in "!^"
    at += negated
    items: list[str] = []
    first = True
    while at < len(glob) and (first or glob[at] != "]"):
        first = False
        if glob.startswith("[:", at) and (end := glob.find(":]", at)) > 0 and glob[at + 2 : end] in _CLASSES:
            items.append(_CLASSES[glob[at + 2 : end]])
            at = end + 2
            continue
        if glob[at] == "\\" and at + 1 < len(glob):
            at += 1
            items.append(re.escape(glob[at]))
        elif glob[at] == "-" and items and at + 1 < len(glob) and glob[at + 1] != "]":
            items.append("-")
        else:
            items.append(re.escape(glob[at]))
        at += 1
    if at >= len(glob):
        raise GlobError("a `[` is not closed")
    source = f"[{'^' if negated else ''}{''.join(items)}]"
    try:
        re.compile(source)
    except re.error as error:
        raise GlobError(f"in a `[...]`: {error}") from None
    return f"(?!/){source}", at + 1
