"""OpenRouter: OpenAI's chat protocol, with reasoning in details of its own that come back unmodified."""

from __future__ import annotations

from typing import Any

from tests.openai_server import Answer, Recorded, chunk, error, json_answer
from tests.servers.chat import OpenAIChat
from tests.servers.make import PROMPT, WINDOW, FaultName, Said

SIGNATURE = "EpwBCkYIBxgCKkBS"
DATA = "gAAAAABo"
FORM = {"format": "anthropic-claude-v1"}


class OpenRouter(OpenAIChat):
    """openrouter.ai with one of Anthropic's models behind it."""

    name = "openrouter"
    model = "openrouter/anthropic/claude-sonnet-4.5"
    retry_after = None

    def details(self, said: Said) -> list[dict[str, Any]]:
        """The reasoning of a reply, whole."""
        return [
            {"type": "reasoning.text", "text": said.reasoning, "signature": SIGNATURE, **FORM, "index": 0},
            {"type": "reasoning.encrypted", "data": DATA, **FORM, "index": 1},
        ]

    def stream(self, said: Said) -> list[bytes]:
        sent = super().stream(said)
        if said.reasoning:
            last = sum(b"reasoning_details" in each for each in sent)
            text, encrypted = self.details(said)
            signed = {key: value for key, value in text.items() if key != "text"}
            sent.insert(last + 1, chunk({"content": "", "reasoning_details": [signed]}))
            sent.insert(last + 2, chunk({"content": "", "reasoning_details": [encrypted]}))
        return sent

    def _thought(self, words: str) -> bytes:
        piece = {"type": "reasoning.text", "text": words, **FORM, "index": 0}
        return chunk({"content": "", "reasoning": words, "reasoning_details": [piece]})

    def whole(self, said: Said) -> Any:
        made = super().whole(said)
        if said.reasoning:
            message = made["choices"][0]["message"]
            message["reasoning"] = message.pop("reasoning_content")
            message["reasoning_details"] = self.details(said)
        return made

    def answer(self, said: Said, request: Recorded) -> Answer:
        """See `Make`. Thoughts that come back changed are refused, as Anthropic does."""
        for message in request.body["messages"]:
            for detail in message.get("reasoning_details") or ():
                if detail["type"] == "reasoning.text" and detail.get("signature") != SIGNATURE:
                    return error(400, "Provider returned error: Invalid `signature` in `thinking` block")
        return super().answer(said, request)

    def fault(self, name: FaultName) -> Answer | None:
        overflow = (
            f"This endpoint's maximum context length is {WINDOW} tokens. However, you requested about {PROMPT} tokens "
            f"({PROMPT - 10} of text input, 10 in the output). Please reduce the length of either one, or use the "
            '"middle-out" transform to compress your prompt automatically.'
        )
        faults = {
            "rate_limit": (429, "Provider returned error"),
            "overloaded": (503, "No instances available: the provider is overloaded"),
            "overflow": (400, overflow),
            "auth": (401, "No auth credentials found"),
            "not_found": (404, "No endpoints found for anthropic/claude-sonnet-4.5."),
            "no_tools": (404, "No endpoints found that support tool use."),
        }
        if name not in faults:
            return None
        status, words = faults[name]
        raw = f"{self.model} is temporarily rate-limited upstream. Please retry shortly."
        more = {"metadata": {"raw": raw, "provider_name": "Anthropic"}} if name == "rate_limit" else {}
        return json_answer({"error": {"message": words, "code": status, **more}}, status)
