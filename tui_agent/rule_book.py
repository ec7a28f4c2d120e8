"""The rule book as data: docs/RECOVERY.md, which comes along with the package.

A rule's section is its heading, one sentence, and a list of labelled lines; nothing else of the document is read here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

_SECTION = re.compile(r"^### ([a-z]+\.[a-z_]+)\n+(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
_LABELLED = re.compile(r"^- \*\*(\w+)\*\*: (.*)$", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")


class Section(NamedTuple):
    """The book's entry for one rule: one sentence, and lines by label (Why, Key, Source, Code, Case)."""

    rule: str
    does: str
    lines: Mapping[str, str]


def book_path() -> Path:
    """The rule book: beside the package in a checkout, else in the package."""
    package = Path(__file__).resolve().parent
    checkout = package.parent / "docs" / "RECOVERY.md"
    return checkout if checkout.is_file() else package / "docs" / "RECOVERY.md"


def read_book(path: Path) -> dict[str, Section]:
    """The sections by rule, in the book's order. Raises `OSError`."""
    sections = {}
    for rule, body in _SECTION.findall(path.read_text("utf-8")):
        text = _LINK.sub(r"\1", body)
        sections[rule] = Section(rule, text.split("\n\n", 1)[0].strip(), dict(_LABELLED.findall(text)))
    return sections
