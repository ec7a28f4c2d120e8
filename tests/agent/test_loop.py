"""Runs through the production loop: real tools, a real journal, a scripted model and operator."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.agent.flight import Flight, assert_coherent, replayed, take_off
from tests.agent.scripted import ScriptedOperator
from tui_agent import events as e
from tui_agent.agent.operator import ApprovalReply, EscalationReply
from tui_agent.tools.registry import ToolRegistry
from tui_agent.tools.tool import Effect, ToolContext, ToolOutput

Turns = list[Any]
TakeOff = Callable[..., Awaitable[Flight]]


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tool": tool, "args": arguments}


def turn(*calls: dict[str, Any], text: str = "") -> dict[str, Any]:
    return {"text": text, "calls": list(calls)}


MISSING = call("read_file", path="nowhere.txt")


@pytest.fixture
async def fly(tmp_path: Path) -> AsyncIterator[TakeOff]:
    """Opens flights in this test's folder; lands them, and checks that the journal gives the live state."""
    flights: list[Flight] = []

    async def opened(turns: Turns, **options: Any) -> Flight:
        flights.append(await take_off(tmp_path, turns, **options))
        return flights[-1]

    yield opened
    for flight in flights:
        await flight.close()
        assert replayed(flight.session) == flight.state


async def test_tools_work_in_the_workspace_and_finish_gives_the_answer(fly: TakeOff) -> None:
    turns = [
        turn(call("write_file", path="a.txt", content="hello\n")),
        turn(call("finish", answer="written")),
    ]
    flight = await fly(turns)
    finished = await flight.run()
    assert (finished.outcome, finished.answer) == (e.Outcome.ANSWERED, "written")
    assert (Path(flight.state.session.workspace) / "a.txt").read_text() == "hello\n"
    assert_coherent(flight.told())


async def test_a_text_only_reply_is_the_answer(fly: TakeOff) -> None:
    flight = await fly(["All is well."])
    assert (await flight.run()).answer == "All is well."


async def test_the_note_goes_with_the_next_call_only_and_is_never_stored(fly: TakeOff) -> None:
    flight = await fly([turn(MISSING), turn(call("list_dir")), "done"])
    await flight.run()
    assert "nowhere.txt" in flight.told(1)[-1]["content"]
    assert flight.told(1)[-1]["role"] == "user"
    assert flight.told(2)[-1]["role"] == "tool"
    stored = [message for group in flight.state.history.groups for message in group.messages]
    assert [message["content"] for message in stored if message["role"] == "user"] == ["go"]


async def test_the_operator_edits_or_drops_the_note_before_it_goes_out(fly: TakeOff) -> None:
    operator = ScriptedOperator(notes={2: "Look in src/.", 3: None})
    flight = await fly([turn(MISSING), turn(MISSING), "done", "done"], operator=operator)
    await flight.run()
    assert flight.told(1)[-1]["content"] == "Look in src/."
    assert flight.told(2)[-1]["role"] == "tool"


async def test_a_denial_reaches_the_model_as_a_denial_with_the_operators_reason(fly: TakeOff) -> None:
    operator = ScriptedOperator(approvals=deque([ApprovalReply("deny", "not on a Friday")]))
    flight = await fly([turn(call("bash", command="touch x")), "fine"], operator=operator, approve="ask")
    await flight.run()
    assert "not on a Friday" in flight.told()[-1]["content"]
    assert flight.state.metrics.tool_errors == 0
    assert not (Path(flight.state.session.workspace) / "x").exists()


async def test_edited_arguments_are_what_runs(fly: TakeOff) -> None:
    edit = ApprovalReply("once", input={"command": "echo edited > made.txt"})
    operator = ScriptedOperator(approvals=deque([edit]))
    flight = await fly(
        [turn(call("bash", command="echo asked > made.txt")), "ok"], operator=operator, approve="writes"
    )
    await flight.run()
    assert (Path(flight.state.session.workspace) / "made.txt").read_text() == "edited\n"


async def test_what_is_allowed_for_the_session_does_not_ask_again(fly: TakeOff) -> None:
    operator = ScriptedOperator(approvals=deque([ApprovalReply("session")]))
    write = [turn(call("write_file", path=name, content=name)) for name in ("a", "b")]
    flight = await fly([*write, "ok"], operator=operator, approve="ask")
    await flight.run()
    assert len(operator.asked) == 1
    assert (Path(flight.state.session.workspace) / "b").exists()


