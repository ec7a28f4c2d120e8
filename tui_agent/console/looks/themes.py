"""Themes: found, read and checked. Each is a TOML file; users drop their own into the config folder.

A file holds the fields of Textual's `Theme` and a table `[variables]`: our roles (see `ROLES`) and any variable
of Textual's. A wrong key or value is named with the file, the key and what is allowed; it never stops the rest.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from platformdirs import user_config_path
from textual.color import Color, ColorParseError
from textual.theme import BUILTIN_THEMES, Theme

from tui_agent.console.looks.legible import legible

DEFAULT_THEME = "agent-dark"

ROLES: dict[str, str] = {
    "ok": "what succeeded; high confidence",
    "warn": "failures that may still be recovered; low confidence",
    "blocked": "calls that are not executed: blocked, denied, withheld",
    "note": "the recovery note and guidance",
    "model": "the model's voice",
    "operator": "the operator's voice, and whatever waits for it",
    "muted": "secondary text",
    "faint": "rules, empty slots, marks of a scale",
    "code": "code in replies, output of tools",
    "code-inline": "code within a sentence",
    "code-background": "behind code",
    "operator-background": "behind the operator's messages",
    "error-background": "behind what is finally wrong",
    "diff-add": "added lines",
    "diff-add-background": "behind added lines",
    "diff-remove": "removed lines",
    "diff-remove-background": "behind removed lines",
    "cursor-background": "behind the block or line under the cursor",
    "syntax-keyword": "keywords in code",
    "syntax-string": "strings in code",
    "syntax-number": "numbers in code",
    "syntax-comment": "comments in code",
    "syntax-name": "names of functions and classes in code",
}
"""Our variables; `error`, `warning`, `success`, `accent`, `primary` are Textual's own."""

_FIELDS = {field.name: field for field in fields(Theme)}
_FLAGS = ("dark", "ansi")
_NUMBERS = ("luminosity_spread", "text_alpha")
_TABLES = ("variables",)
_COLOURS = tuple(name for name in _FIELDS if name not in (*_FLAGS, *_NUMBERS, *_TABLES, "name"))


class ThemeError(ValueError):
    """A theme file that cannot be used; the message says what, why and what is allowed."""


class ThemeProblem(NamedTuple):
    """A file that was left out, and why."""

    path: Path
    message: str


def theme_folders(config_folder: Path | None = None) -> list[Path]:
    """Folders of themes, weakest first: the package, the source tree, the user's config folder."""
    package = Path(__file__).resolve().parents[2]
    folders = [package / "themes", package.parent / "themes"]
    if config_folder is None:
        config_folder = _user_config_folder()
    return [folder for folder in (*folders, config_folder / "themes") if folder.is_dir()]


def _user_config_folder() -> Path:
    return user_config_path("agent-tui", appauthor=False)


def user_theme_folder() -> Path:
    """The folder of a user's own themes, whether there are any or not."""
    return _user_config_folder() / "themes"


def read_themes(folders: list[Path]) -> tuple[dict[str, Theme], list[ThemeProblem]]:
    """All themes by name (a later folder's theme replaces an earlier one's), and the files that are wrong."""
    themes: dict[str, Theme] = {}
    problems: list[ThemeProblem] = []
    for folder in folders:
        for path in sorted(folder.glob("*.toml")):
            try:
                theme = read_theme(path)
            except ThemeError as error:
                problems.append(ThemeProblem(path, str(error)))
            else:
                themes[theme.name] = theme
    return themes, problems


def read_theme(path: Path) -> Theme:
    """The theme in one file. Raises `ThemeError` for a file that is not a theme."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ThemeError(
            f"{path}: the theme cannot be read ({error.strerror}). Check the file's permissions."
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ThemeError(
            f"{path}: not valid TOML: {error}. Correct the file or move it out of the folder."
        ) from error
    return parse_theme(data, path)


def parse_theme(data: dict[str, Any], path: Path) -> Theme:
    """A theme from its parsed file. `path` is for the messages, and gives the name if none is written."""
    for key, value in data.items():
        _check(key, value, path)
    data = {"name": path.stem, **data}
    if "primary" not in data:
        raise ThemeError(
            f'{path}: `primary` is missing. A theme needs at least this colour, as in primary = "#7aa2f7".'
        )
    variables = data.get("variables", {})
    for key, value in variables.items():
        if not isinstance(value, str):
            raise ThemeError(
                f"{path}: `variables.{key}` is {value!r}. Variables are text: a colour, or a text style."
            )
        if key in ROLES:
            _check_colour(f"variables.{key}", value, path)
    theme = Theme(**{**data, "variables": variables})
    return replace(theme, variables={**role_defaults(theme), **variables})


def textuals_own() -> Iterator[Theme]:
    """Give Textual's own themes our roles."""
    return map(with_roles, BUILTIN_THEMES.values())


