"""Nights: tasks in worktrees of their own, what is kept of them, and the report of the morning."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.agents.conftest import Supervise
from tests.agents.test_supervise import DONE, LIMIT, OVERLOADED, runs, until
from tui_agent.agents.morning import Report, as_html, as_markdown, as_text, reports
from tui_agent.agents.night import Night, Task, TaskFolder
from tui_agent.agents.shift import Shift, TasksFile
from tui_agent.agents.supervision import words_after
from tui_agent.agents.waiting import Clock
from tui_agent.agents.worktrees import WorktreeError, made
from tui_agent.cli import main, night

HOLDS = ("write", ("state.txt", "1"))


def git(folder: Path, *words: str) -> str:
    names = ("-c", "user.name=n", "-c", "user.email=e@x")
    done = subprocess.run(["git", *names, "-C", folder, *words], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def repository(home: Path) -> Path:
    work = home / "work"
    git(work, "init", "-q")
    git(work, "commit", "-q", "--allow-empty", "-m", "begin")
    return work


def tasks(home: Path, plays: dict[str, list[Any]], head: str = "", task: str = "") -> list[str]:
    """The command line for a file with a task for each play, by their names."""
    played = {f"{number:03d}-{name}": play for number, (name, play) in enumerate(plays.items(), 1)}
    (home / "play.json").write_text(json.dumps(played))
    blocks = [f"[[tasks]]\nname = '{name}'\ncommand = 'claude -p {name}'\n{task}\n" for name in plays]
    (home / "nightly.toml").write_text("\n".join([f"workspace = 'work'\n{head}", *blocks]))
    return ["supervise", "--tasks", str(home / "nightly.toml")]


def report(capfd: pytest.CaptureFixture[str], *options: str) -> str:
    capfd.readouterr()
    assert main(["night", *options]) == 0
    return capfd.readouterr().out


@pytest.mark.process
def test_tasks_run_side_by_side_in_worktrees_that_are_kept_and_reported(
    home: Path, repository: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    plays = {"one": [[DONE], [HOLDS, DONE]], "two": [[("fail", 1), DONE, ("exit", 7)]]}
    line = tasks(home, plays, "at_once = 2\nmax_resumes = 2", "check = 'grep -q 1 state.txt'")
    assert main(line) == 3
    assert not (repository / "state.txt").exists()
    for form in ("text", "markdown", "html"):
        said = report(capfd, "--form", form)
        assert all(
            word in said
            for word in (
                "done",
                "2 checks, 1 red, the last green",
                "1 new file",
                "it said: done",
                "receipt: `grep -q 1 state.txt` at ",
                "not done, exit code 7",
                "resumed 1 time",
            )
        ), said
    worktree = next(home.glob("state/nights/*/001-one/worktree"))
    assert (worktree / "state.txt").read_text() == "1"
    discard = next(line for line in report(capfd).splitlines() if "discard" in line and "/001-one/" in line)
    subprocess.run(discard.split("discard", 1)[1], shell=True, check=True, capture_output=True)
    assert not worktree.exists()


@pytest.mark.process
def test_a_worktree_is_removed_by_choice_and_never_with_what_is_not_committed(
    home: Path, repository: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(tasks(home, {"clean": [[DONE]], "dirty": [[HOLDS, DONE]]}, "remove = true")) == 0
    assert "dirty: its worktree stays" in capfd.readouterr().err
    assert [one.parent.name for one in home.glob("state/nights/*/*/worktree")] == ["002-dirty"]
    assert "clean" in git(repository, "branch", "--list", "agent-tui/*")


def test_a_worktree_that_a_kill_left_half_made_is_made_anew(repository: Path, tmp_path: Path) -> None:
    (repository / "file.txt").write_text("whole")
    git(repository, "add", "file.txt")
    git(repository, "commit", "-q", "-m", "file")
    place = tmp_path / "place"
    made(repository, place, "night/one")
    # As git leaves it when it is killed: locked, and without its files.
    (repository / ".git" / "worktrees" / "place" / "locked").write_text("initializing\n")
    (place / "file.txt").unlink()
    for gone in (False, True):
        if gone:
            (repository / ".git" / "worktrees" / "place" / "locked").write_text("initializing\n")
            shutil.rmtree(place)
        made(repository, place, "night/one")
        assert (place / "file.txt").read_text() == "whole"
        assert git(place, "status", "--porcelain") == ""
    (place / "file.txt").write_text("work")
    git(place, "commit", "-qam", "work")
    made(repository, place, "night/one")
    assert (place / "file.txt").read_text() == "work"
    shutil.rmtree(place)
    with pytest.raises(WorktreeError, match="already exists"):
        made(repository, place, "night/one")  # the branch has work of its own
    place.mkdir()
    with pytest.raises(WorktreeError, match="is no worktree of"):
        made(repository, place, "night/two")


@pytest.mark.process
@pytest.mark.parametrize(
    ("number", "again"), [(signal.SIGKILL, 1), (signal.SIGINT, 0)], ids=["killed", "stopped by a person"]
)
def test_a_night_that_was_killed_goes_on_and_what_a_person_stopped_does_not(
    number: signal.Signals, again: int, home: Path, repository: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    plays = {"one": [[("fail", 1), ("spawn", 0), ("wait", 600)], [DONE]], "two": [[DONE]]}
    line = tasks(home, plays)
    running = subprocess.Popen([sys.executable, "-m", "tui_agent", *line], stderr=subprocess.DEVNULL)
    record = "state/nights/*/001-one"
    until(lambda: (home / "child").exists() and any(TaskFolder(one).session for one in home.glob(record)))
    running.send_signal(number)
    assert running.wait(LIMIT) == (130 if number == signal.SIGINT else -number)
    child = int((home / "child").read_text())
    until(lambda: not Path(f"/proc/{child}").exists() or "Z" in Path(f"/proc/{child}/stat").read_text())
    assert main(line) == (0 if again else 3)
    assert len(list(home.glob("state/nights/*"))) == 1
    calls = [json.loads(each)["argv"] for each in (home / "runs001-one.jsonl").read_text().splitlines()]
    assert len(calls) == 1 + again
    assert (home / "runs002-two.jsonl").read_text().count("\n") == 1
    if again:
        assert calls[1][:3] == ["-p", "--resume", "s001-one"]
        assert "it was cut off" in report(capfd)
    else:
        assert "exit code 130: it was interrupted" in report(capfd)


def test_a_single_run_is_reported_with_waits_checks_and_resumes(
    home: Path, supervise: Supervise, capfd: pytest.CaptureFixture[str]
) -> None:
    supervise([OVERLOADED, [DONE], [HOLDS, DONE]], "--check", "grep -q 1 state.txt")
    said = report(capfd)
    assert main(["night", "--html", str(home / "night.html")]) == 0
    assert "resumed 2 times" in (home / "night.html").read_text()
    assert main(["night", "--html", str(home / "nowhere" / "night.html")]) == 2
    for words in (
        "waits until",
        "check: exit code 2: grep",
        "check: passed",
        "resumed 2 times",
        "resume  cd ",
        "open    agent-tui watch /",
        "--resume s1",
    ):
        assert words in said
    assert len(runs(home)) == 3


@pytest.mark.parametrize(("code", "says"), [(None, "cut off"), (6, "service of the model failed")])
def test_the_command_that_goes_on_with_a_task_says_how_it_ended(code: int | None, says: str) -> None:
    assert says in words_after(code)


def test_the_command_that_goes_on_with_a_task_tells_of_no_fault_that_was_none(
    home: Path, supervise: Supervise, capfd: pytest.CaptureFixture[str]
) -> None:
    supervise([[DONE]])
    [line] = [line for line in report(capfd).splitlines() if line.startswith("  resume ")]
    assert line.endswith("'Look at what is done, and go on with the task.'")


def test_a_record_that_cannot_be_kept_costs_nothing_but_the_report(home: Path, supervise: Supervise) -> None:
    (home / "state").write_text("in the way")
    done = supervise([[DONE]])
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert "kept for the morning" in done.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "tasks"),
        ("tasks = []", "tasks"),
        ("[[tasks]]\nname = '../up'\ncommand = 'claude -p x'", "name"),
        ("[[tasks]]\nname = 'a'\ncommand = 'claude -p x'\nchek = 'true'", "chek"),
        ("[[tasks]]\nname = 'a'\ncommand = 'claude -p x'\n" * 2, "name of its own"),
        ("at_once = 0\n[[tasks]]\nname = 'a'\ncommand = 'claude -p x'", "at_once"),
        ("[[tasks]]\nname = 'a'\ncommand = 'make'", "no agent"),
        ("[[tasks", "nightly.toml"),
    ],
)
def test_a_file_of_tasks_that_cannot_be_used_is_refused_in_words(
    text: str, said: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "nightly.toml").write_text(text)
    assert main(["supervise", "--tasks", str(home / "nightly.toml")]) == 2
    assert said in capsys.readouterr().err
    assert not (home / "state" / "nights").exists()


def test_a_line_that_a_kill_left_torn_costs_no_other_line(tmp_path: Path) -> None:
    folder = TaskFolder(tmp_path)
    folder.add("begun")
    with (tmp_path / "record.jsonl").open("ab") as file:
        file.write(b'{"at": 1, "wh')
    folder.add("ended", code=0)
    assert [entry.what for entry in folder.entries] == ["begun", "ended"]


def test_no_form_of_the_report_is_broken_by_what_an_agent_said() -> None:
    said = "```\n<script>alert(1)</script>"
    tasks = [Report("one", said, (said,), (said,), (("diff", "git diff"),))]
    assert "<script>" not in as_html("Night", tasks)
    assert as_markdown("Night", tasks).count("```") == 4
    assert "one" in as_text("Night", tasks)


def ended(folder: TaskFolder, spent: float | None, resumes: int = 0) -> None:
    for _ in range(resumes):
        folder.add("resumed")
    folder.add("ended", code=0, spent=spent)


@pytest.mark.parametrize(
    ("at_once", "others", "share"),
    [
        (1, {}, 20.0),
        (2, {}, 10.0),
        (1, {"one": 15.0}, 5.0),
        (1, {"one": 15.0, "two": 5.0}, None),
        (1, {"one": None}, 20.0 - 7.0),
        (2, {"two": "runs"}, 13.0),
        (4, {"one": 2.0, "two": "runs"}, 11.0 / 3),
    ],
)
def test_all_tasks_of_a_night_together_pass_no_ceiling(
    at_once: int, others: dict[str, Any], share: float | None, tmp_path: Path
) -> None:
    """Those that run, or whose cost nobody knows, were granted 7."""
    folders = {
        name: Night(tmp_path).folder(number, name) for number, name in enumerate(("one", "two", "new"), 1)
    }
    for name, folder in folders.items():
        folder.keep(Task(name=name, agent="claude-code", command=("claude",), workspace="."))
    given = TasksFile.model_validate(
        {"tasks": [{"name": "a", "command": "claude"}], "at_once": at_once, "max_cost": 20, "max_resumes": 3}
    )
    shift = Shift(Night(tmp_path), given, ["--max-cost=50"], print)
    for name, spent in others.items():
        shift.granted[folders[name]] = {"max_cost": 7.0, "max_resumes": 0.0}
        if spent != "runs":
            ended(folders[name], spent, resumes=1)
    found = shift._share(folders["new"])
    assert (None if found is None else found["max_cost"]) == share
    if share == 5.0 and found is not None:
        assert found["max_resumes"] == 2


class Passing(Clock):
    """Time passes by waits alone."""

    def __init__(self) -> None:
        self.at = 1_000.0

    def now(self) -> float:
        return self.at

    def ticks(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        self.at += seconds
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("options", "until", "agreed", "begun"),
    [
        (["--on-limit=wait"], None, False, ("one", "other", "two", "three")),
        (["--on-limit=ask"], None, True, ("one", "other", "two", "three")),
        (["--on-limit=ask"], None, False, ("one", "other")),
        (["--on-limit=stop"], None, False, ("one", "other")),
        (["--on-limit=wait"], 4_000.0, False, ("one", "other")),
    ],
    ids=["wait", "ask, agreed", "ask, not agreed", "stop", "after --until"],
)
async def test_a_limit_that_one_task_meets_is_not_run_into_by_the_next(
    options: list[str],
    until: float | None,
    agreed: bool,
    begun: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    night, clock = Night(tmp_path), Passing()
    agents = {"one": "claude-code", "two": "claude-code", "other": "codex", "three": "claude-code"}
    for number, (name, agent) in enumerate(agents.items(), 1):
        night.folder(number, name).keep(Task(name=name, agent=agent, command=("x",), workspace=str(tmp_path)))
    ran: dict[str, float] = {}

    async def supervised(_: Shift, folder: TaskFolder, task: Task, goal: str) -> int:
        ran[task.name] = clock.now()
        folder.add("begun")
        if task.name == "one":
            folder.limited(task.agent, 5_000.0)
            if agreed:
                folder.agree()
        return 6 if task.name == "one" else 0

    monkeypatch.setattr(Shift, "_supervised", supervised)
    given = TasksFile.model_validate({"tasks": [{"name": name, "command": "x"} for name in agents]})
    await Shift(night, given, options, print, until, clock=clock).run()
    assert tuple(sorted(ran, key=begun.index)) == begun
    assert {name for name, at in ran.items() if at < 5_000} == {"one", "other"}
    assert [folder.ended is not None for folder in night.tasks] == [name in begun for name in agents]
    later = {one.headline for one in reports(night, lambda *_: "") if one.name not in begun}
    assert later <= {"open: it has not begun"}


COMMANDS = (("output", "less log"), ("diff", "git diff"), ("discard", "git worktree remove"))
TASKS = [
    Report(name, "done", (), (), tuple((what, f"{line} # {name}") for what, line in COMMANDS))
    for name in "ab"
]


@pytest.mark.parametrize(
    ("keys", "ran"),
    [
        ("q", []),
        ("dq", ["git diff # a"]),
        ("2dlq", ["git diff # b", "less log # b"]),
        ("xq", []),
        ("xdq", ["git diff # a"]),
        ("xxq", ["git worktree remove # a"]),
        ("x2xq", []),
        ("x2xxq", ["git worktree remove # b"]),
        ("r", []),
        ("9", []),
        ("", []),
    ],
)
def test_one_key_each_carries_out_what_the_report_offers(keys: str, ran: list[str]) -> None:
    pressed, did = iter(keys), list[str]()
    night._take_keys(TASKS, lambda: next(pressed, ""), did.append)
    assert did == ran


def test_without_a_night_the_report_says_so(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["night"]) == 2
    assert "no night is kept" in capsys.readouterr().err
