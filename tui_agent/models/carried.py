"""Fields that a provider gives with a reply and wants back later: signed thinking, encrypted reasoning,
signatures, and fields of its own in calls.

Collected from deltas and put on the messages again, unmodified, for the provider that gave it and nobody else. The
history keeps it beside the message (key `carried`); no server ever sees that key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tui_agent.core.values import Carried, ToolCall
from tui_agent.models.habits import Habits

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
    """True if `reasoning_content` goes back to the provider; `own_server`: OpenAI's protocol at another
    address.
    """
    return provider in _OPEN_REASONING or (provider == "openai" and own_server)


_OF_THE_PROTOCOL = frozenset({"id", "type", "index", "function", "custom", "provider_specific_fields"})
"""Fields of a call that are OpenAI's, or litellm's; any other is the server's own."""
_REASONING_FIELDS = ("reasoning_content", "reasoning")


@dataclass
class _OwnCall:
    """Fields that the server put into a call beside the protocol's."""

    id: str
    fields: dict[str, Any] = field(default_factory=dict)


class OwnFields:
    """Collects from the provider's own deltas what a library may leave out: fields of its own in calls, and the name
    of the field that holds the reasoning.
    """

    def __init__(self) -> None:
        self.reasoning_name = ""
        self._calls: list[_OwnCall] = []
        self._by_index: dict[Any, _OwnCall] = {}

    def add(self, delta: Any) -> None:
        """Look at a delta, or at a whole message, of a dictionary's form or of a model's."""
        for name in _REASONING_FIELDS:
            if not self.reasoning_name and isinstance(of(delta, name), str):
                self.reasoning_name = name
        calls = of(delta, "tool_calls")
        for at, call in enumerate(calls if isinstance(calls, Sequence) else ()):
            index, own_id = of(call, "index"), str(of(call, "id") or "")
            key = at if index is None else index
            known = self._by_index.get(key)
            if known is None or (own_id and known.id and own_id != known.id):
                known = self._by_index[key] = _OwnCall(own_id)
                self._calls.append(known)
            known.id = known.id or own_id
            known.fields |= _own(call)

    def of(self, calls: Sequence[ToolCall]) -> tuple[dict[str, Any], ...]:
        """The fields of these calls, one for each; nothing if there are none."""
        if not any(each.fields for each in self._calls):
            return ()
        if len(calls) == len(self._calls):
            return tuple(dict(each.fields) for each in self._calls)
        by_id = {each.id: each.fields for each in self._calls if each.id}
        return tuple(dict(by_id.get(call.id, {})) for call in calls)


def of(value: Any, name: str) -> Any:
    """A field of a library's object, or of plain data."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _own(call: Any) -> dict[str, Any]:
    """The fields of a call that the protocol does not know."""
    given = call if isinstance(call, Mapping) else getattr(call, "model_extra", None) or {}
    return {
        name: value for name, value in given.items() if name not in _OF_THE_PROTOCOL and value is not None
    }


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
        own: OwnFields | None = None,
        own_server: bool,
    ) -> Carried | None:
        """The reply's fields for `provider`; `signed` holds a signature for each call, or "". None: nothing.

        `details`: the pieces of OpenRouter's `reasoning_details`. `own`: what else the provider's deltas held.
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
        fields = own.of(calls) if own is not None else ()
        if not message and not any(signed) and not open_reasoning and not fields:
            return None
        name = own.reasoning_name if own is not None and open_reasoning else ""
        return Carried(
            provider=provider,
            message=message,
            signatures=tuple(signed) if any(signed) else (),
            calls=fields,
            reasoning=open_reasoning,
            reasoning_name="" if name == "reasoning_content" else name,
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


def restored(message: dict[str, Any], provider: str, habits: Habits) -> dict[str, Any]:
    """The message as the provider takes it: with its own fields if it was this one; else without the key."""
    if "carried" not in message:
        return message
    plain = {key: value for key, value in message.items() if key != "carried"}
    carried: Mapping[str, Any] = message["carried"]
    if carried.get("provider") != provider:
        return plain
    if carried.get("reasoning") and habits.reasoning != "none" and habits.carried:
        name = habits.reasoning_name or carried.get("reasoning_name") or "reasoning_content"
        plain[name] = carried["reasoning"]
    calls = list(plain.get("tool_calls") or ())
    if habits.carried:
        plain.update(carried.get("message") or {})
        for at, signature in enumerate((carried.get("signatures") or ())[: len(calls)]):
            if signature:
                calls[at] = {**calls[at], "provider_specific_fields": {"thought_signature": signature}}
    if habits.call_fields:
        for at, fields in enumerate((carried.get("calls") or ())[: len(calls)]):
            calls[at] = {**fields, **calls[at]}
    if calls:
        plain["tool_calls"] = calls
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
