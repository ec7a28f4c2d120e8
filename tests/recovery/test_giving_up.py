"""What is said at the end of a run that gave up, and what only sounds like it."""

from __future__ import annotations

import pytest

from tui_agent.core.recovery.giving_up import gives_up

TEXTS = [
    ("I could not finish this; the errors above stand in the way.", True),
    ("I tried three ways.\n\nI was unable to build it.", True),
    ("I can’t go on without the file.", True),
    ("The value cannot be found in the sources.", True),
    ("I have to stop here.", True),
    ("Done: the parser cannot loop any more.", False),
    ("I fixed the bug. All 12 tests pass.", False),
    ("I'm sorry, I cannot change this order: it was shipped.", False),
    ("I could not find your order. Please give me its number.", False),
    ("I could not reproduce it at first. " + "The cause was a missing lock. " * 80, False),
]


@pytest.mark.parametrize(("text", "gave_up"), TEXTS)
def test_a_text_that_gives_up_is_told_from_an_answer(text: str, gave_up: bool) -> None:
    assert gives_up(text) is gave_up
