"""The command palette's entries, from the registry: commands, and a line for each value that one can take."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.markup import escape

from tui_agent.console.tabs.tab import Tab
from tui_agent.frontend.commands.command import key_label
from tui_agent.frontend.commands.registry import COMMANDS

if TYPE_CHECKING:
    from textual.fuzzy import Matcher


class PaletteRow(NamedTuple):
    """One line of the palette. `complete`: it can be run as it is; otherwise the prompt gets its beginning."""

    label: str
    help: str
    name: str
    argument: str
    complete: bool


def entries(screen: Tab) -> Iterator[PaletteRow]:
    """Every command that makes sense on `screen`, each followed by its values; then those from files."""
    for command in COMMANDS:
        if screen.replays and not command.replay:
            continue
        key = f"  {key_label(command.pressed)}" if command.pressed else ""
        label = command.usage.removeprefix("/") + key
        yield PaletteRow(label, command.help, command.name, "", not command.needs_argument)
        # What the command does is said once, of the command alone.
        for value in screen.commands.values_of(command):
            yield PaletteRow(f"{command.name} {value}", "", command.name, value, True)
    for own in screen.commands.from_files:
        yield PaletteRow(own.name, f"{own.description}  ({own.origin})", own.name, "", False)


class CommandProvider(Provider):
    """Offers the registry's commands on the screens that have them."""

    def _entries(self) -> Iterator[PaletteRow]:
        return entries(self.screen) if isinstance(self.screen, Tab) else iter(())

    def _run(self, entry: PaletteRow) -> None:
        screen = self.screen
        if not isinstance(screen, Tab):
            return
        if entry.complete:
            screen.commands.run(entry.name, entry.argument)
        else:
            screen.put_in_prompt(f"/{entry.name} ")

    async def discover(self) -> Hits:
        """Offer the commands alone before anything is typed."""
        for entry in self._entries():
            if not entry.argument:
                yield DiscoveryHit(Content(entry.label), partial(self._run, entry), help=escape(entry.help))

    async def search(self, query: str) -> Hits:
        """Offer every entry that matches what is typed."""
        matcher = self.matcher(query)
        for entry in self._entries():
            # Letters that are strewn over a sentence say nothing.
            helps = 0.6 * matcher.match(entry.help) if query.lower() in entry.help.lower() else 0.0
            score = max(matcher.match(entry.label), helps)
            if score > 0:
                yield Hit(
                    score,
                    _highlighted(matcher, entry.label),
                    partial(self._run, entry),
                    help=escape(entry.help),
                )


class Palette(CommandPalette):
    """Textual's palette as a screen of this console: lines without gaps, over the conversation."""

    CSS = """
    Palette {
        & > Vertical {
            width: 100; max-width: 96%; height: auto; max-height: 90%; margin-top: 1; padding: 0 1;
            visibility: visible; background: $surface; border: round $accent;
        }
        & > .command-palette--help-text { color: $text-muted; text-style: not bold; }
        & #--input, & #--input.--list-visible { border: none; height: 2; }
        & SearchIcon, & LoadingIndicator { display: none; }
        & CommandInput, & CommandInput:focus { border: none; padding: 0; height: 1; }
        & CommandInput > .input--placeholder { color: $text-muted; }
        & #--results { overlay: none; height: auto; max-height: 1fr; }
        & CommandList, & CommandList:focus { border: none; max-height: 100%; }
        & CommandList > .option-list--option { padding: 0; }
        & CommandList > .option-list--option-disabled { color: $text-muted; }
        & CommandList > .option-list--option-highlighted {
            color: $foreground; background: $cursor-background; text-style: $cursor-background-text-style;
        }
        & CommandList:nocolor > .option-list--option-highlighted { background: $primary; text-style: reverse; }
    }
    """


def _highlighted(matcher: Matcher, label: str) -> Content:
    """The label with the matched characters marked. Textual's own highlighting reads brackets as markup."""
    content = Content(label)
    for offset in matcher.fuzzy_search.match(matcher.query, label)[1]:
        if not label[offset].isspace():
            content = content.stylize(matcher.match_style, offset, offset + 1)
    return content
