"""Runs through the production loop: real tools, a real journal, a scripted model and operator."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from statistics import median
from typing import Any, ClassVar

import pytest

from tests.full_disk import FullDisk
from tests.runtime.scripted import ScriptedOperator
from tests.runtime.session_harness import LiveSession, assert_coherent, replayed, start_session
from tui_agent.core import events
from tui_agent.core.recovery.ring import ErrorRing
from tui_agent.core.tool_facts import Effect, Uses
from tui_agent.runtime.operator import ApprovalReply, EscalationReply
from tui_agent.tools.registry import ToolRegistry
from tui_agent.tools.tool import ToolContext, ToolOutput

Turns = list[Any]
StartAgent = Callable[..., Awaitable[LiveSession]]


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tool": tool, "args": arguments}


def turn(*calls: dict[str, Any], text: str = "") -> dict[str, Any]:
    return {"text": text, "calls": list(calls)}


MISSING = call("read_file", path="nowhere.txt")


@pytest.fixture
async def start_agent(tmp_path: Path) -> AsyncIterator[StartAgent]:
    """Opens sessions in this test's folder; closes them, and checks that the journal gives the live state."""
    opened_sessions: list[LiveSession] = []

    async def opened(turns: Turns, **options: Any) -> LiveSession:
        opened_sessions.append(await start_session(tmp_path, turns, **options))
        return opened_sessions[-1]

    yield opened
    for live in opened_sessions:
        await live.close()
        assert replayed(live.session) == live.state


async def test_tools_work_in_the_workspace_and_finish_gives_the_answer(start_agent: StartAgent) -> None:
    turns = [
        turn(call("write_file", path="a.txt", content="hello\n")),
        turn(call("finish", answer="written")),
    ]
    live = await start_agent(turns)
    finished = await live.run()
    assert (finished.outcome, finished.answer) == (events.Outcome.ANSWERED, "written")
    assert (Path(live.state.session.workspace) / "a.txt").read_text() == "hello\n"
    assert_coherent(live.sent())


async def test_a_text_only_reply_is_the_answer(start_agent: StartAgent) -> None:
    live = await start_agent(["All is well."])
    assert (await live.run()).answer == "All is well."


async def test_the_note_goes_with_the_next_call_only_and_is_never_stored(start_agent: StartAgent) -> None:
    live = await start_agent([turn(MISSING), turn(MISSING), turn(call("list_dir")), "done"])
    await live.run()
    assert live.sent(1)[-1]["role"] == "tool", "the error says it all"
    assert "nowhere.txt" in live.sent(2)[-2]["content"]
    assert live.sent(2)[-1]["content"].startswith("<recovery_note>\nThe second failure of this call")
    assert live.sent(2)[-1]["role"] == "user"
    assert live.sent(3)[-1]["role"] == "tool"
    stored = [message for group in live.state.history.groups for message in group.messages]
    assert [message["content"] for message in stored if message["role"] == "user"] == ["go"]


async def test_the_operator_edits_or_drops_the_note_before_it_goes_out(start_agent: StartAgent) -> None:
    operator = ScriptedOperator(notes={2: "Look in src/.", 3: None})
    live = await start_agent([turn(MISSING), turn(MISSING), "done", "done"], operator=operator)
    await live.run()
    assert live.sent(1)[-1]["content"] == "<recovery_note>\nLook in src/.\n</recovery_note>"
    assert live.sent(2)[-1]["role"] == "tool"


async def test_a_denial_reaches_the_model_as_a_denial_with_the_operators_reason(
    start_agent: StartAgent,
) -> None:
    operator = ScriptedOperator(approvals=deque([ApprovalReply("deny", "not on a Friday")]))
    live = await start_agent(
        [turn(call("bash", command="touch x")), "fine"], operator=operator, approve="ask"
    )
    await live.run()
    assert "not on a Friday" in live.sent()[-1]["content"]
    assert live.state.metrics.tool_errors == 0
    assert not (Path(live.state.session.workspace) / "x").exists()


