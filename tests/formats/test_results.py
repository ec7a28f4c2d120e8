"""Which result belongs to which call, and whether it is a failure, a cancellation or a rejected reply."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.formats import samples
from tests.formats.loading import load_transcript
from tests.formats.samples import chat_call
from tests.formats.test_importers import outcomes, results
from tui_agent.core.events import ReplyFinished, ReplyRejected, RunStarted, ToolCancelled, ToolFailed
from tui_agent.formats.importers.load import Imported


def _load(folder: Path, content: Any) -> Imported:
    path = folder / "recording"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return load_transcript(path)


def _rejections(imported: Imported) -> list[tuple[str, str]]:
    failures = [event.failure for event in imported.events if isinstance(event, ReplyRejected)]
    return [(str(failure.kind), failure.message.splitlines()[0]) for failure in failures]


# --- mini-swe-agent ------------------------------------------------------------------------------------------


def _mini(*messages: dict[str, Any]) -> dict[str, Any]:
    head = [{"role": "system", "content": "Tools."}, {"role": "user", "content": "Fix the test"}]
    return {
        "trajectory_format": "mini-swe-agent-1.1",
        "info": {"exit_status": "Submitted"},
        "messages": [*head, *messages],
    }


def _asked(key: str, command: str) -> dict[str, Any]:
    return {"role": "assistant", "content": "", "tool_calls": [chat_call(key, "bash", command=command)]}


def _ran(key: str, code: int, output: str) -> dict[str, Any]:
    content = f"<returncode>{code}</returncode>\n<output>\n{output}\n</output>"
    return {"role": "tool", "tool_call_id": key, "content": content, "extra": {"returncode": code}}


def _format_error(error: str, **extra: Any) -> dict[str, Any]:
    content = f"Tool call error:\n\n<error>\n{error}\n</error>\n\nHere is general guidance."
    return {"role": "user", "content": content, "extra": {"interrupt_type": "FormatError", **extra}}


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("No tool calls found in the response. Every response MUST include one.", "no_tool_call"),
        ("Error parsing tool call arguments: Expecting value.", "invalid_tool_call"),
        ("Missing 'command' argument in bash tool call.", "invalid_tool_call"),
        ("Unknown tool 'python'.", "unknown_tool"),
    ],
)
def test_a_format_error_after_a_result_is_a_rejected_reply_and_leaves_the_result(
    error: str, kind: str, tmp_path: Path
) -> None:
    imported = _load(
        tmp_path,
        _mini(
            _asked("c1", "pytest"),
            _ran("c1", 1, "1 failed"),
            _format_error(error),
            _asked("c2", "pytest -q"),
            _ran("c2", 0, "1 passed"),
        ),
    )
    assert results(imported) == [("bash", "failed", "tool_execution"), ("bash", "ok", "")]
    failed = next(event for event in imported.events if isinstance(event, ToolFailed))
    assert failed.failure.message == "exit code 1\n1 failed"
    assert _rejections(imported) == [(kind, "Tool call error:")]


def test_the_rejected_reply_shows_what_the_model_wrote(tmp_path: Path) -> None:
    refused = _format_error("x", n_actions=2, model_response="two blocks")
    imported = _load(tmp_path, _mini(_asked("c1", "ls"), _ran("c1", 0, "a"), refused))
    replies = [event for event in imported.events if isinstance(event, ReplyFinished)]
    assert [reply.text for reply in replies] == ["", "two blocks"]
    assert _rejections(imported) == [("invalid_tool_call", "Tool call error:")]


@pytest.mark.parametrize("blocks", [0, 1])
def test_a_reply_that_the_harness_did_not_take_is_rejected(blocks: int, tmp_path: Path) -> None:
    text = "\n".join(["I think", *["```bash\nls\n```"] * blocks])
    refusal = "Please always provide EXACTLY ONE action in triple backticks, found some."
    said = {"role": "assistant", "content": text}
    imported = _load(tmp_path, _mini(said, {"role": "user", "content": refusal}))
    assert results(imported) == []
    assert _rejections(imported) == [("no_tool_call", refusal)]


def test_several_commands_that_a_harness_refuses_for_their_number_are_no_error_of_form(
    tmp_path: Path,
) -> None:
    text = "```bash\nls\n```\nand\n```bash\npwd\n```"
    refusal = "Please always provide EXACTLY ONE action in triple backticks, found 2 actions."
    said = {"role": "assistant", "content": text}
    imported = _load(tmp_path, _mini(said, {"role": "user", "content": refusal}))
    assert results(imported) == [("bash", "cancelled", "")] * 2
    assert _rejections(imported) == []


def test_a_call_that_was_left_out_is_cancelled(tmp_path: Path) -> None:
    left_out = _ran("c1", -1, "")
    left_out["extra"]["exception_info"] = "action was not executed"
    imported = _load(tmp_path, _mini(_asked("c1", "ls"), left_out))
    assert results(imported) == [("bash", "cancelled", "")]


def test_what_the_operator_says_after_the_last_result_is_no_result(tmp_path: Path) -> None:
    imported = _load(
        tmp_path, _mini(_asked("c1", "ls"), _ran("c1", 0, "a"), {"role": "user", "content": "Go on"})
    )
    assert results(imported) == [("bash", "ok", "")]
    assert _rejections(imported) == []


# --- Claude Code ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "<tool_use_error>Sibling tool call errored</tool_use_error>",
        "<tool_use_error>Error: Sibling tool call errored</tool_use_error>",
        "<tool_use_error>Cancelled: parallel tool call Bash(grep x) errored</tool_use_error>",
        "<tool_use_error>Streaming fallback - tool execution discarded</tool_use_error>",
    ],
)
def test_a_call_dropped_because_another_of_its_reply_failed_is_cancelled(text: str, tmp_path: Path) -> None:
    use = [{"type": "tool_use", "id": key, "name": "Bash", "input": {"command": key}} for key in ("t1", "t2")]
    imported = _load(
        tmp_path,
        samples.lines(
            [
                samples.claude("user", "u1", None, "Fix it", 0),
                samples.claude("assistant", "a1", "u1", use, 1, message={"id": "m1"}),
                samples.claude(
                    "user", "r1", "a1", samples.tool_result("t1", "Exit code 1\nno", is_error=True), 2
                ),
                samples.claude("user", "r2", "r1", samples.tool_result("t2", text, is_error=True), 2),
            ]
        ),
    )
    assert results(imported) == [("Bash", "failed", "tool_execution"), ("Bash", "cancelled", "")]
    cancelled = next(event for event in imported.events if isinstance(event, ToolCancelled))
    assert "another call of the same reply" in cancelled.reason


def test_records_that_all_lack_a_parent_are_one_conversation(tmp_path: Path) -> None:
    records = [
        one if one.get("isSidechain") else {**one, "parentUuid": None}
        for one in samples.claude_code()
        if one.get("uuid") not in {"u0", "a0"}
    ]
    imported = _load(tmp_path, samples.lines(records))
    assert "message of an abandoned branch" not in imported.report.skipped
    assert [event.task for event in imported.events if isinstance(event, RunStarted)] == [
        "Fix the test",
        "Leave x alone",
    ]
    assert outcomes(imported) == ["interrupted", "answered"]


# --- OpenAI messages and tau-bench ---------------------------------------------------------------------------


def _conversation(*messages: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"task_id": 0, "trial": 0, "reward": 0.0, "traj": [{"role": "user", "content": "Hello"}, *messages]}
    ]


def test_results_without_an_id_belong_to_the_call_of_their_name_in_order(tmp_path: Path) -> None:
    calls = [
        {"type": "function", "function": {"name": name, "arguments": "{}"}}
        for name in ("find", "book", "find")
    ]
    imported = _load(
        tmp_path,
        _conversation(
            {"role": "assistant", "content": None, "tool_calls": calls},
            {"role": "tool", "name": "book", "content": "Error: full"},
            {"role": "tool", "name": "find", "content": "first"},
            {"role": "tool", "name": "find", "content": "Error: second"},
        ),
    )
    assert results(imported) == [
        ("find", "ok", ""),
        ("book", "failed", "tool_execution"),
        ("find", "failed", "tool_execution"),
    ]
    assert not imported.report.skipped


def test_a_result_without_id_and_name_belongs_to_the_oldest_open_call(tmp_path: Path) -> None:
    calls = [chat_call("k1", "find"), chat_call("k2", "book")]
    imported = _load(
        tmp_path,
        _conversation(
            {"role": "assistant", "content": None, "tool_calls": calls},
            {"role": "tool", "content": "Error: none"},
            {"role": "tool", "content": "booked"},
        ),
    )
    assert results(imported) == [("find", "failed", "tool_execution"), ("book", "ok", "")]


def test_a_result_without_an_id_never_answers_a_call_of_another_name(tmp_path: Path) -> None:
    imported = _load(
        tmp_path,
        _conversation(
            {"role": "assistant", "content": None, "tool_calls": [chat_call("k1", "find")]},
            {"role": "tool", "name": "book", "content": "booked"},
        ),
    )
    assert results(imported) == [("find", "cancelled", "")]
    assert imported.report.skipped == {"result without its call": 1}


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ("Error: full", "tool_execution"),
        ("Unknown action fly", "unknown_tool"),
        ("Error: Book.invoke() got an unexpected keyword argument 'seat'", "invalid_tool_call"),
        ("Error: Book.invoke() missing 1 required positional argument: 'day'", "invalid_tool_call"),
    ],
)
def test_a_call_that_tau_bench_cannot_run_is_no_failed_execution(
    content: str, kind: str, tmp_path: Path
) -> None:
    imported = _load(
        tmp_path,
        _conversation(
            {"role": "assistant", "content": None, "tool_calls": [chat_call("k1", "book")]},
            {"role": "tool", "tool_call_id": "k1", "name": "book", "content": content},
        ),
    )
    assert results(imported) == [("book", "failed", kind)]


# --- SWE-agent -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "observation", "failed"),
    [
        ("submit 'HTB{x}'\n", "Wrong flag!", True),
        ("submit\n", "diff --git a/x b/x", False),
        (
            "python a.py |\n",
            "Your bash command contained syntax errors and was NOT executed. Please fix",
            True,
        ),
        (
            "str_replace_editor view /w/b.py\n",
            "The path /w/b.py does not exist. Please provide a path.",
            True,
        ),
        ("str_replace_editor view /w/a.py\n", "Here's the result of running `cat -n` on /w/a.py", False),
        ("vim a.py\n", "Operation 'vim a.py' is not supported by this environment.", True),
        ("edit_anthropic x\n", "Your proposed edit has introduced new syntax error(s). Please read", True),
        ("cat notes\n", "Wrong flag! is what the program prints", False),
        ("true\n", "Your command ran successfully and did not produce any output.", False),
    ],
)
def test_what_swe_agent_refuses_is_a_failed_step(
    action: str, observation: str, failed: bool, tmp_path: Path
) -> None:
    step = {"action": action, "observation": observation, "response": "r", "thought": "t"}
    imported = _load(tmp_path, {"trajectory": [step], "history": [], "info": {"exit_status": "early_exit"}})
    assert [end for _, end, _ in results(imported)] == ["failed" if failed else "ok"]


@pytest.mark.parametrize(
    ("observation", "kind"),
    [
        ("Your last output did not use any tool calls!", "no_tool_call"),
        ("Your output was not formatted correctly. You must include one command.", "invalid_tool_call"),
        (
            "Your action could not be parsed properly: Missing required argument(s): path.",
            "invalid_tool_call",
        ),
        ("", "no_tool_call"),
    ],
)
def test_a_step_without_an_action_is_rejected_by_its_kind(
    observation: str, kind: str, tmp_path: Path
) -> None:
    steps = [
        {"action": "", "observation": observation, "response": "r", "thought": "t"},
        {"action": "ls", "observation": "a", "response": "r", "thought": "t"},
    ]
    imported = _load(tmp_path, {"trajectory": steps, "history": [], "info": {}})
    assert [rejection[0] for rejection in _rejections(imported)] == [kind]
