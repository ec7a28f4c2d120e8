"""An agent's command that does one task without a person, and the command that goes on with what it left.

What the options of each agent are stands in its own file; a command line is read as the agent reads it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

_END = 16
"""Lines of the output in which a fault stands that ended it."""


def names_a_session(text: str) -> bool:
    """Tell if a text can be the name of a session: an agent's model may have written it."""
    return re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,199}", text) is not None


def words(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


@dataclass(frozen=True)
class Headless:
    """How the agent is run. All options that are in none of the lists have one value."""

    resume: Callable[[str, str], list[str]]
    """The words that go on with a session by a prompt; the session is "" for the newest one."""
    switches: frozenset[str]
    """Options without a value."""
    several: frozenset[str] = frozenset()
    """Options whose values go on until the next option."""
    prompt: frozenset[str] = frozenset()
    """Options whose value is the prompt; they may stand without one."""
    session: frozenset[str] = frozenset()
    """Options that choose the session."""
    command: str = ""
    """The subcommand that runs a task; "" for none."""
    fault: str = r"(?i)\berror: (?P<words>.*)"
    """A line of its output about a failed call of its model (a regular expression)."""
    hides_faults: bool = False
    """It ends well after a fault too."""
    forgets_empty: bool = False
    """It cannot go on with a session in which its model has not replied."""
    names_session: str = ""
    """A line of its output with the session's name."""
    window: Callable[[str, float], float | None] | None = None
    """The percent of its window of use that are used up, by a session's file and the time; None if nothing says so."""

    def goes_on(self, command: Sequence[str], program: int, session: str, prompt: str) -> list[str]:
        """The command that goes on with what `command` left. `program`: the place of the agent's program in it. What
        cannot be the name of a session, as an option, is none: the newest session is taken.
        """
        session = session if names_a_session(session) else ""
        kept = [*command[: program + 1], *self._options(command[program + 1 :])]
        return [*kept, *self.resume(session, prompt)]

    def chooses_session(self, arguments: Sequence[str]) -> bool:
        """True if the arguments go on with a session."""
        return any(word.partition("=")[0] in self.session for word in arguments)

    def said_of_fault(self, output: str) -> str:
        """The fault of the model that the end of the output names; "" for none."""
        end = "\n".join(output.rstrip().splitlines()[-_END:])
        found = [*re.finditer(self.fault, end, re.MULTILINE)]
        return found[-1]["words"] if found else ""

    def session_in(self, output: str) -> str:
        """The name of the session, if the output has it."""
        found = re.search(self.names_session, output, re.MULTILINE) if self.names_session else None
        return found["session"] if found else ""

    def _options(self, arguments: Sequence[str]) -> Iterator[str]:
        """The arguments but for the prompt and the choice of a session."""
        place, command = 0, self.command
        while place < len(arguments):
            begin, word = place, arguments[place]
            place += 1
            if not word.startswith("-") or word == "-":
                if word == command:
                    yield word
                    command = ""
                continue
            name = word.partition("=")[0]
            if name == word and name not in self.switches:
                place += self._values(name, arguments[place:])
            if name not in self.prompt | self.session:
                yield from arguments[begin:place]

    def _values(self, option: str, following: Sequence[str]) -> int:
        """How many of the arguments that follow an option are its values."""
        if option not in self.prompt | self.several | self.session:
            return min(1, len(following))
        found = len(list(takewhile(lambda word: not word.startswith("-"), following)))
        return found if option in self.several else min(1, found)
