"""Claims that users of other agents reported, made again: through the loop, a server on loopback and real tools."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import openai_server as server
from tests.kept_host import KeptHost
from tests.openai_server import Answer
from tests.runtime.served_session import no_waiting as no_waiting
from tests.runtime.served_session import run_agent
from tui_agent.core import events
from tui_agent.core.receipt_lines import listed
from tui_agent.core.recovery.rules import Rule
from tui_agent.session.session import Session
from tui_agent.store.journal import read_journal

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.usefixtures("no_waiting")]

THREE_TESTS = "import unittest\n\n\nclass T(unittest.TestCase):\n" + "".join(
    f"    def test_{number}(self):\n        self.assertTrue({number})\n" for number in (1, 2, 3)
)
RUNNER = "import subprocess, sys\n\nsubprocess.run([sys.executable, '-m', 'unittest'], check=True)\n"


def call(tool: str, **arguments: str) -> Answer:
    return server.calls([(tool, json.dumps(arguments))])


def sent_back(session: Session) -> list[str]:
    rejected = (
        event for event in read_journal(session.folder).events if isinstance(event, events.ReplyRejected)
    )
    return [one.failure.message for one in rejected if one.rule == Rule.IMPLICIT_CLAIM]


async def test_a_file_that_was_said_to_be_written_without_a_write(host: KeptHost, tmp_path: Path) -> None:
    """amd/gaia#3983: the run ended as a success, and the file was never there."""
    answers = [
        call("list_dir", path="."),
        server.text("Done. Wrote `weekly_build_times.csv` with the mean of each week."),
        call("write_file", path="weekly_build_times.csv", content="week,mean\n1,4.2\n"),
        server.text("Done. Wrote `weekly_build_times.csv`."),
    ]
    session, finished, _ = await run_agent(
        host, tmp_path, answers, task="Save the mean build time of each week.", files={"times.log": "4.2\n"}
    )
    (asked,) = sent_back(session)
    assert "weekly_build_times.csv was written, and there is no such file" in asked
    assert finished.answer == "Done. Wrote `weekly_build_times.csv`."
    assert list(listed(finished.receipts)) == [("shown", "written: weekly_build_times.csv")]


async def test_tests_that_a_script_of_the_agents_own_ran_are_shown(host: KeptHost, tmp_path: Path) -> None:
    """amd/gaia#3730: tests that had run and passed were said not to have run, since no runner was in the command."""
    answers = [
        call("write_file", path="run_tests.py", content=RUNNER),
        call("bash", command="python3 run_tests.py"),
        server.text("All 3 tests pass."),
    ]
    session, finished, _ = await run_agent(host, tmp_path, answers, files={"test_three.py": THREE_TESTS})
    assert (sent_back(session), finished.answer) == ([], "All 3 tests pass.")
    ((standing, words),) = [one for one in listed(finished.receipts) if "run_tests.py:" in one[1]]
    assert (standing, "step 2, nothing changed since" in words) == ("shown", True)


async def test_a_build_that_failed_and_was_said_to_have_succeeded(host: KeptHost, tmp_path: Path) -> None:
    """microsoft/vscode#273812: the build's output said that it failed, and the reply that it succeeded."""
    makefile = "all:\n\t@echo 'Build failed with 14 error(s) in 9.7s'; exit 1\n"
    answers = [
        call("bash", command="make"),
        call("bash", command="ls"),
        server.text("Great! The build succeeded."),
        server.text("The build fails: 14 errors."),
    ]
    session, finished, requests = await run_agent(host, tmp_path, answers, files={"Makefile": makefile})
    (asked,) = sent_back(session)
    assert "the last build failed (make: " in asked
    assert "The build succeeded" in requests[3][-1]["content"]
    assert finished.answer == "The build fails: 14 errors."
