"""Text from outside becomes safe: properties over any text, tables for what terminals act on."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.terminal_text import is_safe, json_text, one_line, reveal, sanitize

hostile = st.text(
    alphabet=st.one_of(
        st.sampled_from(
            "\x00\x07\x08\t\n\r\x0b\x0c\x1b\x7f\x9b\x9d\x90\x9c[]()0;?hlmJKHA52c"
            "\u202e\u2066\u200b\u200d\ufeff\u061c  \ud800"
        ),
        st.characters(),
    )
)
FORBIDDEN = {"Cc", "Cs"}


def acted_on(text: str) -> list[str]:
    """Characters that a terminal would act on instead of showing them (the line feed aside)."""
    bidi = {chr(c) for c in (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))}
    return [
        char for char in text if (unicodedata.category(char) in FORBIDDEN and char != "\n") or char in bidi
    ]


@given(hostile)
def test_nothing_that_a_terminal_acts_on_is_left(text: str) -> None:
    for door in (sanitize, reveal, one_line):
        assert acted_on(door(text)) == []
        door(text).encode("utf-8")


@given(hostile)
def test_a_json_document_keeps_its_meaning_without_what_a_terminal_acts_on(text: str) -> None:
    document = json_text(json.dumps({text: [text]}, ensure_ascii=False, indent=1))
    assert acted_on(document) == []
    assert json.loads(document) == {text: [text]}


@given(hostile)
def test_sanitising_twice_changes_nothing_more(text: str) -> None:
    once = sanitize(text)
    assert sanitize(once) == once
    assert reveal(reveal(text)) == reveal(text)


@given(hostile)
def test_only_line_feeds_separate_lines(text: str) -> None:
    for door in (sanitize, reveal):
        closed = door(text) + "x"
        assert closed.splitlines() == closed.split("\n")
    assert "\n" not in one_line(text)


@given(hostile)
def test_revealing_hides_no_printable_character(text: str) -> None:
    shown = reveal(text)
    for char in text:
        if char.isalnum() and unicodedata.combining(char) == 0 and is_safe(char):
            assert char in shown


@given(st.text(alphabet=st.characters(categories=("L", "N", "P", "S", "Zs"), max_codepoint=0x2FF)))
def test_ordinary_text_is_returned_as_it_is(text: str) -> None:
    if is_safe(text):
        assert sanitize(text) is text
        assert reveal(text) is text


@pytest.mark.parametrize(
    ("text", "safe", "revealed"),
    [
        ("\x1b[31mred\x1b[0m", "red", "␛[31mred␛[0m"),
        ("\x1b[2J\x1b[H", "", "␛[2J␛[H"),
        ("\x1b]0;title\x07after", "after", "␛]0;title␇after"),
        ("\x1b]52;c;c2VjcmV0\x1b\\after", "after", "␛]52;c;c2VjcmV0␛\\after"),
        ("\x1b]8;;http://evil\x1b\\here\x1b]8;;\x1b\\", "here", "␛]8;;http://evil␛\\here␛]8;;␛\\"),
        ("\x1bP1;2|payload\x1b\\x", "x", "␛P1;2|payload␛\\x"),
        ("\x1b]0;never ended\nnext", "0;never ended\nnext", "␛]0;never ended\nnext"),
        ("\x9b2J\x9d0;t\x9cx", "x", "‹U+009B›2J‹U+009D›0;t‹U+009C›x"),
        ("\x1bcreset", "reset", "␛creset"),
        ("10%\r50%\r100%\r\nok", "100%\nok", "10%␍50%␍100%␍\nok"),
        ("rm -rf / #\recho hello  ", "echo hello  ", "rm -rf / #␍echo hello  "),
        ("a\tb\n\tc", "a   b\n    c", "a   b\n    c"),
        ("user\u202egpj.exe", "user‹U+202E›gpj.exe", "user‹U+202E›gpj.exe"),
        ("pay\u200bpal", "paypal", "pay‹U+200B›pal"),
        ("ad\U000e0041min", "admin", "ad‹U+E0041›min"),
        ("👩\u200d💻", "👩💻", "👩‹U+200D›💻"),
        ("می\u200cخواهم", "می\u200cخواهم", "می‹U+200C›خواهم"),
        ("\x00\x07\x08\x7f", "␀␇␈␡", "␀␇␈␡"),
        ("a\u2028b", "a\nb", "a\nb"),
        ("\ud800", "\ufffd", "\ufffd"),
        ("[red]not markup[/red]", "[red]not markup[/red]", "[red]not markup[/red]"),
        ("e" + "\u0301" * 9, "e" + "\u0301" * 3, "e" + "\u0301" * 3),
    ],
)
def test_what_becomes_of_hostile_text(text: str, safe: str, revealed: str) -> None:
    assert sanitize(text) == safe
    assert reveal(text) == revealed


@pytest.mark.parametrize(
    "unit", ["\x1b]", "\x9d", "\x1b[", "\x1b[0;", "\r", "\u0301", "\u200d", "\x1bP", "a\tb\r", "\u200b"]
)
def test_long_runs_of_what_is_hostile_are_worked_through_in_one_pass(unit: str) -> None:
    """Work that grew with the square of the text would take many minutes here."""
    text = unit * (100_000 // len(unit))
    assert acted_on(sanitize(text)) == []
    assert acted_on(reveal(text)) == []


def test_one_line_looks_only_at_the_beginning() -> None:
    assert one_line("a\n  b\tc\x1b[1m" + "x" * 10_000, 20) == "a b c" + "x" * 9 + "…"
