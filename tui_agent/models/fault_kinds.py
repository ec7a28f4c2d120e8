"""Which kind of fault a provider's answer is: by its status, its codes and the sense of its words.

The tables are ordered, and the first that fits holds. What none knows is *unknown*. Live answers (`faults`) and
recorded sentences of other agents are judged by the same tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from tui_agent.core.names import FaultKind

LONGEST_RATE_WAIT = 300.0
"""Seconds: a limit that lasts longer is no rate any more, it is a limit of use."""
LONGEST_LIMIT = 62 * 86_400.0
"""Seconds; no limit of use lasts longer."""


@dataclass(frozen=True)
class Told:
    """The words of an answer."""

    text: str
    status: int | None = None
    """As a server sent it."""
    codes: frozenset[str] = frozenset()
    wait: float | None = None
    """Seconds that it asks to wait."""
    by_sense: bool = True
    """A server said it: that a prompt is too long is told by sense too, beside the known wordings."""


@cache
def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def _says(*wordings: str) -> Callable[[str], bool]:
    """True if a text holds one of the wordings."""
    pattern = "|".join(wordings)
    return lambda text: _words(pattern).search(text) is not None


_CODES: tuple[tuple[FaultKind, frozenset[str]], ...] = tuple(
    (kind, frozenset(names.split()))
    for kind, names in (
        (
            FaultKind.CONTEXT_OVERFLOW,
            (
                "context_length_exceeded context_window_exceeded model_max_prompt_tokens_exceeded request_too_large"
                " exceed_context_size_error prompt_too_long input_too_long max_tokens_exceeded"
            ),
        ),
        (
            FaultKind.CONTENT_POLICY,
            (
                "content_filter content_policy_violation data_inspection_failed datainspectionfailed prohibited_content"
                " responsibleaipolicyviolation sensitivecontentdetected inputtextsensitivecontentdetected"
            ),
        ),
        (
            FaultKind.USAGE_LIMIT,
            "usage_limit_reached usage_limit_exceeded weekly_limit_reached gousagelimiterror",
        ),
        (
            FaultKind.QUOTA,
            (
                "insufficient_quota insufficient_balance insufficient_credits insufficient_user_quota arrearage"
                " billing_hard_limit_reached billing_not_active exceeded_current_quota_error accountoverdueerror"
                " credits_exhausted out_of_credits payment_required creditserror"
            ),
        ),
        (
            FaultKind.OVERLOADED,
            (
                "overloaded_error overloaded engine_overloaded engine_overloaded_error server_overloaded"
                " serveroverloaded server_is_overloaded model_at_capacity"
            ),
        ),
        (
            FaultKind.RATE_LIMIT,
            (
                "rate_limit_exceeded rate_limit_error rate_limit_reached_error too_many_requests throttling"
                " throttlingexception throttling.ratequota throttling.allocationquota resource_exhausted limit_requests"
                " rate_limited"
            ),
        ),
        (
            FaultKind.AUTH,
            (
                "invalid_api_key authentication_error unauthorized unauthenticated invalid_authentication_error"
                " invalidapikey api_key_invalid token_expired invalid_authentication"
            ),
        ),
        (
            FaultKind.PERMISSION,
            "permission_error permission_denied forbidden usage_not_included accessdenied",
        ),
        (
            FaultKind.NOT_FOUND,
            (
                "model_not_found not_found_error notfounderror modelnotfound resource_not_found_error"
                " invalidendpointormodel.notfound deploymentnotfound"
            ),
        ),
        (FaultKind.TIMEOUT, "deadline_exceeded timeout_error gateway_timeout"),
        (FaultKind.SERVER, "server_error internal_error api_error internal_server_error"),
    )
)
"""Codes, types and statuses that providers put beside their words."""

no_tools = _says(
    r"does(?: not|n't) support (?:tool|function)|no endpoints found that support tool",
    r"tools param requires|tool choice requires",
    r"(?:tool|function)[ _-]?(?:use|call\w*|s) (?:is|are) not (?:supported|enabled|available)",
    r"does not support parameters: \[?'tools|not support tool|unsupported.{0,20}\btools\b",
    r"`?tools`? (?:is|are) not (?:currently )?supported",
    r"tool[ -]call[ -]?parser (?:is )?(?:not|required|must)|no tool[ -]call(?:ing)? parser",
    r"--tool-call-parser",
)
"""Wordings of Ollama, OpenRouter, llama.cpp, vLLM, SGLang, litellm and others about a model or server without
tool calls.
"""

_SPAN = (
    r"(?:usage|session|weekly|week|daily|day|monthly|month|annual|hourly|\d+[- ]?(?:h|hr|hours?|days?)|five[- ]hour"
    r"|plan|message|messages|premium requests?|chat|agent|spend(?:ing)?|free[- ]tier|free plan|subscription|opus|sonnet"
    r"|model|account)"
)
_USED_UP = r"\b(?:hit|reached|exceeded|exceed|exhausted|used up|used all|over)(?: of)?"
_CAP = r"(?:limits?|quota|allowance|allotment|cap)"
usage_limit = _says(
    rf"\b{_SPAN}(?: (?:usage|request|token|message|premium|credit)s?)? limits?\b[^.\n]{{0,24}}{_USED_UP}\b",
    rf"{_USED_UP} (?:your|the|my|its|this|all)\b[^.\n]{{0,60}}\b{_SPAN}(?: \w+)? {_CAP}\b",
    rf"{_USED_UP} (?:your|the|my|its|this)\b[^.\n]{{0,60}}\busage\b",
    r"\b(?:hit|reached) (?:your|the) limit\b|\blimit reached ?(?:\||[·∙•]|, ?resets)",
    r"\bout of (?:extra )?usage\b|[·∙•] ?resets\b",
    r"\blimit (?:will )?resets? (?:at|on|in|tomorrow|after)\b|\bregain access on\b|quota (?:will )?resets?\b",
    r"exhausted your (?:capacity|daily|quota)|usage limit has been|weekly (?:usage )?limit|usage quota",
    r"\b(?:tokens?|requests?|messages?) per (?:day|week|month)\b|\bper[- ]day\b",
    r"\bdaily (?:rate|request|token|usage|quota)|\((?:TPD|RPD)\)|key limit exceeded(?! \(total)|per_?day|PerDay",
    r"allocated quota exceeded.{0,40}(?:day|month|week)|free-models-per-day|spending cap",
    r"(?:today|this (?:week|month))'?s? (?:free )?(?:usage|limit|quota)|usage resets|5\s?小时|每周.{0,8}上限",
    r"使用上限|周限额|quota (?:period|cycle)",
)
"""A limit of use by the hour, day, week or plan, that a clock ends and no money has to."""

quota = _says(
    r"insufficient[_ ](?:account |user[ _])?(?:quota|balance|credit|funds)",
    r"exceeded (?:your |the )?current quota|credit balance|balance is (?:too low|not enough)",
    r"(?:out of|no|not enough|requires more|exhausted (?:your|all)) (?:\w+ ){0,2}credits?\b",
    r"payment required|in arrears|arrearage|overdue|billing (?:hard limit|is not active|issue|account)",
    r"check your plan and billing|please (?:recharge|top up)|add (?:funds|credits?)|top up your",
    r"余额不足|额度不足|欠费|balance is insufficient",
    r"no resource package|can only afford|suspended due to|not enough (?:balance|funds)|prepaid",
    r"key limit exceeded \(total",
)
"""The purse is empty."""

bad_key = _says(
    r"api[_ -]?key (?:is |you provided is )?(?:not valid|invalid|missing)",
    r"api[_ -]?key (?:is |you provided is )?(?:incorrect|expired|disabled|revoked)",
    r"(?:invalid|incorrect|wrong|expired)[_ ](?:or missing )?(?:\w+ )?api[_ -]?key",
    r"(?:bad|unknown|missing|no|malformed)[_ ](?:or missing )?(?:\w+ )?api[_ -]?key",
    r"api key not (?:valid|found)|API_KEY_INVALID|missing credentials|api_key client option must be set",
    r"missing .{0,40}api[_ ]key|x-api-key|\bunauthori[sz]ed\b|\bunauthenticated\b",
    r"invalid (?:bearer |access |auth\w* |oauth )?token",
    r"authentication (?:failed|error|required|token|fails)|invalid authentication|no auth credentials",
    r"no cookie auth|token (?:has |is )?(?:expired|revoked)|please run /login|not logged in",
    r"missing authentication|could not validate credentials|login (?:required|expired)|invalid username",
    r"security token included in the request is|api key provided|令牌|身份验证|鉴权|invalid proxy server token",
    r"could not resolve authentication",
)
forbidden = _says(
    r"permission[_ ]?denied|do(?:es)? not have (?:access|permission)",
    r"not (?:authori[sz]ed|allowed|permitted) to (?:access|use|perform|call|invoke)",
    r"access (?:denied|to (?:the )?model)|\bforbidden\b|not included in your plan|unsupported_country",
    r"country, region|not available in your (?:region|country|location)|location is not supported",
    r"requires (?:a )?(?:paid|pro|verified)|must be verified|insufficient permissions|accessdenied",
    r"user location",
)
policy = _says(
    r"content[_ ](?:policy|filter|management|moderation)|ResponsibleAIPolicy",
    r"safety (?:system|filter|setting|reasons)|data inspection|inappropriate content",
    r"flagged (?:as|by|for)",
    r"violat\w+ (?:our|the|openai'?s|\w+'?s)? ?(?:usage |content |acceptable use )?polic",
    r"prohibited content|sensitive (?:content|information|words)|content exists risk",
    r"blocked (?:by|due to) .{0,30}(?:safety|policy|filter)|敏感|違規|violate.{0,20}terms|unsafe content",
    r"DataInspectionFailed",
)
overloaded = _says(
    r"overloaded|(?:server|service|system) (?:is )?(?:currently )?(?:too )?busy",
    r"(?:at|over|exceeded|out of) capacity|capacity (?:exceeded|constraints)|no capacity",
    r"(?:high|heavy|peak) (?:demand|load|traffic|usage)|temporarily (?:at|over) capacity",
    r"insufficient capacity|系统繁忙|繁忙|访问量过大|负载|too many people|limited capacity",
    r"no (?:available|healthy) (?:server|upstream|worker|instance)s?|all (?:workers|slots) (?:are )?busy",
    r"queue is full",
)
rate_limit = _says(
    r"rate[_ -]?limit|too many tokens,? (?:please wait|processed)|too many (?:concurrent )?requests",
    r"resource[_ ](?:has been )?exhausted|throttl",
    r"(?:requests|tokens) per (?:minute|min|second|sec|hour)\b|\b[TR]P[MS]\b|quota exceeded",
    r"concurren(?:cy|t) (?:\w+ )?(?:limit|quota|requests?)|slow down|too frequent|频率|请求过|并发|速率",
    r"allocated quota|requests (?:are|too) (?:being )?(?:limited|frequent|fast)|request limit",
)
not_found = _says(
    r"model\b.{0,120}(?:not found|does(?: not|n't) exist|not exist|not available|not supported)",
    r"model\b.{0,120}is not (?:loaded|deployed|recogni[sz]ed)|not a valid model",
    r"unknown model|no such model|invalid model|no models? (?:loaded|found|available|are)",
    r"model[_ ](?:not[_ ]found|is unknown)|unexpected endpoint",
    r"(?:path|route|page|resource|endpoint|url|deployment)\b.{0,40}not (?:be )?found|\bnot found\b",
    r"no route|cannot post|invalid url|no endpoints found|try pulling it|no allowed providers",
    r"decommissioned|has been (?:deprecated|retired|removed)|模型不存在|no deployment",
)
timed_out = _says(
    r"\btimed[ -]?out\b|(?<![\w.=])(?:time-?out|timeouts)(?![\w(]|\s*[=:]\s*[\w'])",
    r"\btime limit exceeded|deadline exceeded|took too long|超时",
)
"""`timeout=timeout` in a line of a program is no time-out."""
cut_off = _says(
    r"stream (?:disconnected|closed|error|ended|was (?:reset|interrupted))",
    r"premature(?:ly)? (?:close|end)|incomplete (?:chunked )?read|peer closed connection|socket hang up",
    r"response ended|unexpected end of (?:stream|file)|stream (?:has been )?(?:terminated|aborted)",
    r"^terminated\b",
)
unreachable = _says(
    r"connection (?:refused|error|reset|closed|failed|aborted|was|timed|to)",
    r"(?:could not|cannot|can't|unable to|failed to) (?:connect|reach|resolve)|unreachable|\becon\w+",
    r"\benotfound|\beai_again|\betimedout|\behostunreach|\bepipe|fetch failed|getaddrinfo|error sending request",
    r"name (?:or service not known|resolution)|network (?:error|is|connection|request failed)",
    r"no route to host|dns|certificate verify|ssl error|tls handshake|connecterror",
)
server = _says(
    r"internal (?:server )?error|bad gateway",
    r"service (?:is |was )?(?:temporarily |currently )?unavailable",
    r"upstream (?:connect|request|error|server)|gateway|server (?:had an|error|failed|exception)",
    r"unexpected error|an error occurr?ed|temporarily unavailable|try again later|is (?:still )?loading",
    r"model is (?:currently )?(?:loading|starting)|unexpectedly stopped|out of memory",
    r"(?:has )?terminated: |exit status \d|crashed|内部错误|服务器",
)
unreadable = _says(
    r"answered with a web page|no 'choices'|empty (?:or invalid )?response",
    r"(?:not|no|invalid|malformed|unexpected) (?:valid )?json",
    r"unexpected token|expecting value|unterminated string|could not (?:be )?(?:parse|decode)",
)

# --- a prompt that is too long ----------------------------------------------------------------------------------

overflow = _says(
    r"context[_ ](?:length|window|size|limit)(?! (?:is )?(?:not|un)(?! ))|maximum context",
    r"prompt (?:is )?too (?:long|large)|too many (?:input )?tokens(?! per| processed|, please wait)",
    r"input (?:is )?too long",
    r"exceeds? (?:the )?(?:available )?(?:context|model'?s? max)",
    r"exceeds? (?:the )?max(?:imum)? (?:input|context|prompt|sequence|model)",
    r"reduce the length|input length (?:should|exceeds|and)|range of input length|token limit: ?\d",
    r"exceeded model token|prompt token count",
    r"(?:input|prompt|total) tokens? (?:count )?(?:\(?\d+\)? )?(?:exceeds?|is (?:greater|larger|longer|more))",
    r"must have less than \d+ tokens|message size \d+ exceeds|larger than the (?:maximum|max|context)",
    r"max(?:imum)? (?:(?:model|input|prompt|sequence|total) )?(?:tokens?|length|size|len) (?:is )?(?:exceeded|reached)",
    r"longer than the (?:model|maximum|max)|max_model_len|model max length|max_seq_len|n_ctx",
    r"sequence length",
    r"(?:request|payload|body|content|input|prompt|conversation|history|messages?) (?:entity )?(?:is |are |size )?too"
    r" (?:large|long|big)",
    r"tokens? (?:in (?:the )?(?:prompt|messages) )?exceeds?|token limit exceeded",
    r"(?:input|prompt|request|conversation) (?:\w+ )?exceeds? (?:the )?(?:\w+ )?(?:limit|length|size|tokens?|window)",
    r"max_input_tokens|上下文.{0,12}(?:超|长)|超出.{0,12}(?:长度|上下文|token)|超过.{0,16}(?:长度|上下文|token)|输入.{0,8}过长",
    r"long context|\btoken limit$|context shift is disabled",
    r"malformed input request: expected maxlength: \d+",
)
"""The wordings that providers are known to use."""

_surely = _says(r"maximum context length|prompt is too long|exceeds? the (?:model's )?context")
"""Wordings that mean it whatever else is said, as of the room for the reply."""
_SIZE = _says(
    r"\b(?:tokens?|length|size|context|characters?|chars|bytes|kb|mb|long|large|longer|larger)\b",
)
_BOUND = _says(
    r"\b(?:limit\w*|max(?:imum)?|exceed\w*|too (?:long|large|big|many|much)|at most|less than|allowed)\b",
    r"\b(?:fewer|longer|larger|greater|more) than\b|\bno more\b|\bup to\b|\bover\b|\bbeyond\b|\breduce\b",
    r"\b(?:shorten|truncat\w*|not fit|doesn't fit|shorter|smaller)\b|\d\)?\W{1,3}>\W{0,2}\d|must be <",
)
_OF_THE_PROMPT = _says(
    r"\b(?:prompt|input|messages?|context|conversation|request|payload|body)\b",
    r"\b(?:history|sequence|tokens?|content|completion|inputs|chat|total)\b",
)
_OF_REPLY = r"(?<!\+ )(?<!\+ `)max_(?:completion_|output_|new_)?tokens"
_OTHER_SIZE = _says(
    r"maximum tokens you requested",
    rf"{_OF_REPLY}['\"`]?:? (?:is too|must|cannot|should|value|parameter|exceeds|\d+ (?:is|exceeds))",
    rf"{_OF_REPLY}.{{0,60}}(?:supports? at most|less than or equal|greater than or equal)",
    rf"{_OF_REPLY}.{{0,60}}maximum (?:allowed|value) (?:is|of|for)",
    r"(?:image|picture|audio)s?\b(?! and text).{0,60}(?:size|large|exceed|dimension|limit|max)",
    r"(?:file|pdf|document|video)s?\b(?! and text).{0,60}(?:size|large|exceed|dimension|limit|max)",
    r"\bmax_tokens: \d|maximum allowed number of output|tool_call_id|call[ _]id",
    r"array (?:too long|with maximum)|too many (?:tools|functions|images|messages|stop|items)",
    r"string.{0,60}maximum length \d{1,4}\b",
    r"(?:function|tool)s?'?\.?(?:name|description)?\b.{0,40}(?:maximum|max|at most|too long|longer)",
    r"\bname\b.{0,60}(?:at most|maximum|too long|characters)",
    r"max(?:imum)? (?:number of )?(?:tools|functions)|temperature|top_p|top_k|\bstop sequences?",
    r"budget_tokens|thinking budget|header|\bn\b must|logprobs|metadata|user field|credits",
    r"per (?:minute|second|day)|\brate\b",
)
"""Limits of something else than the prompt."""


def is_overflow(text: str) -> bool:
    """True if words of a refused request mean that it is too long: by known wordings, or by their sense."""
    return known_overflow(text) or (
        not _OTHER_SIZE(text) and any(_of_size(line) for line in text.splitlines())
    )


def known_overflow(text: str) -> bool:
    """The same by the known wordings alone."""
    return _surely(text) or (overflow(text) and not _OTHER_SIZE(text))


def _of_size(line: str) -> bool:
    return _SIZE(line) and _BOUND(line) and _OF_THE_PROMPT(line)


_PER_TIME = _says(
    r"per[- ](?:minute|min|second|hour|day)\b|\b[TR]P[MD]\b",
)

_DETERMINISTIC = _says(
    r"jinja|chat template|roles must alternate|conversation roles|must be followed by tool",
    r"unsupported (?:param|content|role)",
    r"invalid (?:role|message|type|schema|parameter|grammar|json schema)",
    r"failed to parse (?:grammar|messages|tools)|is not (?:a )?supported|not implemented|unrecognized",
    r"validation error|typeerror|keyerror|no user query",
)
"""A server's error that the same request brings again."""

