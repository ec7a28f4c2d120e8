"""One book: failures by their signs, the repairs that were tried, their counts, and what may be said of them.

Pure: time comes in as a value. Counts fade with a half-life, so that old repairs give way to newer ones. A
repair is offered if the lower bound of its success rate lies above the rate at which such failures were
recovered in the next step without it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, Field

from tui_agent.core.events import Suggestion
from tui_agent.playbook.lessons import FailureSign, Lesson, Try
from tui_agent.playbook.missing import Kind
from tui_agent.playbook.repairs import Form, Repair

HALF_LIFE = 90 * 86_400.0
"""Seconds after which a count is worth half: projects change their tools within months."""
USUAL = 0.16
"""Share of failures that the next step recovers, if nothing is known yet: counted in 250 recorded runs."""
_USUAL_WEIGHT = 2.0
"""Failures that this share counts as."""
FEWEST = 2
"""Times that a repair must have worked; and it must have worked at least as often as not, and twice as often as it
did harm."""
SAID: frozenset[tuple[Kind | Literal[""], Form]] = frozenset({
    ("program", "instead"), ("library", "first"), ("", "first"),
})  # fmt: skip
"""Kinds of what was missing and forms of repair that are said. At least four in five suggestions were right in recorded
runs that were left out, and with their whole project left out, on each set that had any; an error that names nothing
stands on cases of the benchmark. All others are counted and listed, and held back."""
VERSION = 2
"""Of the keys. Those of version 1 named a call and its error's line; their entries are left out."""
_Z = 1.96
"""Of an interval of 95 %."""
MOST_ENTRIES, MOST_REPAIRS, MOST_SOURCES = 500, 6, 2_000

Text = Annotated[str, Field(max_length=400)]
Amount = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]


class Counted(BaseModel, extra="forbid"):
    """A repair with its counts."""

    form: Form
    name: Text
    example: Text = ""
    tried: Amount = 0.0
    worked: Amount = 0.0
    harmed: Amount = 0.0
    """Times that it was named by the playbook, tried, and did not work."""
    words: Text = ""
    """The operator's own, said in place of it whatever the counts are."""

    @property
    def failed(self) -> float:
        return self.tried - self.worked

    @property
    def interval(self) -> tuple[float, float]:
        """Between which shares it works, with 95 % certainty (Wilson)."""
        return wilson(self.worked, self.tried)


class PlaybookEntry(BaseModel, extra="forbid"):
    """One failure. `seen`: times without a word of the playbook; `at_once`: of them, recovered by the next step."""

    exact: Text
    shape: Text = ""
    about: Text = ""
    error: Text = ""
    kind: Kind | Literal[""] = ""
    """Of what was missing."""
    seen: Amount = 0.0
    at_once: Amount = 0.0
    at: Annotated[float, Field(ge=0, le=1e11, allow_inf_nan=False)] = 0.0
    """When it was counted last, in seconds since the epoch."""
    repairs: Annotated[list[Counted], Field(max_length=MOST_REPAIRS)] = []

    def id_of(self, repair: Counted) -> str:
        """Short, and the same in every process."""
        text = f"{self.exact}|{repair.form}|{repair.name}"
        return blake2b(text.encode("utf-8", "replace"), digest_size=3).hexdigest()

    @property
    def base(self) -> float:
        """Share of such failures that the next step recovers, as far as it is known."""
        return (self.at_once + USUAL * _USUAL_WEIGHT) / (self.seen + _USUAL_WEIGHT)

    def faded(self, now: float) -> PlaybookEntry:
        """The entry with its counts as they are worth now."""
        share = 0.5 ** (max(0.0, now - self.at) / HALF_LIFE)
        repairs = [
            one.model_copy(
                update={
                    "tried": one.tried * share,
                    "worked": one.worked * share,
                    "harmed": one.harmed * share,
                }
            )
            for one in self.repairs
        ]
        changes = {"seen": self.seen * share, "at_once": self.at_once * share, "repairs": repairs}
        return self.model_copy(update={**changes, "at": max(self.at, now)})


