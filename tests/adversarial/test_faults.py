"""Attacks by the machine: disks that fill up, clocks that jump, damaged files, little memory, two at one session."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.adversarial.attack import Attack, attack, attacks
from tests.adversarial.test_journals import ANSWER, saved
from tests.cli.conftest import ROOT
from tests.runtime.scripted import ScriptedOperator
from tests.scripted_model import scripted_model
from tests.tools.box import wait_until
from tui_agent.config.settings import Settings
from tui_agent.core.events import Event
from tui_agent.core.fold import fold
from tui_agent.core.names import Decision
from tui_agent.frontend import preferences
from tui_agent.frontend.prompt_history import PromptHistory
from tui_agent.quantities import age, seconds, time_of_day
from tui_agent.session.opening import open_session
from tui_agent.store.journal import JOURNAL_NAME, read_journal
from tui_agent.store.kept_rules import KeptRules
from tui_agent.store.retention import put_away
from tui_agent.store.session_store import SessionStore
from tui_agent.store.trust_file import TrustFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tests.cli.conftest import CommandLine

NAMESPACE = ("unshare", "--mount", "--propagation", "private")


def may_mount(folder: Path) -> bool:
    """Whether a disk of our own can be had here."""
    if shutil.which("unshare") is None or sys.platform != "linux":
        return False
    tried = subprocess.run(
        [*NAMESPACE, "mount", "-t", "tmpfs", "tmpfs", folder], check=False, capture_output=True
    )
    return tried.returncode == 0


@pytest.mark.process
@attacks(
    Attack(
        "disk_pages_some", "A disk with 0, 2 and 20 free pages under all that a session writes",
        "Words; nothing is lost",
        "an export over an older one emptied it first", value=("pages", (0, 2, 20)),
    ),
    Attack(
        "disk_pages", "The same with 1, 4, 7, … 88 free pages: each write is the first that fails", "As above",
        slow=True, value=("pages", range(1, 90, 3)),
    ),
    Attack(
        "disk_files", "A disk that takes 0, 2, 4, … 60 further files", "As above", slow=True,
        value=("files", range(0, 62, 2)),
    ),
    Attack("disk_read_only", "A disk that became read-only", "As above", slow=True, value=("read-only", (0,))),
)  # fmt: skip
def test_small_disks(row: Attack, tmp_path: Path) -> None:
    if not may_mount(tmp_path):
        pytest.skip("no disk can be mounted here: that needs root, or user namespaces")
    kind, rooms = row.value
    command = [*NAMESPACE, sys.executable, "-m", "tests.small_disk", kind, *map(str, rooms)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=1_500)
    tried = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert [each["problems"] for each in tried] == [[]] * len(rooms), done.stdout + done.stderr
    assert tried[0]["refused"] > 0, "there was room after all"


HOME_COMMANDS = {
    "run": (("run", "hello", "--model", "scripted"), "read-only"),
    "sessions": (("sessions",), "read-only"),
    "playbook": (("playbook", "list"), "Nothing is known yet"),
    "rules": (("permissions", "list"), "No rule is set"),
    "hook": (("hook",), ""),
}


@attacks(
    *(
        Attack(f"home_is_read_only_{name}", f"`agent-tui {' '.join(command)}` under a home that is mounted read-only",
               "It says so in words, or does its work; a hook answers the agent as ever", slow=True,
               value=(command, said))
        for name, (command, said) in HOME_COMMANDS.items()
    )
)  # fmt: skip
def test_home_is_read_only(row: Attack, tmp_path: Path) -> None:
    if not may_mount(tmp_path):
        pytest.skip("nothing can be mounted here: that needs root, or user namespaces")
    command, said = row.value
    home, workspace = tmp_path / "home", tmp_path / "w"
    home.mkdir()
    workspace.mkdir()
    mounted = 'mount --bind "$HOME" "$HOME" && mount -o remount,bind,ro "$HOME" && exec "$@"'
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "AGENT_TUI_"))}
    done = subprocess.run(
        [*NAMESPACE, "sh", "-c", mounted, "sh", sys.executable, "-m", "tui_agent", *command],
        cwd=workspace,
        env={**kept, "HOME": str(home), "PYTHONPATH": str(ROOT), "OPENAI_API_KEY": "x"},
        input=json.dumps(
            {"hook_event_name": "PreToolUse", "session_id": "x", "tool_name": "Bash", "tool_input": {}}
        ),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    everything = done.stdout + done.stderr
    assert said in everything, everything
    assert "Traceback" not in everything
    assert done.returncode in ({0} if said != "read-only" else {2}), everything


DAMAGED = {
    "nested": b"[" * 200_000,
    "numbers": b"9" * 6_000,
    "bytes": b"\xff\x00" * 3_000,
    "half_characters": b'{"theme": "\\ud800", "allow": [{"rule": "\\ud800"}]}',
    "moments": b'{"workspace": "x", "allow": [{"rule": "bash(ls)", "at": 1e300}], "ask": [], "deny": []}',
    "wrong_kinds": b'{"theme": [1], "allow": {"a": 1}, "ask": [5], "deny": null}',
}


@attacks(
    *(
        Attack(
            f"memory_{name}",
            f"Preferences, history of the prompt, kept rules and answers damaged: {name.replace('_', ' ')}",
            "What cannot be read is as if it were not there; rules that cannot be read let nothing run",
            "the console did not start" if name == "nested" else "",
            value=body,
        )
        for name, body in DAMAGED.items()
    )
)
def test_damaged_memory(row: Attack, tmp_path: Path) -> None:
    (tmp_path / preferences.FILE).write_bytes(row.value)
    preferences.load(tmp_path)
    preferences.save(tmp_path, theme="other")
    assert preferences.load(tmp_path)["theme"] == "other"
    (tmp_path / "prompts").write_bytes(row.value + b"\n" + b'"kept"\n')
    history = PromptHistory()
    history.load(tmp_path / "prompts")
    history.add("x")
    assert history.entries[-2:] == ("kept", "x")
    rules = KeptRules(tmp_path, tmp_path)
    rules.path.parent.mkdir()
    rules.path.write_bytes(row.value)
    assert {rule.decision for rule in rules.rules()} == {Decision.ASK}
    (tmp_path / "trust").write_bytes(row.value)
    answers = TrustFile(tmp_path / "trust", tmp_path)
    assert answers.answer("x") is None
    answers.keep("x", {}, True)
    assert answers.answer("x") is True


@attacks(
    *(
        Attack(
            f"clock_{name}",
            f"A clock that jumps {tried} while a session is open, which then closes",
            "No other session goes to the trash, and none of the trash is lost",
            "all of them went, and the trash was emptied for good" if days > 0 else "",
            value=days * 86_400.0,
        )
        for name, tried, days in (("forward", "a year forward", 366), ("back", "a year back", -366))
    )
)
def test_retention_by_a_clock_that_jumps(
    row: Attack, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = saved(cli)
    store = SessionStore(cli.state)
    shutil.copytree(old, store.folder("other"))
    shutil.copytree(old, store.folder("deleted"))
    store.delete("deleted", time.time())
    jumped = time.time() + row.value
    monkeypatch.setattr(time, "time", lambda: jumped)
    asyncio.run(put_away(cli.state, old.name, 30, time.time()))
    assert {path.name for path in store.sessions_dir.iterdir()} == {old.name, "other"}
    assert (store.trash_dir / "deleted" / JOURNAL_NAME).exists()


@attacks(
    *(
        Attack(
            f"clock_{name}_in_waits",
            f"A clock that goes a year {name} each time it is read, through waits before retries and of a background "
            "command",
            "Each wait ends by itself after its time, no duration is negative, and the journal gives the same state",
            value=years * 31_536_000.0,
        )
        for name, years in (("forward", 1), ("back", -1), ("to_and_fro", 0))
    )
)
async def test_waits_by_a_clock_that_jumps(row: Attack, tmp_path: Path, cli: CommandLine) -> None:
    moments = itertools.count(1)

    def clock() -> float:
        passed = next(moments)
        return 2e10 + passed * (row.value or (-1) ** passed * 31_536_000.0)

    fault = {"fault": {"kind": "rate_limit", "status": 429, "retry_after": 0.3}}
    background = {"command": "sleep 0.3; echo over", "background": True}
    turns = [
        fault,
        fault,
        {"calls": [{"tool": "bash", "args": background}]},
        {"calls": [{"tool": "bash_output", "args": {"id": "b1", "wait": 30}}]},
        "done",
    ]
    (tmp_path / "files").mkdir()
    settings = Settings(
        workspace=tmp_path / "files", state_dir=cli.state, model="scripted", approve="all", sandbox="off"
    )
    session = await open_session(settings, ScriptedOperator(), scripted_model(turns), clock=clock)
    await session.submit("go")
    finished = await asyncio.wait_for(session.wait(), 60)
    assert finished is not None
    assert finished.outcome == "answered"
    state = session.state
    await session.close()
    journal = read_journal(session.folder).events
    assert [event.type for event in journal].count("model_faulted") == 2
    assert fold(journal[: state.seq]).conversation == state.conversation
    for event in journal:
        assert getattr(event, "duration", 0) >= 0, event
        assert getattr(event, "duration", 0) < 60, event
    for verb in (("sessions", "show"), ("replay", "--print"), ("sessions", "export")):
        assert cli(*verb, session.id).code == 0


@attack(
    "Times a year away, before 1970 and of the year 9000, on both sides of now",
    "They are shown in a few cells",
)
def test_times_of_all_kinds() -> None:
    for moment in (-6e10, -1.0, 0.0, 1.8e9, 2.5e11):
        assert 0 < len(age(moment)) < 12
        assert 0 < len(time_of_day(moment)) < 13
        assert 0 < len(seconds(moment)) < 16


@pytest.mark.process
@attack(
    "While a session runs: it is resumed, renamed, deleted, forked, exported, shown and listed by other processes",
    "What changes it is refused with who holds it; what reads it works; the run ends as it would have",
)
def test_a_session_that_runs_is_used_by_others(cli: CommandLine) -> None:
    gate = cli.workspace / "go"
    command = f"touch begun; until [ -e {gate} ]; do sleep 0.05; done"
    turns = f'[[turns]]\ncalls = [{{ tool = "bash", args = {{ command = "{command}" }} }}]\n' + ANSWER
    process = cli.start("run", "go", "--model", cli.scenario(turns), "--approve", "all", "--output", "json")
    assert asyncio.run(wait_until((cli.workspace / "begun").exists))
    (folder,) = (cli.state / "sessions").iterdir()
    model = cli.scenario(ANSWER * 4)
    for refused in (
        ("run", "more", "--resume", folder.name, "--model", model),
        ("sessions", "rename", folder.name, "other"),
        ("sessions", "delete", folder.name),
    ):
        done = cli(*refused)
        assert done.code == 2, done
        assert str(process.pid) in done.err
    for works in (
        ("sessions", "fork", folder.name),
        ("sessions", "export", folder.name),
        ("sessions", "show", folder.name),
        ("sessions", "list"),
        ("replay", folder.name, "--print"),
    ):
        done = cli(*works)
        assert done.code == 0, done
    gate.touch()
    out, _ = process.communicate(timeout=60)
    assert json.loads(out)["outcome"] == "answered"
    events = read_journal(folder).events
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    (fork,) = (path for path in (cli.state / "sessions").iterdir() if path != folder)
    assert cli("run", "on", "--resume", fork.name, "--model", model).code == 0


def run_under(cli: CommandLine, limit: str, calls: Iterable[tuple[str, dict[str, Any]]]) -> list[Event]:
    """The results of a run's calls, one a turn, with what `limit` leaves to it; it ends answered."""
    turns = "".join(
        f"[[turns]]\ncalls = [{{ tool = {json.dumps(tool)}, args = {{ "
        + ", ".join(f"{key} = {json.dumps(value)}" for key, value in arguments.items())
        + " } }]\n"
        for tool, arguments in calls
    )
    command = [sys.executable, "-m", "tui_agent", "run", "x", "--output", "json", "--approve", "all"]
    command += ["--model", cli.scenario(turns + ANSWER)]
    done = subprocess.run(
        ["bash", "-c", f'{limit} && exec "$@"', "bash", *command],
        cwd=cli.workspace, env=cli.environ(), stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False, timeout=500,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2_000:]
    assert json.loads(done.stdout)["outcome"] == "answered"
    (folder,) = (cli.state / "sessions").iterdir()
    results = {"tool_failed", "tool_succeeded"}
    return [event for event in read_journal(folder).events if event.type in results]


