"""`/rewind`, `/undo` and `/redo`: what can go back, and what is said once it did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tui_agent.frontend.commands.command import Command

if TYPE_CHECKING:
    from tui_agent.frontend.commands.host import RewindChoice, SessionHost
    from tui_agent.session.rewind import RewindPlan


class Rewind(Command["SessionHost"]):
    name = "rewind"
    help = "Go back: conversation, files or both; shows what would change. `undo` takes the newest one back"
    argument = "[undo]"
    values = ("undo",)

    async def do(self, host: SessionHost, argument: str) -> str:
        """Go back to an earlier point; `undo`: take the newest rewind back."""
        from tui_agent.frontend.commands.host import RewindChoice
        from tui_agent.store.errors import SessionError

        session = host.session
        if argument not in {"", "undo"}:
            raise ValueError("Write /rewind, or /rewind undo.")
        if session.state.running:
            raise SessionError("Nothing can be rewound now", "a run goes on", "Stop it first with /stop.")
        choices = [RewindChoice(point, point.label, point.at) for point in session.rewinding.points()]
        newest = session.state.rewound
        taken_back = (
            [] if newest is None else [RewindChoice(None, "undo: take the newest rewind back", newest.at)]
        )
        if not (choices or taken_back):
            raise SessionError(
                "There is nothing to go back to", "nothing was done yet", "Give the agent a task first."
            )
        if argument and not taken_back:
            raise SessionError(
                "There is no rewind to take back",
                "none was made since the last run",
                "/rewind shows where this session can go back to.",
            )
        return await _go_back(host, taken_back if argument else [*taken_back, *choices])


class Undo(Command["SessionHost"]):
    name = "undo"
    help = "Take back what your last message led to: conversation and files; shows what would change"

    async def do(self, host: SessionHost, argument: str) -> str:
        """Take back what the last message led to, once it was shown; the message goes back into the prompt."""
        from tui_agent.frontend.commands.host import Confirmation, RewindChoice

        session = host.session
        if session.running:
            what = (
                "It has to end before what it did can be taken back. What /undo would change is shown next."
            )
            end, leave = ("e", "end it"), ("g", "let it go on")
            question = Confirmation("A run is under way", what, end, leave, lambda: not session.running)
            if not await host.confirm(question):
                return ""
            await session.stop()
        point = next((point for point in session.rewinding.points() if point.text), None)
        if point is None:
            return "There is no message to take back."
        done = await _go_back(host, [RewindChoice(point, point.label, point.at)])
        if done:
            host.put_in_prompt(point.text, restored=True)
        return done


class Redo(Command["SessionHost"]):
    name = "redo"
    help = "Take the newest /undo or /rewind back"

    async def do(self, host: SessionHost, argument: str) -> str:
        return await Rewind().do(host, "undo")


async def _go_back(host: SessionHost, choices: Sequence[RewindChoice]) -> str:
    plan = await host.choose_rewind(choices)
    if plan is None:
        return ""
    await host.session.rewinding.carry_out(plan)
    return rewound(plan)


def rewound(plan: RewindPlan) -> str:
    """Say in a sentence what was done, and how it is taken back."""
    from tui_agent.quantities import counted
    from tui_agent.terminal_text import one_line

    parts = []
    if plan.scope != "files":
        parts.append(
            f"{counted(plan.entries, 'block')} of the conversation {'are back' if plan.undoes else 'left out'}"
        )
    if plan.scope != "conversation":
        parts.append(f"{counted(len(plan.files), 'file')} brought back")
    if plan.undoes:
        return f"The rewind was taken back: {', '.join(parts)}."
    return f"Rewound to “{one_line(plan.point.label, 60)}”: {', '.join(parts)}. /redo takes it back."
