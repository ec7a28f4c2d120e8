"""Vim's keys in the prompt: what each sequence of keys makes of a text, and that no other key changes its meaning."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.widgets import TextArea

from tests.console.live_harness import live
from tui_agent.console.vim import Mode, VimKeys, motion, text_object

KEYS = {
    "$": "dollar_sign",
    "^": "circumflex_accent",
    " ": "space",
    "⎋": "escape",
    "®": "ctrl+r",
    "⏎": "enter",
}

CASES = [
    # keys from the start of the text in normal mode, the text before, and after; | is the cursor
    ("w", "one two", "one |two"),
    ("2w", "one, two", "one, |two"),
    ("wh", "one two", "one| two"),
    ("e", "one two", "on|e two"),
    ("2e", "one two", "one tw|o"),
    ("$b", "one two", "one |two"),
    ("$", "one two", "one tw|o"),
    ("$0", "  one", "|  one"),
    ("$^", "  one", "  |one"),
    ("G", "a\nb\n  c", "a\nb\n  |c"),
    ("G2G", "a\n b\nc", "a\n |b\nc"),
    ("Ggg", "a\nb\nc", "|a\nb\nc"),
    ("jl", "ab\ncd", "ab\nc|d"),
    ("jk", "ab\ncd", "|ab\ncd"),
    ("99l", "abc", "ab|c"),
    ("x", "abc", "|bc"),
    ("3x", "abcd", "|d"),
    ("$x", "abc", "a|b"),
    ("$X", "abc", "a|c"),
    ("dw", "one two", "|two"),
    ("2dw", "one two three", "|three"),
    ("d2w", "one two three", "|three"),
    ("wdw", "one two\n three", "one| \n three"),
    ("d$", "one\ntwo", "|\ntwo"),
    ("wD", "one two", "one| "),
    ("de", "one two", "| two"),
    ("$db", "one two", "one |o"),
    ("dd", "one\n two\nthree", " |two\nthree"),
    ("Gdd", "one\n two", "|one"),
    ("2dd", "one\ntwo\nthree", "|three"),
    ("dj", "one\ntwo\nthree", "|three"),
    ("dG", "one\ntwo", "|"),
    ("jdgg", "one\ntwo\nthree", "|three"),
    ("cwnew⎋", "one two", "ne|w two"),
    ("ccnew⎋", "one\ntwo", "ne|w\ntwo"),
    ("wCx⎋", "one two", "one |x"),
    ("ia⎋", "b", "|ab"),
    ("ab⎋", "a", "a|b"),
    ("$Ia⎋", " b", " |ab"),
    ("Ab⎋", "a", "a|b"),
    ("onew⎋", "one\ntwo", "one\nne|w\ntwo"),
    ("Onew⎋", "one", "ne|w\none"),
    ("xp", "ab", "b|a"),
    ("xP", "ab", "|ab"),
    ("yyp", "one\ntwo", "one\n|one\ntwo"),
    ("yyP", "one", "|one\none"),
    ("ddp", "one\ntwo", "two\n|one"),
    ("yw2p", "a b", "aa a|  b"),
    ("ywP", "one two", "one| one two"),
    ("Yjp", "one\ntwo", "one\ntwo\n|one"),
    ("ddu", "one\ntwo", "|one\ntwo"),
    ("xxu®", "abc", "|c"),
    ("d⎋w", "one two", "one |two"),
    ("dzw", "one two", "one |two"),
    ("10x", "abc", "|"),
    ("3gg", "a\nb", "a\n|b"),
    ("fo", "a foo", "a f|oo"),
    ("fo;", "a foo", "a fo|o"),
    ("2fo,", "a foo", "a f|oo"),
    ("to", "a foo", "a |foo"),
    ("tb;", "abab", "ab|ab"),
    ("$Fa", "abab", "ab|ab"),
    ("$Ta", "abac", "aba|c"),
    ("$Ta;", "abac", "a|bac"),
    ("fz", "abc", "|abc"),
    ("dfb", "abc", "|c"),
    ("dtc", "abc", "|c"),
    ("$dFa", "abc", "|c"),
    ("dfz", "abc", "|abc"),
    ("W", "a-b c", "a-b |c"),
    ("$B", "a b-c", "a |b-c"),
    ("E", "a-b c", "a-|b c"),
    ("dW", "a-b c", "|c"),
    ("rx", "abc", "|xbc"),
    ("2rx", "abc", "x|xc"),
    ("4rx", "abc", "|abc"),
    ("2~", "aBc", "Ab|c"),
    ("J", "a\n  b", "a| b"),
    ("3J", "a\nb\nc", "a b| c"),
    ("sxy⎋", "abc", "x|ybc"),
    ("Sx⎋", "abc", "|x"),
    ("wdiw", "a bcd e", "a | e"),
    ("wdaw", "a bcd e", "a |e"),
    ("$daw", "a bcd", "|a"),
    ("ciwx⎋", "abc d", "|x d"),
    ('di"', 'say "a b" now', 'say "|" now'),
    ('da"', 'say "a b" now', "say | now"),
    ("fbci(x⎋", "f(a(b)c)", "f(a(|x)c)"),
    ("fcdi(", "f(a(b)c)", "f(|)"),
    ("fzda{", "x{\na\n}y", "|x{\na\n}y"),
    ("jda{", "x{\na\n}y", "x|y"),
    ("di(", "abc", "|abc"),
    ("x.", "abcd", "|cd"),
    ("x2.", "abcd", "|d"),
    ("cwno⎋w.", "a b", "no n|o"),
    ("Ax⎋0.", "ab", "abx|x"),
    ("odo⎋.", "a", "a\ndo\nd|o"),
    ("dwx.", "a bcd", "|d"),
    ("cwlong⎋u", "one two", "|one two"),
    ("cwlong⎋u®", "one two", "|long two"),
    ("xcwlong⎋uu", "one two", "|one two"),
    ("xixyz⎋xuu", "one", "|ne"),
]


class Area(App[None]):
    """A text area with Vim's keys."""

    def compose(self) -> ComposeResult:
        yield TextArea()

    @property
    def area(self) -> TextArea:
        return self.query_one(TextArea)


