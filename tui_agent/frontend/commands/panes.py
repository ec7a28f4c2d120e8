"""The commands about what a screen shows of its session: colours, panes, density, and finding a text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tui_agent.frontend.commands.command import Command

if TYPE_CHECKING:
    from tui_agent.frontend.commands.host import ScreenHost


class Theme(Command["ScreenHost"]):
    name = "theme"
    help = "Change the colours; alone: look at all themes and keep one"
    argument = "[NAME]"
    replay = screen = early = True

    def choices(self, host: ScreenHost) -> Sequence[str]:
        return host.panes.themes

    def do(self, host: ScreenHost, argument: str) -> str:
        host.panes.wear(argument)
        return ""


class Panes(Command["ScreenHost"]):
    name = "panes"
    help = (
        "Recovery panes: line (the strip alone), auto (beside the conversation, slim until something fails), wide "
        "(45%: so wide), full (the whole screen), reset (their own sizes); alone: the next form"
    )
    argument = "[FORM]"
    values = ("line", "auto", "wide", "full", "reset")
    key = "f2"
    replay = screen = early = True

    def do(self, host: ScreenHost, argument: str) -> str:
        return host.panes.shape(argument)


class View(Command["ScreenHost"]):
    name = "view"
    help = (
        "How much of a call is shown: compact (a line each, no rules between steps), normal (a line each, edits with "
        "their changes), full (with output); alone: the next. Remembered"
    )
    argument = "[DENSITY]"
    values = ("compact", "normal", "full")
    replay = screen = early = True

    def do(self, host: ScreenHost, argument: str) -> str:
        return host.panes.densify(argument)


class NextPane(Command["ScreenHost"]):
    name = "next-pane"
    help = "Go to the next recovery pane"
    key = "f3"
    replay = screen = early = True

    def do(self, host: ScreenHost, argument: str) -> str:
        host.panes.next_pane()
        return ""


class Jump(Command["ScreenHost"]):
    name = "jump"
    help = "Jump to a pane"
    argument = "[PANE]"
    key = "ctrl+o"
    replay = screen = early = True

    def choices(self, host: ScreenHost) -> Sequence[str]:
        return host.panes.places

    async def do(self, host: ScreenHost, argument: str) -> str:
        await host.panes.jump(argument)
        return ""


class Card(Command["ScreenHost"]):
    name = "card"
    help = "Go to the card that waits, also to one in another tab; without one, wait no longer for the model"
    key = "f8"
    replay = screen = early = True

    def do(self, host: ScreenHost, argument: str) -> str:
        host.panes.go_to_card()
        return ""


class Find(Command["ScreenHost"]):
    name = "find"
    help = "Find a text in the conversation; Enter goes there, then n and N from match to match"
    argument = "[TEXT]"
    key = "ctrl+f"
    replay = screen = early = True

    async def do(self, host: ScreenHost, argument: str) -> str:
        await host.panes.find(argument)
        return ""
