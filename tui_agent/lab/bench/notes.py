"""What a real model does next at a failing step, with and without the recovery note: points, conditions and replies.

A *point* is a conversation that ends with a failing step: made from a case by the production loop, with a machine that
sends the same call once, twice or three times. A *condition* is what the model reads there: nothing more, the note, its
words or its place changed, or a refusal. Replies are kept as they came (`replies.jsonl`); what they mean is read from
them each time (`next_moves.py`), so that figures can be made again without the model.
"""

from __future__ import annotations

import json
import random
import re
import tempfile
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tui_agent.config.profiles import ModelParameters
from tui_agent.config.settings import Settings
from tui_agent.core.recovery.note import tagged
from tui_agent.core.recovery.refusals import Blocked
from tui_agent.core.request.text_calls import as_text
from tui_agent.lab.bench.behaviours import Behaviour, Machine
from tui_agent.lab.bench.bench import BenchError, unpriced
from tui_agent.lab.bench.case import Call, Case, Step
from tui_agent.lab.bench.clock import Clock
from tui_agent.lab.bench.kept import MemoryCheckpoints
from tui_agent.lab.bench.kept_replies import add_line, whole_lines
from tui_agent.lab.bench.operators import BenchOperator
from tui_agent.lab.bench.policies import CONTESTANTS
from tui_agent.lab.bench.run import fresh, scripted_settings, scripted_tools
from tui_agent.lab.bench.seams import World
from tui_agent.models.hosted import KeptHost
from tui_agent.models.protocol import Delta, ModelRequest, Reply
from tui_agent.session.opening import open_session

POINTS, REPLIES = "points.json", "replies.jsonl"
MOST_IN_A_ROW = 3
"""How often the failing call has failed at the last point of a case."""
LONGEST_REPLY = 80
"""Tokens: a call of these cases needs half of it."""
TEMPERATURE = 0.7

_FAILED = "Error:"
_STUBBORN = Behaviour("stubborn", "weakest", told=0.0, noted=0.0, refused=0.0, asked=0.0, more={"same": 1.0})
"""Sends the same call again, whatever it reads."""


@dataclass(frozen=True)
class Point:
    """A conversation up to a failing step. `messages` are in OpenAI's chat form, without the system prompt."""

    id: str
    case: str
    in_a_row: int
    """How often this call has failed."""
    messages: Sequence[Mapping[str, Any]]
    note: str
    """Today's note at this point."""
    call: Call
    ways: Sequence[Call]
    """Calls of which each is a way out; the first is the one that the condition `named` names."""
    words: str = ""
    """What the arguments of a way out hold; empty: nothing tells."""

    @property
    def error(self) -> str:
        return str(self.messages[-1]["content"])


@dataclass(frozen=True)
class Scene:
    """The points of one bench, and what stands in front of all of them."""

    model: str
    """The one that is asked."""
    system: str
    tools: Sequence[Mapping[str, Any]]
    points: Sequence[Point]

    @property
    def names(self) -> frozenset[str]:
        """Names of the tools."""
        return frozenset(str(tool["function"]["name"]) for tool in self.tools)


@dataclass(frozen=True)
class Sampled:
    """One reply of the model."""

    point: str
    condition: str
    sample: int
    text: str
    cut: bool = False
    cost: float | None = None


# --- conditions ------------------------------------------------------------------------------------------------


def _with_last(point: Point, content: str) -> list[Mapping[str, Any]]:
    return [*point.messages[:-1], {**point.messages[-1], "content": content}]


def _noted(point: Point, note: str) -> list[Mapping[str, Any]]:
    return [*point.messages, {"role": "user", "content": tagged(note)}]


def _named(point: Point) -> str:
    way = point.ways[0]
    return f"That call cannot succeed as it is. Send this one next: {way.tool} {way.sent}"


def _refused(point: Point) -> str:
    error = point.error.removeprefix(_FAILED).strip()
    return Blocked(point.call.tool, max(point.in_a_row - 1, 1), "nobody", error=error).text


CONDITIONS: Mapping[str, Callable[[Point], list[Mapping[str, Any]]]] = {
    "nothing": lambda point: list(point.messages),
    "note": lambda point: _noted(point, point.note),
    "short": lambda point: _noted(point, "Do not send that call again. Send a different one now."),
    "in the result": lambda point: _with_last(point, f"{point.error}\n\n{point.note}"),
    "named": lambda point: _noted(point, _named(point)),
    "refused": lambda point: _with_last(point, _refused(point)),
}
"""By name: the messages that the model reads. `note` is today's; `short` has other words, `in the result` another
place, `named` names a call that works; `refused` has a refusal in place of the newest result."""


