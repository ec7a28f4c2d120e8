"""Exceptions of a model call turned into typed faults.

Looks at names, statuses, headers and the chain of causes only, so it needs neither litellm nor a network.
The order is: unwrap, then status and headers, then the chain, then the code in the body; a status of 500 is
never believed alone, because litellm invents it for a refused connection, a failing name lookup and missing
credentials. The advice is in `fault_advice`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from tui_agent.core.names import FaultKind
from tui_agent.core.values import Fault
from tui_agent.models.fault_advice import CallFacts, advice
from tui_agent.models.fault_words import NO_PROVIDER, readable
from tui_agent.models.http_guard import RefusedAnswerError
from tui_agent.models.masking import masked

_MESSAGE_LIMIT = 1_500

_BY_STATUS = {
    401: FaultKind.AUTH,
    402: FaultKind.QUOTA,
    403: FaultKind.PERMISSION,
    404: FaultKind.NOT_FOUND,
    408: FaultKind.TIMEOUT,
    409: FaultKind.SERVER,
    # The remedy of a request that is too large is the same as that of a prompt that is too long.
    413: FaultKind.CONTEXT_OVERFLOW,
    425: FaultKind.SERVER,
    429: FaultKind.RATE_LIMIT,
    504: FaultKind.TIMEOUT,
    529: FaultKind.OVERLOADED,
}

_QUOTA = re.compile(
    r"insufficient[_ ](quota|balance|credit)|exceeded your current quota|credit balance is too low",
    re.IGNORECASE,
)
_OVERFLOW = re.compile(
    r"context[_ ](length|window|size)|maximum context|prompt is too long|too many (input )?tokens"
    r"|exceeds? (the )?(available )?(context|model'?s? max)|input is too long|reduce the length",
    re.IGNORECASE,
)
_BAD_KEY = re.compile(
    r"api[_ -]?key (is )?(not valid|invalid|missing)|invalid[_ ]api[_ ]?key|incorrect api key|API_KEY_INVALID"
    r"|missing credentials|api_key client option must be set|no api key|missing .{0,40}api[_ ]key",
    re.IGNORECASE,
)
_POLICY = re.compile(
    r"content[_ ](policy|filter|management)|ResponsibleAIPolicy|safety system", re.IGNORECASE
)
_OVERLOADED = re.compile(r"overloaded|server busy|capacity exceeded|no capacity", re.IGNORECASE)
_NO_TOOLS = re.compile(
    r"does(?: not|n't) support (?:tool|function)|no endpoints found that support tool|tools param requires"
    r"|tool choice requires|(?:tool|function)[ _-]?(?:use|call\w*|s) (?:is|are) not (?:supported|enabled|available)"
    r"|does not support parameters: \[?'tools|not support tool|unsupported.{0,20}\btools\b",
    re.IGNORECASE,
)
"""What Ollama, OpenRouter, llama.cpp, vLLM, litellm and others say of a model or server without tool calls."""
_NO_MODEL = re.compile(
    r"model .{0,120}(not found|does not exist|not exist)|unknown model|no such model|invalid model",
    re.IGNORECASE,
)

_WAIT = re.compile(
    r"(?:try again|retry) (?:in|after) (?:(?P<minutes>\d+)m)?(?P<number>\d+(?:\.\d+)?) ?(?P<unit>ms|s|m)",
    re.IGNORECASE,
)
"""How providers say in words how long to wait: `in 1.5s`, `in 6m0s`, `in 20 seconds`."""
_RETRY_DELAY = re.compile(r'"retryDelay": ?"(?P<number>\d+(?:\.\d+)?)(?P<unit>s)"')
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0}

_MAY_WAIT = {FaultKind.RATE_LIMIT, FaultKind.OVERLOADED, FaultKind.SERVER, FaultKind.QUOTA, FaultKind.TIMEOUT}

_N = r"(\d[\d,]{1,11})"
_WINDOW = tuple(
    re.compile(words.replace("#", _N), re.IGNORECASE)
    for words in (
        r"maximum context length (?:is|of) #",
        r"# maximum context length",
        r"tokens? > # maximum",
        r"maximum number of tokens allowed \(#\)",
        r"available context size \(#",
        r"context length of only #",
        r"\bn_ctx['\"]?\s*[:=]\s*#",
        r"context (?:window|length|size|limit) (?:is|of) #",
    )
)
"""How servers name their window: OpenAI and vLLM, Mistral, Anthropic, Gemini, llama.cpp, LM Studio, others."""
_PROMPT = tuple(
    re.compile(words.replace("#", _N), re.IGNORECASE)
    for words in (
        r"prompt is too long: # tokens",
        r"(?:resulted in|requested|request has|prompt contains|the first) (?:about )?# (?:input )?tokens",
        r"input token count \(#\)",
        r"request \(# tokens\)",
        r"\bn_(?:prompt_tokens|keep)['\"]?\s*[:=]\s*#",
    )
)

_CODE_ALONE = re.compile(r"Error code: \d{3}\.?\s*$")

_UNEXPECTED = "Got unexpected response from"
_ERROR_IN_LINE = re.compile(_UNEXPECTED + r" \w+: \{['\"]error['\"]")

_CUT_WORDS = "the connection was closed in the middle of the reply"

_REPEATING = "repeating the same chunk"
"""litellm gives up on a model that says the same without end."""

_CUT = {"ReadError", "RemoteProtocolError", "ConnectionResetError", "IncompleteRead", "ClientPayloadError"}
_CUT |= {
    "ServerDisconnectedError",
    "BrokenPipeError",
    "WriteError",
    "ClosedResourceError",
    "TransferEncodingError",
}
_REFUSED = {"ConnectionRefusedError", "gaierror", "ConnectError", "ConnectTimeout", "ClientConnectorError"}
_REFUSED |= {
    "SSLError",
    "SSLCertVerificationError",
    "ClientConnectorDNSError",
    "ProxyError",
    "UnsupportedProtocol",
}
_REFUSED |= {"InvalidURL", "LocalProtocolError"}
_SILENT = {"ReadTimeout", "Timeout", "APITimeoutError", "TimeoutError", "PoolTimeout", "SocketTimeoutError"}
_GARBAGE = {"JSONDecodeError", "UnicodeDecodeError", "DecodingError"}


def fault_from(error: BaseException, facts: CallFacts, *, now: datetime | None = None) -> Fault:
    """The fault that an exception means. `now` (UTC) is for a `Retry-After` that is a date."""
    chain = list(_chain(error))
    for each in chain:
        if isinstance(each, RefusedAnswerError):
            return made(each.kind, str(each), facts, todo=each.todo)
    names = {cls.__name__ for each in chain for cls in type(each).__mro__}
    seen = _Seen(
        names=names,
        status=_status(chain, names),
        retry_after=_retry_after(chain, now or datetime.now(UTC)),
        text="\n".join(dict.fromkeys(str(each) for each in chain)),
        codes=frozenset(_codes(chain)),
        mid_stream="MidStreamFallbackError" in names,
    )
    kind = _kind(seen)
    message = _CUT_WORDS if kind is FaultKind.STREAM_CUT and names & _CUT else readable(_plainest(chain))
    # litellm turns Anthropic's 529 into a 500.
    status = None if kind is FaultKind.OVERLOADED and seen.status == 500 else seen.status
    retry_after = seen.retry_after if kind in _MAY_WAIT else None
    fault = made(kind, message, facts, status=status, retry_after=retry_after)
    if kind is not FaultKind.CONTEXT_OVERFLOW:
        return fault
    # Newer clients leave the body out of the error's words, and llama.cpp has its figures there.
    text = "\n".join([seen.text, *(str(body) for each in chain if (body := getattr(each, "body", None)))])
    figures = {"window": _figure(_WINDOW, text), "prompt_tokens": _figure(_PROMPT, text)}
    return fault.model_copy(update=figures)


def _figure(wordings: tuple[re.Pattern[str], ...], text: str) -> int | None:
    """The first number of tokens that one of the wordings names."""
    for wording in wordings:
        found = wording.search(text)
        if found:
            return int(found[1].replace(",", ""))
    return None


def made(
    kind: FaultKind,
    message: str,
    facts: CallFacts,
    *,
    status: int | None = None,
    retry_after: float | None = None,
    todo: str = "",
) -> Fault:
    """A fault with its advice (or `todo`), no secret in it and nothing endless. `retry_after` in seconds."""
    return Fault(
        kind=kind,
        message=_sentence(masked(message)),
        advice=todo or advice(kind, facts),
        status=status,
        retry_after=retry_after,
    )


def _sentence(words: str) -> str:
    """Not endless, and with a full stop, for an advice comes behind it."""
    if len(words) >= _MESSAGE_LIMIT:
        return words[: _MESSAGE_LIMIT - 1] + "…"
    return words if not words or words.endswith((".", "!", "?", "…")) else f"{words}."


@dataclass(frozen=True)
class _Seen:
    """What the chain of exceptions says."""

    names: set[str]
    status: int | None
    """As a server sent it; None where litellm made it up."""
    retry_after: float | None
    text: str
    codes: frozenset[str]
    mid_stream: bool


def _kind(seen: _Seen) -> FaultKind:
    if seen.mid_stream:
        return _kind_in_stream(seen)
    kind = _kind_by_words(seen)
    if kind is not None:
        return kind
    if seen.status is not None:
        return _kind_by_status(seen.status)
    return _kind_by_chain(seen) or FaultKind.BAD_OUTPUT


def _kind_in_stream(seen: _Seen) -> FaultKind:
    """A stream broke: what it broke on says more than any status."""
    if seen.names & _GARBAGE:
        return FaultKind.BAD_OUTPUT
    if seen.names & _CUT:
        return FaultKind.STREAM_CUT
    if seen.names & _SILENT:
        return FaultKind.TIMEOUT
    if _OVERLOADED.search(seen.text):
        return FaultKind.OVERLOADED
    return _kind_by_words(seen) or (
        FaultKind.STREAM_CUT if seen.status is None else _kind_by_status(seen.status)
    )


def _kind_by_words(seen: _Seen) -> FaultKind | None:
    """What class, code or wording settles whatever the status is."""
    if _REPEATING in seen.text:
        return FaultKind.BAD_OUTPUT
    if _UNEXPECTED in seen.text:
        # litellm calls it a status 400. What a server says of itself in its stream is the server's.
        kind = _kind_by_wording(seen.text)
        return kind or (FaultKind.SERVER if _ERROR_IN_LINE.search(seen.text) else FaultKind.BAD_OUTPUT)
    if _NO_TOOLS.search(seen.text):
        return FaultKind.NO_TOOLS
    client_side = seen.status is None or seen.status < 500
    if "ContextWindowExceededError" in seen.names or "context_length_exceeded" in seen.codes:
        return FaultKind.CONTEXT_OVERFLOW
    if "ContentPolicyViolationError" in seen.names or "content_filter" in seen.codes:
        return FaultKind.CONTENT_POLICY
    if "insufficient_quota" in seen.codes:
        return FaultKind.QUOTA
    # Gemini calls its limits by the minute a quota as well, and says when they end.
    if client_side and seen.retry_after is None and _QUOTA.search(seen.text):
        return FaultKind.QUOTA
    if "overloaded_error" in seen.codes or "overloaded_error" in seen.text:
        return FaultKind.OVERLOADED
    if seen.status in {None, 400, 422}:
        return _kind_by_wording(seen.text)
    if seen.status in {429, 503} and _OVERLOADED.search(seen.text):
        return FaultKind.OVERLOADED
    return None


def _kind_by_wording(text: str) -> FaultKind | None:
    """For a 400 and for what has no status: servers put many things into it."""
    wordings = (
        (NO_PROVIDER, FaultKind.NOT_FOUND),
        (_BAD_KEY, FaultKind.AUTH),
        (_OVERFLOW, FaultKind.CONTEXT_OVERFLOW),
        (_POLICY, FaultKind.CONTENT_POLICY),
        (_NO_MODEL, FaultKind.NOT_FOUND),
    )
    return next((kind for wording, kind in wordings if wording.search(text)), None)


def _kind_by_status(status: int) -> FaultKind:
    known = _BY_STATUS.get(status)
    if known is not None:
        return known
    return FaultKind.SERVER if status >= 500 else FaultKind.BAD_REQUEST


def _kind_by_chain(seen: _Seen) -> FaultKind | None:
    families = (
        (_REFUSED, FaultKind.CONNECTION),
        (_CUT, FaultKind.STREAM_CUT),
        (_SILENT, FaultKind.TIMEOUT),
        (_GARBAGE, FaultKind.BAD_OUTPUT),
        ({"APIConnectionError"}, FaultKind.CONNECTION),
        ({"AuthenticationError"}, FaultKind.AUTH),
        ({"BadRequestError", "UnsupportedParamsError"}, FaultKind.BAD_REQUEST),
    )
    return next((kind for names, kind in families if seen.names & names), None)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The exception and all that it came from, each once, outermost first."""
    waiting: list[BaseException | None] = [error]
    seen: set[int] = set()
    while waiting:
        each = waiting.pop(0)
        if not isinstance(each, BaseException) or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        waiting += [getattr(each, "original_exception", None), each.__cause__, each.__context__]