class OfferedRepair(NamedTuple):
    """A repair of an entry, and whether the evidence carries it."""

    entry: PlaybookEntry
    repair: Counted
    carries: bool


def wilson(worked: float, tried: float) -> tuple[float, float]:
    """The interval of a share of 95 %; (0, 1) if nothing was tried."""
    if tried <= 0:
        return 0.0, 1.0
    share, square = min(1.0, worked / tried), _Z * _Z
    middle = share + square / (2 * tried)
    spread = _Z * math.sqrt(share * (1 - share) / tried + square / (4 * tried * tried))
    whole = 1 + square / tried
    return max(0.0, (middle - spread) / whole), min(1.0, (middle + spread) / whole)


def carries(entry: PlaybookEntry, repair: Counted) -> bool:
    """True if the repair may be named to a model."""
    return bool(repair.words) or ((entry.kind, repair.form) in SAID and is_evident(entry, repair))


def is_evident(entry: PlaybookEntry, repair: Counted) -> bool:
    """True if there is enough evidence that the repair makes the failure go away."""
    # A failure that went by without the repair speaks against it too.
    failures = max(repair.tried, entry.seen)
    if repair.worked < max(FEWEST - 0.5, failures / 2, 2 * repair.harmed):
        return False
    return wilson(repair.worked, failures)[0] > entry.base


class Book(BaseModel, extra="forbid"):
    """The repairs of one level. `sources`: digests of the runs that were learned from, the newest last."""

    version: int = VERSION
    workspace: str = ""
    entries: Annotated[list[PlaybookEntry], Field(max_length=MOST_ENTRIES)] = []
    sources: Annotated[list[Text], Field(max_length=MOST_SOURCES)] = []

    @property
    def current(self) -> Book:
        """The book without entries of older keys but the operator's own words; it may learn from its runs again."""
        if self.version == VERSION:
            return self
        kept = [entry for entry in self.entries if any(one.words for one in entry.repairs)]
        return Book(workspace=self.workspace, entries=kept)

    def learned(self, source: str, lessons: Iterable[Lesson], now: float, *, general: bool) -> Book:
        """The book with these lessons; the same if it knows their source. `general`: it is the user's."""
        if source in self.sources:
            return self
        entries = {entry.exact: entry for entry in self.entries}
        for lesson in lessons:
            sign = lesson.sign
            key = sign.general if general else sign.exact
            if key:
                known = entries.pop(key, None) or _new(sign, lesson, general=general)
                entries[key] = _with(known.faded(now), lesson, general=general)
        # What was counted last stands last; what taught nothing goes first.
        kept = sorted(entries.values(), key=lambda one: bool(one.repairs))[-MOST_ENTRIES:]
        return self.model_copy(update={"entries": kept, "sources": [*self.sources, source][-MOST_SOURCES:]})

    def suggestion(
        self,
        sign: FailureSign,
        now: float,
        *,
        general: bool,
        may: Callable[[PlaybookEntry, Counted], bool] = carries,
    ) -> Suggestion | None:
        """The repair that may be named for a failure; the narrowest level with enough evidence counts."""
        if general:
            entry = next((one for one in self.entries if one.exact == sign.general != ""), None)
            return _said(entry.faded(now), sign, "user", may) if entry is not None else None
        own = [one.faded(now) for one in self.entries if one.exact == sign.exact]
        alike = [one.faded(now) for one in self.entries if one.shape == sign.shape]
        exact = _said(own[0], sign, "workspace", may) if own else None
        return exact or (_said(_pooled(alike), sign, "workspace", may) if alike else None)

    def offered(self, now: float) -> list[OfferedRepair]:
        """Every repair with its entry, those with the most evidence first."""
        faded = [entry.faded(now) for entry in self.entries]
        found = [OfferedRepair(entry, one, carries(entry, one)) for entry in faded for one in entry.repairs]
        return sorted(found, key=lambda one: (not one.carries, -one.repair.worked, one.entry.exact))

    def without(self, wanted: str) -> Book:
        """The book without a repair, by its id; with "all" an empty one, which may learn from the same runs again."""
        if wanted == "all":
            return Book(workspace=self.workspace)
        return self._with_repairs(lambda entry, one: None if entry.id_of(one) == wanted else one)

    def edited(self, wanted: str, words: str) -> Book:
        """The book with the operator's own words for a repair."""
        return self._with_repairs(
            lambda entry, one: one.model_copy(update={"words": words}) if entry.id_of(one) == wanted else one
        )

    def _with_repairs(self, changed: Callable[[PlaybookEntry, Counted], Counted | None]) -> Book:
        entries = []
        for entry in self.entries:
            repairs = [new for one in entry.repairs if (new := changed(entry, one)) is not None]
            entries.append(entry.model_copy(update={"repairs": repairs}))
        return self.model_copy(update={"entries": entries})


