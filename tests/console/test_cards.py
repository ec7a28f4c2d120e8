"""Cards: when they may take a key, what they show, what each answer gives back to the loop."""

from __future__ import annotations

import asyncio
from typing import Literal

import pytest
from textual.events import Key, Paste
from textual.geometry import Region

from tests.console.live_harness import live
from tests.console.panes.stories import Story
from tui_agent.console.cards.answer_field import AnswerField
from tui_agent.console.cards.approval import ApprovalCard
from tui_agent.console.cards.card_body import CardBody
from tui_agent.console.cards.choices import Choices
from tui_agent.console.cards.editor import ArgumentsEditor, ArgumentsError, parse_arguments
from tui_agent.console.cards.escalation import EscalationCard
from tui_agent.console.cards.gate import GateCard
from tui_agent.console.prompt.fields import TextField
from tui_agent.core.events import (
    EscalationRaised,
    Event,
    Failure,
    FailureKind,
    Fault,
    FaultKind,
    HeldFile,
    IterationFinished,
    IterationStarted,
    Mode,
    ModelFaulted,
    ReplyFinished,
    RunStarted,
    ToolCall,
    ToolFailed,
)
from tui_agent.core.fold import fold
from tui_agent.core.values import Reach
from tui_agent.frontend.lines.approval import held_whole, subject
from tui_agent.frontend.lines.escalation import (
    EarlierFailure,
    attempts_before,
    choices_for,
    title_of,
    tried,
)
from tui_agent.frontend.lines.passages import Passage, diff_passages
from tui_agent.frontend.lines.styled import text_of


async def test_a_card_takes_no_key_before_its_grace_is_over() -> None:
    async with live() as console:
        asked = console.ask()
        await console.card_appears()
        await console.type("yes")
        assert console.prompt == "yes"
        assert not asked.done()


async def test_a_card_never_takes_the_keys_from_a_draft_however_long_it_rests() -> None:
    async with live() as console:
        await console.type("half a")
        asked = console.ask()
        await console.card_appears()
        await console.time_passes(3.0)
        assert not console.in_card
        assert "F8 answer" in console.shown()
        await console.type("y")
        await console.time_passes(60.0)
        assert (console.in_card, console.prompt, asked.done()) == (False, "half ay", False)
        await console.press("f8", "y")
        assert not asked.done(), "the draft may go on with it"
        await console.press("enter")
        assert (await asked).decision == "once"
        assert console.prompt == "half ay"


async def test_a_card_takes_the_keys_once_the_draft_was_sent() -> None:
    async with live() as console:
        await console.type("half a")
        console.ask()
        await console.card_appears()
        await console.press("enter")
        await console.grace_passes()
        assert console.in_card


async def test_a_key_as_the_card_appears_does_not_make_it_deaf() -> None:
    async with live() as console:
        asked = console.ask()
        await console.card_appears()
        await console.press("y")
        assert (console.prompt, asked.done()) == ("y", False)
        await console.press("backspace")
        await console.grace_passes()
        await console.press("y")
        assert (await asked).decision == "once"
        assert "submit" not in [done[0] for done in console.session.done]


async def test_esc_gives_the_prompt_back_with_its_draft_for_good() -> None:
    async with live() as console:
        await console.type("half a")
        console.ask()
        await console.card_appears()
        await console.press("f8", "escape")
        await console.type(" line")
        await console.grace_passes()
        assert (console.in_card, console.prompt) == (False, "half a line")


async def test_the_keys_of_a_card_are_dim_until_they_are_its_own() -> None:
    async with live() as console:
        console.ask()
        await console.card_appears()
        choices = console.card.query_one(Choices)
        assert choices.dim
        await console.grace_passes()
        assert not choices.dim


async def test_typing_starts_the_grace_again() -> None:
    async with live() as console:
        console.ask()
        await console.card_appears()
        console.app.time += 0.3
        await console.press("x", "backspace")
        console.app.time += 0.3
        console.screen.card_host.settle()
        assert not console.in_card
        await console.grace_passes()
        assert console.in_card


async def test_f8_goes_to_the_card_and_stays_there_and_esc_comes_back_to_the_draft() -> None:
    async with live() as console:
        await console.type("draft")
        console.ask()
        await console.card_appears()
        await console.press("f8")
        assert console.in_card
        await console.press("f8")
        assert console.in_card
        await console.press("escape")
        assert not console.in_card
        assert console.prompt == "draft"


async def test_keys_and_arrows_give_the_same_decisions() -> None:
    async with live() as console:
        for keys, decision in (
            (["y"], "once"),
            (["a", "enter"], "session"),
            (["enter"], "once"),
            (["right", "enter"], "session"),
            (["right", "right", "right", "enter", "enter"], "deny"),
            (["down", "down", "enter"], "always"),
            (["left", "left", "left", "left", "enter", "enter"], "deny"),
            (["down", "up", "enter"], "once"),
        ):
            asked = await console.card_for(console.ask())
            await console.press(*keys)
            await console.until(asked.done)
            assert asked.result().decision == decision, keys
            await console.until(lambda: console.card is None)
            assert console.screen.focused is console.screen.prompt


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        (("n", *"o", "comma", "space", *"use", "space", *"tox"), "no, use tox"),
        (("n",), ""),
        (("n", "backspace", *"too", "space", *"risky"), "too risky"),
        (("n", "space", *"ot", "backspace", "backspace"), "n"),
        (("n", *"ever", "escape", "n"), ""),
    ],
    ids=["typed on", "alone", "taken out", "with a gap", "after all"],
)
async def test_no_that_acts_at_once_is_the_first_letter_of_what_is_typed_on(
    keys: tuple[str, ...], reason: str
) -> None:
    async with live() as console:
        asked = console.ask()
        await console.card_appears()
        await console.time_passes(1.0)
        for key in keys:
            await console.press(key)
            if key == "escape":
                await console.time_passes(1.0)
        await console.press("enter")
        await console.until(asked.done)
        assert (asked.result().decision, asked.result().reason) == ("deny", reason)


async def test_esc_in_the_reason_goes_back_to_the_choices_and_interrupts_nothing() -> None:
    async with live() as console:
        console.session.start()
        asked = await console.card_for(console.ask())
        await console.press("n")
        reason = "Enter deny  type on n…  Esc back  ^C interrupt"
        await console.until(lambda: reason in console.shown())
        await console.press("escape")
        assert ("interrupt",) not in console.session.done
        await console.until(lambda: "Esc prompt  ^C interrupt" in console.shown())
        await console.press("y")
        await console.until(asked.done)


async def test_a_click_takes_a_choice_only_after_the_grace() -> None:
    async with live() as console:
        asked = console.ask()
        await console.card_appears()
        await console.pilot.pause()
        choices = console.card.query_one("Choices")
        await console.pilot.click(choices, offset=(2, 0))
        assert not asked.done()
        await console.grace_passes()
        await console.pilot.click(choices, offset=(2, 0))
        await console.until(asked.done)
        assert asked.result().decision == "once"


async def test_edited_arguments_are_checked_before_they_are_taken() -> None:
    async with live() as console:
        asked = await console.card_for(console.ask())
        await console.choose("e")
        assert console.card.query_one("ArgumentsEditor TextArea").text == "make 0"
        await console.press("ctrl+e")
        editor = console.card.query_one("ArgumentsEditor TextArea")
        editor.load_text('{"command": ')
        await console.press("ctrl+s")
        assert "Not JSON" in console.shown()
        assert not asked.done()
        editor.load_text('{"command": "make safe"}')
        await console.press("ctrl+s")
        await console.until(asked.done)
        assert asked.result().input == {"command": "make safe"}


