"""The report of a bench: BENCHMARK.md, report.html with plots, results.parquet. All of it follows from the rows."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from html import escape
from pathlib import Path

from tui_agent import __version__
from tui_agent.lab.analysis import plots
from tui_agent.lab.analysis.table import text_table
from tui_agent.lab.bench.behaviours import BEHAVIOURS
from tui_agent.lab.bench.bench import ROWS
from tui_agent.lab.bench.case import all_cases
from tui_agent.lab.bench.figures import (
    Estimate,
    Measure,
    Summary,
    by_contestant,
    difference,
    estimate,
    interrupted,
    is_policy,
    losses,
    solved,
    split,
    summaries,
)
from tui_agent.lab.bench.operators import OPERATORS
from tui_agent.lab.bench.policies import ADVISED, CONTESTANTS, LEFT_OUT, REFERENCE, STANDARD
from tui_agent.lab.bench.run import Row
from tui_agent.lab.parquet import RESULTS, ParquetError, columns_of, rows_file
from tui_agent.quantities import counted

OWN = "combined"

NO_LOSS = f"No simpler rule does better than `{OWN}` in any kind of case beyond doubt."
RULE_OF = {
    "silent: claim without a test": "implicit.claim",
    "silent: edit that changes nothing": "implicit.no_change",
    "silent: error under exit code 0": "implicit.error",
    "silent: exit code hidden": "implicit.exit_code",
    "silent: no test ran": "implicit.no_tests",
    "silent: stale read": "implicit.stale",
    "silent: summary cut off": "implicit.cut",
    "silent: write without effect": "implicit.lost_write",
}
"""The rule that each kind of silent failure is there for. `implicit.returns` has no cases: its failure is no silent one
for a model that reads the error."""

INTRODUCTION = """\
# Recovery policies on equal faults

<!-- Written by `agent-tui bench report`. Do not edit. -->

Each run goes through the production loop: real tools in a real workspace, a model, and faults at the seams (the
model, a tool, the world outside). The engine itself is never touched. A *case* is data: a task, a workspace, a
check of the result, the faults, and what a model does there (`tui_agent/lab/bench/cases`).

<!-- MODELS -->

**Faults that no error text shows** (*implicit*: a result that is wrong and says nothing) cannot be seen by any rule
that reads errors. The rules `implicit.*` of `combined` check some of them. For example they ask whether a write can be
read back, whether a search's index is older than the files, and whether a test run ran a test. What none of them checks
a model notices only now and then.

What the words mean:

- *Success*: the workspace is as it was to be, and the run ended with an answer.
- *Harm*: of the healthy runs, those in which recovery asked, refused a call, turned the model round or ended the run.
- *Broken*: of the runs that succeed with retries alone, those that do not succeed here.
- Intervals are 95 %: the cases are drawn anew 1,000 times.
- Differences are paired by case, behaviour and seed.
- If an interval holds 0, no policy is named better.

