"""Models as small machines: what one does after a failing step is drawn from shares counted in recorded runs.

`behaviours.toml` holds the counted shares (lab/evaluation/behaviours.py writes it). How a model takes notes, refusals
and answers is in no recording; those numbers stand below. For `repeats` they were sampled from a small real model
(docs/lab/notes), all others are assumptions: the benchmark says what follows from them, and not that they are so. A
machine sees nothing but the messages of its requests.
"""

from __future__ import annotations

import json
import random
import re
import tomllib
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from tui_agent.core.events import ToolCall
from tui_agent.lab.bench.case import Call, Case, Step
from tui_agent.lab.bench.clock import Clock
from tui_agent.models.protocol import Delta, ModelRequest, Reply

_SHARES = Path(__file__).with_name("behaviours.toml")
_LONGEST = 3
"""Failing steps in a row that the shares tell apart."""
NOTICES = 7 / 21
"""How often a model sees a silent failure by itself: 7 of the 21 that were judged by hand in docs/lab/IMPLICIT.md."""
_REFUSED = re.compile(r"was not executed|is switched off|was switched off|possible loop was detected")
_UNPROVED = re.compile(r"Your answer says|Run the tests now")
_SUGGESTED = re.compile(r"asked for another approach, suggests: .*?: (\w+) ([^\n]+)")
_BY_A_PERSON = re.compile(r"[Tt]he operator (?:answered|rejected|chose)")
_READ, _WRITTEN = 2_000.0, 40.0
"""Tokens a second that a model reads and writes, and a second more for each call."""


@dataclass(frozen=True)
class Behaviour:
    """Habits (a group of recorded models), and what is assumed on top of them."""

    name: str
    habits: str
    told: float
    """Takes the way that an error, a note or an answer names."""
    noted: float
    """Tries another way because a note asks for one."""
    refused: float
    """Does so because a call was not run."""
    asked: float
    """Does what a person says."""
    named: float | None = None
    """Sends the very call that a note names; None: as often as `told`."""
    derails: float = 0.0
    """Leaves its way for a step because of a note, although nothing failed."""
    more: Mapping[str, float] = field(default_factory=dict)
    """Moves that it makes more often than its group."""

    @property
    def suggested(self) -> float:
        """Sends the call that an adviser names."""
        return self.told if self.named is None else self.named


BEHAVIOURS: Mapping[str, Behaviour] = {
    one.name: one
    for one in (
        Behaviour("adapts-when-hinted", "strong", told=0.9, noted=0.2, refused=0.5, asked=1.0),
        Behaviour("repeats", "weakest", told=0.3, named=0.85, noted=0.18, refused=0.05, asked=0.6),
        Behaviour("adapts-when-asked", "weak", told=0.0, noted=0.0, refused=0.1, asked=1.0),
        Behaviour("alternates", "weak", told=0.5, noted=0.2, refused=0.5, asked=0.8, more={"alternate": 0.5}),
        Behaviour(
            "breaks-form", "middling", told=0.6, noted=0.2, refused=0.5, asked=0.8, more={"form": 0.25}
        ),
        Behaviour("gives-up", "middling", told=0.6, noted=0.2, refused=0.5, asked=0.8, more={"end": 0.25}),
        Behaviour("ignores-notes", "weak", told=0.0, noted=0.0, refused=0.0, asked=0.3),
        Behaviour("overreacts", "middling", told=0.8, noted=0.4, refused=0.5, asked=0.8, derails=0.5),
    )
}
"""By name. `habits` are counted; `named`, `noted` and `refused` of `repeats` are sampled; all other numbers are
assumed.
"""


