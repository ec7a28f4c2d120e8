"""Figures that a server says of its usage, however absurd, break neither the run nor the list of the sessions."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests import openai_server as server
from tests.kept_host import KeptHost
from tests.openai_server import Answer
from tests.runtime.served_session import run_agent
from tui_agent.cli import main
from tui_agent.core import events
from tui_agent.models.protocol import Reply
from tui_agent.store.journal import read_journal
from tui_agent.store.lines import encode
from tui_agent.store.session_index import INDEX_NAME
from tui_agent.store.session_store import SessionStore

HUGE = 2**63
WEIRD: list[Any] = [
    {"prompt_tokens": HUGE, "completion_tokens": HUGE, "total_tokens": HUGE * 2},
    {"prompt_tokens": 10**400, "completion_tokens": 1, "total_tokens": 1},
    {"prompt_tokens": -5, "completion_tokens": -7, "total_tokens": -12},
    {"prompt_tokens": "many", "completion_tokens": "7", "total_tokens": "x"},
    {"prompt_tokens": 11.5, "completion_tokens": 7.0, "total_tokens": 18.5},
    {"prompt_tokens": float("nan"), "completion_tokens": float("inf"), "total_tokens": 1},
    {"prompt_tokens": True, "completion_tokens": None, "total_tokens": 1},
    {"prompt_tokens": [1], "completion_tokens": {"a": 1}, "total_tokens": 1},
    {"prompt_tokens": 11, "completion_tokens": 7, "prompt_tokens_details": "none", "cost": "dear"},
    {"prompt_tokens": 11, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": HUGE}},
    {"cost": float("nan"), "prompt_tokens": 1, "completion_tokens": 1},
    "plenty",
    [1, 2, 3],
    7,
]


def answer_with(usage: Any) -> Answer:
    plain = server.text("All done.", usage=None)
    last = json.loads(server.chunk(choices=False)[len(b"data: ") :])
    line = b"data: " + json.dumps({**last, "usage": usage}).encode() + b"\n\n"
    return Answer(headers=plain.headers, steps=(*plain.steps[:-1], line, server.DONE))


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("usage", WEIRD, ids=lambda usage: str(usage)[:40])
async def test_a_run_is_answered_and_listed_whatever_usage_the_server_claims(
    host: KeptHost, tmp_path: Path, usage: Any
) -> None:
    session, finished, _ = await run_agent(host, tmp_path, [answer_with(usage)])
    assert (finished.outcome, finished.answer) == ("answered", "All done."), finished.reason
    used = session.state.metrics.usage
    assert 0 <= used.prompt_tokens < 10**12
    assert 0 <= used.completion_tokens < 10**12
    store = SessionStore(tmp_path / "state")
    store.refresh()
    assert [row.id for row in store.rows()] == [session.id]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (7, 7),
        (7.0, 7),
        (0, 0),
        (-1, None),
        (HUGE, None),
        (True, None),
        ("7", None),
        (7.5, None),
        ([], None),
        (float("nan"), None),
        (float("inf"), None),
        (None, None),
    ],
)
def test_a_count_that_is_none_is_not_known(given: Any, kept: int | None) -> None:
    assert Reply.model_validate({"prompt_tokens": given, "completion_tokens": given}).prompt_tokens == kept


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (0.5, 0.5),
        (0, 0.0),
        (-1, None),
        (float("nan"), None),
        (float("inf"), None),
        ("1", None),
        (True, None),
        (10**400, None),
    ],
)
def test_a_cost_that_is_none_is_not_known(given: Any, kept: float | None) -> None:
    assert Reply.model_validate({"cost": given}).cost == kept


def poisoned(state: Path, folder: Path) -> None:
    """A journal as an earlier version wrote it: figures that no database and no sum can hold."""
    found = list(read_journal(folder).events)
    lines = []
    for event in found:
        if isinstance(event, events.ReplyFinished):
            event = event.model_copy(update={"prompt_tokens": HUGE, "completion_tokens": -(2**70)})
        lines.append(encode(event))
    (folder / "events.jsonl").write_bytes(b"".join(lines))
    for file in folder.glob("state*"):
        file.unlink()
    assert state


async def a_session(tmp_path: Path, text: str = "done") -> Path:
    from tests.runtime.session_harness import start_session

    live = await start_session(tmp_path, [text])
    await live.run()
    await live.close()
    return live.session.folder


async def test_a_journal_with_absurd_figures_is_listed_beside_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = await a_session(tmp_path)
    other = await a_session(tmp_path)
    poisoned(tmp_path / "state", folder)
    assert main(["sessions", "list", "--state-dir", str(tmp_path / "state")]) == 0
    out = capsys.readouterr()
    assert folder.name in out.out
    assert other.name in out.out


@pytest.mark.parametrize(
    "harm",
    [
        "UPDATE sessions SET tokens = 'many', cost = 'dear', started_at = 'never', size = 'x'",
        "UPDATE sessions SET title = 7, outcome = NULL, problem = NULL",
        "UPDATE sessions SET title = CAST(x'ff00ff' AS TEXT)",
        "DROP TABLE passages",
        "garbage in the middle",
    ],
)
async def test_a_poisoned_index_is_made_anew_by_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], harm: str
) -> None:
    folder = await a_session(tmp_path)
    state = tmp_path / "state"
    assert main(["sessions", "list", "--state-dir", str(state)]) == 0
    file = state / INDEX_NAME
    if harm.startswith("garbage"):
        database = sqlite3.connect(file)
        database.execute("PRAGMA journal_mode = DELETE")
        database.close()
        data = bytearray(file.read_bytes())
        data[4096:] = b"\xa5" * (len(data) - 4096)
        file.write_bytes(bytes(data))
    else:
        with sqlite3.connect(file) as database:
            database.execute(harm)
        database.close()
    capsys.readouterr()
    for command in (["list"], ["search", "go"], ["list"]):
        assert main(["sessions", *command, "--state-dir", str(state)]) == 0
        assert folder.name in capsys.readouterr().out