`none` has no recovery at all. `retries` repeats failed model calls. The other agents' rules stand on top of `retries`.
`opencode` compares the calls of one reply, as its source does, so a model that sends one call a reply never makes it
fire. `doom-loop` is the same rule, counted over replies.
"""

OF_MACHINES = """\
**What this can say, and what not.** The models here are small machines. What they do after a failing step was
counted in recorded runs (`docs/lab/bench/behaviours.csv`): repeat, vary, alternate, try something else, adapt, give up.
How a model takes a note, a refusal or an answer is in no recording. For `repeats` it was sampled from a small real
model (`docs/lab/notes`); all other numbers are assumed (`tui_agent/lab/bench/behaviours.py`, and in the table of
behaviours below). So a difference between two policies says what follows from these habits and assumptions, and not
that a real model would do so. `--model NAME` runs a real one on the same cases."""
OF_A_MODEL = """\
**What this can say, and what not.** The model is a real one. Its provider's faults are the cases' and, besides, what
its server really did. What it does differs from run to run: few runs say little, and the intervals are over cases
alone."""


def write(rows: Sequence[Row], out: Path) -> list[Path]:
    """Write everything into the folder; the paths. Without pyarrow no Parquet is written, and the page says so."""
    written = [out / "BENCHMARK.md", out / "report.html"]
    rows = sorted(rows, key=_order)
    found = summaries(rows)
    written[0].write_text(markdown(rows, found), encoding="utf-8")
    written[1].write_text(page(rows, found), encoding="utf-8")
    try:
        with rows_file(out / RESULTS, columns_of(Row)) as add:
            add(map(asdict, rows))
        written.append(out / RESULTS)
    except ParquetError as error:
        sys.stderr.write(f"agent-tui bench: {error} The rows are in {ROWS}.\n")
    return written


def in_lines(rows: Sequence[Row]) -> str:
    """The main figures of each contestant, for a terminal."""
    head = ["policy", "success", "harm", "failures recovered", "tokens a run"]
    body = [
        [name, _share(one.success), _share(one.harm), _percent(one.recovered), _number(one.run_tokens)]
        for name, one in summaries(sorted(rows, key=_order)).items()
    ]
    return text_table(head, body, 1)


def _real(rows: Sequence[Row]) -> bool:
    """True if a real model did these runs."""
    return not {row.behaviour for row in rows} <= set(BEHAVIOURS)


def _order(row: Row) -> tuple[object, ...]:
    """Whatever the order in which runs ended, the report is the same."""
    contestant = list(CONTESTANTS).index(row.policy), [*map(str, OPERATORS)].index(row.operator)
    return (*contestant, row.case, row.behaviour, row.seed)


# --- tables ----------------------------------------------------------------------------------------------------


def markdown(rows: Sequence[Row], found: dict[str, Summary]) -> str:
    """The tables."""
    real = _real(rows)
    parts = [
        INTRODUCTION.replace("<!-- MODELS -->", OF_A_MODEL if real else OF_MACHINES),
        _counts(rows),
        "## In short",
        _short(rows),
        "## All policies",
        _overall(found, real=real),
        "## By field of the square",
        _by(rows, lambda row: row.square, solved),
        "## By kind of fault",
        _by([row for row in rows if not row.negative], lambda row: row.kind, solved),
        "## Healthy runs: harm by kind",
        _by([row for row in rows if row.negative], lambda row: row.kind, interrupted),
        *(() if real else ("## By behaviour", _behaviours())),
        "" if real else _by([row for row in rows if not row.negative], lambda row: row.behaviour, solved),
        "## Each detector's part",
        _left_out(rows),
        "## With an operator",
        _operators(rows),
        *_advised(rows),
        f"## Where `{OWN}` loses",
        _losses(rows),
        "## How it was run",
        _how(rows),
    ]
    return "\n\n".join(part.rstrip() for part in parts if part) + "\n"


def _counts(rows: Sequence[Row]) -> str:
    rows = [row for row in rows if row.policy not in ADVISED]
    cases = {row.case: row for row in rows}
    squares = split(cases.values(), lambda row: row.square)
    fields = ", ".join(f"{len(own)} {name}" for name, own in sorted(squares.items()))
    share = sum(row.negative for row in cases.values()) / max(1, len(cases))
    models = sorted({row.behaviour for row in rows})
    costs = [row.cost for row in rows if row.cost is not None]
    return (
        f"{len(rows):,} runs: {len(cases)} cases ({fields}; {share:.0%} negative), "
        f"{f'`{models[0]}`' if _real(rows) else f'{len(models)} behaviours'}, "
        f"{counted(len(by_contestant(rows)), 'contestant')}, {counted(len({row.seed for row in rows}), 'seed')}"
        f"{f'; {sum(costs):.4f} USD' if costs and _real(rows) else ''}."
    )


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table in Markdown, numbers to the right."""
    rule = ["---", *("---:" for _ in head[1:])]
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, rule, *lines))


def _share(value: Estimate) -> str:
    return f"{value.mean:.0%} ({value.low:.0%}–{value.high:.0%})" if value.count else "·"


def _points(value: Estimate) -> str:
    if not value.count:
        return "·"
    text = f"{value.mean * 100:+.1f} ({value.low * 100:+.1f} to {value.high * 100:+.1f})"
    return f"**{text}**" if value.decided else text


def _percent(value: float | None) -> str:
    return "·" if value is None else f"{value:.0%}"


def _number(value: float | None) -> str:
    return "·" if value is None else f"{value:,.0f}"


