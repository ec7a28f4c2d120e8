"""The scripted model plays its data file: places, conditions, branches, faults, pace."""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import Any

import pytest

from tests.scripted_model import scripted_model
from tui_agent.core.events import FaultKind
from tui_agent.models.protocol import Delta, ModelFault, ModelRequest, Reply
from tui_agent.models.scenario import Pace, Scenario, Turn, materialise
from tui_agent.models.scenario_checks import ScenarioError
from tui_agent.models.scenario_file import load_scenario, parse_scenario, scenario_names
from tui_agent.models.scripted import ScriptedModel

TASK = {"role": "user", "content": "do it"}


def request(*messages: dict[str, Any], tools: tuple[str, ...] = ("bash",), model: str = "m") -> ModelRequest:
    offered = [{"type": "function", "function": {"name": name}} for name in tools]
    return ModelRequest(
        model=model, messages=[{"role": "system", "content": "s"}, TASK, *messages], tools=offered
    )


async def answer(model: ScriptedModel, asked: ModelRequest | None = None) -> Reply:
    pieces = [piece async for piece in model.stream(asked or request())]
    assert isinstance(pieces[-1], Reply)
    assert all(isinstance(piece, Delta) for piece in pieces[:-1])
    return pieces[-1]


async def listen(model: ScriptedModel, heard: list[str]) -> None:
    """Stream a reply to its end; what was heard stays when it fails."""
    stream = model.stream(request())
    while (piece := await anext(stream, None)) is not None:
        heard.append(piece.text)


def exchange(reply: Reply, *results: str) -> list[dict[str, Any]]:
    """The reply as the history keeps it, with its results."""
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in reply.calls
    ]
    return [
        {"role": "assistant", "content": reply.text or None, "tool_calls": calls},
        *(
            {"role": "tool", "tool_call_id": call["id"], "content": text}
            for call, text in zip(calls, results, strict=True)
        ),
    ]


def call(tool: str = "bash", **arguments: Any) -> dict[str, Any]:
    return {"calls": [{"tool": tool, "args": arguments}]}


async def test_turns_follow_one_another_and_stream_what_the_reply_holds() -> None:
    model = scripted_model([{"text": "first words", "reasoning": "why"}, "second"])
    pieces = [piece async for piece in model.stream(request())]
    reply = pieces[-1]
    assert isinstance(reply, Reply)
    deltas = [piece for piece in pieces if isinstance(piece, Delta)]
    assert "".join(piece.text for piece in deltas) == reply.text == "first words"
    assert "".join(piece.reasoning for piece in deltas) == reply.reasoning == "why"
    assert all(len(piece.text) <= 8 for piece in deltas)
    assert (await answer(model)).text == "second"


async def test_a_call_carries_its_arguments_and_a_unique_id_and_raw_text_stays_raw() -> None:
    model = scripted_model(
        [call(command="ls"), call(command="ls"), {"calls": [{"tool": "bash", "raw": '{"command": '}]}]
    )
    first = await answer(model)
    history = exchange(first, "a.py")
    second = await answer(model, request(*history))
    broken = await answer(model, request(*history, *exchange(second, "a.py")))
    assert json.loads(first.calls[0].arguments) == {"command": "ls"}
    assert first.finish_reason == "tool_calls"
    assert first.calls[0].id != second.calls[0].id
    assert broken.calls[0].arguments == '{"command": '


