"""Tool calls as text, for models that cannot call tools: one fenced call a reply, results as messages of the user.

Pure and in both directions: a conversation with calls becomes one without, and a reply of text becomes a call. What
breaks the form is a malformed call with the reason (`form.text_call`), so that recovery treats it like any other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tui_agent.core.events import CallProblem, FailureKind
from tui_agent.core.projections.history import Message
from tui_agent.core.recovery.form import CALL_AS_TEXT
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.state import RunState

_OPENINGS = re.compile(r"```[ \t]*tool_?call\w*[ \t]*\r?\n?|<tool_call>", re.IGNORECASE)
_JSON_FENCE = re.compile(r"```\w*[ \t]*\r?\n(\s*\{.*?\})\s*```\s*\Z", re.DOTALL)
_LONGEST_SHOWN = 200


@dataclass(frozen=True)
class TextReply:
    """Parts of a reply of text: the words before its call, and the call, if it holds one."""

    text: str
    name: str = ""
    arguments: str = ""
    problem: CallProblem | None = None
    """Why the call cannot be executed."""
    called: bool = False


def writes_calls(state: RunState, model: str) -> bool:
    """True if the model writes its tool calls as text."""
    chosen = state.run.tool_calls
    return model in state.text_models if chosen == "auto" else chosen == "text"


def instructions(tools: Sequence[dict[str, Any]]) -> str:
    """The system prompt's part about the tools, in place of a request's `tools`."""
    lines = [
        "# Tools",
        "You call a tool by ending your reply with one fenced call, and nothing after it:",
        "",
        "```tool_call",
        '{"name": "NAME", "arguments": {"PARAMETER": "VALUE"}}',
        "```",
        "",
        'One call a reply. It is JSON: line breaks inside of a text are written \\n, quotation marks \\". Then stop:',
        "the result comes with the next message. Never write a result yourself. A reply without a call is your answer.",
        "",
        "The tools, with the JSON schema of their arguments:",
    ]
    for tool in tools:
        function = tool["function"]
        schema = json.dumps(function["parameters"], ensure_ascii=False, separators=(",", ":"))
        lines += ["", f"## {function['name']}", str(function["description"]), schema]
    return "\n".join(lines)


def as_text(messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> list[Message]:
    """The messages without calls and results: those became text. Messages of the user never follow each other."""
    names = {
        str(call["id"]): str(call["function"]["name"])
        for message in messages
        for call in message.get("tool_calls") or ()
    }
    said: list[Message] = []
    for message in messages:
        match message["role"]:
            case "system":
                _say(
                    said,
                    "system",
                    f"{message['content']}\n\n{instructions(tools)}" if tools else message["content"],
                )
            case "assistant":
                calls = [_fenced(call["function"]) for call in message.get("tool_calls") or ()]
                words = [str(message["content"])] if message.get("content") else []
                _say(said, "assistant", "\n\n".join([*words, *calls]))
            case "tool":
                name = names.get(str(message.get("tool_call_id")), "the call")
                _say(said, "user", f"Result of {name}:\n{message['content']}")
            case _:
                _say(said, "user", message["content"], message.get("images") or ())
    return said


def _say(said: list[Message], role: str, content: Any, images: Sequence[Any] = ()) -> None:
    last = said[-1] if said else None
    if (
        last is not None
        and last["role"] == role
        and isinstance(last["content"], str)
        and isinstance(content, str)
    ):
        images = (*last.get("images", ()), *images)
        said[-1] = {"role": role, "content": f"{last['content']}\n\n{content}"}
    else:
        said.append({"role": role, "content": content})
    if images:
        said[-1]["images"] = list(images)


def _fenced(function: dict[str, Any]) -> str:
    """A call as the model wrote it, or would have."""
    arguments = str(function["arguments"])
    try:
        read = json.loads(arguments)
    except ValueError:
        read = arguments
    written = json.dumps({"name": function["name"], "arguments": read}, ensure_ascii=False)
    return f"```tool_call\n{written}\n```"


def read(text: str, tools: Sequence[str] = ()) -> TextReply:
    """The call in a reply of text. `tools`: names by which a fence without a label is known to be a call."""
    openings = list(_OPENINGS.finditer(text))
    if not openings:
        return _unlabelled(text, tools)
    before = text[: openings[0].start()].rstrip()
    bodies = list(_bodies(text, openings))
    if len(bodies) > 1:
        raw = "\n".join(bodies)
        return _broken(before, raw, f"The reply holds {len(bodies)} calls; none was executed.")
    return _one(before, bodies[0])


def _bodies(text: str, openings: Sequence[re.Match[str]]) -> Iterator[str]:
    """The text between each opening and its end; a fence may stand inside of the JSON's strings."""
    end = 0
    for opening in openings:
        if opening.start() < end:
            continue
        rest = text[opening.end() :]
        space = len(rest) - len(rest.lstrip())
        try:
            _, length = json.JSONDecoder(strict=False).raw_decode(rest.lstrip())
        except ValueError:
            closing = re.search(r"```|</tool_call>", rest)
            length, space = (closing.start() if closing else len(rest)), 0
        end = opening.end() + space + length
        yield rest[: space + length].strip()


def _unlabelled(text: str, tools: Sequence[str]) -> TextReply:
    """A fence at the end that holds a call of a known tool is one, whatever its label."""
    found = _JSON_FENCE.search(text)
    if found is not None:
        reply = _one(text[: found.start()].rstrip(), found[1].strip())
        if reply.problem is None and reply.name in tools:
            return reply
    return TextReply(text)


def _one(before: str, body: str) -> TextReply:
    try:
        # Weak models break lines inside of strings.
        call = json.loads(body, strict=False)
    except (ValueError, RecursionError) as error:
        return _broken(before, body, f"The call is no JSON ({error}).")
    if not isinstance(call, dict):
        return _broken(before, body, "The call is no JSON object.")
    name = call.get("name", call.get("tool"))
    if not isinstance(name, str) or not name.strip():
        return _broken(before, body, 'The call has no "name".')
    arguments = call.get("arguments", call.get("parameters", {}))
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments, strict=False)
        except ValueError:
            return _broken(before, body, 'The "arguments" are no JSON object.', name.strip())
    if not isinstance(arguments, dict):
        return _broken(before, body, 'The "arguments" are no JSON object.', name.strip())
    return TextReply(before, name.strip(), json.dumps(arguments, ensure_ascii=False), called=True)


def _broken(before: str, raw: str, why: str, name: str = "") -> TextReply:
    shown = raw if len(raw) <= _LONGEST_SHOWN else f"{raw[:_LONGEST_SHOWN]}…"
    problem = CallProblem(
        kind=FailureKind.INVALID_TOOL_CALL,
        message=f"{why} {CALL_AS_TEXT} It was: {shown}",
        rule=Rule.FORM_TEXT_CALL,
    )
    return TextReply(before, name or "tool_call", raw, problem, called=True)