# --- the kind -----------------------------------------------------------------------------------------------------

_OF_STATUS = {
    401: FaultKind.AUTH,
    402: FaultKind.QUOTA,
    403: FaultKind.PERMISSION,
    404: FaultKind.NOT_FOUND,
    405: FaultKind.NOT_FOUND,
    407: FaultKind.AUTH,
    408: FaultKind.TIMEOUT,
    409: FaultKind.SERVER,
    410: FaultKind.NOT_FOUND,
    # The remedy of a request that is too large is the same as that of a prompt that is too long.
    413: FaultKind.CONTEXT_OVERFLOW,
    424: FaultKind.SERVER,
    425: FaultKind.SERVER,
    429: FaultKind.RATE_LIMIT,
    451: FaultKind.CONTENT_POLICY,
    # Of proxies: a token that expired on the way, and a client that was gone.
    498: FaultKind.SERVER,
    499: FaultKind.SERVER,
    504: FaultKind.TIMEOUT,
    524: FaultKind.TIMEOUT,
    529: FaultKind.OVERLOADED,
}
_REFUSED = frozenset({400, 403, 404, 409, 413, 422})
"""Statuses under which a request that is too long is refused."""

_SENTENCES: tuple[tuple[FaultKind, Callable[[str], bool]], ...] = (
    (FaultKind.USAGE_LIMIT, usage_limit),
    (FaultKind.QUOTA, quota),
    (FaultKind.OVERLOADED, overloaded),
    (FaultKind.RATE_LIMIT, rate_limit),
    (FaultKind.AUTH, bad_key),
    (FaultKind.CONTENT_POLICY, policy),
    (FaultKind.CONTEXT_OVERFLOW, is_overflow),
    (FaultKind.PERMISSION, forbidden),
    (FaultKind.NOT_FOUND, not_found),
    (FaultKind.STREAM_CUT, cut_off),
    (FaultKind.TIMEOUT, timed_out),
    (FaultKind.CONNECTION, unreachable),
    (FaultKind.SERVER, server),
    (FaultKind.BAD_OUTPUT, unreadable),
)
"""For words whose status is not known."""

