"""The permission rules: shown with their origin, tried out, added, changed and taken back where they are kept."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from textual.widgets import Input

from tests.console.real_session import real_live
from tests.console.waiting import picture, until
from tui_agent.config.settings import load_settings, user_config_file
from tui_agent.console.looks.option_row import OptionRow
from tui_agent.console.program import ConsoleApp
from tui_agent.console.screens.field import FieldScreen
from tui_agent.console.screens.rules import RulesScreen
from tui_agent.core.names import Decision
from tui_agent.frontend.arguments import ConsoleArguments
from tui_agent.store.kept_rules import KeptRules


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return user_config_file()


async def test_rules_are_shown_tried_added_changed_and_taken_back(tmp_path: Path, config: Path) -> None:
    turns = [{"calls": [{"tool": "bash", "args": {"command": "echo hi > a.txt"}}]}, {"text": "done"}]
    async with real_live(tmp_path, turns) as console:
        session = console.session
        (console.workspace / ".agent-tui.toml").write_text('[permissions]\ndeny = ["bash(rm -rf *)"]\n')
        session.permissions.use(load_settings(environ={}, cwd=console.workspace))
        session.permissions.change(added=["bash(echo *)"])
        session.permissions.kept.add(["bash(make)"])
        await console.run("go")
        await console.say("/permissions")
        screen = await console.opens(RulesScreen)
        shown = console.shown()
        assert [row.rule.text for row in screen.list.rows] == ["bash(rm -rf *)", "bash(make)", "bash(echo *)"]
        assert ".agent-tui.toml" in shown
        assert "`rm -rf *` never run" in shown
        assert "everything runs but what a rule denies" in shown
        # What comes with a checkout is changed there.
        await console.press("enter")
        assert console.app.screen is screen
        assert "change it there" in console.remarks()

        # Trying out changes nothing, and the rule that decides is marked.
        screen.query_one(Input).value = "cd src && rm -r -f x"
        await console.until(lambda: "deny: it never runs" in console.shown())
        assert screen.list.rows[0].speaks
        screen.query_one(Input).value = ""
        await console.until(lambda: screen._judged is None)

        # A new rule goes through the same reading as a file's, and into the user's file.
        await console.press("ctrl+n")
        field = await console.opens(FieldScreen)
        assert not field.query(".-wrong"), "nothing typed is nothing wrong"
        field.query_one(Input).value = "bash(((("
        await console.until(lambda: field.query(".-wrong"))
        await console.press("enter")
        assert "is no rule" in console.shown()
        field.query_one(Input).value = "bash(git push *)"
        decision, scope = field.query(OptionRow)
        decision.choose("ask")
        scope.choose("always")
        await console.until(lambda: "`git push *` always ask" in console.shown())
        await console.press("enter")
        await console.opens(RulesScreen)
        assert tomllib.loads(config.read_text())["permissions"] == {"ask": ["bash(git push *)"]}
        assert f"ask bash(git push *) ({config})" in [str(rule) for rule in session.permissions.in_force()]

        # A kept rule becomes one of the session; then it is taken back.
        await console.until(lambda: "bash(make)" in [row.rule.text for row in screen.list.rows])
        await console.press("down")
        assert screen.list.chosen.rule.text == "bash(make)"
        await console.press("enter")
        field = await console.opens(FieldScreen)
        field.query_one(Input).value = "bash(make all)"
        field.query(OptionRow).last().choose("session")
        await console.press("enter")
        await console.opens(RulesScreen)
        assert session.state.session.rules == {"bash(make all)", "bash(echo *)"}
        assert KeptRules(tmp_path / "state", console.workspace).rules() == ()
        await console.until(lambda: screen.list.chosen.rule.text == "bash(make all)")
        await console.press("ctrl+d")
        await console.until(lambda: session.state.session.rules == {"bash(echo *)"})

        # What asks or is denied can hold for the session or the workspace too.
        for decision, scope in (("deny", "session"), ("ask", "workspace")):
            await console.press("ctrl+n")
            field = await console.opens(FieldScreen)
            field.query_one(Input).value = "bash(curl *)"
            first, second = field.query(OptionRow)
            first.choose(decision)
            second.choose(scope)
            await console.press("enter")
            await console.opens(RulesScreen)
        assert session.state.session.narrowing == {(Decision.DENY, "bash(curl *)")}
        kept = KeptRules(tmp_path / "state", console.workspace)
        assert [str(rule).partition(" (made")[0] for rule in kept.rules()] == ["ask bash(curl *)"]
        assert "deny  bash(curl *)" in console.shown()
        await console.press("escape")
        assert console.app.screen is console.screen
        await console.say("/permissions deny bash(wget *) workspace")
        await console.until(lambda: "holds in this workspace from now on" in console.remarks())
        assert [rule.text for rule in kept.rules()] == ["bash(curl *)", "bash(wget *)"]
        await console.say("/permissions remove 99")
        await console.until(lambda: "numbers the rules, from 1 to" in console.remarks())


async def resumed(folder: Path, name: str, **chosen: object) -> tuple[str, str]:
    """What is said of a session that is opened again, and its screen."""
    overrides: dict[str, object] = {"state_dir": folder / "state", "model": "ollama/none", **chosen}
    app = ConsoleApp(ConsoleArguments(overrides=overrides, resume=name))
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: any("before: bash" in one.message for one in app._notifications))
        await until(pilot, lambda: "READY" in picture(app) or "DONE" in picture(app))
        said = "\n".join(remark.message for remark in app._notifications), picture(app)
        await app.close_sessions()
    return said


async def test_a_resumed_session_says_which_grants_came_along(tmp_path: Path) -> None:
    async with real_live(tmp_path, ["done"]) as console:
        await console.run("do it")
        console.session.permissions.change([f"bash(make t{number} *)" for number in range(5)])
        name = console.session.id
    remarks, screen = await resumed(tmp_path, name)
    assert "everything runs but what a rule denies: /approve ask changes that." in remarks
    assert "bash(make t0 *), bash(make t1 *), bash(make t2 *) and 2 more. /permissions takes" in remarks
    assert "approve all" in screen
    remarks, screen = await resumed(tmp_path, name, approve="ask")
    assert "everything runs" not in remarks
    assert "approve all" not in screen
