"""Silent failures through the production loop with real tools: what the commands really print, what the model reads."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.session_harness import LiveSession, replayed, start_session
from tui_agent.core import events
from tui_agent.core.recovery.form import FormErrors
from tui_agent.core.recovery.ring import ErrorRing
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.recovery.streak import ErrorStreak
from tui_agent.session.own_run import carried_out

PYTHON = f"{sys.executable} -B"
"""Without compiled files: one that is a second old hides an edit of the same length."""

FILES = {
    "tax.py": "def tax(price):\n    return price * 0.2\n",
    "test_tax.py": "import unittest\n\nfrom tax import tax\n\n\nclass TestTax(unittest.TestCase):\n"
    "    def test_tax(self):\n        self.assertEqual(tax(10), 3)\n",
    "nightly.py": "import traceback\n\ntry:\n    {}['price']\nexcept KeyError:\n    traceback.print_exc()\n",
}


def bash(command: str, text: str = "") -> dict[str, Any]:
    return {"text": text, "calls": [{"tool": "bash", "args": {"command": command}}]}


def finish(answer: str) -> dict[str, Any]:
    return {"calls": [{"tool": "finish", "args": {"answer": answer}}]}


EDIT = {"calls": [{"tool": "edit_file", "args": {"path": "tax.py", "old": "0.2", "new": "0.3"}}]}


async def played(folder: Path, *turns: dict[str, Any] | str, **settings: Any) -> LiveSession:
    live = await start_session(folder, turns, files=FILES, sandbox="off", **settings)
    await live.run()
    await live.close()
    assert replayed(live.session) == live.state
    return live


def rules(live: LiveSession) -> list[str]:
    """Rules of the verdicts of this detector, in order."""
    reached = live.of(events.VerdictReached)
    return [one.rule for verdict in reached for one in verdict.verdicts if one.detector == "implicit"]


@pytest.mark.parametrize(
    ("command", "rule", "words"),
    [
        (f"{PYTHON} nightly.py", Rule.IMPLICIT_ERROR, "KeyError: 'price'"),
        (f"{PYTHON} -m unittest 2>&1 | tail -4", Rule.IMPLICIT_EXIT_CODE, "set -o pipefail"),
        (f"{PYTHON} -m unittest || true", Rule.IMPLICIT_EXIT_CODE, "FAILED (failures=1)"),
        (f"{PYTHON} -m unittest 2>&1; echo done", Rule.IMPLICIT_EXIT_CODE, "`; echo`"),
        (f"{PYTHON} -m pytest -q -p no:cacheprovider test_tax.py -v | head -2", Rule.IMPLICIT_CUT, "cut off"),
        ("find . -size +1m | sort", Rule.IMPLICIT_EXIT_CODE, "find:"),
    ],
)
async def test_what_a_command_hides_is_said_once_in_the_next_request(
    tmp_path: Path, command: str, rule: Rule, words: str
) -> None:
    live = await played(tmp_path, bash(command), bash(command), finish("I looked."))
    assert [one.exit_code for one in live.of(events.ToolSucceeded)][:2] == [0, 0]
    assert rules(live) == [rule]
    assert words in live.sent(1)[-1]["content"]
    assert "recovery_note" not in str(live.sent(2)[-1]["content"])


async def test_tests_that_fail_with_an_exit_code_of_their_own_are_no_silent_failure(tmp_path: Path) -> None:
    live = await played(tmp_path, bash(f"{PYTHON} -m unittest"), EDIT, bash(f"{PYTHON} -m unittest"), "Done.")
    assert rules(live) == []


async def test_a_test_run_without_a_test(tmp_path: Path) -> None:
    empty = f"{PYTHON} -c 'import unittest; unittest.main(argv=[\"x\"], exit=False)' 2>&1"
    live = await played(tmp_path, bash(f"{empty}; true"), finish("I looked."))
    assert "Ran 0 tests" in live.of(events.ToolSucceeded)[0].content
    assert rules(live) == [Rule.IMPLICIT_NO_TESTS]


@pytest.mark.parametrize("present", [True, False], ids=["with an operator", "alone"])
@pytest.mark.parametrize(
    "claim", [finish("Fixed; all tests pass."), "Fixed; all tests pass."], ids=["finish", "text"]
)
async def test_an_answer_that_claims_what_no_result_shows_is_asked_about_once(
    tmp_path: Path, claim: dict[str, Any] | str, present: bool
) -> None:
    live = await played(tmp_path, bash(f"{PYTHON} -m unittest"), EDIT, claim, claim)
    assert rules(live) == [Rule.IMPLICIT_CLAIM]
    asked = live.sent(3)[-1]["content"]
    assert "all tests pass" in asked
    assert "none followed the change of tax.py" in asked
    finished = live.of(events.RunFinished)[0]
    assert (finished.outcome, finished.answer) == ("answered", "Fixed; all tests pass.")
    recovery = live.state.recovery
    assert (recovery.of(ErrorStreak).count, recovery.of(FormErrors).count, recovery.of(ErrorRing).filled) == (
        0,
        0,
        0,
    )
    assert live.state.metrics.incidents.failures == live.state.metrics.incidents.recoveries


async def test_an_answer_whose_tests_ran_after_the_last_edit_is_taken(tmp_path: Path) -> None:
    run = bash(f"{PYTHON} -m unittest")
    run["calls"].append(finish("Fixed; all tests pass.")["calls"][0])
    live = await played(tmp_path, bash(f"{PYTHON} -m unittest"), EDIT, run)
    assert rules(live) == []
    assert live.of(events.RunFinished)[0].outcome == "answered"


@pytest.mark.parametrize("settings", [{"policy": "forge"}, {"recovery": {"verify_claims": False}}])
async def test_what_the_policy_leaves_out_is_not_asked(tmp_path: Path, settings: dict[str, Any]) -> None:
    live = await played(tmp_path, EDIT, finish("All tests pass."), **settings)
    assert rules(live) == []
    assert live.of(events.RunFinished)[0].answer == "All tests pass."


COMPILE = f"{PYTHON} -m compileall -q ."
RUFF = f"{PYTHON} -m ruff check --isolated --no-cache"
CLAIMS = {
    "a build that was never run": ([EDIT], "The build succeeds.", "no result shows a build"),
    "a build before the change": (
        [bash(COMPILE), EDIT],
        "The build succeeds.",
        "tax.py was changed after the last build",
    ),
    "a build that failed": (
        [bash(f"echo 'def' > broken.py; {COMPILE}")],
        "It compiles cleanly.",
        "the last build failed",
    ),
    "a linter that was never run": ([EDIT], "ruff is clean.", "no result shows a run of ruff"),
    "a linter that complained": (
        [bash(f"echo 'import os' > unused.py; {RUFF} unused.py")],
        "ruff passes.",
        "the last check of the code failed",
    ),
    "another linter": (
        [EDIT, bash(f"{RUFF} tax.py")],
        "mypy is clean.",
        None,  # one that ran after the change may be what is meant
    ),
    "a linter after the change": (
        [EDIT, bash(f"{RUFF} tax.py")],
        "ruff is clean and the build succeeds.",
        None,
    ),
    "one that is named as not run": ([EDIT], "The build should succeed. I did not run mypy.", None),
    "a program that may have built it": ([EDIT, bash(f"{PYTHON} tax.py")], "The build succeeds.", None),
    "a file that nobody wrote": (
        [EDIT],
        "I created `rates.json` with the rates.",
        "rates.json was written",
    ),
    "a file that is empty": (
        [bash("mkdir out; : > out/rates.csv")],
        "I saved the rates to out/rates.csv.",
        "out/rates.csv was written",
    ),
    "a file in another folder": (
        [bash("mkdir out; echo 1 > out/rates.csv")],
        "I created `rates.csv`.",
        None,
    ),
    "a file that was taken away again": (
        [bash("echo 1 > probe.py; rm probe.py")],
        "I created `probe.py` to see it.",
        None,
    ),
    "a file that is meant to be empty": ([bash(": > a.txt")], "I created the empty file `a.txt`.", None),
    "two files of one sentence": (
        [bash("mkdir out; echo 1 > out/a.csv; cp out/a.csv out/b.csv")],
        "I saved the rates to `out/a.csv` and `out/b.csv`.",
        None,
    ),
    "a platform": ([EDIT], "I created a Node.js server.", None),
}


@pytest.mark.parametrize(("before", "answer", "asked"), CLAIMS.values(), ids=CLAIMS)
async def test_builds_linters_and_files_are_claims_as_tests_are(
    tmp_path: Path, before: list[dict[str, Any]], answer: str, asked: str | None
) -> None:
    live = await played(tmp_path, *before, answer, "I looked again.")
    finished = live.of(events.RunFinished)[0]
    if asked is None:
        assert (rules(live), finished.answer) == ([], answer)
    else:
        assert rules(live)[-1] == Rule.IMPLICIT_CLAIM
        assert asked in " ".join(one.failure.message for one in live.of(events.ReplyRejected))
        assert (finished.outcome, finished.answer) == ("answered", "I looked again.")


TOLD = "The file docs/instalation.md specifies Python 3.8 or higher."


async def opened(
    folder: Path, *turns: dict[str, Any] | str, files: dict[str, str] | None = None, **settings: Any
) -> LiveSession:
    (folder / "workspace" / "docs").mkdir(parents=True, exist_ok=True)
    (folder / "workspace" / "docs" / "installation.md").write_text("Python 3.11\n")
    files = {"tax.py": "RATE = 0.2  # of the price\n", "Makefile": "all:\n", **(files or {})}
    return await start_session(folder, turns, files=files, sandbox="off", **settings)


async def asked(folder: Path, task: str, *turns: dict[str, Any] | str, **settings: Any) -> LiveSession:
    live = await opened(folder, *turns, **settings)
    await live.run(task)
    await live.close()
    assert replayed(live.session) == live.state
    return live


def call(tool: str, **arguments: str) -> dict[str, Any]:
    return {"calls": [{"tool": tool, "args": arguments}]}


@pytest.mark.parametrize("claim", [TOLD, finish(TOLD)], ids=["text", "finish"])
async def test_an_answer_about_a_file_that_is_not_there_is_asked_about_once(
    tmp_path: Path, claim: dict[str, Any] | str
) -> None:
    task = "Which Python does docs/instalation.md ask for?"
    live = await asked(
        tmp_path, task, claim, call("list_dir", path="docs"), "There is docs/installation.md only."
    )
    assert rules(live) == [Rule.IMPLICIT_CLAIM]
    assert 'list_dir {"path": "docs"}' in live.sent(1)[-1]["content"]
    (finished,) = live.of(events.RunFinished)
    assert (finished.outcome, finished.answer) == ("answered", "There is docs/installation.md only.")
    recovery = live.state.recovery
    assert (recovery.of(ErrorStreak).count, recovery.of(FormErrors).count, recovery.of(ErrorRing).filled) == (
        0,
        0,
        0,
    )


READ_INSTALLATION = call("read_file", path="docs/installation.md")
NEVER_OPENED = {
    "in a folder": ("What does docs/installation.md say?", [], "docs/installation.md requires Python 3.8."),
    "without a folder": ("What does tax.py do?", [], "tax.py defines a rate."),
    "given to finish": ("What does tax.py do?", [], finish("tax.py defines a rate.")),
    "the only one in question": ("What does tax.py do?", [], "It computes the tax of a price."),
    "as the source": ("What does tax.py do?", [], "According to `tax.py`, the rate is 0.2."),
    "without an ending": ("What is in the Makefile?", [], "The Makefile contains two targets."),
    "after another was read": (
        "Do tax.py and docs/installation.md agree?",
        [READ_INSTALLATION],
        "docs/installation.md requires Python 3.11, and tax.py says so too.",
    ),
    "after a command that shows another": (
        "What does tax.py do?",
        [bash("cat docs/installation.md")],
        "tax.py defines a rate.",
    ),
}


@pytest.mark.parametrize(("task", "before", "claim"), NEVER_OPENED.values(), ids=NEVER_OPENED)
async def test_an_answer_about_a_file_that_no_call_has_opened_is_asked_about_once(
    tmp_path: Path, task: str, before: list[dict[str, Any]], claim: dict[str, Any] | str
) -> None:
    live = await asked(tmp_path, task, *before, claim, claim)
    assert rules(live) == [Rule.IMPLICIT_CLAIM]
    unread = live.of(events.ReplyFinished)[-1].unread[0]
    assert unread in task
    assert f'read_file {{"path": "{unread}"}}' in str(live.sent(len(before) + 1)[-1]["content"])
    finished = live.of(events.RunFinished)[0]
    assert finished.outcome == "answered"
    alone = f"Answered without a single call, though the task names {unread}."
    assert finished.reason == ("" if before else alone)


SHOWN = {
    "it was read": ([call("read_file", path="tax.py")], "What does tax.py do?"),
    "its name was listed": ([call("list_dir", path=".")], "What does tax.py do?"),
    "a command showed whole folders": ([bash("cat *.py")], "What does tax.py do?"),
    "a program of which nothing is known ran": ([bash("true; ./show || true")], "What does tax.py do?"),
    "it was edited": (
        [call("write_file", path="tax.py", content="RATE = 0.3  # of the price\n")],
        "Set the rate in tax.py",
    ),
    "the task holds it": ([], "What does tax.py do?\nRATE = 0.2  # of the price\n"),
}


@pytest.mark.parametrize(("before", "task"), SHOWN.values(), ids=SHOWN)
async def test_an_answer_about_a_file_that_was_shown_is_taken(
    tmp_path: Path, before: list[dict[str, Any]], task: str
) -> None:
    live = await asked(tmp_path, task, *before, "tax.py defines a rate.")
    assert rules(live) == []
    assert live.of(events.RunFinished)[0].reason == ""


async def test_a_file_that_the_instructions_name_counts_as_shown(tmp_path: Path) -> None:
    files = {"AGENTS.md": "tax.py defines the rate of the tax.\n"}
    live = await asked(tmp_path, "What does tax.py do?", "tax.py defines a rate.", files=files)
    assert rules(live) == []


async def test_a_file_that_an_earlier_run_or_the_operator_has_shown_is_not_asked_about(
    tmp_path: Path,
) -> None:
    say = "docs/installation.md says Python 3.11."
    live = await opened(tmp_path, READ_INSTALLATION, say, say, "tax.py defines a rate.")
    await live.run("What does docs/installation.md say?")
    await live.run("Once more: what does docs/installation.md say?")
    await carried_out(live.session, "cat tax.py")
    await live.run("What does tax.py do?")
    await live.close()
    assert rules(live) == []
    assert [finished.reason for finished in live.of(events.RunFinished)] == ["", "", ""]


async def test_after_an_interruption_what_is_said_is_taken(tmp_path: Path) -> None:
    live = await opened(tmp_path, call("bash", command="sleep 1000"), "tax.py defines a rate.")
    await live.session.submit("What does tax.py do?")
    await live.until(lambda state: any(one.state == "running" for one in state.conversation.calls))
    await live.session.interrupt()
    assert (await live.ended()).answer == "tax.py defines a rate."
    await live.close()
    assert rules(live) == []


CHATS = {
    "nothing of files": ("What is a monad?", "A monad contains a value and says how to go on with it."),
    "an address without a path": ("What is example.com?", "example.com describes itself as an example."),
    "a name that is nowhere": ("What is main.rs?", "main.rs contains the entry of a Rust program."),
    "news that it is not there": (
        "What does docs/plan.md say?",
        "There is no docs/plan.md, so it says nothing.",
    ),
    "what such files usually hold": (
        "What is docs/conf.py for?",
        "A docs/conf.py usually contains the settings of Sphinx.",
    ),
    "advice": ("Where do I put docs/plan.md?", "Create docs/plan.md; it holds your plan then."),
    "a file of no folder here": ("What is src/main.rs?", "src/main.rs contains the entry of a Rust program."),
    "what to do with a file": ("How do I run a module?", "Call python -m with its name; it prints the rest."),
    "a file that nobody asked about": ("What does Sphinx need?", "docs/conf.py contains its settings."),
    "an address": (
        "What does https://a.example/docs/x.html say?",
        "https://a.example/docs/x.html says hello.",
    ),
}


@pytest.mark.parametrize(
    ("task", "answer", "form"),
    [
        *(pytest.param(*chat, str, id=name) for name, chat in CHATS.items()),
        pytest.param(*CHATS["news that it is not there"], finish, id="news by finish"),
        pytest.param(*CHATS["advice"], finish, id="advice by finish"),
    ],
)
async def test_a_question_that_needs_no_call_is_answered_in_one_step(
    tmp_path: Path, task: str, answer: str, form: Callable[[str], dict[str, Any] | str]
) -> None:
    live = await asked(tmp_path, task, form(answer))
    finished = live.of(events.RunFinished)[0]
    assert (rules(live), finished.answer, finished.reason) == ([], answer, "")


async def test_an_answer_about_a_missing_file_after_a_look_is_taken(tmp_path: Path) -> None:
    look = call("list_dir", path="docs")
    live = await asked(tmp_path, "What does docs/plan.md say?", look, "docs/plan.md says nothing.")
    assert rules(live) == []


async def test_without_verification_an_answer_about_a_missing_file_is_taken(tmp_path: Path) -> None:
    off = {"recovery": {"verify_claims": False}}
    live = await asked(tmp_path, "What does docs/instalation.md say?", TOLD, **off)
    assert (rules(live), live.of(events.ReplyFinished)[0].missing) == ([], ())


async def test_the_last_step_is_not_spent_on_a_question(tmp_path: Path) -> None:
    live = await played(tmp_path, EDIT, finish("All tests pass."), max_iterations=2)
    assert live.of(events.RunFinished)[0].outcome == "answered"


ABSENT = (
    "Fix the login flow in internal/login.go: the existing behaviour of expired requests must not change."
)
MADE = {"calls": [{"tool": "write_file", "args": {"path": "internal/login.go", "content": "package login"}}]}


@pytest.mark.parametrize(
    ("task", "answers", "absent", "met"),
    [
        (ABSENT, ["Login handles expired requests."], ("internal/login.go",), [Rule.IMPLICIT_ELSEWHERE] * 2),
        (
            ABSENT,
            ["internal/login.go was not there, so I made it."],
            ("internal/login.go",),
            [Rule.IMPLICIT_ELSEWHERE],
        ),
        ("Fix the bug in app/tax.py, it still rounds.", ["It rounds up now."], (), []),
        (
            "Fix the tests: they should still pass. Write the report to out/report.txt.",
            ["It is written."],
            (),
            [],
        ),
    ],
)
async def test_files_of_the_task_that_are_nowhere_are_said_at_once_and_at_the_end(
    tmp_path: Path, task: str, answers: list[str], absent: tuple[str, ...], met: list[Rule]
) -> None:
    live = await start_session(
        tmp_path, [MADE, *answers, "As I said."], files=FILES, sandbox="off", approve="all"
    )
    await live.run(task)
    await live.close()
    assert replayed(live.session) == live.state
    assert live.of(events.ReplyFinished)[0].absent == absent
    assert [rule for rule in rules(live) if rule == Rule.IMPLICIT_ELSEWHERE] == met
    assert ("none that it names is here" in str(live.sent(1)[-1]["content"])) == bool(absent)
    assert [one.rule for one in live.of(events.ReplyRejected)] == met[1:]
