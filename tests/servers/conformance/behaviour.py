"""A behaviour read from its file, and the server that behaves so.

Each request for a reply is answered by the first `refuses` that it meets, else by the next `turn`; the last turn stays.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field

from tests.openai_server import COMMENT, DONE, Answer, OpenAIServer, Pause, Recorded, Step, chunk, json_answer
from tests.servers import MAKES, Make, Said
from tests.servers.conformance.requests import Asked, Meeting, meets

FOLDER = Path(__file__).parent
BY_NAME = {make.name: make for make in MAKES}

Client = Literal["litellm", "openai"]


class Says(BaseModel, frozen=True, extra="forbid"):
    """One answer of a server. `say`, `call` and `calls` are well formed, in the make's own protocol; all else goes out
    as it stands.
    """

    say: str = ""
    thought: str = ""
    call: str = ""
    """A tool's name and its arguments as JSON."""
    calls: list[str] = []
    id: str = ""
    """The id of the call, where it is not the make's own."""
    stream: str | None = None
    """Steps of a stream, one a line (see README.md)."""
    whole: str | None = None
    """A message, or a whole body, as JSON: not streamed, whatever was asked for."""
    status: int = 200
    body: str | None = None
    kind: str = "application/json"
    """The content type of `body`."""
    headers: dict[str, str] = {}


class Turn(Says, frozen=True):
    """What the server says to the next request."""

    until: dict[str, Any] = {}
    """It is said again until a request meets this, which then gets the next turn."""
    times: int = 1
    """How often it is said."""


class Refusal(Says, frozen=True):
    """What the server says to requests that are like `when`."""

    when: dict[str, Any]
    times: int | None = None
    """How often at most; None: always."""


class Fact(BaseModel, frozen=True, extra="forbid"):
    """What the server says at another address."""

    status: int = 200
    body: str = "{}"
    kind: str = "application/json"
    hang: bool = False


class Expected(BaseModel, frozen=True, extra="forbid"):
    """What must come of the run."""

    outcome: str = "answered"
    """How it ends; `any` way, or in any way `not answered`."""
    answer: str | None = None
    answer_has: list[str] = []
    answer_lacks: list[str] = []
    requests: int
    """At most so many."""
    results: list[str] | None = None
    """What the results of calls have in them, in their order."""
    ran: list[str] | None = None
    """The calls that ran: name and arguments as JSON."""
    faults: list[str] | None = None
    """Kinds of the failed model calls, in their order."""
    waits: list[tuple[float, float]] | None = None
    """Least and most seconds that each wait before a retry was to take."""
    words: list[str] = []
    """What the operator reads of it: in the answer, the reason, or a notice."""
    words_any: list[str] = []
    """One of which the operator reads."""
    words_lack: list[str] = []
    notices: list[str] = []
    """What notices have in them, each in one."""
    last: dict[str, Any] = {}
    """What the last request is like (see requests.py)."""
    window: int | None = None
    """The window that was learnt, at most; 0: none was."""
    again: int | None = None
    """Requests at most of a second run with the same server, of which none is refused."""


class Behaviour(BaseModel, frozen=True, extra="forbid"):
    """A file of this folder."""

    name: str
    family: str
    does: str
    """What the server does, in a sentence."""
    source: list[str] = Field(min_length=1)
    """Where that was reported: project#number, or how the bytes were recorded."""
    make: str = "openai"
    model: str = ""
    """As litellm spells it; empty: a name of its own behind `openai/`, or the make's."""
    base: str | None = None
    """What follows the host in the api base; None: as the make has it."""
    clients: list[Client] | None = None
    """Those that can serve it; None: both, where the make speaks OpenAI's protocol."""
    task: str = "Do the task."
    files: dict[str, str] = {}
    settings: dict[str, Any] = {}
    facts: dict[str, Fact] = {}
    """By path: what is asked beside replies."""
    refuses: list[Refusal] = []
    turn: list[Turn] = Field(min_length=1)
    run: Expected

    @property
    def spoken(self) -> Make:
        return BY_NAME[self.make]

    @property
    def called(self) -> str:
        """The model's name; one of its own, since what is learnt of a server is kept by it."""
        if self.model or self.make != "openai":
            return self.model or self.spoken.model
        return f"openai/{self.name}"

    @property
    def served_by(self) -> list[Client]:
        """The clients that can make its calls."""
        if self.clients is not None:
            return self.clients
        return ["litellm", "openai"] if self.make == "openai" else ["litellm"]


def behaviours() -> Iterator[Behaviour]:
    """All of them, by family and name. Raises `ValidationError` for a file that is none."""
    for path in sorted(FOLDER.glob("*/*.toml")):
        given = tomllib.loads(path.read_text(encoding="utf-8"))
        yield Behaviour(name=path.stem, family=path.parent.name, **given)


