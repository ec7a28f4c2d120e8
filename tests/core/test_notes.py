"""What is new in a recovery note, as the conversation shows it."""

from __future__ import annotations

import pytest

from tui_agent.core.events import (
    Event,
    Failure,
    FailureKind,
    IterationStarted,
    ModelCallStarted,
    NotePrepared,
    ReplyFinished,
    ReplyRejected,
    RunStarted,
)
from tui_agent.core.fold import fold
from tui_agent.core.projections.entries import NoteEntry, NoticeEntry
from tui_agent.core.recovery.forge_note import forge_note

BEFORE = "bash failed (attempt 1/3).\n\n-----------\nRan 1 test in 0.002s"


@pytest.mark.parametrize(
    ("note", "fresh"),
    [
        (BEFORE.replace("0.002", "1.250"), ""),
        (BEFORE.replace("1/3", "2/3"), "bash failed (attempt 2/3)."),
        ("========\n\n" + BEFORE, ""),
        (BEFORE + "\n\nLook at the imports first.", "Look at the imports first."),
    ],
)
def test_neither_a_duration_nor_a_drawn_rule_is_new(note: str, fresh: str) -> None:
    events = [RunStarted(run=1, task="t", policy="combined", model="m")]
    for iteration, text in enumerate((BEFORE, note), 1):
        events += [
            IterationStarted(iteration=iteration),
            ModelCallStarted(iteration=iteration, model="m", note=text),
            ReplyFinished(text=f"reply {iteration}", model="m"),
        ]
    state = fold(event.stamped(number, float(number)) for number, event in enumerate(events, 1))
    notes = [entry for entry in state.conversation.entries if isinstance(entry, NoteEntry)]
    assert len(notes) == 2
    assert notes[-1].fresh == fresh


def test_a_note_that_the_operator_changed_is_told_as_such() -> None:
    notes = [
        NotePrepared(text=BEFORE),
        NotePrepared(text="Look in src.", edited=True),
        NotePrepared(text=BEFORE),
    ]
    events: list[Event] = []
    for iteration, prepared in enumerate(notes, 1):
        call = ModelCallStarted(iteration=iteration, model="m", note=prepared.text)
        events += [prepared, IterationStarted(iteration=iteration), call, ReplyFinished(text="so", model="m")]
    state = fold(event.stamped(number, float(number)) for number, event in enumerate(events, 1))
    entries = [entry for entry in state.conversation.entries if isinstance(entry, NoteEntry)]
    assert [entry.edited for entry in entries] == [False, True, False]


def test_a_note_does_not_repeat_what_the_remark_above_it_says() -> None:
    failure = Failure(kind=FailureKind.NO_TOOL_CALL, message="The reply has no tool call.")
    events = [
        RunStarted(run=1, task="t", policy="combined", model="m"),
        IterationStarted(iteration=1),
        ModelCallStarted(iteration=1, model="m"),
        ReplyFinished(text="I give up.", model="m"),
        ReplyRejected(failure=failure, rule="reply.rejected"),
        IterationStarted(iteration=2),
        ModelCallStarted(iteration=2, model="m", note=forge_note(failure, ())),
        ReplyFinished(text="Done.", model="m"),
    ]
    state = fold(event.stamped(number, float(number)) for number, event in enumerate(events, 1))
    remark = next(entry for entry in state.conversation.entries if isinstance(entry, NoticeEntry))
    note = next(entry for entry in state.conversation.entries if isinstance(entry, NoteEntry))
    assert remark.text == "Not taken as an answer: The reply has no tool call."
    assert note.fresh == "You must provide a tool call in your response."
