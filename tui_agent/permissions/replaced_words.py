"""Words that the shell replaces before a program sees them, as far as the command itself says by what.

Known are variables that it sets to plain words, those of its loops among them, `$PWD`, and braces.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from tui_agent.permissions.commands import Reading, Word

_MOST_BRACES = 64
"""Words that braces stand for."""
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_LOOP = re.compile(r"\bfor\s+(\w+)\s+in\s+([^;\n]+)")


def values_of(text: str, reading: Reading) -> Mapping[str, str]:
    """Find the variables that a script sets itself to words that are known, by name."""
    found = {}
    for assignment in reading.assignments:
        name, _, value = assignment.partition("=")
        if value:
            found[name] = value.strip("\"'")
    for name, values in _LOOP.findall(text):
        found[name] = values.strip()
    return {name: value for name, value in found.items() if not re.search(r"[$`(]", value)}


def known_words(word: Word, values: Mapping[str, str], folder: Path) -> Iterator[Word]:
    """List what a word stands for: itself, or what the script's own variables and braces say. None if not known."""
    if word.kind != "unknown":
        yield word
        return
    replaced = _VARIABLE.sub(lambda found: _value(found, values, folder), word.text)
    if "$" in replaced or "`" in replaced:
        return
    for text in _without_braces(replaced.replace('"', "").replace("'", "")):
        for part in text.split():
            yield Word(part, "glob" if re.search(r"[*?\[]", part) else "literal")


def _value(found: re.Match[str], values: Mapping[str, str], folder: Path) -> str:
    name = found[1] or found[2]
    return os.fspath(folder) if name == "PWD" else values.get(name, found[0])


def _without_braces(text: str) -> list[str]:
    texts = [text]
    for place in range(_MOST_BRACES):
        if place >= len(texts) or len(texts) > _MOST_BRACES:
            break
        while pair := re.search(r"\{([^{},]*,[^{}]*)\}", texts[place]):
            first, *others = (
                texts[place][: pair.start()] + one + texts[place][pair.end() :]
                for one in pair[1].split(",")[:_MOST_BRACES]
            )
            texts[place] = first
            texts += others
            if len(texts) > _MOST_BRACES:
                break
    return texts