@attack(
    "A run in 1.5 GB of address space whose command prints 100 MB, and whose files have 100 MB",
    "The results are cut, the whole is kept in a file, the run ends answered",
    slow=True,
)
def test_little_memory(cli: CommandLine) -> None:
    with (cli.workspace / "big.txt").open("wb") as file:
        file.writelines(b"line of a big file\n" * 1_000 for _ in range(5_500))
    calls: list[tuple[str, dict[str, Any]]] = [
        ("bash", {"command": "yes 0123456789abcdef | head -c 100000000"}),
        ("read_file", {"path": "big.txt"}),
        ("grep", {"pattern": "big"}),
        ("bash", {"command": "cat big.txt"}),
    ]
    results = run_under(cli, "ulimit -v 1500000", calls)
    assert [event.type for event in results] == ["tool_succeeded"] * len(calls)
    (folder,) = (cli.state / "sessions").iterdir()
    assert (folder / JOURNAL_NAME).stat().st_size < 2_000_000


@contextmanager
def group_of(megabytes: int) -> Iterator[Path]:
    """A control group whose processes have so much memory together; its file of processes."""
    own = re.search(r"^\d+:memory:(.*)$|^0::(.*)$", Path("/proc/self/cgroup").read_text(), re.MULTILINE)
    base = Path("/sys/fs/cgroup") / ("memory" if own and own[1] is not None else "")
    folder = Path(f"{base}{(own[1] or own[2] or '') if own else ''}", f"agent-tui-test-{os.getpid()}")
    limit = "memory.limit_in_bytes" if own and own[1] is not None else "memory.max"
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    try:
        if not (folder / limit).exists():
            pytest.skip("control groups have no memory here")
        (folder / limit).write_text(str(megabytes << 20))
        yield folder / "cgroup.procs"
    finally:
        folder.rmdir()


EATS = f"'{sys.executable}' -c 'len(bytearray(b\"x\") * 900000000)'"


@attacks(
    Attack(
        "memory_of_addresses",
        "The whole program in 500 MB of address space, and a command that wants 900 MB",
        "The command fails and says why; the run goes on and ends answered",
        slow=True,
        value=("ulimit -v 500000", "MemoryError"),
    ),
    Attack(
        "memory_of_a_group",
        "The same in a control group of 220 MB, in which the kernel kills",
        "As above",
        slow=True,
        value=("echo $$ > {group}", "SIGKILL"),
    ),
)
def test_limits_of_memory(row: Attack, cli: CommandLine) -> None:
    limit, said = row.value
    calls = [("bash", {"command": command}) for command in (EATS, "echo alive")]
    with group_of(220) if "{group}" in limit else nullcontext() as group:
        results = run_under(cli, limit.format(group=group), calls)
    assert [event.type for event in results] == ["tool_failed", "tool_succeeded"]
    assert said in str(results[0]), results[0]
    assert "alive" in str(results[1])