async def keys(pilot: Pilot[None], vim: VimKeys, typed: str) -> None:
    from textual import events

    for letter in typed:
        key = KEYS.get(letter, letter)
        event = events.Key(
            key, letter if key in {letter, "space", "dollar_sign", "circumflex_accent"} else None
        )
        if not vim.take(event) and event.character:
            vim._area.insert(event.character)
    await pilot.pause()


def marked(vim: VimKeys) -> str:
    return f"{vim._text[: vim._at]}|{vim._text[vim._at :]}"


async def test_what_keys_make_of_a_text() -> None:
    app = Area()
    wrong = []
    async with app.run_test() as pilot:
        for typed, before, after in CASES:
            app.area.load_text(before)
            app.area.move_cursor((0, 0))
            vim = VimKeys(app.area)
            await keys(pilot, vim, "⎋" + typed)
            if marked(vim) != after or vim.mode is not Mode.NORMAL or vim.pending:
                wrong.append((typed, before, after, marked(vim), vim.mode, vim.pending))
    assert wrong == []


@settings(deadline=None, max_examples=200)
@given(
    st.text("ab .,\n", max_size=30),
    st.integers(0, 30),
    st.sampled_from([*"hljkwbeWBE0^$G", "gg"]),
    st.integers(1, 9),
)
def test_motions_stay_in_the_text(text: str, at: int, key: str, count: int) -> None:
    moved = motion(key, text, min(at, len(text)), count)
    assert moved is not None
    assert 0 <= moved.to <= len(text)
    if key in "hl0^":
        assert text.count("\n", *sorted((min(at, len(text)), moved.to))) == 0


@settings(deadline=None, max_examples=200)
@given(
    st.text('ab (){}"\n', max_size=20),
    st.integers(0, 20),
    st.sampled_from("ia"),
    st.sampled_from('wW"(){}bB<x'),
)
def test_what_a_text_object_names_lies_in_the_text(text: str, at: int, how: str, what: str) -> None:
    named = text_object(text, min(at, len(text)), how + what)
    if named is not None:
        start, end = named
        assert 0 <= start <= end <= len(text)
        inner, outer = (text_object(text, min(at, len(text)), each + what) for each in "ia")
        assert inner
        assert outer
        assert outer[0] <= inner[0] <= inner[1] <= outer[1]


async def test_in_the_console_esc_leaves_insert_mode_before_it_interrupts_and_other_keys_stay() -> None:
    async with live() as console:
        console.session.start()
        await console.say("/vim")
        await console.until(lambda: "INSERT" in console.shown())
        await console.pilot.resize_terminal(60, 20)
        await console.until(lambda: "INSERT" in console.shown().splitlines()[-3])
        await console.type("one two")
        await console.press("escape")
        await console.until(lambda: "NORMAL" in console.shown())
        assert ("interrupt",) not in console.session.done
        await console.press("b", "d", "w")
        assert console.prompt == "one "
        await console.press("u")
        await console.until(lambda: console.prompt == "one two")
        await console.press("ctrl+r")
        await console.until(lambda: console.prompt == "one ")
        assert console.app.screen is console.screen, "no list of earlier prompts"
        await console.press("enter")
        assert console.session.done[-1] == ("submit", "one")
        await console.until(lambda: "INSERT" in console.shown())
        await console.press("escape", "k")
        await console.until(lambda: console.prompt == "" and console.screen.focused.id == "queued")
        await console.press("escape")
        await console.press("escape")
        await console.until(lambda: ("interrupt",) in console.session.done)
        await console.press("slash", "v", "i", "m", "space", "o", "f", "f", "enter")
        await console.until(lambda: console.screen.prompt.vim is None)
        assert "INSERT" not in console.shown()
