"""What a failed call lacked: the program, module, library, package, path or port that its error names.

The first such line counts: of a chain of errors it is the innermost, of a build's output the one that the others follow
from. Pure, and bounded for any text.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal, NamedTuple

from tui_agent.headline import headline
from tui_agent.terminal_text import one_line

Kind = Literal["program", "module", "library", "package", "path", "port"]

_LONGEST = 40_000
"""Characters of an error that are looked at, half from either end."""
_LONGEST_NAME = 120


class Missing(NamedTuple):
    """One thing that was not there. `line`: the words of the error."""

    kind: Kind
    name: str
    line: str


_PROGRAM = r"(?!(?:[A-Z][a-z]*|import|from)[\"'`:\s])[\w./+@-]{2,120}"
_FILE = r"(?=[./~-]{0,9}[\w+@])[\w./+@~-]{1,200}"
_HOST = r"(?:localhost|127\.0\.0\.1|\[::1\]|::1)"
_WORDS: tuple[tuple[Kind, tuple[str, ...]], ...] = (
    (
        "program",
        (
            rf"(?:^|: )(?:line \d+: |\d+: )?({_PROGRAM}): (?:command )?not found\s*$",
            rf"(?:^|: )command not found: ({_PROGRAM})\s*$",
            rf"^'?({_PROGRAM})'? ?(?:: The term '[^'\n]*')? is not recognized as",
            rf"[\"'`]({_PROGRAM})[\"'`]: executable file not found",
            rf"linker [`']({_PROGRAM})[`'] not found",
            rf"^(?:env|sudo|xargs|nohup|timeout): [‘'\"`]?({_PROGRAM})[’'\"`]?: (?:No such file|command not)",
        ),
    ),
    (
        "module",
        (
            r"No module named '?([\w.]+)'?",
            r"Cannot find (?:module|package) '([^'./\n][^'\n]*)'",
            r"no required module provides package ([\w./-]+)",
            r"can't find crate for `(\w+)`",
        ),
    ),
    (
        "library",
        (
            r"fatal error: '?([\w./+-]+\.h(?:pp|h)?)'?(?:: No such file| file not found)",
            r"cannot find -l([\w+.-]+)",
            r"error while loading shared libraries: ([\w+.-]+?\.so)",
            r"No package \\?'([\w.+-]+)\\?' found",
            r"^Package '?([\w.+-]+)'?, required by '[^'\n]*', not found",
            r"(?:^|\\n)Package ([\w.+-]+) was not found in the pkg-config",
            r"The system library `([\w.+-]+)` required by crate",
            r"Could not find a package configuration file provided by\s+\"([\w.+-]+)\"",
        ),
    ),
    (
        "package",
        (
            r"Unable to locate package ([\w.+-]+)",
            r"Package '([\w.+-]+)' has no installation candidate",
            r"No matching distribution found for ([\w.-]+)",
        ),
    ),
    (
        "port",
        (
            r"(?:[Rr]efused|to connect|connection to server|connect to server)[^\n]{0,200}\bport (\d{2,5})\b",
            rf"{_HOST}[:\s]+(?:port )?(\d{{2,5}})\b[^\n]{{0,200}}(?:refused|Couldn't connect)",
            rf"ECONNREFUSED {_HOST}:(\d{{2,5}})",
        ),
    ),
    (
        "path",
        (
            rf"(?:^|: |'|‘)({_FILE})['’]?: No such file or directory",
            r"No such file or directory: '([^'\n]{1,200})'",
            rf"^(?:There is no (?:file|folder) |[Ff]ile not found: )({_FILE}\w)",
        ),
    ),
)
_SIGNS = tuple((kind, re.compile(one, re.MULTILINE)) for kind, words in _WORDS for one in words)


@lru_cache(maxsize=256)
def missing_in(message: str) -> Missing | None:
    """The first thing that an error says is not there; None if it names none."""
    if len(message) > _LONGEST:
        message = f"{message[: _LONGEST // 2]}\n{message[-_LONGEST // 2 :]}"
    found = [(match, kind) for kind, sign in _SIGNS if (match := sign.search(message))]
    if not found:
        return None
    match, kind = min(found, key=lambda one: one[0].start(1))
    start, end = message.rfind("\n", 0, match.start(1)) + 1, message.find("\n", match.end(1))
    line = one_line(message[start : end if end >= 0 else None].strip(), 200)
    return Missing(kind, one_line(match[1], _LONGEST_NAME), line)


_CHAINED = re.compile(
    r"^(?:The above exception was the direct cause|During handling of the above)", re.MULTILINE
)
_ASIDE = re.compile(
    r"^(?:-- |checking (?:for|whether) "
    r"|.*\[Help 1\]|ninja: build stopped|(?:g?make|gmake)(?:\[\d+\])?: \*\*\* .* Error \d+|FAILURE: Build failed"
    r"|FAILED: |test result: ok|error: could not compile|npm (?:ERR!|error) (?:code|A complete log)).*$",
    re.MULTILINE,
)
"""Lines that only say that something before them failed, or what a build looked for."""


def cause_line(message: str) -> str:
    """The line of an error that names its innermost cause."""
    lacks = missing_in(message)
    if lacks is not None:
        return lacks.line
    first = _CHAINED.split(message, maxsplit=1)[0]
    return headline(_ASIDE.sub("", first) if first.count("\n") else first)