def _overall(found: dict[str, Summary], *, real: bool) -> str:
    head = [
        "policy", "success", "harm", "broken", "failures recovered", "same call", "worked round",
        "steps", "tokens", "tokens a run", "person needed", "after",
    ]  # fmt: skip
    lines = [
        [
            f"`{name}`", _share(one.success), _share(one.harm), _share(one.broken), _percent(one.recovered),
            _percent(one.same_call), _percent(one.worked_round), _number(one.steps), _number(one.tokens),
            _number(one.run_tokens), _percent(one.person_share), "·" if one.person is None else f"{one.person:,.0f} s",
        ]
        for name, one in found.items()
        if is_policy(name)
    ]  # fmt: skip
    said = (
        "*Steps* and *tokens* are medians from the first failure until none was open, of the runs that came to that. A "
        "*person* is *needed* if somebody was asked, or if the run ended without its answer. *After* is the "
        "median time until then, by the clock of the runs. "
        + ("Waits after faults of the cases are skipped and counted." if real else
           "By that clock a model reads 2,000 tokens a second and writes 40, and waits take their time.")
    )  # fmt: skip
    return f"{table(head, lines)}\n\n{said}"


def _main(rows: Sequence[Row]) -> list[str]:
    return [
        name
        for name in by_contestant(rows)
        if is_policy(name) and name not in {"notes-only", "refusals-only"}
    ]


def _by(rows: Sequence[Row], key: Callable[[Row], str], measure: Measure) -> str:
    names = _main(rows)
    grouped = {name: split(own, key) for name, own in by_contestant(rows).items() if name in names}
    keys = sorted({key(row) for row in rows})
    lines = []
    for one in keys:
        values = [
            sum(map(measure, own)) / len(own) if (own := grouped[name].get(one, [])) else None
            for name in names
        ]
        count = len({row.case for row in rows if key(row) == one})
        lines.append([one, str(count), *map(_percent, values)])
    return table(["", "cases", *(f"`{name}`" for name in names)], lines)


def _behaviours() -> str:
    head = [
        "behaviour",
        "habits of",
        "takes the way that is named",
        "minds a note",
        "minds a refusal",
        "minds a person",
        "besides",
    ]
    lines = [
        [
            one.name, one.habits, f"{one.told:.0%}", f"{one.noted:.0%}", f"{one.refused:.0%}", f"{one.asked:.0%}",
            ", ".join(
                [*(f"{move} {share:.0%}" for move, share in one.more.items())]
                + ([f"leaves its way {one.derails:.0%}"] if one.derails else [])
                + ([f"sends a call that is named {one.named:.0%}"] if one.named is not None else [])
            ) or "·",
        ]
        for one in BEHAVIOURS.values()
    ]  # fmt: skip
    sampled = "of `repeats` all but *takes* and *minds a person* were sampled from a small real model"
    return f"Habits are counted, and {sampled}; the other columns are assumed.\n\n{table(head, lines)}"


def _left_out(rows: Sequence[Row]) -> str:
    grouped = by_contestant(rows)
    if OWN not in grouped:
        return f"`{OWN}` was not run."
    own = grouped[OWN]
    names = [f"without-{name}" for name in LEFT_OUT] + ["notes-only", "refusals-only"]
    faulty, healthy = ([row for row in own if row.negative is which] for which in (False, True))
    lines = [
        [
            f"`{name}`",
            _points(difference(faulty, grouped[name], solved)),
            _points(difference(healthy, grouped[name], interrupted)),
            _points(difference(own, grouped[name], lambda row: row.tokens / 10_000)).replace("**", ""),
        ]
        for name in names
        if name in grouped
    ]
    said = (
        f"What `{OWN}` has over itself without one of its parts: the success that the part brings (more is better) and "
        "the harm that it does (less is better) in percentage points, and tokens a run in hundreds. Bold: the interval "
        "does not hold 0. `notes-only` advises and never refuses, so the stuck patterns and the breaker are off. "
        "`refusals-only` refuses and says nothing."
    )
    rules = _implicit(rows)
    return f"{said}\n\n{table(['against', 'success', 'harm', 'tokens'], lines)}\n\n{rules}".rstrip()


def _implicit(rows: Sequence[Row]) -> str:
    grouped = by_contestant(rows)
    if OWN not in grouped or "without-implicit" not in grouped:
        return ""
    own = split([row for row in grouped[OWN] if row.square.startswith("implicit")], lambda row: row.kind)
    lines = [
        [
            kind,
            f"`{RULE_OF[kind]}`" if kind in RULE_OF else "no rule",
            _points(difference(mine, grouped["without-implicit"], solved)),
        ]
        for kind, mine in sorted(own.items())
    ]
    harm = difference([row for row in grouped[OWN] if row.negative], grouped["without-implicit"], interrupted)
    return (
        f"Silent failures, rule by rule: what the rules `implicit.*` bring in success; on healthy runs they cost "
        f"{_points(harm)} points of harm.\n\n{table(['silent failure', 'rule', 'success'], lines)}"
    )


