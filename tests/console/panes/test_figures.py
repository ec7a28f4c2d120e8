"""Counts of failures agree in every place, in whatever order things happen: over runs that chance makes."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import pytest

from tests.console.panes.stories import PYTEST, Story
from tui_agent.core import events
from tui_agent.core.projections.entries import OutcomeEntry
from tui_agent.core.projections.tally import tally
from tui_agent.core.result import result_of
from tui_agent.core.state import RunState
from tui_agent.formats.exporters.story import facts, story_of
from tui_agent.formats.exporters.wording import counts
from tui_agent.frontend.lines.account import account
from tui_agent.frontend.lines.incident import incident_lines, told
from tui_agent.frontend.lines.outlook import against, in_favour
from tui_agent.frontend.lines.reports import status_lines
from tui_agent.frontend.lines.styled import text_of
from tui_agent.quantities import of_failures
from tui_agent.session.replay import EventList
from tui_agent.store import summary

CALLS = (
    ("bash", {"command": "make"}),
    ("bash", {"command": "python -m pytest -q"}),
    ("read_file", {"path": "carts.py"}),
    ("read_file", {"path": "shop/cart.py"}),
    ("grep", {"pattern": "x"}),
    ("edit_file", {"path": "a.py", "old": "a", "new": "b"}),
)
MESSAGES = (
    PYTEST,
    "There is no file 'carts.py'. Did you mean 'shop/cart.py'?",
    "exit code 1",
    "exit code 2: no rule",
)


class Chance(Story):
    """A run of which chance decides each step, as far as the order of events allows any."""

    def __init__(self, seed: int, *, delegates: bool = True) -> None:
        self.chance, self.delegates = random.Random(seed), delegates
        super().__init__(policy=self.chance.choice(("combined", "forge", "gigi", "funnelcanary", "hpd")))

    def go(self, runs: int = 2) -> Iterator[Story]:
        """Tell the runs, and stop after each step."""
        for _ in range(runs):
            yield self.run("Go.")
            for _ in range(self.chance.randint(1, 9)):
                yield from self._iteration()
            yield self.add(
                events.RunFinished(outcome=self.chance.choice(list(events.Outcome)), answer="Done.")
            )

    def _iteration(self) -> Iterator[Story]:
        chance = self.chance
        yield self.ask_model(chance.choice((None, "Read the error.")))
        while chance.random() < 0.2:
            fault = events.Fault(kind=chance.choice(list(events.FaultKind)), message="overloaded")
            yield self.add(
                events.ModelFaulted(fault=fault, iteration=self.iteration, model="m", action="retry")
            )
        if chance.random() < 0.15:
            failure = events.Failure(kind=events.FailureKind.INVALID_TOOL_CALL, message="no JSON")
            yield self.add(events.ReplyRejected(failure=failure))
        else:
            calls = self.reply("", *chance.choices(CALLS, k=chance.randint(0, 3)))
            yield self
            for call in calls:
                yield from self._call(call)
        if chance.random() < 0.1:
            return  # the run was interrupted, or its process ended, in the middle of it
        yield self.judge(chance.choice((None, "Read the error.")))
        if chance.random() < 0.15 and self.state.metrics.incidents.open:
            key = chance.choice(list(self.state.metrics.incidents.open))
            yield self.add(events.EscalationRaised(id="e", question="What now?", source="attempts", key=key))
            if chance.random() < 0.8:
                choice = chance.choice(("answer", "retry", "skip"))
                yield self.add(events.EscalationAnswered(id="e", choice=choice, text="go on"))

    def _call(self, call: str) -> Iterator[Story]:
        match self.chance.randint(0, 9):
            case 0 | 1 | 2 | 3:
                yield self.succeed(call, "done")
            case 4:
                yield self.refuse(call, "blocked", "It has failed 3 times.")
            case 5 if self.delegates:
                lane, taken = Chance(self.chance.randint(0, 10**6), delegates=False), 1
                for _ in lane.go(1):
                    for event in lane.events[taken:]:
                        self.add(
                            events.LaneEvent.model_validate({"lane": call, "name": "look", "event": event})
                        )
                    taken = len(lane.events)
                    yield self
                if self.chance.random() < 0.7:
                    yield self.succeed(call, "looked")
            case _:
                yield self.fail(call, self.chance.choice(MESSAGES))


def said(state: RunState) -> Iterator[tuple[str, bool]]:
    """Each place, and whether it says what the one function counts."""
    count, ended = tally(state), state.run.outcome is not None
    words = count.in_words(ended=ended)
    yield "status", words in "\n".join(text_of(line) for line in status_lines(state, 200))
    problem, strip = told(state), [text_of(line) for line in incident_lines(state, 400, roomy=True)]
    if len(strip) == 1:
        yield "strip", not count.failures or words in strip[0]
    else:
        assert problem is not None
        others = count.left - problem.incident.times
        found = re.search(r"(\d+) other failures? open", strip[0])
        yield "strip", (int(found[1]) if found else 0) == others
    favour = [line for line in in_favour(state) if line.endswith("recovered")]
    recovered = f"{count.recovered} failure{'s' * (count.recovered != 1)} of {count.failures} recovered"
    yield "for", favour == ([recovered] if count.recovered else [])
    speaks = any(
        re.search("failed|same error|does not answer|without a usable", line) for line in against(state)
    )
    yield "against", speaks == bool(count.open) or not state.running
    own, alone = state.metrics, ended or not state.lanes
    yield (
        "counts of the run",
        not alone
        or (count.failures, count.recovered, count.left)
        == (
            own.failures,
            own.recovered_same_call + own.recovered_worked_round,
            own.unrecovered,
        ),
    )
    yield "export", not alone or words in counts(own)


@pytest.mark.parametrize("seed", range(12))
def test_every_place_says_the_same_figures_after_every_event(seed: int) -> None:
    story = Chance(seed)
    for _ in story.go():
        wrong = [place for place, agrees in said(story.state) if not agrees]
        assert not wrong, (seed, story.seq, wrong)
        if story.state.run.outcome is None:
            continue
        result, metrics = result_of(story.state), story.state.metrics
        assert result.failures == result.recoveries + result.unrecovered == metrics.failures
        closing = next(
            e for e in reversed(list(story.state.conversation.entries)) if isinstance(e, OutcomeEntry)
        )
        words = of_failures(result.failures, result.recoveries)
        assert (words in list(account(closing))) == bool(result.failures)

    told_again, source = story_of(story.events), EventList(story.events)
    row, damage = summary._summed(source, summary.SessionRow("s"), [])
    total = {name: told_again.total(name) for name in ("failures", "recoveries")}
    assert damage is None
    assert (row.failures, row.recoveries) == (total["failures"], total["recoveries"])
    assert ("Failures", f"{total['failures']:,}") in [(name, str(value)) for name, value in facts(told_again)]
