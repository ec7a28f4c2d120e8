"""Textual's compositor, without the lines that nobody sees: what a container draws is covered by what it contains."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, cast

from textual._compositor import Compositor
from textual.geometry import Region

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from textual.strip import Strip
    from textual.widget import Widget


class SparingCompositor(Compositor):
    """Renders, front to back, only those lines of a widget of which something can be seen."""

    def _render_chops(
        self, crop: Region, is_rendered_line: Callable[[int], bool]
    ) -> Sequence[Mapping[int, Strip]]:
        """The strips of each line by the columns at which they begin; None stands where nothing is to be drawn."""
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
                pieces = strip.divide([cut - left for cut in within[1:]])
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
