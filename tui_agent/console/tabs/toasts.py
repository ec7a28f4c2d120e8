"""Places of notifications (Textual's toasts): never on a card, the prompt or the keys of a screen above.

They have the rows above those; if there are few, a notification takes the whole width and no padding, and is
cut. If several do not fit, the newest are shown, each whole.
"""

from __future__ import annotations

from collections.abc import Iterable

from textual.geometry import Size
from textual.screen import ModalScreen, Screen
from textual.widget import Widget

FEW = 6
"""Rows below which notifications go without padding."""

CSS = """
ToastRack { dock: top; align: right top; margin: 0; padding: 1 0 0 0; overflow: hidden auto; scrollbar-size: 0 0; }
ToastRack.-few { padding: 0; }
ToastRack.-few Toast { width: auto; max-width: 100%; padding: 0 1; margin: 0; }
ToastRack.-one Toast { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
"""


def place(screen: Screen[object]) -> None:
    """Give the notifications on a screen the rows that are theirs now."""
    rack = _rack(screen)
    if rack is None:
        return
    if not rack.has_class("-followed") and rack.is_running:
        # A notification that comes, a card and a resize lay the screen out anew.
        rack.add_class("-followed")
        screen.screen_layout_refresh_signal.subscribe(rack, place)
    if not rack.display or not screen.size.height:
        return
    rows = _rows(screen, rack)
    rack.styles.max_height = rows
    rack.set_class(rows < FEW, "-few")
    rack.set_class(rows < 2, "-one")
    held = [holder for holder in rack.children if holder.children]
    left = rows - 1
    for holder in reversed(held):
        for toast in holder.children:
            toast.styles.max_height = rows
            left -= _height(toast, screen.size)
        holder.display = holder is held[-1] or (rows >= FEW and left >= 0)


def _height(toast: Widget, screen: Size) -> int:
    """Rows that a notification takes, shown or not, with the empty one above it: as `Toast`'s own styles say."""
    width = min(60, screen.width // 2)
    return toast.get_content_height(screen, screen, width - 3) + 3


def hide(screens: Iterable[Screen[object]]) -> None:
    """Show no notifications on these: the screen above them has them too."""
    for rack in filter(None, map(_rack, screens)):
        rack.display = False


def _rack(screen: Screen[object]) -> Widget | None:
    return next(iter(screen.query_children("ToastRack")), None)


def _rows(screen: Screen[object], rack: Widget) -> int:
    """Rows at the top that notifications may cover: of a screen above, up to its upper edge."""
    from tui_agent.console.tabs.tab import Tab  # once a notification comes

    if isinstance(screen, Tab):
        return max(1, screen.rows_for_notifications)
    if not isinstance(screen, ModalScreen):
        return screen.size.height
    tops = (
        child.region.y
        for child in screen.children
        if child.display and child.region.area and child is not rack
    )
    return 1 + min(tops, default=0)
