"""Errors by which a server says that it could not read its own model's call, and those that say something else."""

from __future__ import annotations

from typing import Any

import pytest

from tests.models.test_faults import FACTS, error
from tui_agent.core.names import FaultKind
from tui_agent.models.faults import fault_from
from tui_agent.models.unread_call import unread_call

WROTE = '<function=bash={"command": "ls \'a\'"}</function>'
GROQ = "Failed to call a function. Please adjust your prompt."

UNREAD: dict[str, tuple[str, Any, str]] = {
    "Groq, in the body": (GROQ, {"error": {"message": GROQ, "failed_generation": WROTE}}, WROTE),
    "Groq, in the body's error": (
        GROQ,
        {"message": GROQ, "code": "tool_use_failed", "failed_generation": WROTE},
        WROTE,
    ),
    "Groq, as JSON in the words": (
        'GroqException - {"error":{"message":"x","code":"tool_use_failed","failed_generation":"a \\"b\\"\\n\\u003cc"}}',
        None,
        'a "b"\n<c',
    ),
    "Groq, as Python shows it": (
        "Error code: 400 - {'error': {'code': 'tool_use_failed', 'failed_generation': 'a \"b\"\\n'}}",
        None,
        'a "b"\n',
    ),
    "Groq, without the call": ("tool call validation failed: attempted to call tool 'x'", None, ""),
    "a code alone": ("Bad request", {"code": "tool_use_failed"}, ""),
    "Cerebras": ("Failed to generate tool_calls. Please adjust your prompt.", None, ""),
    "Ollama": ("error parsing tool call: raw='{\"a\": 'b'}]', err=invalid character", None, "{\"a\": 'b'}]"),
    "llama.cpp": ("Failed to parse tool call arguments as JSON: [json.exception] line 1", None, ""),
    "llama.cpp, the whole text": ("Failed to parse input at pos 27: <tool_call>", None, ""),
    "LM Studio": ("Failed to parse tool call: Unexpected end of content", None, ""),
    "a server like them": ("Error while parsing the tool call of the model", None, ""),
    "a text as body": ("Error code: 500", "error parsing tool call: raw='x', err=y", "x"),
}


@pytest.mark.parametrize(("words", "body", "wrote"), UNREAD.values(), ids=UNREAD)
def test_a_call_that_the_server_could_not_read_is_known_with_what_was_written(
    words: str, body: Any, wrote: str
) -> None:
    raised = error("APIError", words, status_code=500, body=body)
    assert unread_call([raised]) == wrote
    fault = fault_from(error("InternalServerError", "outer", raised, status_code=500), FACTS)
    assert (fault.kind, fault.generation) == (FaultKind.BAD_OUTPUT, wrote)


OTHERS = (
    "Failed to parse JSON body of the request",
    "tools.0.custom.name: String should match pattern",
    "model does not support tool calls",
    "An assistant message with 'tool_calls' must be followed by tool messages",
    "Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls'",
    "could not connect to the tool server",
    "Function calling is not enabled for this model",
)


@pytest.mark.parametrize("words", OTHERS)
def test_other_words_about_tools_are_no_call_that_could_not_be_read(words: str) -> None:
    assert unread_call([error("APIError", words, body={"error": {"message": words}})]) is None


@pytest.mark.parametrize("status", [401, 403, 429])
def test_who_asks_and_how_often_is_no_matter_of_the_call(status: int) -> None:
    served = {"litellm_response_headers": {"date": "today"}}
    raised = error("APIError", GROQ, status_code=status, **served)
    assert fault_from(raised, FACTS).generation is None
