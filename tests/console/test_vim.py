"""Vim's keys in the prompt: what each sequence of keys makes of a text, and that no other key changes its meaning."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.widgets import TextArea

from tests.console.live_harness import live
from tui_agent.console.prompt.vim import VimKeys, VimMode
from tui_agent.console.prompt.vim_text import motion, text_object

KEYS = {
    "$": "dollar_sign",
    "^": "circumflex_accent",
    " ": "space",
    "⎋": "escape",
    "®": "ctrl+r",
    "⏎": "enter",
    "⌫": "backspace",
    "→": "right",
    "↓": "down",
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
    ("J", "a\n\nb", "|a\nb"),
    ("sxy⎋", "abc", "x|ybc"),
    ("Sx⎋", "abc", "|x"),
    ("wdiw", "a bcd e", "a | e"),
    ("wdaw", "a bcd e", "a |e"),
    ("$daw", "a bcd", "|a"),
    ("ciwx⎋", "abc d", "|x d"),
    ('di"', 'say "a b" now', 'say "|" now'),
    ('da"', 'say "a b" now', "say |now"),
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
    ("wdiwu", "one two", "one |two"),
    ("d³w", "one two", "one |two"),
    (">>", "  a\nb", "      |a\nb"),
    (">j<<", "a\n\nb", "|a\n\nb"),
    ("2>>.", "a\nb", "        |a\n        b"),
    ("guw", "ONE Two", "|one Two"),
    ("gUU", "one two", "|ONE TWO"),
    ("wg~~", "oNE two", "|One TWO"),
    ("wgUiw", "one two", "one |TWO"),
    ("jdip", "a\nb\n\nc", "|\nc"),
    ("dap", "a\nb\n\n\nc", "|c"),
    ("Gdap", "a\n\nc", "|a"),
    ("Gcipx⎋", "a\n\nc\nd", "a\n\n|x"),
    ("vd", "abc", "|bc"),
    ("vlx", "abc", "|c"),
    ("v→d", "abc", "|c"),
    ("$vhd", "abcd", "a|b"),
    ("$v⌫⌫d", "abcd", "|a"),
    ("vwd", "one two", "|wo"),
    ("ved", "one two", "| two"),
    ("v2ed", "one two three", "| three"),
    ("vf d", "one two", "|two"),
    ("v$d", "ab\ncd", "|cd"),
    ("vGd", "ab\n cd", "|d"),
    ("$jvggd", "ab\ncd", "|"),
    ("lvjd", "abc\ndef", "a|f"),
    ("vlohd", "abc", "|c"),
    ("$vhod", "abc", "|a"),
    ("wvohd", "one two", "one|wo"),
    ("vec12⎋", "one two", "1|2 two"),
    ("vesx⎋", "one two", "|x two"),
    ("vey$p", "one two", "one twoon|e"),
    ("wvey", "one two", "one |two"),
    ("wVy", "one two", "|one two"),
    ("Vyp", "a\nb", "a\n|a\nb"),
    ("jVky", "a\nb", "|a\nb"),
    ("Vd", "a\n  b\nc", "  |b\nc"),
    ("Vjd", "a\nb\nc", "|c"),
    ("V↓d", "a\nb\nc", "|c"),
    ("GVd", "a\n b", "|a"),
    ("VGd", "a\n\nb", "|"),
    ("Vcx⎋", "  a\nb", "|x\nb"),
    ("vjD", "ab\ncd\ne", "|e"),
    ("lvX", "ab\ncd", "|cd"),
    ("lvSx⎋", "ab\ncd", "|x\ncd"),
    ("lvYP", "ab", "|ab\nab"),
    ("vV⎋x", "abc", "|bc"),
    ("vVd", "abc\nd", "|d"),
    ("lVvd", "abc", "a|c"),
    ("vvx", "abc", "|bc"),
    ("Vlx", "abc", "|"),
    ("vly⎋2lvp", "abcd", "aba|bd"),
    ("ywwvep0P", "one two x", "tw|oone one  x"),
    ("ywwveP0P", "one two x", "one| one one  x"),
    ("yyjVp", "a\nb\nc", "a\n|a\nc"),
    ("yyjVpP", "a\nb", "a\n|b\na"),
    ("yywvep", "a b c", "a \n|a b c\n"),
    ("yiwjVp", "a b\nc", "a b\n|a"),
    ("vp", "abc", "|abc"),
    ("ve~", "oNe two", "|OnE two"),
    ("veU", "one two", "|ONE two"),
    ("Vu", "ONE\nTWO", "|one\nTWO"),
    ("vjUu", "ab\ncd", "|ab\ncd"),
    ("vjUu®", "ab\ncd", "|AB\nCd"),
    ("vlrx", "abc", "|xxc"),
    ("Vjr-", "ab\n\nc", "|--\n\nc"),
    ("vjr-", "ab\n\nc", "|--\n\nc"),
    ("vjJ", "a\n b\nc", "a| b\nc"),
    ("vJ", "a\nb", "a| b"),
    ("V2jJ", "a\nb\nc", "a b| c"),
    ("vj>", "a\nb\nc", "    |a\n    b\nc"),
    ("vj2<", "        a\n\tb\nc", "|a\nb\nc"),
    ("V>.", "a", "        |a"),
    ("wviwd", "one two", "one| "),
    ("wvawd", "one two three", "one |three"),
    ("viwiwiwd", "one two three", "| three"),
    ('fsvi"d', 'a "say so" b', 'a "|" b'),
    ('va"d', 'a "say" b', "a |b"),
    ('fbda"', 'a "b"', "|a"),
    ("fxvi(d", "f(x, y)", "f(|)"),
    ("fxvi(a(d", "f(x, y)", "|f"),
    ("fxva(a(d", "g(f(x))", "|g"),
    ("vi(⎋", "()", "|()"),
    ("vipd", "a\nb\n\nc", "|\nc"),
    ("vizd", "abc", "|bc"),
    ("Viwd", "a b", "| b"),
    ("vq⎋", "abc", "|abc"),
    ("vlgvd", "abc", "|c"),
    ("vl⎋$gvd", "abc", "|c"),
    ("Vj⎋Ggvd", "a\nb\nc", "|c"),
    ("VGdgvd", "a\nb", "|"),
    ("gvx", "abc", "|bc"),
    ("vld.", "abcdef", "|ef"),
    ("Vjd.", "a\nb\nc\nd\ne", "|e"),
    ("vjlx.", "abc\ndef\nghi\njkl", "|i\njkl"),
    ("velcx⎋w.", "one two three", "xtwo |xe"),
    ("vdu", "abc", "|abc"),
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
            if marked(vim) != after or vim.mode is not VimMode.NORMAL or vim.pending:
                wrong.append((typed, before, after, marked(vim), vim.mode, vim.pending))
    assert wrong == []


PRESSED = [
    *'hljkwbeWBE0^$GgfFtT;,diacyvVoxpPrsSDCXYRJ~uUq.><13 ("²:/',
    "gv",
    "iw",
    "ip",
    'a"',
    "⎋",
    "®",
    "⌫",
    "↓",
]


@given(st.text('ab ()"\n', max_size=12), st.lists(st.sampled_from(PRESSED), max_size=25))
async def test_any_keys_leave_a_cursor_and_a_selection_that_are_in_the_text(
    text: str, typed: list[str]
) -> None:
    app = Area()
    async with app.run_test() as pilot:
        app.area.load_text(text)
        vim = VimKeys(app.area)
        await keys(pilot, vim, "⎋")
        for key in typed:
            await keys(pilot, vim, key)
            lines = app.area.text.split("\n")
            for row, column in app.area.selection:
                assert 0 <= row < len(lines)
                assert 0 <= column <= len(lines[row])
            assert vim.selected_text in app.area.text
            assert (
                bool(vim.selected_text or not app.area.text) or not vim.mode.selects or "\n" in app.area.text
            )
            if not vim.mode.selects:
                assert app.area.selection.is_empty
            if vim.mode is VimMode.NORMAL:
                row, column = app.area.cursor_location
                assert column < len(lines[row]) or column == 0
        await keys(pilot, vim, "⎋⎋")
        assert vim.mode is VimMode.NORMAL
        assert not vim.pending


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
    st.sampled_from('wW"(){}bB<xp'),
)
def test_what_a_text_object_names_lies_in_the_text(text: str, at: int, how: str, what: str) -> None:
    named = text_object(text, min(at, len(text)), how + what)
    if named is not None:
        start, end, _ = named
        assert 0 <= start <= end <= len(text)
        inner, outer = (text_object(text, min(at, len(text)), each + what) for each in "ia")
        assert inner
        assert outer
        assert outer[0] <= inner[0] <= inner[1] <= outer[1]


async def test_in_the_console_a_selection_is_seen_named_and_copied() -> None:
    async with live() as console:
        console.session.start()
        await console.say("/vim")
        await console.until(lambda: "INSERT" in console.shown())
        await console.type("one two")
        await console.press("escape", "b", "v", "e")
        await console.until(lambda: " VISUAL " in console.shown())
        area = console.screen.prompt
        assert not area.selection.is_empty
        assert not area.cursor_blink, "the cursor is the last selected character"
        await console.press("ctrl+c")
        await console.until(lambda: console.app.clipboard == "two")
        await console.press("V")
        await console.until(lambda: "VISUAL LINE" in console.shown())
        await console.press("escape")
        await console.until(lambda: "NORMAL" in console.shown())
        assert ("interrupt",) not in console.session.done
        await console.press("v")
        await console.until(lambda: " VISUAL " in console.shown())
        area.put("another text")
        await console.until(lambda: "NORMAL" in console.shown())
        await console.press("d", "d", "colon", "v", "i", "m")
        await console.until(lambda: console.prompt == "/vim" and "Vim keys in the prompt" in console.shown())


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
