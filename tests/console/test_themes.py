"""Themes are found, checked and legible; a wrong file is named with its key and what is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.app import App
from textual.color import Color
from textual.theme import BUILTIN_THEMES

from tui_agent.console.looks.themes import (
    DEFAULT_THEME,
    ROLES,
    ThemeError,
    read_theme,
    read_themes,
    role_defaults,
    textuals_own,
    theme_folders,
)
from tui_agent.console.panes.strips import Palette

THEMES = read_themes(theme_folders(Path("/nonexistent")))[0]
OURS = sorted(THEMES)
GROUNDS = {
    "code": "code-background",
    "syntax-keyword": "code-background",
    "syntax-string": "code-background",
    "syntax-number": "code-background",
    "syntax-comment": "code-background",
    "syntax-name": "code-background",
    "diff-add": "diff-add-background",
    "diff-remove": "diff-remove-background",
    "operator": "operator-background",
    "error": "error-background",
}


def luminance(colour: Color) -> float:
    """WCAG 2: relative luminance."""
    parts = [channel / 255 for channel in colour.rgb]
    red, green, blue = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: Color, other: Color) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_the_default_and_the_required_kinds_of_theme_are_there() -> None:
    assert DEFAULT_THEME in THEMES
    assert len(THEMES) >= 4
    assert any(not theme.dark for theme in THEMES.values())
    assert any(theme.ansi for theme in THEMES.values())


@pytest.mark.parametrize("name", OURS)
def test_every_theme_gives_every_role(name: str) -> None:
    folder = next(
        folder for folder in theme_folders(Path("/nonexistent")) if (folder / f"{name}.toml").exists()
    )
    written = (folder / f"{name}.toml").read_text()
    assert [role for role in ROLES if f"\n{role} = " not in written] == []


@pytest.mark.parametrize("name", [name for name in OURS if not THEMES[name].ansi])
def test_text_is_legible_on_its_ground(name: str) -> None:
    theme = THEMES[name]
    least = 7.0 if name == "agent-contrast" else 4.5
    variables = {**theme.variables, "error": theme.error or ""}
    weak = []
    for role in [*(role for role in ROLES if not role.endswith("background") and role != "faint"), "error"]:
        colour = Color.parse(variables[role])
        own = variables.get(GROUNDS.get(role, ""), "")
        grounds = (theme.background or "", theme.surface or "", theme.panel or "", own)
        ratios = (
            (role, ground, round(contrast(colour, Color.parse(ground)), 2)) for ground in grounds if ground
        )
        weak.extend(ratio for ratio in ratios if ratio[2] < least)
    assert weak == []


TEXTUALS = {theme.name: theme for theme in textuals_own() if not theme.ansi}


@pytest.mark.parametrize("name", sorted(TEXTUALS))
def test_textuals_own_themes_are_made_legible(name: str) -> None:
    """Every role and voice on every ground of the screen, and on its own."""
    theme = TEXTUALS[name]
    colours = {**theme.to_color_system().generate(), **theme.variables}
    screen = [colours[ground] for ground in ("background", "surface", "panel", "surface-active")]
    voices = ("primary", "secondary", "accent", "success", "warning", "error", "foreground")
    roles = [role for role in ROLES if not role.endswith("background") and role != "faint"]
    weak = {
        (role, ground): round(ratio, 2)
        for role in (*voices, *roles)
        for ground in (*screen, *filter(None, [colours.get(GROUNDS.get(role, ""))]))
        if (ratio := contrast(Color.parse(colours[role]), Color.parse(ground))) < 4.5
    }
    assert weak == {}


def test_a_theme_of_ones_own_keeps_what_it_says_and_the_rest_is_made_legible(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        'primary = "#ffff00"\nbackground = "#ffffff"\ndark = false\n[variables]\nwarn = "#eeee00"\n'
    )
    theme = read_theme(path)
    assert (theme.primary, theme.variables["warn"]) == ("#ffff00", "#eeee00")
    assert contrast(Color.parse(theme.variables["model"]), Color.parse("#ffffff")) >= 4.5
    assert theme.variables.keys() >= ROLES.keys()


def test_the_terminals_own_colours_are_legible_on_a_white_ground_too() -> None:
    """In most palettes the bright variants of these are near to white."""
    theme = THEMES["terminal"]
    colours = (theme.accent, theme.success, theme.warning, *theme.variables.values())
    assert not {"ansi_bright_cyan", "ansi_bright_green", "ansi_bright_yellow"}.intersection(colours)


@pytest.mark.parametrize("name", OURS)
def test_roles_that_mean_different_things_look_different(name: str) -> None:
    theme = THEMES[name]
    variables = {**theme.variables, "error": theme.error or ""}
    pairs = [("ok", "warn"), ("ok", "error"), ("warn", "error"), ("model", "operator"), ("note", "operator")]
    assert [pair for pair in pairs if variables[pair[0]] == variables[pair[1]]] == []


@pytest.mark.parametrize("name", sorted(BUILTIN_THEMES))
def test_themes_that_know_nothing_of_our_roles_get_them_all(name: str) -> None:
    class Plain(App[None]):
        def get_theme_variable_defaults(self) -> dict[str, str]:
            return role_defaults(self.current_theme)

    app = Plain()
    app.theme = name
    variables = app.get_css_variables()
    palette = Palette(variables)
    assert [role for role in ROLES if not role.endswith("background") and role not in variables] == []
    for role in ROLES:
        palette.style(role)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("primary = ", ["not valid TOML"]),
        ("accent = '#fff'", ["`primary` is missing"]),
        ("primary = '#12345'", ["`primary` is '#12345'", "#rrggbb"]),
        ("primary = 3", ["`primary` is 3", "not a colour"]),
        ("primary = '#fff'\ncolour = '#fff'", ["unknown key `colour`", "Allowed: accent,"]),
        ("primary = '#fff'\ndark = 'yes'", ["`dark` is 'yes'", "true or false"]),
        ("primary = '#fff'\ntext_alpha = true", ["`text_alpha` is True", "a number"]),
        ("primary = '#fff'\nvariables = 3", ["`variables` is 3", "[variables]"]),
        ("primary = '#fff'\n[variables]\nok = 'greenish'", ["`variables.ok` is 'greenish'"]),
        ("primary = '#fff'\n[variables]\nok = 3", ["`variables.ok` is 3"]),
        ("primary = '#fff'\nname = 'a b'", ["`name` is 'a b'"]),
        ("\x00", ["not valid TOML"]),
    ],
)
def test_a_wrong_file_is_named_with_key_and_what_is_allowed(
    tmp_path: Path, text: str, expected: list[str]
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(ThemeError) as caught:
        read_theme(path)
    assert str(path) in str(caught.value)
    for part in expected:
        assert part in str(caught.value)


def test_a_wrong_file_does_not_hide_the_others_and_users_replace_ours(tmp_path: Path) -> None:
    folder = tmp_path / "themes"
    folder.mkdir()
    (folder / "broken.toml").write_text("primary = 3")
    (folder / "mine.toml").write_text('primary = "#112233"')
    (folder / "ours.toml").write_text(f'name = "{DEFAULT_THEME}"\nprimary = "#445566"')
    themes, problems = read_themes(theme_folders(tmp_path))
    assert themes["mine"].primary == "#112233"
    assert themes[DEFAULT_THEME].primary == "#445566"
    assert [problem.path.name for problem in problems] == ["broken.toml"]


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(ThemeError, match="cannot be read"):
        read_theme(tmp_path / "none.toml")
