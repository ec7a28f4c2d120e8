"""A session that goes on asks the server it asked before, where nothing else is named."""

from __future__ import annotations

from pathlib import Path

from tests.runtime.session_harness import start_session
from tui_agent.store.provenance import mark_foreign

BEFORE = "http://127.0.0.1:9/v1"
OTHER = "http://127.0.0.1:7/v1"


async def recorded_at(folder: Path, api_base: str) -> Path:
    """The folder of a session whose run was called there."""
    live = await start_session(folder, ["Done."], api_base=api_base)
    await live.run()
    await live.close()
    return live.session.folder


async def address_of_the_next_call(folder: Path, session: Path, **settings: str) -> str | None:
    live = await start_session(folder, ["Again."], resume=session, **settings)
    await live.run("And now?")
    await live.close()
    assert live.session.settings.api_base == live.model.requests[-1].api_base
    return live.model.requests[-1].api_base


async def test_a_resumed_session_asks_the_same_server(tmp_path: Path) -> None:
    session = await recorded_at(tmp_path, BEFORE)
    assert await address_of_the_next_call(tmp_path, session) == BEFORE
    assert await address_of_the_next_call(tmp_path, session) == BEFORE


async def test_what_is_configured_now_outweighs_it(tmp_path: Path) -> None:
    session = await recorded_at(tmp_path, BEFORE)
    assert await address_of_the_next_call(tmp_path, session, api_base=OTHER) == OTHER


async def test_a_session_that_came_from_elsewhere_names_no_server(tmp_path: Path) -> None:
    session = await recorded_at(tmp_path, BEFORE)
    mark_foreign(session)
    assert await address_of_the_next_call(tmp_path, session) is None


async def test_an_address_with_a_password_is_not_kept(tmp_path: Path) -> None:
    session = await recorded_at(tmp_path, "http://me:secret@127.0.0.1:9/v1")
    assert "secret" not in (session / "events.jsonl").read_text()
    assert await address_of_the_next_call(tmp_path, session) is None
