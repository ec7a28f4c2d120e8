"""The logistic regression behind the estimate, and the simpler estimates that it is measured against.

Sources count alike, whatever their size (see `counting.weights`). More of a stall and a repetition never raise the
chance and a better record never lowers it: a coefficient that would is held at 0.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable

from tui_agent.core.recovery.next_step import LONGEST_STALL, Cause, Cell
from tui_agent.lab.evaluation.next_step.counting import Row

RIDGE = 1.0
RIDGE_CAUSE = 20.0
"""Time-outs are rare in the data: what is learnt of the causes is drawn strongly towards no effect."""
_PRIOR = 10.0
"""Steps that the share at its stall counts for in a shrunken cell."""

Predict = Callable[[Cell], float]
Train = Callable[[list[Row], dict[str, float]], Predict]

_STALLS = [f"stall ≥ {length}" for length in range(1, LONGEST_STALL + 1)]
CAUSES = [cause.value for cause in Cause if cause not in {Cause.NONE, Cause.TOOL}]
NAMES = ["intercept", *_STALLS, "repeated", "record", "evidence", *CAUSES]
NOT_ABOVE_0 = {*_STALLS, "repeated"}
NOT_BELOW_0 = {"record", "evidence"}


def features(cell: Cell) -> list[float]:
    return [
        1.0,
        *(float(cell.stall >= length) for length in range(1, LONGEST_STALL + 1)),
        float(cell.repeated),
        float(cell.record),
        float(cell.evidence * (cell.stall > 0)),
        *(float(cell.cause.value == cause) for cause in CAUSES),
    ]


def fit(rows: list[Row], weight: dict[str, float], without: frozenset[str] = frozenset()) -> list[float]:
    """Logistic regression by Newton's method with ridge; a coefficient of the wrong sign is held at 0.

    `without`: names of features that are left out.
    """
    held = {place for place, name in enumerate(NAMES) if name in without}
    while True:
        coefficients = _newton(rows, weight, held)
        wrong = {
            place
            for place, (name, value) in enumerate(zip(NAMES, coefficients, strict=True))
            if (name in NOT_ABOVE_0 and value > 0) or (name in NOT_BELOW_0 and value < 0)
        }
        if not wrong:
            return coefficients
        held |= wrong


def _pooled(rows: list[Row], weight: dict[str, float]) -> dict[Cell, list[float]]:
    """The weighted numbers of steps and of those that succeed, by cell."""
    pooled: dict[Cell, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for row in rows:
        pooled[row.cell][0] += weight[row.source] * row.steps
        pooled[row.cell][1] += weight[row.source] * row.successes
    return pooled


def _newton(rows: list[Row], weight: dict[str, float], held: set[int]) -> list[float]:
    size = len(NAMES)
    free = [place for place in range(size) if place not in held]
    ridge = [0.0 if place == 0 else RIDGE_CAUSE if NAMES[place] in CAUSES else RIDGE for place in range(size)]
    pooled = sorted(_pooled(rows, weight).items())
    known = [(features(cell), number, successes) for cell, (number, successes) in pooled]
    coefficients = [0.0] * size
    for _ in range(100):
        gradient = [-ridge[place] * coefficients[place] for place in free]
        curvature = [[ridge[one] if one == other else 0.0 for other in free] for one in free]
        for values, number, successes in known:
            chance = _sigmoid(sum(b * x for b, x in zip(coefficients, values, strict=True)))
            for one, place in enumerate(free):
                gradient[one] += (successes - number * chance) * values[place]
                for other, second in enumerate(free):
                    curvature[one][other] += number * chance * (1 - chance) * values[place] * values[second]
        step = _solve(curvature, gradient)
        for one, place in enumerate(free):
            coefficients[place] += step[one]
        if max(abs(value) for value in step) < 1e-10:
            break
    return coefficients


def _sigmoid(logit: float) -> float:
    return 1.0 / (1.0 + math.exp(-logit)) if logit > -700 else 0.0


def _solve(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Gauss's elimination with pivoting."""
    size = len(right)
    rows = [[*line, value] for line, value in zip(matrix, right, strict=True)]
    for column in range(size):
        pivot = max(range(column, size), key=lambda line: abs(rows[line][column]))
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for line in range(column + 1, size):
            factor = rows[line][column] / rows[column][column]
            for place in range(column, size + 1):
                rows[line][place] -= factor * rows[column][place]
    solution = [0.0] * size
    for line in reversed(range(size)):
        rest = sum(rows[line][place] * solution[place] for place in range(line + 1, size))
        solution[line] = (rows[line][size] - rest) / rows[line][line]
    return solution


def regression(rows: list[Row], weight: dict[str, float]) -> Predict:
    """The model that the package uses."""
    return _predict(fit(rows, weight))


def without(*names: str) -> Train:
    """The same model without these features."""
    return lambda rows, weight: _predict(fit(rows, weight, frozenset(names)))


def _predict(coefficients: list[float]) -> Predict:
    return lambda cell: _sigmoid(sum(b * x for b, x in zip(coefficients, features(cell), strict=True)))


def shrunken_cells(rows: list[Row], weight: dict[str, float]) -> Predict:
    """The weighted share of steps that succeed in the very cell, drawn towards the share at its stall."""
    at_stall = by_stall(rows, weight)
    counted = _pooled(rows, weight)

    def predict(cell: Cell) -> float:
        total, successes = counted.get(cell, (0.0, 0.0))
        return (successes + _PRIOR * at_stall(cell)) / (total + _PRIOR)

    return predict


def base_rate(rows: list[Row], weight: dict[str, float]) -> Predict:
    """One figure for all: the weighted share of steps that succeed."""
    return _shares(rows, weight, lambda cell: 0)


def by_stall(rows: list[Row], weight: dict[str, float]) -> Predict:
    """The weighted share of steps that succeed at this stall."""
    return _shares(rows, weight, lambda cell: cell.stall)


def _shares(rows: list[Row], weight: dict[str, float], key: Callable[[Cell], object]) -> Predict:
    counted: dict[object, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for row in rows:
        entry = counted[key(row.cell)]
        entry[0] += weight[row.source] * row.steps
        entry[1] += weight[row.source] * row.successes
    return lambda cell: counted[key(cell)][1] / counted[key(cell)][0] if key(cell) in counted else 0.5
