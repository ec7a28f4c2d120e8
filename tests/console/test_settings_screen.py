"""The settings screen: from the schema, with the origin of each value; what is changed goes into the user's file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from textual.widgets import Input, TextArea

from tests.console.real_session import real_live
from tui_agent.config.setting_rows import GROUPS, OPTIONS_ONLY, SettingError, setting_rows, toml_value
from tui_agent.config.settings import Settings, load_settings, user_config_file
from tui_agent.console.looks.option_row import OptionRow
from tui_agent.console.program import first_theme
from tui_agent.console.screens.field import FieldScreen
from tui_agent.console.screens.rules import RulesScreen
from tui_agent.console.screens.settings import SettingsScreen
from tui_agent.console.screens.table import TableScreen
from tui_agent.console.screens.theme_gallery import ThemeGallery
from tui_agent.frontend.arguments import ConsoleArguments


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    file = user_config_file()
    file.parent.mkdir(parents=True)
    file.write_text('# mine\nmax_iterations = 40  # enough\n\n[recovery]\nring = "stop"\n', "utf-8")
    return file


def test_every_key_is_a_row_with_its_origin_and_meaning_and_secrets_are_not_shown(
    config: Path, tmp_path: Path
) -> None:
    (tmp_path / ".agent-tui.toml").write_text('policy = "gigi"\n')
    address = "http://me:hunter22@127.0.0.1:1/v1"
    environ = {**os.environ, "AGENT_TUI_API_BASE": address, "AGENT_TUI_RECOVERY__STREAK_LIMIT": "7"}
    settings = load_settings({"model": "openai/x", "workspace": tmp_path}, None, environ)
    rows = {row.key: row for row in setting_rows(settings)}
    assert {key.partition(".")[0] for key in rows} == set(Settings.model_fields) - OPTIONS_ONLY
    assert {key for keys in GROUPS.values() for key in keys} <= set(Settings.model_fields)
    assert all(row.note for row in rows.values() if row.group != "tables")
    origins = {
        key: rows[key].origin for key in ("model", "api_base", "policy", "max_iterations", "recovery.ring")
    }
    assert list(origins.values()) == [
        "--model", "AGENT_TUI_API_BASE", str(tmp_path / ".agent-tui.toml"), str(config), str(config),
    ]  # fmt: skip
    assert rows["recovery.streak_limit"].origin == "AGENT_TUI_RECOVERY__STREAK_LIMIT"
    assert rows["recovery.streak_limit"].value == "7"
    assert rows["theme"].origin == "default"
    assert rows["recovery.attempts_limit"].value == "3"  # as the policy has it
    assert rows["api_base"].value == "http://127.0.0.1:1/v1"


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("max_cost", " 2 ", 2.0), ("max_cost", "", None), ("step", "true", True), ("recovery.ring", "off", "off"),
        ("notify.console", "bell, title", ["bell", "title"]), ("environment.pass", "A,B", ["A", "B"]),
        ("approve", "writes", "writes"), ("sandbox.mode", "require", "require"),
    ],
)  # fmt: skip
def test_a_value_as_typed_becomes_one_of_the_file(key: str, text: str, value: object) -> None:
    assert toml_value(key, text) == value


@pytest.mark.parametrize(
    ("key", "text"), [("max_cost", "much"), ("recovery.attempts_limit", "0"), ("api_base", "x")]
)
def test_a_wrong_value_is_refused_with_what_is_allowed(key: str, text: str) -> None:
    with pytest.raises(SettingError, match=f"{key} must be"):
        toml_value(key, text)


async def test_settings_are_found_changed_and_take_effect(tmp_path: Path, config: Path) -> None:
    async with real_live(tmp_path, [], overrides={"theme": "agent-light"}, size=(80, 24)) as console:
        await console.press("f12")
        screen = await console.opens(SettingsScreen)
        await console.until(lambda: screen.list.rows)
        screen.query_one(Input).value = "iterations before"
        await console.until(lambda: [row.key for row in screen.list.rows] == ["max_iterations"])
        assert "from" in console.shown()
        await console.press("enter")
        field = await console.opens(FieldScreen)
        assert field.query_one(Input).value == "40"
        field.query_one(Input).value = "none"
        await console.press("enter")
        assert "max_iterations must be a whole number." in console.shown()
        assert config.read_text().startswith("# mine\nmax_iterations = 40  # enough\n")
        field.query_one(Input).value = "60"
        await console.press("enter")
        await console.opens(SettingsScreen)
        assert config.read_text() == '# mine\nmax_iterations = 60  # enough\n\n[recovery]\nring = "stop"\n'
        assert console.session.settings.max_iterations == 60
        assert "from the next run on" in console.remarks()

        # A choice is taken from those that are allowed; the default takes the key out of the file.
        screen.query_one(Input).value = "recovery.ring identical"
        await console.until(lambda: screen.list.chosen and screen.list.chosen.value == "stop")
        await console.press("enter")
        field = await console.opens(FieldScreen)
        field.query_one(OptionRow).choose("")
        await console.press("enter")
        await console.opens(SettingsScreen)
        assert "ring =" not in config.read_text()

        # A table is edited as it stands in the file: what is wrong is said at its line, and nothing is written.
        screen.query_one(Input).value = "models under names"
        await console.until(lambda: screen.list.chosen and screen.list.chosen.key == "profiles")
        await console.press("enter")
        table = await console.opens(TableScreen)
        field = table.query_one(TextArea)
        assert field.text.startswith("# [profiles.here]\n")
        before = config.read_text()
        for text, said in [
            ('[profiles.a]\nmodel = "m"\ntemperature = "hot"\n', "Line 3: profiles.a.temperature: must be"),
            ("[profiles.a\n", "Line 1: This is no TOML: Expected"),
            ('[profiles.a]\nmodel = "m"\n[hooks]\n', "Line 3: Only profiles is written here"),
        ]:
            field.text = text
            await console.press("ctrl+s")
            await console.until(lambda said=said: said in console.shown())
        assert config.read_text() == before
        await console.press("escape")
        assert "Esc again drops" in console.shown()
        field.text = '[profiles.a]  # the one\nmodel = "m"\n'
        await console.press("ctrl+s")
        await console.opens(SettingsScreen)
        assert config.read_text() == before + '\n[profiles.a]  # the one\nmodel = "m"\n'
        assert "from the next session on" in console.remarks()

        # What has a screen of its own opens there; a file that nobody may write costs nothing else.
        screen.query_one(Input).value = "permissions"
        await console.until(lambda: screen.list.chosen and screen.list.chosen.key == "permissions")
        await console.press("enter")
        await console.opens(RulesScreen)


async def test_the_gallery_shows_each_theme_at_once_restores_the_former_and_keeps_the_chosen(
    tmp_path: Path, config: Path
) -> None:
    themes = config.parent / "themes"
    themes.mkdir()
    (themes / "mine.toml").write_text('primary = "#ffaa00"\nbackground = "#101010"\n', "utf-8")
    async with real_live(tmp_path, [], size=(80, 24)) as console:
        app = console.app
        await console.until(lambda: "mine" in app.theme_names)
        former = app.theme
        await console.say("/theme")
        gallery = await console.opens(ThemeGallery)
        sources = {row.name: row.source for row in gallery.list.rows}
        assert (sources["mine"], sources[former], sources["nord"]) == ("yours", "agent-tui", "Textual")
        assert gallery.list.chosen.name == former
        await console.press("down")
        await console.until(lambda: app.theme != former)
        await console.press("escape")
        await console.until(lambda: app.theme == former)
        assert "theme" not in config.read_text()

        await console.say("/theme")
        gallery = await console.opens(ThemeGallery)
        gallery.query_one(Input).value = "nord"
        await console.until(lambda: app.theme == "nord")
        await console.press("enter")
        await console.until(lambda: app.screen is console.screen)
        assert app.theme == "nord"
        assert load_settings({}, None, {}).theme == "nord"
        assert config.read_text().startswith("# mine\nmax_iterations = 40  # enough\n")
        assert first_theme(ConsoleArguments()).name == "nord"
