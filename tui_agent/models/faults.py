"""Failed model calls as typed faults: exceptions of a call, and answers of a server (status, headers, body).

Looks at names, statuses, headers, bodies and the chain of causes only, so it needs neither litellm nor a network. An
exception is unwrapped, and then judged as the answer that it carries. A status of 500 without an answer is never
believed, because litellm invents it for a refused connection, a failing name lookup and missing credentials. The words
are found in `fault_words`, the times in `fault_times`, the kind in `fault_kinds`, the advice in `fault_advice`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from functools import cached_property
from typing import Any

from tui_agent.core.names import FaultKind
from tui_agent.core.values import Fault
from tui_agent.models import fault_kinds
from tui_agent.models.fault_advice import CallFacts, advice
from tui_agent.models.fault_kinds import Told, kind_of
from tui_agent.models.fault_times import asked_wait, reset_in_headers, reset_moment
from tui_agent.models.fault_words import (
    NO_PROVIDER,
    all_words,
    codes_in,
    figures_in,
    innermost,
    readable,
    says_nothing,
    status_in,
    unfolded,
)
from tui_agent.models.http_errors import AnsweredWithError, RefusedAnswerError
from tui_agent.models.masking import masked
from tui_agent.models.unread_call import unread_call

_MESSAGE_LIMIT = 1_500
_JUDGED = 4_000
"""Characters that are judged: what is wrong stands at the beginning or at the end."""

_MAY_WAIT = {
    *(FaultKind.RATE_LIMIT, FaultKind.OVERLOADED, FaultKind.SERVER, FaultKind.QUOTA, FaultKind.TIMEOUT),
    *(FaultKind.USAGE_LIMIT, FaultKind.UNKNOWN),
}
_LIMITS = {FaultKind.RATE_LIMIT, FaultKind.USAGE_LIMIT, FaultKind.OVERLOADED}

_N = r"(\d[\d,]{1,11})"
_WINDOW = tuple(
    re.compile(words.replace("#", _N), re.IGNORECASE)
    for words in (
        r"maximum context length (?:is|of) (?:only )?#",
        r"# maximum context length",
        r"tokens? > # maximum",
        r"maximum number of tokens allowed \(#\)",
        r"available context size \(#",
        r"context length (?:of|is) only #",
        r"\bn_ctx['\"]?\s*[:=]\s*#",
        r"context (?:window|length|size|limit) (?:is|of) #",
        r"token limit: ?#",
        r"range of input length should be \[\d+, ?#\]",
        r"exceeds the limit of #",
        r"must have less than # tokens",
        r"while limit is #",
        r"context (?:length|size) \(#(?: tokens)?\)",
        r"exceed context limit:\s*\d+\s*\+?\s*\d+\s*>\s*#",
        r"maximum allowed length \(#",
        r"context length #\)",
        r"max prompt/context tokens is #",
        r"`max_new_tokens` must be <= #",
        r"max(?:imum)? (?:model |input |prompt )?length(?: exceeded, max length)?[ :]+(?:is )?#",
        r"tokens per (?:minute|min|day) ?(?:\([TR]P[MD]\))?: limit:? #",
        r"limit exceeded: \d+ > #",
    )
)
"""How servers name their window: OpenAI and vLLM, Mistral, Anthropic, Gemini, llama.cpp, LM Studio, Moonshot,
DashScope, GitHub, TGI, Cerebras, SGLang, others."""
_PROMPT = tuple(
    re.compile(words.replace("#", _N), re.IGNORECASE)
    for words in (
        r"prompt is too long: # tokens",
        r"(?:resulted in|requested|request has|prompt contains|the first|you passed) (?:about )?# (?:input )?tokens",
        r"input token count \(#\)",
        r"request \(# tokens\)",
        r"\bn_(?:prompt_tokens|keep)['\"]?\s*[:=]\s*#",
        r"requested:? ~?#",
        r"token count of #",
        r"given: #",
        r"current length is #",
        r"input (?:length )?\(#(?: tokens)?\)",
        r"at least # input tokens",
        r"(?:request contains|text prompt has) # tokens",
        r"total length #",
        r"exceed context limit: #",
        r"limit exceeded: # >",
    )
)

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
_OF_THE_CALLER = {401, 402, 403, 404, 429}
_GARBAGE = {"JSONDecodeError", "UnicodeDecodeError", "DecodingError"}

_WITH_ANSWERS = ("openai", "httpx", "anthropic")
"""Libraries whose exceptions hold the server's own answer."""


