"""The page of whole runs of a small real model: shares with Wilson's intervals, differences paired by case and sample.

Only a case and sample that ran under every policy counts. Differences draw the cases anew (`figures.bootstrap`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from tui_agent.lab.bench.figures import Estimate, difference, solved, split
from tui_agent.lab.bench.next_moves import table
from tui_agent.lab.bench.policies import REFERENCE
from tui_agent.lab.bench.run import Row, Unit
from tui_agent.playbook.book import wilson

PAGE = "runs.md"

Measure = Callable[[Row], float]
Ran = Mapping[str, Sequence[Row]]
"""By policy: rows of the same cases and samples, in the same order."""

_MEASURES: Mapping[str, Measure] = {
    "calls": lambda row: row.tool_calls,
    "failed calls": lambda row: row.tool_errors,
    "replies": lambda row: row.iterations,
    "notes": lambda row: row.notes,
    "refusals": lambda row: row.refusals,
}


def compared(rows: Iterable[Row]) -> Ran:
    """What ran under every policy that the rows have."""
    by_unit: dict[Unit, dict[str, Row]] = {}
    for row in rows:
        by_unit.setdefault(Unit(row.case, row.behaviour, row.seed), {})[row.policy] = row
    policies = list(dict.fromkeys(policy for ran in by_unit.values() for policy in ran))
    whole = [ran for _, ran in sorted(by_unit.items(), key=lambda one: (one[0].case, one[0].seed))]
    whole = [ran for ran in whole if len(ran) == len(policies)]
    return {policy: [ran[policy] for ran in whole] for policy in policies}


def page(rows: Sequence[Row]) -> str:
    """The tables, in Markdown."""
    ran = compared(rows)
    base = ran.get(REFERENCE) or next(iter(ran.values()), [])
    models = ", ".join(sorted({f"`{row.behaviour}`" for row in base}))
    healthy = {row.case for row in base if row.negative}
    cases = {row.case for row in base}
    lines = [
        "# Whole runs of a small real model, by policy",
        "",
        "<!-- Written by `agent-tui bench real`. Do not edit. -->",
        "",
        f"{models}: {len(base)} runs under each policy, of {len(cases)} cases ({len(healthy)} healthy).",
        "",
        *table(
            ["policy", "solved", "healthy solved", "harm", "lost", "recovered"],
            [_shares(policy, own, base) for policy, own in ran.items()],
        ),
        "",
        "*solved*: of the runs in which something goes wrong. *harm*: of the healthy runs that are solved under",
        f"`{REFERENCE}`, those that are not solved here; *lost*: the same of the others. *recovered*: of the failures.",
        "In brackets the 95 % interval (Wilson).",
        "",
        "## What a run takes",
        "",
        *table(
            ["policy", *_MEASURES],
            [
                [f"`{policy}`", *(f"{_mean(own, measure):.1f}" for measure in _MEASURES.values())]
                for policy, own in ran.items()
            ],
        ),
        "",
        "## Differences",
        "",
        "In percentage points (replies: in replies), paired, with the 95 % interval. Bold: it does not hold 0.",
        "",
        *table(["", "solved", "healthy solved", "replies"], list(_differences(ran))),
        "",
        "## By kind of trouble",
        "",
        "Runs that were solved.",
        "",
        *table(["kind", "runs", *(f"`{policy}`" for policy in ran)], list(_kinds(ran))),
    ]
    return "\n".join([*lines, ""])


def _shares(policy: str, own: Sequence[Row], base: Sequence[Row]) -> list[str]:
    faulty = [row for row in own if not row.negative]
    well = [row for row in own if row.negative]
    before = [(row, kept) for row, kept in zip(own, base, strict=True) if kept.solved]
    failures = sum(row.failures for row in own)
    return [
        f"`{policy}`",
        _share(sum(row.solved for row in faulty), len(faulty)),
        _share(sum(row.solved for row in well), len(well)),
        _share(*_unsolved(row for row, _ in before if row.negative)),
        _share(*_unsolved(row for row, _ in before if not row.negative)),
        _share(sum(row.same_call + row.worked_round for row in own), failures),
    ]


def _unsolved(rows: Iterable[Row]) -> tuple[int, int]:
    found = [not row.solved for row in rows]
    return sum(found), len(found)


def _share(count: int, of: int) -> str:
    if not of:
        return "·"
    low, high = wilson(count, of)
    return f"{count} of {of} ({low:.0%}–{high:.0%})"


def _mean(rows: Sequence[Row], measure: Measure) -> float:
    return sum(map(measure, rows)) / max(1, len(rows))


def _differences(ran: Ran) -> Iterable[list[str]]:
    pairs = [(policy, REFERENCE) for policy in ran if policy != REFERENCE]
    pairs += [("combined", other) for other in ("forge", "refusals-only")]
    for policy, other in pairs:
        if not (ran.get(policy) and ran.get(other)):
            continue
        faulty, well = (
            difference(
                [row for row in ran[policy] if row.negative is negative],
                [row for row in ran[other] if row.negative is negative],
                solved,
            )
            for negative in (False, True)
        )
        replies = difference(ran[policy], ran[other], _MEASURES["replies"])
        yield [
            f"`{policy}` over `{other}`",
            _gap(faulty, 100, 0),
            _gap(well, 100, 0),
            _gap(replies, 1, 1),
        ]


def _gap(one: Estimate, scale: int, digits: int) -> str:
    if not one.count:
        return "·"
    mean, low, high = (f"{scale * value:+.{digits}f}" for value in (one.mean, one.low, one.high))
    said = f"{mean} ({low} to {high})"
    return f"**{said}**" if one.decided else said


def _kinds(ran: Ran) -> Iterable[list[str]]:
    split_up = {policy: split(rows, lambda row: row.kind) for policy, rows in ran.items()}
    kinds = {
        row.kind: len(rows) for by_kind in split_up.values() for rows in by_kind.values() for row in rows
    }
    for kind, runs in sorted(kinds.items()):
        yield [kind, str(runs), *(str(sum(row.solved for row in by[kind])) for by in split_up.values())]
