"""What the operator ran himself: once in the conversation, and once for the model, with his next message."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from tests.store.session_events import run_started, stamp, start
from tui_agent.core.events import (
    EscalationAnswered,
    Event,
    IterationFinished,
    IterationStarted,
    ModelCallStarted,
    OperatorSpoke,
    OwnCommandEnded,
    ReplyFinished,
    Rewound,
    RunFinished,
)
from tui_agent.core.fold import fold
from tui_agent.core.names import Outcome
from tui_agent.core.state import RunState
from tui_agent.formats.exporters.html import to_html
from tui_agent.formats.exporters.markdown import to_markdown
from tui_agent.formats.exporters.plain import to_text

MADE = OwnCommandEnded(command="make", printed="all is made")
READ = "I ran `make` myself. It printed:\nall is made"
STEP: list[Event] = [
    IterationStarted(iteration=1),
    ModelCallStarted(iteration=1),
    ReplyFinished(text="working"),
    IterationFinished(iteration=1),
]
ENDED = RunFinished(outcome=Outcome.ANSWERED, answer="done")


def read_by_the_model(state: RunState) -> list[str]:
    return [
        str(message["content"])
        for group in state.history.groups
        for message in group.messages
        if message["role"] == "user"
    ]


@pytest.mark.parametrize(
    ("events", "read"),
    [
        ([MADE, run_started(task="why?")], [f"{READ}\n\nwhy?"]),
        ([run_started(task="go"), *STEP, MADE, OperatorSpoke(text="so?")], ["go", f"{READ}\n\nso?"]),
        ([run_started(task="go"), MADE, *STEP, OperatorSpoke(text="so?")], ["go", f"{READ}\n\nso?"]),
        (
            [
                run_started(task="go"),
                *STEP,
                MADE,
                EscalationAnswered(id="e", choice="answer", text="x", message="x"),
            ],
            ["go", f"{READ}\n\nx"],
        ),
        (
            [MADE, run_started(task="go"), *STEP, ENDED, MADE, MADE, run_started(2, "on")],
            [f"{READ}\n\ngo", f"{READ}\n\n{READ}\n\non"],
        ),
    ],
)
def test_the_model_reads_it_once_with_the_next_message(events: list[Event], read: list[str]) -> None:
    assert read_by_the_model(fold(stamp([start(), *events]))) == read


def test_going_back_to_before_the_message_lets_it_go_with_another() -> None:
    gone = Rewound(scope="conversation", to_seq=2)
    events = stamp([start(), MADE, run_started(task="why?"), *STEP, ENDED, gone, run_started(2, "else?")])
    assert read_by_the_model(fold(events)) == [f"{READ}\n\nelse?"]
    without = stamp(
        [start(), MADE, run_started(task="why?"), *STEP, ENDED, Rewound(scope="conversation", to_seq=1)]
    )
    assert read_by_the_model(fold([*without, *stamp([run_started(2, "else?")], len(without) + 1)])) == [
        "else?"
    ]


@pytest.mark.parametrize("export", [to_text, to_markdown, to_html])
def test_exports_hold_it_once(export: Callable[[Sequence[Event]], str]) -> None:
    text = export(stamp([start(), MADE, run_started(task="why?"), *STEP, ENDED]))
    assert text.count("all is made") == 1
    assert (export is to_text) is ("with the output of $ make" not in text)