async def test_a_draft_of_the_arguments_stays_and_can_be_undone_and_each_field_begins_at_its_end() -> None:
    async with live() as console:
        console.ask(input={"path": "a.py", "content": "x = 1\n\ty = 2\n", "mode": 3})
        await console.card_takes_keys()
        await console.choose("e")
        await console.until(lambda: len(console.card.query("ArgumentsEditor TextArea")) == 3)
        texts = [area.text for area in console.card.query("ArgumentsEditor TextArea")]
        assert texts == ["a.py", "x = 1\n\ty = 2\n", "3"]
        assert "content" in console.shown()
        for area in console.card.query("ArgumentsEditor TextArea"):
            assert area.cursor_location == area.document.end
        last = console.card.query("ArgumentsEditor TextArea").last()
        last.focus()
        await console.press("{")
        assert last.text == "3{"
        await console.press("ctrl+s")
        await console.until(lambda: "mode: Not JSON" in console.shown())
        await console.choose("escape", "e")
        await console.until(lambda: "Not JSON" not in console.shown())
        assert [area.text for area in console.card.query("ArgumentsEditor TextArea")] == [*texts[:2], "3{"]
        last.focus()
        await console.press("ctrl+underscore")
        assert [area.text for area in console.card.query("ArgumentsEditor TextArea")] == texts


async def test_a_text_in_which_something_hides_is_edited_as_json() -> None:
    async with live() as console:
        asked = await console.card_for(console.ask(input={"command": "rm x \r ls"}))
        await console.choose("e")
        await console.until(lambda: console.card.query("ArgumentsEditor TextArea"))
        assert console.card.query_one("ArgumentsEditor TextArea").text == '"rm x \\r ls"'
        await console.press("ctrl+s")
        await console.until(asked.done)
        assert asked.result().input is None


WAYS_OUT = {"r": "retry", "s": "skip", "p": "partial", "x": "stop"}


@pytest.mark.parametrize("before", [(), ("down",)], ids=["in the empty answer", "among the choices"])
async def test_a_shown_key_marks_its_choice_and_enter_takes_it(before: tuple[str, ...]) -> None:
    async with live() as console:
        for key, choice in WAYS_OUT.items():
            raised = await console.card_for(console.escalate())
            await console.press(*before, key)
            await console.time_passes(60.0)
            label = next(one.label for one in console.card.query_one(Choices).choices if one.key == key)
            await console.until(
                lambda key=key, label=label: (
                    f"▸ {key} {label} · Enter does it  type on for an answer" in console.shown()
                )
            )
            assert f"▸{key} {label}" in console.shown()
            assert not raised.done(), "no time that passes takes it"
            await console.press("enter")
            assert await console.chosen(raised) == (choice, "")
            await console.until(lambda: console.card is None)


async def test_once_a_text_was_begun_every_key_is_text() -> None:
    async with live() as console:
        raised = await console.card_for(console.escalate())
        await console.type("skip x")
        await console.press("enter")
        assert await console.chosen(raised) == ("answer", "skip x")


async def test_a_text_behind_a_marked_choice_takes_the_mark_away() -> None:
    async with live() as console:
        raised = await console.card_for(console.escalate())
        await console.press("p")
        await console.until(lambda: "▸ p partial answer" in console.shown())
        assert console.card.query_one(Choices).marked
        await console.type("lease look in src")
        await console.until(lambda: "Esc prompt" in console.shown())
        assert not console.card.query_one(Choices).marked
        await console.press("enter")
        assert await console.chosen(raised) == ("answer", "please look in src")

        raised = await console.card_for(console.escalate())
        await console.press("x", "backspace", "p", "down", "enter")
        assert await console.chosen(raised) == ("partial", "")


@pytest.mark.parametrize("kind", ["ask", "escalate"])
async def test_esc_goes_back_to_the_prompt_and_the_question_stays(kind: str) -> None:
    async with live() as console:
        console.session.start()
        asked = getattr(console, kind)()
        await console.card_takes_keys()
        assert "^C interrupt" in console.shown()
        await console.press("escape")
        assert console.screen.focused is console.screen.prompt
        await console.press("escape", "escape")
        assert ("interrupt",) not in console.session.done
        assert not asked.done()
        await console.press("enter", "enter")
        assert console.in_card
        assert not asked.done(), "an Enter too many answers nothing"
        await console.press("escape", "f8")
        assert console.in_card
        await console.press("ctrl+c")
        await console.until(lambda: ("interrupt",) in console.session.done)


async def test_a_card_whose_parts_are_not_there_is_not_entered() -> None:
    async with live() as console:
        console.escalate()
        await console.card_appears()
        assert console.card is not None
        await console.card.remove_children()
        await console.pilot.resize_terminal(90, 24)
        await console.time_passes(5.0)
        await console.press("f8")
        assert not console.in_card


async def test_what_was_not_on_the_screen_is_not_accepted() -> None:
    command = "\n".join(f"echo {number}" for number in range(60)) + "\ntouch LAST"
    async with live((60, 20)) as console:
        asked = await console.card_for(console.ask(preview=command, input={"command": command}))
        await console.press("y", "a", "enter", "enter")
        assert not asked.done()
        assert "PgDn" in console.shown()
        await console.press("end")
        assert "touch LAST" in console.shown()
        await console.press("y")
        await console.until(asked.done)


def test_long_commands_are_wrapped_at_words_and_numbered_files_show_their_lines() -> None:
    command = "pytest " + " ".join(f"tests/test_number_{n}.py" for n in range(9)) + " " + "x" * 70 + " end"
    shown = [
        text_of(line)
        for line in CardBody(list(subject(f"{command}\n\n(in /w)", {"command": command}))).draw(60, 0)
    ]
    assert "".join(shown) == command
    assert all(line.endswith((" ", "x")) for line in shown[:-1])
    diff = "--- a\n+++ b\n@@ -3,2 +3,3 @@\n x\n-y\n+z\n+" + "\n+" * 40 + "last"
    lines = [text_of(line) for line in CardBody(list(subject(diff, {}))).draw(60, 0)]
    assert lines == ["a → b", " 3  x", " 4 -y", " 4 +z", "⋯ 40 empty lines ⋯", "45 +last"]
    written = list(
        subject("This call would fail: no", {"path": "a.py", "content": "one\n\ttwo\n", "deep": {"a": [1]}})
    )
    text = "\n".join(passage.number + passage.text for passage in written)
    assert "content:\n1one\n2\ttwo" in text
    assert "\\n" not in text


HUNK = "@@ -1 +1 @@\n-y\n+z"


