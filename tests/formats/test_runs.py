"""Files of many runs: their numbers, the empty ones, their grades, and OpenHands' evaluation results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.formats import samples
from tests.formats.loading import load_transcript
from tests.formats.samples import chat_call
from tests.formats.test_importers import EXPECTED, outcomes, results
from tui_agent.core.events import Notice, ReplyFinished, ReplyRejected, RunStarted
from tui_agent.formats.importers.load import find_transcripts, load_transcripts
from tui_agent.formats.importers.transcript import TranscriptError

TALK = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hello."}]


def _write(path: Path, content: Any) -> Path:
    path.write_text(json.dumps(content))
    return path


def test_runs_keep_the_number_of_the_file_when_others_are_empty(tmp_path: Path) -> None:
    runs = [{"task_id": number, "reward": 1.0, "traj": [] if number == 1 else TALK} for number in range(4)]
    path = _write(tmp_path / "runs.json", runs)
    loaded = load_transcripts(path)
    assert [(run.index, run.title) for run in loaded] == [
        (0, "task 0, trial ?"),
        (2, "task 2, trial ?"),
        (3, "task 3, trial ?"),
    ]
    assert (loaded[0].report.runs, loaded[0].report.empty) == (4, 1)
    notice = loaded[1].events[1]
    assert isinstance(notice, Notice)
    assert "Empty runs: 1 of 4." in notice.text
    assert "Run 3 of 4 in the file." in notice.text
    assert load_transcript(path, run=4).title == "task 3, trial ?"
    with pytest.raises(TranscriptError, match="run 2 is empty"):
        load_transcript(path, run=2)
    with pytest.raises(TranscriptError, match="it holds 4 runs, and run 5 was asked for"):
        load_transcript(path, run=5)


@pytest.mark.parametrize(
    "labels",
    [
        {"a__a-1": 1, "b__b-2": 0},
        {"a__a-1": True, "b__b-2": False},
        {"resolved_ids": ["a__a-1"], "unresolved_ids": ["b__b-2"], "total_instances": 2},
    ],
)
def test_a_resolved_file_beside_the_runs_grades_them(labels: dict[str, Any], tmp_path: Path) -> None:
    _write(tmp_path / "resolved.json", labels)
    _write(tmp_path / "one.traj.json", {**samples.mini_swe_agent(), "instance_id": "a__a-1"})
    _write(tmp_path / "b__b-2.traj.json", samples.mini_swe_agent())
    _write(tmp_path / "c__c-3.traj.json", samples.mini_swe_agent())
    found = find_transcripts([tmp_path])
    grades = {path.name: load_transcript(path).reward for path in found}
    assert grades == {"one.traj.json": 1.0, "b__b-2.traj.json": 0.0, "c__c-3.traj.json": None}


@pytest.mark.parametrize("labels", ["[", "[1]", '{"x": "yes"}', '{"resolved_ids": 7}'])
def test_a_resolved_file_that_says_nothing_grades_nothing(labels: str, tmp_path: Path) -> None:
    (tmp_path / "resolved.json").write_text(labels)
    assert load_transcript(_write(tmp_path / "x.traj.json", samples.mini_swe_agent())).reward is None


def test_conversations_graded_beside_their_messages_keep_grade_task_and_failures(tmp_path: Path) -> None:
    failed = '{"exit_code": 1, "output": "Unknown column"}'
    messages = [
        {"role": "user", "content": "How many?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [chat_call("c0", "execute", command="SELECT x")],
        },
        {"role": "tool", "tool_call_id": "c0", "content": failed},
    ]
    answered = [*messages, {"role": "assistant", "content": "I am finished. submit"}]
    path = _write(
        tmp_path / "runs.json",
        [
            {"messages": messages, "solved": 0, "task": "spider-0", "submitted": False},
            {"messages": answered, "solved": 1, "task": "spider-1", "submitted": True},
        ],
    )
    loaded = load_transcripts(path)
    assert [(run.title, run.reward) for run in loaded] == [("spider-0", 0.0), ("spider-1", 1.0)]
    assert [results(run) for run in loaded] == [[("execute", "failed", "tool_execution")]] * 2
    assert [outcomes(run) for run in loaded] == [["interrupted"], ["answered"]]


# --- OpenHands' output.jsonl ---------------------------------------------------------------------------------


HISTORY = samples.openhands_history()


def _task(history: list[Any], **more: Any) -> dict[str, Any]:
    return {"instance_id": "a__a-1", "metadata": {"llm_config": {"model": "m-1"}}, "history": history, **more}


def test_a_history_of_actions_and_observations_is_a_run(tmp_path: Path) -> None:
    path = tmp_path / "output.jsonl"
    path.write_text(
        samples.lines([_task(HISTORY, test_result={"report": {"resolved": True}}), _task([], resolved=0)])
    )
    (run,) = load_transcripts(path)
    assert (run.source, run.title, run.reward, run.report.empty) == ("OpenHands results", "a__a-1", 1.0, 1)
    assert results(run) == EXPECTED["openhands_results"][1]
    assert outcomes(run) == ["answered"]
    rejected = [event.failure.kind for event in run.events if isinstance(event, ReplyRejected)]
    assert rejected == ["invalid_tool_call"]
    assert [event.task for event in run.events if isinstance(event, RunStarted)] == ["Fix the test"]
    assert run.report.understood + sum(run.report.skipped.values()) == run.report.records


def test_pairs_of_action_and_observation_are_the_same_run(tmp_path: Path) -> None:
    pairs = [
        [samples.action(0, "message", "user", content="Fix the test"), {}],
        [
            samples.action(1, "run", command="pytest"),
            samples.seen(2, "run", "1 failed", extras={"exit_code": 1}),
        ],
        [samples.action(3, "finish", outputs={"content": "Done."}), samples.seen(4, "null", "")],
    ]
    (run,) = load_transcripts(
        _write(tmp_path / "output.jsonl", _task(pairs, test_result={"resolved": False}))
    )
    assert results(run) == [("run", "failed", "tool_execution"), ("finish", "ok", "")]
    assert run.reward == 0.0


def test_calls_of_one_reply_stay_together_with_the_arguments_as_sent(tmp_path: Path) -> None:
    calls = [chat_call(key, "execute_bash", command=key) for key in ("k1", "k2")]
    response = {
        "id": "r-1",
        "model": "m-2",
        "choices": [{"message": {"tool_calls": calls}}],
        "usage": {"prompt_tokens": 7},
    }
    history: list[dict[str, Any]] = [samples.action(0, "message", "user", content="Look")]
    for number, key in enumerate(("k1", "k2"), 1):
        made = {
            "tool_call_metadata": {
                "function_name": "execute_bash",
                "tool_call_id": key,
                "model_response": response,
            }
        }
        history.append({**samples.action(number, "run", command="x"), **made})
    for number, key in enumerate(("k2", "k1"), 3):
        history.append({**samples.seen(number, "run", key), "tool_call_metadata": {"tool_call_id": key}})
    (run,) = load_transcripts(_write(tmp_path / "output.jsonl", [_task(history)]))
    (reply,) = [event for event in run.events if isinstance(event, ReplyFinished)]
    assert [(call.name, json.loads(call.arguments)) for call in reply.calls] == [
        ("execute_bash", {"command": "k1"}),
        ("execute_bash", {"command": "k2"}),
    ]
    assert (reply.model, reply.prompt_tokens) == ("m-2", 7)


def test_a_history_of_the_newer_events_is_read_as_such(tmp_path: Path) -> None:
    path = tmp_path / "output.jsonl"
    path.write_text(samples.lines([_task(samples.openhands())]))
    (run,) = load_transcripts(path)
    assert [end for _, end, _ in results(run)] == ["failed", "ok", "failed", "refused", "ok"]
    assert (run.source, run.title) == ("OpenHands results", "a__a-1")
