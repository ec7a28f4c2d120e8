"""The list of commands that fit what is being typed, shown above the prompt.

Each line is a command with its argument and its help, of the chosen one in full; if a command takes one of a
few values, the values are offered in turn. It reads the registry and draws; keys come from the prompt.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from tui_agent.frontend.commands.command import Completion

if TYPE_CHECKING:
    from textual.geometry import Size

SHOWN = 8
"""Lines at most; the rest is reached by going on."""

WIDEST_LABEL = 24
"""Cells up to which what the commands do stands in one column; in a narrow terminal a third of it."""


Suggest = Callable[[str], Sequence[Completion]]
"""From the text so far to what fits it; empty for a text that completes to nothing."""


class Completions(Widget):
    """A list without focus of its own: the prompt moves its choice."""

    DEFAULT_CSS = """
    Completions {
        display: none;
        height: auto;
        padding: 0 1;
        background: $panel;
        &.-open { display: block; }
    }
    """

    class Toggled(Message):
        """The list was opened, or closed."""

    def __init__(self, suggest: Suggest) -> None:
        super().__init__(id="completions")
        self._suggest = suggest
        self._suggestions: Sequence[Completion] = ()
        self._chosen = 0
        self._typed = ""

    @property
    def choice(self) -> str | None:
        """The text that the chosen line would put into the prompt; None while the list is closed."""
        return self._suggestions[self._chosen].text if self._suggestions else None

    def chosen_for(self, typed: str) -> str | None:
        """The choice, if taking it would change the typed text."""
        choice = self.choice
        if choice is None or choice.strip() == typed.strip():
            return None
        return choice

    def catch_up(self, typed: str) -> None:
        """Show completions of `typed` if the list is open for an earlier text: a burst of keys is ahead of
        it.
        """
        if self._suggestions and typed != self._typed:
            self.offer(typed)

    def offer(self, typed: str) -> None:
        """Show what fits `typed`; an empty text closes the list."""
        self._typed = typed
        self._suggestions = self._suggest(typed) if typed else ()
        self._choose(0)

    def renew(self) -> None:
        """More is known than before; a list that was closed stays closed."""
        if self._typed:
            self.offer(self._typed)

    def move(self, step: int) -> None:
        """Choose another line, round the ends."""
        self._choose((self._chosen + step) % len(self._suggestions))

    def _choose(self, place: int) -> None:
        self._chosen = place
        if self.has_class("-open") != (self.choice is not None):
            self.toggle_class("-open")
            self.post_message(self.Toggled())
        if self.choice is not None:  # a closed list lays nothing out: it is asked at every key
            self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._lines(width))

    def render(self) -> Content:
        """The chosen line with what stands around it."""
        return Content("\n").join(self._lines(self.size.width))

    def _lines(self, width: int) -> list[Content]:
        if not self._suggestions:
            return []
        most = min(WIDEST_LABEL, width // 3)
        column = max((size for each in self._suggestions if (size := len(each.label)) <= most), default=0)
        chosen = _in_full(self._suggestions[self._chosen], column, width)[:SHOWN]
        others = SHOWN - len(chosen)
        first = max(0, min(self._chosen - others // 2, len(self._suggestions) - 1 - others))
        lines: list[Content] = []
        for place, each in enumerate(self._suggestions[first : first + others + 1], first):
            if place == self._chosen:
                lines += chosen
            else:
                parts = (f"  {each.label:{column}}  ", "$text"), (each.help, "$muted")
                lines.append(Content.assemble(*parts).truncate(width, ellipsis=True))
        return lines


def _in_full(chosen: Completion, column: int, width: int) -> list[Content]:
    """The chosen line; what it does goes on in the column of the others, and begins there below a long label."""
    from tui_agent.frontend.lines.styled import wrap

    indent = column + 4
    label = Content.styled(f"› {chosen.label:{column}}  ", "bold $accent").truncate(width, ellipsis=True)
    said = [Content.styled(row, "$muted") for row in wrap(chosen.help, width - indent)]
    beside = label.cell_length == indent
    first, below = (label + said[0], said[1:]) if beside else (label, said)
    return [first, *(Content(" " * indent) + row for row in below if row.plain)]
