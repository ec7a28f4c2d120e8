"""The strip, the panes and the reports tell one story: what is open, what came of it, and in whose work."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.console.panes.stories import PYTEST, Story, answered, backing_off, streaming, tripped, troubled
from tests.console.panes.test_recovery_panes import failing, text_at
from tui_agent.console.panes import AttemptsPane, ConfidencePane, IncidentStrip, RingPane
from tui_agent.core import events
from tui_agent.core.projections.entries import OutcomeEntry
from tui_agent.core.projections.tally import tally
from tui_agent.core.result import result_of
from tui_agent.fleet.row import row_of
from tui_agent.formats.exporters.wording import counts
from tui_agent.frontend.lines.account import account
from tui_agent.frontend.lines.incident import is_calm
from tui_agent.frontend.lines.outlook import figure
from tui_agent.frontend.lines.reports import status_lines
from tui_agent.frontend.lines.styled import text_of
from tui_agent.quantities import of_failures


def blocked() -> Story:
    """One call that failed three times; the operator is asked."""
    story = Story().run("Go.")
    for _ in range(3):
        story.ask_model()
        (call,) = story.reply("", ("bash", {"command": "make"}))
        story.fail(call, "exit code 2").judge()
    key = next(iter(story.state.metrics.incidents.open))
    return story.add(events.EscalationRaised(id="e", question="What now?", source="attempts", key=key))


def after(choice: str, text: str = "") -> Story:
    """The same, answered."""
    said = {"id": "e", "choice": choice, "text": text, "tool": "bash", "input": {"command": "make"}}
    return blocked().add(events.EscalationAnswered.model_validate(said))


@pytest.mark.parametrize(
    ("story", "ends", "ladder"),
    [
        (blocked, "──▶ you", "[YOU ARE ASKED]"),
        (
            lambda: after("answer", "look into the docs"),
            "you: your words── answered at step 3 · runs again once something changes",
            "you are asked ✓",
        ),
        (
            lambda: after("retry"),
            "you: run it again── answered at step 3 · may run once more",
            "you are asked ✓",
        ),
    ],
)
async def test_the_strip_says_what_came_of_the_question(
    story: Callable[[], Story], ends: str, ladder: str
) -> None:
    rows = (await text_at(IncidentStrip, story(), (150, 40))).split("\n")
    assert rows[1].endswith(ends)
    assert ladder in rows[2]
    assert ("ASKED" in rows[2]) == ("you ▶" in ends or ends.endswith("▶ you"))


async def test_a_rung_is_present_only_until_the_model_has_read_its_note() -> None:
    story = Story().run("Go.").ask_model()
    (call,) = story.reply("", ("bash", {"command": "make"}))
    story.fail(call, "exit code 2").judge("Read the error.")
    assert "  [NOTE] › held" in await text_at(IncidentStrip, story, (150, 40))
    story.ask_model("Read the error.")
    assert "  note ✓ › held" in await text_at(IncidentStrip, story, (150, 40))


async def test_a_failure_without_a_note_is_an_error_that_the_model_sees() -> None:
    story = Story().run("Go.").ask_model()
    (call,) = story.reply("", ("bash", {"command": "make"}))
    story.fail(call, "exit code 2").judge()
    shown = await text_at(IncidentStrip, story, (150, 40))
    assert "  [ERROR SHOWN] › note › held" in shown
    assert shown.endswith("if it fails again: the model gets a note")
    story.ask_model()
    assert "  error shown ✓ › note › held" in await text_at(IncidentStrip, story, (150, 40))


ENDED: dict[str, Callable[[], Story]] = {
    "troubled": troubled,
    "tripped": tripped,
    "answered": answered,
    "failing": lambda: failing("make", "make test"),
    "asked": blocked,
    "told": lambda: after("answer", "look into the docs"),
    "streaming": streaming,
    "backing off": backing_off,
}


@pytest.mark.parametrize("outcome", [events.Outcome.ANSWERED, events.Outcome.PARTIAL])
@pytest.mark.parametrize("name", ENDED)
async def test_after_the_end_nothing_is_blocked_or_asked(name: str, outcome: events.Outcome) -> None:
    story = ENDED[name]()
    if story.state.run.outcome is None:
        story.add(events.RunFinished(outcome=outcome, answer="Done."))
    for pane in (IncidentStrip, AttemptsPane, ConfidencePane):
        said = await text_at(pane, story, (120, 30))
        assert not re.search(r"blocked|BLOCKED|\bASK|ASKED|you are asked|\bwaits for you", said), said
    assert row_of(story.state).blocked == 0


@pytest.mark.parametrize("name", ENDED)
async def test_every_place_gives_the_same_figures(name: str) -> None:
    story = ENDED[name]()
    if story.state.run.outcome is None:
        story.add(events.RunFinished(outcome=events.Outcome.PARTIAL))
    state = story.state
    count, result = tally(state), result_of(state)
    assert (count.failures, count.recovered, count.left) == (
        result.failures,
        result.recoveries,
        result.unrecovered,
    )
    words = of_failures(count.failures, count.recovered)
    closing = next(
        entry for entry in reversed(list(state.conversation.entries)) if isinstance(entry, OutcomeEntry)
    )
    status = "\n".join(text_of(line) for line in status_lines(state, 100))
    assert (words in list(account(closing))) == bool(count.failures)
    assert words in status
    assert words in counts(state.metrics)
    if count.failures:
        assert words in await text_at(IncidentStrip, story, (120, 40))
    left = sum(problem.incident.times for problem in count.open)
    assert left == count.left
    shown = figure(state.recovery)
    assert (await text_at(ConfidencePane, story, (90, 12))).startswith(shown.span.text)
    assert shown.span.text in status
    assert row_of(state).confidence == result.confidence == shown.value


@pytest.mark.parametrize(
    ("failures", "recovered", "ended", "words"),
    [
        (0, 0, True, "no failure"),
        (1, 1, True, "1 failure, recovered"),
        (1, 0, True, "1 failure, left open"),
        (2, 2, True, "2 failures, both recovered"),
        (3, 0, False, "3 failures, all open"),
        (9, 4, True, "9 failures: 4 recovered, 5 left open"),
        (9, 4, False, "9 failures: 4 recovered, 5 open"),
    ],
)
def test_failures_and_what_became_of_them_are_said_in_one_way(
    failures: int, recovered: int, ended: bool, words: str
) -> None:
    assert of_failures(failures, recovered, ended=ended) == words


def in_lane(story: Story, name: str, *inner: events.Event) -> Story:
    """A sub-agent's events, in the work of the call `name` stands for."""
    for event in inner:
        story.add(events.LaneEvent(lane=f"c-{name}", name=name, event=event))  # type: ignore[arg-type]
    return story


