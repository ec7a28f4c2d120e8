"""Sub-agents through the whole path: a server on loopback that answers by who asks, litellm, real tools."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests import openai_server as server
from tests.kept_host import KeptHost
from tests.openai_server import Answer, OpenAIServer, Recorded
from tests.runtime.scripted import ScriptedOperator
from tests.runtime.session_harness import assert_coherent, replayed
from tui_agent.config.settings import Settings
from tui_agent.core import events
from tui_agent.core.fold import fold
from tui_agent.core.names import CallState, Outcome
from tui_agent.core.projections.entries import CallEntry
from tui_agent.core.projections.lane import Lane
from tui_agent.core.recovery.folding import so_far
from tui_agent.core.recovery.ring import ErrorRing
from tui_agent.core.result import result_of
from tui_agent.core.state import RunState
from tui_agent.event_lines import WORDS, event_line
from tui_agent.formats.exporters import export_session
from tui_agent.lab.analysis.runs import analyze_file
from tui_agent.runtime.operator import ApprovalReply, EscalationReply
from tui_agent.session.opening import open_session
from tui_agent.session.session import Session
from tui_agent.store.audit import effects_of
from tui_agent.store.journal import JOURNAL_NAME, read_journal
from tui_agent.store.summary import summarise

pytestmark = pytest.mark.asyncio(loop_scope="session")

TASK = "Count the carts."
SECRET = "sk-live-0123456789abcdefghij"
"""Stands in a file of the workspace, in the form of a provider's key."""


def calls(*wanted: tuple[str, dict[str, Any]]) -> Answer:
    return server.calls([(name, json.dumps(arguments)) for name, arguments in wanted])


def task(name: str) -> tuple[str, dict[str, Any]]:
    """A sub-agent whose prompt is its name, by which the server knows it."""
    return "task", {"name": name, "prompt": name}


def end(answer: str) -> Answer:
    return calls(("finish", {"answer": answer}))


class Routed(OpenAIServer):
    """Answers each agent from its own script, by the task in its first message."""

    def __init__(self, scripts: Mapping[str, Sequence[Answer]]) -> None:
        super().__init__()
        self._scripts = {name: list(script) for name, script in scripts.items()}
        self.by_agent: dict[str, list[Recorded]] = defaultdict(list)

    def respond(self, request: Recorded) -> Answer:
        if request.method == "GET" or request.path == "/api/show":
            return super().respond(request)
        first = next(one["content"] for one in request.body["messages"] if one["role"] == "user")
        self.by_agent[first].append(request)
        script = self._scripts[first]
        return script.pop(0) if len(script) > 1 else script[0]


@asynccontextmanager
async def agents(host: KeptHost, folder: Path, scripts: Mapping[str, Sequence[Answer]], **options: Any):
    """A session over these scripts, in a workspace with two carts and a file that holds a key."""
    operator = options.pop("operator", None) or ScriptedOperator(present=False)
    resume = options.pop("resume", None)
    workspace = folder / "workspace"
    workspace.mkdir(exist_ok=True)
    (workspace / "carts.txt").write_text("red\nblue\n")
    (workspace / "key.txt").write_text(f"key = {SECRET}\n")
    async with Routed(scripts) as provider:
        settings = Settings(
            **{"model": "openai/test", "approve": "all", "sandbox": {"mode": "off"}, **options},
            api_base=provider.url,
            workspace=workspace,
            state_dir=folder / "state",
        )
        session = await open_session(settings, operator, host, resume)
        try:
            yield session, provider
        finally:
            await session.close()
        if resume is None:
            assert replayed(session) == session.state
        for requests in provider.by_agent.values():
            for request in requests:
                assert_coherent(request.body["messages"])


async def run(session: Session) -> events.RunFinished:
    await session.submit(TASK)
    finished = await session.wait()
    assert finished is not None
    return finished


def lane_events(session: Session, kind: type[events.Event]) -> list[Any]:
    recorded = read_journal(session.folder).events
    return [
        one.event for one in recorded if isinstance(one, events.LaneEvent) and isinstance(one.event, kind)
    ]


