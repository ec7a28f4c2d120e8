"""The command palette's entries, from the registry: commands, and a line for each value that one can take."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast, runtime_checkable

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from tui_agent.console import commands

if TYPE_CHECKING:
    from textual.fuzzy import Matcher

    from tui_agent.console.commands import Deck


@runtime_checkable
class CommandScreen(Protocol):
    """A screen with commands."""

    deck: Deck

    async def run_command(self, name: str, argument: str = "") -> None: ...
    def put_in_prompt(self, text: str) -> None: ...


class Entry(NamedTuple):
    """One line of the palette."""

    label: str
    help: str
    name: str
    argument: str
    complete: bool
    """Everything is said; otherwise the prompt gets the beginning."""


def entries(deck: Deck, names: frozenset[str] | None = None) -> Iterator[Entry]:
    """Every command of `names` (all, where None), then its values."""
    for command in commands.COMMANDS:
        if names is not None and command.name not in names:
            continue
        key = f"  {commands.key_label(command.key)}" if command.key else ""
        yield Entry(
            command.usage.removeprefix("/") + key, command.help, command.name, "", not command.needs_argument
        )
        for value in command.choices(deck) if command.choices else ():
            yield Entry(f"{command.name} {value}", command.help, command.name, value, True)


class CommandProvider(Provider):
    """Offers the registry's commands on the screens that have them."""

    def _entries(self) -> Iterator[Entry]:
        screen = self.screen
        if not isinstance(screen, CommandScreen):
            return iter(())
        names: frozenset[str] | None = getattr(screen, "command_names", None)
        return entries(screen.deck, names)

    async def _run(self, entry: Entry) -> None:
        screen = cast("CommandScreen", self.screen)
        if entry.complete:
            await screen.run_command(entry.name, entry.argument)
        else:
            screen.put_in_prompt(f"/{entry.name} ")

    async def discover(self) -> Hits:
        """Before anything is typed: the commands alone."""
        for entry in self._entries():
            if not entry.argument:
                yield DiscoveryHit(Content(entry.label), partial(self._run, entry), help=entry.help)

    async def search(self, query: str) -> Hits:
        """Everything that fits what is typed."""
        matcher = self.matcher(query)
        for entry in self._entries():
            score = max(matcher.match(entry.label), 0.6 * matcher.match(entry.help))
            if score > 0:
                yield Hit(
                    score, _highlighted(matcher, entry.label), partial(self._run, entry), help=entry.help
                )


def _highlighted(matcher: Matcher, label: str) -> Content:
    """The label with what fits marked. The matcher's own way reads brackets as markup and loses `[undo]`."""
    content = Content(label)
    for offset in matcher.fuzzy_search.match(matcher.query, label)[1]:
        if not label[offset].isspace():
            content = content.stylize(matcher.match_style, offset, offset + 1)
    return content
