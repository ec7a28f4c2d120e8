"""Anthropic's messages: content blocks that open, grow and close; thinking is signed."""

from __future__ import annotations

import json
from typing import Any

from tests.openai_server import Answer, json_answer
from tests.servers.make import PROMPT, RETRY_AFTER, WINDOW, FaultName, Make, Said, event, in_pieces

SIGNATURE = "EqQBCgIYAhIkMm1vc3QgbGlrZWx5IGEgc2lnbmF0dXJl"
REDACTED = "EmwKAhgBEgy3va3pzix/LafPsn4aDFIT2Xlxh0L5L8rLVyIwxtE3rAFBa8cr3qpPkNRj2YfWXGmKDxH4mPnZ5sQ7vB7M"


class Anthropic(Make):
    """api.anthropic.com."""

    name = "anthropic"
    model = "anthropic/claude-sonnet-4-5"

    def _blocks(self, said: Said) -> list[dict[str, Any]]:
        blocks: list[dict[str, Any]] = []
        if said.reasoning:
            blocks.append({"type": "thinking", "thinking": said.reasoning, "signature": SIGNATURE})
            blocks.append({"type": "redacted_thinking", "data": REDACTED})
        if said.text or said.refusal:
            blocks.append({"type": "text", "text": said.text or said.refusal})
        for at, (name, arguments) in enumerate(said.calls):
            blocks.append({"type": "tool_use", "id": f"toolu_{at}", "name": name, "input": dict(arguments)})
        return blocks

    def _stop(self, said: Said) -> str:
        if said.refusal:
            return "refusal"
        return "tool_use" if said.calls else "end_turn"

    def stream(self, said: Said) -> list[bytes]:
        prompt, completion = said.usage
        read, written = said.cached
        message = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4-5",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {
                "input_tokens": prompt - read - written,
                "cache_read_input_tokens": read,
                "cache_creation_input_tokens": written,
                "output_tokens": 1,
            },
        }
        events: list[dict[str, Any]] = [{"type": "message_start", "message": message}]
        for index, block in enumerate(self._blocks(said)):
            events.append({"type": "content_block_start", "index": index, "content_block": _opened(block)})
            events += (
                {"type": "content_block_delta", "index": index, "delta": each} for each in _deltas(block)
            )
            events.append({"type": "content_block_stop", "index": index})
        ending = {"stop_reason": self._stop(said), "stop_sequence": None}
        events.append({"type": "message_delta", "delta": ending, "usage": {"output_tokens": completion}})
        events.append({"type": "message_stop"})
        return [event(each, each["type"]) for each in events]

    def whole(self, said: Said) -> Any:
        prompt, completion = said.usage
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4-5",
            "content": self._blocks(said),
            "stop_reason": self._stop(said),
            "stop_sequence": None,
            "usage": {"input_tokens": prompt, "output_tokens": completion},
        }

    def fault(self, name: FaultName) -> Answer | None:
        faults = {
            "rate_limit": (
                429,
                "rate_limit_error",
                "This request would exceed your organization's rate limit",
            ),
            "overloaded": (529, "overloaded_error", "Overloaded"),
            "overflow": (
                400,
                "invalid_request_error",
                f"prompt is too long: {PROMPT} tokens > {WINDOW} maximum",
            ),
            "auth": (401, "authentication_error", "invalid x-api-key"),
            "not_found": (404, "not_found_error", "model: claude-sonnet-4-5"),
        }
        if name not in faults:
            return None
        status, kind, message = faults[name]
        body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
        return json_answer(body, status, retry_after=RETRY_AFTER if name == "rate_limit" else None)


def _opened(block: dict[str, Any]) -> dict[str, Any]:
    match block["type"]:
        case "thinking":
            return {"type": "thinking", "thinking": "", "signature": ""}
        case "text":
            return {"type": "text", "text": ""}
        case "tool_use":
            return {**block, "input": {}}
        case _:
            return block


def _deltas(block: dict[str, Any]) -> list[dict[str, Any]]:
    match block["type"]:
        case "thinking":
            thinking = [{"type": "thinking_delta", "thinking": each} for each in in_pieces(block["thinking"])]
            return [*thinking, {"type": "signature_delta", "signature": block["signature"]}]
        case "text":
            return [{"type": "text_delta", "text": each} for each in in_pieces(block["text"])]
        case "tool_use":
            written = json.dumps(block["input"])
            return [{"type": "input_json_delta", "partial_json": each} for each in ("", *in_pieces(written))]
        case _:
            return []
