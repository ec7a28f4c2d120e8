"""How to go on with what was open, said on the normal screen after the console was left."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from tui_agent.frontend.arguments import ConsoleArguments
    from tui_agent.frontend.startup import Opened

KEPT_OPTIONS = ("state_dir", "model", "profile", "api_base")
"""Options of this start without which the session would not be found, or would have no model."""


def resume_text(closed: Iterable[tuple[Opened, ConsoleArguments]]) -> str:
    """A command on a line of its own for each session in which something was said, below its title and how its run
    stands; empty for none.
    """
    lines = []
    for opened, arguments in closed:
        state = opened.session.state
        if not state.run.number:
            continue
        outcome = "open" if state.run.outcome is None else state.run.outcome.in_words
        title = one_line(state.session.title or state.run.task, 60)
        lines.append(f"  {title} · {outcome}\n    {resume_command(opened, arguments)}\n")
    return f"To go on:\n{''.join(lines)}" if lines else ""


def resume_command(opened: Opened, arguments: ConsoleArguments) -> str:
    """The command that opens the session again. The workspace of a demo is gone: it can only be replayed."""
    state = opened.session.state
    words = ["agent-tui", "replay" if opened.scratch else "resume", state.session.id]
    if arguments.config is not None:
        words += ["--config", str(arguments.config)]
    for name in KEPT_OPTIONS:
        given = arguments.overrides.get(name)
        # A model that was chosen in the session is kept there, and an option would outweigh it.
        if given is not None and not (name == "model" and state.session.model):
            words += [f"--{name.replace('_', '-')}", str(given)]
    return shlex.join(words)