@pytest.mark.parametrize(
    ("when", "messages", "holds"),
    [
        ({"results": "No such file"}, [{"role": "tool", "content": "Error: No such file"}], True),
        ({"results": "No such file"}, [{"role": "user", "content": "No such file"}], False),
        ({"user": "attempt 2/3"}, [{"role": "user", "content": "failed (attempt 2/3)"}], True),
        (
            {"recent": ["a.*c", "x"]},
            [{"role": "tool", "content": "abc"}, {"role": "user", "content": "x"}],
            True,
        ),
        (
            {"recent": ["a.*c", "y"]},
            [{"role": "tool", "content": "abc"}, {"role": "user", "content": "x"}],
            False,
        ),
        (
            {"user": "old"},
            [{"role": "user", "content": "old"}, {"role": "assistant", "content": "so"}],
            False,
        ),
        (
            {"earlier": "old"},
            [{"role": "user", "content": "old"}, {"role": "assistant", "content": "so"}],
            True,
        ),
        ({"user": "^second"}, [{"role": "user", "content": "first\nsecond"}], True),
        ({"tools": ["bash"]}, [], True),
        ({"tools": ["edit_file"]}, [], False),
        ({"tools_missing": ["edit_file"]}, [], True),
        ({"tools_missing": "bash"}, [], False),
        ({"model": "^m$"}, [], True),
    ],
)
async def test_a_turn_is_played_only_when_its_condition_holds(
    when: dict[str, Any], messages: list[dict[str, Any]], holds: bool
) -> None:
    asked = request(*messages)
    taken = scripted_model([{"when": when, "text": "yes"}, "no"])
    assert (await answer(taken, asked)).text == ("yes" if holds else "no")
    spared = scripted_model([{"unless": when, "text": "yes"}, "no"])
    assert (await answer(spared, asked)).text == ("no" if holds else "yes")


async def test_what_a_condition_captures_is_filled_into_words_and_arguments_also_later() -> None:
    model = scripted_model(
        [
            {
                "when": {"results": r"mean (?P<path>[\w.]+)"},
                "text": "so {{path}}",
                **call("read_file", path="{{path}}", lines=[1, "{{path}}"]),
            },
            {"text": "again {{path}}"},
        ]
    )
    reply = await answer(model, request({"role": "tool", "content": "did you mean cart.py?"}))
    assert reply.text == "so cart.py"
    assert json.loads(reply.calls[0].arguments) == {"path": "cart.py", "lines": [1, "cart.py"]}
    assert (await answer(model, request(*exchange(reply, "text of it")))).text == "again cart.py"


async def test_branches_join_again_by_next_and_an_anywhere_turn_leaves_the_place_alone() -> None:
    model = scripted_model(
        [
            {"anywhere": True, "when": {"user": "hello"}, "text": "hello too"},
            {"when": {"user": "left"}, "text": "left", "next": "end"},
            {"text": "right"},
            {"label": "end", "text": "end", "next": "end"},
        ]
    )
    hello = request({"role": "user", "content": "hello"})
    left = request({"role": "user", "content": "left"})
    said = [(await answer(model, asked)).text for asked in (hello, left, hello, request(), request())]
    assert said == ["hello too", "left", "hello too", "end", "end"]


async def test_a_fault_ends_its_turn_after_its_words_and_the_script_goes_on() -> None:
    fault = {"kind": "rate_limit", "status": 429, "retry_after": 2, "message": "busy", "advice": "wait"}
    model = scripted_model([{"text": "half a", "fault": fault, "repeat": 2}, "whole"], pace=1.0)
    for _ in range(2):
        heard: list[str] = []
        with pytest.raises(ModelFault) as raised:
            await listen(model, heard)
        assert "".join(heard) == "half a"
        got = raised.value.fault
        assert (got.kind, got.status, got.retry_after, got.message, got.advice) == (
            FaultKind.RATE_LIMIT,
            429,
            2.0,
            "busy",
            "wait",
        )
    assert (await answer(model)).text == "whole"


async def test_a_turn_that_was_interrupted_is_played_again() -> None:
    model = scripted_model(["a long first turn", "second"])
    async with aclosing(model.stream(request())) as stream:
        await anext(stream)
    assert (await answer(model)).text == "a long first turn"


