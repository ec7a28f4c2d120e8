"""The curve of confidence over a session as inline SVG, with its thresholds and a mark where a verdict spoke.

Only numbers and fixed words enter the picture: nothing foreign, no script, no style but classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent import events as e

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_agent.sessions.export.story import Sample

WIDTH, HEIGHT = 1_000, 190
_LEFT, _RIGHT, _TOP, _BOTTOM = 40, 14, 14, 26
_THRESHOLDS = ((0.7, "conclude"), (0.3, "degrade"))
_MOST_POINTS = 1_500
"""More are thinned out: a page of a very long session stays small, and marks are always kept."""


def curve(samples: Sequence[Sample], iterations: int) -> str:
    """The picture. Steps are iterations over all runs; each run begins anew at its policy's start."""
    last = max(iterations, samples[-1].step, 2)
    drawn = _thinned(samples)
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="Confidence by iteration">',
        *_grid(),
    ]
    for run in _by_run(drawn):
        parts.extend(_run(run, last))
    parts.extend(_mark(sample, last) for sample in drawn if _marked(sample))
    parts.append(f'<text class="axis" x="{_LEFT}" y="{HEIGHT - 6}">1</text>')
    parts.append(f'<text class="axis end" x="{WIDTH - _RIGHT}" y="{HEIGHT - 6}">{last} iterations</text>')
    parts.append("</svg>\n")
    return "".join(parts)


def _marked(sample: Sample) -> bool:
    return sample.failed or sample.level is not e.Level.CONTINUE


def _thinned(samples: Sequence[Sample]) -> list[Sample]:
    stride = max(1, len(samples) // _MOST_POINTS)
    return [sample for position, sample in enumerate(samples) if position % stride == 0 or _marked(sample)]


def _by_run(samples: Sequence[Sample]) -> list[list[Sample]]:
    runs: list[list[Sample]] = []
    for sample in samples:
        if not runs or runs[-1][-1].run != sample.run:
            runs.append([])
        runs[-1].append(sample)
    return runs


def _x(step: int, last: int) -> float:
    return _LEFT + (WIDTH - _LEFT - _RIGHT) * (step - 1) / (last - 1)


def _y(confidence: float) -> float:
    return _TOP + (HEIGHT - _TOP - _BOTTOM) * (1 - min(max(confidence, 0.0), 1.0))


def _grid() -> list[str]:
    parts = []
    for value in (0.0, 0.5, 1.0):
        parts.append(
            f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{_y(value):.1f}" y2="{_y(value):.1f}"/>'
        )
        parts.append(f'<text class="axis end" x="{_LEFT - 7}" y="{_y(value) + 4:.1f}">{value:g}</text>')
    for value, name in _THRESHOLDS:
        y = _y(value)
        parts.append(
            f'<line class="threshold" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        )
        parts.append(f'<text class="axis end" x="{WIDTH - _RIGHT}" y="{y - 4:.1f}">{name} {value:g}</text>')
    return parts


def _run(samples: Sequence[Sample], last: int) -> list[str]:
    points = [(_x(sample.step, last), _y(sample.confidence)) for sample in samples]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    floor = _y(0.0)
    area = f"{points[0][0]:.1f},{floor:.1f} {path} {points[-1][0]:.1f},{floor:.1f}"
    parts = []
    if samples[0].step > 1:
        x = points[0][0]
        parts.append(f'<line class="run" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{floor:.1f}"/>')
    parts.append(f'<polygon class="area" points="{area}"/><polyline class="line" points="{path}"/>')
    if len(points) == 1:
        parts.append(f'<circle class="dot" cx="{points[0][0]:.1f}" cy="{points[0][1]:.1f}" r="2"/>')
    return parts


def _mark(sample: Sample, last: int) -> str:
    told = f"run {sample.run}, iteration {sample.iteration}: {sample.confidence:.2f}, {sample.level}"
    x, y = _x(sample.step, last), _y(sample.confidence)
    return f'<circle class="mark {sample.level}" cx="{x:.1f}" cy="{y:.1f}" r="4.5"><title>{told}</title></circle>'
