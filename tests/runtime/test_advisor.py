"""The advisor through the production loop: another model is asked at a pivot, once, bounded, and its cost counts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests import openai_server as server
from tests.kept_host import KeptHost
from tests.mcp.harness import eventually
from tests.openai_server import Answer, OpenAIServer
from tests.runtime.scripted import ScriptedOperator
from tests.runtime.session_harness import LIMIT, replayed
from tui_agent.config.settings import Settings
from tui_agent.core import events
from tui_agent.core.decision.advice import ADVISES
from tui_agent.core.recovery.rules import Rule
from tui_agent.runtime.model_call import ADVICE_TOKENS
from tui_agent.session.opening import open_session
from tui_agent.session.session import Session
from tui_agent.store.journal import read_journal

pytestmark = pytest.mark.asyncio(loop_scope="session")


def read(path: str) -> Answer:
    return server.calls([("read_file", json.dumps({"path": path}))])


LOST = [read("a.txt"), read("b.txt"), read("b2.txt"), read("c.txt")]
"""Four steps that fail alike: the fourth verdict is a pivot."""
FEW, NOTHING = {"prompt": 1.0, "completion": 2.0}, {"prompt": 0.0, "completion": 0.0}
SUGGESTS = server.text("Look into the archive: the files were moved there.\x1b]0;owned\x07")


async def run(
    host: KeptHost,
    folder: Path,
    answers: list[Answer],
    during: Callable[[Session, OpenAIServer], Awaitable[None]] | None = None,
    **recovery: Any,
) -> tuple[Session, list[dict[str, Any]], list[events.Event]]:
    """One run with an advisor: the session, what was asked of the server, and what was recorded."""
    async with OpenAIServer(answers) as provider:
        workspace = folder / "workspace"
        workspace.mkdir()
        settings = Settings(
            model="openai/worker",
            approve="all",
            sandbox="off",
            api_base=provider.url,
            workspace=workspace,
            state_dir=folder / "state",
            prices={
                "openai/adviser": {"prompt": 1.0, "completion": 2.0},
                "openai/worker": {"prompt": 0.0, "completion": 0.0},
            },
            recovery={"advisor": "openai/adviser", "model_tries": 1, **recovery},
        )
        session = await open_session(settings, ScriptedOperator(present=False), hosted=host)
        await session.submit("Read the files.")
        if during is not None:
            await during(session, provider)
        await asyncio.wait_for(session.wait(), LIMIT)
        await session.close()
        assert replayed(session) == session.state
        recorded = list(read_journal(session.folder).events)
        return session, [request.body for request in provider.requests], recorded


def advised(recorded: list[events.Event]) -> list[events.Advised]:
    return [event for event in recorded if isinstance(event, events.Advised)]


async def test_at_a_pivot_another_model_is_asked_once_and_its_words_join_the_next_note(
    host: KeptHost, tmp_path: Path
) -> None:
    answers = [*LOST, SUGGESTS, read("d.txt"), server.text("Shall I go on without them?")]
    session, requests, recorded = await run(host, tmp_path, answers)
    assert [body["model"] for body in requests] == [
        *["worker"] * 4,
        "adviser",
        *["worker"] * 2,
    ]
    asked = requests[4]
    assert asked["messages"][0]["content"] == ADVISES
    assert "Read the files." in asked["messages"][1]["content"]
    assert "read_file c.txt" in asked["messages"][1]["content"]
    assert "tools" not in asked
    assert ADVICE_TOKENS in (asked.get("max_tokens"), asked.get("max_completion_tokens"))
    note = requests[5]["messages"][-1]["content"]
    assert "openai/adviser, asked for another approach, suggests: Look into the archive" in note
    assert "Look into the archive" not in str(requests[6])
    (advice,) = advised(recorded)
    assert advice.rule == Rule.NOTE_ADVISOR
    assert advice.prompt_tokens is not None
    usage = session.state.metrics.usage
    replies = [one for one in recorded if isinstance(one, events.ReplyFinished)]
    assert usage.prompt_tokens == advice.prompt_tokens + sum(one.prompt_tokens or 0 for one in replies)
    assert usage.priced == advice.cost
    assert advice.cost


async def test_an_advisor_that_fails_is_said_and_the_run_goes_on(host: KeptHost, tmp_path: Path) -> None:
    broken = server.error(500, "the adviser is out")
    answers = [*LOST, broken, server.text("Shall I go on without them?")]
    session, requests, recorded = await run(host, tmp_path, answers)
    (advice,) = advised(recorded)
    assert not advice.text
    assert "out" in advice.reason
    assert "suggests" not in requests[4]["messages"][-1]["content"]
    assert any("suggests nothing" in line.text for line in session.state.timeline.lines)


async def test_without_the_key_nobody_is_asked(host: KeptHost, tmp_path: Path) -> None:
    answers = [*LOST, server.text("Shall I go on without them?")]
    _, requests, recorded = await run(host, tmp_path, answers, advisor="")
    assert {body["model"] for body in requests} == {"worker"}
    assert advised(recorded) == []


async def test_an_interrupted_question_is_not_put_again(host: KeptHost, tmp_path: Path) -> None:
    async def cut(session: Session, provider: OpenAIServer) -> None:
        await eventually(lambda: len(provider.requests) == 5)
        await session.interrupt()
        session.set_mode(events.Mode.AUTO)

    answers = [*LOST, server.stream(server.Step.HANG), server.text("Shall I go on without them?")]
    _, _, recorded = await run(host, tmp_path, answers, cut)
    (advice,) = advised(recorded)
    assert advice.reason == "it was interrupted"
