"""Many runs at once: no worker that ends takes a run with it, and no bound is passed."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import random
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from tests.fleet.harness import all_wait, arguments, carried_out, let_go, options, written
from tests.ntfy_server import NtfyServer, ntfy_server
from tui_agent.cli import main
from tui_agent.core.events import ApprovalAsked
from tui_agent.fleet.fleet import Bounds, Fleet, FleetRun, Place
from tui_agent.fleet.hosts import LocalHost
from tui_agent.fleet.kept import FleetRecord, kept_for
from tui_agent.headless import HeadlessOperator
from tui_agent.runtime.operator import ApprovalReply
from tui_agent.store.journal import JOURNAL_NAME, read_journal

pytestmark = pytest.mark.process
server = ntfy_server

Changed = Callable[[Fleet, FleetRun | None], None]


def once_all_wait(folder: Path, act: Callable[[Fleet], None]) -> Changed:
    """Does something once every run is in the step that waits; then lets them go on."""
    done = False

    def changed(fleet: Fleet, _: FleetRun | None) -> None:
        nonlocal done
        if not done and all_wait(fleet):
            done = True
            act(fleet)
            let_go(folder)

    return changed


def kill_one(fleet: Fleet) -> None:
    host = fleet.hosts[0]
    assert isinstance(host, LocalHost)
    os.kill(host.pid, signal.SIGKILL)


async def test_runs_of_a_killed_worker_go_on_in_another_one(tmp_path: Path) -> None:
    fleet = await carried_out(arguments(tmp_path, 4, workers=2), once_all_wait(tmp_path, kill_one))
    assert [run.outcome for run in fleet.runs] == ["answered"] * 4
    assert sum(run.lost for run in fleet.runs) == 2
    for run in fleet.runs:
        assert run.folder is not None
        kinds = [event.type for event in read_journal(run.folder).events]
        assert kinds.count("session_resumed") == run.lost
        assert kinds.count("session_started") == kinds.count("run_finished") == 1
    assert all((tmp_path / f"w{number}" / "out.txt").is_file() for number in range(4))


@contextmanager
def here() -> Iterator[str]:
    """The address of a cluster of two workers."""
    distributed = pytest.importorskip("distributed", reason="the extra [cluster] is not installed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs="CRITICAL"
    ) as made:
        yield made.scheduler_address


async def test_runs_of_a_killed_worker_of_a_cluster_go_on_from_the_lines_that_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    with (
        here() as scheduler,
        importlib.import_module("distributed").Client(scheduler, set_as_default=False) as client,
    ):
        pids = client.run(os.getpid)
        start = arguments(tmp_path, 4, cluster=scheduler)
        kill = once_all_wait(tmp_path, lambda fleet: os.kill(pids[fleet.hosts[0].name], signal.SIGKILL))
        fleet = await carried_out(start, kill)
    assert [run.outcome for run in fleet.runs] == ["answered"] * 4
    assert sum(run.lost for run in fleet.runs) == 2
    for run in fleet.runs:
        assert run.folder is not None
        assert "run_finished" in [event.type for event in read_journal(run.folder).events]
    async with asyncio.timeout(60):  # also the process beside the killed worker ends, and leaves nothing
        while list(scratch.glob("agent-tui-fleet-*")):
            await asyncio.sleep(0.05)


async def test_a_run_that_takes_its_workers_with_it_is_given_up_and_no_other(tmp_path: Path) -> None:
    def kill(fleet: Fleet, run: FleetRun | None) -> None:
        if run is not None and run.task.id == "r0" and run.row.step >= 1 and isinstance(run.host, LocalHost):
            os.kill(run.host.pid, signal.SIGKILL)

    start = arguments(tmp_path, 2, workers=2)
    (tmp_path / "w1" / "go").touch()
    fleet = await carried_out(start, kill)
    assert [run.place for run in fleet.runs] == [Place.FAILED, Place.ENDED]
    assert "workers ended under it" in fleet.runs[0].why


async def test_a_session_that_a_killed_worker_left_empty_is_begun_anew_and_removed(tmp_path: Path) -> None:
    start = arguments(tmp_path, 1)
    let_go(tmp_path)
    first = await carried_out(start)
    kept, left = kept_for(start.tasks, None), first.runs[0].folder
    assert left is not None
    kept.write_text(kept.read_text().splitlines(keepends=True)[0])  # it was opened, and has not ended
    (left / JOURNAL_NAME).write_bytes(b'{"seq": 0, "ty')
    second = await carried_out(start)
    assert second.runs[0].outcome == "answered"
    assert second.runs[0].folder is not None
    assert [folder.name for folder in left.parent.iterdir()] == [second.runs[0].folder.name]


async def test_one_run_is_stopped_and_the_others_go_on(tmp_path: Path) -> None:
    fleet = await carried_out(
        arguments(tmp_path, 2), once_all_wait(tmp_path, lambda fleet: fleet.stop(fleet.runs[0]))
    )
    assert [run.outcome for run in fleet.runs] == ["interrupted", "answered"]


async def test_all_runs_are_stopped_those_that_wait_too(tmp_path: Path) -> None:
    def stop(fleet: Fleet, run: FleetRun | None) -> None:
        if run is not None and run.row.step >= 2 and not run.over:
            fleet.stop_all()

    fleet = await carried_out(arguments(tmp_path, 3, bounds=Bounds(at_once=1)), stop)
    assert [run.outcome for run in fleet.runs] == ["interrupted", "failed", "failed"]


class Allows(HeadlessOperator):
    """Somebody who allows what is asked."""

    asked = 0

    @property
    def present(self) -> bool:
        return True

    async def approve(self, asked: ApprovalAsked) -> ApprovalReply:
        self.asked += 1
        return ApprovalReply("once")


async def test_questions_reach_the_operator_and_answers_the_run(tmp_path: Path) -> None:
    operator = Allows()
    start = arguments(tmp_path, 2, overrides={"approve": "ask"})
    let_go(tmp_path)
    fleet = await carried_out(start, operator_for=lambda _: operator)
    assert [run.outcome for run in fleet.runs] == ["answered"] * 2
    assert operator.asked == 4  # the command and the write, in each


async def test_what_all_may_cost_ends_the_fleet_and_the_same_start_goes_on(tmp_path: Path) -> None:
    start = arguments(tmp_path, 2, bounds=Bounds(at_once=2, max_cost=0.0035))
    first = await carried_out(start)
    assert "0.00 USD" in first.halted
    assert {run.place for run in first.runs} == {Place.RUNNING}
    let_go(tmp_path)
    second = await carried_out(arguments(tmp_path, 2))
    assert [run.outcome for run in second.runs] == ["answered"] * 2
    assert [run.session for run in second.runs] == [run.session for run in first.runs]
    third = await carried_out(arguments(tmp_path, 2))
    assert [run.result for run in third.runs] == [run.result for run in second.runs]
    assert third.hosts == []


async def test_how_long_all_may_take_ends_the_fleet(tmp_path: Path) -> None:
    fleet = await carried_out(arguments(tmp_path, 1, bounds=Bounds(at_once=1, max_seconds=0.1)))
    assert "longer than 0.1 s" in fleet.halted
    assert not fleet.finished


@pytest.mark.slow
async def test_two_hundred_runs_outlive_workers_that_are_killed_at_random(tmp_path: Path) -> None:
    chance = random.Random(1)
    killed = 0

    def kill(fleet: Fleet, _: FleetRun | None) -> None:
        nonlocal killed
        if killed < 12 and fleet.hosts and chance.random() < 0.005:
            host = chance.choice(fleet.hosts)
            assert isinstance(host, LocalHost)
            os.kill(host.pid, signal.SIGKILL)
            killed += 1

    start = arguments(tmp_path, 200, workers=4)
    let_go(tmp_path)
    fleet = await carried_out(start, kill)
    assert [run.why for run in fleet.runs if run.outcome != "answered"] == []


# --- the command -----------------------------------------------------------------------------------------------


def given(folder: Path) -> list[str]:
    return [f"--{key.replace('_', '-')}={value}" for key, value in options(folder).items()]


def test_the_command_prints_changes_and_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tasks = written(tmp_path, 2)
    let_go(tmp_path)
    assert main(["fleet", str(tasks), *given(tmp_path)]) == 0
    shown = capsys.readouterr()
    assert "r0 · running" in shown.err
    assert "r1 · answered · It is there." in shown.err
    assert "2 runs: 2 answered" in shown.out
    assert main(["fleet", str(tasks), "--output", "json", *given(tmp_path)]) == 0
    made = json.loads(capsys.readouterr().out)
    assert [run["result"]["outcome"] for run in made["runs"]] == ["answered"] * 2
    assert made["cost_usd"] == pytest.approx(0.008)


PROVEN = """
title = "Proven"
task = "t"
[[turns]]
text = "It is done."
[[turns]]
calls = [{ tool = "write_file", args = { path = "out.txt", content = "done\\n" } }]
[[turns]]
text = "Now it is."
"""


@pytest.mark.parametrize("cluster", [False, True], ids=["of this machine", "of a cluster"])
def test_tasks_have_worktrees_and_checks_and_their_end_is_told(
    cluster: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    server: NtfyServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AGENT_TUI_NOTIFY__NTFY", f"{server.address}/fleets")
    repository = tmp_path / "shop"
    names = ("-c", "user.name=n", "-c", "user.email=e@x")
    for words in (
        ("init", "-q", repository),
        ("-C", repository, *names, "commit", "-q", "--allow-empty", "-m", "b"),
    ):
        subprocess.run(["git", *words], check=True)
    (tmp_path / "waits.toml").write_text(PROVEN)
    task = {
        "task": "go",
        "workspace": "shop",
        "worktree": True,
        "check": "grep -q done out.txt",
        "goal": "done",
    }
    wrong = {"task": "go", "workspace": "shop", "goal": "done"}
    tasks = tmp_path / "tasks.jsonl"
    tasks.write_text("\n".join(json.dumps(one) for one in ({**task, "id": "a"}, {**task, "id": "b"}, wrong)))
    line = ["fleet", str(tasks), "--output", "json", *given(tmp_path)]
    with here() if cluster else nullcontext("") as scheduler:
        assert main([*line, *(["--cluster", scheduler] if scheduler else [])]) == 1
    made = json.loads(capsys.readouterr().out)
    assert [run["result"]["answer"] for run in made["runs"]] == ["Now it is."] * 2
    assert "only a `check` can say" in made["bad_lines"][0]["why"]
    worktrees = list((tmp_path / "tasks.fleet" / "worktrees").iterdir())
    assert [(one / "out.txt").read_text() for one in worktrees] == ["done\n"] * 2
    assert not (repository / "out.txt").exists()
    for run in (tmp_path / "state" / "sessions").iterdir():
        kinds = [one.type for one in read_journal(run).events]
        assert kinds.count("run_finished") == 2  # its check failed, and then passed
    assert [(one["title"], one["message"]) for one in server.cache] == [
        ("agent-tui fleet: ended", "2 answered")
    ]


def test_lines_that_are_no_tasks_are_named_and_nothing_is_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = {
        "{": "no JSON",
        '["task"]': "no object",
        '{"tsk": "x"}': "the nearest is 'task'",
        '{"task": ""}': "missing or empty",
        '{"task": 1}': "`task` is of another kind",
        '{"task": "x", "id": "r0"}': "line 1 has the id 'r0' already",
        '{"task": "x", "options": {"polizy": "hpd"}}': "polizy",
        '{"task": "x", "workspace": "nowhere"}': "nowhere",
    }
    tasks = written(tmp_path, 1, *wrong)
    let_go(tmp_path)
    assert main(["fleet", str(tasks), "--output", "json", *given(tmp_path)]) == 1
    made = json.loads(capsys.readouterr().out)
    assert [run["outcome"] for run in made["runs"]] == ["answered"]
    assert [line["line"] for line in made["bad_lines"]] == list(range(2, 10))
    for line, says in zip(made["bad_lines"], wrong.values(), strict=True):
        assert says in line["why"]


def test_a_torn_line_of_what_is_kept_is_dropped(tmp_path: Path) -> None:
    tasks = written(tmp_path, 1)
    let_go(tmp_path)
    assert main(["fleet", str(tasks), *given(tmp_path)]) == 0
    kept = kept_for(tasks, None)
    whole = kept.read_bytes()
    kept.write_bytes(whole + b'{"id": "r0", "dig')
    assert main(["fleet", str(tasks), *given(tmp_path)]) == 0
    assert kept.read_bytes() == whole


def test_two_fleets_do_not_carry_the_same_tasks_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks = written(tmp_path, 1)
    first = FleetRecord(kept_for(tasks, None))
    assert main(["fleet", str(tasks), *given(tmp_path)]) == 2
    assert "Another fleet carries these tasks out" in capsys.readouterr().err
    first.close()