@pytest.mark.parametrize(
    ("diff", "shown"),
    [
        (f"--- /dev/null\n+++ b/n.py\n{HUNK}", ["n.py · a new file", "1-y", "1+z"]),
        (f"--- a/n.py\n+++ /dev/null\n{HUNK}", ["n.py · is deleted", "1-y", "1+z"]),
        (f"--- a/n.py\n+++ b/n.py\n{HUNK}\n@@ -9 +9 @@ f()\n x", ["n.py", "1-y", "1+z", "⋯ f()", "9 x"]),
        # A changed line may look like the head of a file.
        (
            f"--- a/n\n+++ b/n\n{HUNK}\n--- a/m\n+++ b/m\n{HUNK}",
            ["n", "1-y", "1+z", "2--- a/m", "2+++ b/m", "⋯", "1-y", "1+z"],
        ),
        # What does not begin as a diff is shown as it is.
        (f"patch:\n--- a/n\n+++ b/n\n{HUNK}", ["patch:", "--- a/n", "+++ b/n", "@@ -1 +1 @@", "1-y", "1+z"]),
    ],
)
def test_a_diff_to_approve_names_its_files_and_numbers_its_lines(diff: str, shown: list[str]) -> None:
    assert [passage.number + passage.text for passage in diff_passages(diff)] == shown


def test_blanks_do_not_push_the_rest_out_of_sight() -> None:
    body = CardBody(
        [Passage("echo ok" + " " * 3_000 + "; touch PWNED\n" + "\n" * 500 + "rm x", verbatim=True)]
    )
    shown = [text_of(line) for line in body.draw(60, 0)]
    assert shown[0] == "echo ok ⋯ 3,000 spaces ⋯ ; touch PWNED"
    assert shown[-1] == "rm x"
    assert len(shown) < 6


@pytest.mark.parametrize("kind", ["ask", "escalate"])
async def test_a_question_is_on_the_screen_at_every_size_and_before_open_panes(kind: str) -> None:
    words, keys = ("make 0", {"y", "a", "w"}) if kind == "ask" else ("read_file", {"r", "e", "s"})
    wide = ("y once", "n no") if kind == "ask" else ("r retry once", "x stop")
    async with live((80, 24)) as console:
        await console.press("f2")
        getattr(console, kind)()
        await console.card_takes_keys()
        for size in ((60, 20), (80, 24), (120, 40), (40, 10), (30, 8), (20, 5)):
            await console.pilot.resize_terminal(*size)
            await console.until(lambda: words in console.shown())
            if size[0] >= 60:
                await console.until(lambda: all(word in console.shown() for word in wide))
            else:
                key_row = console.card.query_one("Choices").region
                rows = console.shown().splitlines()[key_row.y : key_row.bottom]
                assert keys <= {word for row in rows for word in row.split()}
                assert console.app.screen.size.region.contains_region(key_row)
                assert key_row.height


@pytest.mark.parametrize("text", ["", "[1]", "{", '{"a": }', "null", "[" * 100_000])
def test_arguments_that_are_no_object_are_refused_in_words(text: str) -> None:
    with pytest.raises(ArgumentsError):
        parse_arguments(text)


async def test_the_subject_stays_while_other_questions_come_and_go() -> None:
    async with live() as console:
        first, second, third = console.ask(), console.ask(), console.ask()
        await console.card_appears()
        card = console.card
        await console.until(lambda: "1 of 3" in str(console.card.border_title))
        second.cancel()
        await console.until(lambda: "1 of 2" in str(console.card.border_title))
        assert console.card is card
        assert "make 0" in console.shown()
        await console.grace_passes()
        await console.press("y")
        await console.until(first.done)
        await console.until(lambda: console.card is not None and console.card is not card)
        assert "make 2" in console.shown()
        # the next card has a grace of its own
        await console.press("y")
        assert not third.done()


async def test_a_question_that_is_withdrawn_takes_its_card_away() -> None:
    async with live() as console:
        asked = await console.card_for(console.ask())
        asked.cancel()
        await console.until(lambda: console.card is None)
        assert console.screen.focused is console.screen.prompt


async def test_a_field_that_is_drawn_once_more_after_it_was_removed_is_blank() -> None:
    async with live() as console:
        asked = await console.card_for(console.ask())
        await console.choose("e")
        await console.until(lambda: "^S run this" in console.shown())
        field = console.card.query_one("ArgumentsEditor TextArea")
        asked.cancel()
        await console.until(lambda: console.card is None)
        # The screen draws by its last layout until it has made the next one.
        (row,) = field.render_lines(Region(0, 0, 20, 1))
        assert row.text == " " * 20


async def test_a_long_subject_is_there_in_full_and_the_choices_stay_in_view() -> None:
    command = (
        "\n".join(f"echo line number {number} {'x' * 120}" for number in range(60)) + "\necho the very end"
    )
    async with live((80, 24)) as console:
        for size in ((80, 24), (200, 60)):
            await console.pilot.resize_terminal(*size)
            await console.until(lambda size=size: console.screen.size == size)
            asked = await console.card_for(console.ask(preview=command, input={"command": command}))
            card_body = console.card.query_one(CardBody)
            lines = [text_of(line) for line in card_body.lines]
            assert "".join(line[3:] for line in lines[: card_body.subject_lines]) == command.replace("\n", "")
            assert [line[:2] for line in lines if line[:2].strip()][:60] == [f"{n:2}" for n in range(1, 61)]
            assert " no " in console.shown()
            for _ in range(80):
                await console.press("pagedown")
                if "echo the very end" in console.shown():
                    break
            assert "echo the very end" in console.shown()
            assert " no " in console.shown()
            asked.cancel()
            await console.until(lambda: console.card is None)


async def test_what_a_command_hides_from_a_terminal_is_shown() -> None:
    async with live() as console:
        command = "rm -rf ~ #\x1b[2K\recho harmless"
        console.ask(preview=command, input={"command": command})
        await console.card_appears()
        await console.pilot.pause()
        assert "rm -rf ~" in console.shown()
        assert "\x1b" not in console.shown()


@pytest.mark.parametrize(
    ("preview", "arguments", "shown"),
    [
        ("make", {"command": "make"}, "make"),
        ("make", {"command": "make", "timeout": 5}, "timeout"),
        ("@@ -1 +1 @@\n-a\n+b", {"path": "x.py", "old": "a", "new": "b"}, "x.py"),
        ("", {}, "No arguments"),
    ],
)
def test_every_argument_that_the_preview_leaves_out_is_shown(
    preview: str, arguments: dict[str, object], shown: str
) -> None:
    assert shown in "\n".join(passage.text for passage in subject(preview, arguments))


async def test_the_session_choice_says_what_it_covers_and_is_left_out_without_a_rule() -> None:
    async with live() as console:
        for rules in ({}, {"rules": (), "covers": ""}):
            asked = console.ask(**rules)
            await console.card_appears()
            await console.pilot.pause()
            assert ("a this session   w for good" in console.shown()) is not bool(rules)
            asked.cancel()
            await console.until(lambda: console.card is None)
        asked = console.ask(others=(("bash(make *)",), ("bash",)))
        await console.card_takes_keys()
        assert "○ `make *`" not in console.shown()
        await console.press("question_mark", "enter")
        assert "○ `make *`" in console.shown()
        assert not asked.done()
        await console.choose("c")
        assert "● a, w and g allow bash(make *): `make` with its harmless options" in console.shown()
        assert "such as `make other-file`; not `make ../other-file`" in console.shown()
        await console.press("enter")
        assert "bash: every command, whatever it does" in console.shown()
        await console.press("c", "enter", "c", "enter")
        assert "● a, w and g allow bash(make *)" in console.shown()
        assert 'a all "make …" till the end of the session' in console.shown()
        assert "a until the session ends, w in this folder for good, g in every folder" in console.shown()
        await console.choose("g")
        await console.until(asked.done)
        assert (asked.result().decision, asked.result().rules) == ("everywhere", ("bash(make *)",))


