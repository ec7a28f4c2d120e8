"""Words of both consoles when a session is opened and when they end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.core.names import Approval
from tui_agent.frontend.commands.registry import shown_key

if TYPE_CHECKING:
    from tui_agent.session.session import Session

HISTORY_FILE = "prompt-history.jsonl"
LISTED_RULES = 3
"""Rules that a notification names."""


def notifications_on(session: Session, *, resumed: bool) -> list[str]:
    """Lines for the operator about a session that was opened; of one that was opened again also its rules."""
    from tui_agent.terminal_text import one_line

    state, said = session.state, session.state.session
    notifications = []
    if state.running and state.run.iteration and not session.running:
        notifications.append(
            f"A run is open in this session: {shown_key('auto')} goes on with it, {shown_key('step')} does one step, "
            "/stop ends it."
        )
    if not Path(said.workspace).is_dir():
        notifications.append(
            f"The workspace {one_line(said.workspace)} does not exist any more: tools will fail. "
            "Bring it back, or start anew with --workspace DIR."
        )
    if not resumed:
        return notifications
    chosen_now = session.settings.sources["approve"].startswith("--")
    if said.approve not in {None, Approval.ASK} and not chosen_now:
        notifications.append(f"As before in this session, {said.approve.words}: /approve ask changes that.")
    if said.rules:
        rules = sorted(one_line(rule, 60) for rule in said.rules)
        more = f" and {len(rules) - LISTED_RULES} more" if len(rules) > LISTED_RULES else ""
        listed = ", ".join(rules[:LISTED_RULES])
        notifications.append(f"Allowed in this session before: {listed}{more}. /permissions takes them back.")
    return notifications
