"""The words of an error, out of whatever they are wrapped in: libraries' names, JSON within JSON, lists, pages, XML.

Words and the facts beside them (codes, statuses, times) only; which kind of fault they mean is decided in
`fault_kinds`.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

NO_PROVIDER = re.compile(r"LLM Provider NOT provided|Unmapped LLM provider", re.IGNORECASE)

_DEEPEST = 14
"""Layers that are looked into."""
_LONGEST = 60_000
"""Characters of a text that is looked into."""
_LONGEST_HEAD = 120
"""Characters of words that may say nothing."""
_LONGEST_CUT = 4_000
"""Characters of a page, or of a broken body, in which a message is looked for."""
_MOST_PARTS = 3
"""Errors of a list that are named."""

_PREFIX = re.compile(r"^(litellm\.)?\w*(Error|Exception|Timeout)( Error)?\s*(:|-)\s*")
_CODE = re.compile(r"^Error code: \d{3} - ")
_ORIGINAL = re.compile(r"\s*(Original exception: .*|Received Model Group=.*)$", re.DOTALL)
_OF_THE_SOCKET = re.compile(r" ssl:(?:<[^>]*>|\w+)| ?\[Connect call failed \([^)]*\)\]")
"""Words of aiohttp about a socket that nobody asked for."""
_ANNOUNCED = re.compile(
    r"(?:api |http |provider |upstream )*"
    r"(?:error|status|exception|response|code|http|(?:'\w+', )?got unexpected response from \w+)?"
    r"(?:[ _]?(?:code|status))?\W*(?:[45]\d\d)?\W*(?:bad request|internal server error|too many requests)?\W*",
    re.IGNORECASE,
)
"""Prefixes of an error's body that say nothing beyond the body and the status."""
_LEFT_OPEN = re.compile(r"""['"](?:message|error)['"]: ?(['"])(.+?)\1(?:, ?['"]|\s*\}|$)""", re.DOTALL)
"""The message in a body that is no JSON, or was cut."""
_EVENT_LINE = re.compile(r"^(?:event|id|retry):.*$|^data: ?", re.MULTILINE)

_OWN = (
    *("message", "msg", "detail", "error_message", "errorMessage", "error_msg", "errorMsg"),
    *("error_description", "status_msg", "statusMessage", "Message", "faultstring", "description", "title"),
    "reason",
)
"""Fields that hold a sentence, the plainest first."""
_INNER = (
    *("raw", "metadata", "error", "errors", "Error", "Errors", "cause", "innererror", "inner_error"),
    *("base_resp", "ResponseMetadata", "fault", "response", "body", "upstream_error", "original_error"),
    *("exception", "err", "details", "data"),
)
"""Fields that hold another error."""
_CODES = frozenset(
    {"code", "type", "status", "error_code", "errorCode", "reason", "__type", "Code", "object"}
)
_NO_WORDS = _CODES | {
    "param",
    "request_id",
    "requestId",
    "id",
    "user_id",
    "@type",
    "url",
    "documentation_url",
}
_STATUSES = ("code", "status", "status_code", "statusCode", "http_status", "Code")

_GENERIC = re.compile(
    r"(?:the |an? )?(?:error from provider(?:: provider returned error)?"
    r"|(?:upstream |model )?provider (?:returned (?:an )?)?error"
    r"|(?:upstream )?(?:request|error|api|http|server)?[ _]?(?:error|failed|failure|exception)"
    r"|request failed(?: with status(?: code)?)?|bad request(?:error)?|invalid[ _]request(?:[ _]error)?"
    r"|an error occurred during streaming|error code"
    r"|internal (?:server )?error|unknown error|(?:an )?(?:unexpected |unknown )?error (?:has )?occurr?ed"
    r"|bad gateway|service unavailable|gateway time-?out|too many requests|unauthorized|forbidden|not found"
    r"|unprocessable entity|badrequesterror|internalservererror|true|false|none|null|failed"
    r"|(?:client|server) error '\d{3} [^']*' for url .*|one or more validation errors occurr?ed)"
    r"\W*(?:\(?[45]\d\d\)?)?\W*",
    re.IGNORECASE,
)
"""Words that are no reason beside another one."""
_A_WORD = re.compile(r"[\w.:/#\-]{1,80}")
_A_CODE = re.compile(r"(?=\w*[_.:/#\d\-]|[A-Z]?[a-z]+[A-Z])[\w.:/#\-]{1,80}")


def readable(message: str) -> str:
    """An exception's text as one line: the innermost words, without the names that libraries put before them."""
    words = _ORIGINAL.sub("", message.strip())
    if NO_PROVIDER.search(words):
        return "no provider is known by this model's name"
    found = innermost(unfolded(_OF_THE_SOCKET.sub("", _without_prefixes(words))))
    return _line(_without_prefixes(found))


def _without_prefixes(words: str) -> str:
    previous = ""
    while previous != words:
        previous, words = words, _CODE.sub("", _PREFIX.sub("", words, count=1).strip(), count=1)
    return words