def fault_from(error: BaseException, facts: CallFacts, *, now: datetime | None = None) -> Fault:
    """The fault that an exception means. `now` (aware of its zone) is for dates and times of the day."""
    chain = list(_chain(error))
    for each in chain:
        if isinstance(each, RefusedAnswerError):
            return made(each.kind, str(each), facts, todo=each.todo)
        if isinstance(each, AnsweredWithError):
            fault = fault_of_answer(each.status, each.headers, each.body, facts, now=now)
            generation = unread_call([each])
            changes = {"kind": FaultKind.BAD_OUTPUT, "generation": generation}
            return fault if generation is None else fault.model_copy(update=changes)
    names = {cls.__name__ for each in chain for cls in type(each).__mro__}
    bodies = [body for each in chain for body in _bodies(each)]
    headers = {name: value for each in reversed(chain) for name, value in _headers(each).items()}
    answer = _Answer(
        status=_status(chain, names),
        headers=headers,
        bodies=[unfolded(body) for body in bodies],
        code_names=frozenset(
            code.lower() for each in chain if isinstance(code := getattr(each, "code", None), str)
        ),
        names=names,
        with_body=any(getattr(each, "body", None) for each in chain),
        plain="\n".join(dict.fromkeys(str(each) for each in chain)),
    )
    generation = None if answer.status in _OF_THE_CALLER else unread_call(chain)
    kind = _kind(answer, now or _now()) if generation is None else FaultKind.BAD_OUTPUT
    message = _CUT_WORDS if kind is FaultKind.STREAM_CUT and names & _CUT else _plainest(chain)
    # litellm turns Anthropic's 529 into a 500.
    status = None if kind is FaultKind.OVERLOADED and answer.status == 500 else answer.status
    fault = _fault(kind, message, facts, answer, status, now or _now())
    return fault if generation is None else fault.model_copy(update={"generation": generation})


def fault_of_answer(
    status: int, headers: Mapping[str, str], body: object, facts: CallFacts, *, now: datetime | None = None
) -> Fault:
    """The fault that a server's answer means: an error's body (bytes, text or read already), or an error's event in a
    stream under status 200. `now` as for `fault_from`.
    """
    read = unfolded(body)
    answer = _Answer(
        status=status if status >= 400 else status_in(read),
        headers={str(name).lower(): str(value) for name, value in headers.items()},
        bodies=[read],
        in_stream=status < 400,
    )
    kind = kind_of(_told(answer, now or _now()))
    message = (
        readable(body if isinstance(body, str) else innermost(read)) or f"the server answered with {status}"
    )
    return _fault(kind, message, facts, answer, status if status >= 400 else answer.status, now or _now())


def fault_of_words(words: str, status: int | None, *, now: datetime | None = None) -> Fault:
    """The fault that a recorded sentence tells of. It has no advice: nobody can do anything about it any more."""
    now, answer = now or _now(), _Answer(status=status, headers={}, bodies=[unfolded(words)])
    kind = kind_of(_told(answer, now))
    return _fault(kind, readable(words), CallFacts(""), answer, status, now).model_copy(update={"advice": ""})


def _now() -> datetime:
    return datetime.now().astimezone()


@dataclass(frozen=True)
class _Answer:
    """The server's answer in one form, whichever library tells of it."""

    status: int | None
    """As a server sent it; None if a library made it up."""
    headers: Mapping[str, str]
    bodies: list[Any]
    code_names: frozenset[str] = frozenset()
    names: set[str] | frozenset[str] = frozenset()
    """Names of the classes of exceptions."""
    plain: str = ""
    """The words of the exceptions."""
    with_body: bool = False
    """The server said something itself."""
    in_stream: bool = False
    """An event in a stream that began well."""

    @cached_property
    def text(self) -> str:
        """All words in it, or the first and the last of very many."""
        words = "\n".join(dict.fromkeys(words for body in self.bodies if (words := all_words(body))))
        return words if len(words) <= _JUDGED else f"{words[: _JUDGED // 2]}\n{words[-_JUDGED // 2 :]}"

    @property
    def figures(self) -> dict[str, float | str]:
        found: dict[str, float | str] = {}
        for body in reversed(self.bodies):
            found |= figures_in(body)
        return found


