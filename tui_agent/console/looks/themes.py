"""Themes: found, read and checked. Each is a TOML file; users drop their own into the config folder.

A file holds the fields of Textual's `Theme` and a table `[variables]`: our roles (see `ROLES`) and any variable
of Textual's. A wrong key or value is named with the file, the key and what is allowed; it never stops the rest.
"""

from __future__ import annotations

import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

from platformdirs import user_config_path
from textual.color import Color, ColorParseError
from textual.theme import Theme

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
    return Theme(**{**data, "variables": {**_role_defaults(data), **variables}})


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


def _role_defaults(data: dict[str, Any]) -> dict[str, str]:
    """Roles that a file leaves out, from the colours that it gives."""
    primary = data["primary"]
    success, warning = data.get("success", primary), data.get("warning", primary)
    error, accent = data.get("error", warning), data.get("accent", primary)
    secondary, foreground = data.get("secondary", primary), data.get("foreground", primary)
    surface = data.get("surface", data.get("background", ""))
    quiet = "ansi_bright_black" if data.get("ansi") else _blend(foreground, data.get("background"), 0.42)
    fainter = "ansi_bright_black" if data.get("ansi") else _blend(foreground, data.get("background"), 0.68)
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
    if surface:
        roles |= dict.fromkeys(("code-background", "operator-background", "cursor-background"), surface)
    for role, colour in (
        ("error-background", error),
        ("diff-remove-background", error),
        ("diff-add-background", success),
    ):
        roles[role] = "ansi_default" if data.get("ansi") else _blend(colour, data.get("background"), 0.82)
    if data.get("ansi"):
        # No ground of a sixteen-colour terminal is sure to be legible: what is chosen is underlined.
        roles |= {"surface-active": "ansi_default", "cursor-background-text-style": "underline"}
    return roles


def _blend(colour: str, background: str | None, share: float) -> str:
    """`colour` moved towards the background by `share` in [0, 1]."""
    base = Color.parse(background) if background else Color(18, 18, 18)
    return Color.parse(colour).blend(base, share).hex6


def role_defaults(theme: Theme) -> dict[str, str]:
    """Our roles for a theme that knows nothing of them (Textual's own): for `App.get_theme_variable_defaults`."""
    given = {name: getattr(theme, name) for name in _COLOURS}
    return _role_defaults({name: value for name, value in given.items() if value} | {"ansi": theme.ansi})
