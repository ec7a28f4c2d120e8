"""The rewind screen: the points of this session, what goes back, and what exactly would change.

It changes nothing: it is dismissed with the plan that was on the screen when Enter was pressed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import BindingType

from tui_agent.console.cards.card_body import CardBody
from tui_agent.console.looks.command_keys import bindings
from tui_agent.console.looks.hints import Hint, KeyHints
from tui_agent.console.looks.option_row import Option, OptionRow
from tui_agent.console.panes.cursor_list import CursorList
from tui_agent.console.screens.framed import FramedScreen
from tui_agent.frontend.commands.host import RewindChoice
from tui_agent.frontend.lines.passages import Passage
from tui_agent.frontend.lines.rewind import preview
from tui_agent.frontend.lines.styled import Line, Span, pad
from tui_agent.quantities import time_of_day
from tui_agent.store.errors import SessionError
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from tui_agent.session.rewind import RewindPlan, RewindPoint, Scope
    from tui_agent.session.session import Session

HINTS = (
    Hint("Enter", "go back", "enter"),
    Hint("Esc", "cancel", "escape"),
    Hint("↑↓", "point", "down"),
    Hint("←→", "what", "right"),
)
SCROLLS = Hint("PgUp PgDn", "read on", "pagedown")
SCOPES = (
    Option("both", "both", "b"),
    Option("conversation", "conversation", "c"),
    Option("files", "files", "f"),
)


class RewindList(CursorList[RewindChoice]):
    """One line a choice, the newest first."""

    DEFAULT_CSS = """
    RewindList { height: auto; max-height: 40%; min-height: 1; }
    """

    def get_content_height(self, *_: object) -> int:
        return len(self.rows)

    def draw_row(self, row: RewindChoice, width: int, *, current: bool) -> Line:
        only = " conversation only" if row.point is not None and not row.point.ref and width >= 48 else ""
        when = pad(time_of_day(row.at), 12)
        label = pad(one_line(row.label), max(4, width - len(when) - len(only)))
        style = f"{'bold' if current else ''}{' accent' if row.point is None else ''}"
        return (Span(when, "muted"), Span(label, style), Span(only, "muted"))


class Preview(CardBody):
    """Changes of the chosen rewind."""

    DEFAULT_CSS = """
    Preview { height: 1fr; max-height: 100%; min-height: 1; margin-top: 1; }
    """

    def put(self, passages: Iterable[Passage]) -> None:
        """Show this, from its beginning."""
        self.rewrite(passages)
        self.redraw()
        self.scroll_home(animate=False)


class RewindScreen(FramedScreen["RewindPlan | None"]):
    """Dismissed with what is to be done, or None."""

    DEFAULT_CSS = """
    RewindScreen {
        & > Vertical { width: 110; height: 36; background: $background; }
        & OptionRow { margin-top: 1; }
        &.-low OptionRow, &.-low Preview { margin-top: 0; }
        &.-low RewindList { max-height: 3; }
        &.-low > Vertical { max-height: 100%; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings("rewind")

    low = 20

    def __init__(self, session: Session, choices: Sequence[RewindChoice]) -> None:
        """The newest point is chosen at first, and not the rewind that can be taken back, which stands before it."""
        again = all(choice.point is None for choice in choices)
        super().__init__("Take the rewind back" if again else "Go back")
        self._hints = (HINTS[0]._replace(word="take it back"), *HINTS[1:]) if again else HINTS
        self._session = session
        self._list = RewindList(choices, int(len(choices) > 1 and choices[0].point is None))
        self._wanted: Scope = "both"
        self._scopes = OptionRow(SCOPES, "both")
        self._scopes.can_focus = False
        self._preview = Preview([Passage("Looking …", "muted")])
        self._planned: RewindPlan | None = None
        self._looking = False
        self._again = False
        self._taking = False

    def inside(self) -> ComposeResult:
        yield self._list
        yield self._scopes
        yield self._preview
        yield KeyHints(self._hints)

    def on_mount(self) -> None:
        """Look at what the first choice would change; no notification covers it."""
        self.app.clear_notifications()
        self.call_after_refresh(self._list.follow)
        self.watch(self._preview, "show_vertical_scrollbar", self._name_keys)
        self._look()

    def _name_keys(self, scrolls: bool) -> None:
        self.query_one(KeyHints).show((*self._hints, SCROLLS) if scrolls else self._hints)

    @property
    def _point(self) -> RewindPoint | None:
        chosen = self._list.chosen
        return None if chosen is None else chosen.point

    @property
    def scope(self) -> Scope:
        """The parts that go back: the chosen ones, as far as the point has them."""
        point = self._point
        if point is None:
            rewound = self._session.state.rewound
            return self._wanted if rewound is None else rewound.scope
        return self._wanted if point.ref else "conversation"

    # --- looking --------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """Plan what is chosen now; a plan that is being made is finished first, and not shown."""
        self._planned = None
        point, scope = self._point, self.scope
        able = {"conversation", "files", "both"} if point is not None and point.ref else {scope}
        self._scopes.put(scope, frozenset(option.value for option in SCOPES) - able)
        if self._looking:
            self._again = True
            return
        self._looking = True
        self.run_worker(self._keep_looking(), group="look")

    async def _keep_looking(self) -> None:
        if self.scope != "conversation":
            self._preview.put([Passage("Looking at the files …", "muted")])
        try:
            while True:
                self._again = False
                plan, passages = await self._plan()
                if not self._again:
                    break
        finally:
            self._looking = False
        self._planned = plan
        self._preview.put(passages)

    async def _plan(self) -> tuple[RewindPlan | None, list[Passage]]:
        point = self._point
        try:
            if point is None:
                plan = await self._session.rewinding.plan_undo()
            else:
                plan = await self._session.rewinding.plan(point, self.scope)
        except SessionError as error:
            return None, [
                Passage(f"{error.what}: {error.why}.", "error"),
                Passage(error.todo),
            ]
        return plan, list(preview(plan, self._session.state.session.workspace))

    # --- keys and mouse -------------------------------------------------------------------------------------

    def action_move(self, step: int) -> None:
        self._list.move(step)

    def on_cursor_list_moved(self, _: CursorList.Moved) -> None:
        """Plan the rewind to the new choice."""
        self._look()

    def action_turn(self, step: int) -> None:
        self._scopes.move(step)

    def action_scope(self, scope: str) -> None:
        """Conversation, files or both."""
        if self._point is None:
            return
        self._wanted = cast("Scope", scope)
        if self.scope != scope:
            self.notify("No files were kept at this point.", severity="warning", markup=False)
        self._look()

    def on_option_row_changed(self, event: OptionRow.Changed) -> None:
        """A scope was chosen by arrow or mouse."""
        self._wanted = cast("Scope", event.value)
        self._look()

    def action_read(self, pages: int) -> None:
        """Scroll a long preview."""
        if pages < 0:
            self._preview.scroll_page_up(animate=False)
        else:
            self._preview.scroll_page_down(animate=False)

    def action_confirm(self) -> None:
        """Dismiss the screen with the plan that is shown, if it is still true."""
        if self._looking or self._taking or self._planned is None:
            return
        if not (self._planned.entries or self._planned.groups or self._planned.files):
            self.notify("Nothing would change here: choose another point.", markup=False)
            return
        self._taking = True
        self.run_worker(self._take(self._planned), group="take")

    async def _take(self, shown: RewindPlan) -> None:
        try:
            plan, passages = await self._plan()
        finally:
            self._taking = False
        if self._planned is not shown:
            return
        if plan is not None and (plan.entries, plan.groups, plan.files) == (
            shown.entries,
            shown.groups,
            shown.files,
        ):
            self.dismiss(plan)
            return
        self._planned = plan
        self._preview.put(passages)
        self.notify(
            "It would change something else by now: look again, Enter does it.",
            severity="warning",
            markup=False,
        )
