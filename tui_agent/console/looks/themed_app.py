"""An app that changes its theme in pieces, so that keys are answered in between.

Textual's own parses all styles and applies them to all widgets in one go, and refreshes for each rule that changed
also all that the widget contains.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from textual.app import App
from textual.color import Color
from textual.widget import Widget

from tui_agent.console.looks.themes import read_themes, textuals_own, theme_folders, user_theme_folder

if TYPE_CHECKING:
    from textual.css.stylesheet import Stylesheet
    from textual.dom import DOMNode
    from textual.screen import Screen

PIECE = 0.004
"""Seconds of work, after which others have their turn."""

REST = 0.006
"""Seconds that the others have."""


class _Pace:
    """Work in pieces."""

    def __init__(self) -> None:
        self._end = time.monotonic() + PIECE

    async def keep(self) -> None:
        """Rest if the piece has taken long enough."""
        if time.monotonic() >= self._end:
            await asyncio.sleep(REST)
            self._end = time.monotonic() + PIECE


class ThemedApp(App[None]):
    """Parses the styles anew only for another theme, and applies them only to screens that do not have it yet."""

    def __init__(self) -> None:
        super().__init__()
        self.theme_names: tuple[str, ...] = ()
        self.theme_sources: dict[str, str] = {}
        """The source of a theme: `agent-tui` or `yours`; the others are Textual's own."""
        self._styled_by: WeakKeyDictionary[Screen[Any], Stylesheet] = WeakKeyDictionary()

    async def learn_themes(self) -> None:
        """Read all other themes; a file that is wrong is named and left out."""
        others = await asyncio.to_thread(lambda: list(textuals_own()))
        themes, problems = await asyncio.to_thread(lambda: read_themes(theme_folders()))
        for theme in (*others, *themes.values()):
            self.register_theme(theme)
        own = {theme.stem for theme in user_theme_folder().glob("*.toml")}
        self.theme_sources = {name: "yours" if name in own else "agent-tui" for name in themes}
        self.theme_names = (*themes, *(name for name in self.available_themes if name not in themes))
        for problem in problems:
            self.notify(problem.message, severity="warning", markup=False)

    def refresh_css(self, animate: bool = True) -> None:
        """Apply the styles: at once, or soon if they have to be parsed for another theme."""
        self.workers.cancel_group(self, "theme")
        variables = self.theme_variables
        wanted = self.get_css_variables()
        if wanted == self.stylesheet._variables:
            self._apply_styles(animate)
        else:
            self.theme_variables = variables

            async def take_up() -> Any:  # made when the worker begins: the next theme may cancel it before
                await self._take_up(wanted)

            self.run_worker(take_up, group="theme")

    def _apply_styles(self, animate: bool) -> None:
        for screen in self.screen_stack:
            if self._styled_by.get(screen) is not self.stylesheet:
                self.stylesheet.update(screen, animate=animate)
                screen.refresh(layout=True)
                self._has_styled(screen)

    def _has_styled(self, screen: Screen[Any]) -> None:
        self._styled_by[screen] = self.stylesheet
        screen._css_update_count = self._css_update_count

    async def _take_up(self, variables: dict[str, str]) -> None:
        """Style all for a theme; nothing is drawn anew before that is done."""
        pace = _Pace()
        self.stylesheet = await self._parsed(variables, pace)
        self.theme_variables = variables
        screens = list(self.screen_stack)
        styled: dict[Widget, bool] = {}
        try:
            for screen in screens:
                for node in (self, *screen.walk_children(Widget, with_self=True)):
                    moved = _style(node, self.stylesheet)
                    if isinstance(node, Widget):
                        styled[node] = moved
                    await pace.keep()
                self._has_styled(screen)
        finally:
            for widget, moved in styled.items():
                widget.refresh(layout=moved)

    async def _parsed(self, variables: dict[str, str], pace: _Pace) -> Stylesheet:
        """The style sheet with these variables."""
        sheet = self.stylesheet.copy()
        sheet.set_variables(variables)
        sheet._parse_cache.grow(2 * len(sheet.source))
        for place, source in list(sheet.source.items()):
            sheet._parse_rules(source.content, place, source.is_defaults, source.tie_breaker, source.scope)
            await pace.keep()
        sheet.source = self.stylesheet.source.copy()  # with those of widgets that were mounted meanwhile
        sheet.parse()
        return sheet


def _style(node: DOMNode, sheet: Stylesheet) -> bool:
    """Apply the styles without refreshing anything: they know no widget meanwhile, which each rule that changes would
    refresh with all that it contains. Returns whether more than colours changed.
    """
    styles = node.styles.base
    before = styles.get_rules()
    styles.node = None
    try:
        sheet.update_nodes([node])
    finally:
        styles.node = node
    return _without_colours(before) != _without_colours(styles.get_rules())


def _without_colours(rules: Mapping[str, Any]) -> dict[str, Any]:
    """The rules that are no colours; of the edge of a border, what kind of line it is."""
    return {
        name: value[0] if name.startswith(("border_", "outline_")) and isinstance(value, tuple) else value
        for name, value in rules.items()
        if not isinstance(value, Color)
    }
