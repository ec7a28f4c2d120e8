"""Painting a screen without what nobody sees: lines of a container that are covered by what it contains, and a frame
that the next one of the same change replaces. What was typed is seen before all else that has changed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

from textual import events
from textual._compositor import Compositor, CompositorMap
from textual.geometry import Region, Size
from textual.screen import Screen

if TYPE_CHECKING:
    from textual.strip import Strip
    from textual.widget import Widget


LARGE = 0.25
"""The part of the screen from which on painting it takes so long that a key is shown before it."""

BREATH = 0.008
"""Seconds from the beginning of a frame until the next may follow for the sake of a key."""


class SparingCompositor(Compositor):
    """Renders, front to back, only those lines of a widget of which something can be seen."""

    @property
    def full_map(self) -> CompositorMap:
        """Places of all widgets. Textual also makes the map anew when it is asked between two layouts, and
        the next layout then finds nothing changed: widgets that came, went or moved are painted all the same.
        """
        before, now = self._full_map, super().full_map
        if now is not before:
            changed = (place.clip.intersection(place.region) for _, place in before.items() ^ now.items())
            self._dirty_regions.update(region for region in changed if region)
        return now

    def _render_chops(
        self, crop: Region, is_rendered_line: Callable[[int], bool]
    ) -> Sequence[Mapping[int, Strip]]:
        """The strips of each line by the columns at which they begin; None stands for a part that is not
        drawn.
        """
        cuts = self.cuts
        chops: list[dict[int, Strip | None]] = [dict.fromkeys(line[:-1]) for line in cuts]
        empty = {
            y: {left for left, right in pairwise(cuts[y]) if left < crop.right and right > crop.x}
            for y in crop.line_range
            if is_rendered_line(y)
        }
        for widget, (region, clip) in self.visible_widgets.items():
            visible = region.intersection(clip)
            left, right = visible.column_span
            lines = [
                y
                for y in visible.line_range
                if (columns := empty.get(y)) and any(left <= column < right for column in columns)
            ]
            for y, strip in _rendered(widget, region, visible, lines):
                within = [cut for cut in cuts[y] if left <= cut <= right]
                # One that is divided into itself would keep itself: garbage that only the collector finds.
                whole = len(within) == 2
                pieces = [strip] if whole else strip.divide([cut - left for cut in within[1:]])
                for column, piece in zip(within, pieces, strict=False):
                    if column in empty[y]:
                        chops[y][column] = piece
                        empty[y].remove(column)
        return cast("Sequence[Mapping[int, Strip]]", chops)


def _rendered(
    widget: Widget, region: Region, visible: Region, lines: list[int]
) -> Iterator[tuple[int, Strip]]:
    """These lines of the screen as the widget at `region` draws them, a run of neighbours at a time."""
    start = 0
    for end in range(1, len(lines) + 1):
        if end == len(lines) or lines[end] != lines[end - 1] + 1:
            top = lines[start]
            crop = Region(visible.x - region.x, top - region.y, visible.width, end - start)
            yield from enumerate(widget.render_lines(crop), top)
            start = end


class SparingScreen(Screen[None]):
    """Lays out once for a size, and paints once a frame; if that is much, the widget that got a key comes
    first.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._compositor = SparingCompositor()
        self._laying_out = False
        self._paint_due = False
        self._fitted: Size | None = None
        self._typed = False
        self._frame_began = 0.0

    def key_came(self) -> None:
        """Its changes are painted as soon as they are known, and before all else."""
        self._typed = True

    async def _on_idle(self, event: events.Idle) -> None:
        """Ask for a frame; Textual's timer has it up to two periods after the end of the last one, a key cannot wait
        for that.
        """
        await super()._on_idle(event)
        if (
            self._typed
            and (self.focused in self._dirty_widgets or (self.focused is None and self._dirty_widgets))
            and self._frame_began + BREATH < time.monotonic()
        ):
            self._on_timer_update()

    def _screen_resized(self, size: Size) -> None:
        """Lay out for another size; Textual tells a screen of each twice."""
        if size != self._compositor.size:
            super()._screen_resized(size)

    def fit(self, size: Size) -> None:
        """Take the form for a size, before it is laid out for it."""

    def _refresh_layout(self, size: Size | None = None, scroll: bool = False) -> None:
        """Lay out; what has changed by that is painted with the frame, together with what the widgets draw anew.

        Textual comes here also before it tells the screen of a new size, and without ever telling one that was hidden.
        """
        new = self.outer_size if size is None else size
        if new and new != self._fitted:
            self._fitted = new
            self.fit(new)
        self._laying_out = self.app._dom_ready
        super()._refresh_layout(size, scroll)
        self._laying_out = False
        if self._paint_due:
            self._update_timer.resume()

    def _compositor_refresh(self) -> None:
        """Paint what has changed; right after a layout only say that there is something."""
        self._paint_due = self._laying_out
        if self._laying_out:
            return
        # Textual then forgets which widgets have changed; some may have since it asked where they are.
        self._compositor.update_widgets(self._dirty_widgets)
        rest = self._all_but_what_was_typed() if self._typed and self.is_current else set()
        self._typed = False
        super()._compositor_refresh()
        if rest:
            self._compositor._dirty_regions |= rest
            self.call_later(self._compositor_refresh)

    def _all_but_what_was_typed(self) -> set[Region]:
        """Leave of much that is to be painted only a small widget with the focus: the rest."""
        place = self._compositor.visible_widgets.get(self.focused) if self.focused else None
        if place is None:
            return set()
        dirty = self._compositor._dirty_regions
        typed = place[0].intersection(place[1])
        large = LARGE * self.size.area
        if typed.area >= large or sum(region.area for region in dirty) < large:
            return set()
        rest = {region for region in dirty if not typed.contains_region(region)}
        dirty.clear()
        dirty.add(typed)
        return rest

    def _on_timer_update(self) -> None:
        """A frame: lay out and paint, each once at most."""
        self._frame_began = time.monotonic()
        super()._on_timer_update()
        if self._paint_due and self.is_current:
            self._compositor_refresh()
