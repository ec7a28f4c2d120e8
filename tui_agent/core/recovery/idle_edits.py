"""Idle edits: edits of comments and white space alone, in a reply that says that they fix something."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from tui_agent.core.recovery.remarks import Remark
from tui_agent.core.recovery.rules import Rule

if TYPE_CHECKING:
    from tui_agent.core.recovery.iteration import CallResult

_COMMENTS = {
    **dict.fromkeys(("py", "sh", "bash", "rb", "yml", "yaml", "toml", "pl", "r", "mk"), "#"),
    **dict.fromkeys(
        ("js", "ts", "jsx", "tsx", "mjs", "go", "rs", "c", "h", "cc", "cpp", "java", "kt", "cs", "php"), "//"
    ),
    **dict.fromkeys(("sql", "lua", "hs"), "--"),
}
_FIXES = re.compile(r"\b(?:fix\w*|correct\w*|resolv\w*|repair\w*|solv\w*)\b", re.IGNORECASE)
_ABOUT_TEXT = re.compile(
    r"\b(?:comment\w*|doc(?:s|strings?|umentation)?|format\w*|white ?space|indent\w*|lint\w*|style|typos?|blank|"
    r"spaces?|trailing|readab\w*|clean\w*|explain\w*|clarif\w*|note)\b",
    re.IGNORECASE,
)
_PAIRS = (("old", "new"), ("old_string", "new_string"), ("old_str", "new_str"))
_LONGEST_EDIT = 100_000


def idle_edit(result: CallResult, path: str, said: str) -> Remark | None:
    """Remark on an edit of comments and space alone in a reply, `said`, that speaks of a fix; None for any other."""
    if not _FIXES.search(said) or _ABOUT_TEXT.search(said):
        return None
    sign = _COMMENTS.get(path.rpartition(".")[2].lower())
    pairs = list(_edits(result.input))
    if sign is None or not pairs or any(_code(old, sign) != _code(new, sign) for old, new in pairs):
        return None
    reason = f"The edit of {path} changed comments and space alone, and is said to fix"
    return Remark(
        Rule.IMPLICIT_NO_CHANGE,
        reason,
        f"Your edit of {path} changed only comments and white space: the program does what it did before.",
        f"no_change {path}",
    )


def _edits(arguments: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    more = arguments.get("edits")
    for one in (arguments, *(more[:200] if isinstance(more, list) else ())):
        if not isinstance(one, Mapping):
            continue
        for old, new in _PAIRS:
            before, after = one.get(old), one.get(new)
            if (
                isinstance(before, str)
                and isinstance(after, str)
                and len(before) + len(after) <= _LONGEST_EDIT
            ):
                yield before, after


def _code(text: str, sign: str) -> list[str]:
    """List the lines of a text that do something; indentation is a part of them."""
    lines = (line.rstrip() for line in text.split("\n"))
    return [line for line in lines if line and not line.lstrip().startswith(sign)]
