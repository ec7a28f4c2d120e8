"""The user's own configuration file, changed one thing at a time: comments and order are kept, and what would make the
file wrong is refused before anything is written.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui_agent.config.errors import ConfigError
from tui_agent.config.settings import Settings, load_settings
from tui_agent.config.toml_lines import line_of
from tui_agent.core.names import Decision
from tui_agent.permissions.rules import parse_rule

if TYPE_CHECKING:
    from tomlkit import TOMLDocument


class TableError(Exception):
    """A table as it was edited is wrong; `line` of its text, from 1 (0: not known)."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


class UserFile:
    """A file that may not be there yet. Each change gives the settings as they are read after it; it raises
    `ConfigError` if the file cannot be written, or would be wrong, and leaves it as it was.
    """

    def __init__(self, path: Path, overrides: Mapping[str, Any]) -> None:
        """`overrides`: the options of this start, which outweigh the file."""
        # A link (a folder of dotfiles) stays one.
        self.path = Path(os.path.realpath(path))
        self._overrides = dict(overrides)

    def read(self) -> Settings:
        """The settings with this file as it is now."""
        return load_settings(self._overrides, self.path if self.path.exists() else None)

    def set(self, key: str, value: Any) -> Settings:
        """Set a key (`section.name` in a section), or take it out with None."""
        *sections, name = key.split(".")

        def change(document: TOMLDocument) -> None:
            table = _table(document, sections)
            if value is None:
                table.pop(name, None)
            else:
                table[name] = value

        return self._rewrite(change)

    def table_text(self, key: str) -> str:
        """A table (`section.name` in a section) as it stands in the file, with its comments; "" if it is not
        there.

        Raises `ConfigError` for a file that cannot be read.
        """
        import tomlkit

        *sections, name = key.split(".")
        table: Any = self._document()
        whole: Any = tomlkit.document()
        inner = whole
        for section in sections:
            table = table.get(section, {})
            inner[section] = tomlkit.table(is_super_table=True)
            inner = inner[section]
        if name not in table:
            return ""
        inner[name] = table[name]
        return tomlkit.dumps(whole).strip("\n") + "\n"

    def set_table(self, key: str, text: str) -> Settings:
        """Put a table in its place as it was edited, or take it out with a text that holds nothing.

        Raises `TableError` for what is no TOML, not this table, or against the schema; nothing is written then.
        """
        import tomlkit

        path = key.split(".")
        table = _only(path, text)

        def change(document: TOMLDocument) -> None:
            wanted: dict[str, Any] = document.unwrap()
            place, plain = _table(document, path[:-1]), wanted
            for section in path[:-1]:
                plain = plain.setdefault(section, {})
            if table is None:
                place.pop(path[-1], None)
                plain.pop(path[-1], None)
            else:
                item: Any = tomlkit.parse(text)
                for part in path:
                    item = item[part]
                place[path[-1]], plain[path[-1]] = item, table
            if _filled(tomllib.loads(tomlkit.dumps(document))) != _filled(wanted):
                raise TableError(f"Change this table in an editor: {self.path}; nothing was written.")

        try:
            return self._rewrite(change)
        except ConfigError as error:
            said = [f"{each.key}: {each.says}" for each in error.problems] or [error.message]
            lines = (line_of(text, each.key) for each in error.problems)
            raise TableError("\n".join(said), next(filter(None, lines), 0)) from error

    def add_rules(self, decision: Decision, texts: Iterable[str]) -> Settings:
        """Add permission rules, each once. Raises `ValueError` for what is no rule."""
        wanted = [parse_rule(decision, text, "").text for text in texts]

        def change(document: TOMLDocument) -> None:
            table = _table(document, ["permissions"])
            present = table.get(decision.value)
            if not isinstance(present, list):
                present = table[decision.value] = [] if present is None else [str(present)]
                present = table[decision.value]
            for text in wanted:
                if text not in present:
                    present.append(text)

        return self._rewrite(change)

    def drop_rule(self, decision: Decision, text: str) -> Settings:
        """Take a permission rule out."""

        def change(document: TOMLDocument) -> None:
            table = _table(document, ["permissions"])
            present = table.get(decision.value, [])
            if not isinstance(present, list):
                table.pop(decision.value)
                return
            for place in reversed(range(len(present))):
                if str(present[place]).strip() == text:
                    del present[place]

        return self._rewrite(change)

    def _document(self) -> TOMLDocument:
        import tomlkit
        from tomlkit.exceptions import TOMLKitError

        try:
            return tomlkit.parse(self.path.read_text(encoding="utf-8-sig"))
        except FileNotFoundError:
            return tomlkit.document()
        except (TOMLKitError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"{self.path} is not valid TOML ({error}). Correct it first; nothing was changed."
            ) from error
        except OSError as error:
            raise ConfigError(f"{self.path} cannot be read ({error.strerror or error}).") from error

    def _rewrite(self, change: Callable[[TOMLDocument], None]) -> Settings:
        """Write the changed file beside the old one, read it there as the program would, put it into its place."""
        import tomlkit
        from tomlkit.exceptions import TOMLKitError

        candidate = self.path.with_name(f"{self.path.name}.{os.getpid()}.part")
        document = self._document()
        try:
            present = self.path.exists()
            change(document)
            self.path.parent.mkdir(parents=True, exist_ok=True)
            mode = self.path.stat().st_mode & 0o777 if present else 0o600
            with open(
                candidate, "w", encoding="utf-8", newline="", opener=lambda n, f: os.open(n, f, mode)
            ) as file:
                file.write(tomlkit.dumps(document))
                file.flush()
                os.fsync(file.fileno())
            load_settings(self._overrides, candidate)
            candidate.replace(self.path)
        except ConfigError as error:
            message = error.message.replace(str(candidate), str(self.path))
            raise ConfigError(message, error.problems) from error
        except TOMLKitError as error:
            raise ConfigError(f"{self.path} cannot be changed so ({error}); nothing was written.") from error
        except OSError as error:
            why = error.strerror or str(error)
            raise ConfigError(
                f"{self.path} cannot be written ({why}). Check its rights and the disk; nothing was changed."
            ) from error
        finally:
            with suppress(OSError):
                candidate.unlink(missing_ok=True)
        return self.read()