# --- points ----------------------------------------------------------------------------------------------------


@dataclass
class _Listening:
    """A model whose requests are kept."""

    model: Machine
    requests: list[ModelRequest] = field(default_factory=list)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta | Reply, None]:
        """See `protocol.Model`."""
        self.requests.append(request)
        async for piece in self.model.stream(request):
            yield piece

    async def start(self) -> None:
        """See `protocol.Model`."""

    async def context_tokens(
        self, model: str, api_base: str | None = None, api_key_variable: str | None = None
    ) -> int | None:
        """See `protocol.Model`."""
        return await self.model.context_tokens(model, api_base, api_key_variable)

    async def close(self) -> None:
        """See `protocol.Model`."""


async def scene_of(cases: Iterable[Case], model: str, scratch: Path) -> Scene:
    """The points of these cases, each made by a run through the production loop in `scratch`."""
    system, tools = "", []
    points: list[Point] = []
    for case in cases:
        requests = await _requests(case, scratch)
        if requests:
            system, tools = str(requests[0].messages[0]["content"]), requests[0].tools
            points += _points(case, requests)
    return Scene(model, system, tools, points)


async def _requests(case: Case, scratch: Path) -> list[ModelRequest]:
    """What the machine reads in a run of the case."""
    workspace, state_dir = fresh(case.files, scratch)
    clock = Clock()
    model = _Listening(Machine(case, _STUBBORN, 1, clock))
    settings = scripted_settings(workspace, state_dir, CONTESTANTS["combined"])
    session = await open_session(
        settings.replaced(max_iterations=len(case.steps) + MOST_IN_A_ROW),
        BenchOperator("absent", case, clock, lambda _: None, _unchanged, "continue"),
        model,
        tools=World(case.faults, workspace, clock, _allowed).around(scripted_tools()),
        environment={},
        clock=clock,
        checkpoints=MemoryCheckpoints(workspace),
    )
    try:
        await session.submit(case.task)
        await session.wait()
    finally:
        await session.close()
    return model.requests


async def _unchanged(note: str | None) -> str | None:
    return note


async def _allowed(_tool: str, _arguments: Mapping[str, Any]) -> None:
    """Every call runs."""


def _points(case: Case, requests: Iterable[ModelRequest]) -> Iterator[Point]:
    """Requests after a failing call of the first step that fails and that a call of the case heals."""
    step: Step | None = None
    row = 0
    for request in requests:
        messages = list(request.messages[1:])
        note = str(messages.pop()["content"]) if request.ephemeral else ""
        if len(messages) < 3 or not str(messages[-1]["content"]).startswith(_FAILED):
            continue
        sent = messages[-2]["tool_calls"][0]["function"]
        call = as_call(sent["name"], sent["arguments"])
        step = step or next((one for one in case.steps if same_call(one.call, call)), None)
        if step is None or not step.cure or not same_call(step.call, call):
            continue
        row += 1
        tells = step.tell if step.tell and any(re.search(step.tell, way.sent) for way in step.cure) else ""
        yield Point(f"{case.id}#{row}", case.id, row, messages, _untagged(note), call, step.cure, tells)
        if row == MOST_IN_A_ROW:
            return


def as_call(tool: str, arguments: str) -> Call:
    """A call from its arguments as they were sent."""
    try:
        read = json.loads(arguments)
    except ValueError:
        return Call(tool, {}, arguments)
    return Call(tool, read) if isinstance(read, dict) else Call(tool, {}, arguments)


def same_call(one: Call, other: Call) -> bool:
    """True if both are the same call, however their arguments are written."""
    return (one.tool, one.arguments, one.raw) == (other.tool, other.arguments, other.raw)


def _untagged(note: str) -> str:
    return note.partition("\n")[2].rpartition("\n")[0]


# --- sampling --------------------------------------------------------------------------------------------------


async def begun(cases: Iterable[Case], model: str, out: Path) -> Scene:
    """The points that the folder holds, else those of the cases, which it holds from now on.

    Raises `BenchError` if another model was asked there, or if no case has a point.
    """
    if (out / POINTS).is_file():
        scene = read_scene(out)
        if scene.model != model:
            raise BenchError(f"{out} holds the replies of {scene.model}. Name another folder with --out.")
        return scene
    with tempfile.TemporaryDirectory(prefix="agent-tui-notes-") as scratch:
        scene = await scene_of(cases, model, Path(scratch))
    if not scene.points:
        raise BenchError("None of these cases has a failing step that a call heals.")
    keep_scene(scene, out)
    return scene