_OF_REFUSAL: tuple[tuple[FaultKind, Callable[[str], bool]], ...] = (
    (FaultKind.USAGE_LIMIT, usage_limit),
    (FaultKind.QUOTA, quota),
    (FaultKind.AUTH, bad_key),
    (FaultKind.CONTENT_POLICY, policy),
    (FaultKind.CONTEXT_OVERFLOW, is_overflow),
    (FaultKind.NOT_FOUND, not_found),
)
"""For a request that was refused: servers put many things under 400 and 422."""


def kind_of(told: Told) -> FaultKind:
    """The kind of a fault."""
    text, status = told.text, told.status
    if no_tools(text):
        return FaultKind.NO_TOOLS
    if status is None:
        return _limited(told, _by_code(told.codes)) or _first(_SENTENCES, told) or FaultKind.UNKNOWN
    if status == 429:
        return _of_429(told)
    if status in {401, 407, 408, 451}:
        return _OF_STATUS[status]
    if status in {402, 403}:
        return _of_door(told, status)
    if status == 413:
        return FaultKind.RATE_LIMIT if _PER_TIME(text) else FaultKind.CONTEXT_OVERFLOW
    if status in {404, 405, 410}:
        return _by_code(told.codes, FaultKind.CONTEXT_OVERFLOW, FaultKind.PERMISSION) or FaultKind.NOT_FOUND
    if status < 500:
        refused = _limited(told, _by_code(told.codes)) if status in {400, 422} else None
        if refused is FaultKind.SERVER and not server(text):
            # The status says that the request is at fault, and no word that it may pass another time.
            refused = None
        found = refused or (_first(_OF_REFUSAL, told) if status not in _OF_STATUS else None)
        return found or _OF_STATUS.get(status, FaultKind.BAD_REQUEST)
    return _of_server(told, status)


