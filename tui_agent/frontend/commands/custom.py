"""Commands of the operator's own and of the checkout: Markdown files whose text is sent as a message.

A command is text and nothing else: none runs anything by itself, even if its text looks like a command line.
Those of a checkout were written by the authors of the repository, and are sent only after the operator has
read and agreed.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.config.layers import unsafe_value
from tui_agent.config.settings import user_config_file
from tui_agent.frontend.commands.command import Completion
from tui_agent.frontend.commands.host import Confirmation, SessionHost
from tui_agent.frontend.commands.registry import BY_NAME
from tui_agent.models.choose import NameCheck
from tui_agent.store.trust_file import TrustFile
from tui_agent.terminal_text import escaped_line, one_line, reveal, sanitize_paste
from tui_agent.tools.errors import ToolError
from tui_agent.tools.skills import SkillError, split_front_matter
from tui_agent.tools.workspace import Workspace

if TYPE_CHECKING:
    from tui_agent.session.session import Session

CHECKOUT_FOLDER = ".agent-tui/commands"
PERSONAL_FOLDER = "commands"
"""Beside the user's configuration."""

COMMAND_TRUST_FILE = "command-trust.json"
"""Which commands of which checkout the operator agreed to send."""

_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_PLACEHOLDER = re.compile(r"\$(ARGUMENTS|[1-9])(?!\w)")
_MOST = 200
_DEEPEST = 4
_LARGEST = 100_000
"""Bytes of a file."""


@dataclass(frozen=True)
class CustomCommand:
    """One file. `name` has its folders before it, with colons: `docs:check`."""

    name: str
    body: str
    place: str
    """The path of the file, for people."""
    personal: bool
    """The operator's own, and not the checkout's."""
    description: str = ""
    argument: str = ""
    """The hint at what follows the name."""
    model: str = ""
    """Reads the message, in a run of its own; empty: the session's model."""

    @property
    def digest(self) -> str:
        """Of what is sent, and to which model."""
        sent = "\0".join([self.name, self.body, *([self.model] if self.model else [])])
        return hashlib.sha256(sent.encode()).hexdigest()

    @property
    def to_model(self) -> str:
        """The words that follow "it would send this text"; empty for the session's model."""
        return f" to the model {self.model}, for this run alone" if self.model else ""

    @property
    def origin(self) -> str:
        return "yours" if self.personal else "of this checkout"

    async def check_model(self, session: Session) -> NameCheck:
        """Check if its model can be called; `message` names an oddity, in words for the operator."""
        check = await session.models.check(self.model) if self.model else NameCheck()
        if not check.message:
            return check
        ending = "" if check.usable else " Nothing was sent."
        return check._replace(message=f"The model of /{self.name}: {one_line(check.message, 400)}{ending}")

    async def agreed_to(self, session: Session) -> bool:
        """True if it is the operator's own, or if its present text was agreed to."""
        return self.personal or bool(await asyncio.to_thread(_answers(session).answer, self.digest))

    async def agree(self, session: Session) -> None:
        """Keep that the operator agreed to its text."""
        about = {"command": self.name, "place": self.place}
        await asyncio.to_thread(_answers(session).keep, self.digest, about, True)

    @property
    def takes_arguments(self) -> bool:
        return bool(self.argument or _PLACEHOLDER.search(self.body))

    def expanded(self, arguments: str) -> str:
        """The message: `$ARGUMENTS` is all that was typed, `$1` to `$9` its words (quotes hold words together).

        Arguments for which the text has no place stand behind it.
        """
        if arguments and not _PLACEHOLDER.search(self.body):
            return f"{self.body}\n\n{arguments}"
        words = _words(arguments)

        def value(found: re.Match[str]) -> str:
            if found[1] == "ARGUMENTS":
                return arguments
            place = int(found[1])
            return words[place - 1] if place <= len(words) else ""

        return _PLACEHOLDER.sub(value, self.body)


def _answers(session: Session) -> TrustFile:
    return TrustFile(session.settings.state_dir / COMMAND_TRUST_FILE, Path(session.state.session.workspace))


@dataclass(frozen=True)
class CustomCommands:
    """The commands that were found, by name; and files that hold no command, with the reason."""

    commands: tuple[CustomCommand, ...] = ()
    bad: tuple[tuple[str, str], ...] = ()

    def named(self, line: str) -> tuple[CustomCommand, str] | None:
        """The command that a line `/NAME ARGUMENTS` asks for, and the arguments."""
        name, _, rest = line.removeprefix("/").lstrip().partition(" ")
        name, _, more = name.partition("\n")
        found = next((command for command in self.commands if command.name.lower() == name.lower()), None)
        return None if found is None else (found, f"{more}\n{rest}".strip() if more else rest.strip())

    def suggestions(self, typed: str) -> list[Completion]:
        """Commands whose names fit what is typed after the slash."""
        wanted = typed.removeprefix("/").lower()
        fitting = [command for command in self.commands if wanted in command.name.lower()]
        fitting.sort(key=lambda command: not command.name.lower().startswith(wanted))
        return [
            Completion(
                f"/{command.name} " if command.takes_arguments else f"/{command.name}",
                one_line(f"/{command.name} {command.argument}".rstrip(), 60),
                f"{one_line(command.description, 200)}  ({', '.join(filter(None, (command.model, command.origin)))})",
            )
            for command in fitting
        ]


