"""What fills the window: kinds and their tokens, in all as many as the request is estimated to have."""

from __future__ import annotations

from tui_agent.core import events
from tui_agent.core.evolve import evolve
from tui_agent.core.fold import fold
from tui_agent.core.projections.history import estimate_tokens
from tui_agent.core.request.build import build
from tui_agent.core.request.coherence import Validator
from tui_agent.core.request.context import context_use
from tui_agent.core.state import RunState


def story() -> RunState:
    def stamped(listed: list[events.Event]) -> list[events.Event]:
        return [event.stamped(seq, float(seq)) for seq, event in enumerate(listed, 1)]

    call = events.ToolCall(id="c", name="bash", arguments='{"command": "ls"}')
    read = events.ToolCall(id="d", name="read_file", arguments='{"path": "a"}')
    return fold(
        stamped(
            [
                events.SessionStarted(session_id="s", workspace="/w"),
                events.RunStarted(
                    run=1,
                    task="a task",
                    policy="combined",
                    model="m",
                    system_prompt="be useful " * 40,
                    tools=("bash", "read_file"),
                    tools_tokens=300,
                    context_tokens=10_000,
                ),
                events.IterationStarted(iteration=1),
                events.ModelCallStarted(iteration=1, model="m", tokens=400),
                events.ReplyFinished(text="Both.", calls=(call, read), prompt_tokens=500),
                events.ToolSucceeded(call_id="c", tool="bash", content="x" * 4_000),
                events.ToolSucceeded(call_id="d", tool="read_file", content="y" * 400),
                events.IterationFinished(iteration=1),
                events.OperatorSpoke(text="mind the gap"),
                events.NotePrepared(text="Try another way."),
            ]
        )
    )


def test_every_token_of_the_next_request_belongs_to_a_kind() -> None:
    state = story()
    use = context_use(state)
    assert [part.kind for part in use.parts] == [
        "system",
        "tools",
        "task",
        "operator",
        "replies",
        "results",
        "note",
    ]
    assert {part.kind: part.count for part in use.parts}["results"] == 2
    assert use.calibration == 1.25
    built = build(state, state.note, Validator())
    assert abs(use.tokens - built.tokens * 1.25) <= len(use.parts)
    assert (use.budget, use.left_out) == (10_000, 0)
    results = next(part for part in use.parts if part.kind == "results")
    assert results.tokens == round(1.25 * (estimate_tokens("x" * 4_000) + estimate_tokens("y" * 400)))


def test_what_left_or_was_summarised_is_named_and_before_the_first_run_there_is_nothing() -> None:
    state = story()
    made = events.Compacted(
        to_seq=8, groups=1, summary="s", remark="[in short]", tokens_before=2, tokens_after=1
    )
    history = state.history.apply(made.stamped(11, 11.0))
    use = context_use(evolve(state, history=history))
    assert use.left_out == 1
    assert "summary" in [part.kind for part in use.parts]
    assert "results" not in [part.kind for part in use.parts]
    assert context_use(RunState()).parts == ()