def _table(document: TOMLDocument, sections: Iterable[str]) -> MutableMapping[str, Any]:
    """The table of a section, made if it is not there yet. `sandbox = "require"` becomes one with its mode."""
    import tomlkit

    table: MutableMapping[str, Any] = document
    for name in sections:
        inner = table.get(name)
        if inner is None or isinstance(inner, str):
            made = tomlkit.table()
            if inner is not None:
                made["mode"] = str(table.pop(name))
            table[name] = made
        table = table[name]
    return table


def _only(path: Sequence[str], text: str) -> Any:
    """The table at `path` in a TOML text that holds nothing else; None if that has no key. Raises
    `TableError`.
    """
    table: Any
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"at line (\d+)", str(error))
        line = int(place[1]) if place else text.rstrip().count("\n") + 1
        says = re.sub(r" \(at [^()]*\)$", "", str(error))
        raise TableError(f"This is no TOML: {says}.", line) from error
    if not table:
        return None
    for depth, part in enumerate(path):
        other = next((name for name in table if name != part), None) if isinstance(table, dict) else part
        if other is not None:
            says = f"Only {'.'.join(path)} is written here, and {other!r} is none of it."
            raise TableError(says, line_of(text, ".".join((*path[:depth], other))))
        table = table[part]
    return table


def _filled(document: Mapping[str, Any]) -> dict[str, Any]:
    """Without sections that hold nothing, which say nothing."""
    return {name: value for name, value in document.items() if value != {}}
