"""The frame of screens that stand above another: a title on its upper edge, keys or a note on its lower one."""

from __future__ import annotations

from typing import ClassVar, TypeVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen

from tui_agent.console.looks.command_keys import bindings
from tui_agent.console.looks.hints import key_line

Result = TypeVar("Result")


class FramedScreen(ModalScreen[Result]):
    """The lines of `inside`, in a frame of their height."""

    DEFAULT_CSS = """
    FramedScreen {
        align: center middle;
        & > Vertical {
            max-width: 96%; height: auto; max-height: 96%; padding: 0 1; background: $surface;
            border: round $accent; border-title-color: $accent; border-subtitle-color: $text-muted;
        }
        & Input { background: $background; }
        & Static { height: auto; }
        & .-wrong { color: $error; }
        & KeyHints { padding: 0; background: transparent; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings("frame")

    low: ClassVar[int] = 0
    """Rows of the terminal below which the screen has the class `-low`: it gives up empty lines."""

    def __init__(self, title: str, *keys: tuple[str, str]) -> None:
        """`keys` and what they do, for the lower edge."""
        super().__init__()
        self.frame = Vertical()
        self.frame.border_title = Content(title)
        self.frame.border_subtitle = key_line(*keys)

    def compose(self) -> ComposeResult:
        with self.frame:
            yield from self.inside()

    def inside(self) -> ComposeResult:
        """The widgets within the frame."""
        raise NotImplementedError

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.height < self.low, "-low")
