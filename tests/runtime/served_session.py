"""Runs against a server on loopback through the model host, with real tools and no wait before a retry."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.kept_host import KeptHost
from tests.openai_server import Answer, OpenAIServer
from tests.runtime.scripted import ScriptedOperator
from tests.runtime.session_harness import assert_coherent, replayed
from tui_agent.config.settings import Settings
from tui_agent.core import events
from tui_agent.core.recovery.policy import PRESETS
from tui_agent.session.opening import open_session
from tui_agent.session.session import Session


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retry at once; what the provider asks for by Retry-After is still waited."""

    def quick(name: str, **overrides: Any) -> object:
        return PRESETS[name].model_copy(update={"backoff_base": 0.0, **overrides})

    monkeypatch.setattr("tui_agent.session.session.preset", quick)


async def run_agent(
    host: KeptHost,
    folder: Path,
    answers: list[Answer],
    *,
    task: str = "Fix it.",
    files: Mapping[str, str] | None = None,
    present: bool = False,
    **options: Any,
) -> tuple[Session, events.RunFinished, list[list[dict[str, Any]]]]:
    """Run the task against these answers: the session, its end, and the messages of every request."""
    async with OpenAIServer(answers) as provider:
        workspace = folder / "workspace"
        workspace.mkdir()
        for name, text in (files or {}).items():
            (workspace / name).write_text(text)
        settings = Settings(
            **{"model": "openai/test", "approve": "all", "sandbox": "off", **options},
            api_base=provider.url,
            workspace=workspace,
            state_dir=folder / "state",
        )
        session = await open_session(settings, ScriptedOperator(present=present), host)
        await session.submit(task)
        finished = await session.wait()
        await session.close()
        assert finished is not None
        assert replayed(session) == session.state
        requests = [request.body["messages"] for request in provider.requests]
    for messages in requests:
        assert_coherent(messages)
    return session, finished, requests