async def test_a_request_that_no_turn_fits_is_a_fault_that_names_the_scenario() -> None:
    model = scripted_model([{"when": {"user": "never"}, "text": "x"}])
    with pytest.raises(ModelFault, match="no turn for this request") as raised:
        await answer(model)
    assert raised.value.fault.kind is FaultKind.BAD_REQUEST
    assert raised.value.fault.advice


TURNS = [
    {"label": "one", **call(command="1")},
    {"label": "two", **call(command="2")},
    {"text": "between", "fault": {"kind": "server"}},
    {"label": "three", **call(command="3")},
]


async def test_a_fresh_model_goes_on_where_the_history_of_a_resumed_session_ends() -> None:
    first = scripted_model(TURNS)
    history = exchange(await answer(first), "1")
    history += exchange(await answer(first, request(*history)), "2")
    resumed = scripted_model(TURNS)
    with pytest.raises(ModelFault):
        await answer(resumed, request(*history))
    third = await answer(resumed, request(*history))
    assert json.loads(third.calls[0].arguments) == {"command": "3"}
    earlier_ids = {each["id"] for message in history for each in message.get("tool_calls", ())}
    assert third.calls[0].id not in earlier_ids


async def test_a_rewound_history_takes_the_script_back() -> None:
    model = scripted_model(TURNS)
    history = exchange(await answer(model), "1")
    assert json.loads((await answer(model, request(*history))).calls[0].arguments) == {"command": "2"}
    # The second reply was never stored, so the history still ends with the first.
    assert json.loads((await answer(model, request(*history))).calls[0].arguments) == {"command": "2"}
    assert json.loads((await answer(model, request())).calls[0].arguments) == {"command": "1"}


async def test_pieces_come_by_a_schedule_and_pace_scales_every_time() -> None:
    now, naps = 0.0, []

    async def sleep(seconds: float) -> None:
        nonlocal now
        naps.append(seconds)
        now += seconds + 0.25  # a sleep takes longer than asked for

    scenario = Scenario("s", (Turn(text="abcd" * 4),), pace=Pace((4, 4), interval=1.0, pause=10.0))
    model = ScriptedModel(scenario, pace=0.5, clock=lambda: now, sleep=sleep)
    await answer(model)
    assert naps[0] == 5.0
    assert naps[1:] == [0.5, 0.25, 0.25, 0.25]


async def test_without_pace_nothing_waits() -> None:
    naps = []

    async def sleep(seconds: float) -> None:
        naps.append(seconds)

    model = ScriptedModel(load_scenario("recovery"), pace=0.0, sleep=sleep)
    await answer(model)
    assert naps
    assert set(naps) == {0.0}


async def test_a_scenario_s_numbers_reach_the_reply_and_what_it_leaves_out_is_unknown() -> None:
    model = scripted_model(
        [
            {
                "text": "a",
                "usage": {"prompt": 5, "completion": 2, "cached": 3, "cost": 0.01},
                "finish_reason": "length",
            },
            "b",
        ],
        context_tokens=900,
    )
    known, unknown = await answer(model), await answer(model)
    assert (known.prompt_tokens, known.completion_tokens, known.cost) == (5, 2, 0.01)
    assert (known.finish_reason, known.cached_tokens, unknown.cached_tokens) == ("length", 3, None)
    assert (unknown.prompt_tokens, unknown.completion_tokens, unknown.cost) == (None, None, None)
    assert await model.context_tokens("any") == 900


# --- the files -----------------------------------------------------------------------------------------------