async def test_edited_arguments_are_what_runs(start_agent: StartAgent) -> None:
    edit = ApprovalReply("once", input={"command": "echo edited > made.txt"})
    operator = ScriptedOperator(approvals=deque([edit]))
    live = await start_agent(
        [turn(call("bash", command="echo asked > made.txt")), "ok"], operator=operator, approve="writes"
    )
    await live.run()
    assert (Path(live.state.session.workspace) / "made.txt").read_text() == "edited\n"


async def test_what_is_allowed_for_the_session_does_not_ask_again(start_agent: StartAgent) -> None:
    operator = ScriptedOperator(approvals=deque([ApprovalReply("session")]))
    write = [turn(call("write_file", path=name, content=name)) for name in ("a", "b")]
    live = await start_agent([*write, "ok"], operator=operator, approve="ask")
    await live.run()
    assert len(operator.asked) == 1
    assert (Path(live.state.session.workspace) / "b").exists()


async def test_an_approved_write_is_on_disk_in_the_journal_before_it_runs(start_agent: StartAgent) -> None:
    command = "cat ../state/sessions/*/events.jsonl > seen.txt"
    live = await start_agent([turn(call("bash", command=command)), "ok"], sandbox="off")
    await live.run()
    seen = (Path(live.state.session.workspace) / "seen.txt").read_text()
    assert '"type":"reply_finished"' in seen
    assert "cat ../state" in seen


class Meeting:
    """A tool whose calls wait for each other, so that they end only when they run at the same time."""

    name, description, parameters = "meet", "Waits for its siblings.", {"type": "object"}
    uses: ClassVar[Uses] = {}

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


async def test_calls_that_only_read_run_at_the_same_time(start_agent: StartAgent) -> None:
    tool = Meeting(Effect.READ, 3)
    live = await start_agent([turn(*(call("meet", n=n) for n in range(3))), "ok"], tools=ToolRegistry([tool]))
    await live.run()
    assert tool.most == 3


async def test_calls_that_write_run_one_after_another(start_agent: StartAgent) -> None:
    tool = Meeting(Effect.COMMAND, 1)
    live = await start_agent([turn(*(call("meet", n=n) for n in range(3))), "ok"], tools=ToolRegistry([tool]))
    await live.run()
    assert tool.most == 1


async def test_one_broken_call_does_not_harm_its_siblings(start_agent: StartAgent) -> None:
    live = await start_agent(
        [
            turn(
                call("read_file", path="a"),
                {"tool": "read_file", "raw": "{broken"},
                call("teleport"),
                MISSING,
            ),
            "ok",
        ],
        files={"a": "content of a"},
    )
    await live.run()
    results = {result.index: result for result in live.of(events.ToolResult)}
    assert [type(results[index]).__name__ for index in range(4)] == ["ToolSucceeded", *["ToolFailed"] * 3]
    kinds = [results[index].failure.kind for index in range(1, 4)]
    assert kinds == ["invalid_tool_call", "unknown_tool", "tool_execution"]
    assert_coherent(live.sent())


async def test_giving_up_after_a_failure_is_a_failure_once(start_agent: StartAgent) -> None:
    nobody = ScriptedOperator(present=False)
    live = await start_agent([turn(MISSING), "I give up.", "It does not exist."], operator=nobody)
    finished = await live.run()
    assert len(live.of(events.ReplyRejected)) == 1
    assert finished.answer == "It does not exist."


async def test_a_reply_with_nothing_in_it_is_never_stored(start_agent: StartAgent) -> None:
    live = await start_agent([{"text": "", "repeat": 1}, "here I am"])
    finished = await live.run()
    assert finished.answer == "here I am"
    assert [event.rule for event in live.of(events.ReplyRejected)] == ["form.no_answer"]
    stored = [message for group in live.state.history.groups for message in group.messages]
    assert [message["role"] for message in stored] == ["user", "assistant"]


async def test_iterations_that_are_used_up_end_in_a_closing_turn_and_a_partial_answer(
    start_agent: StartAgent,
) -> None:
    looks = [turn(call("read_file", path=f"f{n}"), text=f"step {n}") for n in range(9)]
    live = await start_agent(looks, max_iterations=3, files={f"f{n}": str(n) for n in range(9)})
    finished = await live.run()
    assert finished.outcome is events.Outcome.PARTIAL
    assert "step 3" in finished.answer
    assert len(live.model.requests) == 4


