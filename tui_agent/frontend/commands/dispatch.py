"""A line or a key becomes a command that is carried out: the one way for both consoles."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from tui_agent.frontend.commands.command import Answer
from tui_agent.frontend.commands.registry import BY_NAME, AnyCommand

if TYPE_CHECKING:
    from tui_agent.frontend.commands.host import SessionHost


class UnknownCommandError(Exception):
    """A slash command that is not there, lacks its argument, or takes none; the message says what would be right."""


class Invocation(NamedTuple):
    """A command and its argument, as typed."""

    command: AnyCommand
    argument: str


def names_command(line: str) -> bool:
    """Tell a command, there or not, from text; a path, with a further slash in its first word, is text."""
    return line.startswith("/") and "/" not in line[1:].partition(" ")[0]


def is_command(line: str) -> bool:
    """Tell if a line begins with a slash and the name of a command, rightly used or not."""
    name = line.removeprefix("/").partition(" ")[0]
    return line.startswith("/") and name.lower() in BY_NAME


def command_behind(text: str, before: str = "") -> str:
    """Give the command that stands behind a text, in a place that would make it words: in a line of its own,
    as the last word, or right behind `before`. "": none does.
    """
    text = text.strip()
    if names_command(text):
        return ""
    rest = text.removeprefix(before.strip()).strip() if before else text
    last_line, last_word = text.rpartition("\n")[2].strip(), text.split()[-1] if text else ""
    behind = (part for part in (rest, last_line, last_word) if part != text)
    return next((part for part in behind if is_command(part)), "")


def said_of_command_behind(command: str) -> str:
    from tui_agent.terminal_text import one_line  # not before the first paint

    return (
        f"{one_line(command, 60)} stands behind a text and would be sent as a part of it. Nothing was sent: Enter "
        "sends all of it, and a command that is to be carried out stands alone."
    )


def parse(line: str) -> Invocation:
    """Read a line that begins with a slash. Raises `UnknownCommandError`."""
    name, _, argument = line.removeprefix("/").strip().partition(" ")
    command = BY_NAME.get(name.lower())
    if command is None:
        near = get_close_matches(name.lower(), BY_NAME, n=1, cutoff=0.4)
        rest = f"Did you mean /{near[0]}?" if near else "/help lists the commands."
        raise UnknownCommandError(
            f"There is no command /{name}. {rest} To send a text that begins with a slash, put a space before it."
        )
    argument = argument.strip()
    if command.needs_argument and not argument:
        raise UnknownCommandError(f"/{command.name} needs an argument: {command.usage}. {command.help}.")
    if argument and not command.argument:
        raise UnknownCommandError(f"/{command.name} takes no argument. {command.help}.")
    return Invocation(command, argument)


class Dispatcher:
    """Carries out commands for a host. `say` and `warn` get what they answer; `background` what takes its time."""

    def __init__(
        self,
        host: Any,
        say: Callable[[str], object],
        warn: Callable[[str], object],
        background: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        """`host` has what its commands need: a recording none of a session, lines none of a screen."""
        self._host = host
        self._say, self._warn, self._background = say, warn, background

    def run(self, name: str, argument: str = "") -> None:
        """Do what the command of this name does: now, or as soon as what it needs is open."""
        command, host = BY_NAME[name], self._host
        if command.screen and not host.on_screen:
            self._warn(f"/{name} is for the screen; /help lists what there is in lines.")
        elif command.early or host.shown.opened:
            self.carry_out(partial(command.do, host, argument))
        else:
            host.when_open(partial(self.run, name, argument))

    def run_line(self, line: str) -> None:
        """Carry out a line that begins with a slash; one that names no command of ours may name another agent's, or one
        from a file."""
        try:
            command, argument = parse(line)
        except UnknownCommandError as error:
            custom = partial(_send_other, self._host, line, str(error))
            self._host.when_open(partial(self.carry_out, custom))
        else:
            self.run(command.name, argument)

    def carry_out(self, do: Callable[[], Answer]) -> None:
        """Do it and say what it answers, or why it cannot be done."""
        answer = self._tried(do)
        if isinstance(answer, str):
            self._say(answer)
        elif answer is not None:
            self._background(self.finish(answer))

    def _tried(self, do: Callable[[], Answer]) -> Answer | None:
        from tui_agent.store.errors import SessionError

        try:
            return do()
        except (ValueError, SessionError, OSError) as error:
            self._warn(str(error))
            return None

    async def finish(self, answer: Awaitable[str]) -> None:
        """Say what is answered in the end."""
        from tui_agent.store.errors import SessionError

        try:
            self._say(await answer)
        except (ValueError, SessionError, OSError) as error:
            self._warn(str(error))

    def values_of(self, command: AnyCommand) -> Sequence[str]:
        """Give what the command's argument can be, as far as that is known now."""
        try:
            return command.choices(self._host)
        except ValueError:
            return command.values


async def _send_other(host: SessionHost, line: str, otherwise: str) -> str:
    """Send what a command of another agent or one from a file stands for; a line that names none goes back into the
    prompt.
    """
    from tui_agent.frontend.commands.agent_commands import prompt_of
    from tui_agent.frontend.commands.custom import send_custom_command

    if prompt := prompt_of(line, host.session.state.session.offered):
        await host.submit(prompt, None, "", line)
        return ""
    try:
        return await send_custom_command(host, line, otherwise)
    except ValueError:
        host.put_in_prompt(line)
        raise
