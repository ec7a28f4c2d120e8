"""How good the estimate is on runs that it has not seen, as a page of tables and a curve.

Brier score: mean squared distance of the chance to what happened. Skill: the share of the Brier score of a set's own
base rate that the estimate takes away; 0 is no better, below 0 is worse. AUC: how often a step that succeeded had the
higher chance than one that did not, in [0, 1]; 0.5 is chance.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import NamedTuple

from tui_agent.core.recovery.next_step import LONGEST_STALL
from tui_agent.lab.evaluation.next_step.counting import Row, weights
from tui_agent.lab.evaluation.next_step.fitting import (
    CAUSES,
    Train,
    base_rate,
    by_stall,
    regression,
    shrunken_cells,
    without,
)

BINS = 10
FINE = 20
"""Parts of the scale, of which the lowest is looked at: whether a chance there holds."""
SMALL = 300
"""Sources with fewer steps are shown together."""
STRONG, MIDDLE, WEAK = "strong", "middle", "weak"
STRONG_FROM, WEAK_BELOW = 0.9, 0.7
"""A set is strong if so large a share of its steps succeeds, else weak."""
HOLDING = 0.15
"""A chance holds if the observed share is at most so far from it, in each set with `FEWEST_HELD` steps."""
FEWEST_HELD = 10
POOLED = "pooled"
OTHERS = "others"

ALTERNATIVES: dict[str, Train] = {
    "base rate": base_rate,
    "share at this stall": by_stall,
    "stall, repetition, cause": without("record", "evidence"),
    "stall, repetition, cause, record": without("evidence"),
    "**all: with the evidence in a stall**": regression,
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
    """Steps whose chance was in one part: what was predicted on average, and what share succeeded."""

    low: float
    steps: int
    predicted: float
    observed: float


def reliability(scored: Scored, weight: Weight, parts: int = BINS) -> list[Bin]:
    """Steps by their chance, in so many equal parts."""
    bins: dict[int, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0, 0.0])
    for row, chance in scored:
        entry = bins[min(int(chance * parts), parts - 1)]
        entry[0] += row.steps
        entry[1] += weight(row) * row.steps
        entry[2] += weight(row) * row.steps * chance
        entry[3] += weight(row) * row.successes
    return [
        Bin(place / parts, int(number), predicted / total, came / total)
        for place, (number, total, predicted, came) in sorted(bins.items())
    ]


# --- strong sets and weak ones ----------------------------------------------------------------------------------


def group_of(rows: list[Row]) -> Callable[[Row], str]:
    """The group of a row's set, by the share of its steps that succeed."""
    steps, successes = Counter[str](), Counter[str]()
    for row in rows:
        steps[row.source] += row.steps
        successes[row.source] += row.successes
    share = {source: successes[source] / steps[source] for source in steps}

    def group(row: Row) -> str:
        mine = share[row.source]
        return STRONG if mine >= STRONG_FROM else WEAK if mine < WEAK_BELOW else MIDDLE

    return group


def by_group(rows: list[Row], scored: Scored) -> dict[str, Scored]:
    """The scored rows of each group."""
    group, found = group_of(rows), dict[str, Scored]()
    for row, chance in scored:
        found.setdefault(group(row), []).append((row, chance))
    return {name: found[name] for name in (STRONG, MIDDLE, WEAK) if name in found}


def stated(scored: Scored) -> dict[str, dict[bool, Bin]]:
    """By set, without and with a success of the run's own: the longest stalls with the least likely next steps."""
    found: dict[str, dict[bool, Bin]] = defaultdict(dict)
    for barren in (True, False):
        low = [(row, chance) for row, chance in scored if row.cell.barren is barren and chance < 1 / FINE]
        for source in sorted({row.source for row, _ in low}):
            part = [(row, chance) for row, chance in low if row.source == source]
            (found[source][barren],) = reliability(part, _alike, 1)
    return dict(sorted(found.items()))


def holds(rows: list[Row]) -> float:
    """The chance below which it came true in every set that was left out of the fitting; 0 if there is none."""
    bins = [one[True] for one in stated(held_out(rows, regression, _source)).values() if True in one]
    held = [abs(one.predicted - one.observed) <= HOLDING for one in bins if one.steps >= FEWEST_HELD]
    return 1 / FINE if len(held) > 1 and all(held) else 0.0


def skill(scored: Scored) -> float:
    """Against the own base rate of each set in it."""
    steps, successes = Counter[str](), Counter[str]()
    for row, _ in scored:
        steps[row.source] += row.steps
        successes[row.source] += row.successes
    own = sum(successes[name] * (1 - successes[name] / steps[name]) for name in steps)
    lost = brier(scored, _alike) * sum(steps.values())
    return 1 - lost / own if own else math.nan