async def test_a_reason_that_is_more_than_the_mode_stands_on_the_card_beside_the_rules() -> None:
    async with live() as console:
        for why, shown in (
            ("2 files that git does not have would be lost (9 bytes): a.txt, b\x1b[2J", True),
            ("VS Code obeys it by itself, so it is asked about by itself", True),
            ("--approve ask: no rule applies", False),
        ):
            asked = await console.card_for(console.ask(why=why))
            assert ("asks because" in console.shown()) is shown
            assert "\x1b" not in console.shown()
            await console.press("question_mark", "enter")
            assert "a, w and g allow" in console.shown()
            asked.cancel()
            await console.until(lambda: console.card is None)


REACHES = (
    Reach(kind="danger", text="runs what it downloads"),
    Reach(kind="deletes", text="build"),
    Reach(kind="network", text="a.example"),
    Reach(kind="outside", text="~/.netrc"),
)


async def test_the_card_of_a_command_says_where_it_runs_and_what_it_reaches_and_dangers_colour_its_frame() -> (
    None
):
    async with live((60, 20)) as console:
        for reaches in ((), REACHES):
            asked = console.ask(
                place="~/shop · sandbox: no network",
                input={"command": "make"},
                preview="make\n\n(for at most 120 s)",
                rules=("bash(make *)",),
                reaches=reaches,
            )
            await console.card_takes_keys()
            shown = console.shown()
            assert "in ~/shop · sandbox: no network · at most 120 s" in shown
            assert ("its words name nothing outside of this folder" in shown) is not bool(reaches)
            assert ("DANGER: it runs what it downloads" in shown) is bool(reaches)
            assert console.card.has_class("-danger") is bool(reaches)
            if not reaches:
                for choice in ("y once", 'a all "make …" this session', "w for good", "n no", "? more"):
                    assert choice in shown, "an ordinary command's card is seen whole"
                assert "more line" not in shown
            asked.cancel()
            await console.until(lambda: console.card is None)


@pytest.mark.parametrize("size", [(80, 24), (100, 30), (120, 40)])
async def test_the_choices_of_an_approval_take_a_line_and_the_rarer_ones_come_with_the_small_print(
    size: tuple[int, int],
) -> None:
    async with live(size) as console:
        asked = await console.card_for(console.ask(place="~/shop", others=(("bash(make *)",),)))
        choices = console.app.screen.query_one(Choices)
        assert choices.size.height == 1
        assert " y once   a this session   w for good   n no   ? more " in console.shown()
        assert "everywhere" not in console.shown()
        await console.choose("e")
        await console.press("escape")
        assert not asked.done(), "a key that is not shown works all the same"
        await console.choose("question_mark")
        for choice in ("e edit", "g … everywhere", "c other rule"):
            assert choice in console.shown()


async def test_a_rule_that_does_not_fit_on_its_choice_is_read_before_it_is_accepted() -> None:
    name = "x" * 90
    async with live((60, 24)) as console:
        asked = console.ask(rules=(f"bash({name} *)",), covers=f"bash({name} *): all of it")
        await console.card_takes_keys()
        await console.choose("a")
        assert not asked.done()
        assert "a, w and g allow" in console.shown()
        await console.press("end")
        await console.choose("a")
        await console.until(asked.done)


async def test_what_a_rule_covers_is_indented_below_its_mark_where_it_is_wrapped() -> None:
    async with live((60, 30)) as console:
        console.ask(others=(("bash(make *)",), ("bash",)))
        await console.card_takes_keys()
        await console.choose("c")
        rows = console.shown().split("\n")
        at = next(n for n, row in enumerate(rows) if "● a, w and g allow" in row)
        mark = rows[at].index("●")
        assert rows[at + 1][: mark + 2].strip("│ ") == ""
        assert rows[at + 1][mark + 2] != " "


async def test_words_that_begin_with_the_letter_of_a_lasting_choice_are_words() -> None:
    async with live() as console:
        for words, decision in (("while", "always"), ("also", "session"), ("go on", "everywhere")):
            asked = await console.card_for(console.ask())
            console.screen.prompt.text = ""
            # All at once, as from a fast typist.
            for character in words:
                console.app.post_message(Key("space" if character == " " else character, character))
            await console.until(lambda words=words: console.prompt == words)
            assert not asked.done()
            await console.press("f8")
            await console.choose(words[0])
            await console.until(asked.done)
            assert asked.result().decision == decision
            await console.until(lambda: console.card is None)


async def test_esc_takes_a_mark_and_a_chosen_rule_back_before_it_leads_away() -> None:
    async with live() as console:
        console.ask(others=(("bash(make *)",), ("bash",)))
        await console.card_takes_keys()
        await console.choose("c")
        assert "● a, w and g allow bash(make *)" in console.shown()
        await console.press("escape")
        assert console.in_card
        assert "a this session" in console.shown()
        await console.press("w", "escape")
        assert console.in_card
        assert "▸" not in console.shown()
        await console.press("escape")
        assert not console.in_card
        assert console.prompt == ""


async def test_down_from_the_choices_moves_through_the_rules() -> None:
    async with live((200, 40)) as console:
        asked = console.ask(others=(("bash(make *)",), ("bash",)))
        await console.card_takes_keys()
        await console.press("question_mark", "enter", "down")
        assert "● a, w and g allow bash(make *)" in console.shown()
        await console.press("down", "down", "down")
        assert "● a, w and g allow bash: every command" in console.shown()
        await console.press("up")
        assert "● a, w and g allow bash(make *)" in console.shown()
        await console.choose("a")
        await console.until(asked.done)
        assert (asked.result().decision, asked.result().rules) == ("session", ("bash(make *)",))


async def test_esc_takes_the_mark_of_an_answer_back_and_the_question_stays() -> None:
    async with live() as console:
        raised = await console.card_for(console.escalate())
        await console.press("x", "escape")
        assert console.in_card
        assert console.card.query_one(AnswerField).value == ""
        await console.type("look")
        await console.press("escape", "f8", "enter")
        assert await console.chosen(raised) == ("answer", "look")


async def test_at_the_step_limit_letters_go_on_with_as_many_steps_or_without_a_limit() -> None:
    async with live() as console:
        for key, said in (("c", "50 more"), ("n", "no limit")):
            raised = console.escalate(
                source="steps",
                tool="",
                input={},
                options=("50 more", "no limit"),
                question="All 50 steps are used up, the last 10 all worked. How should it go on?",
            )
            await console.card_takes_keys()
            for part in ("the last 10 all worked", "c 50 more", "n no limit", "p partial answer"):
                assert part in console.shown()
            await console.choose(key)
            assert await console.chosen(raised) == ("answer", said)
            await console.until(lambda: console.card is None)


async def test_a_key_that_repeats_is_a_text() -> None:
    async with live() as console:
        for key in "yawgcne":
            asked = console.ask(others=(("bash(make *)",),))
            await console.card_appears()
            await console.time_passes(0.5)
            assert console.in_card, key
            await console.press(*[key] * 5)
            assert (console.prompt, asked.done()) == (key * 5, False)
            asked.cancel()
            await console.until(lambda: console.card is None)
            console.screen.prompt.put("")


