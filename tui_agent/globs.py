"""Glob patterns as regular expressions, in the two dialects that are met: `.gitignore` lines and the tools'
globs.

One translation for both, so that a listing made by ripgrep and one made here agree.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

_CLASSES = {
    "alpha": "a-zA-Z", "digit": "0-9", "alnum": "a-zA-Z0-9", "upper": "A-Z", "lower": "a-z", "space": r"\s",
    "xdigit": "0-9A-Fa-f", "punct": r"!-/:-@\[-`{-~", "word": r"\w", "blank": r" \t",
}  # fmt: skip
_LONGEST = 2_000
_MOST_ALTERNATIVES = 100


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
    sources = [
        translate(one.removeprefix("/")) if "/" in one else f"(?:.*/)?{translate(one)}"
        for one in _alternatives(pattern)
    ]
    try:
        return re.compile("|".join(sources), re.DOTALL)
    except re.error as error:
        raise GlobError(str(error)) from None


def translate(glob: str) -> str:
    """The source of a regular expression that matches what `glob` does, as a whole. Raises `GlobError`.

    The text between two stars is matched at the first place that fits, and never tried again: that is enough
    for a glob, and keeps the time linear, while backtracking could take years.
    """
    first, *rest = ("/".join(map(_segment, _split(block, "/"))) for block in _split(_parts(glob), "**/"))
    if not rest:
        return first
    *middle, last = rest
    return first + "".join(f"(?>(?:[^/]*/)*?{block})" for block in middle) + f"(?:.*/)?{last}"


def _segment(parts: list[str]) -> str:
    """The expression for one name of a path."""
    first, *rest = map("".join, _split(parts, "*"))
    if not rest:
        return first
    *middle, last = rest
    return first + "".join(f"(?>[^/]*?{piece})" for piece in middle) + f"[^/]*{last}"


def _split(parts: Iterable[str], at: str) -> list[list[str]]:
    found = [list[str]()]
    for part in parts:
        if part == at:
            found.append([])
        else:
            found[-1].append(part)
    return found


def _parts(glob: str) -> Iterator[str]:
    """`*`, `/` and `**/` as they stand, anything else as the expression for it."""
    at = 0
    while at < len(glob):
        char, start = glob[at], at
        at += 1
        if char == "*":
            while at < len(glob) and glob[at] == "*":
                at += 1
            whole = at - start == 2 and (start == 0 or glob[start - 1] == "/")
            if whole and at == len(glob):
                yield ".+" if start else ".*"
            elif whole and glob[at] == "/":
                # `a/**/**/b` is `a/**/b`.
                while glob.startswith("**/", at + 1):
                    at += 3
                at += 1
                yield "**/"
            else:
                yield "*"
        elif char == "/":
            yield char
        elif char == "?":
            yield "[^/]"
        elif char == "[":
            source, at = _set(glob, at)
            yield source
        elif char == "\\":
            if at == len(glob):
                raise GlobError("it ends in a backslash")
            yield re.escape(glob[at])
            at += 1
        else:
            yield re.escape(char)


def _alternatives(glob: str) -> list[str]:
    """The globs that one with braces stands for: `{a,b}c` is `ac` and `bc`. Raises `GlobError`."""
    done, rest = list[str](), [glob]
    while rest:
        one = rest.pop()
        braces = _first_braces(one)
        if braces is None:
            done.append(one)
        else:
            before, options, after = braces
            rest += [f"{before}{option}{after}" for option in reversed(options)]
        if len(done) + len(rest) > _MOST_ALTERNATIVES:
            raise GlobError(f"its braces stand for more than {_MOST_ALTERNATIVES} globs")
    return done


def _first_braces(glob: str) -> tuple[str, list[str], str] | None:
    """The text before, in and after the first outermost braces; None if there are none."""
    at, depth, opening, comma = 0, 0, 0, 0
    options: list[str] = []
    while at < len(glob):
        char = glob[at]
        if char == "\\":
            at += 1
        elif char == "[":
            at = _set(glob, at + 1)[1] - 1
        elif char == "{":
            depth += 1
            if depth == 1:
                opening, comma = at, at + 1
        elif depth == 1 and char in ",}":
            options.append(glob[comma:at])
            comma = at + 1
            if char == "}":
                return glob[:opening], options, glob[at + 1 :]
        elif char == "}" and depth:
            depth -= 1
        at += 1
    if depth:
        raise GlobError("a '{' is not closed")
    return None


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
        raise GlobError("a '[' is not closed")
    source = f"[{'^' if negated else ''}{''.join(items)}]"
    try:
        re.compile(source)
    except re.error as error:
        raise GlobError(f"in a '[...]': {error}") from None
    return f"(?!/){source}", at + 1