def _operators(rows: Sequence[Row]) -> str:
    grouped = by_contestant(rows)
    names = [name for name in grouped if " + " in name]
    if not names:
        return "No operator was there in these runs (`--operators absent,well,badly,late,never`)."
    bases = dict.fromkeys(name.partition(" + ")[0] for name in names)
    units = {(row.case, row.behaviour, row.seed) for name in names for row in grouped[name]}
    found = summaries([row for row in rows if (row.case, row.behaviour, row.seed) in units])
    lines = [
        [
            f"`{name}`", _share(found[name].success), _share(found[name].harm),
            _share(found[name].broken),
            f"{found[name].questions:.0f}", _percent(found[name].needed),
            "·" if found[name].person is None else f"{found[name].person:,.0f} s",
        ]
        for base in bases
        for name in (base, *(one for one in names if one.startswith(f"{base} + ")))
        if name in found
    ]  # fmt: skip
    head = ["", "success", "harm", "broken", "questions in 100 runs", "needed", "first after"]
    said = (
        "An operator answers in words. `well` says after 20 s what would help, or that nothing is wrong. `badly` says "
        "after 20 s to try again. `late` answers as `well` does, after 15 minutes. `never` does not answer, and the "
        "run is ended after an hour. *Needed*: questions in cases that nobody can solve without being told."
    )
    return f"{said}\n\n{table(head, lines)}"


def _advised(rows: Sequence[Row]) -> Sequence[str]:
    """The effect of a second model at a pivot, over the runs that come to one: until then they are the same
    runs.
    """
    grouped = by_contestant(rows)
    advisers = [name for name in ADVISED if name in grouped]
    if OWN not in grouped or not advisers:
        return ()
    own = [row for row in grouped[OWN] if row.pivots]
    faulty, healthy = ([row for row in own if row.negative is which] for which in (False, True))
    lines = []
    for name in advisers:
        asked = sum(row.advised for row in grouped[name])
        lines.append([
            f"`{name}`",
            *(_points(difference(grouped[name], which, solved)) for which in (faulty, healthy)),
            *(_change(difference(grouped[name], own, measure)) for measure in (_steps, _tokens, _seconds)),
            f"{asked / max(1, len(own)):.1f}",
            _number(sum(row.advice_tokens for row in grouped[name]) / asked if asked else None),
        ])  # fmt: skip
    helpable = [row for row in faulty if BEHAVIOURS[row.behaviour].told and not row.needs_person]
    said = (
        f"`[recovery] advisor` asks a second model at each pivot of `{OWN}`. {len(own):,} of its "
        f"{len(grouped[OWN]):,} runs come to a pivot. Only these are compared; until the pivot they are the same runs. "
        f"In {len(healthy):,} of them nothing is wrong. In {len(faulty):,} something is; of these "
        f"{_share(estimate(faulty, solved))} succeed without an adviser. {len(faulty) - len(helpable):,} of them are "
        "runs of a machine that takes no way that is named, or cases that only a person can solve. Of the other "
        f"{len(helpable):,}, {sum(row.solved for row in helpable):,} succeed without an adviser.\n\n"
        "The adviser is scripted, and knows the case and where the machine stands. `adviser-right` names what works "
        "there, and says of a healthy run that nothing is wrong. It does not know what only a person knows. "
        "`adviser-wrong` names a call that does not work. `adviser-late` says nothing for 45 s. A machine makes the "
        "call that is named as often as it takes any way that is named. So the first is the most that an adviser can "
        "bring, and the second about the most harm that one can do. The table has the differences to the same runs "
        "without an adviser, success in percentage points."
    )
    head = [
        "adviser", "success", "healthy runs done", "steps", "tokens", "seconds", "asked in a run", "tokens each time",
    ]  # fmt: skip
    return "## An adviser at the pivot", f"{said}\n\n{table(head, lines)}"


def _steps(row: Row) -> float:
    return float(row.iterations)


def _tokens(row: Row) -> float:
    return float(row.tokens)


