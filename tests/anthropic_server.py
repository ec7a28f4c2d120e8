"""Answers of Anthropic's messages API for the scripted loopback server (`openai_server`)."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.openai_server import Answer, stream

_NUMBERS = itertools.count(1)


def says(words: str) -> Answer:
    """A reply of text that ends the turn."""
    return _message([{"type": "text", "text": words}], "end_turn")


def calls(wanted: Sequence[tuple[str, Mapping[str, Any]]], *, first: int = 0) -> Answer:
    """A reply with these tool calls, (name, input) each; their ids count from `first`."""
    blocks = [
        {"type": "tool_use", "id": f"toolu_{first + index:04}", "name": name, "input": dict(given)}
        for index, (name, given) in enumerate(wanted)
    ]
    return _message(blocks, "tool_use")


def _message(blocks: Sequence[Mapping[str, Any]], stop: str) -> Answer:
    usage = {"input_tokens": 10, "output_tokens": 5}
    message = {
        "id": f"msg_{next(_NUMBERS)}", "type": "message", "role": "assistant", "model": "served", "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": usage,
    }  # fmt: skip
    steps = [event("message_start", message=message)]
    for index, block in enumerate(blocks):
        if block["type"] == "text":
            empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        steps.append(event("content_block_start", index=index, content_block=empty))
        steps.append(event("content_block_delta", index=index, delta=delta))
        steps.append(event("content_block_stop", index=index))
    steps.append(event("message_delta", delta={"stop_reason": stop, "stop_sequence": None}, usage=usage))
    return stream(*steps, event("message_stop"))


def event(kind: str, **fields: Any) -> bytes:
    """A server-sent event, as other protocols have it too."""
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()