async def test_a_reason_that_comes_faster_than_its_field_opens_is_whole() -> None:
    reason = "no, use pip"
    async with live() as console:
        console.session.start()
        for breaks in ((), (1,), (2,), (1, 3)):
            asked = await console.card_for(console.ask())
            await console.time_passes(1.0)
            for place, letter in enumerate(reason):
                console.app.post_message(Key({" ": "space"}.get(letter, letter), letter))
                if place in breaks:
                    await asyncio.sleep(0)
            await console.until(lambda: console.screen.query_one(AnswerField).value == reason)
            await console.press("enter")
            await console.until(asked.done)
            assert (asked.result().decision, asked.result().reason) == ("deny", reason)
            assert console.screen.prompt.text == ""
            await console.until(lambda: console.card is None)


@pytest.mark.parametrize("reason", ["", "no, use pip"])
async def test_enter_counts_when_it_comes_faster_than_the_field_of_a_reason_opens(reason: str) -> None:
    async with live() as console:
        console.session.start()
        asked = await console.card_for(console.ask())
        await console.time_passes(1.0)
        for letter in reason or "n":
            console.app.post_message(Key({" ": "space"}.get(letter, letter), letter))
        console.app.post_message(Key("enter", "\r"))
        await console.until(asked.done)
        assert (asked.result().decision, asked.result().reason) == ("deny", reason)


@pytest.mark.parametrize(("key", "quiet", "prompt"), [("y", 1.0, ""), ("n", 1.0, ""), ("y", 0.9, "")])
async def test_yes_and_no_act_at_once_on_an_approval_that_stood_for_a_second(
    key: str, quiet: float, prompt: str
) -> None:
    async with live() as console:
        asked = console.ask()
        await console.card_appears()
        await console.time_passes(quiet)
        await console.press(key)
        taken = asked.done() or "Enter deny" in console.shown()
        assert taken is (quiet >= 1.0)
        assert (f"▸{key} " in console.shown()) is not taken


async def test_a_rule_that_was_chosen_does_not_survive_esc() -> None:
    async with live() as console:
        for away in (("e", "enter", "escape"), ("n", "escape"), ("escape", "f8")):
            asked = await console.card_for(console.ask(others=(("bash(make *)",), ("bash",))))
            await console.press("c", "enter", "enter")
            assert "● a, w and g allow bash: every command" in console.shown()
            for key in away:
                await console.press(key)
            assert "a this session" in console.shown()
            await console.choose("a")
            await console.until(asked.done)
            assert (asked.result().decision, asked.result().rules) == ("session", ())
            await console.until(lambda: console.card is None)


async def test_a_character_that_is_no_choice_goes_to_the_prompt() -> None:
    async with live() as console:
        asked = await console.card_for(console.ask())
        # All at once, as from a slow line: the focus moves only after the first character.
        choices = console.app.screen.query_one(Choices)
        for character in "scene":
            choices.post_message(Key(character, character))
        choices.post_message(Key("enter", "\r"))
        await console.until(lambda: console.prompt == "scene")
        await console.type("hey")
        assert console.prompt == "scenehey"
        assert not asked.done()


# --- escalations ---------------------------------------------------------------------------------------------


async def test_a_free_text_answer_is_sent_by_enter() -> None:
    async with live() as console:
        raised = await console.card_for(console.escalate())
        await console.type("look in src")
        await console.press("enter")
        assert await console.chosen(raised) == ("answer", "look in src")


async def test_an_escalation_can_be_answered_by_edited_arguments() -> None:
    async with live() as console:
        raised = await console.card_for(console.escalate())
        await console.until(lambda: "prompt" in str(console.card.border_subtitle))
        await console.choose("down", "e")
        await console.until(lambda: "prompt" not in str(console.card.border_subtitle))
        await console.press("escape")
        await console.until(lambda: "prompt" in str(console.card.border_subtitle))
        await console.choose("e")
        console.card.query_one("ArgumentsEditor TextArea").load_text("b.py")
        await console.press("ctrl+s")
        await console.until(raised.done)
        assert (raised.result().choice, raised.result().input) == ("edit", {"path": "b.py"})


async def test_options_are_choices_by_number() -> None:
    cases = (
        ("ask_operator", "The agent asks", ("short", "long")),
        ("budget", "A budget is used up", ("go on, up to 2.00 USD", "without this limit")),
        ("model", "The model cannot be used", ("openai/one", "openai/other")),
    )
    async with live() as console:
        for source, title, options in cases:
            raised = await console.card_for(
                console.escalate(source=source, tool="", input={}, options=options)
            )
            assert title in console.shown()
            await console.choose("2")
            assert await console.chosen(raised) == ("answer", options[1])
            await console.until(lambda: console.card is None)


async def test_no_line_counts_as_read_before_the_card_has_its_rows() -> None:
    """A command that the first layout would have room for, and the card has not."""
    command = "\n".join(f"echo {number}" for number in range(8))
    async with live((60, 20)) as console:
        reply = console.ask(input={"command": command}, preview=command, rules=())
        await console.card_appears()
        await console.grace_passes()
        await console.until(lambda: "more line" in console.shown())
        assert "echo 7" not in console.shown()
        await console.press("y")
        assert not reply.done()
        await console.press("end", "y")
        assert (await reply).decision == "once"


async def test_what_an_older_layout_shows_below_the_rows_of_a_card_does_not_count_as_seen() -> None:
    async with live() as console:
        console.ask(preview="\n".join(f"line {number}" for number in range(100)))
        await console.card_takes_keys()
        body = console.card.query_one(CardBody)
        await console.until(lambda: body.unseen < 90)
        body.allow(3, body.content_width + body.scrollbar_size_vertical)
        assert body.unseen == len(body.lines) - 3


async def test_a_card_that_is_answered_while_it_gets_its_rows_ends_nothing() -> None:
    async with live() as console:
        console.ask()
        await console.card_takes_keys()
        card = console.card
        assert card is not None
        await card.query("CardBody").remove()
        card.call_after_refresh(card._show_hint)
        await console.pilot.pause()
        await console.pilot.pause()
        assert console.app.return_code is None
        assert console.app._exception is None


async def test_a_card_offers_to_read_on_only_where_the_keys_for_it_are_its_own() -> None:
    async with live((80, 24)) as console:
        console.ask(preview="\n".join(f"line {number}" for number in range(100)))
        await console.card_appears()
        await console.until(lambda: "F8 answer" in console.shown())
        assert "more lines" in console.shown()
        assert "PgDn" not in console.shown()
        await console.press("f8")
        await console.until(lambda: "PgDn read on" in console.shown())
        await console.press("escape")
        await console.until(lambda: "PgDn" not in console.shown())


async def test_a_question_has_its_cause_on_the_screen_where_rows_are_scarce() -> None:
    missing = "ModuleNotFoundError: No module named 'shop'"
    arguments = {"command": "make"}
    async with live((60, 20)) as console:
        console.session.start()
        for number in range(3):
            error = f"The command failed with exit code 1.\n{missing}"
            failure = Failure(kind=FailureKind.TOOL_EXECUTION, message=error, tool="bash", input=arguments)
            call = ToolCall(id=f"c{number}", name="bash", arguments='{"command": "make"}')
            console.session.record(
                ReplyFinished(text="", calls=(call,), model="m"),
                ToolFailed(call_id=call.id, tool="bash", input=arguments, content=error, failure=failure),
                IterationFinished(iteration=number + 1),
                IterationStarted(iteration=number + 2),
            )
        asked = {"id": "e1", "question": "bash has failed 3 times", "source": "attempts"}
        console.session.record(EscalationRaised(**asked, tool="bash", input=arguments))
        console.escalate(**asked, tool="bash", input=arguments)
        await console.card_takes_keys()
        shown = console.shown().partition("The agent needs you")[2].partition("Say what to do")[0]
        assert "Tried: step 1, step 2, step 3: the same error" in shown
        assert missing in shown


