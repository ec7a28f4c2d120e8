"""How model servers say what they refuse, as patterns: the wordings of real servers and of the libraries before them.

Words only; what they teach is decided in `lessons`.
"""

from __future__ import annotations

import re


class Wording:
    """Wordings of one meaning, made a pattern when they are first looked for: most hosts meet no refusal."""

    def __init__(self, *alternatives: str) -> None:
        self._alternatives = alternatives
        self._pattern: re.Pattern[str] | None = None

    def search(self, words: str) -> re.Match[str] | None:
        """The first place where one of them stands in an error's words."""
        if self._pattern is None:
            self._pattern = re.compile("|".join(self._alternatives), re.IGNORECASE | re.DOTALL)
        return self._pattern.search(words)


NOT_TAKEN = Wording(
    r"un(?:supported|recogni[sz]ed|known|expected|permitted)",
    r"(?:not|n't) (?:yet )?supports?\b",
    r"(?:not|n't) (?:be )?(?:supported|allowed|permitted|recogni[sz]ed|implemented|valid|accepted)",
    r"extra (?:inputs|fields)|extra_forbidden|additional propert|cannot find field|invalid field|deprecated",
    r"should not|must not be (?:present|provided|set|sent|included)",
)
"""How servers and libraries say that they do not take something."""

VALUE_NOT_TAKEN = Wording(
    r"is too (?:large|high|big|small|low|long)\b|\bout of range\b|\bonly .{0,40} (?:is|are) (?:allowed|supported)",
    r"(?:must|should|has to) be (?:between|in|one of|at (?:most|least)|non-|[<>≤≥\d])",
    r"(?:must|should|has to) be (?:strictly )?(?:less|greater|positive)",
    r"\binvalid (?:value|range)\b|\binvalid \w+: ",
)
"""How they say that a parameter's value is none of theirs."""
OF_THE_WINDOW = Wording(r"context|prompt|input (?:tokens|length)|\bmessages\b")
"""What stands beside a value that is too large for the rest of the window, and not for the server."""


TEMPLATE = Wording(
    r"jinja|chat[ _-]?template|raise_exception|TemplateError|template error|rendering prompt",
    r"while executing \w+ at line \d+|apply_chat_template|automatic parser generation",
    r"\{%-? |\{\{-? |\bat row \d+, column \d+|template: \S*:\d+:\d+",
)
"""Words of the templates that make a prompt of the messages: the same request fails for ever, whatever the status."""