def find_custom_commands(workspace: Path, config_folder: Path) -> CustomCommands:
    """All commands; of two with one name the operator's counts. Reads the disk; raises nothing."""
    found: dict[str, CustomCommand] = {}
    bad: list[tuple[str, str]] = []
    checkout = Workspace(workspace)
    roots = ((config_folder / PERSONAL_FOLDER, True), (workspace / CHECKOUT_FOLDER, False))
    for root, personal in roots:
        for file in _files(root):
            inner = file.relative_to(root).with_suffix("").parts
            place = escaped_line(str(file) if personal else f"{CHECKOUT_FOLDER}/{file.relative_to(root)}")
            try:
                # The operator's own may be links to anywhere.
                real = file.resolve() if personal else file
                command = _command(
                    Workspace(real.parent) if personal else checkout, real, inner, place, personal
                )
            except (SkillError, ToolError) as wrong:
                bad.append((place, str(wrong)))
            except OSError as fault:
                bad.append((place, fault.strerror or str(fault)))
            else:
                other = found.setdefault(command.name.lower(), command)
                if other is not command:
                    bad.append((place, f"/{command.name} is already the command in {other.place}"))
    return CustomCommands(tuple(sorted(found.values(), key=lambda command: command.name)), tuple(bad))


async def read_custom_commands(session: Session) -> CustomCommands:
    """The commands that there are now."""
    workspace = Path(session.state.session.workspace)
    return await asyncio.to_thread(find_custom_commands, workspace, user_config_file().parent)


async def send_custom_command(host: SessionHost, line: str, otherwise: str) -> str:
    """Send the text of the command that `line` names; one of the checkout is agreed to first, once for each text.

    Raises `ValueError`: `otherwise` if there is none, or the reason why its model cannot be called.
    """
    session = host.session
    found = (await read_custom_commands(session)).named(line)
    if found is None:
        raise ValueError(otherwise)
    command, arguments = found
    if not await command.agreed_to(session):
        text = (
            f"Not you but whoever wrote this repository wrote {one_line(command.place)}. It would send this text as "
            f"your message{command.to_model}, and run nothing by itself:\n\n{reveal(command.body)}"
        )
        send, leave = ("y", "send it, now and from now on"), ("n", "do not send it")
        if not await host.confirm(
            Confirmation(f"/{command.name} comes with this checkout", text, send, leave)
        ):
            host.put_in_prompt(line)
            return ""
        await command.agree(session)
    check = await command.check_model(session)
    if not check.usable:
        raise ValueError(check.message)
    if command.model:
        host.say(f"/{command.name} goes to {command.model}, for this run alone. {check.message}".rstrip())
    # What a checkout wrote names no images.
    typed = None if command.personal else arguments
    await host.submit(command.expanded(arguments), typed, command.model, line)
    return ""


def _files(root: Path) -> Iterator[Path]:
    """The Markdown files below `root`, sorted; folders that are links are not entered."""
    left = _MOST
    pending = [(root, 0)]
    while pending and left > 0:
        folder, depth = pending.pop(0)
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)[: 4 * _MOST]
        except OSError:
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if depth < _DEEPEST:
                    pending.append((folder / entry.name, depth + 1))
            elif entry.name.endswith(".md") and left > 0:
                left -= 1
                yield folder / entry.name


def _command(
    workspace: Workspace, file: Path, inner: Sequence[str], place: str, personal: bool
) -> CustomCommand:
    """Raises `SkillError` (no good as a command), `ToolError` (outside of the folder), `OSError`."""
    name = ":".join(inner)
    if not all(_PART.fullmatch(part) for part in inner):
        raise SkillError(f"the name {name[:80]!r} is not made of letters, digits, '.', '_' and '-'")
    if name.lower() in BY_NAME:
        raise SkillError(f"/{name} is a command of the console; give the file another name")
    with workspace.open(workspace.resolve(str(file))) as stream:
        data = stream.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise SkillError(f"it is longer than {_LARGEST:,} bytes")
    try:
        fields, body = split_front_matter(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise SkillError(f"it is not UTF-8 (byte {error.start})") from None
    body = sanitize_paste(body).strip()
    if not body:
        raise SkillError("it has no text to send")
    first = next(line.strip("# \t") for line in body.splitlines() if line.strip())
    model = fields.get("model", "")
    if not model.isprintable():
        raise SkillError(f"its model {one_line(model, 80)!r} cannot be the name of one")
    if not personal and (why := unsafe_value("model", model)):
        raise SkillError(f"a checkout may not choose the model {one_line(model, 80)}: {why}")
    return CustomCommand(
        name,
        body,
        place,
        personal,
        one_line(fields.get("description", "") or first, 200),
        one_line(fields.get("argument-hint", ""), 60),
        model,
    )


def _words(arguments: str) -> list[str]:
    try:
        return shlex.split(arguments)
    except ValueError:
        return arguments.split()