def _line(words: str) -> str:
    """The line that says what is wrong."""
    lines = [line.strip() for line in words.splitlines() if any(map(str.isalnum, line))]
    if not lines:
        return ""
    raised = [line for line in lines if re.match(r"(?:[\w.]*(?:Error|Exception))\b[^:]{0,40}: \S", line)]
    if raised and lines[0].startswith(("Traceback (most recent", "While executing")):
        return _without_prefixes(raised[-1]) or raised[-1]
    if lines[0].endswith(":") and len(lines) > 1:
        return f"{lines[0]} {lines[1]}"
    return lines[0]


# --- what a text holds ------------------------------------------------------------------------------------------


def unfolded(value: object, depth: int = 0) -> Any:
    """The value with every text in it that is a body itself (JSON, Python's form of it, XML, a page) read as one."""
    if depth > _DEEPEST:
        return value if isinstance(value, str) else ""
    match value:
        case bytes() | bytearray():
            return unfolded(bytes(value).decode("utf-8", "replace"), depth)
        case str():
            return _of_text(value, depth)
        case dict():
            return {str(key): unfolded(each, depth + 1) for key, each in value.items()}
        case list() | tuple():
            return [unfolded(each, depth + 1) for each in value]
    return value


def _of_text(text: str, depth: int) -> Any:
    text = text.lstrip("\ufeff").strip()
    if len(text) > _LONGEST:
        text = text[:_LONGEST]
    if text.startswith(("data:", "event:")):
        text = _EVENT_LINE.sub("", text).strip()
    if text[:1] == "<" or "<html" in text[:400].lower():
        return _of_markup(text)
    if text[:2] in {"b'", 'b"'}:
        with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            return unfolded(ast.literal_eval(text), depth + 1)
    places = sorted(place for sign in "{[" if (place := text.find(sign)) >= 0)
    at = min(places, default=-1)
    for place in places:
        body = _parsed(text[place:])
        if isinstance(body, dict | list) and (_holds_words(body) or (place == 0 and not _is_tag(body))):
            return _with_words_before(text[:place], body, depth)
    cut = _LEFT_OPEN.search(text[:_LONGEST_CUT])
    if at == 0 and cut is not None:
        return _of_text(cut[2].replace('\\"', '"'), depth + 1)
    return text


def _with_words_before(said: str, body: object, depth: int) -> Any:
    before = _without_prefixes(said.strip().removesuffix("b'").removesuffix('b"').strip())
    inner = unfolded(body, depth + 1)
    short = len(before) <= _LONGEST_HEAD
    if not said or (short and (_ANNOUNCED.fullmatch(before) or _GENERIC.fullmatch(before.rstrip(" :-")))):
        return inner
    return {"message": before.rstrip(" :-"), "cause": inner}


def _is_tag(body: dict[str, Any] | list[Any]) -> bool:
    """True if it is a number in brackets, as in front of a sentence."""
    return isinstance(body, list) and all(isinstance(each, int | float) for each in body)


def _holds_words(body: object) -> bool:
    """True if it is an error's body and not an example in a sentence."""
    first = body[0] if isinstance(body, list) and body else body
    return isinstance(first, dict) and any(key in first for key in (*_OWN, *_INNER))


def _parsed(text: str) -> Any:
    """The JSON that the text begins with, also as Python writes it; None: there is none, or more follows."""
    with suppress(ValueError, RecursionError):
        found, end = json.JSONDecoder(strict=False).raw_decode(text)
        return found if len(text[end:].strip(" \t\r\n'\"`.,;)]")) < 200 else None
    end = max(text.rfind("}"), text.rfind("]")) + 1
    with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
        return ast.literal_eval(text[:end])
    return None


def _of_markup(text: str) -> Any:
    text = text[:_LONGEST_CUT]
    fields = {
        name: re.sub(r"<[^>]*>|\s+", " ", found[1]).strip()
        for name in ("Code", "Message", "title", "h1")
        if (found := re.search(rf"<{name}(?:\s[^>]*)?>(.*?)</{name}>", text, re.IGNORECASE | re.DOTALL))
    }
    if "Message" in fields and "<html" not in text.lower():
        return {"message": fields["Message"], "code": fields.get("Code", "")}
    if "<html" in text.lower() or "<!doctype" in text.lower() or "title" in fields:
        title = fields.get("title") or fields.get("h1")
        return "the server answered with a web page" + (f" ({title})" if title else "")
    return re.sub(r"<[^>]*>", " ", text).strip() or text


# --- what it says -----------------------------------------------------------------------------------------------


def innermost(value: Any) -> str:
    """The words that name the fault, from the deepest place that has some; "" if there are none."""
    codes = sorted(codes_in(value), key=len, reverse=True)
    return _words(value) or (codes[0] if codes else _leaves(value))


def _leaves(value: Any) -> str:
    """Texts in fields that nobody knows."""
    if isinstance(value, str):
        return ""
    named = (f"{name}: {each}" for name, each in _fields(value) if isinstance(each, str) and each.strip())
    return "; ".join(islice(named, _MOST_PARTS))


