"""A session written to a file, as `/export [FORMAT] [FILE]` asks for it."""

from __future__ import annotations

from pathlib import Path


def export_file(source: Path, argument: str) -> Path:
    """Write the session in the folder `source`; the file's path. An existing file is left alone.

    Raises `ValueError` for an unknown format, `OSError`, `SessionError`.
    """
    from tui_agent.formats.exporters import FORMATS, SUFFIXES, export_session

    given, _, name = argument.partition(" ")
    form = next((form for form in FORMATS if form == (given or "markdown")), None)
    if form is None:
        raise ValueError(f"there is no format {given}; choose one of {', '.join(FORMATS)}.")
    text = export_session(source, form)
    file = Path(name.strip() or f"agent-tui-{source.name}{SUFFIXES[form]}").expanduser()
    with file.open("x", encoding="utf-8") as target:
        target.write(text)
    return file.resolve()