async def test_retry_once_runs_the_call_itself_and_its_next_failure_asks_again(
    start_agent: StartAgent,
) -> None:
    operator = ScriptedOperator(answers=deque([EscalationReply("retry", "Look again, I made it.")]))
    live = await start_agent([*[turn(MISSING)] * 3, "done", "done"], operator=operator)
    await live.run()
    assert [raised.source for raised in operator.raised] == ["attempts", "attempts"]
    said = 'I had this call executed once more: read_file {"path": "nowhere.txt"} Look again, I made it.'
    assert {"role": "user", "content": said} in live.sent(3)
    assert len(live.of(events.ToolFailed)) == 4
    assert len([reply for reply in live.of(events.ReplyFinished) if reply.by == "operator"]) == 1


async def test_a_call_with_a_masked_secret_is_retried_by_the_model_alone(start_agent: StartAgent) -> None:
    operator = ScriptedOperator(answers=deque([EscalationReply("retry")]))
    missing = call("read_file", path="[masked:TOKEN].txt")
    live = await start_agent([*[turn(missing)] * 3, "done", "done"], operator=operator)
    await live.run()
    assert not [reply for reply in live.of(events.ReplyFinished) if reply.by == "operator"]
    said = 'Try read_file {"path": "[masked:TOKEN].txt"} once more.'
    assert {"role": "user", "content": said} in live.sent(3)


async def test_a_free_answer_leaves_the_call_blocked_and_the_refusal_says_whose_choice_it_was(
    start_agent: StartAgent,
) -> None:
    operator = ScriptedOperator(answers=deque([EscalationReply("answer", "Do not read, write the file.")]))
    live = await start_agent([turn(MISSING)] * 4 + ["done", "done"], operator=operator)
    await live.run()
    assert {"role": "user", "content": "Do not read, write the file."} in live.sent(3)
    (refused,) = live.of(events.ToolRefused)
    assert (refused.refusal, refused.rule) == ("blocked", "attempts.block")
    assert "The operator answered: Do not read, write the file." in refused.content
    assert "chose to go on without it" not in refused.content
    note = live.sent(3)[-1]["content"]
    assert "follow the answer" in note
    assert "different approach" not in note.replace("try a different approach", "")


async def test_edit_and_retry_executes_the_edited_call_itself(start_agent: StartAgent) -> None:
    edited = EscalationReply("edit", input={"path": "there.txt"})
    operator = ScriptedOperator(answers=deque([edited]))
    live = await start_agent(
        [turn(MISSING)] * 3 + ["done"], operator=operator, approve="ask", files={"there.txt": "found"}
    )
    finished = await live.run()
    (read,) = live.of(events.ToolSucceeded)
    assert read.input == {"path": "there.txt"}
    assert finished.outcome is events.Outcome.ANSWERED
    sent = live.sent(3)
    assert any("found" in str(message["content"]) for message in sent if message["role"] == "tool")
    assert_coherent(sent)
    assert len(list(live.model.requests)) == 4


async def test_a_reply_that_the_length_limit_cut_is_continued_and_answered_whole(
    start_agent: StartAgent,
) -> None:
    live = await start_agent([{"text": "The first half ", "finish_reason": "length"}, "and the second."])
    finished = await live.run()
    assert (finished.outcome, finished.answer) == (
        events.Outcome.ANSWERED,
        "The first half and the second.",
    )
    assert "was cut" in live.sent(1)[-1]["content"]
    endless = await start_agent([{"text": "more ", "finish_reason": "length"}] * 9, max_iterations=9)
    finished = await endless.run()
    assert (finished.outcome, finished.rule) == (events.Outcome.PARTIAL, "form.cut")


