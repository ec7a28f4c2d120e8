"""The side is slim until something fails, opens then, and goes back ten steps after the last open failure."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.console.live_harness import LiveSession, live
from tests.console.panes.stories import Story
from tui_agent.console.looks.pane_facts import SLIM_WIDTH
from tui_agent.console.prompt.prompt import Prompt
from tui_agent.core import events
from tui_agent.frontend.lines.incident import CALM_AFTER, is_calm


def after(*worked: bool, same: int = 0) -> Story:
    """A run of steps with a call each: the same call in the first `same` of them, another in each after them."""
    story = Story().run("Go.")
    for place, each in enumerate(worked):
        story.ask_model()
        (call,) = story.reply("", ("bash", {"command": "make" if place < same else f"ls {place}"}))
        story.succeed(call, f"done {place}") if each else story.fail(call, "exit code 2")
        story.judge()
    return story


FAR = CALM_AFTER


@pytest.mark.parametrize(
    ("story", "calm"),
    [
        (Story(), True),
        (after(True, True), True),
        (after(False), False),
        (after(False, True, same=2), False),
        (after(False, *[True] * FAR, same=2), False),
        (after(False, *[True] * (FAR + 1), same=2), True),
        # Left open: other calls work, and this one was not tried again.
        (after(False, *[True] * (FAR - 1)), False),
        (after(False, *[True] * FAR), True),
        (after(False, *[True] * FAR, False), False),
        (after(False).run("Another task."), True),
    ],
)
def test_all_is_calm_ten_steps_after_the_last_open_failure(story: Story, calm: bool) -> None:
    assert is_calm(story.state) is calm


def test_a_question_of_recovery_ends_the_calm_and_an_approval_does_not() -> None:
    asked = after(True).add(events.EscalationRaised(id="e1", source="stuck", question="It goes in circles."))
    assert not is_calm(asked.state)
    own = after(True).add(events.EscalationRaised(id="e1", source="ask_operator", question="Which file?"))
    assert is_calm(own.state), "nothing has failed"
    approval = after(True).add(
        events.ApprovalAsked(id="a1", call_id="c9", tool="bash", input={"command": "make"})
    )
    assert is_calm(approval.state)


def _width(console: LiveSession) -> int:
    return int(console.screen.query_one("#recovery").region.width)


def _fails(console: LiveSession) -> None:
    """The run's call fails."""
    call = events.ToolCall(id="c1", name="bash", arguments='{"command": "make"}')
    failure = events.Failure(
        kind=events.FailureKind.TOOL_EXECUTION, tool="bash", input={"command": "make"}, message="exit code 2"
    )
    console.session.record(
        events.ReplyFinished(text="", calls=(call,), model="scripted:x"),
        events.ToolStarted(call_id="c1", tool="bash", input={"command": "make"}, index=0),
        events.ToolFailed(
            call_id="c1",
            tool="bash",
            input={"command": "make"},
            index=0,
            content="exit code 2",
            failure=failure,
        ),
        events.IterationFinished(iteration=1),
    )


async def test_the_side_widens_at_a_failure_and_the_pane_that_speaks_opens() -> None:
    async with live((120, 40)) as console:
        console.session.start()
        await console.until(lambda: _width(console) == SLIM_WIDTH)
        timeline = console.screen.query_one("#timeline").region.height
        heights = {
            name: console.screen.query_one(f"#{name}").region.height for name in ("ring", "attempts", "note")
        }
        assert set(heights.values()) == {3}
        assert timeline > 15
        _fails(console)
        await console.until(lambda: _width(console) > SLIM_WIDTH)
        await console.until(lambda: console.screen.query_one("#ring").region.height == 4)
        assert "4 more like it: you are asked" in console.shown()
        assert console.screen.query_one("#note").region.height == 3


async def _writes(console: LiveSession) -> Callable[[], None]:
    await console.type("half a")

    def done() -> None:
        """As the keys of the prompt do, when nothing is typed for a moment."""
        console.screen.prompt.put("")
        console.screen.prompt.post_message(Prompt.Rested())

    return done


async def _reads(console: LiveSession) -> Callable[[], None]:
    for number in range(40):
        console.session.start(f"task {number}")
    await console.until(lambda: "task 39" in console.shown())
    await console.press("pageup")
    await console.until(lambda: not console.screen.dashboard.conversation.follows)
    return console.screen.dashboard.conversation.follow


async def _looks_into_a_pane(console: LiveSession) -> Callable[[], None]:
    await console.press("f3")
    await console.until(lambda: console.screen.focused.id == "ring")
    return console.screen.go_home


@pytest.mark.parametrize("busy", [_writes, _reads, _looks_into_a_pane])
async def test_nothing_moves_while_the_operator_reads_or_writes(
    busy: Callable[[LiveSession], object],
) -> None:
    async with live((120, 40)) as console:
        console.session.start()
        await console.until(lambda: _width(console) == SLIM_WIDTH)
        done = await busy(console)
        _fails(console)
        await console.until(lambda: "1 ●" in console.shown())
        assert _width(console) == SLIM_WIDTH
        done()
        if busy is not _writes:
            console.screen.redraw()
        await console.until(lambda: _width(console) > SLIM_WIDTH)


@pytest.mark.parametrize(
    ("form", "width"), [("auto", SLIM_WIDTH), ("wide", 46), ("line", 0), ("strip", 0), ("side", SLIM_WIDTH)]
)
async def test_a_start_has_the_form_that_is_set_or_remembered_under_its_former_name(
    form: str, width: int
) -> None:
    async with live((100, 24)) as console:
        console.screen.use({"panes": form})
        await console.until(lambda: _width(console) == width)
