"""`agent-tui sessions`: saved sessions listed, shown, searched, exported, imported, named, deleted and brought back.

One function a verb, each with a parser of its own; the work is the store's, the exporters' and the importers'.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tui_agent.cli.options import Parser, UsageError, add_place_options, count, one_of, overrides
from tui_agent.config_errors import nearest

if TYPE_CHECKING:
    import argparse

    from tui_agent.sessions.store import SessionStore

FORMATS = ("markdown", "html", "json", "messages", "text")
POLICIES = ("forge", "gigi", "funnelcanary", "hpd", "combined")

_EXAMPLE = """
agent-tui sessions
agent-tui sessions show 20260102-101112
agent-tui sessions export 20260102-101112 --format html --to session.html
agent-tui sessions import ~/runs
agent-tui sessions delete 20260102-101112"""


class Verb(NamedTuple):
    """One thing to do with sessions: what it is for, an example, its arguments, its work."""

    purpose: str
    example: str
    arguments: Callable[[Parser], None]
    work: Callable[[SessionStore, argparse.Namespace], int]


def parser() -> Parser:
    """Options of `sessions` without a verb, and the list of verbs."""
    width = max(map(len, VERBS))
    verbs = "\n".join(f"  {name:<{width}}  {verb.purpose}" for name, verb in VERBS.items())
    made = Parser(
        "sessions",
        f"Look after saved sessions. Without a verb: list them.\n\nverbs:\n{verbs}",
        _EXAMPLE,
        usage="agent-tui sessions [VERB] …",
    )
    _list_arguments(made)
    add_place_options(made)
    return made


def main(arguments: Sequence[str]) -> int:
    """Do one verb; its exit code."""
    words = list(arguments)
    verb_name = words.pop(0) if words and not words[0].startswith("-") else ""
    if verb_name and verb_name not in VERBS:
        near = nearest(verb_name, VERBS)
        hint = f"did you mean `agent-tui sessions {near}`?" if near else f"there are {', '.join(VERBS)}."
        raise UsageError(
            f"agent-tui sessions: there is no verb {verb_name!r}; {hint}\n`agent-tui sessions --help` explains them."
        )
    namespace = (_parser_of(verb_name) if verb_name else parser()).parse(words)
    from tui_agent.config import load_settings
    from tui_agent.sessions.store import SessionStore

    settings = load_settings(
        {key: value for key, value in overrides(namespace).items() if key == "state_dir"}, namespace.config
    )
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
    return VERBS[verb_name or "list"].work(SessionStore(settings.state_dir), namespace)


def _parser_of(name: str) -> Parser:
    verb = VERBS[name]
    made = Parser(f"sessions {name}", verb.purpose[0].upper() + verb.purpose[1:] + ".", verb.example)
    verb.arguments(made)
    add_place_options(made)
    return made


def _write(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))


# --- arguments -----------------------------------------------------------------------------------------------


def _list_arguments(made: Parser) -> None:
    made.add_argument(
        "--limit", type=count, metavar="N", default=20, help="how many, the newest first (default 20)"
    )
    made.add_argument("--in", dest="inside", metavar="DIR", help="only those that worked in DIR")
    made.add_argument("--json", action="store_true", help="one JSON object a line, for programs")


def _one_session(made: Parser) -> None:
    made.add_argument("session", metavar="SESSION", help="an id, the beginning of one, or a title")


def _show_arguments(made: Parser) -> None:
    _one_session(made)
    made.add_argument("--json", action="store_true", help="one JSON object, for programs")


def _export_arguments(made: Parser) -> None:
    _one_session(made)
    made.add_argument(
        "--format", type=one_of(FORMATS), default="markdown", metavar="FORM", help=" · ".join(FORMATS)
    )
    made.add_argument("--to", metavar="FILE", help="default: standard output; an existing file is left alone")
    made.add_argument("--force", action="store_true", help="write over an existing file")


def _import_arguments(made: Parser) -> None:
    made.add_argument("paths", nargs="+", metavar="FILE|DIR", help="recordings, or folders of them")
    made.add_argument(
        "--policy", type=one_of(POLICIES), metavar="NAME", help="judge them by this one (combined)"
    )


def _rename_arguments(made: Parser) -> None:
    _one_session(made)
    made.add_argument("title", metavar="TITLE", help="its name from now on, in quotes")


def _search_arguments(made: Parser) -> None:
    made.add_argument("words", nargs="+", metavar="WORD", help="all of them must occur")
    made.add_argument("--limit", type=count, metavar="N", default=20, help="how many places (default 20)")


def _delete_arguments(made: Parser) -> None:
    made.add_argument("sessions", nargs="+", metavar="SESSION", help="ids, or beginnings of them")


def _trash_arguments(made: Parser) -> None:
    made.add_argument("--empty", action="store_true", help="remove for good what lies there")


# --- work ----------------------------------------------------------------------------------------------------


def _list(store: SessionStore, namespace: argparse.Namespace) -> int:
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


def _show(store: SessionStore, namespace: argparse.Namespace) -> int:
    from tui_agent.cli.session_rows import as_facts, as_json
    from tui_agent.sessions.summary import summarise

    folder = store.find(namespace.session)
    row, _ = summarise(folder)
    _write(*([as_json(row)] if namespace.json else as_facts(row, folder)))
    return 0


def _export(store: SessionStore, namespace: argparse.Namespace) -> int:
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


def _import(store: SessionStore, namespace: argparse.Namespace) -> int:
    from tui_agent.sessions.importers.load import find_transcripts, save

    failed = made = 0
    for path in find_transcripts([Path(text).expanduser() for text in namespace.paths]):
        saved = save(path, store.sessions_dir, namespace.policy)
        if saved.error is not None:
            failed += 1
            sys.stderr.write(f"agent-tui: {saved.error}\n")
            continue
        made += len(saved.sessions) - saved.present
        already = f" ({saved.present} imported before)" if saved.present else ""
        _write(f"{path}: {', '.join(saved.sessions)}{already}")
    store.refresh()
    if not failed and not made:
        sys.stderr.write("agent-tui: nothing new was found there.\n")
    return 2 if failed and not made else 0


def _rename(store: SessionStore, namespace: argparse.Namespace) -> int:
    import asyncio
    import time

    from tui_agent.sessions.redaction import Redactor

    if not namespace.title.strip():
        raise UsageError("agent-tui sessions rename: the title is empty.\nGive it one, in quotes.")
    folder = store.find(namespace.session)
    redactor = Redactor.from_environment(_environment())
    asyncio.run(store.rename(folder.name, namespace.title, time.time(), redactor))
    _write(f"{folder.name} is now called {namespace.title.strip()!r}")
    return 0


def _environment() -> dict[str, str]:
    import os

    return dict(os.environ)


def _search(store: SessionStore, namespace: argparse.Namespace) -> int:
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


def _delete(store: SessionStore, namespace: argparse.Namespace) -> int:
    import time

    folders = [store.find(name) for name in namespace.sessions]
    for folder in dict.fromkeys(folders):
        store.delete(folder.name, time.time())
        _write(f"{folder.name} lies in the trash; `agent-tui sessions restore {folder.name}` brings it back")
    return 0


def _restore(store: SessionStore, namespace: argparse.Namespace) -> int:
    _write(f"{store.restore(namespace.session).name} is back")
    return 0


def _trash(store: SessionStore, namespace: argparse.Namespace) -> int:
    import time

    from tui_agent.cli.session_rows import as_table

    if namespace.empty:
        _write(f"{len(store.empty_trash(time.time() + 1))} removed for good")
        return 0
    rows = store.trash()
    _write(*(as_table(rows) if rows else ["The trash is empty."]))
    return 0


VERBS: dict[str, Verb] = {
    "list": Verb("list sessions, the newest first", "agent-tui sessions list --in .", _list_arguments, _list),
    "show": Verb(
        "show what is known of one", "agent-tui sessions show 20260102-101112", _show_arguments, _show
    ),
    "search": Verb(
        "find words in all conversations",
        "agent-tui sessions search circuit breaker",
        _search_arguments,
        _search,
    ),
    "export": Verb(
        "write one as Markdown, HTML, JSON, messages or text",
        "agent-tui sessions export 20260102-101112 --format html --to session.html",
        _export_arguments,
        _export,
    ),
    "import": Verb(
        "keep recordings of other agents (or exported sessions) as sessions",
        "agent-tui sessions import ~/.claude/projects run.traj",
        _import_arguments,
        _import,
    ),
    "rename": Verb(
        "give one a title",
        'agent-tui sessions rename 20260102-101112 "the flaky test"',
        _rename_arguments,
        _rename,
    ),
    "delete": Verb(
        "move some to the trash", "agent-tui sessions delete 20260102-101112", _delete_arguments, _delete
    ),
    "restore": Verb(
        "bring one back from the trash",
        "agent-tui sessions restore 20260102-101112-ab12",
        _one_session,
        _restore,
    ),
    "trash": Verb(
        "list what was deleted, or remove it for good",
        "agent-tui sessions trash --empty",
        _trash_arguments,
        _trash,
    ),
}