async def test_an_approved_write_is_on_disk_in_the_journal_before_it_runs(fly: TakeOff) -> None:
    flight = await fly([turn(call("bash", command="cat ../state/sessions/*/events.jsonl > seen.txt")), "ok"])
    await flight.run()
    seen = (Path(flight.state.session.workspace) / "seen.txt").read_text()
    assert '"type":"reply_finished"' in seen
    assert "cat ../state" in seen


class Meeting:
    """A tool whose calls wait for each other, so that they end only when they run at the same time."""

    name, description, parameters = "meet", "Waits for its siblings.", {"type": "object"}

    def __init__(self, effect: Effect, parties: int) -> None:
        self.effect = effect
        self._parties = parties
        self.inside = 0
        self.most = 0
        self._all_here = asyncio.Event()

    def preview(self, arguments: dict[str, Any], workspace: object) -> str:
        return "meet"

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
        self.inside += 1
        self.most = max(self.most, self.inside)
        if self.inside >= self._parties:
            self._all_here.set()
        await self._all_here.wait()
        self.inside -= 1
        return ToolOutput("met")


async def test_calls_that_only_read_run_at_the_same_time(fly: TakeOff) -> None:
    tool = Meeting(Effect.READ, 3)
    flight = await fly([turn(*(call("meet", n=n) for n in range(3))), "ok"], tools=ToolRegistry([tool]))
    await flight.run()
    assert tool.most == 3


async def test_calls_that_write_run_one_after_another(fly: TakeOff) -> None:
    tool = Meeting(Effect.COMMAND, 1)
    flight = await fly([turn(*(call("meet", n=n) for n in range(3))), "ok"], tools=ToolRegistry([tool]))
    await flight.run()
    assert tool.most == 1


async def test_one_broken_call_does_not_harm_its_siblings(fly: TakeOff) -> None:
    flight = await fly(
        [
            turn(call("read_file", path="a"), {"tool": "read_file", "raw": "{broken"}, call("fly"), MISSING),
            "ok",
        ],
        files={"a": "content of a"},
    )
    await flight.run()
    results = {result.index: result for result in flight.of(e.ToolResult)}
    assert [type(results[index]).__name__ for index in range(4)] == ["ToolSucceeded", *["ToolFailed"] * 3]
    kinds = [results[index].failure.kind for index in range(1, 4)]
    assert kinds == ["invalid_tool_call", "unknown_tool", "tool_execution"]
    assert_coherent(flight.told())


async def test_giving_up_after_a_failure_is_a_failure_once(fly: TakeOff) -> None:
    flight = await fly([turn(MISSING), "I give up.", "It does not exist."])
    finished = await flight.run()
    assert len(flight.of(e.ReplyRejected)) == 1
    assert finished.answer == "It does not exist."


async def test_a_reply_with_nothing_in_it_is_never_stored(fly: TakeOff) -> None:
    flight = await fly([{"text": "", "repeat": 1}, "here I am"])
    finished = await flight.run()
    assert finished.answer == "here I am"
    assert [event.fault.kind for event in flight.of(e.ModelFaulted)] == ["bad_output"]
    stored = [message for group in flight.state.history.groups for message in group.messages]
    assert [message["role"] for message in stored] == ["user", "assistant"]


async def test_iterations_that_are_used_up_end_in_a_partial_answer(fly: TakeOff) -> None:
    looks = [turn(call("read_file", path=f"f{n}"), text=f"step {n}") for n in range(9)]
    flight = await fly(looks, max_iterations=3, files={f"f{n}": str(n) for n in range(9)})
    finished = await flight.run()
    assert finished.outcome is e.Outcome.PARTIAL
    assert "step 2" in finished.answer
    assert len(flight.model.requests) == 3


async def test_an_escalations_answer_enters_the_history_and_lets_the_call_run_once_more(fly: TakeOff) -> None:
    operator = ScriptedOperator(answers=deque([EscalationReply("answer", "Look again, I made it.")]))
    flight = await fly([turn(MISSING)] * 3 + [turn(MISSING), "done", "done"], operator=operator)
    await flight.run()
    assert [raised.source for raised in operator.raised] == ["attempts", "attempts"]
    assert {"role": "user", "content": "Look again, I made it."} in flight.told(3)
    assert len(flight.of(e.ToolFailed)) == 4


async def test_skipping_leaves_the_call_blocked(fly: TakeOff) -> None:
    operator = ScriptedOperator(answers=deque([EscalationReply("skip")]))
    flight = await fly([turn(MISSING)] * 4 + ["done", "done"], operator=operator)
    await flight.run()
    assert [event.refusal for event in flight.of(e.ToolRefused)] == ["blocked"]