# --- the page ---------------------------------------------------------------------------------------------------


def page(rows: list[Row]) -> str:
    """The tables, in Markdown."""
    balanced = _balanced(rows)
    model = held_out(rows, regression, _fold)
    groups = by_group(rows, model)
    lines = ["# Evaluation", "", "<!-- Written by train.py from data.csv. Do not edit. -->", ""]
    lines += [
        "Predictions for runs that were not fitted on: five folds, a run is in one as a whole; *set left out* leaves",
        "out the whole set. **Skill** compares with a set's own base rate, which nobody knows beforehand: 0 is as good",
        "as knowing it, below 0 is worse. A set is *strong* if at least 90 % of its steps succeed, *weak* below",
        "70 %.",
        "",
        "## Skill, by set",
        "",
    ]
    lines += _table(
        ["set", "group", "steps", "succeeded", "mean predicted", "skill: stall only", "**model**", "set left out",
         "AUC: −stall", "**model**", "set left out", "steps below 0.5", "predicted", "observed"],
        _comparison(rows, model),
    )  # fmt: skip
    lines += ["", "## Where the chance is stated", ""]
    lines += [
        f"Stalls of {LONGEST_STALL} steps and more with a chance below {1 / FINE} for the next step, by figures that",
        f"have not seen the set. A number is stated if the observed share is within {HOLDING} of the predicted one in",
        f"every set with {FEWEST_HELD} steps. That is so below {holds(rows)} in runs of which no step has succeeded.",
        "In others it is not, and from there on the sets differ, or the chance says no more than their base rates:",
        "there `next_step_chance` is null.",
        "",
    ]
    lines += _table(
        ["set", *(f"{name}: steps | predicted | observed" for name in ("no success yet", "some success"))],
        (
            [
                name,
                *(
                    f"{one.steps:,} | {one.predicted:.2f} | {one.observed:.2f}" if one else " |  | "
                    for one in (found.get(barren) for barren in (True, False))
                ),
            ]
            for name, found in stated(held_out(rows, regression, _source)).items()
        ),
    )
    lines += [
        "",
        "## What each part is worth",
        "",
        "Five folds; the sets weigh alike in the Brier score.",
        "",
    ]
    lines += _table(
        ["model", "Brier", "AUC", *(f"skill: {name}" for name in groups)],
        (
            [
                name,
                f"{brier(scored, balanced):.4f}",
                "0.5" if train is base_rate else f"{auc(scored, balanced):.3f}",
                *(f"{skill(part):+.3f}" for part in by_group(rows, scored).values()),
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


def _comparison(rows: list[Row], model: Scored) -> Iterable[list[str]]:
    group = group_of(rows)
    stall = dict(_parts(held_out(rows, by_stall, _fold)))
    abroad = dict(_parts(held_out(rows, regression, _source)))
    for name, part in _parts(model):
        if name == POOLED:
            continue
        steps = sum(row.steps for row, _ in part)
        low = [(row, chance) for row, chance in part if chance < 0.5]
        below = sum(row.steps for row, _ in low)
        yield [
            name,
            "" if name == OTHERS else group(part[0][0]),
            f"{steps:,}",
            f"{sum(row.successes for row, _ in part) / steps:.3f}",
            f"{sum(row.steps * chance for row, chance in part) / steps:.3f}",
            *(f"{skill(scored):+.3f}" for scored in (stall[name], part, abroad[name])),
            *(
                f"{auc(scored, _alike):.3f}"
                for scored in ([(row, -float(row.cell.stall)) for row, _ in part], part, abroad[name])
            ),
            f"{below:,}",
            f"{sum(row.steps * chance for row, chance in low) / below:.2f}" if below else "",
            f"{sum(row.successes for row, _ in low) / below:.2f}" if below else "",
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
    rule = ["---", *("---:" for _ in " | ".join(heading).split(" | ")[1:])]
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
_COLOURS = ("#1f77b4", "#2ca02c", "#d62728")
_FEWEST = 20
"""A point of fewer steps is left out of the curve; the table has it."""


def curve(rows: list[Row]) -> str:
    """Predicted against observed, for all and for each group of sets, as SVG. A point's area grows with its steps."""
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
    model = held_out(rows, regression, _fold)
    for place, (name, part) in enumerate([(POOLED, model), *by_group(rows, model).items()]):
        weight = balanced if name == POOLED else _alike
        colour = "#000000" if name == POOLED else _COLOURS[place - 1]
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
