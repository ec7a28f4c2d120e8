"""Calls are made sure of before anything runs, and a wrong one says how to put it right."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.tools.box import Box
from tui_agent.core.events import Failure, FailureKind, ToolCall
from tui_agent.core.tool_facts import Effect, Use, Uses
from tui_agent.tools.dialogue import FinishRun, OutsideLoopError
from tui_agent.tools.registry import InvalidCall, ToolRegistry, default_tools

TOOLS = default_tools()
NAMES = TOOLS.names


def invalid(name: str, arguments: str) -> InvalidCall:
    with pytest.raises(InvalidCall) as caught:
        TOOLS.parse(ToolCall(id="1", name=name, arguments=arguments))
    return caught.value


def test_the_tools_stand_in_a_stable_order() -> None:
    assert sorted(NAMES) == list(NAMES)
    assert [spec["function"]["name"] for spec in TOOLS.specifications()] == list(NAMES)
    reversed_order = ToolRegistry([tool for name in reversed(NAMES) if (tool := TOOLS.get(name))])
    assert json.dumps(reversed_order.specifications()) == json.dumps(TOOLS.specifications())


@pytest.mark.parametrize(
    ("name", "required", "optional", "effect"),
    [
        ("read_file", ["path"], ["offset", "limit"], Effect.READ),
        ("write_file", ["path", "content"], [], Effect.WRITE),
        ("edit_file", ["path", "old", "new"], ["replace_all", "edits"], Effect.WRITE),
        ("glob", ["pattern"], [], Effect.READ),
        ("grep", ["pattern"], ["path", "glob"], Effect.READ),
        ("list_dir", [], ["path"], Effect.READ),
        ("bash", ["command"], ["timeout", "background"], Effect.COMMAND),
        ("ask_operator", ["question"], ["options"], Effect.DIALOGUE),
        ("finish", ["answer"], [], Effect.DIALOGUE),
    ],
)
def test_a_tool_has_the_arguments_of_the_contract(
    name: str, required: list[str], optional: list[str], effect: Effect
) -> None:
    tool = TOOLS.get(name)
    assert tool is not None
    Draft202012Validator.check_schema(tool.parameters)
    assert tool.parameters.get("required", []) == required
    assert list(tool.parameters["properties"]) == [*required, *optional]
    assert tool.effect is effect
    assert 60 < len(tool.description) < 700


def test_an_open_tool_is_left_out_of_the_list() -> None:
    names = [spec["function"]["name"] for spec in TOOLS.specifications(frozenset({"bash", "glob"}))]
    assert names == [name for name in NAMES if name not in ("bash", "glob")]


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("readfile", "read_file"),
        ("ReadFile", "read_file"),
        ("read-file", "read_file"),
        ("edit", "edit_file"),
        ("Bash", "bash"),
        ("list", "list_dir"),
        ("finsh", "finish"),
    ],
)
def test_an_unknown_tool_names_the_nearest_and_all(name: str, near: str) -> None:
    error = invalid(name, '{"path": "x"}')
    assert error.problem.kind is FailureKind.UNKNOWN_TOOL
    assert f"Did you mean '{near}'" in error.problem.message
    assert ", ".join(NAMES) in error.problem.message
    assert error.problem.input == {"path": "x"}


def test_an_unknown_tool_unlike_any_names_all_and_guesses_none() -> None:
    error = invalid("\x1b[31mqqqq\n" * 1_000, "{broken")
    assert error.problem.kind is FailureKind.UNKNOWN_TOOL
    assert "Did you mean" not in error.problem.message
    assert "\x1b" not in error.problem.message
    assert len(error.problem.message) < 600


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ('{"path": "a.py"', ["breaks off", "line 1, column 16"]),
        ('{"path": "a.py', ["breaks off"]),
        ('{"path": "a" "limit": 3}', ["expecting ',' delimiter", 'near "']),
        ("{'path': 'a'}", ["double quotes"]),
        ('{"path": "a\nb"}', ["raw control character", "\\n"]),
        ('{"path": "a"} and more', ["more text after the end"]),
        ('{"path": "a"}{"path": "b"}', ["more text after the end"]),
        ("path=a.py", ["not valid JSON"]),
        ('{"path": "a", "path": "b"}', ['"path" is given twice']),
        ('{"path": "a", "limit": NaN}', ["NaN is not JSON"]),
        ('{"path": "a", "limit": -Infinity}', ["-Infinity is not JSON"]),
        ('{"path": "a", "limit": 1e999}', ["too large"]),
        ('{"path": "a", "limit": ' + "9" * 5_000 + "}", ["too long"]),
        ("[" * 100_000, ["nested too deeply"]),
        ('{"path": ' + "[" * 80 + "]" * 80 + "}", ["64 levels"]),
        ('{"path": "' + "x" * 4_000_000 + '"}', ["4,000,000 are allowed"]),
        ('{"path": "\\ud800"}', ["surrogate"]),
        ('"{\\"path\\": \\"a\\"}"', ["not a string", "Do not encode"]),
        ("[1]", ["not an array"]),
        ("3", ["not a number"]),
        ("true", ["not a boolean"]),
    ],
)
def test_arguments_that_are_no_json_object_say_where_they_break(raw: str, words: list[str]) -> None:
    error = invalid("read_file", raw)
    assert error.problem.kind is FailureKind.INVALID_TOOL_CALL
    assert error.problem.message.startswith("Invalid call of read_file: ")
    for word in words:
        assert word in error.problem.message
    assert error.problem.input == {}
    assert len(error.problem.message) < 500


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("read_file", {}, ["'path' missing", '"required": ["path"]']),
        ("edit_file", {"path": "a"}, ["'old'", "'new'"]),
        ("read_file", {"path": "a", "limit": "5"}, ["must be an integer", "without quotation marks"]),
        ("read_file", {"path": "a", "offset": 0}, ["at least 1", '"minimum": 1']),
        ("read_file", {"path": "a", "offset": 1.5}, ["must be an integer"]),
        ("read_file", {"path": 3}, ["'path' must be a string, not 3"]),
        (
            "read_file",
            {"file_path": "a"},
            ["'path' missing", "Unknown argument 'file_path'", "did you mean 'path'"],
        ),
        ("read_file", {"path": ""}, ["'path' must not be empty"]),
        ("finish", {"answer": " \n"}, ["'answer' must not be empty"]),
        ("bash", {"command": "ls", "timeout": 1e6}, ["at most 3600"]),
        ("bash", {"command": ["ls", "-l"]}, ["must be a string"]),
        ("ask_operator", {"question": "?", "options": "yes"}, ["must be an array"]),
        ("ask_operator", {"question": "?", "options": ["a", 3]}, ["'options.1' must be a string"]),
        (
            "edit_file",
            {"path": "a", "old": "a", "new": "b", "replace_all": "true"},
            ["without quotation marks"],
        ),
        ("write_file", {"path": "a", "content": None}, ["'content' must be a string, not null"]),
    ],
)
def test_arguments_that_break_the_schema_name_the_field_and_the_rule(
    name: str, arguments: dict[str, Any], words: list[str]
) -> None:
    error = invalid(name, json.dumps(arguments))
    assert error.problem.kind is FailureKind.INVALID_TOOL_CALL
    for word in words:
        assert word in error.problem.message
    assert error.problem.input == arguments


def test_a_broken_rule_shows_only_the_part_of_the_schema_that_it_is_in() -> None:
    message = invalid("read_file", '{"path": "a", "limit": "5"}').problem.message
    assert '"limit": {' in message
    assert '"offset"' not in message


@pytest.mark.parametrize(
    "raw", ['{"path": "a", "content": "x = [1, 2', '{"path": "a"', "{", "", '{"path": "a", "content": "}']
)
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("write_file", "Write the file in several steps"),
        ("edit_file", "several smaller edits"),
        ("bash", "a shorter command"),
        ("grep", "shorter arguments"),
    ],
)
def test_a_call_cut_by_the_length_limit_says_how_to_write_less(name: str, words: str, raw: str) -> None:
    with pytest.raises(InvalidCall) as caught:
        TOOLS.parse(ToolCall(id="1", name=name, arguments=raw), cut=True)
    assert caught.value.problem.kind is FailureKind.INVALID_TOOL_CALL
    assert "The reply was too long" in caught.value.problem.message
    assert words in caught.value.problem.message
    assert "JSON" not in caught.value.problem.message


def test_a_whole_call_of_a_reply_that_was_cut_is_judged_as_any_other() -> None:
    assert TOOLS.parse(ToolCall(id="1", name="list_dir", arguments='{"path": "a"} '), cut=True).arguments == {
        "path": "a"
    }
    with pytest.raises(InvalidCall, match="'path' missing"):
        TOOLS.parse(ToolCall(id="1", name="read_file", arguments="{}"), cut=True)


@pytest.mark.parametrize("name", ["", "  ", "\n"])
def test_a_call_without_a_name_is_an_invalid_call(name: str) -> None:
    error = invalid(name, '{"path": "x"}')
    assert error.problem.kind is FailureKind.INVALID_TOOL_CALL
    assert error.problem.message.startswith(
        "The call has no name. Send it again with the name of a tool: ask_operator, bash"
    )
    assert error.problem.input == {"path": "x"}


@pytest.mark.parametrize("raw", ["", "  ", "{}", "null"])
def test_a_tool_without_required_arguments_may_be_called_without_any(raw: str) -> None:
    assert TOOLS.parse(ToolCall(id="1", name="list_dir", arguments=raw)).arguments == {}


def test_a_valid_call_is_its_tool_and_arguments() -> None:
    parsed = TOOLS.parse(
        ToolCall(id="1", name="read_file", arguments='{"path": "é\\u00e9\\ud83d\\ude00", "limit": 3}')
    )
    assert parsed.tool is TOOLS.get("read_file")
    assert parsed.arguments == {"path": "éé😀", "limit": 3}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
FIELDS = st.sampled_from(
    [*("path", "content", "old", "new", "limit", "offset", "command", "timeout", "question", "options")]
)


@given(
    st.sampled_from([*NAMES, "nope", ""]),
    st.one_of(
        st.text(),
        JSON.map(json.dumps),
        st.dictionaries(FIELDS, JSON, max_size=4).map(json.dumps),
        st.dictionaries(FIELDS, JSON, max_size=3).map(lambda value: json.dumps(value, ensure_ascii=False)),
        st.text(alphabet='{}[]":,\\u0d8eE+-.1truefalsn \n', max_size=60),
    ),
)
def test_any_call_is_parsed_or_refused_in_words_that_can_be_stored(name: str, raw: str) -> None:
    try:
        parsed = TOOLS.parse(ToolCall(id="1", name=name, arguments=raw))
    except InvalidCall as error:
        failure = Failure(
            kind=error.problem.kind, message=error.problem.message, tool=name, input=error.problem.input
        )
        if raw.isascii():
            assert Failure.model_validate_json(failure.model_dump_json()) == failure
    else:
        assert json.loads(json.dumps(parsed.arguments)) == parsed.arguments


RULES = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["string", "integer", "boolean", "number", "null", ["string", "integer"], 3]),
        "description": st.just("what it is"),
        "minimum": st.just(1),
        "enum": st.just(["a", 1]),
        "pattern": st.just("^a"),
    },
)
SCHEMAS = st.fixed_dictionaries(
    {"type": st.sampled_from(["object", "array", ["object"]])},
    optional={
        "properties": st.dictionaries(FIELDS, RULES | st.booleans(), max_size=3),
        "required": st.lists(FIELDS, max_size=2),
        "additionalProperties": st.booleans(),
        "minProperties": st.just(1),
        "not": st.just({"required": ["path"]}),
    },
)


@given(
    SCHEMAS,
    st.dictionaries(FIELDS, st.sampled_from(["a", "b", 0, 1, 1.0, 0.5, True, None, [], {}]), max_size=3),
)
@example({"type": "object", "properties": {"limit": {"type": "integer"}}}, {"limit": True})
@example({"type": "object", "properties": {"limit": True}}, {"limit": "a"})
@example(
    {"type": "object", "not": {"required": ["path"]}, "properties": {"path": {"type": 3}}}, {"path": "a"}
)
def test_a_call_fits_exactly_where_its_schema_says_so(schema: Any, arguments: Any) -> None:
    class Probe(FinishRun):
        name = "probe"
        parameters: ClassVar[dict[str, Any]] = schema
        accepted: ClassVar[dict[str, Any]] = schema
        uses: ClassVar[Uses] = dict.fromkeys(schema.get("properties", {}), Use.SAYS)

    try:
        right = not [*Draft202012Validator(schema).iter_errors(arguments)]
    except Exception:
        right = True  # nobody can check by such a schema
    call = ToolCall(id="1", name="probe", arguments=json.dumps(arguments))
    if right:
        assert ToolRegistry([Probe()]).parse(call).arguments == arguments
    else:
        with pytest.raises(InvalidCall):
            ToolRegistry([Probe()]).parse(call)


@pytest.mark.parametrize(
    ("name", "arguments"), [("ask_operator", {"question": "?"}), ("finish", {"answer": "done"})]
)
async def test_dialogue_is_carried_out_by_the_loop_alone(
    box: Box, name: str, arguments: dict[str, Any]
) -> None:
    with pytest.raises(OutsideLoopError):
        await box.call(name, **arguments)


def test_the_question_and_its_options_are_previewed(box: Box) -> None:
    tool = TOOLS.get("ask_operator")
    assert tool is not None
    assert tool.preview({"question": "Which?", "options": ["a", "b"]}, box.workspace) == "Which?\n- a\n- b"


def test_limits_reach_the_tools() -> None:
    tool = default_tools(command_timeout=7, output_limit=100).get("bash")
    assert tool is not None
    assert "default 7" in tool.description
    assert tool.parameters["properties"]["timeout"]["maximum"] == 3_600


COPIED = [
    ("read_file", {"path": "path relative to the workspace"}, "path"),
    ("bash_output", {"id": "id of bash output, such as b1"}, "id"),
    ("glob", {"pattern": "The glob, relative to the workspace."}, "pattern"),
    ("write_file", {"path": "a.md", "content": "The whole content of the file."}, "content"),
    ("read_file", {"path": "docs/the workspace.md"}, ""),
    ("bash", {"command": "bash -c ls"}, ""),
    ("bash", {"command": "echo the command as for bash -c is run by the shell"}, ""),
    ("write_file", {"path": "a.md", "content": "The file's content, whole."}, ""),
    ("finish", {"answer": "The answer is final."}, ""),
]


@pytest.mark.parametrize(("tool", "arguments", "copied"), COPIED)
def test_a_description_in_the_place_of_a_value_is_named(
    tool: str, arguments: dict[str, Any], copied: str
) -> None:
    if not copied:
        assert TOOLS.parse(ToolCall(id="1", name=tool, arguments=json.dumps(arguments))).tool.name == tool
        return
    problem = invalid(tool, json.dumps(arguments)).problem
    assert problem.kind is FailureKind.INVALID_TOOL_CALL
    assert f"'{copied}' holds the description of the parameter and no value" in problem.message
