"""Drawings: every name can be read, and belongs to one point."""

from __future__ import annotations

import re
from itertools import combinations

import pytest

from tui_agent.lab.analysis import plots

LETTER = 6.0
"""Width of a letter in a drawing at least."""


def texts(drawing: str) -> list[tuple[float, float, str, str]]:
    """x, y, anchor and words of each text that is not turned."""
    found = re.findall(r'<text x="([\d.]+)" y="([\d.]+)" text-anchor="(\w+)"[^>]*>([^<]*)</text>', drawing)
    return [(float(x), float(y), anchor, words) for x, y, anchor, words in found]


def areas(drawing: str) -> dict[str, tuple[float, float, float, float]]:
    """Left, right, top and bottom of each text."""
    made = {}
    for x, y, anchor, words in texts(drawing):
        long = LETTER * len(words)
        left = {"start": x, "end": x - long, "middle": x - long / 2}[anchor]
        made[words] = left, left + long, y - 10, y + 2
    return made


def width_of(drawing: str) -> float:
    found = re.search(r'viewBox="0 0 (\d+)', drawing)
    assert found
    return float(found[1])


CROWDED = [plots.Point(f"policy-{n}", 0.1 + n / 1_000, 0.6 - n / 1_000, n == 2) for n in range(6)]
AT_THE_EDGES = [plots.Point("left-below", 0.0, 0.5), plots.Point("right-above", 0.3, 0.7)]


@pytest.mark.parametrize("points", [CROWDED, AT_THE_EDGES])
def test_names_in_a_plane_meet_neither_each_other_nor_another_point(points: list[plots.Point]) -> None:
    drawing = plots.plane(points, "across", "up")
    found = areas(drawing)
    for one, other in combinations(found.values(), 2):
        assert one[1] <= other[0] or other[1] <= one[0] or one[3] <= other[2] or other[3] <= one[2]
    circles = [(float(x), float(y)) for x, y in re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', drawing)]
    for left, right, top, bottom in found.values():
        assert not any(left <= x <= right and top <= y <= bottom for x, y in circles)
        assert left >= 0
        assert right <= width_of(drawing)
    assert {"across", *(point.name for point in points)} <= found.keys()


def test_points_at_one_place_share_a_label() -> None:
    drawing = plots.plane([plots.Point("none", 0.0, 0.5), plots.Point("hpd", 0.0, 0.5)], "x", "y")
    assert "none, hpd" in areas(drawing)
    assert drawing.count("<circle") == 1


def test_a_scale_says_the_values_of_its_lines() -> None:
    drawing = plots.rows([plots.IntervalRow("ring", 0.01, -0.02, 0.04)], -0.25, 0.25, "points")
    assert [words for _, _, _, words in texts(drawing) if words[-1:].isdigit()] == [
        "-25", "-12.5", "0", "12.5", "25", "+1.0",
    ]  # fmt: skip


def test_long_names_have_room_and_what_parts_are_goes_on_in_another_line() -> None:
    name = "silent: an edit that changes not a thing"
    bars = plots.bars([plots.Bar(name, (3, 2))], {f"a part with a long name {n}": "#fff" for n in range(2)})
    for drawing in (bars, plots.rows([plots.IntervalRow(name, 0.0, 0.0, 0.0)], -1.0, 1.0, "points")):
        for left, right, _, _ in areas(drawing).values():
            assert left >= 0
            assert right <= width_of(drawing)