async def test_stop_while_the_last_run_settles_starts_no_queued_run(start_agent: StartAgent) -> None:
    live = await start_agent(["one", "two"])
    stopping: list[asyncio.Future[None]] = []
    with pytest.MonkeyPatch.context() as patched:

        async def settle() -> None:
            patched.undo()
            await live.session.submit("next")
            stopping.append(asyncio.ensure_future(live.session.stop("Enough.")))
            await asyncio.sleep(0)

        patched.setattr(live.session.checkpointer, "settle", settle)
        await live.run()
        await asyncio.gather(*stopping)
    assert len(live.of(events.RunStarted)) == 1
    assert [message.text for message in live.state.queue] == ["next"]


async def test_skipping_leaves_the_call_blocked(start_agent: StartAgent) -> None:
    operator = ScriptedOperator(answers=deque([EscalationReply("skip")]))
    live = await start_agent([turn(MISSING)] * 4 + ["done", "done"], operator=operator)
    await live.run()
    assert [event.refusal for event in live.of(events.ToolRefused)] == ["blocked"]


@pytest.mark.parametrize(
    ("choice", "outcome"), [("partial", events.Outcome.PARTIAL), ("stop", events.Outcome.ESCALATED)]
)
async def test_the_operator_can_end_the_run_at_an_escalation(
    start_agent: StartAgent, choice: Any, outcome: events.Outcome
) -> None:
    operator = ScriptedOperator(answers=deque([EscalationReply(choice)]))
    live = await start_agent([turn(MISSING)] * 4, operator=operator)
    finished = await live.run()
    assert finished.outcome is outcome
    assert finished.answer


async def test_ask_operator_puts_the_question_and_brings_the_answer(start_agent: StartAgent) -> None:
    operator = ScriptedOperator(answers=deque([EscalationReply("answer", "the blue one")]))
    asks = call("ask_operator", question="Which?", options=["red", "blue"])
    live = await start_agent([turn(asks), "thanks"], operator=operator)
    await live.run()
    assert operator.raised[0].options == ("red", "blue")
    assert live.sent()[-1]["content"] == "the blue one"


async def test_an_interrupt_ends_the_command_pauses_the_run_and_leaves_a_coherent_history(
    start_agent: StartAgent,
) -> None:
    commands = [
        call("bash", command=command)
        for command in ("echo 3 tests failed; echo $$ > pid; sleep 1000", "touch never")
    ]
    # Without the sandbox, in which numbers of processes are its own.
    live = await start_agent([turn(*commands), "done"], sandbox="off")
    await live.session.submit("go")
    pid_file = Path(live.state.session.workspace) / "pid"
    await live.until(lambda state: any(c.state == "running" for c in state.conversation.calls))
    while not pid_file.exists() or not pid_file.read_text().strip():
        await asyncio.sleep(0.01)
    await live.session.interrupt()
    finished = await live.ended()
    assert live.state.session.mode is events.Mode.PAUSED
    assert finished.answer == "done"
    assert [event.index for event in live.of(events.ToolCancelled)] == [0, 1]
    assert "unknown" in live.of(events.ToolCancelled)[0].content
    assert live.of(events.ToolCancelled)[0].content.endswith("it wrote:\n3 tests failed")
    assert "not started" in live.of(events.ToolCancelled)[1].content
    assert not (Path(live.state.session.workspace) / "never").exists()
    assert not Path(f"/proc/{pid_file.read_text().strip()}").exists()
    assert_coherent(live.sent())


async def test_an_interrupted_reply_stays_in_the_history_as_far_as_it_came_with_its_mark(
    start_agent: StartAgent,
) -> None:
    slow = {"text": "First I read the tests, then the table.", "pace": {"chars": [19, 19], "interval": 1_000}}
    live = await start_agent([slow], pace=1.0)
    await live.session.submit("go")
    await live.until(lambda state: state.conversation.reply is not None and state.conversation.reply.text)
    await live.session.interrupt()
    await live.session.submit("Leave the tests out.")
    await live.until(lambda _: len(live.model.requests) == 2)
    (partial,) = [entry for entry in live.state.conversation.entries if getattr(entry, "partial", False)]
    assert partial.kept
    assert partial.text.startswith("First I read")
    assert [(message["role"], message["content"]) for message in live.sent()[1:]] == [
        ("user", "go"),
        ("assistant", partial.text),
        ("user", "[This reply was interrupted.]"),
        ("user", "Leave the tests out."),
    ]
    assert_coherent(live.sent())