def task_calls(session: Session) -> list[CallEntry]:
    entries = session.state.conversation.entries
    return [entry for entry in entries if isinstance(entry, CallEntry) and entry.tool == "task"]


def results(provider: Routed, agent: str) -> list[str]:
    """The tool results in the newest request of an agent."""
    return [one["content"] for one in provider.by_agent[agent][-1].body["messages"] if one["role"] == "tool"]


def tools_of(request: Recorded) -> set[str]:
    return {tool["function"]["name"] for tool in request.body["tools"]}


async def test_a_sub_agent_works_in_a_window_of_its_own_and_its_answer_is_the_result(
    host: KeptHost, tmp_path: Path
):
    scripts = {
        TASK: [calls(task("count lines")), end("There are two carts.")],
        "count lines": [
            calls(("read_file", {"path": "carts.txt"}), ("read_file", {"path": "key.txt"})),
            calls(
                ("write_file", {"path": "count.txt", "content": "2"}), ("task", {"name": "x", "prompt": "y"})
            ),
            end("2 carts"),
        ],
    }
    async with agents(host, tmp_path, scripts) as (session, provider):
        finished = await run(session)
        assert finished.outcome is Outcome.ANSWERED
        lane, own = provider.by_agent["count lines"], provider.by_agent[TASK]
        assert TASK not in json.dumps(lane[-1].body["messages"])
        assert tools_of(own[0]) - tools_of(lane[0]) == {"task"}
        assert results(provider, TASK) == ["2 carts"]
        assert "no tool named 'task'" in results(provider, "count lines")[-1]
        (entry,) = task_calls(session)
        assert entry.lane == Lane(3, 25, entry.lane.calls, "", Outcome.ANSWERED)
        states = [(call.tool, call.state) for call in entry.lane.calls]
        assert ("task", CallState.FAILED) in states
        assert states[0] == ("read_file", CallState.SUCCEEDED)
        assert (tmp_path / "workspace/count.txt").read_text() == "2"
        result = result_of(session.state)
        assert (result.files_changed, result.model_calls, result.tool_calls) == (["count.txt"], 2, 2)
        assert result.usage["prompt_tokens"] == 5 * 11
        assert session.state.lanes == {}
    assert SECRET not in (session.folder / JOURNAL_NAME).read_text()


async def test_sub_agents_of_one_reply_work_side_by_side(host: KeptHost, tmp_path: Path):
    names = ["one", "two", "three"]
    # Each lane waits in the shell for the files of the others.
    wait = "touch {0}; for i in $(seq 600); do [ -e one -a -e two -a -e three ] && exit 0; sleep 0.1; done; exit 9"
    scripts = {name: [calls(("bash", {"command": wait.format(name)})), end(name)] for name in names}
    scripts[TASK] = [calls(*map(task, names)), end("done")]
    async with agents(host, tmp_path, scripts) as (session, provider):
        assert (await run(session)).outcome is Outcome.ANSWERED
        assert results(provider, TASK) == names
        assert {entry.lane.calls[0].state for entry in task_calls(session)} == {CallState.SUCCEEDED}


async def test_the_failure_that_stands_in_a_lane_is_in_the_ring_of_the_run(host: KeptHost, tmp_path: Path):
    missing = [calls(("read_file", {"path": f"nowhere-{number}.txt"})) for number in range(3)]
    scripts = {
        TASK: [calls(task("look for it")), end("not there")],
        "look for it": [*missing, Answer(status=400, body=b'{"error": {"message": "no"}}')],
    }
    async with agents(host, tmp_path, scripts) as (session, provider):
        in_ring: list[list[str]] = []
        session.subscribe(
            lambda _, state: in_ring.append(
                [one.lane for one in state.recovery.of(ErrorRing).slots if one is not None]
            )
        )
        await run(session)
        assert ["look for it"] in in_ring
        assert ["look for it"] * 2 not in in_ring
        assert in_ring[-1] == ["look for it", ""]
        (said,) = results(provider, TASK)
        assert said.startswith("Error: The sub-agent ended without an answer (model failed) after 4 steps")
        (entry,) = task_calls(session)
        assert entry.lane is not None
        assert entry.lane.outcome is Outcome.MODEL_FAILED
        assert result_of(session.state).tool_errors == 1


