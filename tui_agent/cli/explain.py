"""`agent-tui explain`: a rule of the rule book, in the terminal."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from tui_agent.cli.errors import UsageError
from tui_agent.cli.options import Parser
from tui_agent.rule_book import Section, book_path, read_book

_EXAMPLE = """
agent-tui explain attempts.escalate
agent-tui explain list
agent-tui explain list | grep breaker"""

_WIDEST = 100
"""Columns; longer lines are hard to read."""


def parser() -> Parser:
    """Options of `explain`."""
    made = Parser(
        "explain",
        "What a rule of recovery does: why, its configuration keys, where it comes from, the code and the case.\n"
        "Verdicts, refusals, notes and outcomes carry the id of their rule.",
        _EXAMPLE,
    )
    made.add_argument("rule", metavar="RULE|list", help="an id like attempts.escalate; `list`: all of them")
    return made


def main(arguments: Sequence[str]) -> int:
    """Print one section, or a line for each rule. Raises `UsageError` for an id that does not exist."""
    name = parser().parse(arguments).rule.strip().lower()
    sections = read_book(book_path())
    if name == "list":
        widest = max(map(len, sections))
        sys.stdout.writelines(f"{section.rule:<{widest}}  {section.does}\n" for section in sections.values())
    elif name in sections:
        sys.stdout.write(_printed(sections[name]))
    else:
        raise UsageError(_unknown(name, sections))
    return 0


def _printed(section: Section) -> str:
    width = min(_WIDEST, shutil.get_terminal_size((_WIDEST, 24)).columns)
    paragraphs = [section.rule, "", textwrap.fill(section.does, width), ""]
    for label, text in section.lines.items():
        head = f"{label + ':':<8}"
        paragraphs.append(
            textwrap.fill(text, width, initial_indent=head, subsequent_indent=" " * 8, break_long_words=False)
        )
    return "\n".join(paragraphs) + "\n"


def _unknown(name: str, sections: Mapping[str, Section]) -> str:
    near = [rule for rule in sections if name in rule.split(".")]
    near = near or get_close_matches(name, sections, n=3, cutoff=0.5)
    hint = f"The nearest: {', '.join(near)}." if near else "Ids look like attempts.escalate."
    return (
        f"agent-tui explain: there is no rule {name!r}.\n{hint}\n`agent-tui explain list` shows all of them."
    )
