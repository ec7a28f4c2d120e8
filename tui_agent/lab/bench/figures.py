"""Sums over the rows: shares and differences, paired by case, behaviour and seed, with bootstrap intervals.

Cases are drawn anew, not runs: runs of one case are alike. Nobody is named better if an interval holds 0.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from tui_agent.lab.bench.policies import REFERENCE
from tui_agent.lab.bench.run import Row

DRAWS = 1_000
Measure = Callable[[Row], float]


@dataclass(frozen=True)
class Estimate:
    """A mean with its 95 % interval; `count` runs over `cases` cases."""

    mean: float
    low: float
    high: float
    count: int
    cases: int

    @property
    def decided(self) -> int:
        """1 or -1 if the whole interval is on one side of 0."""
        return (self.low > 0) - (self.high < 0)


def name_of(row: Row) -> str:
    """The contestant: its policy, and who was there."""
    return row.policy if row.operator == "absent" else f"{row.policy} + {row.operator}"


def by_contestant(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Rows by contestant, in the order in which they come."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(name_of(row), []).append(row)
    return found


def is_policy(name: str) -> bool:
    """True if a contestant is a policy of its own, and not another with somebody beside it or a part left
    out.
    """
    return " + " not in name and not name.startswith(("without-", "adviser-"))


def estimate(rows: Sequence[Row], measure: Measure) -> Estimate:
    """The mean of a measure."""
    return bootstrap([(row.case, measure(row)) for row in rows])


def difference(rows: Sequence[Row], others: Sequence[Row], measure: Measure) -> Estimate:
    """By how much the first are above the others, unit by unit."""
    before = {_unit(row): measure(row) for row in others}
    return bootstrap([
        (row.case, measure(row) - before[_unit(row)]) for row in rows if _unit(row) in before
    ])  # fmt: skip


def _unit(row: Row) -> tuple[str, str, int]:
    return row.case, row.behaviour, row.seed


def bootstrap(values: Sequence[tuple[str, float]]) -> Estimate:
    """The mean of values that stand beside their case."""
    sums: dict[str, tuple[float, int]] = {}
    for case, value in values:
        total, count = sums.get(case, (0.0, 0))
        sums[case] = total + value, count + 1
    if not sums:
        return Estimate(0.0, 0.0, 0.0, 0, 0)
    groups = list(sums.values())
    drawn = random.Random(len(groups))
    means = []
    for _ in range(DRAWS):
        total, count = map(sum, zip(*drawn.choices(groups, k=len(groups)), strict=True))
        means.append(total / count)
    means.sort()
    low, high = means[int(0.025 * DRAWS)], means[int(0.975 * DRAWS) - 1]
    total, count = map(sum, zip(*groups, strict=True))
    return Estimate(total / count, low, high, int(count), len(groups))


def solved(row: Row) -> float:
    return float(row.solved)


def interrupted(row: Row) -> float:
    return float(row.interrupted)


def broken(rows: Sequence[Row], reference: Sequence[Row]) -> Estimate:
    """Runs that succeed with retries alone and not so."""
    right = {_unit(row) for row in reference if row.solved}
    return estimate([row for row in rows if _unit(row) in right], lambda row: float(not row.solved))


@dataclass(frozen=True)
class Summary:
    """The figures of one contestant. Shares from 0 to 1, times in seconds of the runs' clock."""

    success: Estimate
    """Of cases in which something goes wrong."""
    harm: Estimate
    """Healthy runs that were asked about, refused a call, turned round or ended."""
    broken: Estimate
    recovered: float | None
    same_call: float | None
    worked_round: float | None
    steps: float | None
    """Median until nothing was open any more, of the runs that came to that."""
    tokens: float | None
    questions: float
    """Of 100 runs."""
    needed: float | None
    """Share of them in cases that nobody can solve alone."""
    person: float | None
    """Median time until a person is needed, of the runs that come to that."""
    person_share: float
    run_tokens: float


def summary(rows: Sequence[Row], reference: Sequence[Row]) -> Summary:
    """Sums over the runs of one contestant; `reference`: of the one with retries alone."""
    faulty = [row for row in rows if not row.negative]
    failures = sum(row.failures for row in faulty)
    same, round_ = sum(row.same_call for row in faulty), sum(row.worked_round for row in faulty)
    asked = sum(row.questions for row in rows)
    in_need = sum(row.questions for row in rows if row.needs_person)
    people = [row.until_person for row in rows if row.until_person is not None]
    return Summary(
        success=estimate(faulty, solved),
        harm=estimate([row for row in rows if row.negative], interrupted),
        broken=broken(rows, reference),
        recovered=(same + round_) / failures if failures else None,
        same_call=same / failures if failures else None,
        worked_round=round_ / failures if failures else None,
        steps=_median(row.recovery_steps for row in faulty),
        tokens=_median(row.recovery_tokens for row in faulty),
        questions=100 * asked / max(1, len(rows)),
        needed=in_need / asked if asked else None,
        person=_median(people),
        person_share=len(people) / max(1, len(rows)),
        run_tokens=sum(row.tokens for row in rows) / max(1, len(rows)),
    )


def _median(values: Iterable[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return median(there) if there else None


def summaries(rows: Sequence[Row]) -> dict[str, Summary]:
    """Of every contestant."""
    grouped = by_contestant(rows)
    reference = grouped.get(REFERENCE, [])
    return {name: summary(own, reference) for name, own in grouped.items()}


def split(rows: Iterable[Row], key: Callable[[Row], str]) -> Mapping[str, list[Row]]:
    """Rows by some field of theirs."""
    found: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[key(row)].append(row)
    return found


@dataclass(frozen=True)
class Loss:
    """A kind of cases in which simpler rules do better beyond doubt; `worst` is against the best of them."""

    kind: str
    what: Literal["success", "harm"]
    others: tuple[str, ...]
    worst: Estimate


def losses(rows: Sequence[Row], own: str) -> list[Loss]:
    """Rows in which `own` loses to a simpler rule, the worst first."""
    grouped = by_contestant(rows)
    if own not in grouped:
        return []
    found: defaultdict[tuple[str, Literal["success", "harm"]], list[tuple[str, Estimate]]] = defaultdict(list)
    for name, others in grouped.items():
        if name == own or not is_policy(name):
            continue
        for kind, mine in split(grouped[own], lambda row: row.kind).items():
            theirs = [row for row in others if row.kind == kind]
            success = difference(mine, theirs, solved)
            if success.decided < 0:
                found[kind, "success"].append((name, success))
            harm = difference(mine, theirs, interrupted)
            if mine[0].negative and harm.decided > 0:
                found[kind, "harm"].append((name, harm))
    made = [
        Loss(
            kind,
            what,
            tuple(name for name, _ in better),
            max((by for _, by in better), key=lambda by: abs(by.mean)),
        )
        for (kind, what), better in found.items()
    ]
    return sorted(made, key=lambda loss: -abs(loss.worst.mean))