def _check(key: str, value: Any, path: Path) -> None:
    if key not in _FIELDS:
        raise ThemeError(f"{path}: unknown key `{key}`. Allowed: {', '.join(sorted(_FIELDS))}.")
    if key in _FLAGS and not isinstance(value, bool):
        raise ThemeError(f"{path}: `{key}` is {value!r}. Allowed: true or false.")
    if key in _NUMBERS and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise ThemeError(f"{path}: `{key}` is {value!r}. Allowed: a number between 0 and 1.")
    if key in _TABLES and not isinstance(value, dict):
        raise ThemeError(f"{path}: `{key}` is {value!r}. It is a table: write [{key}] on a line of its own.")
    if key == "name" and not (
        isinstance(value, str) and value and value.replace("-", "").replace("_", "").isalnum()
    ):
        raise ThemeError(f"{path}: `name` is {value!r}. Allowed: letters, digits, - and _.")
    if key in _COLOURS:
        _check_colour(key, value, path)


def _check_colour(key: str, value: object, path: Path) -> None:
    if not isinstance(value, str) or not _is_colour(value):
        raise ThemeError(
            f"{path}: `{key}` is {value!r}, not a colour. "
            'Allowed: "#rrggbb", a CSS colour name, or one of the terminal\'s own such as "ansi_bright_blue".'
        )


def _is_colour(value: str) -> bool:
    try:
        Color.parse(value)
    except ColorParseError:
        return False
    return True


def _role_defaults(colours: dict[str, Any]) -> dict[str, str]:
    """Make roles of the colours of a theme."""
    primary, secondary, accent = colours["primary"], colours["secondary"], colours["accent"]
    success, warning, error = colours["success"], colours["warning"], colours["error"]
    foreground, background, surface = colours["foreground"], colours["background"], colours["surface"]
    ansi = colours["ansi"]
    quiet = "ansi_bright_black" if ansi else _blend(foreground, background, 0.42)
    fainter = "ansi_bright_black" if ansi else _blend(foreground, background, 0.68)
    roles = {
        "ok": success,
        "warn": warning,
        "blocked": warning,
        "note": secondary,
        "model": primary,
        "operator": accent,
        "muted": quiet,
        "faint": fainter,
        "code": foreground,
        "code-inline": foreground,
        "diff-add": success,
        "diff-remove": error,
        "syntax-keyword": primary,
        "syntax-string": success,
        "syntax-number": warning,
        "syntax-comment": quiet,
        "syntax-name": secondary,
    }
    roles |= dict.fromkeys(("code-background", "operator-background", "cursor-background"), surface)
    for role, colour in (
        ("error-background", error),
        ("diff-remove-background", error),
        ("diff-add-background", success),
    ):
        roles[role] = "ansi_default" if ansi else _blend(colour, background, 0.82)
    if ansi:
        # No ground of a sixteen-colour terminal is sure to be legible: what is chosen is underlined.
        roles |= {"surface-active": "ansi_default", "cursor-background-text-style": "underline"}
    return roles


def _blend(colour: str, background: str, share: float) -> str:
    """`colour` moved towards the background by `share` in [0, 1]."""
    return Color.parse(colour).blend(Color.parse(background), share).hex6


def role_defaults(theme: Theme) -> dict[str, str]:
    """Roles for a theme that does not give all of them: for `App.get_theme_variable_defaults`."""
    given = not theme.ansi and theme.variables.keys() >= ROLES.keys()
    return {} if given else with_roles(theme).variables


def with_roles(theme: Theme) -> Theme:
    """Give a theme that knows nothing of our roles (one of Textual's own) all of them. Its colours are made legible on
    its grounds, which come closer together: Textual draws no text of every colour on all of them.
    """
    colours = _colours_of(theme)
    if theme.ansi:
        return replace(theme, variables={**_role_defaults(colours), **theme.variables})
    raised: dict[str, Any] = {name: _blend(colours[name], colours["background"], _CLOSER) for name in _RAISED}
    theme = replace(theme, **raised)
    colours = _colours_of(theme)
    grounds = [colours[name] for name in _GROUNDS]
    voices: dict[str, Any] = {name: legible(colours[name], grounds) for name in _VOICES}
    roles = _role_defaults({**colours, **voices})
    grounds.append(roles["error-background"])
    voices |= {name: legible(voices[name], grounds) for name in ("error", "foreground")}
    for role in ROLES:
        if role not in _NO_TEXT:
            changed = [roles[ground] for ground in _CHANGED] if role in _OF_CODE else []
            roles[role] = legible(roles[role], grounds + changed)
    return replace(theme, **voices, variables={**roles, **theme.variables})


_RAISED, _CLOSER = ("surface", "panel"), 0.5
"""Grounds above the screen's own, and how far they are moved towards it."""
_GROUNDS = ("background", *_RAISED, "surface-active")
_VOICES = ("primary", "secondary", "accent", "success", "warning", "error", "foreground")
"""Fields of a theme that text is drawn in."""
_NO_TEXT = frozenset({"faint", *(role for role in ROLES if role.endswith("-background"))})
_CHANGED = ("diff-add-background", "diff-remove-background")
_OF_CODE = frozenset(role for role in ROLES if role.startswith(("syntax-", "diff-", "code")))
"""Roles that are drawn on changed lines, too."""


def _colours_of(theme: Theme) -> dict[str, Any]:
    """List the colours of a theme, those that it leaves out as Textual makes them."""
    given = {name: value for name in _COLOURS if (value := getattr(theme, name))}
    return {**theme.to_color_system().generate(), **given, "ansi": theme.ansi}
