"""What is pasted or typed into any field arrives whole, and what is not seen of it is said."""

from __future__ import annotations

import random
from typing import Any

import pytest
from textual.app import App, ComposeResult
from textual.events import Key, Paste

from tests.console.waiting import picture, until
from tui_agent.console.cards.answer_field import AnswerField
from tui_agent.console.cards.editor import ArgumentField
from tui_agent.console.prompt.completion import Completions
from tui_agent.console.prompt.fields import LineField, TextField, WholeText
from tui_agent.console.prompt.pasted import EDITED, PASTED, Pasted
from tui_agent.console.prompt.prompt import Prompt
from tui_agent.console.screens.fork import ForkField
from tui_agent.terminal_text import invisible, sanitize_between_tabs

ODD = [
    *"\u200b\u200c\u200d\u00ad\ufe0f\ufeff\u2060\u202e\u2066\u200f\u061c\u2028\u2029\U000e0041",
    *("\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\x1b[2J", "\x9b31m", "\x07", "\x08", "\x7f", "\x85"),
    *(
        "👩\u200d👩\u200d👧",
        "❤\ufe0f",
        "1\ufe0f\u20e3",
        "👩\u200d❤\ufe0f\u200d💋\u200d👩",
        "/me/.o\u200dpencode",
        "🏴\U000e0067\U000e0062\U000e007f",
        "e" + "\u0301" * 9,
    ),
    *(
        "שלום",
        "مرحبا",
        "نمی\u200cخواهم",
        "数",
        "größer",
        "[pasted text 1: 20 lines]",
        "[ab: 1 invisible character]",
    ),
    *("a", "b", "r", " ", "  ", "\t", "\n", "\n\n", "it", "is"),
]


@pytest.mark.parametrize("limits", [PASTED, EDITED])
def test_whatever_is_pasted_comes_back_whole_from_a_text_in_which_nothing_is_hidden(
    limits: tuple[int, int],
) -> None:
    chance = random.Random("pasted")
    pasted = Pasted()
    for number in range(500):
        text = "".join(chance.choices(ODD, k=chance.randint(1, 12 if number % 20 else 900)))
        shown = pasted.shown(text, limits)
        assert pasted.whole(shown) == text
        assert sanitize_between_tabs(shown) == shown
        assert (shown == text) == (
            not invisible(text) and len(text) <= limits[1] and text.count("\n") < limits[0]
        )
        if number % 10 == 0:
            pasted.forget()


@pytest.mark.parametrize(
    ("text", "arrives"),
    [("a\rb\r\nc\nd", "a\nb\nc\nd"), ("a\0b", "a␀b"), ("a\udc80b", "a\ufffdb"), ("\ttab\t", "\ttab\t")],
)
def test_line_ends_are_a_terminals_and_what_cannot_be_sent_is_replaced_by_what_shows_it(
    text: str, arrives: str
) -> None:
    pasted = Pasted()
    assert pasted.whole(pasted.shown(text, PASTED)) == arrives


def test_words_alike_on_the_screen_are_not_mistaken_for_each_other() -> None:
    pasted = Pasted()
    texts = ("a\u200bb", "a\u00adb", "a\u200b\u200bb", "\u200bab")
    shown = [pasted.shown(text, PASTED) for text in texts]
    assert len(set(shown)) == len(texts)
    assert [pasted.whole(text) for text in shown] == list(texts)
    assert pasted.whole(" and ".join(shown)) == " and ".join(texts)


def test_a_megabyte_stands_as_one_mark() -> None:
    pasted = Pasted()
    for text in ("x" * 1_000_000, "ab\u200b \x1b[1m" * 120_000, "line\n" * 200_000, "\u0301" * 1_000_000):
        shown = pasted.shown(text, EDITED)
        assert len(shown) < 80
        assert pasted.whole(shown) == text


FIELDS: dict[str, Any] = {
    "prompt": lambda: Prompt(Completions(lambda _: ()), lambda: None, lambda: False),
    "answer": lambda: AnswerField(keys="rs"),
    "fork": lambda: ForkField("note", ""),
    "line": LineField,
    "text": TextField,
    "given": lambda: LineField("a\u200bb ", select_on_focus=False),
    "argument": lambda: ArgumentField("command", "make ", labelled=False),
}


class Fields(App[None]):
    CSS = "Screen > * { height: 3; }"

    def compose(self) -> ComposeResult:
        yield from (make() for make in FIELDS.values())

    def send(self, *keys: str | Paste) -> None:
        for key in keys:
            self.post_message(key if isinstance(key, Paste) else Key(key if len(key) > 1 else "x", key[:1]))


async def test_every_field_takes_what_is_pasted_and_typed_whole_and_shows_what_is_not_seen() -> None:
    app = Fields()
    async with app.run_test(size=(100, 40)) as pilot:
        for name, field in zip(FIELDS, app.query("*").results(WholeText), strict=True):
            before = field.whole_text
            field.focus()
            await pilot.pause()
            app.send(Paste("see\u200b \x1b]0;title\x07the\ufe0f end"))
            await until(pilot, lambda field=field: field.whole_text.endswith("end"))
            app.send(*"👩\u200d💻❤\ufe0fمی\u200cخ")
            await until(pilot, lambda field=field: field.whole_text.endswith("خ"))
            said = "see\u200b \x1b]0;title\x07the\ufe0f end👩\u200d💻❤\ufe0fمی\u200cخ"
            assert (name, field.whole_text) == (name, before + said)
            assert not invisible(picture(app).replace("\n", ""))
            stands = field.text if isinstance(field, TextField) else field.value
            assert "[see: 1 invisible character]" in stands

            field.write("x\u200by")
            await pilot.press("backspace")
            assert field.whole_text == before + said, "a mark goes as a whole"
            await pilot.press("backspace")
            assert field.whole_text == before + said[:-1]
            field.select_all()
            await pilot.press("backspace")
            assert field.whole_text == ""