async def test_what_is_said_after_an_interruption_is_the_answer(start_agent: StartAgent) -> None:
    """The call before had failed: the answer cost one more model call, which was told to make a call."""
    replies = [turn(MISSING), turn(call("bash", command="sleep 1000")), "All tests pass.", "All tests pass."]
    live = await start_agent(replies, sandbox="off")
    await live.session.submit("go")
    await live.until(
        lambda state: any((c.tool, c.state) == ("bash", "running") for c in state.conversation.calls)
    )
    await live.session.interrupt()
    finished = await live.ended()
    assert (finished.answer, live.state.metrics.model_calls) == ("All tests pass.", 3)
    assert not live.of(events.ReplyRejected)


async def test_stopping_ends_the_run_as_interrupted_with_a_partial_answer(start_agent: StartAgent) -> None:
    live = await start_agent([turn(call("bash", command="sleep 1000"), text="I wait.")])
    await live.session.submit("go")
    await live.until(lambda state: any(c.state == "running" for c in state.conversation.calls))
    await live.session.stop("enough")
    assert live.state.run.outcome is events.Outcome.INTERRUPTED
    assert "I wait." in live.state.run.answer


async def test_closing_in_the_middle_of_a_question_leaves_nothing_open(start_agent: StartAgent) -> None:
    class Absent(ScriptedOperator):
        async def approve(self, asked: events.ApprovalAsked) -> ApprovalReply:
            await asyncio.Event().wait()
            raise AssertionError

    live = await start_agent([turn(call("bash", command="true"))], operator=Absent(), approve="ask")
    await live.session.submit("go")
    await live.until(lambda state: state.approvals)
    await live.session.close()
    assert live.state.run.outcome is events.Outcome.INTERRUPTED
    assert [event.type for event in live.of(events.ToolResult)] == ["tool_cancelled"]


async def test_a_listener_that_breaks_does_not_end_the_run(start_agent: StartAgent) -> None:
    live = await start_agent(["fine"])

    def broken(*_: object) -> None:
        raise RuntimeError("a pane fell over")

    live.session.subscribe(broken)
    assert (await live.run()).outcome is events.Outcome.ANSWERED


async def test_a_message_written_during_a_run_is_queued_and_delivered_at_the_next_iteration(
    start_agent: StartAgent,
) -> None:
    live = await start_agent([turn(call("bash", command="sleep 0.2")), "done"])
    await live.session.submit("go")
    await live.until(lambda state: state.conversation.calls)
    await live.session.submit("also this")
    assert [message.text for message in live.state.queue] == ["also this"]
    await live.ended()
    assert live.sent()[-1] == {"role": "user", "content": "also this"}
    assert not live.state.queue


async def test_a_message_that_comes_too_late_for_a_run_starts_the_next_with_fresh_counters(
    start_agent: StartAgent,
) -> None:
    live = await start_agent([turn(MISSING), "first", "second"])
    await live.session.submit("go")
    await live.until(lambda state: state.conversation.reply is not None and state.run.iteration == 2)
    await live.session.submit("and then?")
    await live.ended()
    assert live.state.run.number == 2
    assert all(slot is None for slot in live.state.recovery.of(ErrorRing).slots)
    assert [message["content"] for message in live.sent() if message["role"] == "user"] == [
        "go",
        "and then?",
    ]


async def test_secrets_reach_neither_the_journal_nor_the_state(
    start_agent: StartAgent, tmp_path: Path
) -> None:
    token = "ghp_" + "a1B2" * 9
    live = await start_agent(
        [turn(call("bash", command=f"echo {token} | wc -c; echo {token}")), f"it is {token}"]
    )
    await live.run()
    await live.close()
    assert token not in (live.session.folder / "events.jsonl").read_text()
    assert "41" in live.of(events.ToolSucceeded)[0].content


