"""What must always hold, whatever the model says and whenever the operator cuts in."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.runtime.scripted import ScriptedOperator
from tests.runtime.session_harness import LiveSession, assert_coherent, replayed, start_session
from tui_agent.core import events

arguments = st.fixed_dictionaries({"path": st.sampled_from(["a", "b", "../x", "", "\0", "a\x1b[2J"])})
calls = st.one_of(
    st.builds(
        lambda tool, args: {"tool": tool, "args": args},
        st.sampled_from(["read_file", "list_dir", "teleport"]),
        arguments,
    ),
    st.builds(lambda raw: {"tool": "write_file", "raw": raw}, st.text(max_size=20)),
    st.just({"tool": "write_file", "args": {"path": "a", "content": "x"}}),
    st.just({"tool": "bash", "args": {"command": "exit 3"}}),
    st.just({"tool": "ask_operator", "args": {"question": "what?"}}),
    st.just({"tool": "task", "args": {"name": "part", "prompt": "go"}}),
    st.just({"tool": "finish", "args": {"answer": "done"}}),
)
turns = st.one_of(
    st.builds(lambda text: {"text": text}, st.text(max_size=30)),
    st.builds(
        lambda text, made: {"text": text, "calls": made}, st.text(max_size=8), st.lists(calls, max_size=4)
    ),
    st.builds(
        lambda kind: {"text": "half", "fault": {"kind": kind, "retry_after": 0}},
        st.sampled_from(["rate_limit", "bad_output", "context_overflow", "auth", "stream_cut"]),
    ),
)
policies = st.sampled_from(["forge", "gigi", "funnelcanary", "hpd", "combined"])


async def run_agent(
    folder: Path, script: list[Any], policy: str, cuts: list[int], present: bool
) -> LiveSession:
    """A run in which the operator interrupts at the events whose number is in `cuts`."""
    live = await start_session(
        folder, script, policy=policy, operator=ScriptedOperator(present=present), max_iterations=12
    )
    cutting: set[asyncio.Task[None]] = set()

    def cut_in(event: events.Event, _: object) -> None:
        if event.seq in cuts:
            cutting.add(asyncio.create_task(live.session.interrupt()))

    live.session.subscribe(cut_in)
    await live.run("go")
    await live.session.close()
    return live


@settings(max_examples=25)
@given(
    st.lists(turns, min_size=1, max_size=8), policies, st.lists(st.integers(2, 60), max_size=3), st.booleans()
)
def test_messages_stay_coherent_replay_equals_live_and_every_run_ends(
    script: list[Any], policy: str, cuts: list[int], present: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        live = asyncio.run(run_agent(Path(folder), script, policy, cuts, present))
        for request in live.model.requests:
            assert_coherent(request.messages)
        state = live.state
        assert_coherent([message for group in state.history.groups for message in group.messages])
        assert state.metrics.coherence_violations == 0
        assert state.run.outcome is not None
        assert state.run.answer or state.run.outcome is events.Outcome.ANSWERED
        assert not state.conversation.calls
        assert replayed(live.session) == state
        issued = [call.id for event in live.of(events.ReplyFinished) for call in event.calls]
        assert sorted(issued) == sorted(event.call_id for event in live.of(events.ToolResult))
