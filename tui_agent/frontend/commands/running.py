"""The commands about the run and the messages to it: how it goes on, what it is told next, what waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.core.names import Mode
from tui_agent.frontend.commands.command import Command

if TYPE_CHECKING:
    from tui_agent.frontend.commands.host import SessionHost
    from tui_agent.session.session import Session

_NEXT_TASK = {
    Mode.AUTO: "The next task goes on by itself.",
    Mode.STEP: "In the next task every request waits for you.",
    Mode.PAUSED: "The next task waits before its first request.",
}
"""The meaning of a mode while no run is under way."""


class Auto(Command["SessionHost"]):
    name = "auto"
    help = "Go on by itself"
    key = "f5"

    def do(self, host: SessionHost, argument: str) -> str:
        return go(host, Mode.AUTO)


class Pause(Command["SessionHost"]):
    name = "pause"
    help = "Pause after this step"
    key = "f6"

    def do(self, host: SessionHost, argument: str) -> str:
        _set_mode(host, Mode.PAUSED)
        return "" if host.session.running else _NEXT_TASK[Mode.PAUSED]


class Step(Command["SessionHost"]):
    name = "step"
    help = "Run one step, then wait"
    key = "f10"

    def do(self, host: SessionHost, argument: str) -> str:
        return go(host, Mode.STEP)


class Interrupt(Command["SessionHost"]):
    name = "interrupt"
    help = "Interrupt the call or tool that runs; the run pauses, nothing is lost"
    key = "escape"

    async def do(self, host: SessionHost, argument: str) -> str:
        """Interrupt the operator's own command, else the call or tool that runs; the run pauses."""
        if host.own_run is not None:
            host.own_run.interrupt()
            return ""
        session = host.session
        if not session.running:
            return "No run is under way."
        mode = session.state.session.mode
        host.operator.interrupted_in = Mode.AUTO if mode is Mode.PAUSED else mode
        await session.interrupt()
        return ""


class SkipWait(Command["SessionHost"]):
    name = "skip-wait"
    help = "Wait no longer for a server that is away or busy: call the model again now"

    def do(self, host: SessionHost, argument: str) -> str:
        return "" if host.session.skip_wait() else "No call of the model waits."


class Stop(Command["SessionHost"]):
    name = "stop"
    help = "End the run with a partial answer"

    async def do(self, host: SessionHost, argument: str) -> str:
        """End the run; one that an earlier process left open, before it does anything."""
        if not (host.session.running or host.session.go_on()):
            return "No run is under way."
        await host.session.stop()
        return ""


class Check(Command["SessionHost"]):
    name = "check"
    help = "A command that proves each answer: while it fails, the model is told and goes on; `off`: none"
    argument = "[COMMAND|off]"

    def do(self, host: SessionHost, argument: str) -> str:
        """Have answers checked, or no more; alone, say what checks them."""
        from dataclasses import replace

        from tui_agent.session.goal import Goal

        goal = host.session.goal
        if argument == "off":
            host.session.set_goal(None)
            return "Answers are not checked any more."
        if argument:
            host.session.set_goal(Goal(argument) if goal is None else replace(goal, check=argument))
            return f"An answer is done when this ends with exit code 0: {argument}"
        return "No command checks the answers." if goal is None else f"Answers are checked by: {goal.check}"


class GoalInWords(Command["SessionHost"]):
    name = "goal"
    help = "The goal in words, for a model whose check fails; `off`: none"
    argument = "[TEXT|off]"

    def do(self, host: SessionHost, argument: str) -> str:
        """Set the goal of the check; alone, say it."""
        from dataclasses import replace

        goal = host.session.goal
        if goal is None:
            raise ValueError("Only a command can say if a goal is reached: /check COMMAND comes first.")
        if argument:
            host.session.set_goal(replace(goal, words="" if argument == "off" else argument))
            return "There is no goal in words any more." if argument == "off" else f"The goal: {argument}"
        return f"The goal: {goal.words}" if goal.words else "There is no goal in words; /goal TEXT sets one."


class Compact(Command["SessionHost"]):
    name = "compact"
    help = "Replace the older part of the conversation by a summary; with a text: what it should hold"
    argument = "[TEXT]"

    def do(self, host: SessionHost, argument: str) -> str:
        """Summarise now, or before the next call of the run."""
        return host.session.compact(argument)


