"""What the verbs of `agent-tui sessions` do: the store, the exporters and the importers work, this prints."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.cli.options import UsageError

if TYPE_CHECKING:
    import argparse

    from tui_agent.sessions.store import SessionStore


def _write(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))


def list_sessions(store: SessionStore, namespace: argparse.Namespace) -> int:
    """The list, the newest first."""
    from tui_agent.cli.session_rows import as_json, as_table

    store.refresh()
    inside = None if namespace.inside is None else Path(namespace.inside).resolve()
    rows = store.rows(inside)
    if namespace.json:
        _write(*(as_json(row) for row in rows[: namespace.limit]))
    elif rows:
        _write(*as_table(rows[: namespace.limit]))
        if len(rows) > namespace.limit:
            _write(f"… and {len(rows) - namespace.limit} older ones (--limit shows more)")
    else:
        _write("No session is saved yet. `agent-tui demo` makes one without a key.")
    return 0


def show(store: SessionStore, namespace: argparse.Namespace) -> int:
    """What is known of one session."""
    from tui_agent.cli.session_rows import as_facts, as_json
    from tui_agent.sessions.summary import summarise

    folder = store.find(namespace.session)
    row, _ = summarise(folder)
    _write(*([as_json(row)] if namespace.json else as_facts(row, folder)))
    return 0


def export(store: SessionStore, namespace: argparse.Namespace) -> int:
    """One session in another form, on standard output or in a file."""
    from tui_agent.sessions.export import export_session

    text = export_session(store.find(namespace.session), namespace.format)
    if namespace.to is None:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        return 0
    target = Path(namespace.to).expanduser()
    if target.exists() and not namespace.force:
        raise UsageError(
            f"agent-tui sessions export: {target} exists already.\nName another file, or add --force."
        )
    target.write_text(text, encoding="utf-8", errors="surrogatepass")
    _write(str(target))
    return 0


def import_recordings(store: SessionStore, namespace: argparse.Namespace) -> int:
    """Recordings kept as sessions; those that cannot be read are told and left out."""
    from tui_agent.sessions.importers.load import find_transcripts, save
    from tui_agent.sessions.visible import visible

    failed = made = 0
    for path in find_transcripts([Path(text).expanduser() for text in namespace.paths]):
        saved = save(path, store.sessions_dir, namespace.policy)
        if saved.error is not None:
            failed += 1
            sys.stderr.write(f"agent-tui: {saved.error}\n")
            continue
        made += len(saved.sessions) - saved.present
        already = f" ({saved.present} imported before)" if saved.present else ""
        _write(f"{visible(str(path))}: {', '.join(saved.sessions)}{already}")
        if saved.report is not None:
            _write(f"  {saved.report.summary()}")
    store.refresh()
    if not failed and not made:
        sys.stderr.write("agent-tui: nothing new was found there.\n")
    return 2 if failed and not made else 0


def fork_session(store: SessionStore, namespace: argparse.Namespace) -> int:
    """Another session from an event of one; its id on standard output."""
    import asyncio
    import time

    from tui_agent.cli.saved import saved_session
    from tui_agent.sessions.fork import WhatIf, fork
    from tui_agent.sessions.redaction import Redactor
    from tui_agent.sessions.session import new_session_id
    from tui_agent.sessions.upkeep import adopt_checkpoints

    now = time.time()
    folder = fork(
        saved_session(store.state_dir, namespace.session),
        store.sessions_dir,
        new_session_id(now),
        at=now,
        seq=namespace.at,
        what_if=WhatIf(namespace.policy, namespace.model, namespace.answer, namespace.note),
        redactor=Redactor.from_environment(os.environ),
    )
    asyncio.run(adopt_checkpoints(folder))
    _write(folder.name)
    sys.stderr.write(f"agent-tui resume {folder.name} goes on from there; the first session is as it was.\n")
    return 0


def rename(store: SessionStore, namespace: argparse.Namespace) -> int:
    """A title, written into the journal."""
    import asyncio
    import time

    from tui_agent.sessions.redaction import Redactor

    if not namespace.title.strip():
        raise UsageError("agent-tui sessions rename: the title is empty.\nGive it one, in quotes.")
    folder = store.find(namespace.session)
    redactor = Redactor.from_environment(os.environ)
    asyncio.run(store.rename(folder.name, namespace.title, time.time(), redactor))
    _write(f"{folder.name} is now called {namespace.title.strip()!r}")
    return 0


def search(store: SessionStore, namespace: argparse.Namespace) -> int:
    """Places that hold all of the words; exit code 1 where there is none, as grep has it."""
    from tui_agent.console.sanitize import one_line

    store.refresh()
    hits = store.search(" ".join(namespace.words), namespace.limit)
    _write(
        *(
            f"{hit.session_id}  event {hit.seq:>5}  {hit.role:<8}  {one_line(hit.snippet, 120)}"
            for hit in hits
        )
    )
    if not hits:
        sys.stderr.write("agent-tui: no session says that.\n")
    return 0 if hits else 1


def delete(store: SessionStore, namespace: argparse.Namespace) -> int:
    """Some sessions to the trash."""
    import time

    folders = [store.find(name) for name in namespace.sessions]
    for folder in dict.fromkeys(folders):
        store.delete(folder.name, time.time())
        _write(f"{folder.name} lies in the trash; `agent-tui sessions restore {folder.name}` brings it back")
    return 0


def restore(store: SessionStore, namespace: argparse.Namespace) -> int:
    """One back from the trash."""
    _write(f"{store.restore(namespace.session).name} is back")
    return 0


def trash(store: SessionStore, namespace: argparse.Namespace) -> int:
    """What lies in the trash, or its end."""
    import asyncio
    import time

    from tui_agent.cli.session_rows import as_table
    from tui_agent.sessions.upkeep import empty_trash

    if namespace.empty:
        removed = asyncio.run(empty_trash(store, time.time() + 1))
        _write(f"{len(removed)} removed for good")
        return 0
    rows = store.trash()
    _write(*(as_table(rows) if rows else ["The trash is empty."]))
    return 0
