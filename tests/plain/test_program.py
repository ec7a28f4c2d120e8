"""The plain console as a process: in a terminal, with a person's keys, and in a pipe."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.console.terminal import LIMIT, ROOT, Terminal
from tui_agent.core.fold import fold
from tui_agent.plain.program import GRACE
from tui_agent.store.journal import read_journal

pytestmark = pytest.mark.process

SCENARIO = r"""
title = "In lines"
description = "Two calls, a question, a hostile word."
task = "-"
policy = "combined"
approve = "ask"

[[turns]]
when = { user = "build" }
text = "I build\u001b]0;owned\u0007 it.\nThen I look."
calls = [{ tool = "bash", args = { command = "for i in 1 2; do echo out $i; sleep 0.2; done; touch made" } }]

[[turns]]
calls = [{ tool = "ask_operator", args = { question = "Which port?", options = ["8080", "9090"] } }]

[[turns]]
calls = [{ tool = "bash", args = { command = "sleep 300" } }]

[[turns]]
text = "Done at last."
calls = [{ tool = "finish", args = { answer = "All is built." } }]
"""


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    scenario = tmp_path / "lines.toml"
    scenario.write_text(SCENARIO)
    workspace = tmp_path / "work"
    workspace.mkdir()
    return ["-m", "tui_agent", "--plain", "--model", f"scripted:{scenario}", "--workspace", str(workspace)]


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"AGENT_TUI_STATE_DIR": str(tmp_path / "state"), "XDG_CONFIG_HOME": str(tmp_path / "config")}


@pytest.fixture
def terminal(command: list[str], env: dict[str, str]) -> Iterator[Terminal]:
    drawn = [word for word in command if word != "--plain"]
    started = Terminal(drawn, {**env, "TERM": "dumb"}, (200, 50))
    yield started
    started.close()


def answer(terminal: Terminal, text: str) -> None:
    """As a person would, who has read the question."""
    terminal.until(lambda: terminal.output.endswith(b"\n> "))
    time.sleep(GRACE)
    terminal.send(text)


def said(terminal: Terminal, *texts: str) -> None:
    terminal.until(lambda: all(text.encode() in terminal.output for text in texts))


def test_it_loads_no_module_of_textual(command: list[str], env: dict[str, str]) -> None:
    """Whatever is asked, reported or chosen."""
    program = (
        "import sys\nfrom tui_agent.cli import main\nmain(sys.argv[1:])\n"
        "print('drawn by', sorted(name for name in sys.modules if name.partition('.')[0] == 'textual'))"
    )
    asked = ("help", "status", "cost", "diff", "context", "skills", "mcp", "permissions", "why", "rewind")
    done = subprocess.run(
        [sys.executable, "-c", program, *command[2:]],
        cwd=ROOT,
        env={**os.environ, **env},
        input="".join(
            f"{line}\n" for line in ("build", "y", "1", "n", *(f"/{name}" for name in asked), "", "/quit")
        ),
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert "Go back to:" in done.stdout
    assert done.stdout.endswith("drawn by []\n")


def test_a_person_works_in_lines(terminal: Terminal) -> None:
    """Task, approval, question, interruption, command and message, on a terminal that can do nothing."""
    said(terminal, "lines instead", "Type a task", "\r\n> ")
    terminal.send("/nonsense\n")
    said(terminal, "There is no command /nonsense")
    terminal.send("/context\n")
    said(terminal, "Nothing was said yet: the first request decides.")
    terminal.send("build it\n")
    said(
        terminal,
        "Allow bash?",
        "for i in 1 2; do echo out $i; sleep 0.2; done; touch made",
        "reads it again.\r\n> ",
    )
    answer(terminal, "what?\n")
    said(terminal, "This does not answer the question")
    terminal.send("y\n")
    said(
        terminal,
        "  out 1\r\n",
        "  out 2\r\n",
        "done: bash",
        "Which port?",
        "2  9090",
        "is the answer 5.\r\n> ",
    )
    terminal.send("/status\n")
    said(terminal, "approvals")
    answer(terminal, "2\n")
    said(terminal, "  sleep 300")
    answer(terminal, "y\n")
    said(terminal, "Call: bash: sleep 300")
    terminal.send("be quick\n")
    said(terminal, "queued: be quick")
    terminal.send("\x03")
    said(terminal, "mode: PAUSED", "cancelled", "Enter or /step sends it")
    terminal.send("/auto\n")
    said(terminal, "Answer: All is built.", "The run ended, answered.")
    terminal.send("/why\n/quit\n")
    assert terminal.code() == 0
    assert b"--plain" in terminal.output[-200:]
    text = terminal.output.replace(b"\r\n", b"\n")
    assert not re.search(rb"[\x00-\x08\x0b-\x1f\x7f]", text), "no control character but line feeds"


def test_a_command_and_its_value_are_completed(command: list[str], env: dict[str, str]) -> None:
    terminal = Terminal(command, {**env, "TERM": "xterm"}, (120, 40))
    try:
        said(terminal, "Type a task", "> ")
        terminal.send("/poli\t funn\t\n")
        said(terminal, "Runs are judged by funnelcanary.")
        terminal.send("/rewi\t un\t\n")
        said(terminal, "There is nothing to go back to")
    finally:
        terminal.close()


def test_two_ctrl_c_leave_and_a_line_typed_before_a_question_does_not_answer_it(
    command: list[str], env: dict[str, str], tmp_path: Path
) -> None:
    slowly = SCENARIO.replace("[[turns]]", "[[turns]]\npace = { pause = 3.0 }", 1)
    (tmp_path / "lines.toml").write_text(slowly)
    terminal = Terminal(command, {**env, "TERM": "xterm"}, (120, 40))
    try:
        said(terminal, "Type a task", "> ")
        terminal.send("build it\n")
        said(terminal, "Run 1")
        terminal.send("y\nand a beg")  # no question stands there yet
        said(terminal, "queued: y", "Allow bash?", "reads it again.", "kept for later: and a beg")
        terminal.send("inning\n")
        said(terminal, "it is kept. The question waits.")
        terminal.send("\x03")
        said(terminal, "Interrupted", "The question was withdrawn", "Enter or /step sends it")
        terminal.send("\x03")
        assert terminal.code() == 130
        assert b"agent-tui resume" in terminal.output
        assert b"\x1b[?1049h" not in terminal.output
    finally:
        terminal.close()


def test_each_line_of_a_pipe_meets_its_question_and_its_end_answers_the_rest(
    command: list[str], env: dict[str, str], tmp_path: Path
) -> None:
    lines = "!echo mine\nbuild it\ny\n9090\n"
    given = ["--state-dir", str(tmp_path / "elsewhere")]
    done = subprocess.run(
        [sys.executable, *command, "--command-timeout", "30", *given],
        input=lines,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, **env, "TERM": "dumb"},
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    order = [
        "> !echo mine",
        "  mine",
        "> build it",
        "Model: I build it.",
        "> y",
        "  out 2",
        "> 9090",
        "sleep 300",
    ]
    places = [done.stdout.find(text) for text in order]
    assert places == sorted(places)
    assert -1 not in places, done.stdout
    assert "nobody is here who could approve bash" in done.stdout
    assert "Answer: All is built." in done.stdout
    assert re.search(rf"To go on: agent-tui resume \S+ {' '.join(given)} --plain\n", done.stdout)
    assert done.stdout.isascii()


def test_an_own_command_prints_while_it_runs_and_ctrl_c_keeps_what_it_printed(
    terminal: Terminal, tmp_path: Path
) -> None:
    said(terminal, "Type a task")
    terminal.send("!echo fir''st; sleep 300\n")
    said(terminal, "  first\r\n")
    terminal.send("\x03")
    said(terminal, "  (interrupted)\r\n")
    assert b"Cancelled" not in terminal.output
    assert terminal.output.count(b"  first\r\n") == 1
    terminal.send("build it\n")
    said(terminal, "Allow bash?")
    [session] = [path.parent for path in (tmp_path / "state").rglob("events.jsonl")]
    [task] = fold(read_journal(session).events).history.groups
    read = "I ran `echo fir''st; sleep 300` myself. It printed:\nfirst\n(interrupted)\n\nbuild it"
    assert task.messages[0]["content"] == read
    assert terminal.output.count(b"(interrupted)") == 1


WHILE_EDITING = """
title = "A command, then a question."
description = "-"
task = "-"
policy = "combined"
approve = "all"