def test_at_least_three_demos_come_with_the_product_each_with_title_task_and_files() -> None:
    assert {"recovery", "breaker", "parallel", "approvals"} <= set(scenario_names())
    for name in scenario_names():
        scenario = load_scenario(name)
        assert scenario.title
        assert scenario.description
        assert scenario.task
        assert scenario.files


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("title = ", "is not TOML"),
        ("title = 'x'", "`turns` is missing"),
        ("tittle = 'x'\n[[turns]]", "'tittle' is unknown (did you mean 'title'?). Allowed: title"),
        ("title = 3\n[[turns]]", "f.toml.title is a number. It has to be a text"),
        (
            "policy = 'forged'\n[[turns]]",
            "f.toml.policy is 'forged' (did you mean 'forge'?). It is one of: forge",
        ),
        ("approve = 'no'\n[[turns]]", "It is one of: plan, ask, writes, all"),
        ("turns = 3", "f.toml.turns is a number. It has to be a list of tables"),
        ("[[turns]]\ntxt = 'a'", "f.toml.turns[0]: the key 'txt' is unknown (did you mean 'text'?)"),
        ("[[turns]]\nnext = 'b'\n[[turns]]\nlabel = 'a'", "there is no turn labelled 'b'"),
        ("[[turns]]\nlabel = 'a'\n[[turns]]\nlabel = 'a'", "'a' is on two turns"),
        ("[[turns]]\ntext = '{{who}}'", "{{who}} is captured by no condition"),
        ("[[turns]]\nwhen = { recent = '(' }", "f.toml.turns[0].when.recent: '(' is no regular expression"),
        ("[[turns]]\nwhen = { said = 'x' }", "the key 'said' is unknown"),
        ("[[turns]]\nwhen = { recent = [1] }", "It has to be a text or a list of texts"),
        ("[[turns]]\ncalls = [{ args = {} }]", "f.toml.turns[0].calls[0].tool is missing"),
        ("[[turns]]\ncalls = [{ tool = 'a', args = {}, raw = '' }]", "both `args` and `raw`"),
        ("[[turns]]\nfault = { kind = 'oops' }", "It is one of: rate_limit"),
        ("[[turns]]\nfault = { status = 3 }", "fault.kind is missing"),
        ("[[turns]]\nfault = { kind = 'server', retry_after = -1 }", "It has to be a number, 0 or more"),
        ("[[turns]]\nrepeat = 1.5", "It has to be a whole number"),
        ("[[turns]]\nanywhere = 'yes'", "It has to be true or false"),
        ("[pace]\nchars = [8, 3]\n[[turns]]", "two whole numbers"),
        ("[[captions]]\nmoment = 'ended'\n[[turns]]", "It is one of: begun, failed"),
        ("[[captions]]\nmoment = 'done'\n[[turns]]", "f.toml.captions[0] needs `moment` and `text`"),
        ("[files]\n'../x' = ''\n[[turns]]", "leads out of the workspace"),
        ("[files]\n'/x' = ''\n[[turns]]", "leads out of the workspace"),
        ("[files]\n'x' = 3\n[[turns]]", "f.toml.files.x is a number"),
    ],
)
def test_a_bad_scenario_is_refused_by_file_key_and_what_is_allowed(source: str, complaint: str) -> None:
    with pytest.raises(ScenarioError) as raised:
        parse_scenario(source, origin="f.toml")
    assert "f.toml" in str(raised.value)
    assert complaint in str(raised.value)


def test_an_unknown_scenario_names_the_nearest_and_a_missing_file_its_path(tmp_path) -> None:
    with pytest.raises(ScenarioError, match=r"did you mean 'recovery'\?\).*It is one of: .*breaker"):
        load_scenario("recovry")
    with pytest.raises(ScenarioError, match="cannot be read"):
        load_scenario(tmp_path / "none.toml")


def test_files_are_written_inside_the_folder_only(tmp_path) -> None:
    scenario = load_scenario("recovery")
    written = materialise(scenario, tmp_path / "new" / "place")
    assert {str(path.relative_to((tmp_path / "new" / "place").resolve())) for path in written} == set(
        scenario.files
    )
    outside = tmp_path / "outside"
    outside.mkdir()
    trap = tmp_path / "trap"
    trap.mkdir()
    (trap / "shop").symlink_to(outside)
    with pytest.raises(ScenarioError, match="through a symbolic link"):
        materialise(scenario, trap)
    assert not list(outside.iterdir())
