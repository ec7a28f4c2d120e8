"""Exceptions become typed faults by what they carry, whatever library raised them; and pieces become replies."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from tui_agent.core.events import FaultKind
from tui_agent.models.assembly import ReplyAssembler
from tui_agent.models.fault_advice import CallFacts, advice
from tui_agent.models.fault_words import readable
from tui_agent.models.faults import fault_from
from tui_agent.models.masking import masked

FACTS = CallFacts("openai/gpt-x", "openai")


def error(
    name: str, words: str = "it failed", cause: BaseException | None = None, **attributes: Any
) -> Exception:
    """An exception as a library would raise it: a class name, a text, attributes, a cause."""
    raised: Exception = type(name, (Exception,), attributes)(words)
    raised.__cause__ = cause
    return raised


SERVED = {"litellm_response_headers": {"date": "today"}}
MID_STREAM = "MidStreamFallbackError"


@pytest.mark.parametrize(
    ("raised", "kind", "status"),
    [
        (error("InternalServerError", status_code=500, **SERVED), FaultKind.SERVER, 500),
        (error("InternalServerError", status_code=500), FaultKind.UNKNOWN, None),
        (
            error(
                "InternalServerError",
                "Connection error",
                ConnectionRefusedError(111, "refused"),
                status_code=500,
            ),
            FaultKind.CONNECTION,
            None,
        ),
        (error("InternalServerError", "x", error("gaierror"), status_code=500), FaultKind.CONNECTION, None),
        (error("InternalServerError", "x", error("SSLError"), status_code=500), FaultKind.CONNECTION, None),
        (
            error("InternalServerError", "Missing credentials. Please pass an `api_key`", status_code=500),
            FaultKind.AUTH,
            None,
        ),
        (error("InternalServerError", "overloaded_error", status_code=500), FaultKind.OVERLOADED, None),
        (
            error("InternalServerError", "x", json.JSONDecodeError("a", "b", 0), status_code=500),
            FaultKind.BAD_OUTPUT,
            None,
        ),
        (error("APIError", status_code=402), FaultKind.QUOTA, 402),
        (error("APIError", status_code=403), FaultKind.PERMISSION, 403),
        (error("APIError", status_code=409), FaultKind.SERVER, 409),
        (error("APIError", status_code=413), FaultKind.CONTEXT_OVERFLOW, 413),
        (error("APIError", status_code=418), FaultKind.BAD_REQUEST, 418),
        (error("APIError", status_code=529), FaultKind.OVERLOADED, 529),
        (
            error("ServiceUnavailableError", "we are overloaded", status_code=503, **SERVED),
            FaultKind.OVERLOADED,
            503,
        ),
        (error("RateLimitError", status_code=429), FaultKind.RATE_LIMIT, 429),
        (error("RateLimitError", status_code=429, body={"code": "insufficient_quota"}), FaultKind.QUOTA, 429),
        (
            error("RateLimitError", status_code=429, body={"error": {"code": "insufficient_quota"}}),
            FaultKind.QUOTA,
            429,
        ),
        (error("RateLimitError", "You exceeded your current quota", status_code=429), FaultKind.QUOTA, 429),
        (error("AuthenticationError", status_code=401), FaultKind.AUTH, 401),
        (error("BadRequestError", "API key not valid. Please pass", status_code=400), FaultKind.AUTH, 400),
        (
            error("BadRequestError", "prompt is too long: 9 > 8", status_code=400),
            FaultKind.CONTEXT_OVERFLOW,
            400,
        ),
        (error("ContextWindowExceededError", status_code=400), FaultKind.CONTEXT_OVERFLOW, 400),
        (error("ContentPolicyViolationError", status_code=400), FaultKind.CONTENT_POLICY, 400),
        (error("BadRequestError", "model `x` does not exist", status_code=400), FaultKind.NOT_FOUND, 400),
        (error("BadRequestError", "tools: bad schema", status_code=400), FaultKind.BAD_REQUEST, 400),
        (error("Timeout", status_code=408), FaultKind.TIMEOUT, None),
        (error("Timeout", status_code=408, **SERVED), FaultKind.TIMEOUT, 408),
        (error("ReadTimeout"), FaultKind.TIMEOUT, None),
        (error(MID_STREAM, cause=error("ReadError"), status_code=500), FaultKind.STREAM_CUT, None),
        (error(MID_STREAM, cause=error("TransferEncodingError"), status_code=400), FaultKind.STREAM_CUT, 400),
        (error(MID_STREAM, cause=error("ReadTimeout"), status_code=500), FaultKind.TIMEOUT, None),
        (
            error(MID_STREAM, cause=json.JSONDecodeError("a", "b", 0), status_code=500),
            FaultKind.BAD_OUTPUT,
            None,
        ),
        (
            error(
                MID_STREAM,
                original_exception=error("X", body={"code": "insufficient_quota"}),
                status_code=503,
            ),
            FaultKind.QUOTA,
            None,
        ),
        (error(MID_STREAM, status_code=503), FaultKind.STREAM_CUT, None),
        (error(MID_STREAM, "Overloaded", status_code=503), FaultKind.OVERLOADED, None),
        (
            error("InternalServerError", "overloaded_error", status_code=500, **SERVED),
            FaultKind.OVERLOADED,
            None,
        ),
        (error("AttributeError", "'NoneType' object has no attribute"), FaultKind.UNKNOWN, None),
    ],
    ids=lambda value: f"{type(value).__name__}: {value}" if isinstance(value, Exception) else str(value),
)
def test_an_exception_is_classified_by_what_a_server_really_said(
    raised: Exception, kind: FaultKind, status: int | None
) -> None:
    fault = fault_from(raised, FACTS)
    assert (fault.kind, fault.status) == (kind, status)
    assert fault.message
    assert fault.advice


NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"llm_provider-retry-after": "3"}, 3.0),
        ({"retry-after": "Sun, 01 Mar 2026 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Sun, 01 Mar 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, 0.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "1e999"}, None),
        ({"retry-after-ms": "inf", "retry-after": "2"}, 2.0),
        ({"retry-after": "Sun, 01 Mar 99999999999999999999 12:00:30 GMT"}, None),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, 251629934399.0),
        ({}, None),
    ],
)
def test_retry_after_is_read_where_litellm_keeps_it(headers: dict[str, str], seconds: float | None) -> None:
    raised = error("RateLimitError", status_code=429, litellm_response_headers=headers)
    assert fault_from(raised, FACTS, now=NOW).retry_after == seconds


@pytest.mark.parametrize(
    ("facts", "kind", "words"),
    [
        (CallFacts("gpt-x", "openai"), FaultKind.AUTH, "OPENAI_API_KEY"),
        (CallFacts("claude", "anthropic"), FaultKind.AUTH, "ANTHROPIC_API_KEY"),
        (CallFacts("x", "newcomer"), FaultKind.AUTH, "NEWCOMER_API_KEY"),
        (CallFacts("x", "gemini", key_variables=("A_KEY", "B_KEY")), FaultKind.AUTH, "A_KEY or B_KEY"),
        (CallFacts("gtp-5"), FaultKind.NOT_FOUND, "'gtp-5'"),
        (CallFacts("m", "openai", "http://box:1/v1"), FaultKind.NOT_FOUND, "http://box:1/v1"),
        (CallFacts("m", "openai", "http://box:1/v1"), FaultKind.CONNECTION, "http://box:1/v1"),
        (CallFacts("m", "openai"), FaultKind.TIMEOUT, "--model-timeout"),
        (CallFacts("m", "openai"), FaultKind.CONTEXT_OVERFLOW, "--context-tokens"),
    ],
)
def test_the_advice_names_what_to_set(facts: CallFacts, kind: FaultKind, words: str) -> None:
    assert words in advice(kind, facts)


@pytest.mark.parametrize("kind", FaultKind)
def test_every_kind_has_advice(kind: FaultKind) -> None:
    assert advice(kind, FACTS).endswith(".")


@pytest.mark.parametrize(
    "words",
    [
        "Incorrect API key provided: sk-proj-abcdefghij0123456789",
        "Authorization: Bearer abcdef0123456789",
        "the value of-my-variable was refused",
        "http://me:my-password@host/v1 is down",
    ],
)
def test_no_key_stands_in_a_message(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "of-my-variable")
    fault = fault_from(error("AuthenticationError", words, status_code=401), FACTS)
    for secret in ("abcdefghij", "abcdef0123456789", "of-my-variable", "my-password"):
        assert secret not in fault.message
    assert "•••" in fault.message


def test_short_or_innocent_variables_are_not_masked() -> None:
    assert masked("a big keyboard", {"A_KEY": "big", "PLAIN": "keyboard"}) == "a big keyboard"


@pytest.mark.parametrize(
    ("words", "plain"),
    [
        ("litellm.RateLimitError: RateLimitError: OpenAIException - slow down", "slow down"),
        ("litellm.Timeout: Timeout Error: OpenAIException - too late", "too late"),
        ("APIError: gone Original exception: APIError: gone", "gone"),
        (
            "<!DOCTYPE html><html><title>502 Bad Gateway</title><body>",
            "the server answered with a web page (502 Bad Gateway)",
        ),
        ("Error code: 400 - {'error': {'message': 'no such thing', 'type': None}}", "no such thing"),
        (
            "litellm.BadRequestError: LLM Provider NOT provided. Pass in",
            "no provider is known by this model's name",
        ),
        ('litellm.AuthenticationError: AnthropicException - b\'{"error":{"message":"wrong"}}\'', "wrong"),
        ('{"error": {"type": "a", "message": "no \\"thing\\""}}', 'no "thing"'),
        ('{"error": "plain"}', "plain"),
        ("{not json", "{not json"),
        ("first line\nTraceback: more", "first line"),
        ("", ""),
    ],
)
def test_messages_are_made_readable(words: str, plain: str) -> None:
    assert readable(words) == plain


def test_a_message_has_an_end() -> None:
    assert len(fault_from(error("APIError", "x" * 100_000, status_code=400), FACTS).message) <= 1_500


def test_a_chain_that_bites_its_tail_is_followed_once() -> None:
    first, second = error("ReadError"), error(MID_STREAM)
    first.__cause__, second.__cause__ = second, first
    assert fault_from(second, FACTS).kind is FaultKind.STREAM_CUT


# --- replies from pieces -------------------------------------------------------------------------------------

Piece = tuple[int | None, str | None, str | None, str | None]


@pytest.mark.parametrize(
    ("pieces", "calls"),
    [
        (
            [(0, "a", "bash", ""), (0, None, None, '{"x"'), (0, None, None, ": 1}")],
            [("a", "bash", '{"x": 1}')],
        ),
        (
            [(0, "a", "bash", ""), (1, "b", "grep", ""), (0, None, None, "{}"), (1, None, None, '{"y":2}')],
            [("a", "bash", "{}"), ("b", "grep", '{"y":2}')],
        ),
        # The name, and the id, in every piece.
        ([(0, "a", "bash", "{"), (0, "a", "bash", "}")], [("a", "bash", "{}")]),
        # Another id in every piece of the same call.
        ([(0, "a", "bash", '{"x":'), (0, "b", "bash", "1}")], [("a", "bash", '{"x":1}')]),
        # Every call under the index 0, each whole.
        ([(0, "a", "bash", "{}"), (0, "b", "bash", "{}")], [("a", "bash", "{}"), ("b", "bash", "{}")]),
        ([(None, "a", "bash", "{}")], [("a", "bash", "{}")]),
        ([(0, "a", "bash", None)], [("a", "bash", "{}")]),
        ([(0, "a", None, "{}")], [("a", "", "{}")]),
        ([(0, None, None, "")], []),
    ],
)
def test_calls_are_merged_from_their_pieces(pieces: list[Piece], calls: list[tuple[str, str, str]]) -> None:
    assembler = ReplyAssembler()
    for piece in pieces:
        assembler.add_call(*piece)
    assert [(call.id, call.name, call.arguments) for call in assembler.calls(cut=False)] == calls


TAGGED = {
    "a thought and a text": ("<think>Hm, a < b.</think>\n\nIt is done.", "It is done.", "Hm, a < b."),
    "blanks before it": (" \n<think>\nHm</think>Done", "Done", "\nHm"),
    "a thought alone": ("<think>Hm</think>", "", "Hm"),
    "a thought that was cut": ("<think>Hm, </thi", "", "Hm, </thi"),
    "the beginning of a tag": ("<thi", "<thi", ""),
    "another tag": ("<thin>a</thin>", "<thin>a</thin>", ""),
    "a tag that is talked about": ("Write <think>a</think>.", "Write <think>a</think>.", ""),
    "blanks alone": (" \n", " \n", ""),
    "a second one": ("<think>a</think><think>b</think>c", "<think>b</think>c", "a"),
}


@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize(("sent", "text", "reasoning"), TAGGED.values(), ids=TAGGED)
def test_reasoning_that_a_server_leaves_in_the_text_is_told_from_it(
    sent: str, text: str, reasoning: str, size: int
) -> None:
    assembler = ReplyAssembler()
    shown = [assembler.add(text=sent[at : at + size]) for at in range(0, len(sent), size)]
    assert (assembler.text, assembler.reasoning) == (text, reasoning)
    assert text.startswith("".join(each[0] for each in shown))
    assert reasoning.startswith("".join(each[1] for each in shown))


def test_missing_ids_are_made_and_differ() -> None:
    assembler = ReplyAssembler()
    assembler.add_call(0, None, "bash", "{}")
    assembler.add_call(1, "", "bash", "{}")
    first, second = assembler.calls(cut=False)
    assert first.id
    assert second.id
    assert first.id != second.id


def test_a_call_cut_before_its_arguments_is_not_mistaken_for_a_complete_one() -> None:
    assembler = ReplyAssembler()
    assembler.add_call(0, "a", "bash", '{"command": "ls"}')
    assembler.add_call(1, "b", "list_dir", "")
    assert [call.name for call in assembler.calls(cut=True)] == ["bash"]
    assert [call.name for call in assembler.calls(cut=False)] == ["bash", "list_dir"]
