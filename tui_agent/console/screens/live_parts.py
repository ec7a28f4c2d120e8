"""Parts of a live screen beside its dashboard: the session, its queue, and the prompt with its completions.

Imported only once the first frame is out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from tui_agent.console.prompt.completion import Completions
from tui_agent.console.prompt.message_queue import MessageQueue
from tui_agent.console.prompt.own_run import OwnCommand, OwnOutput
from tui_agent.console.prompt.prompt import Prompt, Taker
from tui_agent.console.prompt.queued import QueuedMessages
from tui_agent.console.prompt.suggesting import Suggesting
from tui_agent.console.tabs.live_session import LiveSession
from tui_agent.frontend.commands.registry import AnyCommand

if TYPE_CHECKING:
    from tui_agent.console.screens.dashboard_screen import DashboardScreen


class LiveParts(NamedTuple):
    """They know of each other what they are given, and nothing of the screen."""

    live: LiveSession
    queue: MessageQueue
    queued: QueuedMessages
    own_command: OwnCommand
    own_output: OwnOutput
    suggesting: Suggesting
    completions: Completions
    prompt: Prompt

    @classmethod
    def of(cls, screen: DashboardScreen, taker: Callable[[], Taker]) -> LiveParts:
        """Make them for a screen; `taker` gives what takes the texts that are sent from the prompt."""
        live = LiveSession(screen.redraw)

        def values_of(command: AnyCommand) -> Sequence[str]:
            return screen.commands.values_of(command)

        def renewed() -> None:
            completions.renew()

        suggesting = Suggesting(
            live,
            values_of,
            partial(screen.run_worker, group="suggesting"),
            renewed,
            screen.warn,
        )
        completions = Completions(suggesting)
        queue = MessageQueue(live, screen.redraw, screen.say)
        return cls(
            live,
            queue,
            QueuedMessages(),
            OwnCommand(screen.redraw),
            OwnOutput(),
            suggesting,
            completions,
            Prompt(completions, taker, lambda: queue.waiting),
        )
