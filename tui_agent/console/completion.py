"""The list of commands that fit what is being typed, shown above the prompt.

Each line is a command with its argument and what it does; where a command takes one of a few values, the
values are offered in turn. It reads the registry and draws; keys come from the prompt.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from textual.content import Content
from textual.message import Message
from textual.widgets import Static

SHOWN = 8
"""Lines at most; the rest is reached by going on."""


class Suggestion(NamedTuple):
    """One line of the list: what would stand in the prompt, how it is shown, and what it does."""

    text: str
    """Ends with a space where an argument must follow."""
    label: str
    help: str


Suggest = Callable[[str], Sequence[Suggestion]]
"""From the text so far to what fits it; empty for a text that completes to nothing."""


class Completions(Static):
    """A list without focus of its own: the prompt moves its choice."""

    DEFAULT_CSS = """
    Completions {
        display: none;
        height: auto;
        max-height: 8;
        padding: 0 1;
        background: $panel;
        text-wrap: nowrap; text-overflow: ellipsis;
        &.-open { display: block; }
    }
    """

    class Changed(Message):
        """The list opened, closed or changed its height."""

    def __init__(self, suggest: Suggest) -> None:
        super().__init__("", markup=False, id="completions")
        self._suggest = suggest
        self._suggestions: Sequence[Suggestion] = ()
        self._chosen = 0
        self._typed = ""

    @property
    def choice(self) -> str | None:
        """The text that the chosen line would put into the prompt; None while the list is closed."""
        return self._suggestions[self._chosen].text if self._suggestions else None

    def chosen_for(self, typed: str) -> str | None:
        """The choice, where taking it would change what is typed."""
        choice = self.choice
        if choice is None or choice.strip() == typed.strip():
            return None
        return choice

    def catch_up(self, typed: str) -> None:
        """Show what fits `typed` where the list is open for an earlier text: a burst of keys is ahead of it."""
        if self._suggestions and typed != self._typed:
            self.offer(typed)

    def offer(self, typed: str) -> None:
        """Show what fits `typed`; an empty text closes the list."""
        self._typed = typed
        self._suggestions = self._suggest(typed) if typed else ()
        self._chosen = 0
        self._draw()

    def move(self, step: int) -> None:
        """Choose another line, round the ends."""
        self._chosen = (self._chosen + step) % len(self._suggestions)
        self._draw()

    def _draw(self) -> None:
        self.set_class(bool(self._suggestions), "-open")
        if not self._suggestions:
            return
        first = max(0, min(self._chosen - SHOWN // 2, len(self._suggestions) - SHOWN))
        shown = self._suggestions[first : first + SHOWN]
        width = max(len(suggestion.label) for suggestion in self._suggestions)
        lines = []
        for place, suggestion in enumerate(shown, first):
            style = "bold $accent" if place == self._chosen else "$text"
            mark = "› " if place == self._chosen else "  "
            lines.append(
                Content.assemble(
                    (mark + suggestion.label.ljust(width + 2), style), (suggestion.help, "$muted")
                )
            )
        self.update(Content("\n").join(lines))
