"""The conversation before anything was said: the workspace, the model, and the first steps."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tui_agent import untrusted_files
from tui_agent.config.settings import Settings, is_read_only
from tui_agent.frontend.commands.registry import BY_NAME, shown_key
from tui_agent.frontend.lines.styled import Line, Span, pad
from tui_agent.quantities import age
from tui_agent.store.errors import SessionError
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from tui_agent.store.summary import SessionRow

SHOWN, SHOWN_LOW = 5, 3
"""Earlier sessions, if there are few rows."""

_TODO = (
    ("Enter", "sends a task to the agent"),
    ("/", "commands"),
    ("@", "names a file of the workspace"),
    ("!", "runs a command of your own"),
    ("step", "step by step: each request waits for you"),
    ("help", "help: keys, commands, signs, strategies"),
)
_LEFT_OUT_FIRST = ("step", "!", "@")
"""First steps, which the help has too, if there are few rows."""


class Welcome(NamedTuple):
    """The lines by subject; the drawing decides which are left out if there are few rows."""

    facts: Sequence[Line]
    todo: Sequence[tuple[str, Line]]
    """With the name by which it can be left out."""
    earlier: Sequence[Line] = ()
    """Earlier sessions, under a heading; none: no heading."""

    def lines(self, height: int) -> list[Line]:
        """At most `height` rows if that can be: with fewer sessions, then without empty rows, then with fewer
        first steps.
        """
        few, todo = self.earlier[: 1 + SHOWN_LOW], list(self.todo)
        for earlier in (self.earlier, few):
            blocks = (self.facts, [line for _, line in todo], earlier)
            airy = [line for block in blocks if block for line in ((), *block)]
            if len(airy) <= height + 1:  # the first row is empty
                return airy[-height:]
        for name in _LEFT_OUT_FIRST:
            if len(self.facts) + len(todo) + len(few) > height:
                todo = [one for one in todo if one[0] != name]
        return [*self.facts, *(line for _, line in todo), *few]


def welcome(
    settings: Settings, sessions: Sequence[SessionRow], now: Callable[[], float] = time.time
) -> Welcome:
    """The lines; `sessions` are the newest of this workspace. Reads the name of the branch and the right to
    write.
    """
    branch = branch_of(settings.workspace)
    on_branch = f"  on {branch}" if branch else ""
    read_only = ", read-only: edits would fail" if is_read_only(settings.workspace) else ""
    facts = [
        ("workspace", f"{settings.workspace}{on_branch}{read_only}"),
        ("model", settings.model or "none chosen"),
        ("approvals", settings.approve.words),
        ("policy", str(settings.policy)),
    ]
    heading: Line = (Span(" Earlier here · /sessions opens one", "muted"),)
    return Welcome(
        [_row(label, text) for label, text in facts],
        [(key, _row(shown_key(key) if key in BY_NAME else key, text, "accent bold")) for key, text in _TODO],
        [heading, *(_session(row, now()) for row in sessions[:SHOWN])] if sessions else (),
    )


def welcome_now(settings: Settings) -> Welcome:
    """As it stands. Reads the list of sessions, whose database is imported here: in the thread that reads it."""
    from tui_agent.store.session_store import SessionStore

    rows: list[SessionRow] = []
    with suppress(SessionError):
        rows = SessionStore(settings.state_dir).rows(settings.workspace)
    return welcome(settings, [row for row in rows if row.runs and not row.problem])


def _row(label: str, text: str, style: str = "muted") -> Line:
    return (Span(f" {pad(label, 12)}", style), Span(one_line(text, 300)))


def _session(row: SessionRow, now: float) -> Line:
    recovered = f", {row.recoveries} of {row.failures} recovered" if row.failures else ""
    when = Span(f" {pad(age(now - row.ended_at), 12)}", "muted")
    return (when, Span(one_line(row.title, 60)), Span(f"  {row.outcome_in_words}{recovered}", "muted"))


def branch_of(workspace: Path) -> str:
    """The branch that is checked out, read from the repository's own file; empty if there is none."""
    for folder in (workspace, *workspace.parents):
        git = folder / ".git"
        try:
            text = untrusted_files.head(git / "HEAD", 300, git).decode("utf-8", "replace").strip()
        except OSError:
            continue
        name = text.removeprefix("ref: refs/heads/")
        return one_line(name if name != text else text[:10], 60)
    return ""
