"""Names of tools that carry more than a name: tokens of the model's own, a namespace, a number.

Pure. A name that could mean two tools means none.
"""

from __future__ import annotations

import re
from collections.abc import Collection

_TOKENS = re.compile(r"<[^<>]*>|<[|｜][^<>|｜]*[|｜]?>?|[|｜]>|\[[A-Z_/]+\]|[\s\"'`,;(){}]+")
_AROUND = re.compile(
    r"^(?:to=)?(?:(?:functions?|tools?|default_api|namespace|multi_tool_use)[.:/])?|(?::\d+)?[.:]?$"
)
_SIGN = re.compile(r"[<>|｜\[\]]")
_LONGEST = 500


def meant(name: str, tools: Collection[str]) -> str:
    """Find the tool of the run that `name` means beyond doubt; else give the name without its tokens."""
    if name in tools:
        return name
    words = [word for part in _TOKENS.split(name[:_LONGEST]) if (word := _AROUND.sub("", part))]
    found = {tool for word in words for tool in _same(word, tools)}
    if len(found) == 1:
        return found.pop()
    return words[0] if words and (len(words) == 1 or _SIGN.search(name)) else name


def _same(word: str, tools: Collection[str]) -> list[str]:
    """Find the tool of that name, else those that differ in case and in what joins its words alone."""
    if word in tools:
        return [word]
    folded = _folded(word)
    return [tool for tool in tools if folded and _folded(tool) == folded]


def _folded(name: str) -> str:
    return name.casefold().replace("_", "").replace("-", "")
