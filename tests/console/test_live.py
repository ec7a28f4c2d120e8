"""The live screen: prompt, queue, modes, commands, folding, leaving."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.console.live_harness import HandConsole, HandSession, LiveSession, live
from tui_agent.console.looks.pane_facts import SLIM_WIDTH
from tui_agent.console.looks.splash import conversation_width
from tui_agent.console.panes import ConversationPane
from tui_agent.console.prompt.queued import QueuedMessages
from tui_agent.console.screens.ask import LeaveScreen
from tui_agent.console.screens.help import HelpScreen, help_lines, sections
from tui_agent.console.screens.inbox import InboxScreen
from tui_agent.console.screens.jump import JumpScreen
from tui_agent.console.screens.live import LiveScreen
from tui_agent.console.screens.report import ReportPane, ReportScreen
from tui_agent.console.tabs.tab import Tab
from tui_agent.core.events import (
    EscalationRaised,
    Fault,
    IterationFinished,
    IterationStarted,
    MessageQueued,
    Mode,
    ModeChanged,
    ModelFaulted,
    Outcome,
    ReplyDelta,
    ReplyFinished,
    RunFinished,
    RunStarted,
    ToolCall,
    ToolProgress,
    ToolStarted,
    ToolSucceeded,
)
from tui_agent.core.fold import apply
from tui_agent.core.names import FaultKind
from tui_agent.core.state import RunState
from tui_agent.frontend.commands import dispatch
from tui_agent.frontend.commands import registry as commands
from tui_agent.frontend.lines.styled import Line, text_of, width_of
from tui_agent.frontend.prompt_history import MAX_ENTRIES, PromptHistory
from tui_agent.terminal_text import invisible
from tui_agent.tools.skills import BadSkill, Skill, Skills


async def test_the_prompt_has_the_first_focus_and_enter_sends_what_stands_in_it() -> None:
    async with live() as console:
        await console.type("fix it")
        await console.press("enter")
        assert console.session.done == [("submit", "fix it")]
        assert console.prompt == ""


async def test_what_is_asked_for_before_the_session_is_open_is_done_once_it_is() -> None:
    class SlowlyOpened(HandConsole):
        may_open = asyncio.Event()

        async def _open(self, screen: Tab) -> None:
            await self.may_open.wait()
            await super()._open(screen)

    app = SlowlyOpened(session := HandSession())
    async with app.run_test() as pilot:
        console = LiveSession(app, pilot, session)
        for line in ("/model openai/other", "/policy nonsense", "/policy hpd", "fix it"):
            await console.say(line)
        assert session.done == []
        app.may_open.set()
        wanted = {("policy", "hpd"), ("model", "openai/other"), ("submit", "fix it")}
        await console.until(lambda: wanted <= {*session.done})
        assert "There is no policy nonsense." in console.remarks()


async def test_time_goes_on_while_the_model_starts_and_while_a_question_waits() -> None:
    async with live() as console:
        console.session.running = True
        console.session.record(RunStarted(run=1, task="fix it", policy="combined", model="scripted:x"))
        status, drawn = console.screen.status, []
        assert status is not None
        show = status.show
        status.show = lambda *now: drawn.append(show(*now))
        await console.until(lambda: len(drawn) >= 2)
        for ask in (console.ask, console.escalate):
            question = ask()
            await console.until(lambda: console.card is not None)
            drawn.clear()
            await console.until(lambda: len(drawn) >= 2)
            question.cancel()
            await console.until(lambda: console.card is None)


async def test_a_run_that_was_left_open_is_paused_until_it_goes_on() -> None:
    async with live() as console:
        console.session.record(RunStarted(run=1, task="fix it", policy="combined", model="scripted:x"))
        await console.until(lambda: console.screen.status is not None and console.screen.status.left_open)
        console.session.record(EscalationRaised(id="q", question="What now?", source="attempts"))
        await console.until(lambda: "What now?" in console.shown())
        assert console.card is None  # which would put the question


async def test_page_keys_in_the_prompt_read_back_in_the_conversation_and_sending_follows_again() -> None:
    async with live((80, 24)) as console:
        await console.say("fix it")
        console.session.record(ReplyDelta(text="\n".join(f"row {number}" for number in range(100))))
        pane = console.screen.query_one(ConversationPane)
        await console.until(lambda: 50 < pane.scroll_offset.y == pane.max_scroll_y)

        def back() -> int:
            """Rows from the end: what is below the conversation may grow and shrink."""
            return int(pane.max_scroll_y - pane.scroll_offset.y)

        await console.press("pageup", "pageup")
        await console.until(lambda: back() > 10)
        far = back()
        await console.press("pagedown")
        await console.until(lambda: 0 < back() < far)
        await console.press("end")
        await console.until(lambda: back() == 0)
        await console.press("pageup")
        await console.until(lambda: back() > 0)
        await console.say("and then")
        await console.until(lambda: back() == 0)


async def test_a_new_line_can_be_begun_without_sending() -> None:
    async with live() as console:
        for key in ("shift+enter", "ctrl+j", "alt+enter"):
            await console.press("a", key, "b")
            assert console.prompt == "a\nb", key
            assert console.session.done == []
            console.screen.prompt.put("")


async def test_history_comes_back_at_the_edges_and_keeps_the_draft() -> None:
    async with live() as console:
        for text in ("one", "two\nlines"):
            await console.say(text)
        await console.type("dr")
        await console.press("up")
        assert console.prompt == "two\nlines"
        await console.press("up", "up")
        assert console.prompt == "one"
        await console.press("down", "down", "down")
        assert console.prompt == "dr"


async def test_a_huge_paste_is_taken_made_safe_and_the_prompt_stays_small() -> None:
    from textual import events

    async with live((80, 24)) as console:
        text = "\n".join(f"row {number}\tcell \x1b]0;title\x07" for number in range(4_000))
        console.app.post_message(events.Paste(text))
        await console.until(lambda: console.prompt)
        assert console.prompt == "[pasted text 1: 4,000 lines, 8,000 invisible characters]"
        assert console.screen.prompt.whole_text == text
        console.screen.prompt.put("")
        console.app.post_message(events.Paste("a line\r" * 40))
        await console.until(lambda: console.prompt == "[pasted text 2: 40 lines]")
        console.screen.prompt.put(text)
        assert "\x1b" not in console.prompt


@pytest.mark.parametrize(
    ("pasted", "said"),
    [
        ("👩\u200d💻 says hi", "1 invisible character]"),
        ("a\u200bb\u00adc\ufe0f", "3 invisible characters]"),
        ("x\u202ey\u2060\nnext\tline", "2 invisible characters]"),
        ("tag\U000e0041\U000e0042", "2 invisible characters]"),
        ("\x1b[31mred\x1b]0;title\x07 alert", "3 invisible characters]"),
    ],
)
async def test_invisible_characters_of_a_paste_are_said_and_reach_the_model(pasted: str, said: str) -> None:
    from textual import events

    async with live() as console:
        console.app.post_message(events.Paste(pasted))
        await console.until(lambda: said in console.prompt)
        assert console.prompt.replace("\n", "").replace("\t", "").isprintable()
        await console.press("enter")
        await console.until(lambda: ("submit", pasted) in console.session.done)
        await console.until(lambda: not console.prompt)
        assert not invisible(console.shown().replace("\n", ""))
        await console.press("up")
        await console.until(lambda: console.screen.prompt.whole_text == pasted and said in console.prompt)


@pytest.mark.parametrize("pasted", ["plain", "naïve café", "نمی\u200cخواهم"])
async def test_a_paste_without_invisible_characters_stands_as_it_is(pasted: str) -> None:
    from textual import events

    async with live() as console:
        console.app.post_message(events.Paste(pasted))
        await console.until(lambda: console.prompt == pasted)


async def test_the_mark_of_a_long_paste_is_deleted_as_a_whole() -> None:
    from textual import events

    async with live((80, 24)) as console:
        await console.type("see ")
        console.app.post_message(events.Paste("line\n" * 100))
        await console.until(lambda: "pasted" in console.prompt)
        await console.press("backspace")
        assert console.prompt == "see "


async def test_a_paste_keeps_its_lines_whichever_line_ends_the_terminal_sends() -> None:
    from textual import events

    async with live((80, 24)) as console:
        console.app.post_message(events.Paste("one\rtwo\r\nthree\nfour"))
        await console.until(lambda: console.prompt)
        assert console.prompt == "one\ntwo\nthree\nfour"


async def test_enter_right_behind_typed_characters_sends_all_of_them() -> None:
    from textual import events

    async with live((80, 24)) as console:
        for key in (*"first", "ctrl+j", *"second", "enter", *"third"):
            console.app.post_message(events.Key(key, key if len(key) == 1 else None))
        await console.until(lambda: console.prompt == "third")
        await console.press("up")
        assert console.prompt == "first\nsecond"


async def test_a_message_that_is_begun_in_a_pane_loses_no_character_however_fast_it_is_typed() -> None:
    from textual import events

    async with live() as console:
        await console.say("fix it")
        pane = console.screen.query_one(ConversationPane)
        pane.focus()
        await console.until(lambda: console.screen.focused is pane)
        for key in "do not look back, work":  # k, o, c and w are keys of the pane
            console.app.post_message(events.Key({" ": "space"}.get(key, key), key))
        await console.until(lambda: console.prompt == "do not look back, work")


async def test_messages_that_wait_are_edited_dropped_and_sent_at_once() -> None:
    async with live() as console:
        session = console.session
        session.start()
        queued = MessageQueued(id="new", text="not drawn yet").stamped(session.state.seq + 1, 1_000.0)
        session.state = apply(session.state, queued)
        console.screen.prompt.action_cursor_up()
        await console.until(lambda: console.screen.focused.id == "queued")
        session.drop("new")
        await console.until(lambda: console.screen.focused is console.screen.prompt)
        for text in ("and then this", "never mind", "now"):
            await console.say(text)
        await console.until(lambda: "queued and then this" in console.shown())
        assert "↑ choose" in console.shown()
        await console.press("alt+up")
        assert console.prompt == "now"
        assert console.screen.prompt.selected_text == "now", "typing replaces it"
        await console.press("enter", "up")
        await console.until(lambda: "Enter edit  s send all now  d drop  Esc back" in console.shown())
        signs = [line for line in console.shown().splitlines() if "▌" in line]
        assert [line.split("  ")[0] for line in signs] == ["▌✕ queued now"]
        await console.press("up", "d")
        await console.until(
            lambda: [one.text for one in console.session.state.queue] == ["and then this", "now"]
        )
        await console.press("up", "enter")
        assert console.prompt == "and then this"
        assert console.screen.focused is console.screen.prompt
        await console.press("enter", "up", "s")
        await console.until(lambda: ("mode", "AUTO") in console.session.done)
        assert console.session.done.index(("interrupt",)) < console.session.done.index(("mode", "AUTO"))
        await console.pilot.click("#queued", offset=(2, 0))
        await console.until(lambda: len(console.session.state.queue) == 1)
        await console.press("up")
        assert console.prompt == ""
        await console.press("q", "escape")
        assert console.prompt == "q"


async def test_a_restored_text_is_replaced_by_what_is_typed_and_a_draft_behind_it_stays() -> None:
    async with live() as console:
        prompt = console.screen.prompt
        prompt.offer("take\nthis", restored=True)
        await console.type("/diff")
        assert console.prompt == "/diff"
        prompt.put("draft")
        prompt.offer("take\nthis", restored=True)
        assert prompt.selected_text == "take\nthis"
        await console.press("end")
        await console.type(" too")
        assert console.prompt == "take\nthis too\ndraft"


async def test_a_command_behind_a_text_is_not_sent_without_a_word() -> None:
    async with live() as console:
        prompt = console.screen.prompt
        for text, restored in (("fix it /redo", ""), ("fix it/redo", "fix it"), ("fix it\n/model x/y", "")):
            if restored:
                prompt.offer(restored, restored=True)
                await console.press("end")
                await console.type(text.removeprefix(restored))
            else:
                prompt.put(text)
            await console.press("enter")
            await console.until(lambda: "stands behind a text" in console.remarks())
            assert (console.prompt, console.session.done) == (text, [])
            await console.press("enter")
            await console.until(lambda text=text: console.session.done == [("submit", text)])
            console.session.done.clear()
            console.app.clear_notifications()


async def test_the_empty_prompt_says_what_typing_does_now() -> None:
    async with live() as console:
        assert "Give the agent a task" in console.shown()
        console.session.start()
        await console.until(lambda: "Message for the next step" in console.shown())
        await console.press("escape")
        await console.until(lambda: "Interrupted. What should it do instead?" in console.shown())
        await console.say("like this")
        await console.until(lambda: "Message for the next step" in console.shown())
        await console.session.stop()
        await console.until(lambda: "Give the agent a task" in console.shown())


async def test_a_message_after_an_interrupt_goes_at_once_and_after_a_pause_it_waits() -> None:
    async with live() as console:
        console.session.start()
        await console.press("escape")
        await console.until(lambda: "Interrupted. What should it do instead?" in console.shown())
        await console.say("like this")
        assert console.session.done[-2:] == [("submit", "like this"), ("mode", "AUTO")]
        await console.press("f6")
        await console.say("later")
        assert console.session.done[-1] == ("submit", "later")


async def test_an_interruption_is_said_once_and_the_next_request_has_a_card_once_it_is_asked_for() -> None:
    async with live() as console:
        console.session.start()
        await console.press("escape")
        waiting = console.gate("A note.")
        await console.until(lambda: "F5 auto  F10 step  F2 panes" in console.shown())
        assert console.shown().count("Interrupted") == 1
        assert "Next request" not in console.shown()
        assert not console.remarks()
        await console.press("enter", "escape")
        assert not console.remarks()
        await console.press("f6")
        await console.until(lambda: "Next request" in console.shown())
        assert "Interrupted" not in console.shown()
        await console.press("f10")
        assert (await waiting).note == "A note."


async def test_letters_end_a_wait_only_where_no_text_is_being_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    async with live() as console:
        skipped: list[str] = []
        monkeypatch.setattr(
            HandSession, "skip_wait", lambda self: skipped.append("skip") or True, raising=False
        )
        console.session.start()
        fault = Fault(kind=FaultKind.RATE_LIMIT, message="slow down", status=429)
        console.session.record(
            ModelFaulted(fault=fault, attempt=1, action="retry", delay=2.5, model="scripted:x")
        )
        await console.until(lambda: "429 ▰▰▰▰▰ 0.0 s · s skip the wait · c cancel" in console.shown())
        await console.type("so it is")
        assert console.prompt == "so it is"
        await console.press("ctrl+u")
        await console.press("s")
        await console.until(lambda: "▸ s · Enter skips the wait  type on for a message" in console.shown())
        await asyncio.sleep(0)
        assert skipped == [], "no time that passes takes it"
        await console.press("enter")
        await console.until(lambda: skipped == ["skip"] and console.prompt == "")
        console.screen.prompt.use_vim(True)
        await console.press("escape", "s", "enter")
        await console.until(lambda: skipped == ["skip", "skip"] and console.prompt == "")
        console.screen.prompt.use_vim(False)
        await console.screen.run_action("command('jump', 'conversation')")
        await console.until(lambda: console.screen.focused.id == "conversation")
        await console.press("s")
        assert skipped == ["skip"] * 3
        await console.press("c")
        await console.until(lambda: ("interrupt",) in console.session.done)


async def test_the_mouse_leaves_the_keyboard_with_the_prompt() -> None:
    from textual import events

    async with live() as console:
        console.session.start()
        await console.until(lambda: "fix it" in console.shown())
        prompt = console.screen.prompt
        for x, y in ((5, 5), (100, 10), (500, 500), (-1, -1)):
            for kind in (events.MouseScrollUp, events.MouseDown, events.MouseUp):
                console.app.post_message(kind(None, x, y, 0, 0, 1, False, False, False, x, y))
            await console.pilot.pause()
            assert console.screen.focused is prompt, (x, y)
        await console.press("f3", "b", "c")
        assert console.prompt == "bc"
        await console.press("f3")
        console.app.post_message(events.Paste("paste"))
        await console.until(lambda: console.prompt == "bcpaste")


async def test_each_key_of_the_run_does_what_its_slash_command_does() -> None:
    cases = {
        "f5": ("mode", "AUTO"),
        "f6": ("mode", "PAUSED"),
        "f10": ("mode", "STEP"),
        "escape": ("interrupt",),
    }
    async with live() as console:
        console.session.start()
        for key, done in cases.items():
            console.session.done.clear()
            console.session.record(ModeChanged(mode=Mode.AUTO))
            await console.press(key)
            await console.until(lambda done=done: done in console.session.done)
            console.session.done.clear()
            name = next(command.name for command in commands.COMMANDS if command.key == key)
            await console.say(f"/{name}")
            await console.until(lambda done=done: done in console.session.done)


async def test_slash_commands_reach_the_session_with_their_arguments() -> None:
    cases = {
        "/policy hpd": ("policy", "hpd"),
        "/model openai/x": ("model", "openai/x"),
        "/approve all": ("approve", "all"),
        "/breaker bash open": ("breaker", "bash", True),
        "/title A new name": ("title", "A new name"),
        "/compact the file names": ("compact", "the file names"),
        "/note Look again": ("note", "Look again"),
        "/stop": ("stop",),
    }
    async with live() as console:
        console.session.start()
        for line, done in cases.items():
            await console.say(line)
            await console.until(lambda done=done: done in console.session.done)


async def test_a_change_that_shows_nowhere_else_is_said() -> None:
    cases = {
        "/approve all": "Everything runs but what a rule denies",
        "/title A new name": "now named A new name",
        "/step": "every request waits for you",
        "/pause": "waits before its first request",
        "/policy hpd": "Runs are judged by hpd.",
    }
    async with live() as console:
        for line, says in cases.items():
            console.app.clear_notifications()
            await console.say(line)
            await console.until(lambda says=says: says in console.remarks())


async def test_context_shows_what_fills_the_window_and_closes() -> None:
    async with live() as console:
        console.session.start("a task of some words")
        await console.say("/context")
        await console.opens(ReportScreen)
        text = "\n".join(text_of(line) for line in console.app.screen.query_one(ReportPane).draw(60, 30))
        assert "■ task" in text
        assert "/compact makes a summary" in text
        await console.press("escape")
        await console.opens(LiveScreen)


async def test_skills_are_shown_with_what_is_wrong_and_one_can_be_asked_for() -> None:
    async with live() as console:
        good = Skill("release", "How a [b]release[/b] is made.", Path("/w"), ".agents/skills/release", False)
        console.session.found = Skills((good,), (BadSkill(".agents/skills/x", "it has no description"),))
        await console.say("/skills")
        await console.opens(ReportScreen)
        text = "\n".join(text_of(line) for line in console.app.screen.query_one(ReportPane).draw(60, 30))
        for part in (
            "release  of the checkout",
            "How a [b]release[/b] is made.",
            "✗ left out .agents/skills/x",
        ):
            assert part in text
        await console.press("escape")
        await console.say("/skills nothing")
        await console.until(lambda: "There are: release." in console.remarks())
        await console.say("/skills release")
        await console.until(lambda: console.prompt == "Use the skill release: ")


async def test_a_wrong_command_names_the_nearest_and_stays_in_the_prompt() -> None:
    async with live() as console:
        await console.say("/polcy hpd")
        await console.until(lambda: "/policy?" in console.remarks())
        assert console.prompt == "/polcy hpd"
        assert console.session.done == []


async def test_a_wrong_value_is_named_and_changes_nothing() -> None:
    async with live() as console:
        await console.say("/policy nonsense")
        await console.until(lambda: "no policy nonsense" in console.remarks())
        await console.say("/approve maybe")
        await console.until(
            lambda: "There is no mode maybe. The modes are plan, ask, writes, all." in console.remarks()
        )
        assert console.session.done == []


async def test_commands_are_offered_and_completed_while_they_are_typed() -> None:
    from textual import events

    async with live() as console:
        await console.type("/pol")
        assert "/policy [NAME]" in console.shown()
        await console.press("tab")
        assert console.prompt == "/policy"
        await console.type(" for")
        await console.press("enter")
        await console.until(lambda: ("policy", "forge") in console.session.done)
        await console.type("/pol")
        for key in (
            *"icy",
            "space",
            *"hpd",
            "enter",
        ):  # a burst: the list still shows what fits its beginning
            console.app.post_message(events.Key(key, {"space": " "}.get(key, key if len(key) == 1 else None)))
        await console.until(lambda: ("policy", "hpd") in console.session.done)


async def test_themes_switch_live() -> None:
    async with live() as console:
        await console.until(lambda: len(console.app.theme_names) >= 4)
        for name in [*console.app.theme_sources, "nord"]:
            await console.say(f"/theme {name}")
            await console.until(lambda name=name: console.app.theme == name)


def test_the_help_explains_the_focused_pane_first_and_every_sign_pane_and_strategy() -> None:
    shown = sections("attempts")
    assert shown[0][0] == "This pane"
    assert shown[0][1][0][0] == "Attempts"
    assert [title for title, _ in sections("prompt")][:2] == ["The screen", "Commands and their keys"]
    words = "\n".join(f"{left} {right}" for _, rows in shown for left, right in rows)
    for sign in ("✗", "⊘", "▲", "▼", "⏚", "≈"):
        assert sign in words
    for name in ("Error ring", "Trends", "PIVOT", "DEGRADE", "held back"):
        assert name in words


def test_the_sections_of_the_help_stand_side_by_side_where_there_is_room() -> None:
    narrow, wide = (help_lines(sections(), width) for width in (110, 180))
    assert len(wide) < 0.65 * len(narrow)
    assert max(width_of(line) for line in wide) <= 180

    def words(lines: Sequence[Line]) -> Counter[str]:
        return Counter(" ".join(text_of(line) for line in lines).split())

    assert words(wide) == words(narrow)


async def test_help_lists_every_command_and_closes() -> None:
    async with live() as console:
        await console.press("f1")
        assert isinstance(console.app.screen, HelpScreen)
        assert "Commands and their keys" in console.shown()
        await console.press("escape")
        assert console.app.screen is console.screen
    listed = "\n".join(left for _, rows in sections() for left, _ in rows)
    assert all(command.usage in listed for command in commands.COMMANDS)


async def test_jump_goes_to_a_pane_by_its_letter() -> None:
    async with live() as console:
        await console.press("ctrl+o")
        assert isinstance(console.app.screen, JumpScreen)
        await console.press("t")
        await console.until(
            lambda: console.screen.focused is not None and console.screen.focused.id == "timeline"
        )
        await console.press("ctrl+o", "p")
        await console.until(lambda: console.screen.focused is console.screen.prompt)
        await console.press("ctrl+o")
        await console.until(lambda: "t Timeline" in console.shown())
        await console.pilot.resize_terminal(80, 24)
        await console.until(lambda: console.app.screen is console.screen)


async def test_the_last_line_shows_the_keys_that_matter_now() -> None:
    async with live((60, 20)) as console:

        def keys() -> str:
            return console.shown().splitlines()[-1].strip()

        assert keys() == "F1 help  / commands  @ files  F2 panes  ^Q quit"
        assert await console.pilot.click("KeyHints", offset=(10, 0))
        await console.until(lambda: console.prompt == "/")
        console.screen.prompt.put("")
        console.session.start()
        await console.until(lambda: keys() == "F1 help  Esc interrupt  F6 pause  F10 step  F2 panes")
        console.session.record(ModeChanged(mode=Mode.PAUSED))
        await console.until(lambda: keys() == "F1 help  F5 auto  F10 step  Esc interrupt  F2 panes")
        console.gate()
        await console.until(lambda: keys().startswith("F1 help  F5 auto  F10 step  F2 panes"))
        console.tasks[-1].cancel()
        await console.until(lambda: "Esc interrupt" in keys())
        await console.say("And then this.")
        await console.until(lambda: "↑ choose" in console.shown())
        await console.press("up")
        await console.until(lambda: "Esc interrupt" not in keys())
        await console.press("escape")
        await console.until(lambda: "Esc interrupt" in keys())
        await console.session.stop()
        await console.until(lambda: "/ commands" in keys())


async def test_the_last_line_says_what_esc_does_before_it_interrupts() -> None:
    async with live((80, 24)) as console:

        def keys() -> str:
            return console.shown().splitlines()[-1].strip()

        assert "Esc" not in keys()
        await console.press("/")
        await console.until(lambda: "Esc close list" in keys())
        await console.press("escape")
        await console.until(lambda: "Esc" not in keys())
        console.screen.prompt.put("")
        await console.press("f2")
        await console.until(lambda: "Esc back" in keys())
        await console.press("f2")
        await console.until(lambda: "Esc" not in keys())
        console.session.start()
        await console.until(lambda: "Esc interrupt" in keys())
        await console.press("f2")
        await console.until(lambda: "Esc back" in keys())
        await console.press("escape")
        await console.until(lambda: "Esc interrupt" in keys())
        console.screen.commands.run("vim", "on")
        await console.until(lambda: "Esc normal mode" in keys())
        await console.press("escape")
        await console.until(lambda: "Esc interrupt" in keys())
        await console.press("d")
        await console.until(lambda: "Esc normal mode" in keys())
        await console.press("escape", "v")
        await console.until(lambda: "Esc normal mode" in keys())
        assert ("interrupt",) not in console.session.done
        # The run is over before the session has put its task away.
        console.session.record(RunFinished(outcome=Outcome.ANSWERED, answer="Done."))
        await console.press("escape")
        await console.until(lambda: "/ commands" in keys() and "Esc" not in keys())


async def test_the_last_line_names_the_key_that_finds_a_text_where_it_has_room() -> None:
    async with live((120, 40)) as console:
        console.session.start()
        await console.until(lambda: console.shown().rstrip().endswith("^O jump  ^F find"))


async def test_a_click_on_a_hint_is_its_key_in_a_screen_above_too() -> None:
    async with live() as console:
        await console.press("ctrl+l")
        await console.opens(InboxScreen)
        assert "Nothing waits for you." in console.shown()
        assert "Enter" not in console.shown().split("Inbox")[1]
        await console.press("escape")
        console.ask()
        await console.card_appears()
        await console.press("ctrl+l")
        await console.opens(InboxScreen)
        await console.until(lambda: "Enter go to its card" in console.shown())
        place = "Enter go to its card  Esc".index("Esc")
        assert await console.pilot.click("InboxScreen KeyHints", offset=(place, 0))
        await console.until(lambda: console.app.screen is console.screen)


async def test_the_palette_offers_the_same_commands() -> None:
    async with live() as console:
        console.session.start()
        await console.press("ctrl+p")
        await console.type("pause")
        await console.until(lambda: "Pause after this step" in console.shown())
        await console.press("enter")
        await console.until(lambda: ("mode", "PAUSED") in console.session.done)


@pytest.mark.parametrize(
    ("size", "folded"), [((80, 24), True), ((100, 24), False), ((200, 60), False), ((120, 23), True)]
)
async def test_recovery_panes_fold_where_there_is_no_room_and_open_on_a_key(
    size: tuple[int, int], folded: bool
) -> None:
    async with live(size) as console:
        console.session.start()
        await console.until(lambda: "fix it" in console.shown())
        assert ("○ ○ ○ ○ ○ nothing failed" in console.shown().splitlines()[1]) is not folded
        assert "○ ○ ○ ○ ○ nothing failed" in console.shown()
        assert ("Error ring" in console.shown()) is not folded
        if not folded:
            assert console.screen.query_one("#recovery").region.width == SLIM_WIDTH
            await console.press("f2")
            await console.until(lambda: console.screen.query_one("#recovery").region.width > SLIM_WIDTH)
        await console.press("f2")
        await console.until(lambda: "Trends" in console.shown() and "fix it" not in console.shown())
        await console.press("f2")
        await console.until(lambda: "Error ring" not in console.shown() and "fix it" in console.shown())
        await console.press("f3")
        await console.until(lambda: console.screen.focused.id == "ring")
        titles = ("Error ring", "Confidence", "Attempts", "Recovery note", "Timeline")
        assert all(title in console.shown() for title in titles)


async def test_panes_that_have_no_room_at_the_side_come_back_where_there_is_and_each_form_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept: list[tuple[str, ...]] = []
    async with live((80, 24)) as console:
        monkeypatch.setattr(console.app, "remember", lambda **values: kept.append(tuple(values.values())))
        await console.press("f2")
        await console.until(lambda: "Trends" in console.shown())
        await console.press("f2")
        await console.until(lambda: "Error ring" not in console.shown())
        await console.pilot.resize_terminal(200, 60)
        await console.until(lambda: "Error ring" in console.shown())
        console.screen.commands.run("panes", "line")
        console.screen.commands.run("panes", "full")
        await console.until(lambda: "Trends" in console.shown())
        assert kept == [("full", "auto"), ("auto", "auto"), ("line", "line"), ("full", "line")]
    async with live((120, 40)) as console:
        console.screen.use({"panes": "full", "panes_before": "strip"})
        await console.until(lambda: "Trends" in console.shown())
        await console.press("escape")
        await console.until(lambda: "Error ring" not in console.shown())


async def test_a_text_is_found_in_the_conversation_and_gone_to() -> None:
    async with live((80, 24)) as console:
        console.session.start("make the kettle whistle")
        for number in range(1, 12):
            call = ToolCall(id=f"c{number}", name="read_file", arguments="")
            output = "\n".join([*(f"row {row}" for row in range(30)), f"needle {number}"])
            console.session.record(
                ReplyFinished(text=f"Reply {number}.", model="m", calls=(call,)),
                ToolStarted(call_id=call.id, tool="read_file", input={"path": f"p{number}"}),
                ToolSucceeded(
                    call_id=call.id, tool="read_file", input={"path": f"p{number}"}, content=output
                ),
                IterationFinished(iteration=number),
                IterationStarted(iteration=number + 1),
            )
        await console.until(lambda: "Reply 11." in console.shown())
        await console.press("ctrl+f")
        await console.until(lambda: "Find in this conversation" in console.shown())
        await console.type("needle 3")
        await console.until(lambda: "needle 3" in console.shown() and "Reply" not in console.shown())
        await console.press("enter")
        await console.until(lambda: "Find in this" not in console.shown() and "needle 3" in console.shown())
        await leave_matches(console)
        calls = [ToolCall(id=f"p{number}", name="read_file", arguments="") for number in range(9)]
        read = [
            ToolSucceeded(
                call_id=call.id,
                tool="read_file",
                input={},
                content="\n".join([*"abcdefgh", f"thread {number}"]),
            )
            for number, call in enumerate(calls)
        ]
        console.session.record(ReplyFinished(text="All.", model="m", calls=tuple(calls)), *read)
        console.session.record(IterationFinished(iteration=12), IterationStarted(iteration=13))
        await console.say("/find thread 4")
        await console.until(lambda: "thread 4" in console.shown() and "All." not in console.shown())
        await console.press("enter")
        await console.until(lambda: "│ thread 4" in console.shown() and "Find in this" not in console.shown())
        await leave_matches(console)
        await console.say("/find KETTLE")
        await console.until(
            lambda: "make the kettle whistle" in console.shown() and " you " in console.shown()
        )
        await console.press("enter")
        await console.until(lambda: "» make the kettle whistle" in console.shown())
        await leave_matches(console)


async def leave_matches(console: LiveSession) -> None:
    """Esc goes from the matches back to the prompt."""
    await console.until(lambda: isinstance(console.screen.focused, ConversationPane))
    await console.press("escape")
    await console.until(lambda: console.screen.focused is console.screen.prompt)


async def test_a_text_is_found_in_the_step_that_still_runs() -> None:
    async with live((80, 24)) as console:
        console.session.start()
        calls = [ToolCall(id=f"c{number}", name="bash", arguments="") for number in range(2)]
        console.session.record(ReplyFinished(text="I wait.", model="m", calls=tuple(calls)))
        for call in calls:
            console.session.record(
                ToolStarted(call_id=call.id, tool="bash", input={"command": f"watch {call.id}"}),
                ToolProgress(
                    call_id=call.id, text="\n".join([*"abc", f"zebra in {call.id}", *"defghijklmnopqrstuv"])
                ),
            )
        await console.until(lambda: "watch c1" in console.shown())
        assert "zebra" not in console.shown()
        await console.say("/find zebra in c0")
        await console.until(lambda: "step 1 · call" in console.shown())
        await console.press("enter")
        await console.until(lambda: "Find in this" not in console.shown())
        await console.until(lambda: "│ zebra in c0" in console.shown())
        await leave_matches(console)
        console.session.record(
            *(ToolSucceeded(call_id=call.id, tool="bash", input={}, content="seen") for call in calls),
            IterationFinished(iteration=1),
            IterationStarted(iteration=2),
            ReplyDelta(text="\n\n".join(["The okapi came first.", *"abcdefghijklmnopqrstuv"])),
        )
        await console.press("end")
        await console.until(lambda: "okapi" not in console.shown())
        await console.say("/find okapi")
        await console.until(lambda: "step 2 · the model" in console.shown())
        await console.press("enter")
        await console.until(lambda: "▌◆ The okapi came first." in console.shown())


async def test_folding_follows_the_terminals_size() -> None:
    async with live((200, 60)) as console:
        await console.pilot.resize_terminal(80, 24)
        await console.until(lambda: "Error ring" not in console.shown())
        await console.pilot.resize_terminal(140, 45)
        await console.until(lambda: "Error ring" in console.shown())


async def test_the_first_frame_stands_where_the_conversation_will() -> None:
    async with live((80, 24)) as console:
        frame = console.screen.dashboard.query_one("ConversationFrame")
        for size in ((80, 24), (108, 28), (120, 40), (169, 50), (170, 50), (200, 60), (240, 70)):
            await console.pilot.resize_terminal(*size)
            await console.until(lambda size=size: console.screen.size == size)
            assert frame.outer_size.width == conversation_width(*size), size


async def test_esc_closes_what_is_open_before_it_interrupts() -> None:
    async with live((80, 24)) as console:
        console.session.start()
        await console.press("f2", "escape")
        await console.type("/po")
        await console.press("escape")
        assert ("interrupt",) not in console.session.done
        await console.press("escape")
        await console.until(lambda: ("interrupt",) in console.session.done)


async def test_leaving_asks_while_a_run_goes_on_and_closes_the_session() -> None:
    async with live() as console:
        console.session.start()
        await console.press("ctrl+q")
        await console.opens(LeaveScreen)
        await console.press("s", "enter")
        await console.until(lambda: console.app.screen is console.screen)
        assert ("close",) not in console.session.done
        await console.press("ctrl+q")
        await console.opens(LeaveScreen)
        await console.press("q")
        await console.until(lambda: "Enter leave  Esc back" in console.shown())
        await console.press("enter")
        await console.until(lambda: ("close",) in console.session.done)
    assert console.app.return_code == 0


async def test_leaving_asks_nothing_about_a_run_whose_end_is_recorded() -> None:
    async with live() as console:
        console.session.start()
        console.session.record(RunFinished(outcome=Outcome.ANSWERED))
        assert console.session.running
        await console.press("ctrl+q")
        await console.until(lambda: ("close",) in console.session.done)
    assert console.app.return_code == 0


async def test_a_question_about_a_run_goes_with_the_run() -> None:
    async with live() as console:
        console.session.start()
        await console.press("ctrl+q")
        await console.opens(LeaveScreen)
        await console.session.stop()
        await console.until(lambda: console.app.screen is console.screen)
        assert ("close",) not in console.session.done


async def test_a_letter_that_answers_nothing_leaves_a_question_as_it_was() -> None:
    async with live() as console:
        console.session.start()
        await console.press("ctrl+q")
        asked = await console.opens(LeaveScreen)
        for text in ("x", "quit now q", "fix q"):
            await console.type(text)
            await console.press("enter", "backspace", "q")
            assert console.app.screen is asked, text
            await console.press("escape")
        for key in ("right", "s"):
            await console.press("x", "backspace", key, "enter")
            await console.until(lambda: console.app.screen is console.screen)
            assert ("close",) not in console.session.done, key
            await console.press("ctrl+q")
            await console.opens(LeaveScreen)


async def test_leaving_without_a_run_asks_nothing() -> None:
    async with live() as console:
        await console.press("ctrl+q")
        await console.until(lambda: ("close",) in console.session.done)
    assert console.app.return_code == 0


async def test_ctrl_c_interrupts_a_run_and_never_leaves() -> None:
    async with live() as console:
        console.session.start()
        await console.press("ctrl+c")
        await console.until(lambda: ("interrupt",) in console.session.done)
        assert ("close",) not in console.session.done


async def test_ctrl_c_empties_the_prompt_where_nothing_runs_and_up_brings_the_text_back() -> None:
    async with live() as console:
        await console.type("half a word")
        await console.press("ctrl+c")
        await console.until(lambda: not console.screen.prompt.text)
        await console.press("ctrl+c")
        await console.until(lambda: "leaves the console" in console.remarks())
        await console.press("up")
        assert console.screen.prompt.text == "half a word"
        console.session.start()
        await console.press("ctrl+c")
        await console.until(lambda: ("interrupt",) in console.session.done)
        assert console.screen.prompt.text == "half a word"


async def test_hostile_text_in_a_command_or_a_remark_is_no_markup() -> None:
    async with live() as console:
        for line, says in (
            ("/[red][@click=app.quit]x[", "command"),
            ("/theme [/foo][@click=app.quit]x[/]", "theme"),
        ):
            await console.say(line)
            await console.until(
                lambda says=says: f"There is no {says}" in console.remarks() and "[@click" in console.shown()
            )
            await console.pilot.press("ctrl+u")
        console.session.start()
        await console.say("[/bar] [red]x")
        await console.until(lambda: "[/bar] [red]x" in console.shown())


async def test_many_events_are_drawn_together(monkeypatch: pytest.MonkeyPatch) -> None:
    async with live() as console:
        console.session.start()
        await console.until(lambda: "fix it" in console.shown())
        drawn = 0
        real = ConversationPane.show

        def counting(*given: Any, **more: Any) -> None:
            nonlocal drawn
            drawn += 1
            real(*given, **more)

        monkeypatch.setattr(ConversationPane, "show", counting)
        for number in range(500):
            console.session.record(ReplyDelta(text=f"word{number} "))
        await console.until(lambda: "word499" in console.shown())
        assert drawn < 50


async def test_the_conversation_goes_on_following_when_a_card_comes_and_goes() -> None:
    async with live() as console:
        console.session.start()
        console.session.record(ReplyDelta(text="\n".join(f"line {number}" for number in range(100))))
        await console.until(lambda: "line 99" in console.shown())
        asked = console.ask(preview="\n".join(f"make {number}" for number in range(40)))
        await console.card_appears()
        await console.until(lambda: "make 12" in console.shown() and "line 99" in console.shown())
        asked.cancel()
        await console.until(lambda: console.card is None)
        console.session.record(ReplyDelta(text="\nthe last line"))
        await console.until(lambda: "the last line" in console.shown())
        assert "line 80" in console.shown()


# --- without a screen ----------------------------------------------------------------------------------------


def test_history_is_private_bounded_and_survives_damage(tmp_path: Path) -> None:
    path = tmp_path / "state" / "prompt-history.jsonl"
    history = PromptHistory()
    history.add("typed before the file was read")
    history.load(path)
    assert "typed before" in path.read_text()
    for number in range(MAX_ENTRIES + 20):
        history.add(f"text {number}\nsecond line")
    history.add("x" * 1_000_000)
    assert path.stat().st_mode & 0o777 == 0o600
    assert len(history.entries) == MAX_ENTRIES
    with path.open("a", encoding="utf-8") as file:
        file.write('{"not": "a text"}\n"cut')
    again = PromptHistory()
    again.load(path)
    assert again.entries[-1] == f"text {MAX_ENTRIES + 19}\nsecond line"
    assert len(again.entries) == MAX_ENTRIES


def test_an_unreadable_history_is_an_empty_one(tmp_path: Path) -> None:
    history = PromptHistory()
    history.load(tmp_path)  # a folder
    history.add("still works")
    assert history.previous("") == "still works"


@pytest.mark.parametrize(
    ("line", "name", "argument"),
    [("/step", "step", ""), ("/POLICY  hpd ", "policy", "hpd"), ("/note a b  c", "note", "a b  c")],
)
def test_a_line_is_a_command_and_its_argument(line: str, name: str, argument: str) -> None:
    invocation = dispatch.parse(line)
    assert (invocation.command.name, invocation.argument) == (name, argument)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("/", "There is no command"),
        ("/polcy", "/policy"),
        ("/profile", "/profile NAME"),
        ("/xyzzy", "/help"),
        ("/step now", "/step takes no argument"),
    ],
)
def test_what_is_no_command_is_refused_with_what_would_be(line: str, says: str) -> None:
    with pytest.raises(dispatch.UnknownCommandError, match=says):
        dispatch.parse(line)


async def test_a_message_that_begins_with_a_path_is_no_command() -> None:
    async with live() as console:
        for message in ("/tmp/notes.txt what is it", "// is a comment", "/usr/bin/env"):
            await console.say(message)
            await console.until(lambda message=message: ("submit", message) in console.session.done)


def test_every_command_of_the_contract_is_there_with_its_key() -> None:
    names = {
        "step",
        "auto",
        "pause",
        "stop",
        "policy",
        "model",
        "approve",
        "theme",
        "sessions",
        "fork",
        "export",
    }
    assert names | {"help", "quit"} <= set(commands.BY_NAME)
    keys = {"help": "f1", "auto": "f5", "pause": "f6", "step": "f10", "quit": "ctrl+q", "jump": "ctrl+o"}
    assert {name: commands.BY_NAME[name].key for name in keys} == keys
    used = [command.key for command in commands.COMMANDS if command.key]
    assert len(used) == len(set(used))


async def test_a_pane_that_raises_once_is_reported_and_the_console_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from tui_agent.console.panes import RingPane

    faults = [ValueError("no such slot")]
    shown = RingPane.show

    def show(pane: RingPane, state: RunState, now: float) -> None:
        if faults:
            raise faults.pop()
        shown(pane, state, now)

    async with live((160, 45)) as console:
        monkeypatch.setattr(RingPane, "show", show)
        console.session.start("fix it")
        await console.until(lambda: "no such slot" in console.remarks())
        console.session.record(ReplyDelta(text="still drawing"))
        await console.until(lambda: "still drawing" in console.shown())
        assert not faults


async def test_a_model_that_cannot_be_is_refused_in_words() -> None:
    async with live() as console:
        await console.say("/model nosuch/thing")
        await console.until(lambda: "knows no provider" in console.remarks())
        assert ("model", "nosuch/thing") not in console.session.done
        await console.say("/model openai/x")
        await console.until(lambda: ("model", "openai/x") in console.session.done)
        assert "The next call goes to openai/x." in console.remarks()


async def test_what_is_asked_before_the_session_is_open_is_done_in_its_order() -> None:
    async with live() as console:
        screen, session = console.screen, console.session
        screen.live.session = None
        await screen.commands.submit("first")
        screen.commands.run("pause")
        await screen.commands.submit("second")
        await screen.attach(session)
        orders = [done for done in session.done if done[0] in {"submit", "mode"}]
        assert orders == [("submit", "first"), ("mode", "PAUSED"), ("submit", "second")]


async def test_a_message_is_dropped_once_and_no_other_for_it_before_the_session_is_open_and_after() -> None:
    async with live() as console:
        screen, session = console.screen, console.session
        screen.live.session = None
        for text in ("one", "two", "three"):
            await screen.commands.submit(text)
        first, second, _ = screen.queue.waiting
        assert screen.queue.drop(first.id)
        assert not screen.queue.drop(first.id)
        assert [message.text for message in screen.queue.waiting] == ["two", "three"]
        await screen.attach(session)
        screen.post_message(QueuedMessages.Chosen(second, "edit"))
        await console.pilot.pause()
        assert console.prompt == ""
        await console.until(lambda: "gone out already" in console.remarks())


async def test_two_fast_drops_drop_two_messages() -> None:
    from textual import events

    async with live() as console:
        console.session.start()
        for text in ("one", "two", "three"):
            await console.say(text)
        await console.until(lambda: "queued three" in console.shown())
        await console.press("up")
        for _ in range(2):
            console.app.post_message(events.Key("d", "d"))
        await console.until(lambda: [one.text for one in console.session.state.queue] == ["one"])
