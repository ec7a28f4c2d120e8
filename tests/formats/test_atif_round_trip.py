"""A session that is exported as ATIF and imported again has the same texts, calls, failures and counts of recovery."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.formats.loading import load_transcript
from tui_agent.core import events
from tui_agent.core.fold import fold
from tui_agent.core.names import FailureKind, FaultKind, Outcome
from tui_agent.formats.exporters import export_session
from tui_agent.formats.importers.judgement import judged
from tui_agent.formats.importers.load import load_transcripts
from tui_agent.formats.importers.normalise import facts
from tui_agent.formats.importers.transcript import (
    Call,
    Ending,
    Faulted,
    Refusal,
    Result,
    Said,
    Status,
    Transcript,
    Turn,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
WORDS = TEXT.filter(str.strip)
KINDS = [FailureKind.TOOL_EXECUTION, FailureKind.INVALID_TOOL_CALL, FailureKind.UNKNOWN_TOOL]


@st.composite
def turns(draw: st.DrawFn) -> Turn:
    """A reply with up to three calls, each with an end of its own."""
    turn = Turn(1.0, draw(TEXT), draw(TEXT), model="m", prompt_tokens=draw(st.none() | st.integers(0, 9_000)))
    for number in range(draw(st.integers(0, 3))):
        written = draw(st.sampled_from(['{"a": 1}', '{"command": "make"}', '{"a": ', "[1]"]))
        turn.calls.append(Call.of(f"c{number}", draw(st.sampled_from(["bash", "read_file"])), written))
        turn.results[f"c{number}"] = Result(
            draw(st.sampled_from(get_args(Status))),
            draw(TEXT),
            2.0,
            draw(WORDS),
            draw(st.sampled_from(KINDS)),
            duration=1.0,
            unknown_effect=draw(st.booleans()),
            refusal=draw(st.sampled_from(get_args(Refusal))),
        )
    if not turn.calls:
        turn.text += " It is done."  # a text that says nothing would be judged anew
        if draw(st.booleans()):
            turn.rejected = draw(WORDS)
    return turn


FAULTS = st.builds(
    Faulted, st.builds(events.Fault, kind=st.sampled_from(FaultKind), message=WORDS), st.just(1.0)
)
STEPS = st.lists(
    st.one_of(turns(), turns(), turns(), FAULTS, st.builds(Said, WORDS, st.just(1.0))), max_size=12
)


ENDINGS = st.lists(
    st.builds(
        Ending,
        TEXT,
        st.just(3.0),
        st.sampled_from([one for one in Outcome if one is not Outcome.ANSWERED]),
        TEXT,
        st.sampled_from(["", "ring"]),
        st.sampled_from(["", "ring.stop"]),
    ),
    max_size=1,
)


def session(steps: list[Any]) -> list[events.Event]:
    """The events of these steps, judged."""
    transcript = Transcript([Said("fix it", 1.0), *steps], id="s", model="m", operator_present=False)
    told = facts(transcript, session_id="s", source="test", summary="", base_at=1.0)
    return list(judged(told, "combined"))


def kept(told: list[events.Event]) -> list[tuple[Any, ...]]:
    """The parts of a session that the export promises to keep."""
    found: list[tuple[Any, ...]] = []
    for event in told:
        match event:
            case events.RunStarted():
                found.append(("said", event.task))
            case events.OperatorSpoke():
                found.append(("said", event.text))
            case events.ReplyFinished():
                calls = [
                    (call.id, call.name, json.loads(call.arguments) if _whole(call) else call.arguments)
                    for call in event.calls
                ]
                found.append(("reply", event.text, event.reasoning, calls, event.prompt_tokens))
            case events.ReplyRejected():
                found.append(("rejected", event.failure.kind, event.failure.message))
            case events.RunFinished(outcome=outcome) if outcome is not Outcome.ANSWERED:
                found.append(("ended", outcome, event.reason, event.answer, event.detector, event.rule))
            case events.ModelFaulted():
                found.append(("fault", event.fault.kind, event.fault.message))
            case events.ToolFailed():
                failure = event.failure
                found.append(
                    (
                        "failed",
                        event.call_id,
                        event.content,
                        failure.kind,
                        failure.message,
                        failure.unknown_effect,
                    )
                )
            case events.ToolRefused():
                found.append(("refused", event.call_id, event.refusal, event.reason))
            case events.ToolResult():
                found.append((event.type, event.call_id, event.content))
    return found


def _whole(call: events.ToolCall) -> bool:
    try:
        return isinstance(json.loads(call.arguments), dict)
    except ValueError:
        return False


def receipts(told: list[events.Event]) -> tuple[int, ...]:
    metrics = fold(told).metrics
    return metrics.failures, metrics.recoveries, metrics.unrecovered, metrics.tool_calls, metrics.tool_errors


def brought_back(told: list[events.Event]) -> list[events.Event]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trajectory.json"
        path.write_text(export_session(told, "atif"), encoding="utf-8")
        return list(judged(load_transcript(path).events, "combined", operator_present=False))


@settings(max_examples=25, deadline=None)
@given(STEPS, ENDINGS)
def test_what_is_exported_comes_back(steps: list[Any], ending: list[Ending]) -> None:
    told = session([*steps, *ending])
    again = brought_back(told)
    assert kept(again) == kept(told)
    assert receipts(again) == receipts(told)


def numbered(*told: events.Event) -> list[events.Event]:
    return [event.stamped(number, float(number)) for number, event in enumerate(told, start=1)]


def asked(key: str) -> events.ReplyFinished:
    return events.ReplyFinished(calls=(events.ToolCall(id=key, name="task", arguments="{}"),))


STARTED = events.SessionStarted(session_id="s", workspace="/w")
RUN = events.RunStarted(run=1, task="fix it", policy="combined", model="m")
DONE = events.RunFinished(outcome=events.Outcome.ANSWERED, answer="done")


def test_a_sub_agent_is_a_trajectory_within_the_document_and_comes_back_as_one(tmp_path: Path) -> None:
    failure = events.Failure(kind=FailureKind.TOOL_EXECUTION, message="no rule", tool="bash")
    inside = (
        RUN.model_copy(update={"task": "look"}),
        events.ReplyFinished(calls=(events.ToolCall(id="d", name="bash"),)),
        events.ToolFailed(call_id="d", tool="bash", content="no rule", failure=failure, exit_code=2),
        events.RunFinished(outcome=events.Outcome.PARTIAL, reason="no steps left"),
    )
    lane = [events.LaneEvent(lane="c", name="looker", event=event) for event in inside]
    told = numbered(STARTED, RUN, asked("c"), *lane, events.ToolSucceeded(call_id="c", tool="task"), DONE)
    path = tmp_path / "trajectory.json"
    path.write_text(export_session(told, "atif"))
    document = json.loads(path.read_text())
    (sub,) = document["subagent_trajectories"]
    (result,) = document["steps"][1]["observation"]["results"]
    assert result["subagent_trajectory_ref"] == [{"trajectory_id": sub["trajectory_id"]}]
    (told_of,) = sub["steps"][1]["observation"]["results"]
    assert (told_of["extra"]["is_error"], told_of["extra"]["exit_code"]) == (True, 2)
    main, again = load_transcripts(path)
    assert (main.subagent, again.subagent, again.title) == (False, True, "subagent: looker")
    failed, end = kept(again.events)[-2:]
    assert failed[:4] == ("failed", "d", "no rule", FailureKind.TOOL_EXECUTION)
    assert end[:3] == ("ended", Outcome.PARTIAL, "no steps left")


@pytest.mark.parametrize(
    ("rewinds", "standing"),
    [
        ([], ["fix it", "more"]),
        ([events.Rewound(scope="both", to_seq=3)], ["fix it"]),
        ([events.Rewound(scope="files", to_seq=3)], ["fix it", "more"]),
        (
            [events.Rewound(scope="both", to_seq=3), events.Rewound(scope="both", to_seq=5, undoes=6)],
            ["fix it", "more"],
        ),
    ],
)
def test_the_conversation_that_stands_is_exported(rewinds: list[events.Event], standing: list[str]) -> None:
    told = numbered(STARTED, RUN, asked("c"), events.OperatorSpoke(text="more"), asked("e"), *rewinds)
    steps = json.loads(export_session(told, "atif"))["steps"]
    assert [step["message"] for step in steps if step["source"] == "user"] == standing
    assert [step["step_id"] for step in steps] == list(range(1, len(steps) + 1))


@pytest.mark.parametrize("ours", [7, {"status": ["ok"]}, {"fault": 3}, {"kind": {}, "changed": 4, "at": "x"}])
def test_marks_of_ours_that_were_changed_are_no_reason_to_fail(ours: Any, tmp_path: Path) -> None:
    call = {"tool_call_id": "c", "function_name": "bash", "arguments": {}, "extra": {"agent_tui": ours}}
    observation = {"results": [{"source_call_id": "c", "content": "x", "extra": {"agent_tui": ours}}]}
    more = {"extra": {"agent_tui": ours}, "tool_calls": [call], "observation": observation}
    steps = [
        {"step_id": 1, "source": "user", "message": "fix it"},
        {"step_id": 2, "source": "agent", "message": "so", **more},
        {"step_id": 3, "source": "system", "message": "odd", "extra": {"agent_tui": ours}},
    ]
    path = tmp_path / "trajectory.json"
    path.write_text(json.dumps({"schema_version": "ATIF-v1.8", "agent": {"name": "a"}, "steps": steps}))
    assert kept(load_transcript(path).events)[0] == ("said", "fix it")
