"""The cases: how many of what, that each can be solved, and that none is solved from the beginning."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.lab.bench.harness import CASES, ran
from tui_agent.lab.bench.case import CaseError, all_cases, chosen
from tui_agent.lab.bench.run import fresh

FAMILIES = {case.id.partition("/")[0]: case.id for case in CASES.values()}
"""A case of each family: its last one."""
UNSOLVABLE = {id_ for id_, case in CASES.items() if case.needs_person}
SEEN_BY_CHANCE = {
    id_ for id_, case in CASES.items() if case.visible == "implicit" and case.lasts == "transient"
}
"""Silent failures that no rule sees: a machine solves them where it happens to notice."""


def test_there_are_enough_cases_and_enough_of_them_are_healthy() -> None:
    squares = Counter(case.square for case in CASES.values())
    assert len(CASES) >= 120
    assert squares["negative"] / len(CASES) >= 0.4
    assert squares.keys() == {
        "negative", "explicit, permanent", "explicit, transient", "implicit, permanent", "implicit, transient"
    }  # fmt: skip


def test_no_two_cases_are_the_same() -> None:
    assert len({repr((case.task, case.files, case.steps, case.faults)) for case in CASES.values()}) == len(
        CASES
    )


def test_nothing_is_solved_before_it_begins(tmp_path: Path) -> None:
    assert [id_ for id_, case in CASES.items() if case.solved(fresh(case.files, tmp_path)[0])] == []


def _solvable(cases: list[str]) -> list[str]:
    return [case for case in cases if case not in UNSOLVABLE | SEEN_BY_CHANCE]


TEMPLATE = """\
[[family]]
name = "n"
kind = "k"
visible = "negative"
lasts = ""
task = "t"
check = []
files = {}
"""


async def _is_solved_by_somebody(folder: Path, case: str) -> None:
    simple, own, late = ("retries", "absent"), ("combined", "absent"), ("combined", "late")
    for policy, operator in (simple,) if CASES[case].negative else (own, simple, late):
        for seed in range(1, 6):
            row = await ran(folder, case, policy, operator=operator, seed=seed)
            if row.solved:
                return
    raise AssertionError(f"{case} was never solved")


@pytest.mark.parametrize("case", _solvable([*FAMILIES.values()]))
async def test_a_case_of_each_family_can_be_solved_alone(tmp_path: Path, case: str) -> None:
    await _is_solved_by_somebody(tmp_path, case)


@pytest.mark.slow
@pytest.mark.parametrize("case", _solvable([case for case in CASES if case not in FAMILIES.values()]))
async def test_each_case_can_be_solved_alone(tmp_path: Path, case: str) -> None:
    await _is_solved_by_somebody(tmp_path, case)


@pytest.mark.parametrize("case", ["only-a-person-knows/environment", "only-a-person-knows/account"])
async def test_what_only_a_person_knows_is_solved_by_asking(tmp_path: Path, case: str) -> None:
    alone = await ran(tmp_path, case, behaviour="adapts-when-asked")
    asked = await ran(tmp_path, case, behaviour="adapts-when-asked", operator="well")
    assert (alone.solved, asked.solved) == (False, True)
    assert asked.questions >= 1


def test_cases_are_chosen_by_id_family_kind_and_field() -> None:
    assert [case.id for case in chosen(["polling/five-sleeps"])] == ["polling/five-sleeps"]
    assert {case.kind for case in chosen(["polling"])} == {"polling"}
    assert all(case.negative for case in chosen(["negative"]))
    with pytest.raises(CaseError, match="There is no case 'pollin'"):
        chosen(["pollin"])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('steps = [{ call = ["fly", "home"] }]', "is no call"),
        ('steps = [{ call = ["bash"] }]', "is no call"),
        ('steps = [{ call = ["bash", "ls"], tells = "x" }]', "tells"),
        ('steps = []\nfaults = [{ seam = "model", kind = "thunder" }]', "thunder"),
    ],
)
def test_a_wrong_case_is_named_with_what_is_wrong(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "x.toml").write_text(f'{TEMPLATE}{text}\ncase = [{{ id = "c" }}]\n')
    with pytest.raises(CaseError, match=says) as wrong:
        all_cases(tmp_path)
    assert "x.toml: the case n/c" in str(wrong.value)
