"""The place that an error names: a file and a line of the work, as `tests/test_tax.py:11`.

If several are named, the one that shows the fault: a test runner's last line, a compiler's first error, the
newest frame of a traceback that is not a library's. Pure, and bounded in time for any text.
"""

from __future__ import annotations

import re

_LOOKED_AT = 8_000
"""Characters of a message, from its end, in which a place is looked for."""

_LONGEST = 100

_PATH = r"(?P<path>(?:[\w.@+-]{1,80}/){0,12}[\w.@+-]{1,80}\.[A-Za-z]{1,6})"
_COMPILER = re.compile(
    rf"^\W{{0,8}}{_PATH}:(?P<line>\d{{1,6}})(?::\d{{1,5}})?: (?:fatal )?error\b", re.MULTILINE
)
_FORMS = tuple(
    re.compile(form, re.MULTILINE)
    for form in (
        rf"^\W{{0,4}}{_PATH}:(?P<line>\d{{1,6}}): (?:[A-Z]\w*(?:Error|Exception|Exit|Failed)\b)",
        r"^ *File \"(?P<path>[^\"\n<>]{1,200})\", line (?P<line>\d{1,6})",
        rf"(?<![\w/.]){_PATH}:(?P<line>\d{{1,6}})(?!\d)",
    )
)
"""pytest, a Python traceback, any other; in this order."""

_LIBRARY = re.compile(
    r"(?:^|/)(?:site-packages|dist-packages|node_modules|lib/python[\d.]*|usr/lib)/|<frozen"
)


def error_place(message: str) -> str:
    """`path:line`, or "" if the message names none."""
    text = message[-_LOOKED_AT:]
    if found := _COMPILER.search(text):
        return _written(found)
    for form in _FORMS:
        places = [match for match in form.finditer(text) if not _LIBRARY.search(match["path"])]
        if places:
            return _written(places[-1])
    return ""


def _written(found: re.Match[str]) -> str:
    place = f"{found['path']}:{found['line']}"
    return place if len(place) <= _LONGEST else f"…{place[-_LONGEST:]}"
