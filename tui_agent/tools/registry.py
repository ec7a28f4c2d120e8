"""The tools of a session by name: what the model is offered, and its calls made sure of before anything
runs.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

from tui_agent.config.sections import WebSettings
from tui_agent.core.events import CallProblem, FailureKind, ToolCall
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.tool_facts import Effect, Use, Uses
from tui_agent.permissions.uses import undeclared
from tui_agent.tools.background import BackgroundCommands, BashOutput, BashStop
from tui_agent.tools.dialogue import AskOperator, FinishRun
from tui_agent.tools.file_checks import FileChecks
from tui_agent.tools.files import EditFile, ReadFile, WriteFile
from tui_agent.tools.find import Glob, Grep, ListDir
from tui_agent.tools.hints import broken_rules, copied_description, unknown_tool
from tui_agent.tools.output import DEFAULT_LIMIT
from tui_agent.tools.plan import UpdatePlan
from tui_agent.tools.shell import DEFAULT_TIMEOUT, Bash
from tui_agent.tools.tool import Tool, uses_of
from tui_agent.tools.web import WebFetch

logger = logging.getLogger(__name__)

_LONGEST = 4_000_000
"""Characters of a call's arguments: more than any file that a model writes in one reply."""
_DEEPEST = 64


@dataclass(frozen=True)
class ParsedCall:
    """A call that fits: its tool, and its arguments valid against the tool's schema."""

    tool: Tool
    arguments: dict[str, Any]


class InvalidCall(Exception):
    """A call that cannot be run, with its `problem`."""

    def __init__(self, kind: FailureKind, message: str, arguments: dict[str, Any], rule: str = "") -> None:
        super().__init__(message)
        self.problem = CallProblem(kind=kind, message=message, input=arguments, rule=rule)


class ToolRegistry:
    """Tools by name. The order is always that of the names, so that requests stay the same for a prompt
    cache.
    """

    def __init__(self, tools: Iterable[Tool], *, hidden: frozenset[str] = frozenset()) -> None:
        """`hidden` tools are neither offered nor named; a call of one is carried out all the same. Raises `ValueError`
        for a tool that does not say what it does.
        """
        self._own = {tool.name: _declared(tool) for tool in sorted(tools, key=lambda tool: tool.name)}
        self._put: dict[str, dict[str, Tool]] = {}
        self._tools, self._hidden = self._own, hidden
        self._validators: dict[str, Any] = {}
        self.version = 0
        """Grows whenever `put` changes what is offered."""

    def put(self, source: str, tools: Iterable[Tool]) -> None:
        """Replace the tools of `source`. They stand behind those that were there from the beginning."""
        given = {tool.name: _declared(tool) for tool in tools if tool.name not in self._own}
        if self._put.get(source) == given:
            return
        self._put[source] = given
        later = {name: tool for put in self._put.values() for name, tool in put.items()}
        self._tools = {**self._own, **{name: later[name] for name in sorted(later)}}
        self._validators.clear()
        self.version += 1

    def hiding(self, *names: str) -> ToolRegistry:
        """The same tools with these hidden."""
        return ToolRegistry(self._tools.values(), hidden=self._hidden.union(names))

    def having(self, tool: Tool) -> ToolRegistry:
        """The same tools and this one."""
        return ToolRegistry((*self._tools.values(), tool), hidden=self._hidden)

    def without(self, name: str) -> ToolRegistry:
        """The same tools but this one, which is not there then."""
        return ToolRegistry((tool for tool in self._tools.values() if tool.name != name), hidden=self._hidden)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all tools that are not hidden, sorted."""
        return tuple(name for name in self._tools if name not in self._hidden)

    @property
    def effects(self) -> dict[str, str]:
        """The effect of each of them, by name."""
        return {name: str(self._tools[name].effect) for name in self.names}

    def get(self, name: str) -> Tool | None:
        """The tool of that name."""
        return self._tools.get(name)

    def specifications(self, without: frozenset[str] = frozenset()) -> list[dict[str, Any]]:
        """The `tools` of a request in OpenAI's form, sorted by name; `without` leaves out tools that are
        open.
        """
        return [
            {
                "type": "function",
                "function": {"name": name, "description": tool.description, "parameters": tool.parameters},
            }
            for name, tool in self._tools.items()
            if name not in without and name not in self._hidden
        ]

    def parse(self, call: ToolCall, *, cut: bool = False) -> ParsedCall:
        """The call as it can be run. Raises `InvalidCall`.

        `cut`: the reply ended at its length limit, so that a call which breaks off is no mistake of form. No
        argument is made to fit: a number in quotation marks is an error that says so. Empty arguments and
        `null` are `{}`, as some servers send them for a call without any.
        """
        arguments, trouble = _read_arguments(call.arguments)
        if not call.name.strip():
            message = f"The call has no name. Send it again with the name of a tool: {', '.join(self.names)}."
            raise InvalidCall(FailureKind.INVALID_TOOL_CALL, message, arguments)
        tool = self._tools.get(call.name)
        if tool is None:
            raise InvalidCall(FailureKind.UNKNOWN_TOOL, unknown_tool(call.name, self.names), arguments)
        if cut and (trouble or not call.arguments.rstrip().endswith("}")):
            message = _cut_off(tool, len(call.arguments))
            raise InvalidCall(FailureKind.INVALID_TOOL_CALL, message, {}, Rule.FORM_CUT)
        if trouble:
            message = f"Invalid call of {tool.name}: {trouble}"
            raise InvalidCall(FailureKind.INVALID_TOOL_CALL, message, arguments)
        errors = self._errors(tool, arguments)
        if errors:
            message = f"Invalid call of {tool.name}: {broken_rules(errors, tool.parameters)}"
            raise InvalidCall(FailureKind.INVALID_TOOL_CALL, message, arguments)
        copied = copied_description(tool.name, tool.parameters, arguments)
        if copied:
            message = (
                f"Invalid call of {tool.name}: '{copied}' holds the description of the parameter and no value. "
                "Give the value itself."
            )
            raise InvalidCall(FailureKind.INVALID_TOOL_CALL, message, arguments)
        return ParsedCall(tool, arguments)

    def _errors(self, tool: Tool, arguments: dict[str, Any]) -> list[Any]:
        """Rules of the tool's schema that the arguments break; none if nobody can check by that schema."""
        if _plainly_fits(arguments, _accepted(tool)):
            return []
        try:
            found = self._validator(tool).iter_errors(arguments)
            return sorted(found, key=lambda error: list(map(str, error.path)))
        except Exception:
            logger.debug("the schema of %s cannot be used", tool.name, exc_info=True)
            return []

    def _validator(self, tool: Tool) -> Any:
        if tool.name not in self._validators:
            from jsonschema import Draft202012Validator

            self._validators[tool.name] = Draft202012Validator(_accepted(tool))
        return self._validators[tool.name]


