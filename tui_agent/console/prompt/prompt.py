"""The prompt: several lines of text, sent by Enter, with history at its edges and commands completed.

It knows texts and keys only; what a text means is decided by its taker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

from textual import events
from textual.binding import BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import TextArea
from textual.widgets.text_area import Selection

from tui_agent.console.looks.command_keys import bindings
from tui_agent.console.looks.hints import MARK, key_line, mode_line
from tui_agent.console.looks.splash import PLACEHOLDER
from tui_agent.console.prompt.completion import Completions
from tui_agent.console.prompt.fields import NEW_LINE_KEYS, TextField
from tui_agent.console.prompt.pasted import EDITED, PASTED
from tui_agent.console.terminal.timers import once
from tui_agent.frontend.operator import AFTER_INTERRUPT
from tui_agent.frontend.prompt_history import PromptHistory

if TYPE_CHECKING:
    from tui_agent.console.prompt.vim import VimKeys

REST = 0.6
"""Seconds without a key after which a draft is looked at."""

IN_A_RUN = "Message for the next step, or type / for commands"
"""The effect of typing while a run is under way: the message is queued."""


class Taker(Protocol):
    """Whoever decides what a text means."""

    def take(self, text: str) -> None:
        """Carry out what was sent."""


class Prompt(TextField):
    """A text area that grows to eight lines."""

    DEFAULT_CSS = """
    Prompt {
        height: auto;
        min-height: 3;
        max-height: 10;
        border: round $border-blurred;
        border-subtitle-color: $text-muted;
        padding: 0 1;
        background: $background;
        scrollbar-size-vertical: 1;
        &:focus { border: round $accent; }
        & .text-area--cursor-line { background: transparent; }
    }
    """

    longest = PASTED
    BINDINGS: ClassVar[list[BindingType]] = bindings("prompt")

    @dataclass
    class Confirmed(Message):
        """Enter behind a letter that stands alone and marks what Enter does."""

        letter: str

    class Empty(Message):
        """Enter was pressed without a text."""

    class Typed(Message):
        """A key went into the prompt, or a paste."""

    class Rested(Message):
        """Nothing was typed for a moment."""

    class ModeShown(Message):
        """Vim's mode, or what its keys wait for, is another one."""

    @dataclass
    class Paged(Message):
        """The conversation is to be read on by a page, back by one (-1), or at its end (0)."""

        step: int

    def __init__(
        self, completions: Completions, taker: Callable[[], Taker], queue_above: Callable[[], object]
    ) -> None:
        """`taker` is asked for when a text is sent: it may be imported then. `queue_above` tells if messages wait
        above the prompt, with one that was sent just now and is not drawn yet.
        """
        super().__init__(
            placeholder=PLACEHOLDER,
            highlight_cursor_line=False,
            soft_wrap=True,
            id="prompt",
        )
        self.recall = PromptHistory()
        self.completions = completions
        self._taker = taker
        self.vim: VimKeys | None = None
        """Set by `use_vim`."""
        self._alone: Mapping[str, str] = {}
        """Letters that, alone in the prompt, mark what Enter then does, in words; Vim does not take them."""
        self.restored = ""
        """The earlier message that was offered last; it may still stand here."""
        self._approval = ""
        self._queue_above = queue_above
        self._rests: asyncio.TimerHandle | None = None

    def say_what_is_next(self, *, running: bool, interrupted: bool) -> None:
        """Say what a text would do now."""
        in_run = AFTER_INTERRUPT if interrupted else IN_A_RUN
        self.placeholder = in_run if running else PLACEHOLDER

    def say_approval(self, mode: str) -> None:
        """Show at the edge what asks the operator first, and the key that changes it."""
        if mode != self._approval:
            self._approval = mode
            self._show_mode()

    def take_alone(self, letters: Mapping[str, str]) -> None:
        """Let these letters, alone in the prompt, mark what Enter then does, in words."""
        if letters != self._alone:
            self._alone = letters
            self._show_mode()

    @property
    def marking(self) -> str:
        """The letter that stands alone here and marks what Enter does."""
        return self.text if self.text in self._alone else ""

    def offer(self, text: str, *, instead: bool = False, restored: bool = False) -> None:
        """Offer a text for editing, before what stands here already, or instead of it. `restored`: it was sent before,
        and stands selected, so that typing replaces it.
        """
        draft = "" if instead else self.whole_text
        self.put(f"{text}\n{draft}" if draft else text)
        if restored:
            self.restored = text
            end = (text.count("\n"), len(text.rpartition("\n")[2]))
            self.selection = Selection(
                (0, 0), end if draft and self.text.startswith(text) else self.document.end
            )
        self.focus()

    def put(self, text: str) -> None:
        """Replace the whole text, cursor at its end."""
        self.load_text(self.pasted.shown(text, EDITED))
        self.move_cursor(self.document.end)

    async def on_key(self, event: events.Key) -> None:
        """Send, or start a line, in the order the keys came; other keys are the text area's.

        A priority binding would run ahead of the characters still waiting in this widget's queue, and a
        fast typist's Enter would send a part of the text.
        """
        if event.is_printable or event.key in {"backspace", "delete", "enter"}:
            self._typed()
        typed = event.key == "enter" if self.marking else event.key in self._alone and not self.text
        if self.vim is not None and not typed and self.vim.take(event):
            if event.key == "escape":
                self.completions.offer("")
            self._show_mode()
        elif event.key == "enter":
            self.action_send()
        elif event.key in NEW_LINE_KEYS:
            self.insert("\n")
        else:
            return
        event.stop()
        event.prevent_default()

    def use_vim(self, wanted: bool) -> None:
        """Take Vim's keys from now on, or no more."""
        from tui_agent.console.prompt.vim import VimKeys

        self.vim = VimKeys(self) if wanted else None
        self._show_mode()

    @property
    def commanded(self) -> bool:
        """Letters are commands and no text."""
        return self.vim is not None and self.vim.mode != "INSERT"

    @property
    def takes_escape(self) -> bool:
        """Esc is one of Vim's keys here: it leads to normal mode, or forgets what was begun there."""
        return self.vim is not None and (self.vim.mode != "NORMAL" or bool(self.vim.pending))

    @property
    def selected_text(self) -> str:
        """The selected text; in Vim's visual mode with the character that the cursor covers."""
        return (self.vim.selected_text if self.vim is not None else "") or super().selected_text

    def _show_mode(self) -> None:
        if self.marking:
            self.border_subtitle = Content(f"{MARK} {self.marking} · ") + key_line(
                ("Enter", self._alone[self.marking]), ("type on", "for a message")
            )
        else:
            of_vim = "" if self.vim is None else f"{self.vim.pending} {self.vim.mode}".strip()
            approval = mode_line(self._approval) if self._approval else Content("")
            self.border_subtitle = Content("  ").join(filter(None, (Content(of_vim), approval))) or None
            if self.vim is not None and self.vim.mode.selects:
                # The last character that is selected is shown by the cursor alone.
                self.stand_still()
        self.post_message(self.ModeShown())

    def on_paste(self, event: events.Paste) -> None:
        """Say that something was typed."""
        self._typed()

    def _typed(self) -> None:
        """Say so, and that it rests, once it does."""
        self.post_message(self.Typed())
        if self._rests is not None:
            self._rests.cancel()
        self._rests = once(self, REST, self._rested)

    def _rested(self) -> None:
        self._rests = None
        self.post_message(self.Rested())

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """Offer commands while a slash command is being typed."""
        event.stop()
        self.completions.offer(self._begun)
        if self._alone:
            self._show_mode()

    def on_text_area_selection_changed(self, event: TextArea.SelectionChanged) -> None:
        """Show that Vim's visual mode is over if something else than its keys moved the selection."""
        event.stop()
        if self.vim is not None and self.vim.follow():
            self._show_mode()

    @property
    def _begun(self) -> str:
        """The text that may be completed; empty for one that is not."""
        at_end = self.cursor_location == self.document.end
        return self.text if self.document.line_count == 1 or (at_end and "@" in self.text) else ""

    def action_send(self) -> None:
        """Send the text, or take the chosen completion first if it is not complete yet."""
        if self.marking:
            self.post_message(self.Confirmed(self.marking))
            self.put("")
            return
        self.completions.catch_up(self._begun)
        chosen = self.completions.chosen_for(self.text)
        if chosen is not None:
            self.put(chosen)
            if chosen.endswith(" "):
                return
        if not self.text.strip():
            self.post_message(self.Empty())
            return
        self._taker().take(self.take().strip("\n"))

    def take(self) -> str:
        """The whole text, which leaves the prompt; ↑ brings it back."""
        text = self.whole_text
        self.recall.add(text)
        self.put("")
        self.pasted.forget()
        self.completions.offer("")
        if self.vim is not None:
            self.vim.insert()
            self._show_mode()
        return text

    def action_complete(self) -> None:
        """Take the chosen completion, or go to the next pane if there is none."""
        self.completions.catch_up(self._begun)
        chosen = self.completions.choice
        if chosen is None:
            self.screen.focus_next()
        else:
            self.put(chosen)

    def action_cursor_page_up(self) -> None:
        """A page up: of a text that is longer than the prompt, else of the conversation."""
        if self.max_scroll_y:
            super().action_cursor_page_up()
        else:
            self.post_message(self.Paged(-1))

    def action_cursor_page_down(self) -> None:
        """A page down, of the same."""
        if self.max_scroll_y:
            super().action_cursor_page_down()
        else:
            self.post_message(self.Paged(1))

    def action_cursor_line_end(self, select: bool = False) -> None:
        """To the line's end; without a text to the conversation's."""
        if self.text:
            super().action_cursor_line_end(select)
        else:
            self.post_message(self.Paged(0))

    def action_cursor_up(self, select: bool = False) -> None:
        """A line up; from the first line, to the completion or the text before."""
        if select or not self.navigator.is_first_wrapped_line(self.cursor_location):
            super().action_cursor_up(select)
        elif self.completions.choice is not None:
            self.completions.move(-1)
        elif not self.text and self._queue_above():
            self.call_next(self.run_action, "screen.command('queue')")
        else:
            self._recall(self.recall.previous(self.whole_text))

    def action_cursor_down(self, select: bool = False) -> None:
        """A line down; from the last line, to the completion or the text after."""
        if select or not self.navigator.is_last_wrapped_line(self.cursor_location):
            super().action_cursor_down(select)
        elif self.completions.choice is not None:
            self.completions.move(1)
        else:
            self._recall(self.recall.next())

    def _recall(self, text: str | None) -> None:
        if text is not None:
            self.put(text)
            self.completions.offer("")
