"""A block of Markdown that still comes in, prepared and parsed as if it ended here: what is shown moves little.

A mark that was opened is taken as closed at the end, a sign that may yet become another is kept back, the head of a
table is one from its first cell on. The parser is the one of closed blocks with rules for what is unfinished.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from markdown_it import MarkdownIt
    from markdown_it.rules_core import StateCore
    from markdown_it.rules_inline import StateInline

    Rule = Callable[[StateInline, bool], bool]

HELD = 40
"""Characters of a table's cell that come at once while it is not complete, so that no column moves by letters."""

COLUMNS = 40
"""Columns up to which the first row is taken as the head of a table before the second says so."""

CLOSED = 4
"""Marks within each other that are taken as closed at the end."""

_MARKS = re.compile(r"(?:[*_~`\\]+|(?<!\S)!)\Z")
_SIGNS = re.compile(r"(?:[\s>]|[-+*]\s|\d{1,9}[.)]\s)*+(?:[-=+*_~`:|# ]*|\d{1,9}[.)]?|`{3}[^`]*|~{3}.*)")
"""A line that has no text yet: a list's sign, a rule, a heading, an underline, a fence, or part of one."""
_OPENING = re.compile(r"\s*(?:`{3}|~{3})")
_CLOSING = re.compile(r"\s*(?:`+|~+)\s*")
_PIPE = re.compile(r"(?<!\\)\|")
_DELIMITER = re.compile(r"[|:\- ]*")
_LINK = re.compile(
    r"!?\[(?P<label>[^\[\]\n]*)(?P<end>\](?:\((?P<url>[^\s()<>]*)(?P<title>[ ]+[^\n()]*)?)?)?\Z"
)
_OPEN = "still open"
"""Key of the inline text at the end in the parser's environment."""


def unfinished(lines: Sequence[str], rest: str) -> list[str]:
    """Source lines to parse for a block of complete `lines` and the beginning of a line, `rest`.

    What may yet turn out to be something else is kept back, for a table's cell up to `HELD` characters.
    """
    source = list(lines)
    if rest.strip():
        if not rest.lstrip().startswith("|"):
            rest = _MARKS.sub("", rest)
            if _SIGNS.fullmatch(rest):
                return source
        source.append(rest)
    if source and source[-1].lstrip().startswith("|"):
        return _table(source, bool(rest.strip()))
    return source


def unfinished_code(lines: Sequence[str], rest: str) -> list[str]:
    """As `unfinished` within a fence of code; the line that opens it shows nothing by itself."""
    if rest and not may_close(rest):
        return [*lines, rest]
    return list(lines[:-1] if lines and _OPENING.match(lines[-1]) else lines)


def may_close(rest: str) -> bool:
    """True if the beginning of a line of code may be the end of the code."""
    return _CLOSING.fullmatch(rest) is not None


