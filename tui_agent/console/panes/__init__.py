"""The panes: widgets that draw one part of the state each, given it by `show(state, now)`."""

from tui_agent.console.looks.pane_facts import PaneFacts
from tui_agent.console.panes.attempts import AttemptsPane
from tui_agent.console.panes.confidence import ConfidencePane
from tui_agent.console.panes.conversation import ConversationPane
from tui_agent.console.panes.incident_strip import IncidentStrip
from tui_agent.console.panes.note import NotePane
from tui_agent.console.panes.pane import StatePane
from tui_agent.console.panes.plan import PlanLine
from tui_agent.console.panes.ring import RingPane
from tui_agent.console.panes.status import StatusLine
from tui_agent.console.panes.timeline import TimelinePane
from tui_agent.console.panes.trends import TrendsPane

RECOVERY_PANES: tuple[type[StatePane], ...] = (
    RingPane,
    ConfidencePane,
    AttemptsPane,
    NotePane,
    TimelinePane,
    TrendsPane,
)
"""The panes beside the conversation, from the first on: the dashboard, jump mode, the help and the commands take them
from here.
"""


def pane_facts() -> list[PaneFacts]:
    """Collect the facts of all panes, the conversation's first."""
    return [ConversationPane.facts, *(pane.facts for pane in RECOVERY_PANES)]


__all__ = [
    "RECOVERY_PANES",
    "AttemptsPane",
    "ConfidencePane",
    "ConversationPane",
    "IncidentStrip",
    "NotePane",
    "PlanLine",
    "RingPane",
    "StatusLine",
    "TimelinePane",
    "TrendsPane",
    "pane_facts",
]