def _by_code(codes: frozenset[str], *among: FaultKind) -> FaultKind | None:
    return next((kind for kind, names in _CODES if codes & names and (not among or kind in among)), None)


def of_refusal(told: Told) -> FaultKind | None:
    """The kind, if codes or words settle it however the answer came; else None."""
    return _limited(told, _by_code(told.codes)) or _first(_OF_REFUSAL, told)


def _first(table: tuple[tuple[FaultKind, Callable[[str], bool]], ...], told: Told) -> FaultKind | None:
    for kind, says in table:
        if says is is_overflow and not told.by_sense:
            says = known_overflow
        if says(told.text):
            return kind
    return None


def _limited(told: Told, kind: FaultKind | None) -> FaultKind | None:
    """The kind by a code, with a rate that lasts, or that is one of use by its words, told from one that passes."""
    if kind is FaultKind.QUOTA and told.wait is not None:
        kind = FaultKind.RATE_LIMIT
    if kind is not FaultKind.RATE_LIMIT:
        return kind
    long = told.wait is not None and told.wait > LONGEST_RATE_WAIT
    brief = told.wait is not None and told.wait <= LONGEST_RATE_WAIT
    return FaultKind.USAGE_LIMIT if long or (not brief and usage_limit(told.text)) else kind


def _of_429(told: Told) -> FaultKind:
    if any(code.startswith("throttling") for code in told.codes):
        return _limited(told, FaultKind.RATE_LIMIT) or FaultKind.RATE_LIMIT
    by_code = _by_code(told.codes, FaultKind.USAGE_LIMIT, FaultKind.QUOTA, FaultKind.OVERLOADED)
    if by_code is FaultKind.USAGE_LIMIT:
        return by_code
    limited = _limited(told, FaultKind.RATE_LIMIT)
    if limited is FaultKind.USAGE_LIMIT:
        return FaultKind.QUOTA if by_code is FaultKind.QUOTA and not usage_limit(told.text) else limited
    # Gemini calls its limits by the minute a quota as well, and says when they end.
    if told.wait is None and (by_code is FaultKind.QUOTA or quota(told.text)):
        return FaultKind.QUOTA
    if by_code is FaultKind.OVERLOADED or overloaded(told.text):
        return FaultKind.OVERLOADED
    return FaultKind.RATE_LIMIT