@pytest.mark.parametrize(
    ("choice", "outcome"), [("partial", e.Outcome.PARTIAL), ("stop", e.Outcome.ESCALATED)]
)
async def test_the_operator_can_end_the_run_at_an_escalation(
    fly: TakeOff, choice: Any, outcome: e.Outcome
) -> None:
    operator = ScriptedOperator(answers=deque([EscalationReply(choice)]))
    flight = await fly([turn(MISSING)] * 4, operator=operator)
    finished = await flight.run()
    assert finished.outcome is outcome
    assert finished.answer


async def test_ask_operator_puts_the_question_and_brings_the_answer(fly: TakeOff) -> None:
    operator = ScriptedOperator(answers=deque([EscalationReply("answer", "the blue one")]))
    asks = call("ask_operator", question="Which?", options=["red", "blue"])
    flight = await fly([turn(asks), "thanks"], operator=operator)
    await flight.run()
    assert operator.raised[0].options == ("red", "blue")
    assert flight.told()[-1]["content"] == "the blue one"


async def test_an_interrupt_ends_the_command_pauses_the_run_and_leaves_a_coherent_history(
    fly: TakeOff,
) -> None:
    commands = [call("bash", command=command) for command in ("echo $$ > pid; sleep 1000", "touch never")]
    flight = await fly([turn(*commands), "done"])
    await flight.session.submit("go")
    pid_file = Path(flight.state.session.workspace) / "pid"
    await flight.until(lambda state: any(c.state == "running" for c in state.conversation.calls))
    while not pid_file.exists() or not pid_file.read_text().strip():
        await asyncio.sleep(0.01)
    await flight.session.interrupt()
    finished = await flight.ended()
    assert flight.state.session.mode is e.Mode.PAUSED
    assert finished.answer == "done"
    assert [event.index for event in flight.of(e.ToolCancelled)] == [0, 1]
    assert "unknown" in flight.of(e.ToolCancelled)[0].content
    assert "not started" in flight.of(e.ToolCancelled)[1].content
    assert not (Path(flight.state.session.workspace) / "never").exists()
    assert not Path(f"/proc/{pid_file.read_text().strip()}").exists()
    assert_coherent(flight.told())


async def test_stopping_ends_the_run_as_interrupted_with_a_partial_answer(fly: TakeOff) -> None:
    flight = await fly([turn(call("bash", command="sleep 1000"), text="I wait.")])
    await flight.session.submit("go")
    await flight.until(lambda state: any(c.state == "running" for c in state.conversation.calls))
    await flight.session.stop("enough")
    assert flight.state.run.outcome is e.Outcome.INTERRUPTED
    assert "I wait." in flight.state.run.answer


async def test_closing_in_the_middle_of_a_question_leaves_nothing_open(fly: TakeOff) -> None:
    class Absent(ScriptedOperator):
        async def approve(self, asked: e.ApprovalAsked) -> ApprovalReply:
            await asyncio.Event().wait()
            raise AssertionError

    flight = await fly([turn(call("bash", command="true"))], operator=Absent(), approve="ask")
    await flight.session.submit("go")
    await flight.until(lambda state: state.approvals)
    await flight.session.close()
    assert flight.state.run.outcome is e.Outcome.INTERRUPTED
    assert [event.type for event in flight.of(e.ToolResult)] == ["tool_cancelled"]


async def test_a_listener_that_breaks_does_not_end_the_run(fly: TakeOff) -> None:
    flight = await fly(["fine"])

    def broken(*_: object) -> None:
        raise RuntimeError("a pane fell over")

    flight.session.subscribe(broken)
    assert (await flight.run()).outcome is e.Outcome.ANSWERED


async def test_a_message_written_during_a_run_is_queued_and_delivered_at_the_next_iteration(
    fly: TakeOff,
) -> None:
    flight = await fly([turn(call("bash", command="sleep 0.2")), "done"])
    await flight.session.submit("go")
    await flight.until(lambda state: state.conversation.calls)
    await flight.session.submit("also this")
    assert [message.text for message in flight.state.queue] == ["also this"]
    await flight.ended()
    assert flight.told()[-1] == {"role": "user", "content": "also this"}
    assert not flight.state.queue


async def test_a_message_that_comes_too_late_for_a_run_starts_the_next_with_fresh_counters(
    fly: TakeOff,
) -> None:
    flight = await fly([turn(MISSING), "first", "first", "second"])
    await flight.session.submit("go")
    await flight.until(lambda state: state.conversation.reply is not None and state.run.iteration == 3)
    await flight.session.submit("and then?")
    await flight.ended()
    assert flight.state.run.number == 2
    assert all(slot is None for slot in flight.state.recovery.ring.slots)
    assert [message["content"] for message in flight.told() if message["role"] == "user"] == [
        "go",
        "and then?",
    ]


