"""The base of the panes that draw a list of lines: sizing, scrolling, selection, change of theme.

A pane keeps the part of the state that it shows and draws it into lines when that part, the width or the
second on the clock changed. It never reaches for anything beyond what `show` was given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.binding import BindingType
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.reactive import Reactive
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from tui_agent.console.looks.command_keys import bindings
from tui_agent.console.looks.pane_facts import PaneFacts
from tui_agent.console.panes.strips import Palette, to_strip
from tui_agent.frontend.lines.styled import Line, Span, fit, text_of, wrap
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from textual.events import Resize

    from tui_agent.core.recovery.policy import RecoveryPolicy
    from tui_agent.core.state import RunState


_EDGE = 6
"""Cells of the lower edge that its text does not take."""
MOST_ROWS = 9
"""Rows of text that a pane at the conversation's side asks for."""


@dataclass
class Asked(Message):
    """The operator asks why. `seq`: the event that it is about; of a reply with several calls, about `call_id`."""

    seq: int
    call_id: str = ""


class LinePane(ScrollView, can_focus=True):
    """A bordered, scrollable pane over lines that `draw` makes."""

    ALLOW_SELECT: ClassVar[bool] = True

    DEFAULT_CSS = """
    LinePane {
        border: round $border-blurred;
        border-title-color: $foreground;
        border-subtitle-color: $foreground;
        padding: 0 0 0 1;
        background: $background;
        color: $foreground;
        overflow-x: hidden;
        overflow-y: auto;
        scrollbar-gutter: stable;
        scrollbar-size: 0 1;
        &:focus { border: round $border; }
    }
    """

    virtual_size = Reactive(Size(0, 0), repaint=True)
    """As in Textual, but without laying out the whole screen for every line that comes."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.lines: Sequence[Line] = []
        self._strips: dict[int, Strip] = {}
        self._drawn: tuple[object, int, int] | None = None
        self._base_style: Style | None = None

    def draw(self, width: int, height: int) -> Sequence[Line]:
        """The pane's content as lines of at most `width` cells; `height` is what is visible."""
        raise NotImplementedError

    def redraw(self) -> None:
        """Draw again what is shown; cheap when the lines come out the same."""
        width, height = self.content_width, self.scrollable_content_region.height
        if width <= 0 or height <= 0:
            return
        lines = self.draw(width, height)
        if lines == self.lines:
            return
        self.lines = lines
        self._strips.clear()
        self.virtual_size = Size(width, len(lines))
        self.refresh()

    @property
    def content_width(self) -> int:
        """Cells that a line may take."""
        return self.scrollable_content_region.width

    def on_resize(self, event: Resize) -> None:
        """Lay the lines out for the new size."""
        self._strips.clear()
        self.redraw()

    @property
    def rich_style(self) -> Style:
        """The style beneath every line, cached: Textual walks all ancestors for it."""
        if self._base_style is None:
            self._base_style = super().rich_style
        return self._base_style

    def notify_style_update(self) -> None:
        """The theme or the focus changed: strips carry colours."""
        self._base_style = None
        super().notify_style_update()
        self._strips.clear()

    def watch_virtual_size(self, size: Size) -> None:
        """Move the scrollbar without laying out anything else."""
        if self.is_attached:
            self._scroll_update(size)

    def watch_show_vertical_scrollbar(self, shown: bool) -> None:
        """Set the bar's position when it appears: the pane may have been scrolled before."""
        if shown:
            self.vertical_scrollbar.position = self.scroll_y

    def selection_updated(self, selection: Selection | None) -> None:
        """Text was selected: strips carry the highlight."""
        self._strips.clear()
        self.refresh()

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        return selection.extract("\n".join(text_of(line).rstrip() for line in self.lines)), "\n"

    def render_line(self, y: int) -> Strip:
        width = self.content_width
        base = self.rich_style
        row = y + self.scroll_offset.y
        if row >= len(self.lines):
            return Strip.blank(max(0, width), base)
        strip = self._strips.get(row)
        if strip is None:
            line = self.lines[row]
            strip = to_strip(line, Palette.of(self.app), base, width)
            strip = self._selected(strip, row, line).apply_offsets(0, row)
            self._strips[row] = strip
        return strip

    def _selected(self, strip: Strip, row: int, line: Line) -> Strip:
        selection = self.text_selection
        span = selection.get_span(row) if selection is not None else None
        if span is None:
            return strip
        text = text_of(line)
        start, end = span
        return highlighted(strip, text, start, len(text) if end == -1 else end, self.selection_style)

    @property
    def selection_style(self) -> Style:
        """The ground of selected text, which keeps its own colours."""
        if self.app.no_color:
            return Style(reverse=True)
        return Style(bgcolor=self.screen.get_component_rich_style("screen--selection").bgcolor)