async def test_options_too_long_for_a_row_of_choices_are_shown_whole() -> None:
    options = ("GB18030 for every list below the folder of that supplier, whatever its name", "UTF-8")
    async with live((60, 20)) as console:
        raised = await console.card_for(
            console.escalate(source="ask_operator", tool="ask_operator", input={}, options=options)
        )
        for size in ((60, 20), (80, 24)):
            await console.pilot.resize_terminal(*size)
            await console.until(
                lambda: f"1 {options[0]} 2 UTF-8" in " ".join(console.shown().replace("│", " ").split())
            )
        await console.choose("1")
        await console.until(raised.done)
        assert raised.result().text == options[0]


async def test_a_command_that_is_typed_into_an_answer_is_carried_out_and_answers_nothing() -> None:
    async with live() as console:
        raised = await console.card_for(console.escalate())
        await console.type("/policy hpd")
        await console.press("enter")
        await console.until(lambda: console.session.done == [("policy", "hpd")])
        assert not raised.done()
        await console.type("/etc/hosts names it")
        await console.press("enter")
        await console.until(raised.done)
        assert raised.result().text == "/etc/hosts names it"


@pytest.mark.parametrize(
    ("source", "tool", "keys"),
    [
        ("attempts", "bash", "resfpxw"),
        ("streak", "", "rsfpxw"),
        ("ask_operator", "ask_operator", "spx"),
        ("model", "", "rpxw"),
    ],
)
def test_only_ways_out_that_make_sense_are_offered(source: str, tool: str, keys: str) -> None:
    asked = EscalationRaised(id="1", question="?", source=source, tool=tool)
    assert "".join(choice.key for choice in choices_for(asked)) == keys


def test_a_limit_is_waited_for_left_to_another_model_or_the_end() -> None:
    asked = EscalationRaised(id="1", question="?", source="model", options=("a/b",), until=1_788_600_000.0)
    wait, other, *rest = choices_for(asked)
    assert (wait.key, wait.value) == ("u", "wait")
    assert wait.label.startswith("wait until ")
    assert (other.label, other.value) == ("a/b", "option:0")
    assert [choice.key for choice in rest] == ["r", "p", "x", "w"]
    assert title_of(asked) == "The model's limit is reached"


def test_what_was_tried_is_the_same_calls_failures_of_this_run() -> None:
    def failing(number: int, path: str) -> list[Event]:
        call = ToolCall(id=f"c{number}", name="read_file", arguments="{}")
        failure = Failure(kind=FailureKind.TOOL_EXECUTION, message=f"no {path} ({number})", tool="read_file")
        return [
            IterationStarted(iteration=number),
            ReplyFinished(calls=(call,)),
            ToolFailed(call_id=call.id, tool="read_file", input={"path": path}, failure=failure),
            IterationFinished(iteration=number),
        ]

    events: list[Event] = [RunStarted(run=1, task="t", policy="combined")]
    for number, path in enumerate(["a", "b", "a"], 1):
        events += failing(number, path)
    state = fold(event.stamped(seq, 1.0) for seq, event in enumerate(events, 1))
    asked = EscalationRaised(id="1", question="?", source="attempts", tool="read_file", input={"path": "a"})
    assert [attempt.error for attempt in attempts_before(state, asked)] == ["no a (1)", "no a (3)"]


@pytest.mark.parametrize("size", [(60, 20), (80, 24)])
async def test_a_question_about_findings_shows_the_changed_files_and_what_was_found(
    size: tuple[int, int],
) -> None:
    test, found = (
        {"command": "pytest -q"},
        "The command failed with exit code 1.\nE  assert 19.0 == 21.0\n1 failed",
    )
    failure = Failure(kind=FailureKind.TOOL_EXECUTION, message=found, tool="bash", input=test)
    files = ", ".join(f"src/part_{number}.py" for number in range(5))
    question = f"Six changes, the same failure of bash at tests/test_tax.py:11. Changed in between: {files}"
    async with live(size) as console:
        console.session.start()
        console.session.record(
            ReplyFinished(calls=(ToolCall(id="c", name="bash"),)),
            ToolFailed(call_id="c", tool="bash", input=test, failure=failure),
            IterationFinished(iteration=1),
        )
        console.escalate(source="trials", rule="trials.ask", question=question, tool="bash", input=test)
        await console.card_takes_keys()
        for part in (*files.split(", "), "tests/test_tax.py:11", "pytest -q", "retry once"):
            assert part in console.shown()
        assert [
            tried.what for tried in attempts_before(console.session.state, console.card.question.asked)
        ] == ["step 1"]


async def test_a_card_that_is_fitted_before_it_was_laid_out_has_the_rows_that_it_has_later() -> None:
    async with live((80, 24)) as console:
        console.ask(preview="\n".join(f"line {number}" for number in range(9)))
        await console.card_appears()
        await console.until(lambda: "line 8" in console.shown())
        card = console.card
        card.display = False
        await console.until(lambda: not card.size.width)
        console.screen.dashboard.on_conversation_frame_resized()
        card.display = True
        await console.until(lambda: "line 0" in console.shown())
        await console.pilot.pause()
        assert "line 8" in console.shown()


# --- the gate ------------------------------------------------------------------------------------------------


async def test_in_step_the_outline_is_shown_and_f10_sends_the_note_as_it_stands() -> None:
    async with live() as console:
        console.session.set_mode(Mode.STEP)
        waiting = console.gate("Try another path.")
        await console.card_appears()
        assert isinstance(console.card, GateCard)
        await console.pilot.pause()
        for part in ("step 4", "12 messages", "3,400 tokens", "2 earlier steps", "Try another path."):
            assert part in console.shown()
        assert console.screen.focused is console.screen.prompt
        await console.press("f10")
        await console.until(waiting.done)
        assert waiting.result().note == "Try another path."


async def test_the_note_can_be_edited_before_it_goes_out() -> None:
    async with live() as console:
        console.session.set_mode(Mode.STEP)
        waiting = console.gate("Try another path.")
        await console.card_appears()
        await console.press("f4")
        console.card.query_one("TextArea").load_text("Look in src.")
        await console.press("ctrl+s")
        await console.until(lambda: "Look in src." in console.shown())
        await console.press("f10")
        await console.until(waiting.done)
        assert waiting.result().note == "Look in src."
        assert ("note", "Look in src.") in console.session.done, "the note's pane shows what will be sent"
        console.session.set_mode(Mode.AUTO)
        await console.until(lambda: console.card is None)
        console.escalate()
        await console.card_takes_keys()
        assert console.in_card, "the focus is not left where the note's card was"


async def test_a_request_that_is_sent_from_the_open_editor_takes_the_note_as_it_stands_there() -> None:
    async with live() as console:
        for key in ("f10", "f5"):
            console.session.set_mode(Mode.STEP)
            waiting = console.gate("Try another path.")
            await console.card_appears()
            await console.press("f4")
            await console.type(" Look in src.")
            await console.press(key)
            await console.until(waiting.done)
            assert "Look in src." in (waiting.result().note or "")
            assert ("note", waiting.result().note) in console.session.done
            await console.until(lambda: console.card is None)
            console.session.done.clear()


