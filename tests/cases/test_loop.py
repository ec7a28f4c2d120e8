"""The same cases through the production loop: session, journal, executor, approvals and hooks included."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases import Case, load_cases
from tests.cases.loop import LoopPlayer, can_be_played

CASES = [case for case in load_cases() if can_be_played(case)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_the_loop_does_what_the_case_says(case: Case, tmp_path: Path) -> None:
    assert await LoopPlayer(case, tmp_path).play() == []
