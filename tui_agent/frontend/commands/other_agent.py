"""The commands about another agent that takes the steps: its mode, and its options."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tui_agent.frontend.commands.command import Command

if TYPE_CHECKING:
    from tui_agent.core.events import AgentOffered
    from tui_agent.core.values import AgentOption
    from tui_agent.frontend.commands.host import SessionHost

MODE, MODEL = "mode", "model"


class Agent(Command["SessionHost"]):
    name = "agent"
    help = "Options of the agent that takes the steps (--agent): choose one and its value"
    argument = "[OPTION [VALUE]]"

    def choices(self, host: SessionHost) -> Sequence[str]:
        offered = host.session.state.session.offered
        return [f"{option.id} {word}" for option in offered.options for word in words_of(option)]

    async def do(self, host: SessionHost, argument: str) -> str:
        from tui_agent.frontend.lines.passages import Row
        from tui_agent.terminal_text import one_line

        offered = host.session.state.session.offered
        name, _, value = argument.partition(" ")
        if offered.option(argument) is not None:
            name, value = argument, ""
        if not name and offered.options:
            rows = [Row(one.name, one_line(one.named, 80), one.id) for one in offered.options]
            name = await host.choose("Options of the agent", rows) or ""
            if not name:
                return ""
        return await choose_option(host, name, value.strip())


class AgentMode(Command["SessionHost"]):
    name = "mode"
    help = "Mode of the agent that takes the steps (--agent): NAME, or the next one"
    argument = "[NAME]"

    def choices(self, host: SessionHost) -> Sequence[str]:
        return values_of(host, MODE)

    async def do(self, host: SessionHost, argument: str) -> str:
        option = host.session.state.session.offered.option(MODE)
        if not argument and option is not None and option.choices:
            at = next((n for n, one in enumerate(option.choices) if one.value == option.value), -1)
            argument = option.choices[(at + 1) % len(option.choices)].value
        return await choose_option(host, MODE, argument)


def values_of(host: SessionHost, name: str) -> Sequence[str]:
    """The values of one of the agent's options, as they are written."""
    option = host.session.state.session.offered.option(name)
    return [] if option is None else [*words_of(option)]


def words_of(option: AgentOption) -> Iterator[str]:
    """Each value as it is written: by its name, where no other has it."""
    names = [one.name for one in option.choices]
    for one in option.choices:
        yield one.name if names.count(one.name) == 1 else one.value


async def choose_option(host: SessionHost, name: str, value: str) -> str:
    """Give an option of the agent a value; without one, ask for it. Raises `ValueError`, `SessionError`."""
    session = host.session
    if not session.has_agent:
        raise ValueError(
            "This program takes the steps itself; agent-tui --agent NAME lets another agent do so."
        )
    if not value:
        value = await _picked(host, session.state.session.offered, name)
        if not value:
            return ""
    chosen = await session.choose(name, value)
    return f"The agent's {name} is {chosen} from now on."


async def _picked(host: SessionHost, offered: AgentOffered, name: str) -> str:
    from tui_agent.frontend.lines.passages import Row

    option = offered.option(name)
    if option is None:
        there = ", ".join(one.id for one in offered.options)
        known = f"Its options are: {there}." if there else "It has told of none, or has not been started yet."
        raise ValueError(f"The agent has no option {name!r}. {known}")
    rows = [
        Row(
            one.name,
            " · ".join(filter(None, ("now" if one.value == option.value else "", one.about))),
            one.value,
        )
        for one in option.choices
    ]
    return str(await host.choose(option.name, rows) or "")
