"""What a provider gives with a reply and wants back later: signed thinking, encrypted reasoning, signatures.

Collected from litellm's deltas and put on the messages again, unmodified, for the provider that gave it and nobody
else. The history keeps it beside the message (key `carried`); no server ever sees that key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tui_agent.core.values import Carried, ToolCall

SIGNATURE_IN_ID = "__thought__"
"""litellm hides Gemini's signature in the id of the call, behind this."""

_OPEN_REASONING = frozenset(
    {
        "deepseek",
        "moonshot",
        "dashscope",
        "zai",
        "minimax",
        "volcengine",
        "openrouter",
        "fireworks_ai",
        "nvidia_nim",
        "hosted_vllm",
        "lm_studio",
        "llamafile",
        "ollama_chat",
        "custom_openai",
    }
)
"""Providers whose models want the plain text of their reasoning back with the calls that came of it."""


def takes_open_reasoning(provider: str, *, own_server: bool) -> bool:
    """Whether `reasoning_content` goes back to the provider; `own_server`: OpenAI's protocol at another address."""
    return provider in _OPEN_REASONING or (provider == "openai" and own_server)


@dataclass
class CarriedPieces:
    """Collects what is to be carried from the deltas of one reply."""

    thinking: list[dict[str, Any]] = field(default_factory=list)
    reasoning_items: list[dict[str, Any]] = field(default_factory=list)
    signatures: list[str] = field(default_factory=list)

    def add(self, delta: Any) -> None:
        """Look at a delta, or at a whole message."""
        for block in getattr(delta, "thinking_blocks", None) or ():
            self._add_thinking(_plain(block))
        items = getattr(delta, "reasoning_items", None)
        if items:
            self.reasoning_items = [_plain(item) for item in items]
        own = getattr(delta, "provider_specific_fields", None)
        if isinstance(own, Mapping):
            self.signatures.extend(own.get("thought_signatures") or ())

    def _add_thinking(self, block: dict[str, Any]) -> None:
        """Pieces of a block follow each other; its signature, which comes last, closes it."""
        last = self.thinking[-1] if self.thinking else None
        grows = block.get("type") == "thinking" and last is not None and last.get("type") == "thinking"
        if last is None or not grows or last.get("signature"):
            self.thinking.append(dict(block))
            return
        last["thinking"] = str(last.get("thinking") or "") + str(block.get("thinking") or "")
        if block.get("signature"):
            last["signature"] = block["signature"]

    def carried(
        self,
        provider: str,
        calls: Sequence[ToolCall],
        signed: Sequence[str],
        reasoning: str,
        *,
        details: Sequence[Mapping[str, Any]] = (),
        own_server: bool,
    ) -> Carried | None:
        """What the reply carries for `provider`; `signed` holds a signature for each call, or "". None: nothing.

        `details`: the pieces of OpenRouter's `reasoning_details`.
        """
        message: dict[str, Any] = {}
        blocks = [
            block for block in self.thinking if block.get("type") != "thinking" or block.get("signature")
        ]
        if blocks and not provider.startswith(("gemini", "mistral")) and not any(signed):
            message["thinking_blocks"] = blocks
        if self.reasoning_items:
            message["reasoning_items"] = self.reasoning_items
        if details:
            message["reasoning_details"] = _joined(details)
        if self.signatures and not calls:
            message["provider_specific_fields"] = {"thought_signatures": self.signatures}
        open_reasoning = (
            bool(calls and reasoning.strip())
            and not details
            and takes_open_reasoning(provider, own_server=own_server)
        )
        if not message and not any(signed) and not open_reasoning:
            return None
        return Carried(
            provider=provider,
            message=message,
            signatures=tuple(signed) if any(signed) else (),
            reasoning=open_reasoning,
        )


def _joined(pieces: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Details from their pieces: those of one follow each other with its type and index, and their texts join."""
    joined: list[dict[str, Any]] = []
    for piece in pieces:
        last = joined[-1] if joined else {}
        if "index" not in piece or any(last.get(key) != piece.get(key) for key in ("type", "index")):
            joined.append(dict(piece))
            continue
        for key, value in piece.items():
            grows = key in {"text", "summary", "data"} and isinstance(last.get(key), str)
            last[key] = last[key] + str(value or "") if grows else value
    return joined


def restored(message: dict[str, Any], provider: str, *, with_carried: bool) -> dict[str, Any]:
    """The message as the provider takes it: with what it gave, where it was this one; without the key otherwise."""
    if "carried" not in message:
        return message
    plain = {key: value for key, value in message.items() if key != "carried"}
    carried: Mapping[str, Any] = message["carried"]
    if not with_carried or carried.get("provider") != provider:
        return plain
    plain.update(carried.get("message") or {})
    if carried.get("reasoning"):
        plain["reasoning_content"] = carried["reasoning"]
    signatures = carried.get("signatures") or ()
    if signatures and plain.get("tool_calls"):
        plain["tool_calls"] = [
            {**call, "provider_specific_fields": {"thought_signature": signature}} if signature else call
            for call, signature in zip(plain["tool_calls"], signatures, strict=False)
        ]
    return plain


def split_id(call_id: str) -> tuple[str, str]:
    """A call's id and the signature that litellm hid in it."""
    own, _, signature = call_id.partition(SIGNATURE_IN_ID)
    return own, signature


def _plain(value: Any) -> dict[str, Any]:
    """A value of litellm's as a plain dictionary."""
    if isinstance(value, Mapping):
        return dict(value)
    dumped: dict[str, Any] = value.model_dump(exclude_none=True)
    return dumped
