"""How good the estimate is on runs that it has not seen, as a page of tables and a curve.

Brier score: mean squared distance of the chance to what happened. AUC: how often a step that succeeded had the higher
chance than one that did not, in [0, 1]; 0.5 is chance.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import NamedTuple

from counting import Row, weights
from fitting import CAUSES, Train, base_rate, by_stall, regression, shrunken_cells, without

BINS = 10
SMALL = 300
"""Sources with fewer steps are shown together."""
POOLED = "pooled"
OTHERS = "others"

ALTERNATIVES: dict[str, Train] = {
    "base rate": base_rate,
    "share at this stall": by_stall,
    "stall, repetition": without("record", *CAUSES),
    "stall, repetition, cause": without("record"),
    "**stall, repetition, cause, record**": regression,
    "without repetition": without("repeated"),
    "without cause": without(*CAUSES),
    "a table of all cells, shrunken": shrunken_cells,
}

Scored = list[tuple[Row, float]]
Weight = Callable[[Row], float]


def held_out(rows: list[Row], train: Train, part: Callable[[Row], object]) -> Scored:
    """Each row with the prediction of a model that has not seen its part (its fold, or its source)."""
    scored: Scored = []
    for one in sorted({str(part(row)) for row in rows}):
        seen = [row for row in rows if str(part(row)) != one]
        predict = train(seen, weights(seen))
        scored.extend((row, predict(row.cell)) for row in rows if str(part(row)) == one)
    return scored


def brier(scored: Scored, weight: Weight) -> float:
    """Mean squared distance of the chance to what happened (0 or 1)."""
    total = sum(weight(row) * row.steps for row, _ in scored)
    lost = sum(
        weight(row) * (row.successes * (1 - chance) ** 2 + (row.steps - row.successes) * chance**2)
        for row, chance in scored
    )
    return lost / total


def auc(scored: Scored, weight: Weight) -> float:
    """How often a step that succeeded had the higher chance than one that did not; ties count half."""
    by_chance: dict[float, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for row, chance in scored:
        by_chance[chance][0] += weight(row) * row.successes
        by_chance[chance][1] += weight(row) * (row.steps - row.successes)
    below = pairs = 0.0
    for _, (good, bad) in sorted(by_chance.items()):
        pairs += good * (below + bad / 2)
        below += bad
    good_in_all = sum(good for good, _ in by_chance.values())
    return pairs / (good_in_all * below) if good_in_all and below else math.nan


class Bin(NamedTuple):
    """Steps whose chance was in one tenth: what was predicted on average, and what share succeeded."""

    low: float
    steps: int
    predicted: float
    observed: float


def reliability(scored: Scored, weight: Weight) -> list[Bin]:
    """Steps by their chance, in tenths."""
    bins: dict[int, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0, 0.0])
    for row, chance in scored:
        entry = bins[min(int(chance * BINS), BINS - 1)]
        entry[0] += row.steps
        entry[1] += weight(row) * row.steps
        entry[2] += weight(row) * row.steps * chance
        entry[3] += weight(row) * row.successes
    return [
        Bin(place / BINS, int(number), predicted / total, came / total)
        for place, (number, total, predicted, came) in sorted(bins.items())
    ]


# --- the page ---------------------------------------------------------------------------------------------------


def page(rows: list[Row]) -> str:
    """The tables, in Markdown."""
    balanced = _balanced(rows)
    model = held_out(rows, regression, _fold)
    lines = ["# Evaluation", "", "<!-- Written by train.py from data.csv. Do not edit. -->", ""]
    lines += [
        "Predictions for runs that were not fitted on: five folds, a run is in one as a whole; the last column leaves",
        "out the whole source. `pooled` weighs the sources alike. In the row of a source, the base rate is still the",
        "pooled one, as a model would have to use it that does not know the source.",
        "",
    ]
    lines += _table(
        ["source", "steps", "succeeded", "Brier: base rate", "stall only", "**model**", "source left out",
         "AUC: −stall", "**model**", "source left out", "mean predicted"],
        _comparison(rows, model, balanced),
    )  # fmt: skip
    lines += ["", "## What each part is worth", "", "Pooled, five folds.", ""]
    lines += _table(
        ["model", "Brier", "AUC"],
        (
            [
                name,
                f"{brier(scored, balanced):.4f}",
                "0.5" if train is base_rate else f"{auc(scored, balanced):.3f}",
            ]
            for name, train in ALTERNATIVES.items()
            for scored in [held_out(rows, train, _fold)]
        ),
    )
    lines += ["", "## Reliability", "", "![Predicted against observed](reliability.svg)", ""]
    for name, part in _parts(model):
        weight = balanced if name == POOLED else _alike
        lines += [f"### {name}", ""]
        lines += _table(
            ["chance", "steps", "predicted", "observed"],
            (
                [
                    f"{one.low:.1f}–{one.low + 1 / BINS:.1f}",
                    f"{one.steps:,}",
                    f"{one.predicted:.3f}",
                    f"{one.observed:.3f}",
                ]
                for one in reliability(part, weight)
            ),
        )
        lines.append("")
    return "\n".join(lines)


def _comparison(rows: list[Row], model: Scored, balanced: Weight) -> Iterable[list[str]]:
    base = dict(_parts(held_out(rows, base_rate, _fold)))
    stall = dict(_parts(held_out(rows, by_stall, _fold)))
    abroad = dict(_parts(held_out(rows, regression, _source)))
    for name, part in _parts(model):
        weight = balanced if name == POOLED else _alike
        steps = sum(row.steps for row, _ in part)
        total = sum(weight(row) * row.steps for row, _ in part)
        yield [
            name,
            f"{steps:,}",
            f"{sum(weight(row) * row.successes for row, _ in part) / total:.3f}",
            *(f"{brier(scored, weight):.4f}" for scored in (base[name], stall[name], part, abroad[name])),
            *(
                f"{auc(scored, weight):.3f}"
                for scored in ([(row, -float(row.cell.stall)) for row, _ in part], part, abroad[name])
            ),
            f"{sum(weight(row) * row.steps * chance for row, chance in part) / total:.3f}",
        ]


def _parts(scored: Scored) -> list[tuple[str, Scored]]:
    """All, then each source; the small ones together."""
    sizes: Counter[str] = Counter()
    for row, _ in scored:
        sizes[row.source] += row.steps
    parts: dict[str, Scored] = defaultdict(list)
    for row, chance in scored:
        parts[row.source if sizes[row.source] >= SMALL else OTHERS].append((row, chance))
    names = sorted(parts, key=lambda name: (name == OTHERS, name))
    return [(POOLED, scored), *((name, parts[name]) for name in names)]


def _table(heading: list[str], lines: Iterable[list[str]]) -> list[str]:
    rule = ["---", *("---:" for _ in heading[1:])]
    return [f"| {' | '.join(cells)} |" for cells in (heading, rule, *lines)]


def _balanced(rows: list[Row]) -> Weight:
    each = weights(rows)
    return lambda row: each[row.source]


def _alike(_: Row) -> float:
    return 1.0


def _fold(row: Row) -> int:
    return row.fold


def _source(row: Row) -> str:
    return row.source


# --- the curve --------------------------------------------------------------------------------------------------

_SIDE, _EDGE = 360, 48
_COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f")
_FEWEST = 20
"""A point of fewer steps is left out of the curve; the table has it."""


def curve(rows: list[Row]) -> str:
    """Predicted against observed, for all and for each source, as SVG. A point's area grows with its steps."""
    balanced = _balanced(rows)
    height = _SIDE + 2 * _EDGE
    width = height + 150
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"',
        '     font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<path d="M{_x(0)} {_y(0)}L{_x(1)} {_y(1)}" stroke="#999999" stroke-dasharray="4 4"/>',
        f'<path d="M{_x(0)} {_y(1)}V{_y(0)}H{_x(1)}" fill="none" stroke="#333333"/>',
        _text(_x(0.5), height - 8, "predicted chance", "middle"),
        _text(8, _EDGE - 16, "share that succeeded", "start"),
    ]
    for share in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0):
        lines.append(_text(_x(share), _y(0) + 18, f"{share:.1f}", "middle"))
        lines.append(_text(_x(0) - 8, _y(share) + 4, f"{share:.1f}", "end"))
    for place, (name, part) in enumerate(_parts(held_out(rows, regression, _fold))):
        weight = balanced if name == POOLED else _alike
        colour = "#000000" if name == POOLED else _COLOURS[(place - 1) % len(_COLOURS)]
        points = [one for one in reliability(part, weight) if one.steps >= _FEWEST]
        path = "L".join(f"{_x(one.predicted)} {_y(one.observed)}" for one in points)
        stroke = 2 if name == POOLED else 1
        lines.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="{stroke}"/>')
        for one in points:
            place_of = f'cx="{_x(one.predicted)}" cy="{_y(one.observed)}"'
            lines.append(f'<circle {place_of} r="{1 + math.log10(one.steps):.1f}" fill="{colour}"/>')
        lines.append(_text(height, _EDGE + 18 * place, name, "start", colour))
    return "\n".join([*lines, "</svg>", ""])


def _text(x: float, y: float, text: str, anchor: str, colour: str = "#333333") -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="{colour}">{text}</text>'


def _x(share: float) -> float:
    return round(_EDGE + share * _SIDE, 1)


def _y(share: float) -> float:
    return round(_EDGE + (1 - share) * _SIDE, 1)
