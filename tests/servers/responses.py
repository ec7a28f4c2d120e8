"""OpenAI's responses: items that are added, grow and are done; reasoning comes back encrypted."""

from __future__ import annotations

from typing import Any

from tests.openai_server import Answer
from tests.servers.chat import OpenAIChat
from tests.servers.make import FaultName, Make, Said, event, in_pieces

ENCRYPTED = "gAAAAABo_encrypted_reasoning_of_the_model_that_nobody_reads"


class OpenAIResponses(Make):
    """api.openai.com/v1/responses."""

    name = "openai-responses"
    model = "openai/responses/gpt-5"
    base = "/v1"

    def _items(self, said: Said) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        if said.reasoning:
            summary = [{"type": "summary_text", "text": said.reasoning}]
            items.append(
                {"id": "rs_1", "type": "reasoning", "summary": summary, "encrypted_content": ENCRYPTED}
            )
        if said.text or said.refusal:
            part = (
                {"type": "refusal", "refusal": said.refusal}
                if said.refusal
                else {"type": "output_text", "text": said.text, "annotations": []}
            )
            items.append(
                {
                    "id": "msg_1",
                    "type": "message",
                    "role": "assistant",
                    "status": "completed",
                    "content": [part],
                }
            )
        for at, (name, arguments) in enumerate(said.arguments):
            items.append(
                {
                    "id": f"fc_{at}",
                    "type": "function_call",
                    "call_id": f"call_x{at}",
                    "name": name,
                    "arguments": arguments,
                    "status": "completed",
                }
            )
        return items

    def whole(self, said: Said) -> Any:
        prompt, completion = said.usage
        return {
            "id": "resp_1",
            "object": "response",
            "created_at": 1,
            "status": "completed",
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "model": "gpt-5",
            "output": self._items(said),
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "temperature": 1.0,
            "top_p": 1.0,
            "metadata": {},
            "usage": {
                "input_tokens": prompt,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": completion,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": prompt + completion,
            },
        }

    def stream(self, said: Said) -> list[bytes]:
        opened = {**self.whole(said), "status": "in_progress", "output": [], "usage": None}
        events: list[dict[str, Any]] = [
            {"type": "response.created", "response": opened},
            {"type": "response.in_progress", "response": opened},
        ]
        for at, item in enumerate(self._items(said)):
            events.append({"type": "response.output_item.added", "output_index": at, "item": _opened(item)})
            events += ({**each, "item_id": item["id"], "output_index": at} for each in _growth(item))
            events.append({"type": "response.output_item.done", "output_index": at, "item": item})
        events.append({"type": "response.completed", "response": self.whole(said)})
        return [event({**each, "sequence_number": n}, each["type"]) for n, each in enumerate(events)]

    def fault(self, name: FaultName) -> Answer | None:
        return OpenAIChat().fault(name)


def _opened(item: dict[str, Any]) -> dict[str, Any]:
    match item["type"]:
        case "reasoning":
            return {**item, "summary": []}
        case "message":
            return {**item, "content": [], "status": "in_progress"}
        case _:
            return {**item, "arguments": "", "status": "in_progress"}


def _growth(item: dict[str, Any]) -> list[dict[str, Any]]:
    match item["type"]:
        case "reasoning":
            text = item["summary"][0]["text"]
            head = {"summary_index": 0}
            return [
                {
                    "type": "response.reasoning_summary_part.added",
                    "part": {"type": "summary_text", "text": ""},
                }
                | head,
                *(
                    {"type": "response.reasoning_summary_text.delta", "delta": each} | head
                    for each in in_pieces(text)
                ),
                {"type": "response.reasoning_summary_text.done", "text": text} | head,
            ]
        case "message":
            (part,) = item["content"]
            kind = "refusal" if part["type"] == "refusal" else "output_text"
            words = part.get("refusal") or part.get("text")
            head = {"content_index": 0}
            return [
                {"type": "response.content_part.added", "part": {**part, kind.removeprefix("output_"): ""}}
                | head,
                *({"type": f"response.{kind}.delta", "delta": each} | head for each in in_pieces(words)),
                {"type": "response.content_part.done", "part": part} | head,
            ]
        case _:
            arguments = item["arguments"]
            return [
                *(
                    {"type": "response.function_call_arguments.delta", "delta": each}
                    for each in in_pieces(arguments)
                ),
                {"type": "response.function_call_arguments.done", "arguments": arguments},
            ]
