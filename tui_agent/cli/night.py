"""`agent-tui night`: what became of supervised tasks while nobody looked."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence

from tui_agent.agents.dialects import DIALECTS
from tui_agent.agents.morning import as_html, as_markdown, as_text, reports
from tui_agent.agents.night import Task, nights
from tui_agent.agents.supervision import GO_ON
from tui_agent.cli.errors import UsageError
from tui_agent.cli.options import Parser, add_place_options, one_of, overrides
from tui_agent.config.settings import load_settings

_FORMS = {"text": as_text, "markdown": as_markdown, "html": as_html}
_EXAMPLE = """
agent-tui night
agent-tui night --form html > night.html"""


def parser() -> Parser:
    """Options of `night`."""
    made = Parser(
        "night",
        "What became of the tasks that `agent-tui supervise` ran: what was done, checks, cost, waits and resumes\n"
        "with their times, what is open, and the commands to open, resume, diff and discard.",
        _EXAMPLE,
    )
    made.add_argument("name", nargs="?", metavar="NIGHT", help="one of --list (default: the newest)")
    made.add_argument("--list", action="store_true", help="the nights that are kept")
    made.add_argument("--form", type=one_of(_FORMS), default="text", metavar="FORM", help=", ".join(_FORMS))
    add_place_options(made)
    return made


def main(arguments: Sequence[str]) -> int:
    """Print the report. Raises `UsageError`, `ConfigError`."""
    namespace = parser().parse(arguments)
    kept = nights(load_settings(overrides(namespace, "state_dir"), namespace.config).state_dir)
    if namespace.list:
        sys.stdout.writelines(f"{night.path.name}\n" for night in kept)
        return 0
    night = next((one for one in kept if namespace.name in {None, one.path.name}), None)
    if night is None:
        said = f"there is no night {namespace.name!r}" if namespace.name else "no night is kept"
        raise UsageError(
            f"agent-tui night: {said}.\nagent-tui supervise runs one; --list names those that are kept."
        )
    sys.stdout.write(_FORMS[namespace.form](f"Night {night.path.name}", reports(night, _goes_on)))
    return 0


def _goes_on(task: Task, session: str) -> str:
    dialect = DIALECTS.get(task.agent)
    if dialect is None or dialect.headless is None:
        return ""
    program = next((place for place, word in enumerate(task.command) if word.endswith(dialect.program)), 0)
    return shlex.join(dialect.headless.goes_on(task.command, program, session, GO_ON))