def with_sub_agents() -> Story:
    """Two sub-agents at work in each of which a call has failed three times."""
    story = Story().run("Go.").ask_model()
    for name in ("look", "count"):
        begun = events.RunStarted(run=1, task=name, policy="combined", model="m")
        in_lane(story, name, begun)
        for number in range(1, 4):
            call = events.ToolCall(id=f"k{number}", name="bash", arguments="{}", key=f"bash {name}")
            failure = events.Failure(
                kind=events.FailureKind.TOOL_EXECUTION, message=PYTEST, tool="bash", input={"command": name}
            )
            in_lane(
                story,
                name,
                events.IterationStarted(iteration=number),
                events.ReplyFinished(calls=(call,), model="m"),
                events.ToolFailed(
                    call_id=call.id,
                    tool="bash",
                    input={"command": name},
                    key=call.key,
                    content=PYTEST,
                    failure=failure,
                ),
                events.IterationFinished(iteration=number),
            )
    return story


async def test_what_fails_in_a_sub_agent_counts_everywhere_with_its_name() -> None:
    story = with_sub_agents()
    count = tally(story.state)
    assert (count.failures, count.left, [problem.lane for problem in count.open]) == (6, 6, ["look", "count"])
    assert not is_calm(story.state)
    strip = await text_at(IncidentStrip, story, (150, 40))
    assert strip.startswith("✗ count › bash count  ModuleNotFoundError")
    assert "3 other failures open" in strip
    attempts = await text_at(AttemptsPane, story, (90, 12))
    assert re.search(r"●●● look › bash +look +⊘ blocked", attempts)
    assert re.search(r"●●● count › bash +count +⊘ blocked", attempts)
    ring = await text_at(RingPane, story, (100, 12))
    assert "look › " in ring
    assert "count › " in ring
    against = await text_at(ConfidencePane, story, (130, 12))
    assert "- count › bash: same error 3 times, nothing changed since" in against


async def test_a_question_of_a_sub_agent_is_told_in_the_strip() -> None:
    story = with_sub_agents()
    question = events.EscalationRaised(
        id="e", question="What now?", source="attempts", key="bash look", lane="look"
    )
    strip = await text_at(IncidentStrip, in_lane(story, "look", question), (150, 40))
    assert strip.startswith("✗ look › bash look  ")
    assert "──▶ you" in strip


async def test_blocked_calls_come_before_open_ones_and_those_before_recovered_ones() -> None:
    story = Story().run("Go.")
    for path in ("a", "b", "c", "d"):
        for _ in range(2):
            story.ask_model()
            (call,) = story.reply("", ("read_file", {"path": path}))
            story.fail(call, f"There is no file {path!r}.").judge()
            if path == "a":
                break
    for _ in range(3):
        story.ask_model()
        (call,) = story.reply("", ("bash", {"command": "make"}))
        story.fail(call, "exit code 2").judge()
    story.ask_model()
    for path in ("b", "c", "d"):
        (call,) = story.reply("", ("read_file", {"path": path}))
        story.succeed(call, "text").judge()
        story.ask_model()
    rows = (await text_at(AttemptsPane, story, (90, 6))).split("\n")
    order = [row.split()[0] for row in rows if row[:1] in "●✓"]
    assert "⊘ blocked" in rows[0]
    assert order == sorted(order, key=lambda sign: sign == "✓")