[[turns]]
calls = [{ tool = "bash", args = { command = "until [ -e go ]; do sleep 0.05; done" } }]

[[turns]]
calls = [{ tool = "ask_operator", args = { question = "Which port?", options = ["8080", "9090"] } }]

[[turns]]
text = "It is built."
"""


@pytest.mark.parametrize("kind", ["dumb", "xterm"])
def test_a_run_goes_on_in_silence_while_the_operator_s_editor_is_open(
    env: dict[str, str], tmp_path: Path, kind: str
) -> None:
    scenario, work, editor = tmp_path / "editing.toml", tmp_path / "work", tmp_path / "editor"
    work.mkdir()
    scenario.write_text(WHILE_EDITING)
    editor.write_text(
        f"""#!/bin/sh
touch {work}/go
until grep -q '"type":"escalation_raised"' {tmp_path}/state/sessions/*/events.jsonl; do sleep 0.05; done
echo the editor begins
read typed
printf 'hurry %s' "$typed" >> "$1"
echo the editor ends
"""
    )
    editor.chmod(0o755)
    command = ["-m", "tui_agent", "--plain", "--model", f"scripted:{scenario}", "--workspace", str(work)]
    terminal = Terminal(
        [*command, "--approve", "all"], {**env, "TERM": kind, "VISUAL": str(editor)}, (120, 40)
    )
    try:
        said(terminal, "Type a task", "> ")
        terminal.send("build it\n")
        said(terminal, "Run 1")
        terminal.send("/editor\n")
        said(terminal, "the editor begins")
        terminal.send("up\n")
        said(terminal, "queued: hurry up", "Which port?")
        assert terminal.output.index(b"the editor ends") < terminal.output.index(b"Which port?")
        answer(terminal, "2\n")
        said(terminal, "It is built.")
    finally:
        terminal.close()


def test_what_breaks_beside_the_conversation_ends_it_with_words(
    command: list[str], env: dict[str, str]
) -> None:
    program = (
        "import sys\nfrom tui_agent.cli import main\nfrom tui_agent.session.session import Session\n"
        "async def wait(self): raise RuntimeError('the wait broke')\n"
        "Session.wait = wait\nraise SystemExit(main(sys.argv[1:]))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, *command[2:]],
        input="build\n",
        env={**os.environ, **env, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert ended.returncode == 1
    assert "the wait broke" in ended.stderr
