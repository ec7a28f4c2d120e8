"""Whole runs of a small real model under a few policies, through the production loop: which ones, and what is kept.

Cases and sums are the benchmark's. What is different is made for a model that is small and slow: few tools, calls as
text, few steps, and replies that are kept (`kept_replies.py`), so that runs can be played again without the model. The
page of what came of it is in `real_page.py`.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tui_agent.config.settings import Settings
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.values import ToolCall
from tui_agent.lab.bench.bench import ROWS, BenchError, alone, read_rows, unpriced
from tui_agent.lab.bench.case import Case
from tui_agent.lab.bench.kept_replies import KeptReplies, RememberedModel, add_line, held
from tui_agent.lab.bench.policies import CONTESTANTS, REFERENCE, Contestant
from tui_agent.lab.bench.run import RealModel, Row, Unit, run_unit
from tui_agent.models.protocol import Model, Reply
from tui_agent.tools.registry import ToolRegistry

POLICIES = (REFERENCE, "forge", "combined", "refusals-only")
"""`refusals-only` is `combined` without its notes."""
CASES = (
    *("wrong-path", "wrong-argument", "failing-edit", "missing-program", "same-failing-command", "same-call"),
    *("flaky-command/once", "flaky-command/twice", "flaky-command/three-times", "after-its-effect"),
    *("server-away/soon", "server-away/later", "file-away/soon"),
    *("plain-work", "sampling/three", "is-it-flaky/three-times", "unrelated-failures/three-ways"),
    *("probing-search/four-words", "probing-search/wide-patterns"),
    *("probing-commands/ls-four", "probing-commands/cat-guesses", "paging/cat", "paging/tail"),
)
"""Cases and families that can be done in a few steps, and whose trouble the first call meets. A third are healthy."""

MOST_STEPS = 7
LONGEST_REPLY = 80
"""Tokens: a call of these cases needs half of it."""
TEMPERATURE = 0.7
WINDOW = 7_000
TOOLS = ("read_file", "write_file", "edit_file", "list_dir", "bash", "finish")


@dataclass(frozen=True)
class SmallModel(RealModel):
    """How a small model is called. `replies`: what it said before; `asks` is false if it is not to be asked again."""

    replies: KeptReplies = field(kw_only=True)
    timed: bool = False
    asks: bool = True

    def settings_for(self, workspace: Path, state_dir: Path, contestant: Contestant) -> Settings:
        """See `RealModel.settings_for`."""
        return (
            super()
            .settings_for(workspace, state_dir, contestant)
            .replaced(tool_calls="text", context_tokens=WINDOW, max_iterations=MOST_STEPS, sub_agents=0)
        )

    def model_for(self, settings: Settings, case: Case, unit: Unit) -> Model:
        """See `RealModel.model_for`."""
        seed = random.Random(f"{unit.case}|{unit.seed}").randrange(2**31)
        drawn = settings.replaced(
            parameters={"temperature": TEMPERATURE, "max_tokens": LONGEST_REPLY, "seed": seed}
        )
        asked = super().model_for(drawn, case, unit) if self.asks else None
        first = case.steps[0].call
        opening = Reply(calls=(ToolCall(id="call-0", name=first.tool, arguments=first.sent),), cost=0.0)
        return RememberedModel(f"{unit.case}|{unit.seed}", self.replies, settings.workspace, opening, asked)

    def tools_for(self, settings: Settings) -> ToolRegistry:
        """See `RealModel.tools_for`."""
        tools = super().tools_for(settings)
        return ToolRegistry([tool for name in TOOLS if (tool := tools.get(name))])


def units(cases: Sequence[Case], model: str, seeds: Iterable[int]) -> Iterator[tuple[Case, Unit]]:
    """What is run under every policy, in a drawn order: a part of the bench is a fair part of it."""
    drawn = list(cases)
    random.Random(1).shuffle(drawn)
    for seed in seeds:
        yield from ((case, Unit(case.id, model, seed)) for case in drawn)


async def play(case: Case, unit: Unit, policy: str, scratch: Path, model: SmallModel) -> Row:
    """One run."""
    return await run_unit(case, unit, CONTESTANTS[policy], "absent", scratch, scratch / "journal", model)


async def carry_out(
    wanted: Iterable[tuple[Case, Unit]], policies: Sequence[str], model: SmallModel, at_once: int, out: Path
) -> None:
    """Run what is missing, so many cases at a time, each under one policy after the other. Raises `BenchError`.

    The model's settings say what all replies together may cost.
    """
    try:
        with held(out), tempfile.TemporaryDirectory(prefix="agent-tui-real-") as scratch:
            await _carry_out(
                wanted, policies, model, [Path(scratch) / str(one) for one in range(at_once)], out
            )
    except BlockingIOError:
        raise BenchError(f"Another bench adds to {out}: wait for its end, or end it.") from None
    except ExceptionGroup as found:
        raise found.exceptions[0] from None


async def _carry_out(
    wanted: Iterable[tuple[Case, Unit]],
    policies: Sequence[str],
    model: SmallModel,
    places: Sequence[Path],
    out: Path,
) -> None:
    """A worker in each of the places, until nothing is missing."""
    done = {(Unit(row.case, row.behaviour, row.seed), row.policy) for row in read_rows(out)}
    queue = (
        (case, unit, missing)
        for case, unit in wanted
        if (missing := [policy for policy in policies if (unit, policy) not in done])
    )

    async def work(place: Path) -> None:
        for case, unit, missing in queue:
            for policy in missing:
                row = await play(case, unit, policy, place, model)
                _check(row, model)
                add_line(out / ROWS, asdict(row))

    with alone(places[0].parent / "alone"):
        async with asyncio.TaskGroup() as workers:
            for place in places:
                workers.create_task(work(place))


def _check(row: Row, model: SmallModel) -> None:
    """Raises `BenchError` if a run says nothing of its policy, or if no further one may be paid for."""
    limit = model.settings.max_cost
    if row.outcome in ("error", "model_failed"):
        raise BenchError(
            f"The run of {row.case} under {row.policy} ended with {row.outcome}: is the server there?"
        )
    if limit is None:
        return
    if row.cost is None:
        raise unpriced(row.behaviour)
    spent = model.replies.cost
    if spent > limit or row.rule == Rule.LIMIT_COST:
        raise BenchError(
            f"The replies have cost {spent:.4f} USD, and {limit:.4f} are allowed. They are kept; a higher --max-cost "
            "goes on with the rest."
        )