def _accepted(tool: Tool) -> dict[str, Any]:
    """The schema of the arguments that it takes, which may be more than it tells the model of."""
    schema: dict[str, Any] = getattr(tool, "accepted", tool.parameters)
    return schema


_OF_OBJECT = frozenset({"type", "properties", "required", "additionalProperties", "title", "description"})
_OF_VALUE = frozenset({"type", "title", "description", "default", "examples"})
_TYPES = {"string": str, "integer": int, "boolean": bool}


def _plainly_fits(arguments: dict[str, Any], schema: dict[str, Any]) -> bool:
    """True if the arguments fit by their names and types alone. False: a validator, which costs more than all
    that recovery does in a step, has to look.
    """
    properties, required = schema.get("properties"), schema.get("required", [])
    if not _OF_OBJECT.issuperset(schema) or schema.get("type") != "object":
        return False
    if not (isinstance(properties, dict) and isinstance(required, list)):
        return False
    if not all(isinstance(name, str) and name in arguments for name in required):
        return False
    for name, value in arguments.items():
        rules = properties.get(name)
        if not isinstance(rules, dict) or not _OF_VALUE.issuperset(rules):
            return False
        kind = rules.get("type")
        if not isinstance(kind, str) or type(value) is not _TYPES.get(kind):
            return False
    return True


def default_tools(
    command_timeout: float = DEFAULT_TIMEOUT,
    output_limit: int = DEFAULT_LIMIT,
    checks: FileChecks | None = None,
    background: BackgroundCommands | None = None,
    web: WebSettings | None = None,
) -> ToolRegistry:
    """Every tool that a run offers. `command_timeout` in seconds; `output_limit` in characters of one result;
    `checks` run on files that were written, `background` holds the commands that run beside the conversation,
    `web` says what may be fetched.
    """
    background = background or BackgroundCommands()
    checks = checks or FileChecks()
    return ToolRegistry([
        ReadFile(output_limit), WriteFile(checks), EditFile(checks), Glob(output_limit), Grep(output_limit),
        ListDir(output_limit), Bash(command_timeout, output_limit, background=background),
        BashOutput(background), BashStop(background),
        WebFetch(web or WebSettings(), output_limit), AskOperator(), FinishRun(), UpdatePlan(),
    ])  # fmt: skip


