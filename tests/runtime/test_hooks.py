"""User-configured hooks hear of calls, may add to the note or block, and are never fatal."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tui_agent.config.sections import HookEvent, HookSettings
from tui_agent.core.events import HookReported
from tui_agent.runtime.hooks import HookRunner


def runner(
    tmp_path: Path, command: str, event: HookEvent = "PreToolUse", matcher: str = "", timeout: float = 20
) -> HookRunner:
    commands = [{"command": command, "timeout": timeout}]
    hooks = HookSettings.model_validate({event: [{"matcher": matcher, "hooks": commands}]})
    return HookRunner(hooks, "s1", tmp_path)


async def report(
    tmp_path: Path, command: str, event: HookEvent = "PostToolUseFailure", timeout: float = 20
) -> HookReported:
    hooks = runner(tmp_path, command, event, timeout=timeout)
    (reported,) = await hooks.run(event, "bash", "c1", {"command": "x"}, error="boom")
    return reported


def runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


async def test_a_hook_gets_the_event_as_json_on_stdin(tmp_path: Path) -> None:
    await report(tmp_path, "cat > got.json")
    got = json.loads((tmp_path / "got.json").read_text())
    assert got == {
        "session_id": "s1",
        "cwd": str(tmp_path),
        "hook_event_name": "PostToolUseFailure",
        "tool_name": "bash",
        "tool_input": {"command": "x"},
        "tool_use_id": "c1",
        "error": "boom",
    }


SAYS = [
    ("plain words of a failure hook are context", "echo try -v", "PostToolUseFailure", "try -v"),
    ("plain words of other hooks are not", "echo chatter", "PostToolUse", ""),
    (
        "additionalContext is",
        """echo '{"hookSpecificOutput": {"additionalContext": "look at the log"}}'""",
        "PostToolUse",
        "look at the log",
    ),
    ("broken JSON is taken as words", "echo '{not json'", "PostToolUseFailure", "{not json"),
]


@pytest.mark.parametrize(
    ("command", "event", "context"), [case[1:] for case in SAYS], ids=[case[0] for case in SAYS]
)
async def test_what_a_hook_says(tmp_path: Path, command: str, event: HookEvent, context: str) -> None:
    reported = await report(tmp_path, command, event)
    assert (reported.status, reported.context) == ("ok", context)


async def test_exit_code_2_blocks_with_stderr_as_the_reason(tmp_path: Path) -> None:
    reported = await report(tmp_path, "echo not here >&2; exit 2", "PreToolUse")
    assert (reported.status, reported.error) == ("blocked", "not here")


async def test_a_hook_that_fails_is_reported(tmp_path: Path) -> None:
    reported = await report(tmp_path, "echo oops >&2; exit 7")
    assert reported.status == "failed"
    assert "exit code 7: oops" in reported.error


async def test_a_hook_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    for patience in (0.2, 2.0, 60.0):  # on a busy machine a short one is over before the child is there
        reported = await report(
            tmp_path, "sleep 1000 & echo $! > part; mv part child; wait", timeout=patience
        )
        assert reported.status == "timed_out"
        if (tmp_path / "child").exists():
            break
    child = int((tmp_path / "child").read_text())
    async with asyncio.timeout(60):  # on a busy machine the killed one takes a moment to go
        while runs(child):
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("matcher", "tool", "hears"),
    [
        ("", "bash", True),
        ("*", "bash", True),
        ("ba.*", "bash", True),
        ("bas", "bash", False),
        ("write_file|edit_file", "edit_file", True),
    ],
)
async def test_a_matcher_is_a_regular_expression_over_the_whole_name(
    tmp_path: Path, matcher: str, tool: str, hears: bool
) -> None:
    hooks = runner(tmp_path, "true", matcher=matcher)
    assert bool(await hooks.run("PreToolUse", tool, "c1", {})) is hears


async def test_a_hook_that_does_not_read_its_stdin_is_no_fault(tmp_path: Path) -> None:
    hooks = runner(tmp_path, "exec true")
    (reported,) = await hooks.run("PreToolUse", "bash", "c1", {"command": "x" * 1_000_000})
    assert reported.status == "ok"