class Note(Command["SessionHost"]):
    name = "note"
    help = "Edit the recovery note before it is sent; with a text: replace it; `drop`: send none"
    argument = "[TEXT|drop]"
    key = "f4"

    def do(self, host: SessionHost, argument: str) -> str:
        if argument:
            rewrite_note(host, None if argument == "drop" else argument)
            return ""
        if host.edit_note():
            return ""
        gate = host.operator.waiting_gate
        now = host.session.state.note if gate is None else gate.note
        said = f"The model reads next: {now}" if now else "No note goes with the next request."
        return f"/note TEXT replaces the note, /note drop sends none. {said}"


class Unqueue(Command["SessionHost"]):
    name = "unqueue"
    help = "Take the newest queued message back into the prompt"
    early = True

    def do(self, host: SessionHost, argument: str) -> str:
        waiting = host.queue
        if not waiting:
            return "No message is queued."
        if host.unqueue(waiting[-1].id):
            host.put_in_prompt(waiting[-1].text, restored=True)
        return ""


class Queue(Command["SessionHost"]):
    name = "queue"
    help = "Messages that wait: edit, drop, or send now (Up in an empty prompt)"
    early = True

    async def do(self, host: SessionHost, argument: str) -> str:
        if not host.queue:
            return "No message is queued."
        await host.show_queue()
        return ""


class Image(Command["SessionHost"]):
    name = "image"
    help = "Put the image that is in the clipboard into the message"

    async def do(self, host: SessionHost, argument: str) -> str:
        """Keep the image with the session, and name its file in the prompt."""
        import asyncio
        import shlex

        from tui_agent.disk import replace_whole
        from tui_agent.frontend.clipboard import image
        from tui_agent.store.private import make_private

        found = await image()
        if found is None:
            raise ValueError(
                "No image was found in the clipboard: wl-paste (Wayland), xclip (X11) or pngpaste (macOS) reads it, on "
                "the machine that agent-tui runs on. A file's path in the message does as well."
            )
        data, ending = found
        folder = host.session.folder / "clipboard"
        make_private(folder)
        file = folder / f"image-{sum(1 for _ in folder.iterdir()) + 1}{ending}"
        await asyncio.to_thread(replace_whole, file, data)
        host.put_in_prompt(f"{shlex.quote(str(file))} ")
        return ""


def go(host: SessionHost, mode: Mode) -> str:
    """Go on in this mode: with the request that waits, the run that was left open, or the message that waits."""
    host.keep_note()
    _set_mode(host, mode)
    session = host.session
    if host.operator.open_gate() or session.running:
        return ""
    if session.go_on():
        return "Going on with the run that was open."
    return "Sending the message that waits." if session.runs.send_waiting() else _NEXT_TASK[mode]


def _set_mode(host: SessionHost, mode: Mode) -> None:
    host.operator.interrupted_in = None
    host.session.set_mode(mode)


def rewrite_note(host: SessionHost, note: str | None) -> None:
    """Send this note with the next call, or none; the request that waits shows it at once."""
    host.operator.rewrite_note(note)
    host.session.edit_note(note)


async def with_servers(session: Session, text: str) -> str:
    """Give the message that a text makes, with what it names of MCP servers: a prompt of theirs, or resources.

    Raises `ValueError`.
    """
    from tui_agent.frontend.commands.server_entries import expanded, names_a_server
    from tui_agent.tools.errors import ToolError

    servers = session.mcp.servers
    if servers is None or not names_a_server(text, servers.rows()):
        return text
    try:
        return await expanded(text, servers)
    except ToolError as error:
        raise ValueError(str(error)) from error


async def submit(host: SessionHost, text: str, typed: str, model: str = "") -> None:
    """Start a run with the message, or queue it; the run that was interrupted to say it goes on. Raises `SessionError`.

    `typed`: what the operator wrote of it, which may name images. `model`: that of this run alone.
    """
    await host.session.submit(text, typed, model)
    if host.operator.interrupted_in is not None and host.session.running:
        go(host, host.operator.interrupted_in)


async def send_now(host: SessionHost) -> str:
    """Cut short what runs, and go on with the messages that wait."""
    mode = host.session.state.session.mode
    if host.operator.waiting_gate is None:
        await host.session.interrupt()
    return go(host, Mode.AUTO if mode is Mode.PAUSED else mode)