async def test_a_note_that_was_changed_is_shown_by_parts_that_are_there_all_the_time() -> None:
    async with live() as console:
        console.session.set_mode(Mode.STEP)
        console.gate("Try another path.")
        await console.card_appears()
        parts, at_work = [*console.card.children], asyncio.Event()
        console.card.query_one(TextField).call_next(at_work.wait)
        await console.press("f4")
        try:
            console.screen.commands.rewrite_note("Look in src.")
            await console.until(
                lambda: "Look in src." in console.shown() and "edit the note" in console.shown()
            )
            assert "keep it" not in console.shown()
        finally:
            at_work.set()  # a field that never ends would keep the console from it
        await console.until(lambda: console.card.query_one(Choices).has_focus)
        assert [*console.card.children] == parts, "a key would find no field, and a layout no text"
        console.card.query_one(Choices).chosen = 3
        console.screen.commands.rewrite_note(None)
        await console.until(lambda: "No recovery note" in console.shown())
        assert "drop the note" not in console.shown()
        assert console.card.query_one(Choices).current.key == "F4"


async def test_a_note_that_was_edited_leaves_no_line_of_the_card_to_be_read_on() -> None:
    async with live() as console:
        console.session.set_mode(Mode.STEP)
        console.gate("Try another path.")
        await console.card_appears()
        await console.until(lambda: "edit the note" in console.shown())
        assert "more line" not in console.shown()
        await console.press("f4")
        console.card.query_one("TextArea").load_text("Look in src.")
        await console.press("ctrl+s")
        await console.until(lambda: "Look in src." in console.shown() and "edit the note" in console.shown())
        await console.until(lambda: "more line" not in console.shown())


async def test_esc_in_the_note_leaves_it_as_it_was() -> None:
    async with live() as console:
        console.session.set_mode(Mode.STEP)
        waiting = console.gate("Keep me.")
        await console.card_appears()
        await console.press("f4")
        console.card.query_one("TextArea").load_text("changed")
        await console.press("escape")
        assert ("interrupt",) not in console.session.done
        await console.press("f10")
        await console.until(waiting.done)
        assert waiting.result().note == "Keep me."


async def test_the_note_can_be_dropped_by_a_command() -> None:
    async with live() as console:
        console.session.set_mode(Mode.PAUSED)
        waiting = console.gate("Drop me.")
        await console.card_appears()
        await console.say("/note drop")
        await console.press("f10")
        await console.until(waiting.done)
        assert waiting.result().note is None


async def test_in_auto_a_request_goes_out_at_once() -> None:
    async with live() as console:
        waiting = console.gate("n")
        await console.until(waiting.done)
        assert waiting.result().note == "n"


async def test_f5_lets_a_waiting_request_go_and_the_next_ones_too() -> None:
    async with live() as console:
        console.session.set_mode(Mode.PAUSED)
        waiting = console.gate()
        await console.card_appears()
        await console.press("f5")
        await console.until(waiting.done)
        again = console.gate()
        await console.until(again.done)


def test_cards_are_of_three_kinds() -> None:
    assert {ApprovalCard.wants_focus, EscalationCard.wants_focus} == {True}
    assert not GateCard.wants_focus


def test_what_was_tried_is_shown_by_the_line_that_says_what_is_wrong_and_the_last_error_whole() -> None:
    error = "The command failed with exit code 1.\nE\n=====\nModuleNotFoundError: No module named 'shop'"
    attempts = [
        EarlierFailure("step 1", "other trouble\nmore"),
        *[EarlierFailure(f"step {n}", f"{error}\nRan 1 test in 0.00{n}s") for n in (2, 3)],
    ]
    texts = [passage.text for passage in tried(attempts)]
    assert texts == [
        "Tried:",
        "1. step 1",
        "other trouble",
        "2–3. step 2, step 3: the same error",
        "ModuleNotFoundError: No module named 'shop'",
        "The command failed with exit code 1.\nRan 1 test in 0.003s",
    ]
    assert [passage.text for passage in tried(attempts, "whole")][-1] == f"{error}\nRan 1 test in 0.003s"
    changed = [
        EarlierFailure("step 1", "no"),
        EarlierFailure("step 2", "no", ("a.py",)),
        EarlierFailure("step 3", "no", ("b.py", "a.py")),
    ]
    assert next(p.text for p in tried(changed) if "same" in p.text).endswith("changed in between: a.py, b.py")


TRACEBACK = """The command failed with exit code 1.
Traceback (most recent call last):
  File "/usr/lib/python3.11/runpy.py", line 196, in _run_module_as_main
    return _run_code(code, main_globals, None,
  File "/usr/lib/python3.11/runpy.py", line 86, in _run_code
    exec(code, run_globals)
  File "shop/tax.py", line 11, in total
    return rates[country] * sum(prices)
           ~~~~~^^^^^^^^^
KeyError: 'NL'"""


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (120, 40)])
async def test_a_question_shows_where_the_error_is_and_all_its_choices_and_a_key_opens_the_whole_of_it(
    size: tuple[int, int],
) -> None:
    test = {"command": "python3 -m shop.tax"}
    failure = Failure(kind=FailureKind.TOOL_EXECUTION, message=TRACEBACK, tool="bash", input=test)
    async with live(size) as console:
        console.session.start()
        console.session.record(
            ReplyFinished(calls=(ToolCall(id="c", name="bash"),)),
            ToolFailed(call_id="c", tool="bash", input=test, failure=failure),
            IterationFinished(iteration=1),
        )
        question = "This call failed three times with nothing changed in between."
        console.escalate(
            source="attempts", rule="attempts.escalate", question=question, tool="bash", input=test
        )
        await console.card_takes_keys()
        shown = console.shown()
        for part in (
            "r retry once",
            "e edit",
            "s skip",
            "f fresh",
            "p partial",
            "x stop",
            "w why?",
            question[:30],
        ):
            assert part in shown, part
        assert "t whole" in shown or "t error" in shown
        body = console.card.query_one(CardBody)
        lines = "\n".join(text_of(line).strip() for line in body.lines)
        assert "KeyError: 'NL'\nexec(code, run_globals)\nFile \"shop/tax.py\", line 11" in lines
        assert "_run_module_as_main" not in lines
        await console.choose("down", "t")
        await console.until(lambda: any("_run_module_as_main" in text_of(line) for line in body.lines))


async def test_a_card_is_whole_and_in_its_place_from_its_first_frame_on() -> None:
    async with live((98, 30)) as console:
        console.session.start()
        await console.until(lambda: "step 1" in console.shown())
        console.ask(place="~/shop", preview="make all")
        frames: list[str] = []
        while not console.in_card:
            await asyncio.sleep(0)
            if "Allow bash?" in (shown := console.shown()) and shown not in frames:
                frames.append(shown)
                console.app.time += 1.0
        places = {next(n for n, row in enumerate(frame.splitlines()) if "Allow" in row) for frame in frames}
        assert len(places) == 1, frames
        for frame in frames:
            assert "│ make all " in frame
            assert "more line" not in frame


@pytest.mark.parametrize(
    ("question", "words"),
    [("It failed.", ("e edit and retry", "p partial answer")), ("It failed. " * 90, ("e edit", "p partial"))],
    ids=["room", "none"],
)
async def test_choices_have_their_words_in_full_where_nothing_else_needs_the_rows(
    question: str, words: tuple[str, ...]
) -> None:
    async with live((96, 24)) as console:
        console.session.start()
        console.escalate(question=question)
        await console.card_takes_keys()
        for word in words:
            assert f" {word}  " in console.shown(), console.shown()


