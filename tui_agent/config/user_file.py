"""Changes to the user's own configuration file, one at a time: comments and order are kept, and what would make the
file wrong is refused before anything is written.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui_agent.config.errors import ConfigError
from tui_agent.config.settings import Settings, load_settings
from tui_agent.permissions.rules import Decision, parse_rule

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from tomlkit import TOMLDocument

Check = Callable[[Path], object]
"""Reads a candidate of the file as the program would. Raises `ConfigError`."""


def set_key(path: Path, key: str, value: Any, check: Check) -> None:
    """Set a key (`section.name` in a section), or take it out with None. Raises `ConfigError`."""
    *sections, name = key.split(".")

    def change(document: TOMLDocument) -> None:
        table = _table(document, sections)
        if value is None:
            table.pop(name, None)
        else:
            table[name] = value

    _rewrite(path, change, check)


def add_rules(path: Path, decision: Decision, texts: Iterable[str], check: Check) -> None:
    """Add permission rules, each once. Raises `ConfigError`, and `ValueError` for what is no rule."""
    wanted = [parse_rule(decision, text, "").text for text in texts]

    def change(document: TOMLDocument) -> None:
        table = _table(document, ["permissions"])
        present = table.setdefault(decision.value, [])
        if isinstance(present, str):
            present = table[decision.value] = [present]
        for text in wanted:
            if text not in present:
                present.append(text)

    _rewrite(path, change, check)


def keep_everywhere(settings: Settings, texts: Iterable[str]) -> None:
    """Allow calls by these rules in every workspace. Raises as `add_rules`."""
    add_rules(settings.user_file, Decision.ALLOW, texts, load_settings_of(settings))


def load_settings_of(settings: Settings) -> Check:
    """Reads a candidate of the file as for these settings' workspace."""
    return lambda candidate: load_settings({"workspace": settings.workspace}, candidate)


def drop_rule(path: Path, decision: Decision, text: str, check: Check) -> None:
    """Take a permission rule out. Raises `ConfigError`."""

    def change(document: TOMLDocument) -> None:
        table = _table(document, ["permissions"])
        present = table.get(decision.value, [])
        if isinstance(present, str):
            table.pop(decision.value)
        else:
            for place in reversed(range(len(present))):
                if str(present[place]).strip() == text:
                    del present[place]

    _rewrite(path, change, check)


def _table(document: TOMLDocument, sections: Iterable[str]) -> MutableMapping[str, Any]:
    """The table of a section, made where it is not there yet. `sandbox = "require"` becomes one with its mode."""
    import tomlkit

    table: MutableMapping[str, Any] = document
    for name in sections:
        inner = table.get(name)
        if isinstance(inner, str):
            mode = str(table.pop(name))
            inner = None
            table[name] = tomlkit.table()
            table[name]["mode"] = mode
        elif inner is None:
            table[name] = tomlkit.table()
        table = table[name]
    return table


def _rewrite(path: Path, change: Callable[[TOMLDocument], None], check: Check) -> None:
    """Write the changed file beside the old one, check it there, and put it into its place."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    # A link (a folder of dotfiles) stays one.
    path = Path(os.path.realpath(path))
    candidate = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        text = path.read_text(encoding="utf-8-sig") if path.exists() else ""
        document = tomlkit.parse(text)
        change(document)
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
        with open(
            candidate,
            "w",
            encoding="utf-8",
            newline="",
            opener=lambda name, flags: os.open(name, flags, mode),
        ) as file:
            file.write(tomlkit.dumps(document))
            file.flush()
            os.fsync(file.fileno())
        check(candidate)
        candidate.replace(path)
    except ConfigError as error:
        raise ConfigError(error.message.replace(str(candidate), str(path))) from error
    except (TOMLKitError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{path} is not valid TOML ({error}). Correct it first; nothing was changed."
        ) from error
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be written ({error.strerror or error}). Check its rights and the disk; nothing was changed."
        ) from error
    finally:
        with suppress(OSError):
            candidate.unlink(missing_ok=True)
