"""Code in colours by role. Pygments is imported when the first finished block of code is shown, not before."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tui_agent.frontend.lines.styled import Span

if TYPE_CHECKING:
    from pygments.lexer import Lexer

LIMIT = 20_000
"""Characters beyond which code stays plain: a lexer's time on hostile text is not ours to bound."""


def highlight(code: str, language: str) -> list[list[Span]] | None:
    """Spans by source line; None if the language is unknown or the code too long."""
    if not language or len(code) > LIMIT:
        return None
    lexer = _lexer(language.lower())
    if lexer is None:
        return None
    lines: list[list[Span]] = [[]]
    for token, value in lexer.get_tokens(f"{code}\n"):
        role = _role(token)
        for number, piece in enumerate(value.split("\n")):
            if number:
                lines.append([])
            if piece:
                lines[-1].append(Span(piece, role))
    count = code.count("\n") + 1
    return lines[:count] + [[] for _ in range(count - len(lines))]


@lru_cache(maxsize=64)
def language_of(name: str) -> str:
    """The language of a file by its name; empty if it is not known."""
    from pygments.lexers import find_lexer_class_for_filename

    found = find_lexer_class_for_filename(name.rpartition("/")[2])
    return found.aliases[0] if found is not None and found.aliases else ""


@lru_cache(maxsize=32)
def _lexer(language: str) -> Lexer | None:
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


@lru_cache(maxsize=256)
def _role(token: Any) -> str:
    """The role of a Pygments token type."""
    from pygments.token import Comment, Generic, Keyword, Name, Number, Operator, String

    for family, role in (
        (Generic.Inserted, "diff-add"),
        (Generic.Deleted, "diff-remove"),
        (Generic.Subheading, "syntax-comment"),
        (Generic.Heading, "syntax-comment"),
        (Comment, "syntax-comment"),
        (Keyword, "syntax-keyword"),
        (Operator.Word, "syntax-keyword"),
        (String, "syntax-string"),
        (Number, "syntax-number"),
        (Name.Function, "syntax-name"),
        (Name.Class, "syntax-name"),
        (Name.Decorator, "syntax-name"),
        (Name.Builtin, "syntax-name"),
    ):
        if token in family:
            return role
    return "code"