async def test_a_sub_agent_that_is_done_hides_no_failure_of_one_at_work(host: KeptHost, tmp_path: Path):
    wait = "for i in $(seq 600); do [ -e done ] && exit 0; sleep 0.1; done; exit 9"
    scripts = {
        TASK: [calls(task("one"), task("two")), end("ok")],
        "one": [calls(("read_file", {"path": "nowhere"})), calls(("bash", {"command": wait})), end("1")],
        "two": [calls(("bash", {"command": "sleep 1"})), end("2")],
    }
    async with agents(host, tmp_path, scripts) as (session, _):
        seen: list[list[str]] = []

        def watch(event: events.Event, state: RunState) -> None:
            if isinstance(event, events.ToolSucceeded) and event.content == "2":
                ring = so_far(state.recovery, state.run.iteration, state.seq, state.at).of(ErrorRing)
                seen.append([slot.lane for slot in ring.slots if slot is not None])
                (tmp_path / "workspace/done").touch()

        session.subscribe(watch)
        assert (await run(session)).outcome is Outcome.ANSWERED
    assert seen == [["one"]]
    assert session.state.recovery.of(ErrorRing).filled == 0


async def test_a_lane_is_read_in_every_form_of_a_session(host: KeptHost, tmp_path: Path):
    scripts = {
        TASK: [calls(task("look for it")), end("found")],
        "look for it": [
            calls(("read_file", {"path": "nowhere"}), ("bash", {"command": "touch made"})),
            end("it is made"),
        ],
    }
    async with agents(host, tmp_path, scripts) as (session, _):
        await run(session)
    recorded = read_journal(session.folder).events
    for written in (export_session(recorded, form) for form in ("markdown", "html", "text")):
        assert "touch made" in written
    lines = [line for event in recorded if (line := event_line(event, WORDS)).startswith("  look for it: ")]
    assert lines[0] == "  look for it: begins"
    assert lines[-1] == "  look for it: ended, answered"
    assert any("failed: read_file nowhere" in line for line in lines)
    commands = [effect for effect in effects_of(recorded) if effect["kind"] == "command"]
    assert [(one["command"], one["outcome"]) for one in commands] == [("touch made", "ok")]
    row, passages = summarise(session.folder)
    assert row.tool_calls == 2
    assert any("touch made" in passage.text for passage in passages)
    report = analyze_file(session.folder / JOURNAL_NAME, ["combined", "forge"])
    assert [(one.tool_calls, one.outcome) for one in report.rows] == [(2, "answered")] * 2


async def test_calls_and_questions_of_a_lane_reach_the_operator_under_its_name(
    host: KeptHost, tmp_path: Path
):
    write = ("write_file", {"path": "new.txt", "content": "x"})
    scripts = {
        TASK: [
            calls(task("write it")),
            calls(("write_file", {"path": "own.txt", "content": "x"})),
            end("ok"),
        ],
        "write it": [calls(write), calls(("ask_operator", {"question": "red?"})), end("written")],
    }
    operator = ScriptedOperator()
    operator.approvals.append(ApprovalReply("session"))
    operator.answers.append(EscalationReply("answer", "yes, red"))
    async with agents(host, tmp_path, scripts, operator=operator, approve="ask") as (session, provider):
        await run(session)
        assert [one.lane for one in operator.asked] == ["write it"]
        assert [(one.lane, one.question) for one in operator.raised] == [("write it", "red?")]
        assert "yes, red" in results(provider, "write it")
        # What was allowed for the session is allowed to the run as well.
        assert (tmp_path / "workspace/own.txt").exists()


async def test_what_was_allowed_to_one_lane_is_not_asked_again_by_the_next(host: KeptHost, tmp_path: Path):
    scripts = {
        TASK: [calls(task("first"), task("second")), end("ok")],
        **{
            name: [calls(("bash", {"command": f"ls {name}* ."})), end("seen")] for name in ("first", "second")
        },
    }
    operator = ScriptedOperator()
    operator.approvals.append(ApprovalReply("session", rules=("bash(ls *)",)))
    async with agents(host, tmp_path, scripts, operator=operator, approve="ask") as (session, _):
        await run(session)
        assert len(operator.asked) == 1
        assert [one.tool for one in lane_events(session, events.ToolStarted)].count("bash") == 2


