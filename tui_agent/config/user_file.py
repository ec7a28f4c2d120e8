"""The user's own configuration file, changed one thing at a time: comments and order are kept, and what would make the
file wrong is refused before anything is written.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui_agent.config.errors import ConfigError
from tui_agent.config.settings import Settings, load_settings
from tui_agent.core.names import Decision
from tui_agent.permissions.rules import parse_rule

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from tomlkit import TOMLDocument


class UserFile:
    """A file that may not be there yet. Each change gives the settings as they are read after it; it raises
    `ConfigError` where the file cannot be written, or would be wrong, and leaves it as it was.
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

    def _rewrite(self, change: Callable[[TOMLDocument], None]) -> Settings:
        """Write the changed file beside the old one, read it there as the program would, put it into its place."""
        import tomlkit
        from tomlkit.exceptions import TOMLKitError

        candidate = self.path.with_name(f"{self.path.name}.{os.getpid()}.part")
        try:
            present = self.path.exists()
            document = tomlkit.parse(self.path.read_text(encoding="utf-8-sig") if present else "")
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
            raise ConfigError(error.message.replace(str(candidate), str(self.path))) from error
        except (TOMLKitError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"{self.path} is not valid TOML ({error}). Correct it first; nothing was changed."
            ) from error
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
    """The table of a section, made where it is not there yet. `sandbox = "require"` becomes one with its mode."""
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
