"""Exceptions become typed faults by what they carry, whatever library raised them; and pieces become replies."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import Any

import httpx
import openai
import pytest

from tui_agent.core.events import FaultKind
from tui_agent.core.recovery.model_faults import TRANSIENT
from tui_agent.models.assembly import ReplyAssembler
from tui_agent.models.fault_advice import CallFacts, advice
from tui_agent.models.fault_times import wait_in_words
from tui_agent.models.fault_words import is_error, readable
from tui_agent.models.faults import fault_from, fault_of_answer
from tui_agent.models.http_errors import AnsweredWithError
from tui_agent.models.http_guard import look_for_error
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
        (
            error(MID_STREAM, "x", error("APIError", body="the frobnicator broke"), status_code=500),
            FaultKind.UNKNOWN,
            None,
        ),
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


NESTED = json.dumps({"error": {"message": "prompt is too long: 210000 tokens > 200000 maximum"}})


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            {
                "error": {
                    "message": "Provider returned error",
                    "metadata": {"raw": NESTED, "provider_name": "A"},
                }
            },
            "prompt is too long: 210000 tokens > 200000 maximum (from A).",
        ),
        (
            {"message": json.dumps({"error": {"message": NESTED}})},
            "prompt is too long: 210000 tokens > 200000 maximum.",
        ),
        ([{"error": {"code": 400, "message": "API key not valid."}}], "API key not valid."),
        ({"detail": "Not here"}, "Not here."),
        (
            {
                "detail": [
                    {"loc": ["body", "messages", 0, "content"], "msg": "Input should be a valid string"}
                ]
            },
            "messages.0.content: Input should be a valid string.",
        ),
        ({"error": "Bad Request", "message": "the role is unknown"}, "the role is unknown."),
        ({"object": "error", "message": "no such role", "code": 400}, "no such role."),
        ({"code": "1113", "msg": "Insufficient balance"}, "Insufficient balance."),
        ({"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}, "insufficient balance."),
        (
            {"errors": {"Messages": ["The field is required."]}, "title": "error"},
            "Messages: The field is required.",
        ),
        ({"error": {"message": "", "code": "model_cold"}}, "model_cold."),
        ("<Error><Code>AccessDenied</Code><Message>Not for you</Message></Error>", "Not for you."),
        (
            "<html><title>502 Bad Gateway</title></html>",
            "the server answered with a web page (502 Bad Gateway).",
        ),
        ('event: error\ndata: {"error": {"message": "it broke"}}\n\n', "it broke."),
        ('b\'{"error": {"message": "in bytes"}}\'', "in bytes."),
        ('{"error": {"message": "cut off", "type": "x"', "cut off."),
        ("plain words", "plain words."),
        ({"weird": "frobnicated"}, "weird: frobnicated."),
        ("\n----\nWhile executing CallExpression\nError: Jinja Exception: roles!", "Jinja Exception: roles!"),
        ("[" * 50_000, "the server answered with 400."),
        ("", "the server answered with 400."),
    ],
)
def test_an_error_says_its_innermost_words(body: object, words: str) -> None:
    sent = body if isinstance(body, str) else json.dumps(body)
    assert fault_of_answer(400, {}, sent.encode(), FACTS).message == words


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ({"error": "the frobnicator broke"}, FaultKind.UNKNOWN),
        ({"error": {"message": "Overloaded", "type": "overloaded_error"}}, FaultKind.OVERLOADED),
        (
            {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
            FaultKind.OVERLOADED,
        ),
        (
            {"object": "error", "message": "maximum context length is 10 tokens", "code": 400},
            FaultKind.CONTEXT_OVERFLOW,
        ),
        ({"code": 1302, "msg": "Rate limit reached"}, FaultKind.RATE_LIMIT),
        (
            {"error": {"code": 502, "message": "Bad gateway"}, "choices": [{"finish_reason": "error"}]},
            FaultKind.SERVER,
        ),
        ({"detail": "Not Found"}, FaultKind.NOT_FOUND),
    ],
    ids=str,
)
def test_an_error_event_under_a_status_of_success_is_known_and_judged(event: Any, kind: FaultKind) -> None:
    assert is_error(event)
    fault = fault_of_answer(200, {}, event, FACTS)
    assert fault.kind is kind
    assert fault.message


@pytest.mark.parametrize(
    "event",
    [
        {"choices": []},
        {"id": "1", "object": "chat.completion.chunk", "choices": [{"delta": {"content": "error"}}]},
        {"error": None, "choices": [{"delta": {}}]},
        {"error": {}, "usage": {}},
        {"code": 0, "message": "ok"},
        {},
        [],
        "error",
    ],
    ids=str,
)
def test_a_piece_of_a_reply_is_no_error(event: object) -> None:
    assert not is_error(event)


def test_a_librarys_own_exception_is_judged_by_the_answer_that_it_holds() -> None:
    request = httpx.Request("POST", "http://127.0.0.1:1/v1/chat/completions")
    body = {"error": {"message": "Provider returned error", "code": 429, "metadata": {"raw": NESTED}}}
    answer = httpx.Response(400, headers={"Retry-After": "7"}, json=body, request=request)
    fault = fault_from(openai.BadRequestError("Error code: 400", response=answer, body=body["error"]), FACTS)
    assert (fault.kind, fault.status, fault.window) == (FaultKind.CONTEXT_OVERFLOW, 400, 200_000)
    busy = httpx.Response(500, headers={"retry-after-ms": "250"}, text="it broke", request=request)
    fault = fault_from(openai.InternalServerError("Error code: 500", response=busy, body=None), FACTS)
    assert (fault.kind, fault.status, fault.retry_after, fault.message) == (
        FaultKind.SERVER,
        500,
        0.25,
        "it broke.",
    )
    away = openai.APIConnectionError(request=request)
    away.__cause__ = httpx.ConnectError("refused")
    assert fault_from(away, FACTS).kind is FaultKind.CONNECTION
    assert fault_from(openai.APITimeoutError(request=request), FACTS).kind is FaultKind.TIMEOUT


@pytest.mark.parametrize(
    ("headers", "seconds", "kind"),
    [
        (
            {"x-ratelimit-reset-requests": "20ms", "x-ratelimit-remaining-requests": "0"},
            0.02,
            FaultKind.RATE_LIMIT,
        ),
        (
            {
                "x-ratelimit-reset-requests": "6m0s",
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-tokens": "1s",
                "x-ratelimit-remaining-tokens": "9",
            },
            360.0,
            FaultKind.USAGE_LIMIT,
        ),
        (
            {
                "anthropic-ratelimit-tokens-reset": "2026-03-01T12:00:30Z",
                "anthropic-ratelimit-tokens-remaining": "0",
            },
            30.0,
            FaultKind.RATE_LIMIT,
        ),
        (
            {
                "anthropic-ratelimit-unified-reset": "1772370000",
                "anthropic-ratelimit-unified-status": "rejected",
            },
            3_600.0,
            FaultKind.USAGE_LIMIT,
        ),
        (
            {"X-RateLimit-Reset": "1772370000000", "X-RateLimit-Remaining": "0"},
            3_600.0,
            FaultKind.USAGE_LIMIT,
        ),
        ({"Retry-After": "3s"}, 3.0, FaultKind.RATE_LIMIT),
        ({"Retry-After": "1m30s"}, 90.0, FaultKind.RATE_LIMIT),
        ({"Retry-After": "2026-03-01T12:01:00Z"}, 60.0, FaultKind.RATE_LIMIT),
        ({"Retry-After": "7200"}, 7_200.0, FaultKind.USAGE_LIMIT),
    ],
)
def test_headers_say_when_a_limit_resets(headers: dict[str, str], seconds: float, kind: FaultKind) -> None:
    fault = fault_of_answer(429, headers, b"slow", FACTS, now=NOW)
    assert (fault.kind, fault.retry_after) == (kind, pytest.approx(seconds))
    at = pytest.approx(NOW.timestamp() + seconds) if kind is FaultKind.USAGE_LIMIT else None
    assert fault.resets_at == at


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("Please try again in 20 milliseconds.", 0.02),
        ("Please try again in 357ms", 0.357),
        ("try again in 6m0s", 360.0),
        ("Please try again in 1h12m0.5s", 4_320.5),
        ("try again in 1d 2h", 93_600.0),
        ("try again in 2 hours 13 minutes", 7_980.0),
        ("try again in 2 hours and 13 minutes", 7_980.0),
        ("please try again after 1 seconds", 1.0),
        ("Retry after 02:13:00", 7_980.0),
        ("try again in an hour", 3_600.0),
        ("retry after 12", 12.0),
        ("请在 60 秒后重试", 60.0),
        ("wait for limits to reset (every 5h and every week.)", None),
        ("wait a moment and try again", None),
        ("limit 10 requests per 5 minutes", None),
        ("self._request(timeout=30, retry=3)", None),
    ],
)
def test_a_wait_is_read_in_words_and_units(words: str, seconds: float | None) -> None:
    assert wait_in_words(words) == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    ("base", "body", "says"),
    [
        (
            "http://box:1",
            '{"error": "Unexpected endpoint or method. (POST /chat/completions)"}',
            "http://box:1/v1.",
        ),
        ("http://box:1", "<html><title>Welcome</title></html>", "http://box:1/v1."),
        ("http://box:1/v1", '{"error": "No models loaded. Please load a model"}', "lms load"),
        ("http://box:1/v1", '{"error": "model \'x\' not found, try pulling it first"}', "ollama pull"),
        (
            "http://box:1/v1",
            "auto tool choice requires --enable-auto-tool-choice",
            "--enable-auto-tool-choice and",
        ),
        ("http://box:1/v1", "tools param requires --jinja flag", "llama-server with --jinja"),
        ("http://box:1/v1", "no tool call parser is set", "SGLang with --tool-call-parser"),
        ("http://box:1/v1", "x does not support tools", "ollama show"),
    ],
)
def test_the_advice_says_what_to_do_with_the_server(base: str, body: str, says: str) -> None:
    fault = fault_of_answer(200, {}, body, CallFacts("openai/m", "openai", base))
    assert says in fault.advice
    assert fault.asked == f"openai/m at {base}"


@pytest.mark.parametrize("status", [498, 499, 424, 425, 409, 503, 520])
def test_statuses_of_proxies_may_pass(status: int) -> None:
    assert fault_of_answer(status, {}, b"x", FACTS).kind in TRANSIENT


def test_a_limit_by_the_minute_that_the_request_alone_exceeds_names_both() -> None:
    words = "Request too large on tokens per minute (TPM): Limit 6000, Requested 7201"
    fault = fault_of_answer(413, {}, words, FACTS)
    assert (fault.kind, fault.window, fault.prompt_tokens) == (FaultKind.RATE_LIMIT, 6_000, 7_201)
    fits = "Rate limit reached on tokens per minute (TPM): Limit 6000, Used 5000, Requested 2000. Try again in 2s"
    assert fault_of_answer(429, {}, fits, FACTS).window is None


async def looked_at(path: str, body: object, **headers: str) -> None:
    answer = httpx.Response(200, json=body)
    answer.headers.update({"content-length": "99", **headers})
    await look_for_error(httpx.Request("POST", f"http://127.0.0.1:1{path}"), answer)


async def test_an_error_under_a_status_of_success_is_seen_before_a_library_reads_it_as_nothing() -> None:
    error = {"error": "Unexpected endpoint or method."}
    with pytest.raises(AnsweredWithError) as raised:
        await looked_at("/chat/completions", error)
    fault = fault_from(raised.value, CallFacts("openai/m", "openai", "http://127.0.0.1:1"))
    assert (fault.kind, fault.message) == (FaultKind.NOT_FOUND, "Unexpected endpoint or method.")
    assert "/v1" in fault.advice
    # Neither a reply, nor a stream, nor what is asked beside the calls.
    await looked_at("/v1/chat/completions", {"choices": []})
    await looked_at("/v1/chat/completions", error, **{"content-type": "text/event-stream"})
    await looked_at("/api/show", error)


def test_a_hostile_error_is_judged_in_little_time() -> None:
    for words in ("a" * 64_000, '"message": "' * 5_000, "<Code>" * 10_000, "limit\n" * 10_000, "1 " * 30_000):
        begun = time.process_time()
        fault_of_answer(429, {}, words, FACTS)
        assert time.process_time() - begun < 3.0


def test_a_message_has_an_end() -> None:
    assert len(fault_from(error("APIError", "x" * 100_000, status_code=400), FACTS).message) <= 1_500


def test_a_chain_that_bites_its_tail_is_followed_once() -> None:
    first, second = error("ReadError"), error(MID_STREAM)
    first.__cause__, second.__cause__ = second, first
    assert fault_from(second, FACTS).kind is FaultKind.STREAM_CUT


# --- reasoning in the text ---------------------------------------------------------------------------------

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
    "Magistral": ("[THINK]Nine?[/THINK]Nine.", "Nine.", "Nine?"),
    "Kimi": ("◁think▷Nine?◁/think▷Nine.", "Nine.", "Nine?"),
    "Seed": ("<seed:think>Nine?</seed:think>\nNine.", "Nine.", "Nine?"),
    "Command": ("<|START_THINKING|>Nine?<|END_THINKING|>Nine.", "Nine.", "Nine?"),
    "Gemma": ("<|channel>thought\nNine?<channel|>Nine.", "Nine.", "Nine?"),
    "another word": ("<thinking>Nine?</thinking>Nine.", "Nine.", "Nine?"),
    "another end": ("<thinking>Nine?</think>Nine.</thinking>Ten.", "Ten.", "Nine?</think>Nine."),
    "a tag that only begins alike": ("<thoughtful>Nine.", "<thoughtful>Nine.", ""),
    "a list": ("[THIS] is nine.", "[THIS] is nine.", ""),
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