def _status(chain: list[BaseException], names: set[str]) -> int | None:
    """A status that a server really sent: one with headers, or one that litellm does not make up."""
    invented = {500, 503} if "MidStreamFallbackError" in names else {500}
    for each in chain:
        status = getattr(each, "status_code", None)
        if not isinstance(status, int) or not 400 <= status < 600:
            continue
        timed_out = status == 408 and names & _SILENT and not _headers(each)
        if _headers(each) or (status not in invented and not timed_out):
            return status
    return None


def _headers(error: BaseException) -> dict[str, str]:
    """Headers of the server's answer: litellm keeps them in a place of its own."""
    found = getattr(error, "litellm_response_headers", None)
    if not found:
        return {}
    pairs = found.items() if isinstance(found, Mapping) or hasattr(found, "items") else ()
    return {str(name).lower(): str(value) for name, value in pairs}


def _retry_after(chain: list[BaseException], now: datetime) -> float | None:
    """`Retry-After` in seconds, given as milliseconds, seconds or a date."""
    headers = {name: value for each in reversed(chain) for name, value in _headers(each).items()}
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, headers.get(f"llm_provider-{name}", ""))
        wait = _seconds(value, scale, now)
        if wait is not None and math.isfinite(wait):
            return max(0.0, wait)
    return _wait_in_words("\n".join(str(each) for each in chain))


