"""A command of the operator's own (`!COMMAND`), beside the run; what it printed last stands above the prompt."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING

from textual.content import Content
from textual.widgets import Static

from tui_agent.console.looks.hints import key_line
from tui_agent.frontend.commands.registry import shown_key
from tui_agent.frontend.lines.glyphs import spinner
from tui_agent.quantities import whole_seconds
from tui_agent.terminal_text import revealed_line, sanitize

if TYPE_CHECKING:
    from tui_agent.session.own_run import OwnRun
    from tui_agent.session.session import Session

SHOWN = 5
"""Lines of its output, if the conversation leaves no room for more."""


class OwnCommand:
    """The one command of the operator's own that can run. `changed` is called when one begins or ends."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self.run: OwnRun | None = None
        """The one that runs."""
        self._changed = changed

    async def carry_out(self, command: str, session: Session) -> None:
        """Run it; what it printed goes to the model with the next message."""
        from tui_agent.session.own_run import OwnRun  # not before the prompt is there

        self.run = OwnRun(command, session)
        self._changed()
        try:
            await self.run.finish()
        finally:
            self.run = None
            self._changed()


class OwnOutput(Static):
    """The command, for how long it runs, and the last lines of its output; nothing while none runs."""

    DEFAULT_CSS = """
    OwnOutput { display: none; height: auto; padding: 0 1; background: $panel; }
    OwnOutput.-running { display: block; }
    """

    def __init__(self) -> None:
        super().__init__("", markup=False, id="own-output")

    def show(self, run: OwnRun | None, room: int = 0) -> None:
        """Show it, with `room` rows more than it has now."""
        self.set_class(run is not None, "-running")
        if run is None:
            return
        turning = None if self.app.animation_level == "none" else monotonic()
        most = max(SHOWN, self.size.height - 1 + room)
        lines = [line for line in sanitize(run.printed).split("\n") if line.strip()][-most:]
        width = max(1, self.content_region.width or self.app.size.width - 2)
        sign, since = f"{spinner(turning)} $ ", f"  {whole_seconds(monotonic() - run.began)}"
        interrupt = Content("  ") + key_line((shown_key("interrupt"), "interrupt"))
        command = revealed_line(run.command, max(8, width - len(sign + since) - interrupt.cell_length - 1))
        self.update(
            Content("\n").join(
                [
                    Content.assemble((f"{sign}{command}{since}", "$text-accent"), interrupt),
                    *(Content(line).truncate(width, ellipsis=True) for line in lines),
                ]
            )
        )
