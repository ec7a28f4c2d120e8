"""A session written to a file, as `/export [FORMAT] [FILE]` asks for it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tui_agent.disk import replace_whole, user_path
from tui_agent.formats.exporters import FORMATS, SUFFIXES, export_session
from tui_agent.store.errors import SessionError, disk_error


async def export(source: Path, argument: str) -> str:
    """Write the session in the folder (or file) `source`. Gives a sentence with the place of the export.
    Raises as `export_file`.
    """
    return f"The session was written to {await asyncio.to_thread(export_file, source, argument)}"


def export_file(source: Path, argument: str) -> Path:
    """Write the session in the folder `source`; the file's path. An existing file is left alone.

    Raises `ValueError` for an unknown format, `SessionError` for what the disk or the session refuses.
    """
    given, _, name = argument.partition(" ")
    form = next((form for form in FORMATS if form == (given or "markdown")), None)
    if form is None:
        raise ValueError(f"There is no format {given}. Choose one of {', '.join(FORMATS)}.")
    text = export_session(source, form)
    file = user_path(name.strip() or f"agent-tui-{source.name}{SUFFIXES[form]}")
    try:
        if file.exists() or file.is_symlink():
            raise SessionError(f"{file} was not written", "it exists already", "Name another file.")
        replace_whole(file, text, mode=0o666)
        return file.resolve()
    except OSError as error:
        raise disk_error("The session was not exported", file, error) from error
    except ValueError as error:
        raise SessionError(
            f"{file} was not written", "no file can have this name", "Name another."
        ) from error
