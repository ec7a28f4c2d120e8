"""The panes: widgets that draw one part of the state each, given it by `show(state, now)`."""

from tui_agent.console.panes.attempts import AttemptsPane
from tui_agent.console.panes.confidence import ConfidencePane
from tui_agent.console.panes.conversation import ConversationPane
from tui_agent.console.panes.incident_strip import IncidentStrip
from tui_agent.console.panes.note import NotePane
from tui_agent.console.panes.plan import PlanLine
from tui_agent.console.panes.ring import RingPane
from tui_agent.console.panes.status import StatusLine
from tui_agent.console.panes.timeline import TimelinePane
from tui_agent.console.panes.trends import TrendsPane

__all__ = [
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
]