def test_the_schema_of_a_tool_is_no_part_of_what_went_wrong() -> None:
    error = "Invalid call of edit_file: 'old' or 'new' is missing\n{\n  \"type\": \"object\",\n}"
    assert [passage.text for passage in tried([EarlierFailure("step 1", error)])][1:] == [
        error.split("\n")[0]
    ]


def test_an_indent_gives_way_before_the_name_at_a_lines_end_is_wrapped() -> None:
    error = "ModuleNotFoundError: No module named 'shop.prices'"
    body = CardBody(list(tried([EarlierFailure("step 1", f"exit code 1\n{error}")])))
    for width in (len(error), len(error) + 2, len(error) + 4, len(error) + 9):
        assert text_of(body.draw(width, 0)[1]).rstrip() == " " * min(4, width - len(error)) + error


@pytest.mark.parametrize("end", ["", "\nmore" * 30])
def test_rules_drawn_across_an_error_take_no_further_rows_of_a_card(end: str) -> None:
    banner = f"{'=' * 38} FAILURES {'=' * 38}"
    error = f"exit code 1\n{banner}\n{'-' * 80}\nAssertionError: 1 is not 2{end}"
    lines = [
        text_of(line).strip()
        for line in CardBody(list(tried([EarlierFailure("step 1", error)], "whole"))).draw(44, 0)
    ]
    place = lines.index("exit code 1")
    assert lines[place + 1].split("=")[-1] == ""
    assert " FAILURES " in lines[place + 1]
    assert set(lines[place + 2]) == {"-"}
    assert lines[place + 3] == "AssertionError: 1 is not 2"
    assert all(len(line) <= 40 for line in lines)
    whole = CardBody([Passage(banner, "code", verbatim=True)]).draw(44, 0)
    assert "".join(text_of(line) for line in whole) == banner


async def test_a_paste_into_the_answer_comes_once_and_with_all_its_lines() -> None:
    async with live() as console:
        console.escalate()
        await console.card_takes_keys()
        field = console.card.query_one("AnswerField")
        field.post_message(Paste("pasted one\r\npasted two\rpasted three"))
        await console.until(lambda: field.value)
        assert field.value == "pasted one\npasted two\npasted three"
        await console.until(lambda: "pasted two" in console.shown())
        assert "pasted one" in console.shown()


async def test_a_reason_is_pasted_with_all_its_lines() -> None:
    async with live() as console:
        asked = await console.card_for(console.ask())
        await console.press("n")
        await console.type("o: ")
        console.app.post_message(Paste("it is\r\nthe\x1b[31m wrong\nfolder\n"))
        field = console.card.query_one(AnswerField)
        await console.until(lambda: field.value.endswith("folder"))
        await console.press("enter")
        await console.until(asked.done)
        assert asked.result().reason.startswith("no: it is\nthe")
        assert asked.result().reason.endswith("wrong\nfolder")


@pytest.mark.parametrize("before", ["", "w"], ids=["at once", "behind a key that waits"])
async def test_a_paste_at_an_approval_goes_to_the_prompt_with_its_lines(before: str) -> None:
    async with live() as console:
        asked = await console.card_for(console.ask())
        choices = console.card.query_one(Choices)
        for key in before:
            choices.post_message(Key(key, key))
        console.app.post_message(Paste("yes, and\r\nwatch\x1b[31m out\n"))
        await console.until(lambda: "out" in console.prompt)
        assert console.screen.prompt.whole_text == f"{before}yes, and\nwatch\x1b[31m out\n"
        assert "\x1b" not in console.prompt
        assert console.screen.focused is console.screen.prompt
        assert not asked.done()


async def test_a_paste_among_the_choices_of_a_question_is_its_answer() -> None:
    async with live() as console:
        raised = await console.card_for(console.escalate())
        await console.press("down")
        console.app.post_message(Paste("look in\nsrc"))
        field = console.card.query_one(AnswerField)
        await console.until(lambda: field.value)
        await console.press("enter")
        assert await console.chosen(raised) == ("answer", "look in\nsrc")


async def test_a_text_begun_among_the_choices_of_a_question_is_its_answer() -> None:
    async with live() as console:
        raised = await console.card_for(console.escalate())
        await console.press("down")
        await console.type("zoom in")
        assert console.card.query_one(AnswerField).value == "zoom in"
        assert console.prompt == ""
        await console.press("enter")
        assert await console.chosen(raised) == ("answer", "zoom in")


def test_a_question_about_the_model_names_the_tries_of_that_call_alone() -> None:
    story = Story().run("Go.")

    def fault(message: str, attempt: int, action: Literal["retry", "ask"]) -> None:
        story.ask_model(attempt=attempt)
        about = Fault(kind=FaultKind.RATE_LIMIT, message=message)
        story.add(
            ModelFaulted(
                fault=about, iteration=story.iteration, attempt=attempt, model=story.model, action=action
            )
        )

    fault("mended since", 1, "retry")
    story.ask_model(attempt=2)
    (call,) = story.reply("", ("bash", {"command": "ls"}))
    story.succeed(call, "a").judge()
    fault("slow down", 1, "retry")
    fault("slow down", 2, "retry")
    fault("no more today", 3, "ask")
    asked = EscalationRaised(id="e", question="?", source="model")
    assert attempts_before(story.add(asked).state, asked) == [
        EarlierFailure("gpt-5-mini, try 1", "slow down"),
        EarlierFailure("gpt-5-mini, try 2", "slow down"),
        EarlierFailure("gpt-5-mini, try 3", "no more today"),
    ]


def test_a_card_can_be_fitted_before_its_editor_is_on_the_screen() -> None:
    ArgumentsEditor({"command": "make"}).fit(5)


async def test_what_a_command_left_is_taken_back_unless_it_is_kept_by_its_letter() -> None:
    hook = HeldFile(
        path=".githooks/pre-commit",
        why="git runs it (core.hookspath in ~/.gitconfig)",
        number=2,
        line="touch MARKER",
        text="#!/bin/sh\ntouch MARKER\nsecond\n",
    )
    other = HeldFile(
        path=".envrc", why="direnv obeys it by itself", number=1, line="a", text="a\n.x:\n 1 b\n"
    )
    whole = [(passage.number, passage.text) for passage in held_whole((hook, other))]
    assert whole[-4:] == [("", ".envrc:"), ("1", "a"), ("2", ".x:"), ("3", " 1 b")], (
        "no line is taken for a heading"
    )
    async with live() as console:
        for keys, decision in (
            (("k",), "once"),
            (("s", "k"), "once"),
            (("enter",), "deny"),
            (("escape",), "deny"),
            (("s", "t"), "deny"),
        ):
            asked = console.ask(held=(hook, other), rules=())
            await console.card_appears()
            await console.time_passes(1.5)
            shown = " ".join(console.shown().split())
            assert "Keep 2 files that the command left?" in shown
            assert ".githooks/pre-commit · git runs it" in shown
            assert "second" not in shown
            for key in keys:
                await console.press(key)
                if len(key) == 1 and not asked.done() and "second" not in console.shown():
                    await console.press("enter")  # a letter may mark only
                if key == "s":
                    assert "2 touch MARKER" in console.shown(), "each file has its own numbers"
            if not asked.done():
                await console.press("enter")
            assert (await asked).decision == decision, keys
            await console.until(lambda: console.card is None)
