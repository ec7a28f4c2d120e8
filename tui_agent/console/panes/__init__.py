"""The panes: widgets that draw one part of the state each, given it by `show(state, now)`."""

from tui_agent.console.panes.attempts import AttemptsPane
from tui_agent.console.panes.confidence import ConfidencePane
from tui_agent.console.panes.conversation import ConversationPane
from tui_agent.console.panes.note import NotePane
from tui_agent.console.panes.plan import PlanLine
from tui_agent.console.panes.ring import RingPane
from tui_agent.console.panes.status import StatusLine
from tui_agent.console.panes.summary import RecoverySummary
from tui_agent.console.panes.timeline import TimelinePane

__all__ = [
    "AttemptsPane",
    "ConfidencePane",
    "ConversationPane",
    "NotePane",
    "PlanLine",
    "RecoverySummary",
    "RingPane",
    "StatusLine",
    "TimelinePane",
]
