"""How model servers say what they refuse, as patterns: the wordings of real servers and of the libraries before them.

Words only; what they teach is decided in `lessons`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tui_agent.models.habits import EMPTY_PROPERTIES, NO_TYPE, SEVERAL_TYPES


class Wording:
    """Wordings of one meaning, made a pattern when they are first looked for: most hosts meet no refusal."""

    def __init__(self, *alternatives: str) -> None:
        self._alternatives = alternatives
        self._pattern: re.Pattern[str] | None = None

    def search(self, words: str) -> re.Match[str] | None:
        """The first place of one of them in an error's words."""
        return self._compiled().search(words)

    def finditer(self, words: str) -> Iterator[re.Match[str]]:
        """Each place of one of them."""
        return self._compiled().finditer(words)

    def match(self, words: str, at: int) -> re.Match[str] | None:
        """One of them, if it stands at this place."""
        return self._compiled().match(words, at)

    def _compiled(self) -> re.Pattern[str]:
        if self._pattern is None:
            self._pattern = re.compile("|".join(self._alternatives), re.IGNORECASE | re.DOTALL)
        return self._pattern


NOT_TAKEN = Wording(
    r"un(?:supported|recogni[sz]ed|known|expected|permitted)",
    r"(?:not|n't) (?:yet )?supports?\b",
    r"(?:not|n't) (?:be )?(?:supported|allowed|permitted|recogni[sz]ed|implemented|valid|accepted)",
    r"extra (?:inputs|fields)|extra_forbidden|additional propert|cannot find field|invalid field|deprecated",
    r"should not|must not be (?:present|provided|set|sent|included)",
)
"""How servers and libraries say that they do not take something."""


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
    r"(?:not|n't) supports? (?:a |the |role )?\W{0,2}system|developer instruction is not enabled",
    r"(?:unknown|invalid|unsupported|unexpected|unrecognized|illegal) (?:message )?(?:role|value|variant)s?\W{1,4}"
    r"(?:\w+\W{1,3})?system\b",
    r"role\W{1,3}system\W{0,2} (?:is )?(?:not|un)|\bsystem\W{1,3}is not (?:one of|a valid|an? (?:allowed|accepted))",
)
_ROLE = r"(?:system|user|assistant|tool|function|model|developer)\b"
ROLE_LIST = Wording(
    r"(?:should be|must be|one of|expected|(?:valid|allowed|supported|permitted|available|known) (?:roles?|values?))"
    rf"(?: are| is|:)?(?: either)?\W{{1,6}}(?:{_ROLE}\W{{0,8}}(?:(?:or|and)\b\W{{0,4}})?){{2,}}"
)
"""Lists of the roles that there are."""
RESULT_NAMES = Wording(
    r"function_?response\W{0,3}name\b.{0,80}(?:empty|required|missing|blank|must)",
    r"(?:tool|function)['\"`]? (?:role )?(?:message|result|response)s?\b.{0,60}\bname\b.{0,40}"
    r"(?:required|missing|empty|must|not)",
    r"(?:messages?|results?) (?:with|of) (?:the )?role\W{1,3}(?:tool|function)\W{1,3}.{0,20}"
    r"(?:must|should|need).{0,30}\bname\b",
    r"(?:tool|function)[ _]?(?:message|result|response)s?(?: parts?)? (?:must|should|needs?).{0,40}\bname\b",
    r"\bname\b.{0,20}(?:required|missing|empty|needed).{0,30}\b(?:tool|function) (?:role|message|result|response)",
    r"(?:tool|function)_?(?:message|result|response)\W{1,3}name\b.{0,60}(?:required|missing|empty|must)",
    r"messages\W{1,3}\d+\W{1,3}(?:tool\W{1,2})?name\b.{0,80}(?:required|missing|empty|must|valid string)",
    r"(?:missing|requires?|without|no|empty|blank).{0,30}\bname\b.{0,40}\b(?:tool|function)['\"`]? "
    r"(?:role|message|result|response)",
)
"""How servers say that a result of a tool has to have its name."""
ROLES = Wording(
    r"only .{0,20}user.{0,12}assistant.{0,20}roles? (?:are|is) supported",
    r"(?:unknown|invalid|unsupported|unexpected) (?:message )?(?:roles?|value|variant):? .?tool\b(?!.{0,3}after)",
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
    r"tool_?choice\W.{0,80}(?:not|un|extra|invalid|must be|one of|required)|only .{0,30}\btool_?choice",
    r"(?:unrecognized|unsupported|unknown|extra|invalid).{0,80}tool_?choice",
    r"(?:no endpoints? .{0,40}|(?:not|n't) )supports?.{0,40}\btool[_ ]?choice",
    r"\btool choice.{0,40}(?:not|un)(?: be)? ?(?:support|allow)",
)
SOME_PARAMETER = Wording(
    r"(?:no endpoints? .{0,60}|cannot |unable to )(?:handle|support|serve)s? (?:all )?(?:of )?(?:the )?"
    r"(?:requested|given|provided) parameters"
)
"""A parameter is not taken, and the error does not say which."""
VALUE_REFUSED = Wording(
    r"\binvalid\b|\billegal\b|out of (?:range|bounds)|\btoo (?:large|high|big|small|low|long|many)\b|exceed",
    r"(?:must|should|has to|needs to) (?:be|equal|not)|cannot|can ?not|may not|incompatible|conflict",
    r"(?:above|below|over|greater|less|larger|higher|lower) (?:than|the|maximum|minimum)|[<>]=? ?\d",
    r"(?:valid|supported|allowed) range|\bat most \d",
    r"(?:supports?|allows?|accepts?) (?:only|at most|up to)",
    r"only .{0,40}(?:is|are) (?:allowed|supported|accepted|permitted)",
    r"\blimit \d|no longer (?:supported|accepted|available)|does not (?:accept|take|allow)|no endpoints",
    r"不支持|非法|无效|超出|范围|不能|必须",
)
"""How servers say that the value of a parameter is none that they take."""
NOT_BOTH = Wording(
    r"\bboth\b|only one of|mutually exclusive|(?:together|at the same time|simultaneously)|不能同时"
)
SPELLINGS = {
    "max_tokens": r"max(?:imum)?_?(?:completion_?|output_?|new_?)?tokens"
    r"|max(?:imum)? (?:completion |output |new )*tokens"
    r"|(?:output|completion) tokens",
    "top_p": r"\btop[_ -]?p\b",
    "reasoning_effort": r"\breasoning[_. ]?effort\b",
}
"""Patterns for parameters that servers call otherwise too."""
_NUMBER = r"\d+(?:\.\d+)?"
BOUND = Wording(
    rf"\[\s*{_NUMBER}\s*[,;~–-]\s*(?P<range>{_NUMBER})(?=\s*[\])])",
    rf"\(\s*{_NUMBER}\s*[,;~–-]\s*(?P<open_range>{_NUMBER})(?=\s*[\])])",
    rf"(?:range|范围)\D{{0,12}}{_NUMBER}\s*[~–到至-]\s*(?P<span>{_NUMBER})",
    rf"between {_NUMBER} and (?P<between>{_NUMBER})|\bfrom {_NUMBER}(?: \(\w+\))? to (?P<to>{_NUMBER})",
    rf"\b{_NUMBER} > (?P<above>{_NUMBER})",
    rf"(?:lower|less|smaller|fewer) than (?P<below>{_NUMBER})|(?<![<>=])< ?(?P<under>{_NUMBER})",
    rf"(?:at most|up to|less than or equal(?: to)?|no (?:more|greater|larger|higher) than"
    r"|not (?:be )?(?:exceed|above|over)|exceeds?|(?:not|n't) (?:be )?(?:greater|larger|more|higher) than|<=|≤)"
    rf"\W{{1,4}}(?:the )?(?P<most>{_NUMBER})",
    rf"(?<!not )(?<!n't )(?:max(?:imum)?|limit|cap|supports?|allows?|accepts?)"
    r"(?: (?:value|number|output|allowed|permitted|only|tokens?"
    rf"|length|limit|is|of|for|this|model|to|at))*\W{{1,4}}(?P<limit>{_NUMBER})",
    rf"(?:limit|maximum)\b[^.\d]{{0,60}} (?:is|of|to)\W{{1,3}}(?P<named>{_NUMBER})",
)
"""Wordings that name the largest number that a server takes; `below`, `under`: the first that it does not
take.
"""
EXCLUSIVE = Wording(r"\s*\(exclusive\)")
"""Words behind a number that make it the first one too large; the bracket of a range does so, too."""
WINDOW = Wording(
    r"\+ ?\d+ ?> ?(\d+)|context(?:_| )(?:length|window|size)\D{0,40}(\d+)|max_(?:model|seq)_len\D{0,40}(\d+)",
    r"sequence length\D{0,40}(\d+)|tokens\W{0,3} \+ .{0,40}<=? ?(\d+)",
)
"""An error about the prompt and the reply together, with the window."""
WITH_PROMPT = re.compile(r"> ?\d+ - (\d+)")
"""The tokens of the prompt in an error about a reply that is longer than what the prompt leaves of the window."""
PROMPT = Wording(r"\bgot -\d|context|\bprompt\b|\binput (?:length|tokens?|is)\b|`inputs`")
"""Words of errors that a shorter prompt would heal."""
INSTEAD = Wording(r"use ['\"`]?(\w+)['\"`]? instead|did you mean ['\"`]?(\w+)")
NEW_NAMES = {"max_tokens": "max_completion_tokens"}
FIELDS_OF_CALLS = Wording(
    r"extra_content|provider_specific_fields|tool_calls.{0,60}(?:extra|unknown|unexpected|additional)"
)
SCHEMA = Wording(
    r"schema|grammar|function_declarations|parameters|json payload|keyword|input_schema|\btools?\W{0,3}\d*\W",
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
SCHEMA_SHAPES = {
    SEVERAL_TYPES: Wording(
        r"proto field is not repeating|(?:list|array|union)s? of types",
        r"\btype\b.{0,60}(?:must be a (?:single )?string|cannot be (?:an array|a list))",
        r"\btype\b.{0,60}(?:array|list) .{0,20}(?:not|un)",
    ),
    EMPTY_PROPERTIES: Wording(
        r"properties\W.{0,20}should be non-?empty|non-?empty for object|empty properties"
    ),
    NO_TYPE: Wording(
        r"\btype\b.{0,3} (?:is )?(?:not defined|missing|not specified|required)|missing (?:a )?type\b"
    ),
}
"""Things that are no keyword and are refused all the same."""
SCHEMA_REFUSED = Wording(
    r"(?:invalid|unsupported|bad|malformed|incompatible|unrecogni[sz]ed|unknown) .{0,40}schema|unsupported_keyword",
    r"schema.{0,80}(?:invalid|not (?:a )?(?:valid|supported)|unsupported|fail|error|too complex|conversion|compile)",
    r"(?:fail|error|unable)\w*.{0,40}(?:grammar|schema)|not a valid .{0,40}schema|schema is invalid",
    r"schema.{0,60}(?:may|must|can) ?not (?:contain|include|use|have)",
)
"""A tool's schema is not taken, and the error may not say for which keyword."""
IMAGE_TEXT = Wording(r"image_url.{0,80}(?:valid string|be a string|expected (?:a )?string|type: string)")
OF_THE_MODEL = Wording(r"tool_use_failed|failed_generation|failed to call a function|error parsing tool call")
"""The model wrote what the server cannot read: nothing about the request."""
