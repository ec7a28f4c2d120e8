"""What is typed at a card of the real program arrives as it was meant, and who is there is asked for more steps."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.console.terminal import Terminal

pytestmark = pytest.mark.process

SCENARIO = """
title = "Hands"
description = "A question, then one more step each time."
task = "go"
policy = "combined"
approve = "all"

[[turns]]
label = "ask"
calls = [{ tool = "ask_operator", args = { question = "Which file?", options = ["all"] } }]

[[turns]]
calls = [{ tool = "list_dir", args = { path = "." } }]
next = "ask"
"""


AT_WORK = """
title = "At work"
description = "Two commands that are asked about, then one call that fails until the operator answers."
task = "go"
policy = "combined"
approve = "ask"

[[turns]]
calls = [{ tool = "bash", args = { command = "touch made" } }]

[[turns]]
calls = [{ tool = "bash", args = { command = "touch begun && sleep 300" } }]

[[turns]]
calls = [{ tool = "read_file", args = { path = "missing.py" } }]

[[turns]]
calls = [{ tool = "read_file", args = { path = "missing.py" } }]

[[turns]]
calls = [{ tool = "read_file", args = { path = "missing.py" } }]

[[turns]]
calls = [{ tool = "bash", args = { command = "touch last" } }]
"""


def arguments(tmp_path: Path, written: str = SCENARIO) -> list[str]:
    scenario = tmp_path / "hands.toml"
    scenario.write_text(written)
    return ["-m", "tui_agent", "--model", f"scripted:{scenario}", "--workspace", str(tmp_path), "go"]


def answers(state: Path) -> Iterator[tuple[str, str]]:
    for journal in state.rglob("events.jsonl"):
        for line in journal.read_text("utf-8").splitlines():
            event: dict[str, Any] = json.loads(line)
            if event.get("type") == "escalation_answered":
                yield event["choice"], event["text"]


def test_an_answer_that_begins_with_the_letter_of_a_choice_arrives_whole(
    start: Callable[..., Terminal], tmp_path: Path
) -> None:
    terminal = start(*arguments(tmp_path))
    terminal.shows("The agent asks", "Which file?", "Esc prompt")
    terminal.send("s")
    terminal.shows("▸ s skip, decide yourself · Enter does it")
    terminal.send("hop/pricing.py, please")
    terminal.shows("shop/pricing.py, please", "Esc prompt")
    terminal.send("\r")
    terminal.until(lambda: any(answers(tmp_path)))
    assert list(answers(tmp_path)) == [("answer", "shop/pricing.py, please")]
    terminal.send("\x11")


def test_who_is_there_is_asked_for_more_steps_unless_an_option_named_them(
    start: Callable[..., Terminal], tmp_path: Path
) -> None:
    terminal = start(*arguments(tmp_path), AGENT_TUI_MAX_ITERATIONS="1")
    terminal.shows("Which file?", "Esc prompt")
    terminal.send("src\r")
    terminal.shows("The only step is used up", "c 1 more", "n no limit", "p partial answer", "Esc prompt")
    terminal.send("c")
    terminal.shows("▸ c 1 more · Enter does it")
    terminal.send("\r")
    terminal.shows("All 2 steps are used up, the last 2 all worked", "Esc prompt")
    assert list(answers(tmp_path)) == [("answer", "src"), ("answer", "1 more")]
    terminal.send("\x11")

    hard = start(*arguments(tmp_path), "--max-iterations", "1")
    hard.shows("Which file?", "Esc prompt")
    hard.send("src\r")
    hard.shows("The only step is used up", "limit.iterations")
    hard.send("\x11")


def test_a_run_is_allowed_interrupted_told_what_to_do_instead_and_answered(
    start: Callable[..., Terminal], tmp_path: Path
) -> None:
    workspace = tmp_path / "workspace"  # beside what changes by itself
    workspace.mkdir()
    terminal = start(*arguments(tmp_path, AT_WORK), "--sandbox", "off", "--workspace", str(workspace))
    terminal.shows("Allow bash?", "touch made", "y once", "n no", "ask ⇧Tab", "Esc prompt")
    terminal.send("y\r")
    terminal.until((workspace / "made").exists)
    terminal.shows("touch begun", "y once", "Esc prompt")
    terminal.send("y\r")
    terminal.until((workspace / "begun").exists)
    terminal.send("\x1b")
    terminal.shows("Interrupted. What should it do instead?")
    terminal.send("\x1b[Z")
    terminal.shows("writes ⇧Tab")
    terminal.send("read it\r")
    terminal.shows("The agent needs you", "missing.py", "r retry once", "Esc prompt")
    lines = [f"line {number}\x1b\r" for number in range(1, 6)]  # Alt and Enter make a new line
    terminal.send("".join(lines))
    terminal.shows("line 3", "line 4", "line 5")
    terminal.send("it was removed\r")
    terminal.until(lambda: any(answers(tmp_path)))
    said = "\n".join([*(f"line {number}" for number in range(1, 6)), "it was removed"])
    assert list(answers(tmp_path)) == [("answer", said)]
    terminal.shows("touch last", "y once", "── answered at step", "runs again once something changes")
    terminal.send("\x11")
