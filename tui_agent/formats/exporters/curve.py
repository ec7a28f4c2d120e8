"""The curve of cognition over a session: points of a picture, with thresholds, one line a run and a mark at
each verdict. Only numbers and fixed words are in it; a template draws them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from tui_agent.core.events import Level

if TYPE_CHECKING:
    from tui_agent.formats.exporters.story import Sample, Story

_WIDTH, _HEIGHT = 1_000, 190
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, _WIDTH - 14, 14, _HEIGHT - 26
_MOST_POINTS = 1_500
"""More are thinned out: a page of a very long session stays small, and marks are always kept."""

Point = tuple[float, float]


@dataclass(frozen=True)
class Curve:
    """Coordinates of the picture, rounded to a tenth."""

    title: str
    grid: tuple[tuple[float, str], ...]
    thresholds: tuple[tuple[float, str], ...]
    runs: tuple[tuple[Point, ...], ...]
    marks: tuple[tuple[float, float, Level, str], ...]
    last: int
    """The last iteration, over all runs."""
    width: int = _WIDTH
    height: int = _HEIGHT
    left: int = _LEFT
    right: int = _RIGHT
    top: int = _TOP
    floor: int = _BOTTOM


def curve(story: Story) -> Curve | None:
    """The picture of a session; None if nothing was judged."""
    if not story.samples:
        return None
    policy = story.state.recovery.policy
    thresholds = {"conclude": policy.confidence_threshold, "degrade": policy.degrade_threshold}
    if policy.cognition != "walk":
        thresholds = {}
    last = max(story.iterations, story.samples[-1].step, 2)
    drawn = _thinned(story.samples)

    def point(sample: Sample) -> Point:
        return round(_LEFT + (_RIGHT - _LEFT) * (sample.step - 1) / (last - 1), 1), _y(sample.shown)

    return Curve(
        "Confidence",
        grid=tuple((_y(value), f"{value:g}") for value in (0.0, 0.5, 1.0)),
        thresholds=tuple((_y(value), f"{name} {value:g}") for name, value in thresholds.items()),
        runs=tuple(tuple(map(point, run)) for _, run in groupby(drawn, key=lambda sample: sample.run)),
        marks=tuple((*point(sample), sample.level, _label(sample)) for sample in drawn if _marked(sample)),
        last=last,
    )


def _y(value: float) -> float:
    return round(_TOP + (_BOTTOM - _TOP) * (1 - min(max(value, 0.0), 1.0)), 1)


def _marked(sample: Sample) -> bool:
    return sample.failed or sample.level is not Level.CONTINUE


def _thinned(samples: Sequence[Sample]) -> list[Sample]:
    stride = max(1, len(samples) // _MOST_POINTS)
    return [sample for position, sample in enumerate(samples) if position % stride == 0 or _marked(sample)]


def _label(sample: Sample) -> str:
    return f"run {sample.run}, step {sample.iteration}: {sample.shown:.2f}, {sample.level}"