async def test_a_secret_cut_in_two_by_another_event_in_mid_stream_stays_masked(
    start_agent: StartAgent,
) -> None:
    token = "ghp_" + "a1B2" * 9
    pace = {"chars": [4, 4], "interval": 0.01}
    live = await start_agent([{"text": f"it is {token}, is it", "pace": pace}], pace=1.0)
    live.session.subscribe(
        lambda event, _: live.session.set_title("t") if isinstance(event, events.ReplyDelta) else None
    )
    await live.run()
    shown = "".join(event.text for event in live.of(events.ReplyDelta))
    assert "ghp_" not in shown
    assert live.of(events.TitleChanged)


async def test_an_output_that_is_kept_whole_has_its_secrets_masked(start_agent: StartAgent) -> None:
    token = "ghp_" + "a1B2" * 9
    live = await start_agent([turn(call("bash", command=f"seq 20000; echo {token}; seq 20000")), "ok"])
    await live.run()
    kept = Path(live.of(events.ToolSucceeded)[0].output_file).read_text()
    assert token not in kept
    assert "[masked:github-token]" in kept
    assert len(kept) > 200_000


async def test_failure_hooks_hear_of_calls_that_never_ran_with_the_number_of_the_attempt(
    start_agent: StartAgent, tmp_path: Path
) -> None:
    heard = tmp_path / "heard"
    keep = {"type": "command", "command": f"cat >> {heard}; echo >> {heard}"}
    hooks = {"PostToolUseFailure": [{"matcher": "*", "hooks": [keep]}]}
    unknown = {"calls": [{"tool": "launch", "args": {}}]}
    live = await start_agent([turn(MISSING), turn(MISSING), unknown, "done", "done"], hooks=hooks)
    await live.run()
    events_heard = [json.loads(line) for line in heard.read_text().splitlines() if line]
    assert [(one["tool_name"], one["attempt"]) for one in events_heard] == [
        ("read_file", 1),
        ("read_file", 2),
        ("launch", 1),
    ]


async def test_where_nobody_can_answer_the_model_reads_nothing_of_an_operator(
    start_agent: StartAgent,
) -> None:
    unknown = {"calls": [{"tool": "launch", "args": {}}]}
    operator = ScriptedOperator(present=False)
    live = await start_agent(
        [unknown, turn(MISSING), turn(MISSING), turn(MISSING), "x", "y"], operator=operator
    )
    await live.run()
    for request in live.model.requests:
        assert "operator" not in json.dumps(request.messages)
        assert "ask_operator" not in {tool["function"]["name"] for tool in request.tools}


async def test_a_failure_hooks_words_join_the_note(start_agent: StartAgent) -> None:
    hint = {"type": "command", "command": "echo see CONTRIBUTING"}
    hooks = {"PostToolUseFailure": [{"matcher": "*", "hooks": [hint]}]}
    live = await start_agent([turn(MISSING), "done", "done"], hooks=hooks)
    await live.run()
    assert "see CONTRIBUTING" in live.sent(1)[-1]["content"]


async def test_a_pre_hook_can_deny_a_call(start_agent: StartAgent) -> None:
    deny = {"type": "command", "command": "echo frozen >&2; exit 2"}
    live = await start_agent(
        [turn(call("bash", command="touch x")), "done"],
        hooks={"PreToolUse": [{"matcher": "bash", "hooks": [deny]}]},
    )
    await live.run()
    assert "frozen" in live.sent()[-1]["content"]
    assert not (Path(live.state.session.workspace) / "x").exists()


async def test_a_tool_whose_breaker_is_open_is_not_offered(start_agent: StartAgent) -> None:
    live = await start_agent([turn(call("list_dir")), "done"])
    await live.session.submit("go")
    live.session.set_breaker("grep", opened=True)
    await live.ended()
    offered = {tool["function"]["name"] for tool in list(live.model.requests)[-1].tools}
    assert "grep" not in offered
    assert "glob" in offered


