"""Texts that only announce what comes next, and tasks that ask for a change."""

from __future__ import annotations

import time

import pytest

from tui_agent.core.recovery.announcements import announced, announcement
from tui_agent.core.recovery.work import Work, asks_for_change


@pytest.mark.parametrize(
    "text",
    [
        "Now let me create a test file to validate the implementation:",
        "R is installed. Now let me create the sampler implementation:",
        "I'll add a question...",
        "The script is written. Let me improve it to handle polylines:",
        "Absolutely - I can do a deeper dive. To do this properly, I'll review the articles directly.",
        "I'll create a Python script that removes JavaScript from HTML files.",
        "The header is wrong.\n\nLet me look at `parse()` next.",
        "接下来读取文件：",
        "继续把剩余页面读完。",
    ],
)
def test_a_text_that_announces_an_act(text: str) -> None:
    assert announced(text)


@pytest.mark.parametrize(
    "text",
    [
        "Done. All 41 tests pass.",
        "Let me know if you need anything else.",
        "I'll wait for the review.",
        "I will cancel the order once you confirm it.",
        "I will not change the file.",
        "The commands are:\n\n```\nmake\n```",
        "Next steps:\n- run the tests\n- deploy it",
        "I looked at both files. Should I fix the first one?",
        "If it fails again, I'll look into the log.",
        "现在测试已经完成。",
        "我会继续，如果你同意。",
        "42",
    ],
)
def test_a_text_that_may_be_an_answer(text: str) -> None:
    assert not announced(text)


@pytest.mark.parametrize(
    ("text", "task", "sent_back"),
    [
        ("...", "fix it", True),
        ("Finally, I'll run the tests.", "Give me a plan first.", False),
        ("Finally, I'll run the tests.", "Fix the parser.", True),
        ("I'll start with the parser.", "Wait, do not change anything yet.", False),
    ],
)
def test_a_plan_that_was_asked_for_is_an_answer(text: str, task: str, sent_back: bool) -> None:
    assert (announcement(text, task) is not None) == sent_back


@pytest.mark.parametrize(
    ("task", "change", "existing"),
    [
        ("The test in test_calc.py fails. Find the bug in calc.py and fix it.", True, True),
        ("Please add a test for the function total.", True, False),
        ("Fix the bug in the existing parser.", True, True),
        ("Set up a new project with a script that fixes dates.", False, False),
        ("How do I fix the test in calc.py?", False, False),
        ("Explain why test_calc.py fails.", False, False),
        ("Review the code, do not change any file.", False, False),
        ("Write a haiku about rain.", False, False),
        ("Add 2 and 3.", False, False),
        ("I want to return my order and change the address.", False, False),
    ],
)
def test_what_a_task_asks_for(task: str, change: bool, existing: bool) -> None:
    assert asks_for_change(task) == change
    assert Work.of(task).existing == existing


@pytest.mark.parametrize("unit", ["let me ", "Now, then, ", "a, ", "fix the bug and ", "：", "```\n", "\n\n"])
def test_any_text_is_read_in_bounded_time(unit: str) -> None:
    began = time.process_time()
    announced(unit * 20_000)
    asks_for_change(unit * 20_000)
    assert time.process_time() - began < 1.0