def _fault(
    kind: FaultKind, message: str, facts: CallFacts, answer: _Answer, status: int | None, now: datetime
) -> Fault:
    text = answer.text
    wait = asked_wait(answer.headers, answer.figures, text, now) if kind in _MAY_WAIT else None
    resets_at = None
    if kind in _LIMITS:
        by_header = reset_in_headers(answer.headers, now)
        wait = by_header if wait is None and kind is not FaultKind.OVERLOADED else wait
    if kind is FaultKind.USAGE_LIMIT:
        moment = reset_moment(answer.figures, text, _theirs(answer, now))
        resets_at = moment.timestamp() if moment is not None else None
        if resets_at is None and wait is not None and wait < fault_kinds.LONGEST_LIMIT:
            resets_at = now.timestamp() + wait
    fault = made(kind, message, facts, status=status, retry_after=wait, resets_at=resets_at, text=text)
    if kind not in {FaultKind.CONTEXT_OVERFLOW, FaultKind.RATE_LIMIT}:
        return fault
    told = f"{answer.plain[:_JUDGED]}\n{text}\n{str(answer.bodies)[:_JUDGED]}"
    window, prompt = _figure(_WINDOW, told), _figure(_PROMPT, told)
    if kind is FaultKind.RATE_LIMIT and not (window and prompt and prompt > window):
        return fault
    return fault.model_copy(update={"window": window, "prompt_tokens": prompt})


def _theirs(answer: _Answer, now: datetime) -> datetime:
    """The provider's own zone, for times that it says without one."""
    beijing = any(codes_in(body) & _OF_BEIJING for body in answer.bodies)
    return now.astimezone(timezone(timedelta(hours=8))) if beijing else now


_OF_BEIJING = frozenset({"1308", "1310", *(str(number) for number in range(1316, 1322))})
"""Codes of Z.ai's limits, which name the reset as clocks in Beijing show it."""


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
    resets_at: float | None = None,
    todo: str = "",
    text: str = "",
) -> Fault:
    """A fault with its advice (or `todo`), no secret in it and nothing endless. `retry_after` in seconds, `resets_at`
    in seconds since 1970; `text` is all that the server said.
    """
    return Fault(
        kind=kind,
        message=_sentence(masked(message)),
        advice=todo or masked(advice(kind, facts, text or message)),
        status=status,
        retry_after=retry_after,
        resets_at=resets_at,
        asked=masked(facts.asked),
    )


def _sentence(words: str) -> str:
    """Not endless, and with a full stop, for an advice comes behind it."""
    if len(words) >= _MESSAGE_LIMIT:
        return words[: _MESSAGE_LIMIT - 1] + "…"
    return words if not words or words.endswith((".", "!", "?", "…")) else f"{words}."


# --- the kind -----------------------------------------------------------------------------------------------------


def _kind(answer: _Answer, now: datetime) -> FaultKind:
    names = answer.names
    if "MidStreamFallbackError" in names:
        return _kind_in_stream(answer, now)
    if _REPEATING in answer.plain:
        return FaultKind.BAD_OUTPUT
    if NO_PROVIDER.search(answer.plain):
        return FaultKind.NOT_FOUND
    if _UNEXPECTED in answer.plain:
        # litellm calls it a status 400. What a server says of itself in its stream is the server's.
        kind = kind_of(_told(replace(answer, status=None, in_stream=True), now))
        if kind is not FaultKind.UNKNOWN:
            return kind
        return FaultKind.UNKNOWN if _ERROR_IN_LINE.search(answer.plain) else FaultKind.BAD_OUTPUT
    if answer.status not in {413, 429}:
        if "ContextWindowExceededError" in names:
            return FaultKind.CONTEXT_OVERFLOW
        if "ContentPolicyViolationError" in names:
            return FaultKind.CONTENT_POLICY
    told = _told(answer, now)
    if answer.status is not None:
        return kind_of(told)
    return fault_kinds.of_refusal(told) or _kind_by_chain(names) or kind_of(told)