def _new(sign: FailureSign, lesson: Lesson, *, general: bool) -> PlaybookEntry:
    if general:
        return PlaybookEntry(exact=sign.general, about=sign.about, kind=sign.kind)
    return PlaybookEntry(
        exact=sign.exact, shape=sign.shape, about=sign.about, error=lesson.error, kind=sign.kind
    )


def _with(entry: PlaybookEntry, lesson: Lesson, *, general: bool) -> PlaybookEntry:
    repairs = {(one.form, one.name): one for one in entry.repairs}
    for tried in lesson.tries:
        repair = tried.repair
        if general and not repair.general:
            continue
        key = (repair.form, repair.name)
        old = repairs.pop(key, None) or Counted(form=repair.form, name=repair.name)
        repairs[key] = _counted(old, tried, general=general)
    kept = sorted(repairs.values(), key=lambda one: (bool(one.words), one.worked))[-MOST_REPAIRS:]
    seen, at_once = (0, 0) if lesson.told else (1, int(lesson.at_once))
    changes = {"seen": entry.seen + seen, "at_once": entry.at_once + at_once, "repairs": kept}
    return entry.model_copy(update=changes)


def _counted(old: Counted, tried: Try, *, general: bool) -> Counted:
    newest: Repair = tried.repair
    example = newest.example if tried.worked and not general else ""
    return old.model_copy(
        update={
            "tried": old.tried + 1,
            "worked": old.worked + tried.worked,
            "harmed": old.harmed + (tried.told and not tried.worked),
            "example": example or old.example,
        }
    )


def _pooled(entries: list[PlaybookEntry]) -> PlaybookEntry:
    """The evidence on all failures of one shape; the example of one would mislead about another."""
    repairs: dict[tuple[Form, str], Counted] = {}
    for entry in entries:
        for one in entry.repairs:
            old = repairs.get((one.form, one.name), Counted(form=one.form, name=one.name))
            sums = {name: getattr(old, name) + getattr(one, name) for name in ("tried", "worked", "harmed")}
            repairs[one.form, one.name] = old.model_copy(update=sums)
    return entries[0].model_copy(
        update={
            "exact": entries[0].shape,
            "seen": sum(entry.seen for entry in entries),
            "at_once": sum(entry.at_once for entry in entries),
            "repairs": list(repairs.values()),
        }
    )


def _said(
    entry: PlaybookEntry, sign: FailureSign, level: str, may: Callable[[PlaybookEntry, Counted], bool]
) -> Suggestion | None:
    """The best repair of an entry that may be named, and that is not what has just failed."""
    fitting = [one for one in entry.repairs if one.name != sign.about and may(entry, one)]
    best = max(fitting, key=lambda one: (bool(one.words), one.interval[0]), default=None)
    if best is None:
        return None
    return Suggestion.model_validate({
        "id": entry.id_of(best),
        "level": level,
        "form": "words" if best.words else best.form,
        "repair": best.words or best.name,
        "example": best.example,
        "worked": round(best.worked),
        "tried": round(best.tried),
        "base": round(entry.base, 2),
    })  # fmt: skip