async def test_secrets_reach_neither_the_journal_nor_the_state(fly: TakeOff, tmp_path: Path) -> None:
    token = "ghp_" + "a1B2" * 9
    flight = await fly([turn(call("bash", command=f"echo {token} | wc -c; echo {token}")), f"it is {token}"])
    await flight.run()
    await flight.close()
    assert token not in (flight.session.folder / "events.jsonl").read_text()
    assert "41" in flight.of(e.ToolSucceeded)[0].content


async def test_a_secret_cut_in_two_by_another_event_in_mid_stream_stays_masked(fly: TakeOff) -> None:
    token = "ghp_" + "a1B2" * 9
    pace = {"chars": [4, 4], "interval": 0.01}
    flight = await fly([{"text": f"it is {token}, is it", "pace": pace}])
    flight.model._pace = 1.0
    flight.session.subscribe(
        lambda event, _: flight.session.set_title("t") if isinstance(event, e.ReplyDelta) else None
    )
    await flight.run()
    shown = "".join(event.text for event in flight.of(e.ReplyDelta))
    assert "ghp_" not in shown
    assert flight.of(e.TitleChanged)


async def test_an_output_that_is_kept_whole_has_its_secrets_masked(fly: TakeOff) -> None:
    token = "ghp_" + "a1B2" * 9
    flight = await fly([turn(call("bash", command=f"seq 20000; echo {token}; seq 20000")), "ok"])
    await flight.run()
    kept = Path(flight.of(e.ToolSucceeded)[0].output_file).read_text()
    assert token not in kept
    assert "[masked:github-token]" in kept
    assert len(kept) > 200_000


async def test_a_failure_hooks_words_join_the_note(fly: TakeOff) -> None:
    hint = {"type": "command", "command": "echo see CONTRIBUTING"}
    hooks = {"PostToolUseFailure": [{"matcher": "*", "hooks": [hint]}]}
    flight = await fly([turn(MISSING), "done", "done"], hooks=hooks)
    await flight.run()
    assert "see CONTRIBUTING" in flight.told(1)[-1]["content"]


async def test_a_pre_hook_can_deny_a_call(fly: TakeOff) -> None:
    deny = {"type": "command", "command": "echo frozen >&2; exit 2"}
    flight = await fly(
        [turn(call("bash", command="touch x")), "done"],
        hooks={"PreToolUse": [{"matcher": "bash", "hooks": [deny]}]},
    )
    await flight.run()
    assert "frozen" in flight.told()[-1]["content"]
    assert not (Path(flight.state.session.workspace) / "x").exists()


async def test_a_tool_whose_breaker_is_open_is_not_offered(fly: TakeOff) -> None:
    flight = await fly([turn(call("list_dir")), "done"])
    await flight.session.submit("go")
    flight.session.set_breaker("grep", open=True)
    await flight.ended()
    offered = {tool["function"]["name"] for tool in list(flight.model.requests)[-1].tools}
    assert "grep" not in offered
    assert "glob" in offered


async def test_a_full_disk_under_the_journal_ends_the_run_before_a_side_effect(
    fly: TakeOff, monkeypatch: pytest.MonkeyPatch
) -> None:
    flight = await fly([turn(call("bash", command="touch x")), "done"])

    async def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(flight.session._recorder._journal._file, "write", full)
    finished = await flight.run()
    monkeypatch.undo()
    assert finished.outcome is e.Outcome.ERROR
    assert "disk is full" in finished.reason
    assert not (Path(flight.state.session.workspace) / "x").exists()


async def test_the_workspace_is_kept_before_the_first_change_and_after_each_iteration_that_changed_files(
    fly: TakeOff,
) -> None:
    writes = [turn(call("write_file", path="a", content=str(n))) for n in range(2)]
    flight = await fly([*writes, turn(call("bash", command="true")), "ok"], files={"a": "before"})
    await flight.run()
    kept = flight.of(e.CheckpointSaved)
    assert [checkpoint.files for checkpoint in kept[1:]] == [("a",), ("a",)]
    await flight.session.checkpoints.restore(kept[0].ref)
    assert (Path(flight.state.session.workspace) / "a").read_text() == "before"


async def test_the_users_own_repository_is_not_touched_by_checkpoints(fly: TakeOff) -> None:
    look = "echo x > new; (git rev-list --all --count; git diff --cached --name-only) > seen"
    flight = await fly([*(turn(call("bash", command=command)) for command in ("git init -q .", look)), "ok"])
    await flight.run()
    assert (Path(flight.state.session.workspace) / "seen").read_text() == "0\n"
