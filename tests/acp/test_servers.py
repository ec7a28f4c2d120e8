"""A client, the agent, the real client of a model's server, and a server on loopback: all but the editor is real."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import openai_server as server
from tests.acp.editor import Refusal, connected
from tests.kept_host import KeptHost
from tui_agent.acp.wire import AUTH_REQUIRED

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_what_a_server_streams_reaches_the_client_and_a_refused_key_is_a_login(
    host: KeptHost, tmp_path: Path
) -> None:
    answers = [
        server.calls([("bash", '{"command": "echo hi; exit 3"}')]),
        server.text("It failed.", usage=(900, 100)),
        server.error(401, "Incorrect API key provided", code="invalid_api_key"),
    ]
    async with server.OpenAIServer(answers) as served:
        options = {"model": "openai/m", "api_base": served.url, "approve": "all", "context_tokens": 50_000}
        async with connected(tmp_path, host, **options) as editor:
            await editor.initialize()
            session = await editor.new(tmp_path / "work")
            answer = await editor.prompt(session, "go")
            assert answer["stopReason"] == "end_turn"
            assert editor.said() == "It failed."
            assert editor.call("bash")["status"] == "failed"
            assert editor.updates("usage_update")[-1]["used"] == 1_000
            editor.answers.append("stop")
            with pytest.raises(Refusal) as refused:
                await editor.prompt(session, "again")
            assert refused.value.code == AUTH_REQUIRED
            assert "key" in refused.value.message
