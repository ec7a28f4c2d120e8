"""Messages in Anthropic's form: content in blocks, a call as `tool_use`, its result as `tool_result` of the user.

Dumps of the API, and the histories of Cline, Roo and Kilo; goose's sessions have blocks of their own names
for the same. A result has failed if it says so (`is_error`, goose's `status`), or if it begins with a
sentence that these agents write of a failure; a missing `is_error` means false, as Anthropic has it. Older
versions of Cline and Roo write calls as tags in the text and results behind `[tool for '…'] Result:`; such
calls are rebuilt from their results.
"""

from __future__ import annotations

import re
from typing import Any

from tui_agent.core.events import FailureKind
from tui_agent.formats.importers.block_results import result_of_block, result_of_text
from tui_agent.formats.importers.openai_messages import MessageReader, OpenAIMessages, message_time
from tui_agent.formats.importers.reading import Record, Recording
from tui_agent.formats.importers.transcript import Result, Turn
from tui_agent.formats.importers.values import (
    clean,
    joined,
    list_at,
    object_at,
    text_at,
)

CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use", "toolRequest", "frontendToolRequest"})
RESULTS = frozenset({"tool_result", "toolResponse"})
_TEXTS = frozenset({"text", "thinking", "redacted_thinking", "reasoning", "redactedThinking"})
_OTHER = frozenset(
    {
        *("image", "document", "search_result", "container_upload", "toolConfirmationRequest"),
        *("systemNotification", "summarizationRequested", "contextLengthExceeded", "actionRequired"),
    }
)
"""Blocks without a part in what was called."""
_ADDED = ("<environment_details>", "<system-reminder>", "<info-msg>")
_ASKED = re.compile(r"\A\s*<(task|user_input|user_message)\b[^>]*>\s*(.*?)\s*</\1>\s*\Z", re.DOTALL)
"""The tags that Cline, Roo and Kilo put around the operator's words."""
_WRITTEN = re.compile(r"^\[(\w+)(?: for '(.*?)')?[^\]\n]*\] Result:\s*", re.DOTALL)
_TAG = re.compile(r"<(\w+)>(.*?)</\1>", re.DOTALL)


def is_block_message(message: Any) -> bool:
    """True if a message holds a block of a call or a result in this form."""
    kinds = {text_at(block, "type") for block in list_at(message, "content")}
    return any(kind in CALLS or _is_result(kind) for kind in kinds) or any(
        _WRITTEN.match(text_at(block, "text")) for block in list_at(message, "content")
    )


def _is_result(kind: str) -> bool:
    return kind in RESULTS or kind.endswith("_tool_result")


class BlockReader(MessageReader):
    """Messages of one conversation."""

    def take(self, message: Record) -> None:
        blocks = message.get("content")
        if text_at(message, "role") not in {"user", "assistant"} or not isinstance(blocks, list):
            super().take(message)
            return
        at, texts = message_time(message), list[str]()
        turn = Turn(at, model=text_at(message, "model")) if message.get("role") == "assistant" else None
        if turn is not None:
            turn.finish_reason = text_at(message, "stop_reason")
            self.add(turn)
        ended = False
        for block in blocks:
            kind, text = (
                text_at(block, "type"),
                clean(block) if isinstance(block, str) else text_at(block, "text"),
            )
            if _is_result(kind):
                ended = True
                self._blocks_end(block, at)
            elif kind in CALLS and turn is not None:
                self._asked(turn, block)
            elif turn is not None and kind in _TEXTS - {"text"}:
                turn.reasoning = joined(turn.reasoning, text_at(block, "thinking") or text or "[redacted]")
            elif kind in {"text", ""} and text:
                texts.append(text)
            elif kind not in _TEXTS | _OTHER:
                self.report.lose(f"block {kind or 'without a type'}")
        if turn is not None:
            turn.text = "\n\n".join(texts)
            return
        rest = self._written(texts, at)
        if said := [text for text in rest if not text.lstrip().startswith(_ADDED) and text.strip()]:
            self.said(_ASKED.sub(r"\2", "\n\n".join(said)), at)
        elif not ended and len(rest) == len(texts):
            self.leave_out("message without text")

    def _asked(self, turn: Turn, block: Record) -> None:
        key = text_at(block, "id") or f"call-{len(self.calls)}"
        value = object_at(block, "toolCall", "value") or object_at(block, "toolCall")
        if "toolCall" not in block:
            self.call(turn, key, text_at(block, "name"), block.get("input"))
        elif error := text_at(block, "toolCall", "error"):
            call = self.call(turn, key, "", None)
            result = Result("failed", error, None, error, FailureKind.INVALID_TOOL_CALL)
            self.ended_as(turn, call, result)
        else:
            self.call(turn, key, text_at(value, "name"), value.get("arguments"))

    def _blocks_end(self, block: Record, at: float | None) -> None:
        self.end(text_at(block, "tool_use_id") or text_at(block, "id"), result_of_block, block, at)

    def _written(self, texts: list[str], at: float | None) -> list[str]:
        """The texts but for those that are results of calls in tags; each such call is made of its result."""
        turn = next((step for step in reversed(self.transcript.steps) if isinstance(step, Turn)), None)
        rest, place = list[str](), 0
        while place < len(texts):
            head = _WRITTEN.match(texts[place])
            text, place = texts[place], place + 1
            if head is None or turn is None:
                rest.append(text)
                continue
            body = text[head.end() :]
            if not body.strip() and place < len(texts):
                body, place = texts[place], place + 1
            tag = next((found for name, found in _TAG.findall(turn.text) if name == head[1]), "")
            given = {name: value.strip() for name, value in _TAG.findall(tag)} or {"for": head[2] or ""}
            call = self.call(turn, f"call-{len(self.calls)}", head[1], given)
            self.ended_as(turn, call, result_of_text(call, body, at))
            self.report.rebuilt += 1
        return rest


class AnthropicMessages(OpenAIMessages):
    """One conversation, or many with what stands around each."""

    name = "Anthropic messages"
    conversation = BlockReader

    @classmethod
    def matches(cls, recording: Recording) -> bool:
        """Messages with roles, one of them with a block of a call or a result."""
        return cls.arranged(recording) and any(map(is_block_message, cls.messages(recording)))
