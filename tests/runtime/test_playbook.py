"""The playbook through the production loop: what runs teach, and what the next one's model reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.playbook.sessions import WORK, bash, with_script
from tests.runtime.scripted import ScriptedOperator
from tests.runtime.session_harness import replayed, start_session
from tui_agent.core.events import NotePrepared
from tui_agent.core.recovery.rules import Rule
from tui_agent.playbook.learning import learn_file
from tui_agent.playbook.store import Playbook
from tui_agent.session.session import Session
from tui_agent.store.journal import read_journal

SAYS = "what worked after such a failure was `bin/check` instead"


async def run(
    folder: Path, turns: list[dict[str, Any] | str], **options: Any
) -> tuple[Session, list[list[dict[str, Any]]]]:
    """One run in a session of its own, in the one workspace of `folder`: the session, and what its model read."""
    with_script(folder)
    live = await start_session(folder, turns, operator=ScriptedOperator(present=False), **options)
    await live.run("Check it.")
    await live.close()
    assert replayed(live.session) == live.state
    return live.session, [request.messages for request in live.model.requests]


def noted(requests: list[list[dict[str, Any]]]) -> list[bool]:
    """Which requests carry the playbook's words, in their last message."""
    return [SAYS in str(messages[-1]["content"]) for messages in requests]


async def test_what_worked_twice_is_said_the_third_time_with_its_count(tmp_path: Path) -> None:
    for _ in range(2):
        _, requests = await run(tmp_path, WORK)
        assert not any(noted(requests))
    session, requests = await run(tmp_path, WORK)
    assert noted(requests) == [False, True, False, False]
    assert "(2 of 2 times), for example `bin/check src`" in requests[1][-1]["content"]
    (failed,) = session.state.metrics.incidents.recovered
    assert failed.newest.known is not None
    assert failed.newest.known.worked == 2
    # Replay never looks at the store: the journal alone says it.
    for path in (tmp_path / "state" / "playbook").iterdir():
        path.unlink()
    assert replayed(session) == session.state
    (prepared,) = (
        one for one in read_journal(session.folder).events if isinstance(one, NotePrepared) and one.text
    )
    assert Rule.NOTE_PLAYBOOK in prepared.rules


@pytest.mark.parametrize(
    "options", [{"recovery": {"playbook": False}}, {"policy": "forge"}], ids=["off", "forge"]
)
async def test_one_key_and_every_other_policy_switch_it_off(tmp_path: Path, options: dict[str, Any]) -> None:
    for _ in range(3):
        _, requests = await run(tmp_path, WORK, **options)
        assert not any(noted(requests))
    assert not (tmp_path / "state" / "playbook").exists()


async def test_a_suggestion_that_does_not_work_is_said_twice_at_most_and_counts_as_harm(
    tmp_path: Path,
) -> None:
    for _ in range(3):
        await run(tmp_path, WORK)
    broken = [bash("checkall src"), bash("bin/check; exit 3"), bash("checkall src"), bash("checkall src")]
    _, requests = await run(tmp_path, [*broken, "I give up. Shall I go on?"])
    assert sum(noted(requests)) == 2
    playbook = Playbook(tmp_path / "state", tmp_path / "workspace")
    counts = {one.repair.name: one.repair for one in playbook.workspace.book().offered(0.0)}
    assert (round(counts["bin/check"].worked), counts["bin/check"].harmed) == (3, 1)


async def test_secrets_of_a_run_are_masked_in_what_it_teaches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHECK_TOKEN", "s3cr3t-t0k3n-value")
    token = "--token=s3cr3t-t0k3n-value"
    await run(tmp_path, [bash("checkall src"), bash(f"bin/check src {token}"), "Checked."])
    kept = "".join(path.read_text() for path in (tmp_path / "state" / "playbook").glob("*.json"))
    assert "bin/check src --token=[masked:CHECK_TOKEN]" in kept
    assert "s3cr3t" not in kept


async def test_saved_sessions_teach_once_and_only_their_own_workspace(tmp_path: Path) -> None:
    sessions = [(await run(tmp_path, WORK, recovery={"playbook": False}))[0] for _ in range(3)]
    state, elsewhere = tmp_path / "state", tmp_path / "elsewhere"
    for session in sessions:
        learned = learn_file(session.folder, state, elsewhere)
        assert (learned.runs, learned.new) == (1, 1)
        assert learn_file(session.folder, state, elsewhere).new == 0
    _, requests = await run(tmp_path, WORK)
    assert noted(requests) == [False, True, False, False]
    assert not Playbook(state, elsewhere).workspace.path.exists()


async def test_the_live_run_and_its_journal_teach_the_same(tmp_path: Path) -> None:
    session, _ = await run(tmp_path, WORK)
    playbook = Playbook(tmp_path / "state", tmp_path / "workspace")
    live = playbook.workspace.book()
    assert learn_file(session.folder, tmp_path / "state", tmp_path).new == 0
    playbook.forget("all")
    learn_file(session.folder, tmp_path / "state", tmp_path)
    assert playbook.workspace.book() == live


async def test_what_worked_elsewhere_is_said_only_where_that_is_wanted(tmp_path: Path) -> None:
    usual = bash("python3 -m compileall -q bin/")
    work = [bash("checkall bin/"), bash("ls bin"), usual, "Checked."]
    for name in ("one", "two", "three", "four"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "state").symlink_to(tmp_path / "state")
    (tmp_path / "state").mkdir()
    for name in ("one", "one", "two", "two"):
        await run(tmp_path / name, work)
    said = []
    for name, wanted in (("three", False), ("four", True)):
        _, requests = await run(tmp_path / name, work, recovery={"playbook_elsewhere": wanted})
        said.append("In earlier runs in other workspaces too, what worked" in str(requests[1]))
    assert said == [False, True]
