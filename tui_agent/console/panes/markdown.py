"""A block of Markdown as styled lines: parsed by markdown-it-py, drawn here.

HTML stays text and nothing becomes a link by itself. Text is hostile: an entity may decode to anything, so each piece
is made safe again after parsing. The parser is imported when the first text comes in, not before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING

from tui_agent.console.panes.growing import for_unfinished
from tui_agent.console.panes.table import draw_table
from tui_agent.frontend.lines.highlight import highlight
from tui_agent.frontend.lines.styled import Line, Span, clip, wrap_spans
from tui_agent.terminal_text import sanitize

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.tree import SyntaxTreeNode

_BLANK = re.compile(r"[\s>]*")
_EMPHASIS = {"strong": "bold", "em": "italic", "s": "strike"}
_NARROWEST = 4

DEEPEST = 100
"""Blocks, or marks, within each other. The parser leaves out blocks that are deeper, and drawing goes as deep as they
are, so such a text is not drawn as Markdown."""

BRACKETS = 500
"""Opening brackets up to which a block is parsed: the parser's work grows with their square."""

BRACKETS_GROWING = 100
"""Opening brackets of a block that is parsed again and again, as it comes in."""


@cache
def _parser(growing: bool) -> MarkdownIt:
    from markdown_it import MarkdownIt

    # A reference would take its line out of the text.
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": DEEPEST})
    parser.enable(["table", "strikethrough"]).disable("reference")
    return for_unfinished(parser) if growing else parser


def draw_markdown(source: str, width: int, *, growing: bool = False) -> list[Line]:
    """The block's lines, at most `width` cells each; none if it is nested too deeply or has too many
    brackets.

    `source` holds no control characters. `growing`: it ends in the middle, and is drawn as if what is open ended too.
    """
    from markdown_it.tree import SyntaxTreeNode

    if source.count("[") > (BRACKETS_GROWING if growing else BRACKETS):
        return []
    tokens = _parser(growing).parse(source)
    if any(part.level >= DEEPEST - 2 for token in tokens for part in (token, *(token.children or ()))):
        return []
    lines = _blocks(SyntaxTreeNode(tokens).children, width, "", source.split("\n"))
    return [clip(line, width) for line in lines]


def code_lines(rows: Iterable[Sequence[Span]], width: int) -> list[Line]:
    """Source lines of code on their ground, behind a bar that says so without colour."""
    back = " on:code-background"
    lines: list[Line] = []
    for row in rows:
        for line in wrap_spans(row, width - 2) or [()]:
            tinted = (Span(span.text, span.style + back) for span in line)
            lines.append((Span("▏ ", "faint" + back), *tinted, Span("", back.strip())))
    return lines


def _blocks(nodes: Sequence[SyntaxTreeNode], width: int, style: str, source: list[str]) -> list[Line]:
    """Blocks below each other, with an empty line for each of the source."""
    lines: list[Line] = []
    for node in nodes:
        start = node.map[0] if node.map else 0
        if lines and start and _BLANK.fullmatch(source[start - 1]):
            lines.append(())
        lines.extend(_block(node, max(_NARROWEST, width), style, source))
    return lines


def _block(node: SyntaxTreeNode, width: int, style: str, source: list[str]) -> list[Line]:
    match node.type:
        case "heading":
            return _text(node, width, "accent bold underline" if node.tag == "h1" else "accent bold")
        case "fence" | "code_block":
            code = sanitize(node.content).removesuffix("\n")
            language = node.info.split(maxsplit=1)[0] if node.info.strip() else ""
            plain = [[Span(line, "code")] for line in code.split("\n")]
            return code_lines(highlight(code, language) or plain, width)
        case "blockquote":
            body = _blocks(node.children, width - 2, style or "muted italic", source)
            return [(Span("▎ ", "faint"), *line) for line in body]
        case "bullet_list":
            return _list(node.children, ["•"] * len(node.children), width, style, source)
        case "ordered_list":
            first = int(node.attrs.get("start", 1))
            marks = [f"{number}{node.markup}" for number in range(first, first + len(node.children))]
            return _list(node.children, marks, width, style, source)
        case "hr":
            return [(Span("─" * width, "faint"),)]
        case "table":
            return _table(node, width, style)
        case _:
            return _text(node, width, style)


def _list(
    items: Sequence[SyntaxTreeNode], marks: Sequence[str], width: int, style: str, source: list[str]
) -> list[Line]:
    lines: list[Line] = []
    for item, mark in zip(items, marks, strict=True):
        if lines and item.map and _BLANK.fullmatch(source[item.map[0] - 1]):
            lines.append(())
        indent = len(mark) + 1
        body = _blocks(item.children, width - indent, style, source) or [()]
        lines.append((Span(f"{mark} ", "accent"), *body[0]))
        lines.extend((Span(" " * indent), *line) if line else () for line in body[1:])
    return lines


def _table(node: SyntaxTreeNode, width: int, style: str) -> list[Line]:
    rows: list[list[Line]] = []
    head = node.children[0].children[0]
    right = [str(cell.attrs.get("style", "")).endswith("right") for cell in head.children]
    for part in node.children:
        for row in part.children:
            cell_style = f"{style} bold".strip() if part.type == "thead" else style
            rows.append(
                [tuple(chain.from_iterable(_Inline(cell, cell_style).lines)) for cell in row.children]
            )
    return draw_table(rows, width, right)


def _text(node: SyntaxTreeNode, width: int, style: str) -> list[Line]:
    return [line for spans in _Inline(node, style).lines for line in wrap_spans(spans, width)]


class _Inline:
    """The text below a node as spans, a list for each source line: models mean the line breaks that they
    write.
    """

    def __init__(self, node: SyntaxTreeNode, style: str) -> None:
        self.lines: list[list[Span]] = [[]]
        self._walk(node, style)

    def _walk(self, node: SyntaxTreeNode, style: str) -> None:
        match node.type:
            case "text":
                self._add(node.content, style)
            case "code_inline":
                self._add(node.content, f"{style} code-inline on:code-background".strip())
            case "softbreak" | "hardbreak":
                self.lines.append([])
            case "image":
                self._add(node.content, f"{style} underline".strip())
                self._add(f" ({node.attrs.get('src')})", "muted")
            case "link":
                self._link(node, str(node.attrs.get("href")), f"{style} underline".strip())
            case _:
                for child in node.children:
                    self._walk(child, f"{style} {_EMPHASIS.get(node.type, '')}".strip())

    def _link(self, node: SyntaxTreeNode, url: str, style: str) -> None:
        line = self.lines[-1]
        start = len(line)
        for child in node.children:
            self._walk(child, style)
        if "".join(span.text for span in line[start:]) != url:
            self._add(f" ({url})", "muted")

    def _add(self, text: str, style: str) -> None:
        first, *rest = sanitize(text).split("\n")
        self.lines[-1].append(Span(first, style))
        self.lines.extend([Span(piece, style)] for piece in rest)
