"""Rewinding a session through its façade: conversation, files or both, and back again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.flight import Flight, replayed, take_off
from tui_agent.sessions.errors import SessionError
from tui_agent.sessions.rewind import Scope

TOLD = "The operator brought these files"
"""How the model learns that files are not as it left them."""


def write(content: str) -> dict[str, object]:
    return {"calls": [{"tool": "write_file", "args": {"path": "a.txt", "content": content}}]}


async def two_runs(folder: Path) -> Flight:
    flight = await take_off(
        folder, [write("one"), "first", write("two"), "second"], files={"a.txt": "before"}
    )
    await flight.run("make it one")
    await flight.run("make it two")
    return flight


def content(flight: Flight) -> str:
    return (Path(flight.state.session.workspace) / "a.txt").read_text()


def said(flight: Flight) -> list[str]:
    messages = (message for group in flight.state.history.groups for message in group.messages)
    words = [message["content"] for message in messages if message["role"] == "user"]
    return [text for text in words if not text.startswith(TOLD)]


CASES: list[tuple[Scope, str, list[str]]] = [
    ("both", "one", ["make it one"]),
    ("files", "one", ["make it one", "make it two"]),
    ("conversation", "two", ["make it one"]),
]


@pytest.mark.parametrize(("scope", "file", "history"), CASES, ids=[case[0] for case in CASES])
async def test_a_rewind_changes_what_it_says_and_can_be_taken_back(
    tmp_path: Path, scope: Scope, file: str, history: list[str]
) -> None:
    flight = await two_runs(tmp_path)
    before = next(point for point in flight.session.rewind_points() if "make it two" in point.label)
    await flight.session.rewind(await flight.session.plan_rewind(before, scope))
    assert (content(flight), said(flight)) == (file, history)
    newest = flight.state.history.groups[-1].messages[0]["content"] or ""
    assert newest.startswith(TOLD) is (scope == "files")
    await flight.session.rewind(await flight.session.plan_undo())
    assert (content(flight), said(flight)) == ("two", ["make it one", "make it two"])
    await flight.close()
    assert replayed(flight.session) == flight.state


async def test_a_rewind_cannot_be_taken_back_once_the_session_has_gone_on(tmp_path: Path) -> None:
    flight = await two_runs(tmp_path)
    point = flight.session.rewind_points()[-1]
    await flight.session.rewind(await flight.session.plan_rewind(point, "conversation"))
    await flight.run("something else")
    with pytest.raises(SessionError):
        await flight.session.plan_undo()
    await flight.close()


async def test_the_first_point_brings_back_what_was_there_before_the_agent_came(tmp_path: Path) -> None:
    flight = await two_runs(tmp_path)
    first = flight.session.rewind_points()[-1]
    planned = await flight.session.plan_rewind(first, "both")
    assert [change.path for change in planned.files] == ["a.txt"]
    await flight.session.rewind(planned)
    assert (content(flight), said(flight)) == ("before", [])
    await flight.close()
