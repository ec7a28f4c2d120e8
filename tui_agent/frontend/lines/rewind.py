"""Changes of a rewind, in words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tui_agent.frontend.lines.passages import GAP, Passage
from tui_agent.quantities import counted

if TYPE_CHECKING:
    from tui_agent.session.rewind import RewindPlan

MARKS = {"create": ("+", "diff-add"), "change": ("~", "warn"), "delete": ("-", "diff-remove")}


def preview(plan: RewindPlan, workspace: str) -> Iterable[Passage]:
    """Say what the plan does: in words, and file by file."""
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