def _seconds(row: Row) -> float:
    return row.seconds


def _change(value: Estimate) -> str:
    if not value.count:
        return "·"
    text = f"{value.mean:+,.1f} ({value.low:+,.1f} to {value.high:+,.1f})"
    return f"**{text}**" if value.decided else text


def _losses(rows: Sequence[Row]) -> str:
    found = losses(rows, OWN)
    if OWN not in by_contestant(rows):
        return f"`{OWN}` was not run."
    lines = [
        [
            loss.kind,
            loss.what,
            _points(loss.worst).replace("**", ""),
            ", ".join(f"`{name}`" for name in loss.others),
        ]
        for loss in found
    ]
    said = (
        f"Kinds of cases in which other rules do better than `{OWN}` beyond doubt. The figure is `{OWN}` over the best "
        "of them in percentage points: success below 0, or harm above 0. A kind holds two to ten cases, and many kinds "
        "and rules are compared. So a few of these would be chance."
    )
    parts = [f"{said}\n\n{table(['kind', 'of', OWN, 'rules that do better'], lines)}" if found else NO_LOSS]
    grouped = by_contestant(rows)
    kinds = split(grouped[OWN], lambda row: row.kind)
    open_ = {
        kind: value
        for kind, mine in sorted(kinds.items())
        if (value := difference(mine, grouped.get(REFERENCE, []), solved)).mean < 0 <= value.high
    }
    if open_:
        said = (
            f"Below `{REFERENCE}` in success, though the interval holds 0 (few cases, or few of them lost):"
        )
        parts.append(
            f"{said}\n\n{table(['kind', OWN], [[kind, _points(value)] for kind, value in open_.items()])}"
        )
    return "\n\n".join(parts)


def _short(rows: Sequence[Row]) -> str:
    """The figures in sentences."""
    grouped = by_contestant(rows)
    if OWN not in grouped:
        return ""
    own = grouped[OWN]
    faulty, healthy = ([row for row in own if row.negative is which] for which in (False, True))
    lines = [
        f"- `{OWN}` over `{name}`: success {_points(difference(faulty, grouped[name], solved))}, harm "
        f"{_points(difference(healthy, grouped[name], interrupted))}."
        for name in (*_main(rows), "notes-only", "refusals-only")
        if name in grouped and name != OWN
    ]
    parts = {
        "bring success": [name for name in LEFT_OUT if _decided(faulty, grouped, name, solved) > 0],
        "cost success": [name for name in LEFT_OUT if _decided(faulty, grouped, name, solved) < 0],
        "do harm": [name for name in LEFT_OUT if _decided(healthy, grouped, name, interrupted) > 0],
    }
    for what, names in parts.items():
        named = ", ".join(f"`{name}`" for name in names) or "none"
        lines.append(f"- Detectors of `{OWN}` that {what} beyond doubt: {named}.")
    said = "In percentage points; bold if the interval does not hold 0."
    return f"{said}\n\n" + "\n".join(lines)


def _decided(own: Sequence[Row], grouped: Mapping[str, list[Row]], part: str, measure: Measure) -> int:
    return difference(own, grouped.get(f"without-{part}", []), measure).decided


def _how(rows: Sequence[Row]) -> str:
    seeds = sorted({row.seed for row in rows})
    every = f"--seed {seeds[0]} --repeat {len(seeds)} --out DIR" if seeds else ""
    alone = [row for row in rows if row.operator == "absent" and row.policy not in ADVISED]
    advised = [row for row in rows if row.policy in ADVISED]
    asked = [row for row in rows if row.operator != "absent"]
    some = "" if len({row.case for row in rows}) == len(all_cases()) else "CASES "
    commands = [f"agent-tui bench {some}{_models(alone)}{_policies(alone)}{every}"]
    if asked:
        operators = ",".join(dict.fromkeys(row.operator for row in asked))
        commands.append(
            f"agent-tui bench {_models(asked)}--operators {operators} \\\n    {_policies(asked)}{every}"
        )
    if advised:
        commands.append(f"agent-tui bench {some}{_models(advised)}{_policies(advised)}{every}")
    listed = "\n".join((*commands, "agent-tui bench report DIR"))
    return (
        f"agent-tui {__version__}:\n\n```sh\n{listed}\n```\n\n"
        + ("" if _real(rows) else "The same seed gives the same journals but for times and places. ")
        + f"`agent-tui replay DIR/runs/CASE/{'MODEL' if _real(rows) else 'BEHAVIOUR'}-SEED/POLICY` opens a run. "
        "Rules of other agents are written anew from their sources, which `tui_agent/lab/bench/peers.py` names with "
        "their versions."
    )