def keep_scene(scene: Scene, out: Path) -> None:
    """Write the points into the folder."""
    out.mkdir(parents=True, exist_ok=True)
    (out / POINTS).write_text(json.dumps(asdict(scene), ensure_ascii=False) + "\n", encoding="utf-8")


def read_scene(out: Path) -> Scene:
    """The points that a bench was begun with."""
    read = json.loads((out / POINTS).read_text(encoding="utf-8"))
    points = [
        Point(**{**one, "call": Call(**one["call"]), "ways": [Call(**way) for way in one["ways"]]})
        for one in read.pop("points")
    ]
    return Scene(**read, points=points)


def wanted(scene: Scene, samples: int, seed: int) -> Iterator[tuple[Point, str, int]]:
    """Replies in the order in which they are asked for: whole points, drawn, so that a part of them is a fair one."""
    points = list(scene.points)
    random.Random(seed).shuffle(points)
    for sample in range(samples):
        for point in points:
            yield from ((point, condition, sample) for condition in CONDITIONS)


def request_for(scene: Scene, point: Point, condition: str) -> ModelRequest:
    """The request at a point. The model writes its calls as text, so that every server reads it alike."""
    messages = [{"role": "system", "content": scene.system}, *map(dict, CONDITIONS[condition](point))]
    text = as_text(messages, [dict(tool) for tool in scene.tools])
    return ModelRequest(model=scene.model, messages=text)


def parameters_of(point: Point, sample: int) -> ModelParameters:
    """The same ones under every condition, the seed too."""
    seed = random.Random(f"{point.id}|{sample}").randrange(2**31)
    return ModelParameters(temperature=TEMPERATURE, max_tokens=LONGEST_REPLY, seed=seed)


Ask = Callable[[ModelRequest, ModelParameters], Awaitable[Reply]]


async def sample(
    scene: Scene, asked: Iterable[tuple[Point, str, int]], out: Path, ask: Ask
) -> AsyncGenerator[Sampled, None]:
    """Ask for the replies that are not kept yet, one by one, and keep each as it comes."""
    done = {(one.point, one.condition, one.sample) for one in read_replies(out)}
    for point, condition, number in asked:
        if (point.id, condition, number) in done:
            continue
        reply = await ask(request_for(scene, point, condition), parameters_of(point, number))
        cut = reply.finish_reason == "length"
        made = Sampled(point.id, condition, number, reply.text, cut, reply.cost)
        add_line(out / REPLIES, asdict(made))
        yield made


def asking(settings: Settings, host: KeptHost) -> Ask:
    """Ask the model of the settings, through the program's own client."""
    from tui_agent.models.choose import ModelByName

    async def ask(request: ModelRequest, parameters: ModelParameters) -> Reply:
        model = ModelByName(settings.replaced(parameters=parameters.given()), host)
        async with aclosing(model.stream(request)) as stream:
            async for piece in stream:
                if isinstance(piece, Reply):
                    return piece
        raise AssertionError("a stream ends with a reply")

    return ask


async def carry_out(
    cases: Iterable[Case], settings: Settings, host: KeptHost, samples: int, seed: int, out: Path
) -> None:
    """Make the points, or read those that are there, and ask for what is missing. Raises `BenchError`, `ModelFault`.

    `settings` name the model and what all replies together may cost.
    """
    scene = await begun(cases, settings.model, out)
    spent = sum(one.cost or 0.0 for one in read_replies(out))
    async with aclosing(sample(scene, wanted(scene, samples, seed), out, asking(settings, host))) as replies:
        async for one in replies:
            if settings.max_cost is None:
                continue
            if one.cost is None:
                raise unpriced(scene.model)
            spent += one.cost
            if spent > settings.max_cost:
                raise BenchError(
                    f"The replies have cost {spent:.4f} USD, and {settings.max_cost:.4f} are allowed. They are kept; "
                    "a higher --max-cost goes on with the rest."
                )


def read_replies(out: Path) -> list[Sampled]:
    """Replies that are kept; a torn last line, which a kill leaves, is cut off."""
    return [Sampled(**json.loads(line)) for line in whole_lines(out / REPLIES)]