def _table(source: list[str], cut: bool) -> list[str]:
    """The lines with those of a table at their end made whole. `cut`: the last one is not complete."""
    first = len(source) - 1
    while first and source[first - 1].lstrip().startswith("|"):
        first -= 1
    row = len(source) - 1 - first
    if row == 1 and cut and _DELIMITER.fullmatch(source[-1]):
        given = [cell.strip() for cell in _PIPE.split(source[-1])[1:]]
        del source[-1]
        return [*source, _delimiter(source[first], given)]
    if row and not (_DELIMITER.fullmatch(source[first + 1]) and "-" in source[first + 1]):
        return source
    if cut:
        line = source[-1]
        end = max((place.end() for place in _PIPE.finditer(line)), default=0)
        more = line[end : end + (len(line) - end) // HELD * HELD]
        source[-1] = line[:end] + _MARKS.sub("", more[: more.rfind(" ") + 1].rstrip() or more)
        if not source[-1].strip(" |"):
            del source[-1]
            return source
    if row or len(_PIPE.findall(source[first])) > COLUMNS:
        return source
    return [*source, _delimiter(source[first], ())]


def _delimiter(head: str, given: Sequence[str]) -> str:
    """The line below a table's head, as far as it is `given` in cells."""
    columns = len(_PIPE.findall(head.strip().removesuffix("|")))
    cells = [cell if re.fullmatch(r":?-+:?", cell) else "---" for cell in given[:columns]]
    return f"|{'|'.join([*cells, *['---'] * (columns - len(cells))])}|"


def for_unfinished(parser: MarkdownIt) -> MarkdownIt:
    """The parser with the rules for a text that ends in the middle."""
    from markdown_it.rules_inline import backtick, image, link

    parser.core.ruler.before("inline", "unfinished", _find_open)
    parser.inline.ruler.at("backticks", _code(backtick))
    parser.inline.ruler.at("link", _link(link, "["))
    parser.inline.ruler.at("image", _link(image, "!["))
    parser.inline.ruler2.after("balance_pairs", "unfinished", _close_marks)
    return parser


def _find_open(state: StateCore) -> None:
    """Remember the inline text that the source ends in."""
    end = state.src.count("\n") + 1
    for token in reversed(state.tokens):
        if token.type == "inline" and token.content:
            if token.map and token.map[1] >= end:
                state.env[_OPEN] = token.children
            return


def _is_open(state: StateInline) -> bool:
    return state.env.get(_OPEN) is state.tokens and state.posMax == len(state.src)


def _within_word(state: StateInline) -> bool:
    return state.pos > 0 and state.src[state.pos - 1].isalnum()


def _code(rule: Rule) -> Rule:
    """Code that is not closed goes to the end of the last line."""

    def backtick(state: StateInline, silent: bool) -> bool:
        start, within = state.pos, _within_word(state)
        if not rule(state, silent):
            return False
        mark = state.src[start : state.pos]
        code = state.src[state.pos :]
        if mark.strip("`") or silent or within or not _is_open(state):
            return True
        if code and not code[0].isspace() and "\n" not in code:
            state.pending = state.pending.removesuffix(mark)
            token = state.push("code_inline", "code", 0)
            token.markup, token.content = mark, code
            state.pos = state.posMax
        return True

    return backtick


def _link(rule: Rule, sign: str) -> Rule:
    """A link whose address has begun is one; before that its label stands alone, without brackets."""

    def link(state: StateInline, silent: bool) -> bool:
        if rule(state, silent):
            return True
        if silent or not state.src.startswith(sign, state.pos) or _within_word(state) or not _is_open(state):
            return False
        found = _LINK.match(state.src, state.pos)
        if found is None:
            return False
        label, end = found["label"], state.posMax
        if found["url"]:
            whole = state.src
            state.src = whole[: found.end("url")] + ")"
            state.posMax = len(state.src)
            closed = rule(state, False)
            state.src = whole
            state.posMax = end
            if closed:
                state.pos = end
                return True
        if label and not (found["end"] or "").startswith("](") and not _may_be_label(label):
            return False
        if label:
            state.pos, state.posMax = found.span("label")
            state.md.inline.tokenize(state)
            state.posMax = end
        state.pos = end
        return True

    return link


def _may_be_label(text: str) -> bool:
    """True if brackets around a text are likely those of a link: not those of an index, a note or a box to
    tick.
    """
    return text not in ("x", "X") and (text[0].isalpha() or text[0] in "`*_")


def _close_marks(state: StateInline) -> None:
    """Close at the end what was opened, the innermost first; a single sign only within the last line."""
    if state.env.get(_OPEN) is not state.tokens:
        return
    last_break = max(
        (at for at, token in enumerate(state.tokens) if token.type in ("softbreak", "hardbreak")), default=-1
    )
    for run in reversed(_open_runs(state)[:CLOSED]):
        first, last = state.delimiters[run[0]].token, state.delimiters[run[-1]].token
        before = state.tokens[first - 1].content if first else ""
        after = state.tokens[last + 1] if last + 1 < len(state.tokens) else None
        single = len(run) == 1 and len(state.tokens[first].content) == 1
        follows = after is not None and (after.type != "text" or after.content[:1].isalnum())
        if before[-1:].isalnum() or (single and (first < last_break or not follows)):
            continue
        for at in reversed(run):
            opener = state.delimiters[at]
            opener.end, opener.close = len(state.delimiters), False
            token = replace(state.tokens[opener.token])
            state.tokens.append(token)
            state.tokens_meta.append(None)
            state.delimiters.append(
                replace(opener, token=len(state.tokens) - 1, end=-1, open=False, close=True)
            )


def _open_runs(state: StateInline) -> list[list[int]]:
    """Runs of openers, by place, that nothing closes and that stand within nothing that is closed."""
    runs: list[list[int]] = []
    closed, previous = -1, None
    for at, mark in enumerate(state.delimiters):
        if previous is not None and previous.marker == mark.marker and previous.token == mark.token - 1:
            runs[-1].append(at)
        else:
            runs.append([at])
        previous = mark
    alone: list[list[int]] = []
    for run in runs:
        marks = [state.delimiters[at] for at in run]
        if run[0] > closed and all(mark.open and mark.end < 0 for mark in marks):
            alone.append(run)
        closed = max(closed, *(mark.end for mark in marks))
    return alone