@cache
def shares() -> Mapping[str, Mapping[str, Mapping[str, float]]]:
    """Shares of moves by group of models and failing steps in a row (`after_1` …)."""
    return tomllib.loads(_SHARES.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class _Heard:
    """New parts of a request: results of calls, the note, and a person's words."""

    results: str
    note: str
    words: str

    @classmethod
    def of(cls, request: ModelRequest) -> _Heard:
        messages = list(request.messages)
        note = str(messages.pop().get("content") or "") if request.ephemeral else ""
        results: list[str] = []
        words: list[str] = []
        for message in reversed(messages):
            if message.get("role") == "assistant":
                break
            text = str(message.get("content") or "")
            said = words if message.get("role") == "user" else results
            said.insert(0, text)
            if said is results and _BY_A_PERSON.search(text):
                words.insert(0, text)
        return cls("\n".join(results), note, "\n".join(words))

    @property
    def suggestion(self) -> Call | None:
        """The call that the adviser names in the note."""
        named = _SUGGESTED.search(self.note)
        return Call(named[1], {}, named[2]) if named else None

    @property
    def refused(self) -> bool:
        return bool(_REFUSED.search(self.results))

    @property
    def failed(self) -> bool:
        return self.refused or self.results.startswith("Error:")


@dataclass(frozen=True)
class _Made:
    """The purpose of the last reply: an attempt at the step itself, a part of its cure, or something else."""

    kind: str
    call: Call | None = None


def clocked(reply: Reply, request: ModelRequest, clock: Clock) -> Reply:
    """The reply with the tokens that it takes; their time passes."""
    read = sum(len(str(message.get("content") or "")) + 80 for message in request.messages) // 4
    written = 20 + (len(reply.text) + sum(len(call.arguments) for call in reply.calls)) // 4
    clock.pass_(1.0 + read / _READ + written / _WRITTEN)
    return reply.model_copy(
        update={"model": request.model, "prompt_tokens": read, "completion_tokens": written}
    )


class Machine:
    """Implements `models.protocol.Model` for one run of a case."""

    def __init__(self, case: Case, behaviour: Behaviour, seed: int, clock: Clock) -> None:
        self._case = case
        self._behaviour = behaviour
        self._unit = f"{seed}|{case.id}|{behaviour.name}"
        self._clock = clock
        self._requests = 0
        self._at = 0
        """The step that is to be done."""
        self._moves = 0
        """Replies in this step."""
        self._row = 0
        """Of them, the newest that led nowhere."""
        self._cured = 0
        """Calls of the step's cure that were made."""
        self._used: dict[str, int] = {}
        self._made = _Made("")
        self._before: Call | None = None
        self._ended = 0
        """Answers that it gave."""
        self._verifies = False
        """An answer was sent back, and what it claims is made sure of."""

    # --- the protocol ------------------------------------------------------------------------------------------

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta | Reply, None]:
        """See `protocol.Model`."""
        self._requests += 1
        yield clocked(self._reply(_Heard.of(request)), request, self._clock)

    async def start(self) -> None:
        """Nothing needs to be started."""

    async def context_tokens(
        self, model: str, api_base: str | None = None, api_key_variable: str | None = None
    ) -> int | None:
        """Large enough for every case."""
        return 120_000

    async def close(self) -> None:
        """Nothing is held."""

    # --- what it does ------------------------------------------------------------------------------------------

    def _reply(self, heard: _Heard) -> Reply:
        self._judge(heard)
        self._moves += 1
        step = self.step
        if step is None:
            return self._last_words(heard)
        if self._made.kind in {"", "done"}:
            if heard.suggestion and self._draw("suggested") < self._behaviour.suggested:
                return self._do(step, heard.suggestion)
            if heard.note and self._draw("derails") < self._behaviour.derails:
                return self._call("look", step.look[0] if step.look else Call("list_dir", {"path": "."}))
            return self._call("try", step.call)
        return self._after_failure(step, heard)

    @property
    def step(self) -> Step | None:
        """Its present step; None: everything is done."""
        steps = (*self._case.steps, *(self._case.verify if self._verifies else ()))
        return steps[self._at] if self._at < len(steps) else None

    def _draw(self, what: str) -> float:
        """A number from 0 to 1 that is the same wherever a run comes to the same point."""
        return random.Random(f"{self._unit}|{self._at}|{self._moves}|{what}").random()

    def _judge(self, heard: _Heard) -> None:
        """Take in the result of the last reply."""
        step, made = self.step, self._made
        if step is None or made.kind not in {"try", "cure", "look", "other", "form", "end"}:
            return
        if made.kind == "cure" and not heard.failed:
            self._cured += 1
        shown = not step.ok or bool(re.search(step.ok, heard.results, re.MULTILINE))
        if made.kind == "try":
            done = not heard.refused and (step.fails or step.silent or (not heard.failed and shown))
            if done and step.silent:
                done = self._draw("notices") >= max(NOTICES, self._heeds(step, heard))
        else:
            done = made.kind == "cure" and not heard.failed and self._cured == len(step.cure)
        if done:
            self._next_step()
        else:
            self._row += made.kind in {"try", "other", "form", "end"}

    def _next_step(self) -> None:
        self._at, self._moves, self._row, self._cured = self._at + 1, 0, 0, 0
        self._used, self._before = {}, None
        self._made = _Made("done")

    def _told(self, step: Step, text: str) -> bool:
        return bool(step.tell and re.search(step.tell, text, re.MULTILINE)) or self._remembered(step, text)

    @staticmethod
    def _remembered(step: Step, text: str) -> bool:
        """True if a text says that the call that works here worked in earlier runs."""
        named = re.findall(r"In earlier runs .*?`([^`]+)`[^`]*(?:`([^`]+)`)?", text)
        own = {word for call in step.cure for word in call.arguments.values() if isinstance(word, str)}
        return any(own.intersection(names) for names in named)

    def _heeds(self, step: Step, heard: _Heard) -> float:
        """How likely what it was told moves it."""
        own = self._behaviour
        return max(
            own.asked * self._told(step, heard.words),
            own.told * self._told(step, heard.note + ("" if step.silent else heard.results)),
            own.noted * (bool(heard.note) and not step.silent),
            own.refused * heard.refused,
        )

    def _after_failure(self, step: Step, heard: _Heard) -> Reply:
        if self._cured and self._cured < len(step.cure):
            return self._call("cure", step.cure[self._cured])
        if step.polls and not heard.refused:
            return self._call("try", step.call)
        if heard.suggestion and self._draw("suggested") < self._behaviour.suggested:
            return self._do(step, heard.suggestion)
        heeds = self._heeds(step, heard)
        knows = self._told(step, heard.words + heard.note + heard.results) or not step.only_told
        if step.silent or (heeds and self._draw("heeds") < heeds):
            before = self._case.steps[self._at - 1].call if self._at else None
            if heard.refused and (step.fails or step.call == before):
                return self._without(heard)
            return self._adapt(step, knows=knows)
        return self._habit(step, knows=knows)

    def _do(self, step: Step, named: Call) -> Reply:
        """The call that was suggested, as what it is here."""
        if step.cure and step.cure[0].sent == named.sent:
            self._cured = 0
            return self._call("cure", step.cure[0])
        same = any(call.sent == named.sent for call in (step.call, *step.near))
        return self._call("try" if same else "other", named)

    def _habit(self, step: Step, *, knows: bool) -> Reply:
        own = dict(shares()[self._behaviour.habits][f"after_{min(max(self._row, 1), _LONGEST)}"])
        rest = 1.0 - sum(self._behaviour.more.values())
        own = {move: rest * share + self._behaviour.more.get(move, 0.0) for move, share in own.items()}
        drawn = self._draw("habit") * sum(own.values())
        move = next((move for move in own if (drawn := drawn - own[move]) < 0), "same")
        if step.rut and move in {"same", "near", "alternate", "other"}:
            move = step.rut
        match move:
            case "adapt":
                return self._adapt(step, knows=knows)
            case "form":
                return self._broken(step)
            case "end":
                self._made = _Made("end")
                return Reply(
                    text="I could not finish this; the errors above stand in the way.", finish_reason="stop"
                )
            case "near" if step.near:
                return self._call("try", self._next("near", step.near))
            case "other" if step.other:
                return self._call("other", self._next("other", step.other))
            case "alternate" if step.other or self._before is not None:
                turn = self._made.call == step.call
                other = self._before if self._before not in (None, step.call) else self._first(step)
                return self._call("other", other) if turn and other else self._call("try", step.call)
            case _:
                return self._call("try", step.call)

    def _without(self, heard: _Heard) -> Reply:
        """Go on without a call that was not needed for anything that follows."""
        self._next_step()
        following = self.step
        return self._last_words(heard) if following is None else self._call("try", following.call)

    @staticmethod
    def _first(step: Step) -> Call | None:
        return step.other[0] if step.other else None

    def _adapt(self, step: Step, *, knows: bool) -> Reply:
        looked = self._used.get("look", 0)
        if looked < len(step.look) and (not knows or self._draw("look") < 0.5):
            return self._call("look", self._next("look", step.look))
        if step.cure and knows:
            self._cured = 0
            return self._call("cure", step.cure[0])
        return self._call("try", step.call)

    def _next(self, kind: str, calls: Sequence[Call]) -> Call:
        place = self._used.get(kind, 0)
        self._used[kind] = place + 1
        return calls[place % len(calls)]

    def _call(self, kind: str, call: Call) -> Reply:
        if self._made.call is not None and self._made.call != call:
            self._before = self._made.call
        self._made = _Made(kind, call)
        says = self.step.says if self.step is not None and kind == "try" else ""
        return self._sent(call.tool, call.sent, says)

    def _sent(self, tool: str, arguments: str, text: str = "") -> Reply:
        call = ToolCall(id=f"call-{self._requests}", name=tool, arguments=arguments)
        return Reply(text=text, calls=(call,), finish_reason="tool_calls")

    def _broken(self, step: Step) -> Reply:
        self._made = replace(self._made, kind="form")
        written = json.dumps(step.call.arguments)
        match int(self._draw("form") * 3):
            case 0:
                return self._sent(step.call.tool, written[:-2])
            case 1:
                return self._sent(f"run_{step.call.tool}", written)
            case _:
                return Reply(text=f"I will call {step.call.tool} next.", finish_reason="stop")

    def _last_words(self, heard: _Heard) -> Reply:
        """The answer; by the finish tool if words alone were not taken."""
        self._ended += 1
        unproved = _UNPROVED.search(f"{heard.note}\n{heard.results}") and self._case.verify
        if unproved and not self._verifies and self._draw("verifies") < self._behaviour.told:
            self._verifies = True
            self._ended = 0
            return self._call("try", self._case.verify[0].call)
        if self._ended == 1:
            return Reply(text=self._case.claim, finish_reason="stop")
        return self._sent("finish", json.dumps({"answer": self._case.claim}))
