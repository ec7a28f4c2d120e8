"""The looks of a screen, for commands: colours, panes, density, and finding a text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tui_agent.console import panes
from tui_agent.console.panes.dashboard import PaneForm, form_named
from tui_agent.console.panes.density import Density
from tui_agent.console.panes.pane_sizes import NARROWEST, WIDEST, PaneSizes, share_of
from tui_agent.core.evolve import evolve

if TYPE_CHECKING:
    from tui_agent.config.settings import Settings
    from tui_agent.console.screens.dashboard_screen import DashboardScreen
    from tui_agent.console.tabs.session_app import SessionApp


class ScreenPanes:
    """The panes of a screen (`PaneHost`)."""

    @property
    def places(self) -> Sequence[str]:
        """Names that `jump` takes."""
        return (*(facts.name for facts in panes.pane_facts()), "prompt")

    def __init__(self, screen: DashboardScreen, settings: Callable[[], Settings]) -> None:
        """`settings` raises `ValueError` as long as there are none."""
        self._screen = screen
        self._settings = settings
        self._sought = ""
        """The text that was found last."""

    @property
    def _app(self) -> SessionApp:
        return self._screen.app

    @property
    def themes(self) -> Sequence[str]:
        return self._app.theme_names

    def wear(self, theme: str) -> None:
        """Change the colours; with no theme, look at all of them."""
        if not theme:
            from tui_agent.console.screens.theme_gallery import ThemeGallery

            self._app.push_screen(ThemeGallery(self._app.user_file(self._settings())), mode=self._screen.id)
        elif theme in self.themes:
            self._app.theme = theme
        else:
            raise ValueError(f"There is no theme {theme}. There are {', '.join(self.themes)}.")

    def shape(self, form: str) -> str:
        """Show the recovery panes in this form or the next one; the focus never stays in what is hidden."""
        dashboard = self._screen.dashboard
        if dashboard is None:
            return ""
        if form == "reset" or share_of(form) is not None:
            sizes = dashboard.sizes
            dashboard.use_sizes(PaneSizes() if form == "reset" else evolve(sizes, share=share_of(form)))
            form = PaneForm.AUTO if form == "reset" else PaneForm.WIDE
        wanted = form_named(form) if form else dashboard.next_form()
        if wanted is None:
            said = f"a share of the width from {NARROWEST}% to {WIDEST}%"
            raise ValueError(f"There is no form {form}. There are {', '.join(PaneForm)}, {said}, and reset.")
        dashboard.choose(wanted)
        self._app.remember(panes=str(dashboard.chosen), panes_before=str(dashboard.before))
        self._screen.redraw()
        self._screen.call_after_refresh(self._screen.refocus)
        covered = dashboard.asking and dashboard.chosen is PaneForm.FULL
        return "The panes are shown once the question is answered." if covered else ""

    def densify(self, density: str) -> str:
        """Draw the conversation so densely, in all tabs, or in the next density."""
        if self._screen.dashboard is None:
            return ""
        densities = list(Density)
        if density and density not in densities:
            raise ValueError(f"There is no view {density}. There are {', '.join(densities)}.")
        here = densities.index(self._screen.dashboard.density)
        chosen = Density(density) if density else densities[(here + 1) % len(densities)]
        for tab in self._app.tabs:
            tab.use_density(chosen)
        self._app.remember(view=str(chosen))
        return f"The conversation is shown in the {chosen} view."

    def next_pane(self) -> None:
        """Go to the recovery pane after the one that has the focus, round and round."""
        focused = self._screen.focused
        here = focused.id if focused is not None else None
        names = [pane.facts.name for pane in panes.RECOVERY_PANES]
        place = names.index(here) + 1 if here in names else 0
        self._screen.focus_pane(names[place % len(names)])

    async def jump(self, place: str) -> None:
        """Go to a place by its name, or choose one by its letter."""
        if not place:
            from tui_agent.console.screens.jump import JumpScreen, targets_of

            chosen = await self._screen.ask(JumpScreen(targets_of(self._screen)))
            if chosen is None:
                return
            place = chosen
        elif place not in self.places:
            raise ValueError(f"There is no pane {place}. There are {', '.join(self.places)}.")
        self._screen.focus_pane(place)

    def go_to_card(self) -> None:
        """Go to the card that waits."""
        self._screen.go_to_card()

    async def find(self, text: str) -> None:
        """Find a text in the conversation, and go to its place."""
        from tui_agent.console.screens.find import FindScreen

        conversation = self._screen.conversation
        if conversation is None:
            return
        said = *conversation.entries, *conversation.unclosed
        chosen = await self._screen.ask(FindScreen(said, text or self._sought))
        if chosen is not None:
            seq, self._sought = chosen
            self._screen.show_event(seq, [self._sought])
            self._screen.focus_pane("conversation")
