"""`agent-tui playbook`: what helped against failures in earlier runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tui_agent.cli.errors import UsageError
from tui_agent.cli.options import Parser, add_place_options, overrides, take_verb
from tui_agent.config.settings import Settings, load_settings
from tui_agent.formats.importers.load import find_transcripts
from tui_agent.formats.importers.transcript import TranscriptError
from tui_agent.frontend.lines.playbook import EMPTY, KnownRepair, detail, entry_lines, known
from tui_agent.frontend.lines.styled import text_of
from tui_agent.playbook.learning import learn_file
from tui_agent.playbook.store import Playbook
from tui_agent.store.journal import sessions_folder

_EXAMPLE = """
agent-tui playbook
agent-tui playbook show 9a21d3
agent-tui playbook learn                         from all saved sessions
agent-tui playbook learn runs/                   from recorded runs, for this workspace
agent-tui playbook forget 9a21d3
agent-tui playbook edit 9a21d3 "run bin/test from the top folder"
agent-tui playbook export > playbook.json"""

_WIDTH = 100


def parser() -> Parser:
    """Options of `playbook`."""
    made = Parser(
        "playbook",
        "What helped against failures in earlier runs, counted (docs/PLAYBOOK.md).\n\n"
        "list (the default): what is known, in this workspace and in all of them\n"
        "show ID: all that is kept of one\n"
        "learn [FILE|DIR…]: count recorded runs, ours or other agents'; each run counts once\n"
        "forget ID|all: forget one, or everything of this workspace\n"
        "edit ID WORDS: put your own words, which are always said\n"
        "export: both books as JSON",
        _EXAMPLE,
        usage="agent-tui playbook [list | show ID | learn FILE… | forget ID | edit ID WORDS | export] [options]",
    )
    made.add_argument("words", nargs="*", metavar="ID|FILE|WORDS", help="what the verb is about")
    made.add_argument("--workspace", metavar="DIR", help="for this folder (default: here)")
    add_place_options(made)
    return made


def main(arguments: Sequence[str]) -> int:
    """Do one verb; its exit code. Raises `UsageError`."""
    rest = list(arguments)
    verb = take_verb(rest, _VERBS, "playbook") or "list"
    namespace = parser().parse(rest)
    settings = load_settings(overrides(namespace, "workspace", "state_dir"), namespace.config)
    try:
        return _VERBS[verb](settings, Playbook(settings.state_dir, settings.workspace), namespace.words)
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:
        sys.stderr.write(f"agent-tui playbook: {error}\n")
        return 1


def _list(_: Settings, playbook: Playbook, words: Sequence[str]) -> int:
    _needs(words, "list", 0)
    found = _known(playbook)
    for one in found:
        for line in entry_lines(one, _WIDTH):
            sys.stdout.write(f"{text_of(line)}\n")
    if not found:
        sys.stdout.write(f"{EMPTY}\n")
    return 0


def _show(_: Settings, playbook: Playbook, words: Sequence[str]) -> int:
    _needs(words, "show", 1)
    found = [one for one in _known(playbook) if one.id == words[0]]
    if not found:
        raise _unknown(words[0])
    sys.stdout.write("\n".join(detail(one) for one in found))
    return 0


def _learn(settings: Settings, _: Playbook, words: Sequence[str]) -> int:
    places = [Path(word) for word in words] or [sessions_folder(settings.state_dir)]
    missing = [place for place in places if not place.exists()]
    if missing:
        raise UsageError(f"agent-tui playbook learn: {missing[0]} does not exist. Check the name.")
    runs = new = lessons = 0
    failed = False
    for path in find_transcripts(places):
        try:
            learned = learn_file(path, settings.state_dir, settings.workspace)
        except TranscriptError as error:
            failed = True
            sys.stderr.write(f"{error}\n")
            continue
        runs, new, lessons = runs + learned.runs, new + learned.new, lessons + learned.lessons
    sys.stdout.write(f"{runs} runs read, {new} of them new and with failures; {lessons} failures counted.\n")
    return 1 if failed else 0


def _forget(_: Settings, playbook: Playbook, words: Sequence[str]) -> int:
    _needs(words, "forget", 1)
    if not playbook.forget(words[0]):
        raise _unknown(words[0])
    sys.stdout.write("forgotten\n")
    return 0


def _edit(_: Settings, playbook: Playbook, words: Sequence[str]) -> int:
    _needs(words, "edit", 2)
    if not playbook.edit(words[0], words[1]):
        raise _unknown(words[0])
    sys.stdout.write("your words are said from the next such failure on\n")
    return 0


def _export(_: Settings, playbook: Playbook, words: Sequence[str]) -> int:
    _needs(words, "export", 0)
    books = (f'"{level}": {file.book().model_dump_json(indent=1)}' for level, file in playbook.files.items())
    sys.stdout.write("{" + ",\n".join(books) + "}\n")
    return 0


def _known(playbook: Playbook) -> list[KnownRepair]:
    return known(playbook, time.time())


def _needs(words: Sequence[str], verb: str, number: int) -> None:
    if len(words) != number:
        needs = {0: "takes no argument", 1: "needs one id", 2: "needs an id, and the words in quotes"}[number]
        raise UsageError(f"agent-tui playbook {verb} {needs}.")


def _unknown(wanted: str) -> UsageError:
    return UsageError(
        f"agent-tui playbook: there is no {wanted!r}; `agent-tui playbook list` shows what there is."
    )


_VERBS: Mapping[str, Callable[[Settings, Playbook, Sequence[str]], int]] = {
    "list": _list,
    "show": _show,
    "learn": _learn,
    "forget": _forget,
    "edit": _edit,
    "export": _export,
}