async def test_a_lane_may_do_no_more_than_the_run(host: KeptHost, tmp_path: Path):
    scripts = {
        TASK: [calls(task("write it")), end("ok")],
        "write it": [calls(("write_file", {"path": "new.txt", "content": "x"})), end("could not")],
    }
    options = {"approve": "plan", "max_cost": 2.0, "max_run_tokens": 8_018, "max_iterations": 9}
    async with agents(host, tmp_path, scripts, **options) as (session, _):
        await run(session)
        (start,) = lane_events(session, events.RunStarted)
        assert (start.max_iterations, start.approve) == (4, "plan")
        assert start.budgets == {"max_cost": 0.5, "max_run_tokens": 2_000}
        assert [one.refusal for one in lane_events(session, events.ToolRefused)] == ["denied"]
        assert not (tmp_path / "workspace/new.txt").exists()


async def test_an_interruption_ends_a_lane_with_its_step_and_the_run_goes_on(host: KeptHost, tmp_path: Path):
    scripts = {
        TASK: [calls(task("wait")), end("gave up")],
        "wait": [calls(("bash", {"command": "echo begun; sleep 600"})), end("never")],
    }
    async with agents(host, tmp_path, scripts) as (session, _):
        begun = asyncio.Event()

        def watch(event: events.Event, _: object) -> None:
            if isinstance(event, events.LaneEvent) and isinstance(event.event, events.ToolStarted):
                begun.set()

        session.subscribe(watch)
        await session.submit(TASK)
        await asyncio.wait_for(begun.wait(), 120)
        await session.interrupt()
        finished = await session.wait()
        assert finished is not None
        assert finished.answer == "gave up"
        (entry,) = task_calls(session)
        assert entry.state is CallState.CANCELLED
        assert entry.lane is not None
        assert entry.lane.outcome is Outcome.INTERRUPTED
        assert [one.tool for one in lane_events(session, events.ToolCancelled)] == ["bash"]


async def test_what_a_lane_wrote_is_brought_back_by_a_rewind(host: KeptHost, tmp_path: Path):
    write = ("write_file", {"path": "new.txt", "content": "x"})
    scripts = {TASK: [calls(task("write it")), end("ok")], "write it": [calls(write), end("written")]}
    async with agents(host, tmp_path, scripts) as (session, _):
        await run(session)
        assert (tmp_path / "workspace/new.txt").exists()
        await session.rewinding.carry_out(
            await session.rewinding.plan(session.rewinding.points()[-1], "both")
        )
        assert not (tmp_path / "workspace/new.txt").exists()
        assert task_calls(session) == []


async def test_a_session_killed_at_any_event_of_its_lanes_goes_on_to_the_end(host: KeptHost, tmp_path: Path):
    looks = [calls(("read_file", {"path": "carts.txt"})), end("2")]
    scripts = {TASK: [calls(task("a"), task("b")), end("two")], "a": looks, "b": looks}
    async with agents(host, tmp_path, scripts) as (session, _):
        await run(session)
    lines = (session.folder / JOURNAL_NAME).read_text().splitlines(keepends=True)
    kinds = [json.loads(line)["type"] for line in lines]
    first, last = kinds.index("lane_event"), len(kinds) - kinds[::-1].index("lane_event")
    for place in range(first, last + 1, 5):
        folder = tmp_path / "state" / "sessions" / f"killed-{place}"
        folder.mkdir(parents=True)
        (folder / JOURNAL_NAME).write_text("".join(lines[:place]))
        again = {TASK: [end("two, after all")], "a": looks, "b": looks}
        async with agents(host, tmp_path, again, resume=folder) as (resumed, _):
            assert resumed.state.lanes == {}
            assert resumed.go_on()
            finished = await resumed.wait()
            assert finished is not None
            assert finished.answer == "two, after all"
            assert fold(read_journal(folder).events) == resumed.state
            assert {entry.state for entry in task_calls(resumed)} <= {
                CallState.CANCELLED,
                CallState.SUCCEEDED,
            }
