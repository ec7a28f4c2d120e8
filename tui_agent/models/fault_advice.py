"""What an operator can do about a failed model call: which key, which model, which address.

Words only; what kind of fault it is is decided in `faults`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tui_agent.config.errors import PROVIDER_KEYS
from tui_agent.core.names import FaultKind

_KEYS = PROVIDER_KEYS | {
    "cohere_chat": PROVIDER_KEYS["cohere"],
    "bedrock": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "vertex_ai": "VERTEXAI_PROJECT and VERTEXAI_LOCATION",
}


@dataclass(frozen=True)
class CallFacts:
    """What is known about a call when it fails."""

    model: str
    provider: str = ""
    api_base: str | None = None
    key_variables: tuple[str, ...] = ()
    """Environment variables that are missing, where the provider's library names them."""

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


def advice(kind: FaultKind, facts: CallFacts) -> str:
    """One or two sentences that say what to do next."""
    match kind:
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
            return f"Check that {facts.model} can call tools and that {facts.server} takes such requests."
        case FaultKind.BAD_OUTPUT:
            return (
                f"Check that {facts.server} offers OpenAI's chat protocol (an --api-base often ends in /v1)."
            )
        case _:
            return _ADVICE.get(kind, "Wait and try again, or choose another model.")


_ADVICE = {
    FaultKind.TIMEOUT: "Wait and try again, or allow a longer silence with --model-timeout SECONDS.",
    FaultKind.CONTEXT_OVERFLOW: (
        "Set a smaller budget with --context-tokens N, or choose a model with a larger context window."
    ),
    FaultKind.CONTENT_POLICY: "Word the task differently, or choose another model.",
    FaultKind.NO_TOOLS: (
        'Choose a model that calls tools, or set tool_calls = "text": it then writes its calls as text.'
    ),
}
"""Where the call's facts add nothing."""