def _words(value: Any) -> str:
    match value:
        case str():
            return value.strip()
        case list():
            parts = [words for each in value[:_MOST_PARTS] if (words := _words(each))]
            return "; ".join(dict.fromkeys(parts))
        case dict():
            return _of_fields(value)
    return ""


def _of_fields(fields: dict[str, Any]) -> str:
    own = next((words for key in _OWN if (words := _words(fields.get(key)))), "")
    place = fields.get("loc")
    if own and isinstance(place, list):
        at = ".".join(str(part) for part in place if part != "body")
        return f"{at}: {own}" if at else own
    inner = next((words for key in _INNER if (words := _inner_words(fields, key))), "")
    if not inner and _is_sentence(fields.get("param")):
        inner = str(fields["param"]).strip()
    joined = _joined(own, inner)
    provider = fields.get("provider_name")
    if joined and isinstance(provider, str) and provider and "raw" in fields:
        return f"{joined.rstrip('.')} (from {provider})"
    return joined


def _is_sentence(param: Any) -> bool:
    """True if a server names the fault in the place of a parameter's name."""
    return isinstance(param, str) and len(param.split()) > 2


def _inner_words(fields: dict[str, Any], key: str) -> str:
    inner = fields.get(key)
    words = _words(inner)
    if not words and key == "errors" and isinstance(inner, dict):
        named = [f"{name}: {said}" for name, each in inner.items() if (said := _words(each))]
        return "; ".join(named[:_MOST_PARTS])
    return words


def _joined(own: str, inner: str) -> str:
    """Words of an error and of the one inside it together: the inner words, and the outer if they add
    something.
    """
    plain, within = own.rstrip(" .:"), inner.rstrip(" .:")
    if not within or not plain:
        return own or inner
    if says_nothing(plain):
        return own if says_nothing(within) else inner
    if says_nothing(within) or within.casefold() in plain.casefold():
        return own
    return inner if plain.casefold() in within.casefold() else f"{plain}: {inner}"


def says_nothing(words: str) -> bool:
    """True if words give no reason: a code, or a repetition of the status."""
    return len(words) <= _LONGEST_HEAD and bool(_GENERIC.fullmatch(words) or _A_CODE.fullmatch(words))


def is_error(value: object) -> bool:
    """True if an event of a stream, or a body under status 200, is an error and no piece of a reply."""
    if not isinstance(value, dict):
        return False
    if value.get("error") or value.get("object") == "error" or value.get("type") == "error":
        return True
    told = value.get("base_resp")
    if isinstance(told, dict) and told.get("status_code") not in {None, 0, "0"}:
        return True  # MiniMax
    if "choices" in value or "usage" in value:
        return False
    words = any(
        isinstance(value.get(key), str) and value[key] for key in ("message", "msg", "error_msg", "errorMsg")
    )
    coded = any(
        value.get(key) not in {None, 0, "0", ""} for key in ("code", "error_code", "errorCode", "status_code")
    )
    return (words and coded) or (bool(value.get("detail")) and "id" not in value) or bool(value.get("errors"))


def codes_in(value: Any) -> frozenset[str]:
    """Codes, types and statuses in words, in small letters."""
    return frozenset(
        text.lower()
        for key, each in _fields(value)
        if isinstance(each, str) and (text := each.strip()) and _A_WORD.fullmatch(text)
        if key in _CODES or (key == "error" and not _GENERIC.fullmatch(text))
    )


def status_in(value: Any) -> int | None:
    """The status of HTTP that a body names itself, as gateways do under a status of their own."""
    for key, each in _fields(value):
        number = int(each) if isinstance(each, str) and re.fullmatch(r"[45]\d\d", each) else each
        if (
            key in _STATUSES
            and isinstance(number, int)
            and not isinstance(number, bool)
            and 400 <= number < 600
        ):
            return number
    return None


def figures_in(value: Any) -> dict[str, float | str]:
    """Times and limits in a body by the names of their fields."""
    return {
        key.lower(): each
        for key, each in reversed(list(_fields(value)))
        if isinstance(each, int | float | str) and not isinstance(each, bool) and _TIMES.search(key)
    }


_TIMES = re.compile(r"reset|retry", re.IGNORECASE)


def all_words(value: Any) -> str:
    """Every text of a body but its codes, for what is looked for anywhere in it."""
    texts = (
        [value]
        if isinstance(value, str)
        else [
            each
            for key, each in _fields(value)
            if key not in _NO_WORDS or (key == "param" and _is_sentence(each))
        ]
    )
    return "\n".join(str(text) for text in texts if isinstance(text, str | int | float))


def _fields(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every field that holds no other, with the name of the one that it stands in."""
    match value:
        case dict():
            for key, each in value.items():
                yield from _fields(each, str(key))
        case list():
            for each in value:
                yield from _fields(each, name)
        case _:
            yield name, value
