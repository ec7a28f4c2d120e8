"""Another agent takes the steps of a session: its updates are events, its questions the operator's, its end ours."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.acp.other_agent import (
    LIMIT,
    Ask,
    Die,
    Hang,
    OtherAgent,
    Person,
    Raw,
    Step,
    Stop,
    called,
    ended,
    say,
    session_with,
    think,
)
from tui_agent.acp_client.driver import GO_ON
from tui_agent.acp_client.entries import AgentEntry
from tui_agent.agents import claude_code
from tui_agent.agents.dialect import Scope
from tui_agent.agents.installing import carry_out, command_line, settings_place, to_install
from tui_agent.core import events
from tui_agent.core.fold import fold
from tui_agent.runtime.operator import ApprovalReply, EscalationReply
from tui_agent.store.journal import Journal

E = TypeVar("E", bound=events.Event)


def of(heard: Sequence[events.Event], kind: type[E]) -> list[E]:
    return [event for event in heard if isinstance(event, kind)]


async def run(
    folder: Path, agent: OtherAgent, person: Person | None = None, task: str = "Do it.", **options: Any
) -> list[events.Event]:
    """All events of a session with one run."""
    async with session_with(folder, agent, person, **options) as (session, heard):
        await session.submit(task)
        await asyncio.wait_for(session.wait(), LIMIT)
    return heard


async def test_its_words_calls_plan_and_diff_are_events_as_of_our_own_runs(tmp_path: Path) -> None:
    diff = {"type": "diff", "path": str(tmp_path / "work" / "a.txt"), "oldText": "one\n", "newText": "1\n"}
    plan = {"sessionUpdate": "plan", "entries": [{"content": "Look", "status": "in_progress"}]}
    agent = OtherAgent(
        [
            think("Hm."),
            say("I look."),
            plan,
            called("a", command="ls"),
            ended("a", "a.txt", rawOutput={"exit_code": 0}),
            called("b", "edit", path="a.txt"),
            ended("b", content=[diff]),
            {"sessionUpdate": "usage_update", "used": 1_200, "size": 9_000, "cost": {"amount": 0.25}},
            say("Done."),
        ]
    )
    heard = await run(tmp_path, agent)
    assert agent.prompts == ["Do it."]
    replies = of(heard, events.ReplyFinished)
    assert (replies[0].text, replies[0].reasoning) == ("I look.", "Hm.")
    assert [call.name for reply in replies for call in reply.calls] == ["update_plan", "execute", "edit"]
    done = {event.tool: event for event in of(heard, events.ToolSucceeded)}
    assert done["execute"].exit_code == 0
    assert done["edit"].changed == ("a.txt",)
    assert "-one\n+1\n" in done["edit"].diff
    assert done["update_plan"].input == {"plan": [{"step": "Look", "status": "in_progress"}]}
    assert replies[-1].prompt_tokens == 1_200
    assert sum(one.cost or 0.0 for one in replies) == 0.25
    finished = of(heard, events.RunFinished)[-1]
    assert (finished.outcome, finished.answer) == (events.Outcome.ANSWERED, "Done.")
    state = fold(heard)
    assert state.run.agent == "theirs"
    assert state.metrics.files_changed == ("a.txt",)


@pytest.mark.parametrize(
    ("update", "kind", "said"),
    [
        (ended("a", "no such file", "failed"), events.ToolFailed, "no such file"),
        (ended("a", "made it", rawOutput={"exitCode": 1}), events.ToolFailed, "exit code 1"),
        (ended("a", "made it", rawOutput={"metadata": {"exit": 2}}), events.ToolFailed, "exit code 2"),
        (ended("a", "Output: made it\nExit Code: 3\nSignal: 0"), events.ToolFailed, "exit code 3"),
        (
            ended("a", "<shellId: 0 completed with exit code 4>\n\n" + 90 * "A hook. "),
            events.ToolFailed,
            "exit code 4",
        ),
        (ended("a", _meta={"terminal_exit": {"exit_code": 5}}), events.ToolFailed, "exit code 5"),
        (ended("a", rawOutput={"output": "fine"}), events.ToolSucceeded, "fine"),
        (Stop(), events.ToolEnded, ""),
        (Stop("cancelled"), events.ToolCancelled, "unknown"),
    ],
)
async def test_a_call_ends_as_it_ended(
    tmp_path: Path, update: Step, kind: type[events.ToolResult], said: str
) -> None:
    heard = await run(tmp_path, OtherAgent([called("a", command="make"), update, say("So.")]), Person())
    [result] = of(heard, events.ToolResult)
    assert isinstance(result, kind)
    assert said in result.model_dump_json()


async def test_what_a_call_prints_on_a_terminal_of_the_agents_is_its_output(tmp_path: Path) -> None:
    def printed(**meta: Any) -> Step:
        return {"sessionUpdate": "tool_call_update", "toolCallId": "a", "_meta": meta}

    turn: list[Step] = [
        {
            **called("a", command="make"),
            "content": [{"type": "terminal", "terminalId": "a"}],
            "name": "exec_command",
        },
        printed(terminal_output_delta={"terminal_id": "a", "data": "cc a.c\n"}),
        printed(terminal_output_delta={"terminal_id": "a", "data": "error: no a.c\n"}),
        {**ended("a", status="failed"), "content": None, "_meta": {"terminal_exit": {"exit_code": 2}}},
        say("So."),
    ]
    heard = await run(tmp_path, OtherAgent(turn))
    [failed] = of(heard, events.ToolFailed)
    assert (failed.tool, failed.exit_code) == ("exec_command", 2)
    assert "cc a.c\nerror: no a.c" in failed.content
    assert "error: no a.c" in "".join(one.text for one in of(heard, events.ToolProgress))


async def test_calls_side_by_side_are_one_reply_and_one_within_another_comes_after_it(tmp_path: Path) -> None:
    turn: list[Step] = [
        called("a", status="pending", command="one"),
        called("b", status="pending", command="two"),
        Ask({"toolCallId": "a"}),
        called("inner", "read", path="x"),
        ended("inner", "x"),
        ended("b", "2"),
        ended("a", "1"),
        say("Done."),
    ]
    heard = await run(tmp_path, OtherAgent(turn), Person(ApprovalReply("once")))
    assert [[call.id for call in one.calls] for one in of(heard, events.ReplyFinished)] == [
        ["a", "b"],
        ["inner"],
        [],
    ]
    assert "read inner" in "".join(event.text for event in of(heard, events.ToolProgress))


async def test_an_id_that_comes_again_is_another_call(tmp_path: Path) -> None:
    turn: list[Step] = [
        called("a", command="one"),
        ended("a", "1"),
        called("a", command="two"),
        ended("a", "2"),
    ]
    heard = await run(tmp_path, OtherAgent([*turn, say("So.")]))
    assert [(one.call_id, one.content) for one in of(heard, events.ToolSucceeded)] == [
        ("a", "1"),
        ("a+", "2"),
    ]


async def test_arguments_that_come_in_pieces_as_content_are_the_calls_arguments(tmp_path: Path) -> None:
    turn: list[Step] = [
        called("a"),
        ended("a", '{"comm', "in_progress"),
        ended("a", '{"command": "make"}', "in_progress"),
        Ask({"toolCallId": "a", "content": ended("a", "May I run make?")["content"]}),
        ended("a", "no rule\nCommand failed with exit code: 2.", "failed"),
        say("So."),
    ]
    person = Person(ApprovalReply("once"))
    heard = await run(tmp_path, OtherAgent(turn), person)
    [question] = person.asked
    assert isinstance(question, events.ApprovalAsked)
    assert question.rules == ("bash(make)",)
    assert [one.input for one in of(heard, events.ToolStarted)] == [{"command": "make"}]
    assert of(heard, events.ToolFailed)[0].exit_code == 2


# --- permissions -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "answers", "outcome", "asked"),
    [
        ({}, [ApprovalReply("once")], "yes", 1),
        ({}, [ApprovalReply("session", rules=("bash(make *)",))], "yes", 1),
        ({}, [ApprovalReply("deny", "not now")], "no", 1),
        ({"approve": "all"}, [], "yes", 0),
        ({"permissions": {"allow": ("bash(make *)",)}}, [], "yes", 0),
        ({"permissions": {"deny": ("bash(make *)",)}}, [], "no", 0),
    ],
)
async def test_a_permission_request_is_answered_by_rules_mode_or_operator(
    tmp_path: Path, options: dict[str, Any], answers: list[ApprovalReply], outcome: str, asked: int
) -> None:
    end = ended("a", "rejected", "failed") if outcome == "no" else ended("a", "built")
    turn: list[Step] = [
        called("a", status="pending", command="make all"),
        Ask({"toolCallId": "a"}),
        end,
        say("So."),
    ]
    agent, person = OtherAgent(turn), Person(*answers)
    heard = await run(tmp_path, agent, person, **options)
    assert agent.outcomes == [{"outcome": "selected", "optionId": outcome}]
    assert len(person.asked) == asked
    [result] = of(heard, events.ToolResult)
    assert isinstance(result, events.ToolRefused if outcome == "no" else events.ToolSucceeded)


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (ApprovalReply("deny", "use ninja"), "use ninja"),
        (ApprovalReply("once", input={"command": "ninja"}), '{"command": "ninja"}'),
    ],
)
async def test_why_a_call_was_denied_is_the_next_prompt_and_an_edited_call_does_not_run(
    tmp_path: Path, reply: ApprovalReply, told: str
) -> None:
    turn: list[Step] = [
        called("a", command="make"),
        Ask({"toolCallId": "a"}),
        ended("a", "rejected", "failed"),
        say("So."),
    ]
    agent = OtherAgent(turn, [say("Other way.")])
    heard = await run(tmp_path, agent, Person(reply))
    assert agent.outcomes == [{"outcome": "selected", "optionId": "no"}]
    assert told in agent.prompts[1]
    assert told in of(heard, events.ToolRefused)[0].reason


@pytest.mark.parametrize("title", ["make all", "cd /tmp && make all"])
async def test_a_command_that_stands_in_the_title_alone_is_judged_by_the_rules(
    tmp_path: Path, title: str
) -> None:
    """Gemini CLI gives no arguments with its calls."""
    told = {"toolCallId": "a", "title": title, "kind": "execute"}
    turn: list[Step] = [Ask({**told, "status": "pending"}), ended("a", "rejected", "failed"), say("So.")]
    agent, person = OtherAgent(turn), Person()
    heard = await run(tmp_path, agent, person, permissions={"deny": ("bash(make *)",)}, approve="all")
    assert agent.outcomes == [{"outcome": "selected", "optionId": "no"}]
    assert person.asked == []
    [refused] = of(heard, events.ToolRefused)
    assert "make *" in refused.reason
    [reply, *_] = of(heard, events.ReplyFinished)
    assert [json.loads(call.arguments) for call in reply.calls] == [{"command": title}]


async def test_reading_is_asked_about_since_no_sandbox_of_ours_is_around_it(tmp_path: Path) -> None:
    turn: list[Step] = [
        called("a", status="pending", command="ls"),
        Ask({"toolCallId": "a"}),
        ended("a", "x"),
        say("So."),
    ]
    person = Person(ApprovalReply("once"))
    await run(tmp_path, OtherAgent(turn), person)
    assert len(person.asked) == 1


async def test_options_that_are_more_than_yes_and_no_are_the_operators_to_choose(tmp_path: Path) -> None:
    options = [
        {"optionId": str(n), "name": name, "kind": "allow_once"} for n, name in enumerate(["Red", "Blue"])
    ]
    turn: list[Step] = [
        Ask({"toolCallId": "q", "title": "Which colour?"}, options),
        ended("q", "ok"),
        say("So."),
    ]
    agent, person = OtherAgent(turn), Person(EscalationReply("answer", "Blue"))
    await run(tmp_path, agent, person)
    assert agent.outcomes == [{"outcome": "selected", "optionId": "1"}]


async def test_a_call_that_says_it_runs_while_its_question_is_open_has_not_begun(tmp_path: Path) -> None:
    early = {"sessionUpdate": "tool_call_update", "toolCallId": "a", "status": "in_progress"}
    turn: list[Step] = [
        called("a", status="pending", command="make"),
        Ask({"toolCallId": "a"}, meanwhile=[early]),
        ended("a", "rejected", "failed"),
        say("So."),
    ]
    heard = await run(tmp_path, OtherAgent(turn), Person(ApprovalReply("deny", "not now")), advise="off")
    assert not of(heard, events.ToolStarted)
    assert len(of(heard, events.ToolRefused)) == 1
    agent = OtherAgent([*turn[:2], ended("a", "built"), say("So.")])
    (tmp_path / "again").mkdir()
    heard = await run(tmp_path / "again", agent, Person(ApprovalReply("once")))
    [started], [answered] = of(heard, events.ToolStarted), of(heard, events.ApprovalAnswered)
    assert heard.index(answered) < heard.index(started)
    assert started.allowed_by == "the operator (once)"


@pytest.mark.parametrize("end", [Stop(), ended("a", "done elsewhere")])
async def test_a_question_that_the_agent_does_not_wait_for_is_withdrawn_and_answered_as_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: Step
) -> None:
    async def never(_: events.ApprovalAsked) -> ApprovalReply:
        return await asyncio.get_running_loop().create_future()

    person = Person()
    monkeypatch.setattr(person, "approve", never)
    asks = Ask({"toolCallId": "a"}, waits=False)
    agent = OtherAgent([called("a", status="pending", command="make"), asks, end])
    async with session_with(tmp_path, agent, person, advise="off") as (session, heard):
        await session.submit("Do it.")
        await asyncio.wait_for(session.wait(), LIMIT)
        async with asyncio.timeout(LIMIT):
            while not agent.outcomes:
                await asyncio.sleep(0)
    assert agent.outcomes == [{"outcome": "cancelled"}]
    assert fold(heard).approvals == ()


# --- the end, before it comes by itself -----------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [[Hang()], [called("a", command="sleep"), Hang()], [say("I"), Hang()]])
async def test_a_stop_cancels_its_turn_and_the_next_prompt_waits_for_that(
    tmp_path: Path, steps: list[Step]
) -> None:
    agent = OtherAgent(steps, [say("Here again.")])
    async with session_with(tmp_path, agent) as (session, heard):
        await session.submit("Do it.")
        while not agent.prompts:
            await asyncio.sleep(0)
        await asyncio.wait_for(session.stop(), LIMIT)
        await session.submit("And now?")
        await asyncio.wait_for(session.wait(), LIMIT)
    assert len(agent.asked("session/cancel")) == 1
    outcomes = [one.outcome for one in of(heard, events.RunFinished)]
    assert outcomes == [events.Outcome.INTERRUPTED, events.Outcome.ANSWERED]
    assert agent.prompts == ["Do it.", "And now?"]
    assert agent.starts == 1


async def test_a_stop_while_the_operator_is_asked_answers_the_agent_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = asyncio.Event()

    async def approve(_: events.ApprovalAsked) -> ApprovalReply:
        asked.set()
        return await asyncio.get_running_loop().create_future()

    person = Person()
    monkeypatch.setattr(person, "approve", approve)
    agent = OtherAgent([called("a", status="pending", command="make"), Ask({"toolCallId": "a"}), Hang()])
    async with session_with(tmp_path, agent, person) as (session, heard):
        await session.submit("Do it.")
        await asyncio.wait_for(asked.wait(), LIMIT)
        await asyncio.wait_for(session.stop(), LIMIT)
        while not agent.outcomes:
            await asyncio.sleep(0)
    assert agent.outcomes == [{"outcome": "cancelled"}]
    assert len(of(heard, events.ToolCancelled)) == 1


async def test_a_question_with_empty_arguments_does_not_take_away_those_that_were_told(
    tmp_path: Path,
) -> None:
    asked = Ask({"toolCallId": "a", "rawInput": {}, "title": "bash", "kind": "execute"})
    turn: list[Step] = [called("a", status="pending", command="make"), asked, ended("a", "1"), say("So.")]
    person = Person(ApprovalReply("once"))
    await run(tmp_path, OtherAgent(turn), person)
    [question] = person.asked
    assert isinstance(question, events.ApprovalAsked)
    assert question.input == {"command": "make"}


async def test_a_message_that_is_queued_is_the_next_prompt_and_is_put_into_no_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first: list[Step] = [
        called("a", status="pending", command="make"),
        Ask({"toolCallId": "a"}),
        ended("a", "1"),
    ]
    agent = OtherAgent([*first, say("First.")], [say("Second.")])
    person = Person()
    async with session_with(tmp_path, agent, person) as (session, heard):

        async def approve(asked: events.ApprovalAsked) -> ApprovalReply:
            await session.submit("And then this.")
            return ApprovalReply("once")

        monkeypatch.setattr(person, "approve", approve)
        await session.submit("Do it.")
        await asyncio.wait_for(session.wait(), LIMIT)
    assert agent.prompts == ["Do it.", "And then this."]
    assert not of(heard, events.OperatorSpoke)


# --- faults ---------------------------------------------------------------------------------------------------------

OVERLOADED = {
    "code": -32603,
    "message": "Internal error",
    "data": {"message": "529 overloaded_error: Overloaded"},
}
CUT = say("Warning: no metadata for m.\n\nstream disconnected before completion: closed")
SYSTEM_ERROR = {
    "sessionUpdate": "session_info_update",
    "_meta": {"codex": {"threadStatus": {"type": "systemError"}}},
}
LIMIT_REACHED = {"code": -32603, "message": "You've hit your usage limit. Try again in 3 hours."}


@pytest.mark.parametrize(
    ("fault", "kind", "again", "options"),
    [
        ([Stop(error=OVERLOADED)], events.FaultKind.OVERLOADED, "Do it.", {}),
        ([say("I"), Stop(error=OVERLOADED)], events.FaultKind.OVERLOADED, GO_ON, {}),
        ([Stop(error=LIMIT_REACHED)], events.FaultKind.USAGE_LIMIT, "Do it.", {"on_limit": "wait"}),
        ([CUT, SYSTEM_ERROR], events.FaultKind.STREAM_CUT, GO_ON, {}),
        ([say("I"), Die()], events.FaultKind.STREAM_CUT, GO_ON, {}),
    ],
)
async def test_a_fault_is_waited_out_and_the_agent_goes_on(
    tmp_path: Path, fault: list[Step], kind: events.FaultKind, again: str, options: dict[str, Any]
) -> None:
    agent = OtherAgent(fault, [say("Done.")])
    heard = await run(tmp_path, agent, **options)
    assert [one.fault.kind for one in of(heard, events.ModelFaulted)] == [kind]
    assert agent.prompts == ["Do it.", again]
    assert of(heard, events.RunFinished)[-1].answer.endswith("Done.")
    died = any(isinstance(step, Die) for step in fault)
    assert agent.starts == (2 if died else 1)
    if died:
        assert [one["method"] for one in agent.got if "method" in one].count("session/load") == 1


@pytest.mark.parametrize(
    ("greeting", "opens", "said"),
    [
        ({"protocolVersion": 7}, {}, "speaks version 7 of the Agent Client Protocol"),
        ({"protocolVersion": None}, {}, "does not speak the Agent Client Protocol"),
        ({}, {"code": -32000, "message": "Authentication required"}, "wants you to log in"),
        ({}, {}, "named no session"),
        ({}, {"code": -32603, "message": "no model is configured"}, "no model is configured"),
    ],
)
async def test_an_agent_that_cannot_begin_is_told_of_in_words_and_the_session_is_kept(
    tmp_path: Path, greeting: dict[str, Any], opens: dict[str, Any], said: str
) -> None:
    agent = OtherAgent(greeting=greeting)
    agent.opens = opens
    heard = await run(tmp_path, agent, Person(*[EscalationReply("stop")] * 3))
    finished = of(heard, events.RunFinished)[-1]
    assert finished.outcome is events.Outcome.MODEL_FAILED
    assert said in finished.reason


async def test_rubbish_and_a_flood_are_left_out_and_the_turn_goes_on(tmp_path: Path) -> None:
    rubbish: list[Step] = [
        Raw(b"\x1b]0;ready\x07\x1b[2mstarting ...\x1b[0m"),
        Raw(b"{not json"),
        Raw(b"[1, 2]"),
        Raw(b'{"jsonrpc": "2.0", "method": "session/update", "params": 7}'),
        Raw(b'{"jsonrpc": "2.0", "id": 77, "result": {}}'),
        Raw(b'{"jsonrpc": "2.0", "id": 5, "method": "fs/read_text_file", "params": {"path": "/etc/passwd"}}'),
        {"sessionUpdate": 5},
        {"sessionUpdate": "of_tomorrow", "x": 1},
        {"sessionUpdate": "tool_call"},
        {"sessionUpdate": "tool_call_update", "toolCallId": ["no"], "status": "completed", "content": "text"},
        {"sessionUpdate": "plan", "entries": "none"},
        {"sessionUpdate": "agent_message_chunk", "content": 7},
    ]
    flood = [say("x") for _ in range(5_000)]
    agent = OtherAgent([*rubbish, *flood, say(" Done.")])
    agent._waiting[5] = asyncio.get_running_loop().create_future()
    heard = await run(tmp_path, agent)
    assert of(heard, events.RunFinished)[-1].outcome is events.Outcome.ANSWERED
    assert of(heard, events.ReplyFinished)[-1].text.endswith("xxx Done.")
    [refused] = [one for one in agent.got if one.get("id") == 5]
    assert refused["error"]["code"] == -32601


# --- sessions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loads", [True, False])
async def test_a_saved_session_goes_on_with_the_agents_own_session(tmp_path: Path, *, loads: bool) -> None:
    first = OtherAgent([say("One.")])
    async with session_with(tmp_path, first) as (session, _):
        await session.submit("Do it.")
        await asyncio.wait_for(session.wait(), LIMIT)
        folder = session.folder
    second = OtherAgent([say("Two.")], loads=loads)
    async with session_with(tmp_path, second, resume=folder) as (session, heard):
        await session.submit("More.")
        await asyncio.wait_for(session.wait(), LIMIT)
    opening = [one for one in second.got if one.get("method") in {"session/load", "session/new"}]
    assert [one["method"] for one in opening] == ["session/load" if loads else "session/new"]
    assert second.prompts == ["More."]
    assert any("knows nothing of it" in one.text for one in of(heard, events.Notice)) is not loads
    journal = await Journal.open_to_append(folder)
    assert fold(journal.contents.events).session.agent is not None
    await journal.close()


# --- what it is told -------------------------------------------------------------------------------------------------

_FAILS: list[Step] = [
    step
    for n in range(5)
    for step in (called(f"c{n}", command="make"), ended(f"c{n}", "error: no rule", "failed"))
]


@pytest.mark.parametrize("advise", ["off", "note"])
async def test_what_the_operator_answers_is_asked_once_a_turn_and_is_the_next_prompt(
    tmp_path: Path, advise: str
) -> None:
    agent = OtherAgent([*_FAILS, say("I give up.")], [say("Another way.")])
    person = Person(EscalationReply("answer", "Use ninja."))
    await run(tmp_path, agent, person, advise=advise)
    assert len(person.asked) == 1
    [_, told] = agent.prompts
    assert "Use ninja." in told
    assert not any(one.get("method") == "session/cancel" for one in agent.got)


def hooked(folder: Path, argv: tuple[str, ...], scope: Scope | None) -> AgentEntry:
    """An agent with a folder of its own for its settings, in which our hooks are, or in those of the workspace."""
    own = {"CLAUDE_CONFIG_DIR": str(folder / "own")}
    for name in ("own", "work"):
        (folder / name).mkdir()
    if scope is not None:
        place = settings_place(claude_code.DIALECT, scope, folder / "work", own)
        change = to_install(claude_code.DIALECT, place, command_line(claude_code.DIALECT, "refuse", ""))
        carry_out(change, folder / "state", keep=True)
    return AgentEntry("theirs", argv, own)


@pytest.mark.parametrize(
    ("argv", "scope", "prompts"),
    [
        (("claude-agent-acp",), None, 2),
        (("claude-agent-acp",), "user", 1),
        (("npx", "-y", "@agentclientprotocol/claude-agent-acp@0.49.0"), "project", 1),
        (("another-agent",), "user", 2),
    ],
)
async def test_an_answer_that_the_hooks_of_the_agent_judge_is_not_sent_back_again(
    tmp_path: Path, argv: tuple[str, ...], scope: Scope | None, prompts: int
) -> None:
    turn = [called("a", command="pytest -q"), ended("a", "1 failed\nexit code 1", "failed")]
    agent = OtherAgent([*turn, say("I fixed the bug and all tests pass.")], [say("One test fails.")])
    await run(tmp_path, agent, entry=hooked(tmp_path, argv, scope))
    assert len(agent.prompts) == prompts


@pytest.mark.parametrize("scope", [None, "user"])
async def test_a_turn_that_the_hooks_of_the_agent_speak_in_is_not_cancelled_for_the_note(
    tmp_path: Path, scope: Scope | None
) -> None:
    agent = OtherAgent([*_FAILS[:6], Hang() if scope is None else say("I see.")], [say("Another way.")])
    person, entry = (
        Person(EscalationReply("answer", "Use ninja.")),
        hooked(tmp_path, ("claude-agent-acp",), scope),
    )
    heard = await run(tmp_path, agent, person, entry=entry, advise="steer")
    noted = [one.note for one in of(heard, events.ModelCallStarted) if one.note is not None]
    cancelled = [one for one in agent.got if one.get("method") == "session/cancel"]
    assert bool(noted) is bool(cancelled) is (scope is None)
    assert "Use ninja." in agent.prompts[1]


async def test_an_agent_that_is_steered_has_a_turn_that_goes_wrong_cancelled_for_the_note(
    tmp_path: Path,
) -> None:
    agent = OtherAgent([*_FAILS[:6], Hang()], [say("Another way.")])
    heard = await run(tmp_path, agent, Person(EscalationReply("answer", "Use ninja.")), advise="steer")
    assert any(one.get("method") == "session/cancel" for one in agent.got)
    [_, told] = agent.prompts
    assert "Use ninja." in told
    assert of(heard, events.ModelCallStarted)[-1].note is not None


async def test_a_run_that_the_operator_ends_cancels_the_turn(tmp_path: Path) -> None:
    agent = OtherAgent([*_FAILS[:6], Hang()])
    heard = await run(tmp_path, agent, Person(EscalationReply("stop")))
    assert of(heard, events.RunFinished)[-1].outcome is events.Outcome.ESCALATED
    assert any(one.get("method") == "session/cancel" for one in agent.got)


# --- sub-agents ------------------------------------------------------------------------------------------------------


def within(parent: str, update: Step) -> Step:
    assert isinstance(update, dict)
    return {**update, "_meta": {"claudeCode": {"parentToolUseId": parent}}}


def delegated(*steps: Step) -> list[Step]:
    begun = called("t", "think", status="pending", description="look around", prompt="Look around in src.")
    return [say("I delegate."), begun, *steps, ended("t", "It is in b.py."), say("Found.")]


def in_lanes(heard: Sequence[events.Event], kind: type[E]) -> list[E]:
    return [
        event.event
        for event in of(heard, events.LaneEvent)
        if event.lane == "t" and isinstance(event.event, kind)
    ]


async def test_a_sub_agent_of_the_agents_has_a_lane_with_its_own_calls_and_failures(tmp_path: Path) -> None:
    steps = [
        within("t", say("I look.")),
        within("t", called("x", "read", path="a.py")),
        ended("x", "no such file", "failed"),
        within("t", called("y", "execute", status="pending", command="ls")),
        Ask({"toolCallId": "y"}),
        ended("y", "b.py"),
        within("t", say("It is in b.py.")),
    ]
    heard = await run(tmp_path, OtherAgent(delegated(*steps)), Person(ApprovalReply("once")), advise="off")
    [began] = in_lanes(heard, events.RunStarted)
    assert began.task == "Look around in src."
    assert {one.name for one in of(heard, events.LaneEvent)} == {"look around"}
    assert [one.failure.message for one in in_lanes(heard, events.ToolFailed)] == ["no such file"]
    assert [one.content for one in in_lanes(heard, events.ToolSucceeded)] == ["b.py"]
    [asked] = in_lanes(heard, events.ApprovalAsked)
    assert asked.lane == "look around"
    [finished] = in_lanes(heard, events.RunFinished)
    assert (finished.outcome, finished.answer) == (events.Outcome.ANSWERED, "It is in b.py.")
    own = [one.call_id for one in of(heard, events.ToolSucceeded)]
    assert own == ["t"]
    assert of(heard, events.RunFinished)[-1].answer.startswith("Found.")
    assert heard.index(of(heard, events.ToolSucceeded)[0]) > heard.index(of(heard, events.LaneEvent)[-1])


async def test_what_the_operator_answers_about_a_sub_agent_is_the_agents_next_prompt(tmp_path: Path) -> None:
    fails = [
        step
        for n in range(4)
        for step in (within("t", called(f"x{n}", command="make")), ended(f"x{n}", "error: no rule", "failed"))
    ]
    agent = OtherAgent(delegated(*fails), [say("With ninja, then.")])
    await run(tmp_path, agent, Person(EscalationReply("answer", "Use ninja.")), advise="off")
    assert len(agent.prompts) == 2
    assert "Use ninja." in agent.prompts[1]


async def test_a_stop_ends_the_lanes_with_the_turn(tmp_path: Path) -> None:
    agent = OtherAgent([*delegated(within("t", called("x", command="sleep")))[:3], Hang()])
    async with session_with(tmp_path, agent) as (session, heard):
        await session.submit("Do it.")
        async with asyncio.timeout(LIMIT):
            while not in_lanes(heard, events.ToolStarted):
                await asyncio.sleep(0)
            await session.stop()
    [ended_lane] = in_lanes(heard, events.RunFinished)
    assert ended_lane.outcome is events.Outcome.INTERRUPTED
    assert of(heard, events.RunFinished)[-1].outcome is events.Outcome.INTERRUPTED
    assert fold(heard).lanes == {}


async def test_updates_of_another_session_are_not_taken_for_its_own(tmp_path: Path) -> None:
    foreign = {"sessionId": "another", "update": say("not mine ")}
    line = json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": foreign}).encode()
    heard = await run(tmp_path, OtherAgent([Raw(line), say("Mine.")]))
    assert of(heard, events.RunFinished)[-1].answer == "Mine."
