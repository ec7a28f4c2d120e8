"""What a person or a model reads is plain English: one thought a sentence, no turn that has to be read twice."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "tui_agent"
DOCUMENTS = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])

MOST_WORDS = 28
"""Of a sentence in the program, up to its colon or semicolon."""
MOST_WORDS_IN_DOCUMENTS = 36

MOST_WHERE = 0.7
"""Of a thousand words of docstrings and comments: in good prose `where` asks for a place and is no `if`."""
MOST_QUESTIONS = 0.02
"""The share of docstrings that begin with What or Whether: a noun or a verb says the same at once."""

TURNS = re.compile(
    r"\bof which (?:one|was|only|the)\b|\bof whom\b|\bto whom\b|\b(?:is|are) advised what\b|\bas it went\b"
    r"|\b(?:mend(?:s|ed)?|thereby|whereupon|thereof|hereby|whence)\b|^How (?:long|much|many) [^?]{9,90} is not known\b"
    r"|\bwas said that\b|\bin vain\b",
)
"""Turns of speech that have to be read twice, and old words."""

_NO_PROSE = re.compile(r"\(\?[:P=!<]|\\[bswdS]|\w\|\w|\)\?|\bSELECT\b|\{[\w-]+:|^\s*-{1,2}\w+ -")
"""Patterns, queries, styles and lists of options."""


@cache
def _nodes(path: Path) -> list[ast.AST]:
    """Nodes that are, or hold, a text; each file is parsed once for all tests."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, ast.Expr | ast.JoinedStr | ast.Constant)]


def _texts(path: Path) -> Iterator[tuple[int, str]]:
    """String literals that are no docstrings, with their lines; what is filled in counts as a word."""
    inner: set[int] = set()
    for node in _nodes(path):
        match node:
            case ast.Expr(value=ast.Constant() as text):
                inner.add(id(text))
            case ast.JoinedStr(values=values):
                inner |= {id(part) for part in values}
                yield (
                    node.lineno,
                    "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in values),
                )
            case ast.Constant(value=str(words)) if id(node) not in inner:
                yield node.lineno, words


def _docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Texts that stand alone as a statement, with their lines: of modules, classes, functions and constants."""
    for node in _nodes(path):
        match node:
            case ast.Expr(value=ast.Constant(value=str(words))):
                yield node.lineno, re.sub(r"`[^`]*`", "X", re.sub(r"(?m)^\s*\|.*$", "", words))


def _comments(path: Path) -> Iterator[str]:
    for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def _sentences(text: str) -> Iterator[str]:
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:[-*|#>]|\d+\.) ?)", text):
        yield from re.split(r"(?<=[.!?:;·])\s+|\s\|\s", " ".join(paragraph.split()))


def _bad(text: str, most: int, *, lines: bool = False) -> list[str]:
    return [
        sentence
        for part in (text.splitlines() if lines else [text])
        for sentence in _sentences(part)
        if len(re.findall(r"[\w'’-]+", sentence)) > most or TURNS.search(sentence)
    ]


@pytest.mark.parametrize(
    "room", sorted({path.relative_to(PACKAGE).parts[0] for path in PACKAGE.rglob("*.py")})
)
def test_the_program_speaks_in_plain_sentences(room: str) -> None:
    place = PACKAGE / room
    files = [place] if place.is_file() else sorted(place.rglob("*.py"))
    assert not [
        f"{path.relative_to(ROOT)}:{line}: {sentence}"
        for path in files
        for line, text in _texts(path)
        if " " in text and not _NO_PROSE.search(text)
        for sentence in _bad(text, MOST_WORDS, lines=True)
    ]


@pytest.mark.parametrize(
    "room", sorted({path.relative_to(PACKAGE).parts[0] for path in PACKAGE.rglob("*.py")})
)
def test_docstrings_are_read_once(room: str) -> None:
    place = PACKAGE / room
    files = [place] if place.is_file() else sorted(place.rglob("*.py"))
    texts = [(f"{path.relative_to(ROOT)}:{line}", text) for path in files for line, text in _docstrings(path)]
    assert not [(place, text) for place, text in texts if text.rstrip().endswith((",", " and", " or"))]
    assert not [
        (place, sentence)
        for place, text in texts
        for sentence in _sentences(text)
        if len(re.findall(r"[\w'’-]+", sentence)) > MOST_WORDS_IN_DOCUMENTS
    ]
    words = re.findall(
        r"[a-z']+",
        " ".join([text for _, text in texts] + [text for path in files for text in _comments(path)]).lower(),
    )
    assert words.count("where") <= max(1, MOST_WHERE * len(words) / 1000)
    questions = [place for place, text in texts if re.match(r"(What|Whether)\b", text)]
    assert len(questions) <= MOST_QUESTIONS * len(texts), questions


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_a_document_is_written_in_plain_sentences(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    text = re.sub(r"```.*?```|<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"`[^`]*`", "X", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    assert not _bad(text, MOST_WORDS_IN_DOCUMENTS)


@pytest.mark.parametrize(
    "text",
    [
        "How long a prompt of this model may be is not known; --context-tokens says it.",
        "The model of which was said that it sees none of the images.",
        " ".join(["word"] * (MOST_WORDS + 1)),
    ],
)
def test_what_has_to_be_read_twice_is_found(text: str) -> None:
    assert _bad(text, MOST_WORDS)