ORDER = Wording(
    r"roles? must alternat|must alternat|should alternat|alternating (?:roles|user|between)",
    r"unexpected role .{0,40}(?:after|following) role|unexpected role|invalid_request_message_order|code\W{1,8}3230\b",
    r"expected (?:the )?last role|last message (?:must|should|has to|role)",
    r"(?:must|should) end with a?.{0,20}(?:user|tool)",
    r"turn comes immediately (?:after|before)|consecutive .{0,40}(?:messages|roles|turns)|multiple .{0,20}in a row",
    r"conversation roles|role (?:order|sequence)|order of (?:roles|messages)|messages? .{0,20}in .{0,20}order",
    r"first message (?:must|should|has to).{0,40}user|after the (?:\(?optional\)? )?system message",
    r"no user (?:query|message)|elements with the role of user|without .{0,20}user message",
    r"user message .{0,40}(?:directly |straight |immediately )?after .{0,20}tool",
)
SYSTEM_PLACE = Wording(
    r"system (?:message|prompt|role)s?.{0,40}(?:at the (?:beginning|start)|be (?:the )?first|come first|position 0)",
    r"(?:only|single|one) (?:the )?(?:first )?.{0,20}system message|multiple system|more than one system",
)
SYSTEM_REFUSED = Wording(
    r"system (?:role|message|prompt|instruction)s? (?:is |are )?(?:not|un)\W?(?:supported|allowed|enabled|available)?",
    r"(?:not|n't) supports? (?:a |the )?['\"`]?system|developer instruction is not enabled|unexpected role .?system",
    r"role .?system.? (?:is )?(?:not|un)",
)
ROLES = Wording(
    r"only .{0,20}user.{0,12}assistant.{0,20}roles? (?:are|is) supported",
    r"(?:unknown|invalid|unsupported|unexpected) (?:message )?roles?:? .?tool\b(?!.{0,3}after)",
    r"role .?tool.? (?:is )?(?:not|un)",
)
"""How templates say which roles there are."""
SINGLE = Wording(
    r"only supports? single tool.?calls?|single tool.?call|(?:only )?one tool.?call (?:at|per)|one call at once"
)
NINE = Wording(r"length of 9|9 (?:characters|alphanumeric)|nine (?:characters|letters)|\[a-zA-Z0-9\]\{9\}")
ID = Wording(
    r"tool.?(?:call|use)s?(?:\[\d+\])?.{0,20}\bids?\b|tool_call_id|call_id|tool_use\.id|\bcall ids?\b|\.id\b"
)
ID_FORM = Wording(
    r"too long|max(?:imum)?.?length|at most \d+|match(?:es)? (?:the )?pattern|above_max_length|invalid char",
    r"alphanumeric|exceeds? .{0,20}(?:length|characters)|a-zA-Z0-9",
)
NAME = Wording(
    r"function_?response\.name|tool.{0,60}\bname\b.{0,40}(?:empty|missing|required)",
    r"(?:empty|missing|requires?).{0,40}\bname\b.{0,60}tool (?:message|result|response)",
)
CONTENT_NULL = Wording(
    r"content.{0,60}(?:<nil>|\bnil\b|\bnull\b|NoneType|\bNone\b|is (?:a )?required|is missing|missing field)",
    r"content.{0,60}must be a string",
    r"(?:<nil>|\bnil\b|\bnull\b|NoneType|\bNone\b|missing|required|expected a string).{0,60}\bcontent\b",
    r"\bcontent\b.{0,80}(?:valid string|expected a string|should be a string|type: string|be provided|cannot be null)",
    r"content.{0,20}(?:字段|不能为空|必填)|at least one .{0,20}content",
)
CONTENT_EMPTY = Wording(
    r"content.{0,60}(?:non-?empty|not be empty|is empty|cannot be empty|be blank|too short|at least one|at least 1)",
    r"(?:non-?empty|empty|blank).{0,40}\bcontent\b|empty message was provided|message .{0,60}must not be empty",
)
REASONING = Wording(
    r"reasoning_content|reasoning_details|reasoning_items|\breasoning\b|thinking(?:_blocks)?\b|\bthought\b"
)
REASONING_TEXT = Wording(
    r"reasoning_content|\.reasoning\b|'reasoning'|\"reasoning\"|`reasoning`|\breasoning (?:is|field)"
)
REASONING_BACK = Wording(
    r"reasoning(?:_content)?\W.{0,100}(?:passed back|be (?:passed|sent|returned|included|provided|present)|must\b)",
    r"reasoning(?:_content)?\W.{0,60}(?:is|are) (?:missing|required|empty)",
    r"(?:missing|requires?|without).{0,60}reasoning(?:_content)?\b",
)
REASONING_MISSING = Wording(r"pass(?:ed)? back|missing")
THINKING_BLOCK = Wording(
    r"expected .{0,3}thinking.{0,60}but found", r"must start with a thinking block", r"disable .{0,3}thinking"
)
SIGNATURE_WANTED = Wording(
    r"missing (?:a |the )?.?thought_?signature", r"thought_?signature.{0,40}(?:is|are) (?:missing|required)"
)
SIGNATURE_BAD = Wording(
    r"signature",
    r"encrypted (?:content|reasoning)",
    r"reasoning item",
    r"thinking.{0,60}(?:cannot be modified|invalid)",
)
ENCRYPTED = Wording(r"encrypted content is not supported", r"reasoning\.encrypted_content")
STREAM_OPTIONS = Wording(r"stream_options|include_usage")
STREAM = Wording(
    r"\bstream(?:ing)?\b.{0,80}(?:not |n't |un)(?:be )?(?:support|allow|permit|available|enabled|implement|true)",
    r"(?:not|n't|un)\s?(?:support\w*|allow\w*|permitted|available).{0,80}\bstream(?:ing|ed)?\b",
    r"verified to stream|streaming (?:un|is dis)|'?stream'? (?:must|should) be false|param\W{1,6}stream\b",
    r"streaming mode|only supports? non-?streaming|does not support true",
)
TOOL_CHOICE = Wording(
    r"tool_choice\W.{0,80}(?:not|un|extra|invalid)|(?:unrecognized|unsupported|unknown|extra).{0,80}tool_choice",
    r"\bno endpoints? .{0,60}tool_choice",
)
INSTEAD = Wording(r"use ['\"`]?(\w+)['\"`]? instead|did you mean ['\"`]?(\w+)")
NEW_NAMES = {"max_tokens": "max_completion_tokens"}
FIELDS_OF_CALLS = Wording(
    r"extra_content|provider_specific_fields|tool_calls.{0,60}(?:extra|unknown|unexpected|additional)"
)
SCHEMA = Wording(
    r"schema|function_declarations|parameters|json payload|keyword|input_schema|\btools?\W{0,3}\d*\W",
)
SCHEMA_KEYWORDS = (
    *(
        "$schema",
        "additionalProperties",
        "$comment",
        "enumDescriptions",
        "$defs",
        "$ref",
        "$id",
        "default",
        "const",
    ),
    *(
        "pattern",
        "format",
        "title",
        "examples",
        "minLength",
        "maxLength",
        "minimum",
        "maximum",
        "minItems",
        "maxItems",
    ),
    *("exclusiveMinimum", "exclusiveMaximum", "multipleOf", "uniqueItems", "minProperties", "maxProperties"),
    *(
        "patternProperties",
        "propertyNames",
        "unevaluatedProperties",
        "prefixItems",
        "anyOf",
        "oneOf",
        "allOf",
        "not",
    ),
    *("if", "then", "else", "nullable", "readOnly", "deprecated"),
)
IMAGE_TEXT = Wording(r"image_url.{0,80}(?:valid string|be a string|expected (?:a )?string|type: string)")
OF_THE_MODEL = Wording(r"tool_use_failed|failed_generation|failed to call a function|error parsing tool call")
"""The model wrote what the server cannot read: nothing about the request."""
