"""The playbook at the front doors: the command line, the screen, the console in lines, and behind F9."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.console.conftest import no_fixed_waits as no_fixed_waits
from tests.console.real_session import real_live
from tests.console.terminal import Terminal
from tests.playbook.sessions import WORK, taught
from tui_agent.cli import main
from tui_agent.console.screens.report import ReportPane, ReportScreen
from tui_agent.core.events import ToolFailed
from tui_agent.core.recovery.rules import Rule
from tui_agent.frontend.lines.playbook import entry_lines, known
from tui_agent.frontend.lines.styled import text_of
from tui_agent.frontend.why import explain
from tui_agent.playbook.store import Playbook
from tui_agent.session.replay import Replay


def playbook_id(folder: Path) -> str:
    book = Playbook(folder / "state", folder / "workspace").workspace.book()
    ((entry, repair, _),) = book.offered(0.0)
    return entry.id_of(repair)


def command(folder: Path, verb: str, *words: str) -> int:
    return main([
        "playbook", verb, *words, "--workspace", str(folder / "workspace"), "--state-dir", str(folder / "state"),
    ])  # fmt: skip


async def test_why_tells_what_the_playbook_had_on_a_failure(tmp_path: Path) -> None:
    live = (await taught(tmp_path, 3))[-1]
    (failed,) = live.of(ToolFailed)
    why = explain(Replay.open(live.session.folder), failed.seq)
    (count,) = (one for one in why.counts if one.detector == "playbook")
    assert (count.rule, count.stands) == (
        Rule.NOTE_PLAYBOOK,
        "bin/check: worked 2 of 2 times, 8% recover without it",
    )
    assert "what worked after such a failure was `bin/check`" in why.note


async def test_the_command_line_lists_shows_edits_forgets_and_exports(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await taught(tmp_path, 3)
    assert command(tmp_path, "list") == 0
    assert "bin/check instead: worked 3 of 3 times (44% to 100%)" in capsys.readouterr().out
    wanted = playbook_id(tmp_path)
    assert command(tmp_path, "show", wanted) == 0
    assert "example    bin/check src" in capsys.readouterr().out
    assert command(tmp_path, "edit", wanted, "ask the lead first\x1b]0;owned\x07") == 0
    assert command(tmp_path, "list") == 0
    printed = capsys.readouterr().out
    assert "ask the lead first" in printed
    assert "\x1b" not in printed
    assert command(tmp_path, "export") == 0
    books = json.loads(capsys.readouterr().out)
    assert books["workspace"]["workspace"] == str(tmp_path / "workspace")
    assert command(tmp_path, "forget", wanted) == 0
    assert command(tmp_path, "forget", wanted) == 2
    assert "there is no" in capsys.readouterr().err


async def test_the_texts_of_an_entry_stand_beside_its_id(tmp_path: Path) -> None:
    await taught(tmp_path, 3)
    (one,) = known(Playbook(tmp_path / "state", tmp_path / "workspace"), 0.0)
    head, *rest = [text_of(line) for line in entry_lines(one, 30)]
    assert head.startswith(f"{one.id}  ")
    assert len(rest) > 3
    assert all(line.startswith(" " * 8) and len(line) <= 30 for line in rest)


async def test_learning_reads_all_saved_sessions_and_counts_each_run_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await taught(tmp_path, 2)
    Playbook(tmp_path / "state", tmp_path / "workspace").forget("all")
    assert command(tmp_path, "learn") == 0
    assert "2 runs read, 2 of them new" in capsys.readouterr().out
    assert command(tmp_path, "learn", str(tmp_path / "state" / "sessions")) == 0
    assert "2 runs read, 0 of them new" in capsys.readouterr().out
    assert command(tmp_path, "learn", str(tmp_path / "none")) == 2


@pytest.mark.parametrize("words", [["list", "x"], ["show"], ["edit", "x"], ["sing"]])
def test_a_wrong_use_is_said(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["playbook", *words]) == 2
    assert "agent-tui playbook" in capsys.readouterr().err


def test_a_damaged_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = Playbook(tmp_path / "state", tmp_path / "workspace").workspace.path
    path.parent.mkdir(parents=True)
    path.write_text("[]")
    assert command(tmp_path, "list") == 1
    assert path.name in capsys.readouterr().err


async def test_the_screen_shows_it_and_forgets(tmp_path: Path) -> None:
    await taught(tmp_path, 2)
    wanted = playbook_id(tmp_path)
    async with real_live(tmp_path, WORK) as console:
        await console.say("/playbook")
        await console.opens(ReportScreen)
        pane = console.app.screen.query_one(ReportPane)
        await console.until(lambda: "bin/check instead" in " ".join(map(text_of, pane.draw(76, 0))))
        await console.press("escape")
        await console.say(f"/playbook edit {wanted} run it from the top")
        book = console.session.playbook.workspace
        await console.until(lambda: "run it from the top" in book.book().model_dump_json())
        await console.say(f"/playbook forget {wanted}")
        await console.until(lambda: not book.book().offered(0.0))


@pytest.mark.process
async def test_the_console_in_lines_has_it_too(tmp_path: Path) -> None:
    await taught(tmp_path, 2)
    scenario = tmp_path / "lines.toml"
    scenario.write_text('title = "a"\ndescription = "b"\ntask = "-"\n[[turns]]\ntext = "Hello."\n')
    words = ["-m", "tui_agent", "--plain", "--model", f"scripted:{scenario}"]
    terminal = Terminal(
        [*words, "--workspace", str(tmp_path / "workspace")],
        {"AGENT_TUI_STATE_DIR": str(tmp_path / "state"), "XDG_CONFIG_HOME": str(tmp_path), "TERM": "dumb"},
        (200, 50),
    )
    try:
        terminal.until(lambda: terminal.output.endswith(b"> "))
        terminal.send("/playbook\n")
        terminal.until(lambda: b"bin/check instead" in terminal.output)
        terminal.send("/playbook forget nothing\n")
        terminal.until(lambda: b"There is no nothing in the playbook" in terminal.output)
    finally:
        terminal.close()