class BehavingServer(OpenAIServer):
    """The server of a behaviour."""

    def __init__(self, behaviour: Behaviour) -> None:
        super().__init__()
        self.behaviour = behaviour
        self.answered: list[Answer] = []
        """What each request got."""
        self.begin_again()

    def begin_again(self) -> None:
        """Forget the requests, and say the first turn next."""
        self.requests.clear()
        self.answered.clear()
        self._refusals = [Meeting(refusal.when, refusal.times) for refusal in self.behaviour.refuses]
        self._at = 0
        self._said = 0

    @property
    def url(self) -> str:
        """The api base."""
        root = super().url.removesuffix("/v1")
        base = self.behaviour.base
        return root + (self.behaviour.spoken.base if base is None else base)

    def respond(self, request: Recorded) -> Answer:
        """See `OpenAIServer`."""
        path = request.path.partition("?")[0]
        fact = self.behaviour.facts.get(path)
        if fact is not None or request.method == "GET" or path in {"/api/show", *self.behaviour.spoken.facts}:
            self.questions.append(request)
            return self._known(path, fact)
        asked = Asked(request, self.requests[-1] if self.requests else None)
        self.requests.append(request)
        answer = self._answer(asked)
        self.answered.append(answer)
        return answer

    def _known(self, path: str, fact: Fact | None) -> Answer:
        if fact is None:
            known = self.behaviour.spoken.facts.get(path)
            return json_answer(known) if known is not None else json_answer({"error": "not found"}, 404)
        if fact.hang:
            return Answer(headers=(("Content-Type", fact.kind),), steps=(Step.HANG,))
        return Answer(fact.status, (("Content-Type", fact.kind),), fact.body.encode())

    def _answer(self, asked: Asked) -> Answer:
        for refusal, meeting in zip(self.behaviour.refuses, self._refusals, strict=True):
            if meeting.meets(asked):
                return answer(refusal, asked.request, self.behaviour, len(self.requests))
        turns = self.behaviour.turn
        turn = turns[self._at]
        over = meets(turn.until, asked) if turn.until else self._said >= turn.times
        if self._said and over and self._at + 1 < len(turns):
            self._at, self._said = self._at + 1, 0
            turn = turns[self._at]
        self._said += 1
        return answer(turn, asked.request, self.behaviour, len(self.requests))


def answer(said: Says, request: Recorded, behaviour: Behaviour, number: int) -> Answer:
    """The answer to a request, which is the `number`th."""
    headers = tuple(said.headers.items())
    if said.stream is not None:
        kind = () if any(name.lower() == "content-type" for name in said.headers) else (_EVENTS,)
        return Answer(said.status, (*kind, *headers), steps=tuple(_steps(said.stream)))
    if said.body is not None:
        text = said.body.replace("{NUMBER}", str(number))
        return Answer(said.status, (("Content-Type", said.kind), *headers), text.encode())
    if said.whole is not None:
        return json_answer(_whole(json.loads(said.whole)), said.status, headers=said.headers)
    make = behaviour.spoken
    calls = [_read_call(call) for call in (*said.calls, *([said.call] if said.call else []))]
    words = Said(said.say, said.thought, tuple(calls))
    given = make.answer(words, request)
    return _with_ids(given, said.id or f"call_n{number}x") if make.name == "openai" else given


_EVENTS = ("Content-Type", "text/event-stream")
_CHUNK = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "served-model"}


def _with_ids(given: Answer, own: str) -> Answer:
    """The same answer with other ids than the make's `call_0`: the first is `own`."""

    def changed(data: bytes) -> bytes:
        return data.replace(b'"call_0"', json.dumps(own).encode()).replace(
            b'"call_1"', json.dumps(own + "1").encode()
        )

    if given.body is not None:
        return Answer(given.status, given.headers, changed(given.body))
    steps = tuple(changed(step) if isinstance(step, bytes) else step for step in given.steps)
    return Answer(given.status, given.headers, steps=steps)


def _read_call(call: str) -> tuple[str, Mapping[str, Any]]:
    name, _, arguments = call.partition(" ")
    return name, json.loads(arguments or "{}")


def _whole(message: dict[str, Any]) -> dict[str, Any]:
    """The body of a reply that is not streamed."""
    if "role" not in message:
        return message
    finish = "tool_calls" if message.get("tool_calls") else "stop"
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "served-model",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
    }


def _steps(text: str) -> Iterator[bytes | Step | Pause]:
    """The steps of a stream. Raises `ValueError` for a line that is none."""
    for line in text.strip("\n").splitlines():
        word, _, rest = line.strip().partition(" ")
        if word.endswith(":"):  # as it was recorded
            yield f"{line.strip()}\n\n".encode()
        elif word and not word.startswith("#"):
            yield _step(word, rest)


def _step(word: str, rest: str) -> bytes | Step | Pause:
    if word not in STEPS:
        raise ValueError(f"no step of a stream: {word!r}")
    return STEPS[word](rest)


def _usage(rest: str) -> bytes:
    prompt, completion = map(int, rest.split())
    return chunk(usage=(prompt, completion), choices=False)


def _event(rest: str) -> bytes:
    name, _, data = rest.partition(" ")
    return f"event: {name}\ndata: {data}\n\n".encode()


STEPS: dict[str, Callable[[str], bytes | Step | Pause]] = {
    "chunk": lambda rest: f"data: {json.dumps({**_CHUNK, **json.loads(rest)})}\n\n".encode(),
    "delta": lambda rest: chunk(json.loads(rest)),
    "text": lambda rest: chunk({"content": json.loads(rest)}),
    "numbers": lambda rest: chunk({"content": " ".join(map(str, range(int(rest))))}),
    "thought": lambda rest: chunk({"reasoning_content": json.loads(rest)}),
    "call": lambda rest: chunk({"tool_calls": [json.loads(rest)]}),
    "finish": lambda rest: chunk(finish=rest),
    "usage": _usage,
    "data": lambda rest: f"data: {rest}\n\n".encode(),
    "event": _event,
    "line": lambda rest: f"{rest}\n".encode(),
    "raw": lambda rest: str(json.loads(rest)).encode(),
    "done": lambda _: DONE,
    "ping": lambda _: COMMENT,
    "pause": lambda rest: Pause(float(rest)),
    "hang": lambda _: Step.HANG,
    "cut": lambda _: Step.CUT,
    "drop": lambda _: Step.DROP,
    "pings": lambda _: Step.KEEP_ALIVE,
}
"""What a line of a stream sends, by its first word (see README.md)."""
