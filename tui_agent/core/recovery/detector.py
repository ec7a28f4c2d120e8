"""The one interface of all detectors, and what they are given: a step, an answer, and how the run stands.

A detector is a frozen value that counts for itself and shares no counter with another. `detectors` lists them; nothing
here knows one of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, Self, TypeVar

from tui_agent.core import events
from tui_agent.core.recovery.changes import Changes
from tui_agent.core.recovery.iteration import Iteration
from tui_agent.core.recovery.parameters import Parameters
from tui_agent.core.recovery.verdict import silent
from tui_agent.core.tool_facts import OfTool

P = TypeVar("P", bound=Parameters)
D = TypeVar("D", bound="Detector[Any]")


class Beginning(NamedTuple, Generic[P]):
    """The start of a run."""

    event: events.RunStarted
    policy: P


class Step(NamedTuple, Generic[P]):
    """The results of an iteration, once all its calls have ended.

    `changes` are those of the workspace, the iteration's own included. For each of its results in turn `marks` has the
    number of the last change before it, and `changed` is true if it changed something.
    """

    iteration: Iteration
    policy: P
    reply: events.ReplyFinished | None = None
    tools: tuple[str, ...] = ()
    """Tools of the run."""
    changes: Changes = Changes()
    marks: Sequence[int] = ()
    changed: Sequence[bool] = ()
    any_change: bool = False
    """Something changed, by whomever."""
    wanted: int = 0
    """How often the operator's words want the same call; 0: they do not say."""
    shown: bool = True
    """Counters that the policy does not use go on too, to be seen."""


class Answer(NamedTuple, Generic[P]):
    """The operator's answer to a question, or that of the policy when nobody can be asked."""

    event: events.EscalationAnswered
    raised: events.EscalationRaised | None
    """The question; None if it is not known."""
    policy: P

    @property
    def informs(self) -> bool:
        """The operator gave it: what was counted so far may not hold any more."""
        return self.event.by == "operator"


class Standing(NamedTuple, Generic[P]):
    """How the run stands when detectors are asked for their verdicts."""

    policy: P
    operator_present: bool
    goes_on: bool
    """Nobody can be asked, and what would be asked about is guided, withheld or done in another way."""
    detectors: tuple[Detector[Any], ...] = ()

    def of(self, kind: type[D]) -> D:
        """The state of another detector. Raises `StopIteration` if the run has none of this kind."""
        return next(one for one in self.detectors if type(one) is kind)


class Subject(OfTool, Protocol):
    """The call that a verdict is about."""

    @property
    def key(self) -> str: ...

    @property
    def input(self) -> Mapping[str, Any]: ...


class Account(NamedTuple):
    """A detector's count in words; `call` is the call that was counted, if it was one."""

    words: str = ""
    call: Subject | None = None


class Detector(ABC, Generic[P]):
    """A detector's state. A subclass is a frozen dataclass whose fields all have defaults.

    Whatever a method does not concern it returns unchanged, as the same object.
    """

    name: ClassVar[str]
    """The subject of its rules: `ring` in `ring.stop`."""
    parameters: ClassVar[type[Parameters]] = Parameters
    """The class of `P`: the parameters of its own, which become keys of `[recovery]`."""
    off: ClassVar[Mapping[str, Any]]
    """Parameters with the values that leave it out, and whatever builds on it: in presets that do not have it, and in
    the benchmark's `without-…`."""
    hears: ClassVar[Mapping[type[events.Event], Callable[[Any, Any, Any], Any]]] = {}
    """Other events that it counts, each with what is done: `(self, event, policy) -> Self`."""
    judges_faults: ClassVar[bool] = False
    """It has a verdict on failed model calls, too."""
    silent: ClassVar[events.VerdictRecord]
    """Its verdict when it has nothing to say."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.silent = silent(cls.name)

    @classmethod
    def has_a_say(cls, policy: P) -> bool:
        """Tell if its verdict counts under this policy."""
        return any(getattr(policy, key) != value for key, value in cls.off.items())

    @classmethod
    def rungs(cls, policy: P) -> frozenset[str]:
        """Consequences of failing calls by its word: levels, and `withhold` for a call that is not run again."""
        return frozenset()

    def next_run(self, run: Beginning[P]) -> Self:
        """The state that a new run begins with."""
        return type(self)()

    def apply(self, step: Step[P]) -> Self:
        """Count a finished iteration."""
        return self

    def answered(self, answer: Answer[P]) -> Self:
        """Take in the answer to a question about failures."""
        return self

    def afresh(self) -> Self:
        """Begin to count anew, since the work does; what was tried stays known."""
        return self

    def disturbed(self) -> Self:
        """Take in that something came from outside of the steps: a change by others, or the operator's words."""
        return self

    @abstractmethod
    def verdict(self, standing: Standing[P]) -> events.VerdictRecord:
        """Judge by what the last iteration brought."""

    def subject(self, standing: Standing[P]) -> Subject | None:
        """The call that the verdict is about, if it is about one."""
        return None

    def account(self, standing: Standing[P], key: str, tool: str) -> Account:
        """Say what it has counted, for a reader: of the call with this key and tool, if one is asked about."""
        return Account()
