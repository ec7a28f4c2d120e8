"""Models as machines: what moves them, and that they see nothing but their requests."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.lab.bench.harness import CASES
from tui_agent.lab.bench.behaviours import BEHAVIOURS, Behaviour, Machine, shares
from tui_agent.lab.bench.case import Case
from tui_agent.lab.bench.clock import Clock
from tui_agent.models.protocol import ModelRequest, Reply

STUBBORN = Behaviour("stubborn", "weakest", told=0.0, noted=0.0, refused=0.0, asked=0.0)
WRONG = CASES["wrong-path/typo"]
ERROR = "Error: there is no file conf/settigns.ini"


async def asked(machine: Machine, messages: list[dict[str, Any]], *, note: str = "") -> Reply:
    extra = [{"role": "user", "content": note}] if note else []
    request = ModelRequest(model="m", messages=[*messages, *extra], ephemeral=1 if note else 0)
    pieces = [piece async for piece in machine.stream(request)]
    assert isinstance(pieces[-1], Reply)
    return pieces[-1]


async def second_reply(
    behaviour: Behaviour, case: Case, result: str, *, note: str = "", words: str = "", seed: int = 1
) -> Reply:
    """What it does after its first call gave this result."""
    machine = Machine(case, behaviour, seed, Clock())
    first = await asked(machine, [{"role": "user", "content": case.task}])
    messages = [
        {"role": "user", "content": case.task},
        {"role": "assistant", "content": "", "tool_calls": [{"id": first.calls[0].id}]},
        {"role": "tool", "content": result, "tool_call_id": first.calls[0].id},
        *([{"role": "user", "content": words}] if words else []),
    ]
    return await asked(machine, messages, note=note)


def path_of(reply: Reply) -> str:
    return str(json.loads(reply.calls[0].arguments).get("path", "")) if reply.calls else ""


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("told", {"note": "The file is conf/settings.ini."}),
        ("told", {"result": f"{ERROR}; there is conf/settings.ini"}),
        ("asked", {"words": "Read conf/settings.ini instead."}),
        ("noted", {"note": "Try another approach."}),
        ("refused", {"result": "This call of read_file was not executed: it failed 3 times."}),
    ],
)
async def test_each_assumption_is_what_moves_it(field: str, said: dict[str, str]) -> None:
    moved = {}
    for share in (0.0, 1.0):
        own = replace(STUBBORN, **{field: share})
        told = {"result": ERROR, **said}
        paths = [path_of(await second_reply(own, WRONG, **told, seed=seed)) for seed in range(1, 31)]
        moved[share] = sum(path in {"conf/settings.ini", "conf"} for path in paths)
    assert moved[1.0] == 30
    assert moved[0.0] < 15


async def test_what_it_does_unasked_follows_the_counted_habits() -> None:
    replies = [await second_reply(STUBBORN, WRONG, ERROR, seed=seed) for seed in range(1, 401)]
    ends = sum(not reply.calls for reply in replies) / 400
    adapts = sum(path_of(reply) in {"conf/settings.ini", "conf"} for reply in replies) / 400
    habits = shares()["weakest"]["after_1"]
    assert ends == pytest.approx(habits["end"], abs=0.03)
    assert adapts == pytest.approx(habits["adapt"], abs=0.05)


async def test_at_the_same_point_it_does_the_same_under_every_policy() -> None:
    first = await second_reply(BEHAVIOURS["repeats"], WRONG, ERROR)
    other = await second_reply(BEHAVIOURS["repeats"], WRONG, f"{ERROR}, as another policy shows it")
    assert first.calls == other.calls


async def test_a_model_that_overreacts_leaves_a_healthy_way_because_of_a_note() -> None:
    work = CASES["plain-work/upper"]
    left = [
        [
            path_of(await second_reply(BEHAVIOURS[name], work, "in.txt", note="Mind the gap.", seed=seed))
            == "."
            for seed in range(1, 31)
        ]
        for name in ("overreacts", "repeats")
    ]
    assert 5 < sum(left[0]) < 25
    assert sum(left[1]) == 0


def test_shares_of_each_group_are_shares() -> None:
    for group in {one.habits for one in BEHAVIOURS.values()}:
        for row in shares()[group].values():
            assert sum(row.values()) == pytest.approx(1.0, abs=0.001)
