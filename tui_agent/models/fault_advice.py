"""Advice for the operator about a failed model call: the key, the model, the address.

Words only; what kind of fault it is is decided in `faults`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from tui_agent.config.errors import PROVIDER_KEYS
from tui_agent.core.names import FaultKind

_KEYS = PROVIDER_KEYS | {
    "cohere_chat": PROVIDER_KEYS["cohere"],
    "bedrock": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "vertex_ai": "VERTEXAI_PROJECT and VERTEXAI_LOCATION",
}


@dataclass(frozen=True)
class CallFacts:
    """Facts about a call when it fails."""

    model: str
    provider: str = ""
    api_base: str | None = None
    key_variables: tuple[str, ...] = ()
    """Environment variables that are missing, if the provider's library names them."""

    @property
    def key(self) -> str:
        """The variable or variables that hold the provider's key, in words."""
        if self.key_variables:
            return " or ".join(self.key_variables)
        return _KEYS.get(
            self.provider, f"{self.provider.upper()}_API_KEY" if self.provider else "the provider's key"
        )

    @property
    def server(self) -> str:
        """Who should answer, in words."""
        return self.api_base or (f"the provider {self.provider!r}" if self.provider else "the provider")

    @property
    def asked(self) -> str:
        """The model and the server of the call, in words."""
        return f"{self.model} at {self.api_base}" if self.api_base else self.model

    @property
    def lacks_version(self) -> bool:
        """True if the address of a server lacks `/v1`, under which servers of OpenAI's protocol mostly
        answer.
        """
        return self.api_base is not None and not _VERSION.search(urlsplit(self.api_base).path)


_VERSION = re.compile(r"/v\d|/openai|/api\b", re.IGNORECASE)
_NOT_LOADED = re.compile(
    r"not (?:currently )?loaded|no models? (?:is |are )?loaded|load a model|try pulling|model .{0,80}not found, try",
    re.IGNORECASE,
)
_OF_THE_MODEL = re.compile(r"\bmodel\b", re.IGNORECASE)

_TOOLS_ON = (
    (r"enable-auto-tool-choice", "Start vLLM with --enable-auto-tool-choice and --tool-call-parser NAME"),
    (r"--jinja|requires jinja", "Start llama-server with --jinja and a chat template that has tools"),
    (r"sglang|tool[ -]call[ -]?parser", "Start SGLang with --tool-call-parser NAME"),
    (r"lm ?studio", "Load a model in LM Studio that is marked for tool use"),
    (
        r"does not support tools|ollama",
        "Choose a model for which `ollama show NAME` lists the capability tools (`ollama pull` gets newer templates)",
    ),
)
"""By what a server says that refuses tools: how they are switched on there."""


def advice(kind: FaultKind, facts: CallFacts, text: str = "") -> str:
    """One or two sentences that say what to do next. `text` is what the server said."""
    if kind in _OF_THE_ADDRESS and facts.lacks_version and not _OF_THE_MODEL.search(text):
        return (
            "The address has no /v1, where most servers have OpenAI's protocol: try --api-base "
            f"{str(facts.api_base).rstrip('/')}/v1."
        )
    match kind:
        case FaultKind.NO_TOOLS:
            on = next((how for said, how in _TOOLS_ON if re.search(said, text, re.IGNORECASE)), "")
            return f"{on}; or {_AS_TEXT[0].lower()}{_AS_TEXT[1:]}" if on else _AS_TEXT
        case FaultKind.NOT_FOUND if _NOT_LOADED.search(text):
            return (
                f"Load the model in {facts.server} first (LM Studio: `lms load NAME`; Ollama: `ollama pull NAME`), or "
                "check its name there."
            )
        case FaultKind.AUTH:
            return (
                f"Set {facts.key} to a valid key for {facts.server} (in the console /login takes one), or choose "
                "another model."
            )
        case FaultKind.PERMISSION:
            return (
                f"The key in {facts.key} may not use {facts.model}: choose another model or another key (in the "
                "console /login takes one)."
            )
        case FaultKind.NOT_FOUND:
            return (
                f"Check the name {facts.model!r}: it is PROVIDER/NAME (like anthropic/claude-sonnet-4-5), or "
                "the name that your server gives it together with --api-base URL"
                + (f" (now {facts.api_base})." if facts.api_base else ".")
            )
        case FaultKind.QUOTA:
            return (
                f"The account behind {facts.key} has nothing left: add credit there, or choose another model."
            )
        case FaultKind.CONNECTION:
            return f"Check that {facts.server} is up and reachable from here" + (
                ", and that --api-base is right." if facts.api_base else " (network, proxy, DNS)."
            )
        case FaultKind.BAD_REQUEST:
            return f"The same request is not sent again. Check what {facts.server} says above, or choose another model."
        case FaultKind.BAD_OUTPUT:
            return (
                f"Check that {facts.server} offers OpenAI's chat protocol (an --api-base often ends in /v1)."
            )
        case _:
            return _ADVICE.get(kind, "Wait and try again, or choose another model.")


_AS_TEXT = 'Choose a model that calls tools, or set tool_calls = "text": it then writes its calls as text.'
_OF_THE_ADDRESS = frozenset({FaultKind.NOT_FOUND, FaultKind.BAD_OUTPUT, FaultKind.UNKNOWN})
"""Kinds that a wrong path of an address brings."""

_ADVICE = {
    FaultKind.TIMEOUT: "Wait and try again, or allow a longer silence with --model-timeout SECONDS.",
    FaultKind.CONTEXT_OVERFLOW: (
        "Set a smaller budget with --context-tokens N, or choose a model with a larger context window."
    ),
    FaultKind.CONTENT_POLICY: "Word the task differently, or choose another model.",
    FaultKind.USAGE_LIMIT: 'Wait until it resets, or choose another model; on_limit = "wait" waits by itself.',
    FaultKind.UNKNOWN: "No rule knows this answer: see the server's own log, or choose another model.",
}
"""Advice if the call's facts add nothing."""