def _wait_in_words(text: str) -> float | None:
    """The same as the error's text says it, in seconds."""
    found = _RETRY_DELAY.search(text) or _WAIT.search(text)
    if found is None:
        return None
    minutes = found.groupdict().get("minutes")
    return float(found["number"]) * _UNITS[found["unit"].lower()] + 60.0 * int(minutes or 0)


def _seconds(value: str, scale: float, now: datetime) -> float | None:
    """A number or a date, also one in the past (negative); None for what is neither."""
    with suppress(ValueError):
        return float(value) * scale
    with suppress(ValueError, TypeError, OverflowError):
        return (parsedate_to_datetime(value) - now).total_seconds()
    return None


def _codes(chain: list[BaseException]) -> Iterator[str]:
    """Codes and types in the bodies of errors."""
    for each in chain:
        body = getattr(each, "body", None)
        inner = body.get("error", body) if isinstance(body, dict) else None
        parts = [inner.get("code"), inner.get("type")] if isinstance(inner, dict) else []
        for code in (*parts, getattr(each, "code", None)):
            if isinstance(code, str):
                yield code


def _plainest(chain: list[BaseException]) -> str:
    """The outermost text that says something; for a lost connection the innermost, which names the cause."""
    deepest = chain[-1]
    if isinstance(deepest, OSError) and str(deepest):
        outer = readable(str(chain[0])).rstrip(".")
        inner = str(deepest)
        return inner if inner in outer or not outer else f"{outer}: {inner}"
    texts = [str(each) for each in chain]
    if _CODE_ALONE.search(texts[0]):
        # Newer clients say no more than the code and leave what the server wrote in the body.
        texts = [body for each in chain if isinstance(body := getattr(each, "body", None), str)] + texts
    return next((text for text in texts if readable(text)), type(chain[0]).__name__)
