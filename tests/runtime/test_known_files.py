"""Files that change behind the model's back: what a session remembers of each, also when it goes on later."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.runtime.session_harness import replayed, start_session
from tui_agent.core import events


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"calls": [{"tool": tool, "args": arguments}]}


EDIT = call("edit_file", path="a.txt", old="one", new="two")


async def test_an_edit_is_refused_until_what_changed_was_read_again(tmp_path: Path) -> None:
    turns = [
        call("read_file", path="a.txt"),
        call("bash", command="echo one, by a command > a.txt"),
        EDIT,
        call("read_file", path="a.txt"),
        EDIT,
        "done",
    ]
    live = await start_session(tmp_path, turns, files={"a.txt": "one\n"})
    await live.run()
    failed = live.of(events.ToolFailed)
    assert [event.failure.message.partition(";")[0] for event in failed] == [
        "'a.txt' changed since you read it"
    ]
    assert (tmp_path / "workspace/a.txt").read_text() == "two, by a command\n"
    await live.close()
    assert replayed(live.session).known_files == live.state.known_files


async def test_a_session_that_goes_on_knows_what_it_read_before(tmp_path: Path) -> None:
    read = call("read_file", path="a.txt")
    first = await start_session(tmp_path, [read, "read"], files={"a.txt": "one\n"})
    await first.run()
    await first.close()
    (tmp_path / "workspace/a.txt").write_text("one, by its owner\n")
    again = await start_session(tmp_path, [read, EDIT, "refused", "refused"], resume=first.session.folder)
    await again.run()
    (failed,) = again.of(events.ToolFailed)
    assert "changed since you read it" in failed.failure.message
    assert (tmp_path / "workspace/a.txt").read_text() == "one, by its owner\n"
    await again.close()


async def test_what_was_read_after_the_point_of_a_rewind_counts_as_not_read(tmp_path: Path) -> None:
    turns = ["first", call("read_file", path="a.txt"), "second"]
    live = await start_session(tmp_path, turns, files={"a.txt": "one\n"})
    await live.run("answer")
    await live.run("read it")
    assert "a.txt" in live.state.known_files
    point = next(p for p in live.session.rewinding.points() if p.seq < live.of(events.ToolSucceeded)[0].seq)
    await live.session.rewinding.carry_out(await live.session.rewinding.plan(point, "conversation"))
    assert not live.state.known_files
    await live.close()