def _policies(rows: Sequence[Row]) -> str:
    names = list(dict.fromkeys(row.policy for row in rows))
    return "" if set(names) == set(STANDARD) else f"--policies {','.join(names)} "


def _models(rows: Sequence[Row]) -> str:
    """The option that names the models of these runs; none if they are all the behaviours."""
    models = list(dict.fromkeys(row.behaviour for row in rows))
    if not set(models) <= set(BEHAVIOURS):
        return f"--model {models[0]} --max-cost USD "
    return "" if set(models) == set(BEHAVIOURS) else f"--behaviours {','.join(models)} "


# --- the page --------------------------------------------------------------------------------------------------


def page(rows: Sequence[Row], found: dict[str, Summary]) -> str:
    """The report with its plots, in one file."""
    points = [
        plots.Point(name, one.harm.mean, one.success.mean, name == OWN)
        for name, one in found.items()
        if is_policy(name)
    ]
    grouped = by_contestant(rows)
    drawings = [
        ("Success against interruptions", plots.plane(points, "healthy runs interrupted", "faults overcome"))
    ]
    if OWN in grouped:
        own = grouped[OWN]
        kinds = split([row for row in own if not row.negative], lambda row: row.kind)
        spans = [
            plots.IntervalRow(kind, value.mean, value.low, value.high)
            for kind, mine in sorted(kinds.items())
            if (value := difference(mine, grouped.get(REFERENCE, []), solved)).count
        ]
        if spans:
            title = f"{OWN} over {REFERENCE}, percentage points of success"
            drawings.append(("Recovery by kind of fault", plots.rows(spans, -1.0, 1.0, title)))
        for heading, which, measure in (
            ("What each detector brings", False, solved),
            ("What each detector costs", True, interrupted),
        ):
            spans = [
                plots.IntervalRow(name, value.mean, value.low, value.high)
                for name in LEFT_OUT
                if (others := grouped.get(f"without-{name}"))
                and (
                    value := difference([row for row in own if row.negative is which], others, measure)
                ).count
            ]
            if spans:
                words = "harm on healthy runs" if which else "success on faults"
                drawings.append((heading, plots.rows(spans, -0.25, 0.25, f"{words}, percentage points")))
    title, _, rest = markdown(rows, found).partition("\n\n")
    return plots.page(title.lstrip("# "), drawings, _html(rest))


def _html(text: str) -> str:
    """The Markdown that stands above, as HTML."""
    blocks = []
    for block in text.split("\n\n"):
        lines = block.splitlines()
        if not lines or block.startswith("<!--"):
            continue
        if lines[0].startswith("#"):
            level = len(lines[0]) - len(lines[0].lstrip("#"))
            blocks.append(f"<h{level}>{_inline(lines[0].lstrip('# '))}</h{level}>")
        elif lines[0].startswith("|"):
            blocks.append(_html_table(lines))
        elif lines[0].startswith("- "):
            blocks.append(f"<ul>{''.join(f'<li>{_inline(line[2:])}</li>' for line in lines)}</ul>")
        elif lines[0].startswith("```"):
            blocks.append(f"<pre>{escape(chr(10).join(lines[1:-1]))}</pre>")
        else:
            blocks.append(f"<p>{_inline(' '.join(lines))}</p>")
    return "".join(blocks)


def _html_table(lines: Sequence[str]) -> str:
    cells = [
        [cell.strip() for cell in line.removeprefix("|").removesuffix("|").split(" | ")]
        for line in lines
        if not line.startswith("| ---")
    ]
    head, *rest = cells
    made = "".join(f"<th>{_inline(cell)}</th>" for cell in head)
    body = "".join(f"<tr>{''.join(f'<td>{_inline(cell)}</td>' for cell in row)}</tr>" for row in rest)
    return f"<table><tr>{made}</tr>{body}</table>"


def _inline(text: str) -> str:
    text = re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(text, quote=False))
    text = re.sub(r"\*\*([^*]+)\*\*", r"<b>\1</b>", text)
    return re.sub(r"\*([^*]+)\*", r"<i>\1</i>", text)