def _kind_in_stream(answer: _Answer, now: datetime) -> FaultKind:
    """A stream broke: what it broke on says more than any status."""
    families = (
        (_GARBAGE, FaultKind.BAD_OUTPUT),
        (_CUT, FaultKind.STREAM_CUT),
        (_SILENT, FaultKind.TIMEOUT),
    )
    broke = next((kind for names, kind in families if answer.names & names), None)
    if broke is not None:
        return broke
    kind = kind_of(_told(answer, now))
    if kind is FaultKind.UNKNOWN:
        return kind if answer.with_body else FaultKind.STREAM_CUT
    return FaultKind.STREAM_CUT if kind is FaultKind.SERVER and answer.status is None else kind


def _told(answer: _Answer, now: datetime) -> Told:
    text = answer.text
    told = Told(
        text=text,
        status=answer.status,
        codes=answer.code_names.union(*(codes_in(body) for body in answer.bodies)),
        wait=asked_wait(answer.headers, answer.figures, text, now),
        by_sense=answer.status is not None or answer.in_stream,
    )
    if told.wait is None and kind_of(told) is FaultKind.RATE_LIMIT:
        wait = reset_in_headers(answer.headers, now)
        moment = reset_moment(answer.figures, text, now) if wait is None else None
        return replace(told, wait=wait if moment is None else (moment - now).total_seconds())
    return told


def _kind_by_chain(names: set[str] | frozenset[str]) -> FaultKind | None:
    families = (
        (_REFUSED, FaultKind.CONNECTION),
        (_CUT, FaultKind.STREAM_CUT),
        (_SILENT, FaultKind.TIMEOUT),
        (_GARBAGE, FaultKind.BAD_OUTPUT),
        ({"APIConnectionError"}, FaultKind.CONNECTION),
        ({"AuthenticationError"}, FaultKind.AUTH),
        ({"BadRequestError", "UnsupportedParamsError"}, FaultKind.BAD_REQUEST),
    )
    return next((kind for family, kind in families if names & family), None)


# --- exceptions -----------------------------------------------------------------------------------------------------


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


def _answered(error: BaseException) -> Any:
    """The server's own answer, if the exception holds one; litellm's are made up."""
    own = type(error).__module__.partition(".")[0] in _WITH_ANSWERS
    return getattr(error, "response", None) if own else None


def _status(chain: list[BaseException], names: set[str]) -> int | None:
    """A status that a server really sent: one with headers, or one that litellm does not make up."""
    invented = {500, 503} if "MidStreamFallbackError" in names else {500}
    for each in chain:
        status = getattr(each, "status_code", None)
        if not isinstance(status, int) or not 400 <= status < 600:
            continue
        timed_out = status == 408 and names & _SILENT and not _headers(each)
        if _headers(each) or _answered(each) is not None or (status not in invented and not timed_out):
            return status
    return None


def _headers(error: BaseException) -> dict[str, str]:
    """Headers of the server's answer: litellm keeps them in a place of its own."""
    answer = _answered(error)
    found = getattr(error, "litellm_response_headers", None) or getattr(answer, "headers", None)
    if not found:
        return {}
    pairs = found.items() if isinstance(found, Mapping) or hasattr(found, "items") else ()
    return {str(name).lower(): str(value) for name, value in pairs}


def _bodies(error: BaseException) -> Iterator[object]:
    """Forms of the answer's body in the exception, the most exact first."""
    answer = _answered(error)
    if answer is not None:
        with suppress(Exception):  # a stream's body was not read
            yield answer.text
    body = getattr(error, "body", None)
    if isinstance(body, dict | list | str | bytes) and body:
        yield body
    yield str(error)


def _plainest(chain: list[BaseException]) -> str:
    """The words of the outermost exception that says something; for a lost connection the innermost, which names the
    cause.
    """
    deepest = chain[-1]
    if isinstance(deepest, OSError) and str(deepest):
        outer = readable(str(chain[0])).rstrip(".")
        inner = str(deepest)
        return inner if inner in outer or not outer else f"{outer}: {inner}"
    found = [
        words
        for each in chain
        for body in _bodies(each)
        if (words := readable(body if isinstance(body, str) else innermost(unfolded(body))))
    ]
    return next(
        (words for words in found if not says_nothing(words)), next(iter(found), type(chain[0]).__name__)
    )