async def test_a_full_disk_under_the_journal_ends_the_run_before_a_side_effect(
    start_agent: StartAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = await start_agent([turn(call("bash", command="touch x")), "done"])

    FullDisk(monkeypatch, live.session.folder, 0)
    finished = await live.run()
    monkeypatch.undo()
    assert finished.outcome is events.Outcome.ERROR
    assert "disk is full" in finished.reason
    assert not (Path(live.state.session.workspace) / "x").exists()


async def test_others_get_a_turn_in_each_iteration_however_fast_model_and_tools_are(
    start_agent: StartAgent,
) -> None:
    plans = ([{"step": f"part {n}", "status": "pending"}] for n in range(5))
    live = await start_agent([*(turn(call("update_plan", plan=plan)) for plan in plans), "done"])
    turns: Counter[int] = Counter()

    async def other() -> None:
        while True:
            turns[live.state.run.iteration] += 1
            await asyncio.sleep(0)

    others = asyncio.create_task(other())
    await live.run()
    others.cancel()
    assert all(turns[iteration] for iteration in range(1, live.state.run.iteration + 1))


async def test_an_iteration_costs_no_more_calls_late_in_a_session_than_early(start_agent: StartAgent) -> None:
    plans = ([{"step": f"part {n}", "status": "pending"}] for n in range(300))
    live = await start_agent(
        [*(turn(call("update_plan", plan=plan)) for plan in plans), "done"], max_iterations=400
    )
    made = 0
    costs: list[int] = []

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal made
        made += event in {"call", "c_call"}

    def started(event: events.Event, _: object) -> None:
        nonlocal made
        if isinstance(event, events.IterationStarted):
            costs.append(made)
            made = 0

    live.session.subscribe(started)
    sys.setprofile(count)
    try:
        await live.run()
    finally:
        sys.setprofile(None)
    early, late = median(costs[20:60]), median(costs[-40:])
    assert late < early * 1.05


async def test_the_workspace_is_kept_before_the_first_change_and_after_each_iteration_that_changed_files(
    start_agent: StartAgent,
) -> None:
    writes = [turn(call("write_file", path="a", content=str(n))) for n in range(2)]
    live = await start_agent([*writes, turn(call("bash", command="true")), "ok"], files={"a": "before"})
    await live.run()
    kept = live.of(events.CheckpointSaved)
    assert [checkpoint.files for checkpoint in kept[1:]] == [("a",), ("a",)]
    await live.session.checkpoints.restore(kept[0].ref)
    assert (Path(live.state.session.workspace) / "a").read_text() == "before"


async def test_the_users_own_repository_is_not_touched_by_checkpoints(start_agent: StartAgent) -> None:
    look = "echo x > new; (git rev-list --all --count; git diff --cached --name-only) > seen"
    live = await start_agent(
        [*(turn(call("bash", command=command)) for command in ("git init -q .", look)), "ok"]
    )
    await live.run()
    assert (Path(live.state.session.workspace) / "seen").read_text() == "0\n"


async def test_a_run_that_is_stopped_before_it_began_keeps_its_task_and_asks_nobody(
    start_agent: StartAgent,
) -> None:
    live = await start_agent(["one"])
    begun, ready = asyncio.Event(), asyncio.Event()

    async def slow_sandbox() -> Any:
        begun.set()
        await ready.wait()
        return await sandbox()

    sandbox = live.session.sandbox.ready
    live.session.sandbox.ready = slow_sandbox
    await live.session.submit("go")
    await begun.wait()
    stopping = asyncio.create_task(live.session.stop())
    await asyncio.sleep(0)
    ready.set()
    await stopping
    assert [event.task for event in live.of(events.RunStarted)] == ["go"]
    assert [event.outcome for event in live.of(events.RunFinished)] == [events.Outcome.INTERRUPTED]
    assert not live.model.requests
    assert not live.session.running


@pytest.mark.parametrize(("chosen", "seconds"), [({}, 600.0), ({"model_timeout": 90.0}, None)])
async def test_a_server_nearby_gets_time_for_its_prompt_unless_somebody_said_how_long(
    start_agent: StartAgent, chosen: dict[str, Any], seconds: float | None
) -> None:
    live = await start_agent(["done"], **chosen)
    await live.run()
    (request,) = live.model.requests
    assert request.prompt_timeout == seconds
