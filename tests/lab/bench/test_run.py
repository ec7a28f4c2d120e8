"""One run of the benchmark: what faults do at their seams, who is asked, and that chance has no part in it."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests import openai_server as server
from tests.lab.bench.harness import CASES, journal, ran, without_times
from tui_agent.cli import main
from tui_agent.config.settings import Settings
from tui_agent.core.names import FaultKind
from tui_agent.lab.bench.case import Call, InjectedFault, Step, all_cases
from tui_agent.lab.bench.kept import RememberingBash
from tui_agent.lab.bench.operators import Kind
from tui_agent.lab.bench.run import RealModel
from tui_agent.tools.errors import ToolError

ROOT = Path(__file__).resolve().parents[3]
PLAIN = CASES["plain-work/upper"]


@pytest.mark.parametrize(
    ("case", "behaviour"),
    [
        ("wrong-path/renamed", "repeats"),
        ("flaky-command/three-times", "alternates"),
        ("provider-away/two-minutes", "adapts-when-hinted"),
        ("broken-form/unknown-tool", "breaks-form"),
        ("edit-test-cycle/three-same-message", "overreacts"),
    ],
)
async def test_the_same_seed_gives_the_same_journal_but_for_times(
    tmp_path: Path, case: str, behaviour: str
) -> None:
    journals = []
    for name in ("first", "other"):
        folder = tmp_path / name
        await ran(folder, case, behaviour=behaviour)
        journals.append([without_times(event, folder / "scratch") for event in journal(folder)])
    assert journals[0] == journals[1]


async def test_another_seed_gives_another_run(tmp_path: Path) -> None:
    calls = set()
    for seed in range(1, 6):
        await ran(tmp_path, "wrong-path/typo", behaviour="repeats", seed=seed)
        calls.add(
            tuple(str(event["input"]) for event in journal(tmp_path) if event["type"] == "tool_started")
        )
    assert len(calls) > 1


async def test_earlier_runs_of_a_case_teach_the_playbook_for_the_one_that_counts(tmp_path: Path) -> None:
    own = {case.id: case for case in all_cases(ROOT / "docs" / "lab" / "playbook")}["own-way/tests"]
    without, learned = [
        await ran(tmp_path, own, policy, behaviour="repeats", seed=12)
        for policy in ("combined", "playbook-6")
    ]
    notes = [event for event in journal(tmp_path) if "note.playbook" in event.get("rules", ())]
    assert notes
    assert (without.solved, learned.solved) == (False, True)
    assert learned.iterations < without.iterations


async def test_a_fault_of_the_model_is_waited_for_by_the_clock_of_the_run_alone(tmp_path: Path) -> None:
    row = await ran(tmp_path, "provider/rate-limit-long-wait")
    faults = [event for event in journal(tmp_path) if event["type"] == "model_faulted"]
    assert [fault["fault"]["retry_after"] for fault in faults] == [240.0, 240.0]
    assert row.solved
    assert row.seconds > 480
    assert (await ran(tmp_path, "provider/rate-limit-long-wait", "none")).outcome == "model_failed"


@pytest.mark.parametrize(
    ("effect", "written", "result"),
    [("raises", False, "tool_failed"), ("says", False, "tool_succeeded"), ("after", True, "tool_failed")],
)
async def test_a_fault_of_a_tool_is_what_the_model_sees(
    tmp_path: Path, effect: str, written: bool, result: str
) -> None:
    fault = InjectedFault("tool", tool="write_file", effect=effect, message="as the case says")
    step = Step(Call("write_file", {"path": "out.txt", "content": "HELLO"}), fails=True)
    await ran(tmp_path, replace(PLAIN, faults=(fault,), steps=(step,)))
    ended = next(event for event in journal(tmp_path) if event["type"] == result)
    assert "as the case says" in ended["content"]
    assert (tmp_path / "scratch" / "workspace" / "out.txt").is_file() is written


async def test_the_world_changes_files_between_two_calls(tmp_path: Path) -> None:
    changes = (
        InjectedFault("world", at=2, write={"in.txt": "other"}),
        InjectedFault("world", at=3, remove=("in.txt",)),
    )
    look = Step(Call("read_file", {"path": "in.txt"}), fails=True)
    await ran(tmp_path, replace(PLAIN, faults=changes, steps=(look, look, look)))
    ended = [event for event in journal(tmp_path) if event["type"] in {"tool_succeeded", "tool_failed"}]
    assert [event["type"] for event in ended[:3]] == ["tool_succeeded", "tool_succeeded", "tool_failed"]
    assert "hello" in ended[0]["content"]
    assert "other" in ended[1]["content"]


async def test_a_sleep_in_a_command_passes_by_the_clock_of_the_run(tmp_path: Path) -> None:
    row = await ran(tmp_path, "polling/twenty-sleeps", "retries")
    assert row.solved
    assert row.seconds > 20 * 60
    asked = [event["input"].get("command") for event in journal(tmp_path) if event["type"] == "tool_started"]
    assert "sleep 60; cat state.txt" in asked


@pytest.mark.parametrize(
    ("operator", "solved", "longest"), [("well", True, 300), ("late", True, 5_000), ("never", False, 4_000)]
)
async def test_an_operator_answers_well_or_late_or_never(
    tmp_path: Path, operator: Kind, solved: bool, longest: float
) -> None:
    row = await ran(tmp_path, "only-a-person-knows/environment", operator=operator)
    assert (row.solved, row.questions > 0) == (solved, True)
    assert row.until_person is not None
    assert row.until_person < 60
    assert row.seconds < longest


async def test_one_who_answers_badly_helps_nobody(tmp_path: Path) -> None:
    row = await ran(tmp_path, "only-a-person-knows/environment", operator="badly")
    assert not row.solved
    assert row.questions >= 2


async def test_an_auth_fault_ends_the_run_and_says_when_a_person_is_needed(tmp_path: Path) -> None:
    row = await ran(tmp_path, "provider-refuses/wrong-key")
    assert (row.outcome, row.solved) == ("model_failed", False)
    assert row.until_person == row.seconds
    assert row.model_faults == 1


async def test_a_request_fails_by_number_or_until_a_second_of_the_run() -> None:
    assert [InjectedFault("model", at=2, times=2).covers(count) for count in (1, 2, 3, 4)] == [
        False,
        True,
        True,
        False,
    ]
    assert InjectedFault("model", at=2, times=0, kind=FaultKind.AUTH).covers(50)


async def test_any_run_opens_in_replay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    await ran(tmp_path, "same-failing-command/old-version", behaviour="repeats")
    assert main(["replay", str(tmp_path / "journal"), "--print"]) == 0
    assert "VERSION is below 2" in capsys.readouterr().out


async def test_a_healthy_run_is_interrupted_where_recovery_does_more_than_advise(tmp_path: Path) -> None:
    for case, policy in (("sampling/seven", "doom-loop"), ("unrelated-failures/five-ways", "funnelcanary")):
        for left_alone in ("retries", "combined"):
            run = await ran(tmp_path / policy / left_alone, case, left_alone)
            assert (run.solved, run.interrupted) == (True, False)
        assert (await ran(tmp_path / policy / "itself", case, policy)).interrupted


def real_model(address: str) -> RealModel:
    settings = {"model": "openai/served", "api_base": address, "sandbox": "off", "max_cost": 1.0}
    return RealModel(Settings.model_validate(settings))


async def test_a_real_model_works_on_the_same_cases_through_its_server(tmp_path: Path) -> None:
    case = CASES["wrong-path/typo"]
    script = [
        server.error(529, "overloaded"),
        server.calls([("read_file", '{"path": "conf/settigns.ini"}')]),
        server.calls([("read_file", '{"path": "conf/settings.ini"}')]),
        server.calls([("write_file", '{"path": "result.txt", "content": "8080"}')]),
        server.text("The port is 8080; it is in result.txt."),
    ]
    async with server.OpenAIServer(script) as served:
        row = await ran(tmp_path, case, behaviour="openai/served", real=real_model(served.url))
    assert (row.solved, row.failures, row.model_faults) == (True, 2, 1)
    assert "<recovery_note>" in str(served.requests[2].body["messages"])
    assert row.behaviour == "openai/served"
    assert journal(tmp_path)[0]["at"] < time.time()
    assert row.seconds > 0


async def test_a_real_model_waits_for_its_server_and_not_for_the_faults_of_a_case(tmp_path: Path) -> None:
    script = [server.calls([("write_file", '{"path": "result.txt", "content": "x"}')]), server.text("Done.")]
    fault = InjectedFault("model", kind=FaultKind.RATE_LIMIT, until=120.0, retry_after=60.0)
    began = time.monotonic()
    async with server.OpenAIServer(script) as served:
        case = replace(PLAIN, faults=(fault,))
        row = await ran(tmp_path, case, behaviour="openai/served", real=real_model(served.url))
    assert row.seconds > 120
    assert time.monotonic() - began < 120
    assert row.outcome == "answered"


async def test_a_server_comes_back_by_the_replies_of_the_model_and_not_by_tries(tmp_path: Path) -> None:
    away = InjectedFault("tool", tool="read_file", back=3, message="exit code 7: Connection refused")
    look = Step(Call("read_file", {"path": "in.txt"}), fails=True)
    other = Step(Call("list_dir", {"path": "."}))
    await ran(tmp_path, replace(PLAIN, faults=(away,), steps=(look, other, look)))
    ended = [event for event in journal(tmp_path) if event["type"] in {"tool_succeeded", "tool_failed"}]
    assert [event["type"] for event in ended[:3]] == ["tool_failed", "tool_succeeded", "tool_succeeded"]


async def test_a_command_that_failed_keeps_nothing_of_the_run_that_it_was_in(tmp_path: Path) -> None:
    RememberingBash.ran.clear()
    for _ in range(2):
        await ran(tmp_path, "wrong-path/renamed", "combined", "repeats")
    failed = [known.output for known in RememberingBash.ran.values() if isinstance(known.output, ToolError)]
    assert failed
    assert all(error.__traceback__ is None for error in failed)