class StatePane(LinePane):
    """A pane of the dashboard: a part of the state, in lines. Its facts say how the screens know it."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("pane")

    facts: ClassVar[PaneFacts]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.BORDER_TITLE = cls.facts.title

    def __init__(self) -> None:
        super().__init__(id=self.facts.name)
        self._foot: list[tuple[str, str]] = []
        self._rows_wanted: dict[tuple[int, bool], int] = {}
        """Rows by the width that they are drawn for, as long as nothing else is shown."""

    def show(self, state: RunState, now: float) -> None:
        """Show `state` at the time `now` (seconds since the epoch)."""
        raise NotImplementedError

    def subject(self) -> Asked | None:
        """The subject under the cursor; None: the pane shows nothing that can be asked about."""
        return None

    def action_why(self) -> None:
        """Ask why, about what the operator looks at, else about what is wrong now."""
        self.post_message(self.subject() or Asked(0))

    def redraw(self) -> None:
        """Draw again, and count anew the rows that it takes."""
        self._rows_wanted.clear()
        super().redraw()

    def wants(self, width: int, *, calm: bool) -> int:
        """Rows of `width` cells for what the pane has to say; `calm`: nothing has failed lately."""
        if (width, calm) not in self._rows_wanted:
            most = self.rows_at_most(calm=calm)
            self._rows_wanted[width, calm] = max(1, min(most, len(self.draw(width, most))))
        return self._rows_wanted[width, calm]

    def rows_at_most(self, *, calm: bool) -> int:
        """Rows that the pane may ask for: one if it has nothing new to say."""
        return MOST_ROWS if self.speaks and not calm else 1

    @property
    def speaks(self) -> bool:
        """There is something to say about failures."""
        return True

    def on_resize(self, event: Resize) -> None:
        super().on_resize(event)
        if self._foot:
            self._fit_foot()

    def say_below(self, said: str = "", *, unused: str = "", rule: str = "") -> None:
        """Write on the lower edge: what is said, that the policy does not use it, and the rule, which is quiet."""
        self._foot = [(said, ""), (unused, "$muted"), (one_line(rule, 60), "$muted")]
        self._fit_foot()

    def _fit_foot(self) -> None:
        """Leave out whole what has no room there, the last first."""
        parts = [part for part in self._foot if part[0]]
        while (
            len(parts) > 1 and cell_len(" · ".join(text for text, _ in parts)) > self.outer_size.width - _EDGE
        ):
            parts.pop()
        pieces = [(f"{' · ' if at else ''}{text}", style) for at, (text, style) in enumerate(parts)]
        self.border_subtitle = Content.assemble(*pieces)


def nothing(what: str, about: str, width: int, height: int) -> list[Line]:
    """Draw an empty pane: that there is nothing, and if there is room, what will stand here."""
    more = wrap(about, width - 2)
    rows = [f"○ {what}", *(f"  {row}" for row in more if len(more) < height)]
    return [(Span(fit(row, width), "muted"),) for row in rows]


def newest_rule(state: RunState, detector: str) -> str:
    """Find the rule by which `detector` judged in the newest verdict; empty: it said nothing."""
    records = () if state.verdict is None else state.verdict.verdicts
    return next((record.rule for record in records if record.detector == detector), "")


def not_used(policy: RecoveryPolicy, off: bool) -> str:
    """Say that the policy does not judge by what a pane shows; empty if it does."""
    return f"not used by policy {policy.name}" if off else ""


def highlighted(strip: Strip, text: str, start: int, end: int, style: Style) -> Strip:
    """Give the characters from `start` to `end` of the strip's text another style.

    `Strip.apply_style` would lay the style below that of the text.
    """
    left, right = cell_len(text[:start]), cell_len(text[:end])
    inner = Strip(Segment.apply_style(strip.crop(left, right), post_style=style), right - left)
    return Strip.join([strip.crop(0, left), inner, strip.crop(right, strip.cell_length)])