def _of_door(told: Told, status: int) -> FaultKind:
    """Under 402 and 403 providers say as well that a limit, the purse or a filter is in the way."""
    text = told.text
    if _words(r"prompt tokens limit exceeded").search(text):
        return FaultKind.CONTEXT_OVERFLOW  # what the account can afford is a window like any other
    found = _by_code(told.codes, FaultKind.USAGE_LIMIT, FaultKind.QUOTA, FaultKind.CONTENT_POLICY)
    if found is None:
        table = (
            (FaultKind.USAGE_LIMIT, usage_limit),
            (FaultKind.QUOTA, quota),
            (FaultKind.CONTENT_POLICY, policy),
            (FaultKind.RATE_LIMIT, rate_limit),
        )
        found = _first(table, told)
    if found is None and status == 403 and _words(r"api[_ -]?key|token").search(text) and bad_key(text):
        found = FaultKind.AUTH
    return found or _OF_STATUS[status]


def _overflows(text: str, status: int) -> bool:
    """True if an error of a server is a prompt that is too long; of gateways by the known wordings alone."""
    return is_overflow(text) if status == 500 else status in {502, 503} and known_overflow(text)


def _of_server(told: Told, status: int) -> FaultKind:
    text = told.text
    if _by_code(told.codes, FaultKind.CONTEXT_OVERFLOW) or _overflows(text, status):
        return FaultKind.CONTEXT_OVERFLOW
    if _by_code(told.codes, FaultKind.OVERLOADED) or (status in {500, 502, 503} and overloaded(text)):
        return FaultKind.OVERLOADED
    if status in {500, 503} and usage_limit(text):
        return FaultKind.USAGE_LIMIT
    if status in {500, 503} and quota(text):
        return FaultKind.QUOTA
    if status in _OF_STATUS:
        return _OF_STATUS[status]
    if status == 503:
        return FaultKind.RATE_LIMIT if rate_limit(text) else FaultKind.SERVER
    if status in {500, 501} and not server(text) and _DETERMINISTIC(text):
        return FaultKind.BAD_REQUEST
    return FaultKind.SERVER
