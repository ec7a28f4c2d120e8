"""The verbs of `agent-tui sessions`: they call the store, the exporters and the importers, and print."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from pathlib import Path

from tui_agent.cli.errors import UsageError
from tui_agent.cli.session_rows import as_facts, as_json, as_table
from tui_agent.disk import replace_whole, user_path
from tui_agent.formats.exporters import export_session
from tui_agent.formats.importers.load import find_transcripts, save
from tui_agent.session.fork import ForkChoice
from tui_agent.session.fork import fork_session as fork
from tui_agent.session.forked_journal import WhatIf
from tui_agent.store.audit import effects_of, in_words
from tui_agent.store.journal import read_journal
from tui_agent.store.redaction import Redactor
from tui_agent.store.retention import empty_trash
from tui_agent.store.session_store import SessionStore
from tui_agent.store.summary import summarise
from tui_agent.terminal_text import one_line, visible


def _write(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))


def list_sessions(store: SessionStore, namespace: argparse.Namespace) -> int:
    """The list, the newest first."""
    store.refresh()
    inside = None if namespace.inside is None else Path(namespace.inside).resolve()
    rows = [row for row in store.rows(inside) if row.is_worth_listing]
    if namespace.json:
        _write(*(as_json(row) for row in rows[: namespace.limit]))
    elif rows:
        _write(*as_table(rows[: namespace.limit]))
        if len(rows) > namespace.limit:
            _write(f"… and {len(rows) - namespace.limit} older (--limit shows more)")
    else:
        _write("No session is saved yet. `agent-tui demo` makes one without a key.")
    return 0


def show(store: SessionStore, namespace: argparse.Namespace) -> int:
    """Print the facts of one session."""
    folder = store.find(namespace.session)
    row, _ = summarise(folder)
    _write(*([as_json(row)] if namespace.json else as_facts(row, folder)))
    return 0


def audit(store: SessionStore, namespace: argparse.Namespace) -> int:
    """Every effect of one session, in the order of their happening."""
    effects = effects_of(read_journal(store.resolve(namespace.session)).events)
    if namespace.json:
        _write(*(json.dumps(effect, ensure_ascii=True) for effect in effects))
    else:
        _write(*in_words(effects))
    return 0


def export(store: SessionStore, namespace: argparse.Namespace) -> int:
    """Export one session to standard output or to a file."""
    text = export_session(store.find(namespace.session), namespace.format)
    if namespace.to is None:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        return 0
    target = user_path(namespace.to).resolve()
    if target.exists() and not namespace.force:
        raise UsageError(
            f"agent-tui sessions export: {target} exists already.\nName another file, or add --force."
        )
    if target.is_file() or not target.exists():
        replace_whole(target, text, mode=0o666)
    else:  # a pipe or a device takes it as it is
        target.write_text(text, encoding="utf-8", errors="replace")
    _write(str(target))
    return 0


def import_recordings(store: SessionStore, namespace: argparse.Namespace) -> int:
    """Recordings kept as sessions; those that cannot be read are named and left out."""
    failed = made = 0
    for path in find_transcripts([user_path(text) for text in namespace.paths]):
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
    """Fork a session at an event; the new id goes to standard output."""
    what_if = WhatIf(namespace.policy, namespace.model, namespace.answer, namespace.note)
    parent = store.resolve(namespace.session)
    choice = ForkChoice(namespace.at, what_if, namespace.files)
    folder = asyncio.run(fork(parent, store.sessions_dir, choice))
    _write(folder.name)
    sys.stderr.write(f"agent-tui resume {folder.name} goes on from there; the first session is as it was.\n")
    return 0


def rename(store: SessionStore, namespace: argparse.Namespace) -> int:
    """Write a new title into the journal."""
    if not namespace.title.strip():
        raise UsageError("agent-tui sessions rename: the title is empty.\nGive it one, in quotes.")
    folder = store.find(namespace.session)
    redactor = Redactor.from_environment(os.environ)
    asyncio.run(store.rename(folder.name, namespace.title, time.time(), redactor))
    _write(f"{folder.name} is now called {namespace.title.strip()!r}")
    return 0


def search(store: SessionStore, namespace: argparse.Namespace) -> int:
    """Print the places that hold all of the words; exit code 1 if there is none, as with grep."""
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
    """Move sessions to the trash."""
    folders = [store.find(name) for name in namespace.sessions]
    for folder in dict.fromkeys(folders):
        store.delete(folder.name, time.time())
        _write(f"{folder.name} is in the trash; `agent-tui sessions restore {folder.name}` brings it back")
    return 0


def restore(store: SessionStore, namespace: argparse.Namespace) -> int:
    """Bring a session back from the trash."""
    _write(f"{store.restore(namespace.session).name} is back")
    return 0


def trash(store: SessionStore, namespace: argparse.Namespace) -> int:
    """List the trash, or empty it."""
    if namespace.empty:
        removed = asyncio.run(empty_trash(store, time.time() + 1))
        _write(f"{len(removed)} removed for good")
        return 0
    rows = store.trash()
    _write(*(as_table(rows) if rows else ["The trash is empty."]))
    return 0


WORK = {
    "list": list_sessions,
    "show": show,
    "audit": audit,
    "search": search,
    "export": export,
    "import": import_recordings,
    "fork": fork_session,
    "rename": rename,
    "delete": delete,
    "restore": restore,
    "trash": trash,
}
"""The function of each verb of `sessions`."""