def _declared(tool: Tool) -> Tool:
    """The tool, if it says what it may do and what it does with each argument: nothing is let run by its name."""
    effect = getattr(tool, "effect", None)
    missing = undeclared(uses_of(tool), tool.parameters)
    if not isinstance(effect, Effect):
        missing = "it does not say what it may do (`effect`)"
    if missing:
        raise ValueError(f"The tool {tool.name} cannot be registered: {missing}.")
    return tool


def subject_key(tool: Tool | None) -> str:
    """The argument that permission rules look at: a command, an address or a path."""
    uses: Uses = (uses_of(tool) if tool is not None else None) or {}
    return next((key for key, use in uses.items() if use not in {Use.SAYS, Use.ANYTHING}), "url")


def _cut_off(tool: Tool, written: int) -> str:
    """Say what became of a call in whose middle the reply reached its length limit."""
    shorter = getattr(tool, "when_cut", "Send the call again with shorter arguments and less text before it.")
    return (
        f"The reply was too long: it reached its length limit in this call of {tool.name}, after {written:,} "
        f"characters of arguments, so the call is incomplete and nothing was done. {shorter}"
    )


class _RefusedJSONError(ValueError):
    """JSON that Python reads and the events cannot hold, or that says one thing twice."""


def _read_arguments(raw: str) -> tuple[dict[str, Any], str]:
    """The arguments, and what is wrong with them ("": nothing). What is wrong comes with {} unless it can
    be stored.
    """
    if not raw.strip():
        return {}, ""
    if len(raw) > _LONGEST:
        return {}, (
            f"the arguments have {len(raw):,} characters; {_LONGEST:,} are allowed. Write the content in "
            "several steps."
        )
    try:
        value = _DECODER.decode(raw)
    except json.JSONDecodeError as error:
        return {}, _broken_json(raw, error)
    except RecursionError:
        return {}, "the arguments are nested too deeply."
    except ValueError as error:
        reason = (
            str(error) if isinstance(error, _RefusedJSONError) else "a number in the arguments is too long"
        )
        return {}, f"{reason}. Send one JSON object with plain values."
    if _depth(value) > _DEEPEST:
        return {}, f"the arguments are nested more than {_DEEPEST} levels deep."
    if not _storable(raw, value):
        return {}, "the arguments hold half of a surrogate pair (\\ud800 to \\udfff), which is no character."
    if value is None:
        return {}, ""
    if not isinstance(value, dict):
        kind = {str: "a string", list: "an array", bool: "a boolean"}.get(type(value), "a number")
        hint = " Do not encode the object as a string." if isinstance(value, str) else ""
        return {}, f"the arguments must be one JSON object, not {kind}.{hint}"
    return value, ""


def _broken_json(raw: str, error: json.JSONDecodeError) -> str:
    """The place at which the JSON broke, with the text there."""
    if error.msg == "Extra data":
        reason = "there is more text after the end of the JSON object"
    elif error.pos >= len(raw.rstrip()) or error.msg.startswith("Unterminated string"):
        reason = f"it breaks off ({error.msg.lower()})"
    elif error.msg.startswith("Invalid control character"):
        reason = "a string holds a raw control character; write line breaks as \\n and tabs as \\t"
    else:
        reason = error.msg[0].lower() + error.msg[1:]
    near = json.dumps(raw[max(0, error.pos - 30) : error.pos + 30], ensure_ascii=True)
    return (
        f"the arguments are not valid JSON: {reason}, at line {error.lineno}, column {error.colno}, near "
        f"{near}. Send one complete JSON object."
    )


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _RefusedJSONError(f"the key {json.dumps(key[:100])} is given twice")
            seen.add(key)
    return result


def _no_constant(name: str) -> NoReturn:
    raise _RefusedJSONError(f"{name} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise _RefusedJSONError(f"the number {text[:40]} is too large")
    return value


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite)


def _depth(value: Any) -> int:
    """How deep containers are nested, counted without recursion and no further than needed."""
    level, depth = [value], 0
    while level and depth <= _DEEPEST:
        inner: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                inner.extend(item.values())
            elif isinstance(item, list):
                inner.extend(item)
        if not any(isinstance(item, (dict, list)) for item in level):
            break
        level, depth = inner, depth + 1
    return depth


def _storable(raw: str, value: Any) -> bool:
    """True if every string can be kept as UTF-8."""
    if "\\ud" not in raw.casefold() and raw.isascii():
        return True
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
