"""The commands that a rule is about: one that allows covers a command as strictly as its words say, one that narrows
whatever resembles it, however it is written. Which rule decides on a call is said in `judge`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from tui_agent.core.names import Decision
from tui_agent.core.tool_facts import COMMAND_TOOL
from tui_agent.permissions.commands import SimpleCommand, Word
from tui_agent.permissions.programs import (
    Program,
    becomes_no_option,
    changes_the_shell,
    known_program,
    runs_its_input,
    sets_harmlessly,
    stays_inside,
    tables,
)
from tui_agent.permissions.risky import risky_words
from tui_agent.permissions.rules import PermissionRule, host_of, literal_pattern, word_matches, words_match
from tui_agent.shell_programs import GIT_OPTIONS, base_name, behind_options

MOST_SUGGESTED = 1_000
"""Words of a command that somebody reads and wants again."""


def covers(rule: PermissionRule, command: SimpleCommand, inside: Callable[[Word], bool]) -> bool:
    """Tell if an allowing rule covers this command, as strictly as its words do. `inside`: of an argument, whether it
    leads nowhere out of the workspace.
    """
    patterns = list(rule.words)
    assignments = list(command.assignments)
    while patterns and assignments and re.match(r"[A-Za-z_]\w*=", patterns[0]):
        if not word_matches(patterns.pop(0), assignments.pop(0)):
            return False
    if not all(sets_harmlessly(one, for_programs=True) for one in assignments):
        return False
    if not command.words or command.words[0].kind != "literal":
        return False
    known = _known(patterns, command)
    risky = risky_words(command) if known is None else ()
    left_out = {id(command.words[place]) for place in risky}

    def covered(word: Word) -> bool:
        if id(word) in left_out:
            return False
        if known is None:
            host = word.kind == "literal" and bool(host_of(word.text))
            return (stays_inside(word) and inside(word)) or host
        plain = known[1].options is None or becomes_no_option(word)
        return plain and stays_inside(word) and known[1].takes(word.text) and inside(word)

    def same(pattern: str, word: Word) -> bool:
        if word.kind == "unknown" or not word_matches(pattern, word.text):
            return False
        if pattern == literal_glob(word):
            return True
        outside = word.kind == "literal" and re.search(r"(?:^|/)\.\.(?:/|$)", word.text) is not None
        return not outside and (word is command.words[0] or pattern.startswith(("/", "~")) or inside(word))

    return words_match(patterns, command.words, covered, same)


def _known(patterns: Sequence[str], command: SimpleCommand) -> tuple[str, Program] | None:
    """Look the program up, unless the rule is about the interpreter itself, as somebody wrote by hand."""
    known = known_program(command.words)
    if known is None or known[0] in tables().rules or patterns[: known[0].count(" ") + 1] == known[0].split():
        return known
    return None


def literal_glob(word: Word) -> str:
    """Make the glob that means this word and no other."""
    return re.sub(r"([*?\[])", r"[\1]", word.text)


_LONG_FORMS = {"--recursive": "r", "--force": "f", "--all": "a"}


def resembles(rule: PermissionRule, command: SimpleCommand) -> str:
    """Tell if a rule that narrows is about this command, however it is written: yes, perhaps, or "".

    A program counts in any folder, options in any order, joined or apart; options that the rule does not name
    make no difference.
    """
    patterns = list(rule.words)
    if not patterns or rule.pattern is None or rule.pattern.startswith("="):
        return ""
    while patterns and command.assignments and re.match(r"[A-Za-z_]\w*=", patterns[0]):
        if not any(word_matches(patterns[0], one) for one in command.assignments):
            return ""
        patterns.pop(0)
    words = _without_globals(command.words)
    wanted, plain = _options([Word(pattern) for pattern in patterns])
    given, rest = _options(words)
    if not wanted <= given:
        return ""
    uncertain = any(word.kind == "unknown" for word in rest)
    if rest and rest[0].kind == "literal" and plain and "/" not in plain[0].text:
        rest = [Word(base_name(rest[0].text)), *rest[1:]]
    fits = words_match(
        [word.text for word in plain],
        rest,
        lambda _: True,
        lambda pattern, word: word.kind != "unknown" and word_matches(pattern, word.text),
    )
    if fits:
        return "yes"
    could = uncertain and words_match(
        [word.text for word in plain],
        rest,
        lambda _: True,
        lambda pattern, word: word.kind == "unknown" or word_matches(pattern, word.text),
    )
    return "perhaps" if could else ""


def _options(words: Sequence[Word]) -> tuple[set[str], list[Word]]:
    """Split a command into its options, joined ones taken apart, and its other words."""
    options: set[str] = set()
    rest: list[Word] = []
    for place, word in enumerate(words):
        text = word.text
        if text == "--":
            return options, [*rest, *words[place + 1 :]]
        if word.kind == "unknown" or not re.match(r"--?\w", text) or place == 0:
            rest.append(word)
        elif text.startswith("--"):
            options |= {text.partition("=")[0], _LONG_FORMS.get(text, text)}
        elif len(text) > _LONGEST_JOINED:
            options.add(f"-{text}")
        else:
            options |= set(text[1:].replace("R", "r"))
    if options & set(_LONG_FORMS.values()):
        options -= set(_LONG_FORMS)
    return options, rest


_LONGEST_JOINED = 5
"""Characters of joined one-letter options with their dash; a longer word behind one dash is a name (`-delete`)."""


def _without_globals(words: Sequence[Word]) -> Sequence[Word]:
    """Leave out git's options before its subcommand."""
    if not words or base_name(words[0].text) != "git":
        return words
    behind = behind_options([word.text for word in words[1:]], GIT_OPTIONS)
    return [words[0], *words[len(words) - len(behind) :]]


def suggested_rule(command: SimpleCommand, inside: Callable[[Word], bool]) -> str:
    """Write the rule that would allow this command: as a known program's, or as these words alone."""
    known = known_program(command.words)
    if known is not None and not known[1].changes:
        rule = PermissionRule(Decision.ALLOW, "", "", COMMAND_TOOL, f"{known[0]} *")
        if covers(rule, command, inside):
            return f"{COMMAND_TOOL}({known[0]} *)"
    if any(word.kind != "literal" for word in command.words) or command.assignments or not command.words:
        return ""
    if changes_the_shell(command) or runs_its_input(command):
        return ""
    return f"{COMMAND_TOOL}({literal_pattern(command.words)})"
