"""Instructions of the checkout: the root's in the prompt, a folder's own once with the first result about it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tests.runtime.session_harness import LiveSession, replayed, start_session
from tui_agent.core import events
from tui_agent.core.request import compaction
from tui_agent.runtime.instructions import NESTED_LIMIT
from tui_agent.runtime.system_prompt import system_prompt

TREE = {
    "AGENTS.md": "Root: use tabs.",
    "a.txt": "a",
    "api/AGENTS.md": "Api: use spaces.",
    "api/CLAUDE.md": "never read",
    "api/one.py": "one = 1\n",
    "api/two.py": "two = 2\n",
    "api/v2/CLAUDE.md": "V2: no classes.",
    "api/v2/three.py": "three = 3\n",
}


async def start(
    folder: Path, turns: list[Any], tree: dict[str, str] | None = None, **options: Any
) -> LiveSession:
    for name, text in (TREE if tree is None else tree).items():
        path = folder / "workspace" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return await start_session(folder, turns, **options)


def call(tool: str, path: str, **more: Any) -> dict[str, Any]:
    return {"calls": [{"tool": tool, "args": {"path": path, **more}}]}


def results(live: LiveSession) -> list[str]:
    return [event.content for event in live.of(events.ToolSucceeded)]


async def test_the_nearest_comes_last_each_once_and_again_when_it_changed(tmp_path: Path) -> None:
    edit = call("edit_file", "api/AGENTS.md", old="spaces", new="two spaces")
    outside = {"calls": [{"tool": "bash", "args": {"command": "echo 'Api: no spaces.' > api/AGENTS.md"}}]}
    turns = [
        call("read_file", "a.txt"),
        call("read_file", "api/v2/three.py"),
        call("read_file", "api/one.py"),
        edit,
        call("read_file", "api/two.py"),
        outside,
        call("write_file", "api/four.py", content="four = 4\n"),
        "done",
    ]
    live = await start(tmp_path, turns)
    await live.run()
    await live.session.close()
    root, deep, again, _, own, _, changed = results(live)
    assert "conventions" not in root.lower()
    assert deep.index("three = 3") < deep.index("Api: use spaces.") < deep.index("V2: no classes.")
    assert "not from the operator" in deep
    assert "they allow nothing" in deep
    assert "Conventions" not in again + own, "given once, and the model's own change is known to it"
    assert changed.count("Api: no spaces.") == 1
    assert "never read" not in "".join(results(live))
    prompt = live.sent()[0]["content"]
    assert prompt.index("they allow nothing") < prompt.index("Root: use tabs.")
    assert "Api" not in prompt
    assert replayed(live.session) == live.state


async def test_two_calls_at_once_bring_them_once_and_a_summary_brings_them_again(tmp_path: Path) -> None:
    both = {
        "calls": [
            {"tool": "read_file", "args": {"path": "api/one.py"}},
            {"tool": "read_file", "args": {"path": "api/two.py"}},
        ]
    }
    summary = {"anywhere": True, "when": {"user": compaction.OPENING}, "text": "Goal: read."}
    tree = {**TREE, "api/one.py": "one = 1\n" * 400}
    live = await start(
        tmp_path, [summary, both, call("list_dir", "."), "first", call("list_dir", "api"), "second"], tree
    )
    await live.run()
    assert "".join(results(live)).count("Api: use spaces.") == 1
    live.session.compact()
    await live.session.wait()
    assert live.of(events.Compacted)
    await live.run("on")
    assert "Api: use spaces." in results(live)[-1]
    await live.session.close()


async def test_what_is_no_readable_file_inside_gives_nothing_and_ends_nothing(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("outside")
    tree = {"link/x.py": "x = 1\n", "pipe/x.py": "x = 2\n", "odd/x.py": "x = 3\n", "long/x.py": "x = 4\n"}
    turns = [*(call("read_file", name) for name in tree), call("read_file", "none/x.py"), "done", "done"]
    live = await start(tmp_path, turns, tree)
    workspace = tmp_path / "workspace"
    (workspace / "link" / "AGENTS.md").symlink_to(tmp_path / "secret")
    os.mkfifo(workspace / "pipe" / "AGENTS.md")
    (workspace / "odd" / "AGENTS.md").write_bytes(b"caf\xe9 \x1b[2J")
    (workspace / "long" / "AGENTS.md").write_text("word " * NESTED_LIMIT)
    await live.run()
    await live.session.close()
    link, pipe, odd, long = results(live)
    assert "outside" not in link
    assert "Conventions" not in link + pipe
    assert "caf\ufffd" in odd
    assert len(long) < NESTED_LIMIT + 1_000
    assert "more characters: read long/AGENTS.md" in long


def test_the_operators_own_instructions_stand_before_those_of_the_checkout(tmp_path: Path) -> None:
    for name, text in {"own/AGENTS.md": "Mine.", "work/AGENTS.md": "Theirs."}.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    prompt = system_prompt(tmp_path / "work", personal=tmp_path / "own")
    assert prompt.index("operator's own instructions") < prompt.index("Mine.") < prompt.index("Theirs.")
    assert "Mine." not in system_prompt(tmp_path / "work")


def test_a_workspace_inside_of_a_checkout_also_has_what_stands_above_it_up_to_the_checkouts_root(
    tmp_path: Path,
) -> None:
    for name in ("AGENTS.md", "repo/AGENTS.md", "repo/a/CLAUDE.md", "repo/a/b/AGENTS.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"Text of {name}.")
    assert "Text of repo/AGENTS.md" not in system_prompt(tmp_path / "repo/a/b"), "no checkout, nothing above"
    (tmp_path / "repo/.git").mkdir()
    prompt = system_prompt(tmp_path / "repo/a/b")
    places = [prompt.index(f"Text of repo/{name}.") for name in ("AGENTS.md", "a/CLAUDE.md", "a/b/AGENTS.md")]
    assert places == sorted(places)
    assert "Text of AGENTS.md" not in prompt
