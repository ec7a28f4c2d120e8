"""`agent-tui sessions`: saved sessions listed, shown, searched, exported, imported, named, deleted and brought back.

Each verb has a parser of its own; what it does stands in `session_verbs`, which is imported when a verb is done: every
single word that could be meant for a command is looked for among the verbs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tui_agent.cli.options import Parser, add_place_options, count, one_of, overrides, take_verb
from tui_agent.core.names import POLICIES
from tui_agent.formats.exporters import FORMATS

_EXAMPLE = """
agent-tui sessions
agent-tui sessions show 20260102-101112
agent-tui sessions export 20260102-101112 --format html --to session.html
agent-tui sessions import ~/runs
agent-tui sessions delete 20260102-101112"""


class Verb(NamedTuple):
    """One thing to do with sessions: what it is for, an example, its arguments. Its work stands in `session_verbs`."""

    purpose: str
    example: str
    arguments: Callable[[Parser], None]


def parser() -> Parser:
    """Options of `sessions` without a verb, and the list of verbs."""
    width = max(map(len, VERBS))
    verbs = "\n".join(f"  {name:<{width}}  {verb.purpose}" for name, verb in VERBS.items())
    made = Parser(
        "sessions",
        f"List, read, export, fork and delete saved sessions. Without a verb: list them.\n\nverbs:\n{verbs}",
        _EXAMPLE,
        usage="agent-tui sessions [VERB] …",
    )
    _list_arguments(made)
    add_place_options(made)
    return made


def main(arguments: Sequence[str]) -> int:
    """Do one verb; its exit code."""
    words = list(arguments)
    verb_name = take_verb(words, VERBS, "sessions", "`agent-tui sessions --help` explains them.")
    namespace = (_parser_of(verb_name) if verb_name else parser()).parse(words)
    from tui_agent.cli.session_verbs import WORK
    from tui_agent.config.settings import load_settings
    from tui_agent.store.session_store import SessionStore

    settings = load_settings(overrides(namespace, "state_dir"), namespace.config)
    return WORK[verb_name or "list"](SessionStore(settings.state_dir), namespace)


def _parser_of(name: str) -> Parser:
    verb = VERBS[name]
    made = Parser(f"sessions {name}", verb.purpose[0].upper() + verb.purpose[1:] + ".", verb.example)
    verb.arguments(made)
    add_place_options(made)
    return made


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


def _audit_arguments(made: Parser) -> None:
    made.add_argument("session", nargs="?", metavar="SESSION", help="default: the newest session")
    made.add_argument("--json", action="store_true", help="one JSON object a line, for programs")


def _export_arguments(made: Parser) -> None:
    _one_session(made)
    made.add_argument(
        "--format", type=one_of(FORMATS), default="markdown", metavar="FORM", help=" · ".join(FORMATS)
    )
    made.add_argument("--to", metavar="FILE", help="default: standard output; an existing file is left alone")
    made.add_argument("--force", action="store_true", help="overwrite an existing file")


def _import_arguments(made: Parser) -> None:
    made.add_argument("paths", nargs="+", metavar="FILE|DIR", help="recordings, or folders of them")
    made.add_argument(
        "--policy", type=one_of(POLICIES), metavar="NAME", help="judge them by this one (combined)"
    )


def _fork_arguments(made: Parser) -> None:
    made.add_argument(
        "session", metavar="SESSION|FILE", help="an id, the beginning of one, a title, or a journal"
    )
    made.add_argument("--at", type=count, metavar="N", help="after event N (default: the last)")
    made.add_argument("--policy", type=one_of(POLICIES), metavar="NAME", help="with another policy")
    made.add_argument("--model", metavar="NAME", help="with another model")
    made.add_argument("--answer", metavar="TEXT", help="another answer to the question that is open there")
    made.add_argument("--note", metavar="TEXT", help='another recovery note for the next call ("": none)')
    made.add_argument(
        "--files", action="store_true", help="bring the workspace's files back to how they were then"
    )


def _rename_arguments(made: Parser) -> None:
    _one_session(made)
    made.add_argument("title", metavar="TITLE", help="its name from now on, in quotes")


def _search_arguments(made: Parser) -> None:
    made.add_argument("words", nargs="+", metavar="WORD", help="all of them must occur")
    made.add_argument("--limit", type=count, metavar="N", default=20, help="how many places (default 20)")


def _delete_arguments(made: Parser) -> None:
    made.add_argument("sessions", nargs="+", metavar="SESSION", help="ids, or their first characters")


def _trash_arguments(made: Parser) -> None:
    made.add_argument("--empty", action="store_true", help="remove for good what is there")


VERBS: dict[str, Verb] = {
    "list": Verb(
        "list sessions, the newest first",
        "agent-tui sessions list --in .",
        _list_arguments,
    ),
    "show": Verb(
        "show what is known of one",
        "agent-tui sessions show 20260102-101112",
        _show_arguments,
    ),
    "audit": Verb(
        "list what one did: files with hashes, commands, hosts, and what allowed each",
        "agent-tui sessions audit 20260102-101112 --json",
        _audit_arguments,
    ),
    "search": Verb(
        "find words in all conversations",
        "agent-tui sessions search circuit breaker",
        _search_arguments,
    ),
    "export": Verb(
        "write one as Markdown, HTML, JSON, messages or text",
        "agent-tui sessions export 20260102-101112 --format html --to session.html",
        _export_arguments,
    ),
    "import": Verb(
        "keep recordings of other agents (or exported sessions) as sessions",
        "agent-tui sessions import ~/.claude/projects run.traj",
        _import_arguments,
    ),
    "fork": Verb(
        "begin a new one at an event of another, with another answer, note, model or policy",
        "agent-tui sessions fork 20260102-101112 --at 120 --answer 'the file is src/cart.py'",
        _fork_arguments,
    ),
    "rename": Verb(
        "give one a title",
        'agent-tui sessions rename 20260102-101112 "the flaky test"',
        _rename_arguments,
    ),
    "delete": Verb(
        "move some to the trash",
        "agent-tui sessions delete 20260102-101112",
        _delete_arguments,
    ),
    "restore": Verb(
        "bring one back from the trash",
        "agent-tui sessions restore 20260102-101112-ab12cd34",
        _one_session,
    ),
    "trash": Verb(
        "list what was deleted, or remove it for good",
        "agent-tui sessions trash --empty",
        _trash_arguments,
    ),
}
