"""Skills: found, named, read inside their folders; what is no good is named and harms nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runtime.session_harness import start_session
from tui_agent.core import events
from tui_agent.tools.skills import SkillError, find_skills, listing, split_front_matter

FRONT = [
    ("plain", "name: a\ndescription: does it", {"name": "a", "description": "does it"}),
    ("quoted", "name: 'a'\ndescription: \"b: c\"", {"name": "a", "description": "b: c"}),
    ("a colon without quotes", "description: Use when: always", {"description": "Use when: always"}),
    ("folded", "description: >-\n  one\n  two\nname: x", {"description": "one\ntwo", "name": "x"}),
    ("going on", "description: one\n  two", {"description": "one\ntwo"}),
    (
        "other keys and comments",
        "# c\nallowed-tools: Bash\n- x\nname: x",
        {"allowed-tools": "Bash", "name": "x"},
    ),
]


@pytest.mark.parametrize(("front", "fields"), [row[1:] for row in FRONT], ids=[row[0] for row in FRONT])
def test_the_first_lines_are_read_as_people_write_them(front: str, fields: dict[str, str]) -> None:
    assert split_front_matter(f"---\n{front}\n---\n\nThe text.") == (fields, "The text.")


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        fields, _ = split_front_matter(text)
    except SkillError:
        return
    assert all(fields)


def put(root: Path, name: str, description: str = "Does it.", body: str = "Do it.", **files: str) -> Path:
    folder = root / name
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: {description}\n---\n{body}\n")
    for file, text in files.items():
        (folder / f"{file}.md").write_text(text)
    return folder


def test_the_operators_own_count_and_what_is_no_good_is_named_with_the_reason(tmp_path: Path) -> None:
    work, own = tmp_path / "work", tmp_path / "own"
    put(own / "skills", "deploy", "Mine.")
    put(work / ".claude/skills", "deploy", "Theirs.")
    put(work / ".agents/skills", "lint")
    put(work / ".agent-tui/skills", "test")
    bad = work / ".agents/skills"
    for name, text in {"none": "no front", "open": "---\nname: x", "odd": "---\nname: a b\n---"}.items():
        (bad / name).mkdir()
        (bad / name / "SKILL.md").write_text(text)
    (bad / "bytes").mkdir()
    (bad / "bytes" / "SKILL.md").write_bytes(b"\xff\xfe")
    (bad / "pipe").mkdir()
    os.mkfifo(bad / "pipe" / "SKILL.md")
    put(tmp_path / "outside", "leak")
    (bad / "leak").symlink_to(tmp_path / "outside" / "leak")
    (bad / "empty").mkdir()
    found = find_skills(work, own)
    assert [(skill.name, skill.personal) for skill in found.skills] == [
        ("deploy", True),
        ("lint", False),
        ("test", False),
    ]
    reasons = {Path(one.place).name: one.reason for one in found.bad}
    assert reasons.keys() == {"none", "open", "odd", "bytes", "pipe", "leak", "deploy"}
    assert "no description" in reasons["none"]
    assert "missing" in reasons["open"]
    assert "not made of letters" in reasons["odd"]
    assert "not UTF-8" in reasons["bytes"]
    assert "out of the workspace" in reasons["leak"]
    assert "that of the skill in" in reasons["deploy"]
    text = listing(found.skills)
    assert "- deploy: Mine.\n- lint: Does it. (from the checkout)" in text
    assert find_skills(tmp_path / "nowhere", None).skills == ()


def read(name: str, **more: Any) -> dict[str, Any]:
    return {"calls": [{"tool": "read_skill", "args": {"name": name, **more}}]}


async def test_a_skill_is_listed_and_read_and_its_files_stay_in_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "config"
    monkeypatch.setattr("tui_agent.session.skills.user_config_file", lambda: own / "config.toml")
    put(own / "skills", "deploy", "How we deploy.", "Tag it first.", steps="1. Tag.")
    put(tmp_path / "workspace/.agents/skills", "lint", "How we lint.", "Run ruff.", rules="none")
    (tmp_path / "workspace/.agents/skills/bad").mkdir()
    (tmp_path / "workspace/.agents/skills/bad/SKILL.md").write_text("---")
    (own / "secret").write_text("keep out")
    turns = [
        read("deploy"),
        read("deploy", file="steps.md"),
        read("deploy", file="../../secret"),
        read("lint"),
        read("lint", file="rules.md"),
        read("lnt"),
        "done",
        "done",
        "again",
    ]
    live = await start_session(tmp_path, turns, approve="ask")
    await live.run()
    prompt = live.sent()[0]["content"]
    assert "- deploy: How we deploy.\n- lint: How we lint. (from the checkout)" in prompt
    assert "Tag it first." not in prompt
    assert "read_skill" in live.state.run.tools
    deploy, steps, lint = [event.content for event in live.of(events.ToolSucceeded)]
    assert "operator's own skill" in deploy
    assert "Tag it first." in deploy
    assert "steps.md" in deploy
    assert "1. Tag." in steps
    assert "of the checkout, not of the operator" in lint
    outside, elsewhere, unknown = [event.failure.message for event in live.of(events.ToolFailed)]
    assert "leads out" in outside
    assert "read '.agents/skills/lint/rules.md'" in elsewhere
    assert "Did you mean 'lint'?" in unknown
    await live.run("once more")
    (notice,) = [event for event in live.of(events.Notice) if "skill" in event.text]
    assert "left out" in notice.text, "said once, and not before every run"
    await live.session.close()
