"""The text of rewinding: the points to go back to, what a rewind would change, what it has changed. No widget here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tui_agent.frontend.lines.passages import GAP, Passage
from tui_agent.quantities import counted
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from tui_agent.session.rewind import RewindPlan, RewindPoint
    from tui_agent.session.session import Session

MARKS = {"create": ("+", "diff-add"), "change": ("~", "warn"), "delete": ("-", "diff-remove")}


class RewindChoice(NamedTuple):
    """A line of the list: a point to go back to, or (None) the newest rewind to take back."""

    point: RewindPoint | None
    label: str
    at: float


def choices_of(session: Session) -> list[RewindChoice]:
    """The lines of the list; the newest rewind comes first, as long as it can be taken back.

    Raises `SessionError` during a run, and where there is nothing to go back to.
    """
    from tui_agent.store.errors import SessionError

    state = session.state
    if state.running:
        raise SessionError("Nothing can be rewound now", "a run goes on", "Stop it first with /stop.")
    choices = [RewindChoice(point, point.label, point.at) for point in session.rewind_points()]
    if state.rewound is not None:
        choices.insert(0, RewindChoice(None, "undo: take the newest rewind back", state.rewound.at))
    if not choices:
        raise SessionError(
            "There is nothing to go back to", "nothing was done yet", "Give the agent a task first."
        )
    return choices


def first_choice(choices: Sequence[RewindChoice], *, undo: bool) -> int:
    """Index of the first choice: the undo where that is asked for, else the newest point.

    Raises `SessionError` where no rewind can be taken back.
    """
    from tui_agent.store.errors import SessionError

    undoable = choices[0].point is None
    if undo and not undoable:
        raise SessionError(
            "There is no rewind to take back",
            "none was made since the last run",
            "/rewind shows where this session can go back to.",
        )
    return 0 if undo or len(choices) == 1 else int(undoable)


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
