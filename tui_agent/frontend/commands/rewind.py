"""`/rewind`, `/undo` and `/redo`, and their words: what a rewind would change, and what it has changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tui_agent.frontend.commands.view import Confirmation, LiveView, RewindChoice
from tui_agent.frontend.lines.passages import GAP, Passage
from tui_agent.quantities import counted
from tui_agent.store.errors import SessionError
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from tui_agent.session.rewind import RewindPlan

MARKS = {"create": ("+", "diff-add"), "change": ("~", "warn"), "delete": ("-", "diff-remove")}


async def rewind(view: LiveView, argument: str) -> str:
    """Go back to an earlier point; `undo`: take the newest rewind back. Raises `SessionError` where nothing can be."""
    session = view.session
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
    return await _go_back(view, taken_back if argument else [*taken_back, *choices])


async def undo(view: LiveView, _: str) -> str:
    """Take back what the last message led to, once it was shown; the message goes back into the prompt."""
    session = view.session
    if session.running:
        what = "It has to end before what it did can be taken back. What /undo would change is shown next."
        end, leave = ("e", "end it"), ("g", "let it go on")
        question = Confirmation("A run is under way", what, end, leave, lambda: not session.running)
        if not await view.confirm(question):
            return ""
        await session.stop()
    point = next((point for point in session.rewinding.points() if point.text), None)
    if point is None:
        return "There is no message to take back."
    done = await _go_back(view, [RewindChoice(point, point.label, point.at)])
    if done:
        view.put_in_prompt(point.text, restored=True)
    return done


async def redo(view: LiveView, _: str) -> str:
    return await rewind(view, "undo")


async def _go_back(view: LiveView, choices: Sequence[RewindChoice]) -> str:
    plan = await view.choose_rewind(choices)
    if plan is None:
        return ""
    await view.session.rewinding.carry_out(plan)
    return rewound(plan)


def preview(plan: RewindPlan, workspace: str) -> Iterable[Passage]:
    """What the plan does, in words and as a list of files."""
    happens = "come back" if plan.undoes else "are left out"
    yield Passage("Conversation", "bold")
    if plan.scope == "files":
        yield Passage("stays as it is.", "muted", indent=2)
    elif not plan.entries and not plan.groups:
        yield Passage("nothing comes after this point.", "muted", indent=2)
    else:
        model = (
            f"; the model {'sees them again' if plan.undoes else 'no longer sees them'}"
            if plan.groups
            else ""
        )
        yield Passage(f"{counted(plan.entries, 'block')} {happens}{model}.", indent=2)
    yield GAP
    yield Passage("Files", "bold")
    if plan.scope == "conversation":
        yield Passage("stay as they are.", "muted", indent=2)
    elif not plan.files:
        yield Passage(f"{workspace} is as it was then.", "muted", indent=2)
    else:
        yield Passage(f"{counted(len(plan.files), 'file')} of {workspace}:", indent=2)
        for change in plan.files:
            mark, role = MARKS[change.action]
            # A line feed in a name must not look like another file.
            path = change.path.replace("\n", "␊")
            later = "  (changed after the last step)" if change.path in plan.changed_since else ""
            yield Passage(f"{mark} {change.action:<6}  {path}{later}", role, verbatim=True, indent=2)
    yield GAP
    if not plan.undoes:
        yield Passage("Nothing is lost: /redo takes it back until the next run begins.", "muted")


def rewound(plan: RewindPlan) -> str:
    """What was done, in a sentence, and how it is taken back."""
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
