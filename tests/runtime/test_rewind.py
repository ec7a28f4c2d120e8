"""Rewinding a session through its façade: conversation, files or both, and back again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runtime.session_harness import LiveSession, replayed, start_session
from tui_agent.session.rewind import Scope
from tui_agent.store.errors import SessionError

NOTICE = "The operator brought these files"
"""How the model learns that files are not as it left them."""


def write(content: str) -> dict[str, object]:
    return {"calls": [{"tool": "write_file", "args": {"path": "a.txt", "content": content}}]}


async def two_runs(folder: Path) -> LiveSession:
    live = await start_session(
        folder, [write("one"), "first", write("two"), "second"], files={"a.txt": "before"}
    )
    await live.run("make it one")
    await live.run("make it two")
    return live


def content(live: LiveSession) -> str:
    return (Path(live.state.session.workspace) / "a.txt").read_text()


def said(live: LiveSession) -> list[str]:
    messages = (message for group in live.state.history.groups for message in group.messages)
    words = [message["content"] for message in messages if message["role"] == "user"]
    return [text for text in words if not text.startswith(NOTICE)]


CASES: list[tuple[Scope, str, list[str]]] = [
    ("both", "one", ["make it one"]),
    ("files", "one", ["make it one", "make it two"]),
    ("conversation", "two", ["make it one"]),
]


@pytest.mark.parametrize(("scope", "file", "history"), CASES, ids=[case[0] for case in CASES])
async def test_a_rewind_changes_what_it_says_and_can_be_taken_back(
    tmp_path: Path, scope: Scope, file: str, history: list[str]
) -> None:
    live = await two_runs(tmp_path)
    before = next(point for point in live.session.rewinding.points() if "make it two" in point.label)
    await live.session.rewinding.carry_out(await live.session.rewinding.plan(before, scope))
    assert (content(live), said(live)) == (file, history)
    newest = live.state.history.groups[-1].messages[0]["content"] or ""
    assert newest.startswith(NOTICE) is (scope == "files")
    await live.session.rewinding.carry_out(await live.session.rewinding.plan_undo())
    assert (content(live), said(live)) == ("two", ["make it one", "make it two"])
    await live.close()
    assert replayed(live.session) == live.state


async def test_a_rewind_cannot_be_taken_back_once_the_session_has_gone_on(tmp_path: Path) -> None:
    live = await two_runs(tmp_path)
    point = live.session.rewinding.points()[-1]
    await live.session.rewinding.carry_out(await live.session.rewinding.plan(point, "conversation"))
    await live.run("something else")
    with pytest.raises(SessionError):
        await live.session.rewinding.plan_undo()
    await live.close()


async def test_the_first_point_brings_back_what_was_there_before_the_agent_came(tmp_path: Path) -> None:
    live = await two_runs(tmp_path)
    first = live.session.rewinding.points()[-1]
    planned = await live.session.rewinding.plan(first, "both")
    assert [change.path for change in planned.files] == ["a.txt"]
    await live.session.rewinding.carry_out(planned)
    assert (content(live), said(live)) == ("before", [])
    await live.close()
