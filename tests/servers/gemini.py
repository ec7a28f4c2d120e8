"""Gemini: parts of contents; a thought's signature stands with the part that came of it."""

from __future__ import annotations

from typing import Any

from tests.openai_server import Answer, Recorded, json_answer
from tests.servers.make import PROMPT, RETRY_AFTER, WINDOW, FaultName, Make, Said, event, in_pieces

SIGNATURE = "CikBGXHVZZ0YW5kIHNvIG9uLCBpbiBiYXNlNjQ="


class Gemini(Make):
    """generativelanguage.googleapis.com."""

    name = "gemini"
    model = "gemini/gemini-2.5-pro"

    def streamed(self, request: Recorded) -> bool:
        return "streamGenerateContent" in request.path

    def _parts(self, said: Said) -> list[dict[str, Any]]:
        parts: list[dict[str, Any]] = []
        parts += ({"text": each, "thought": True} for each in in_pieces(said.reasoning))
        parts += ({"text": each} for each in in_pieces(said.text))
        for at, (name, arguments) in enumerate(said.calls):
            part: dict[str, Any] = {"functionCall": {"name": name, "args": dict(arguments)}}
            if said.reasoning and at == 0:
                part["thoughtSignature"] = SIGNATURE
            parts.append(part)
        return parts

    def _usage(self, said: Said) -> dict[str, int]:
        prompt, completion = said.usage
        return {
            "promptTokenCount": prompt,
            "candidatesTokenCount": completion,
            "totalTokenCount": prompt + completion,
        }

    def stream(self, said: Said) -> list[bytes]:
        if said.refusal:
            blocked = {
                "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
                "usageMetadata": self._usage(said),
                "modelVersion": "gemini-2.5-pro",
            }
            return [event(blocked)]
        pieces = [
            {"candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}]}
            for part in self._parts(said)
        ]
        pieces[-1]["candidates"][0]["finishReason"] = "STOP"
        return [
            event({**piece, "usageMetadata": self._usage(said), "modelVersion": "gemini-2.5-pro"})
            for piece in pieces
        ]

    def whole(self, said: Said) -> Any:
        candidate = {
            "content": {"role": "model", "parts": self._parts(said)},
            "finishReason": "STOP",
            "index": 0,
        }
        return {
            "candidates": [candidate],
            "usageMetadata": self._usage(said),
            "modelVersion": "gemini-2.5-pro",
        }

    def fault(self, name: FaultName) -> Answer | None:
        faults: dict[str, tuple[int, str, str, list[dict[str, Any]]]] = {
            "rate_limit": (
                429,
                "RESOURCE_EXHAUSTED",
                f"You exceeded your current quota, please check your plan. Please retry in {RETRY_AFTER}.0s.",
                [
                    {
                        "@type": "type.googleapis.com/google.rpc.QuotaFailure",
                        "violations": [
                            {
                                "quotaId": "GenerateRequestsPerMinutePerProjectPerModel-FreeTier",
                                "quotaValue": "5",
                            }
                        ],
                    },
                    {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{RETRY_AFTER}s"},
                ],
            ),
            "overloaded": (
                503,
                "UNAVAILABLE",
                "The model is overloaded. Please try again later.",
                [],
            ),
            "overflow": (
                400,
                "INVALID_ARGUMENT",
                f"The input token count ({PROMPT}) exceeds the maximum number of tokens allowed ({WINDOW}).",
                [],
            ),
            "auth": (
                400,
                "INVALID_ARGUMENT",
                "API key not valid. Please pass a valid API key.",
                [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}],
            ),
            "not_found": (
                404,
                "NOT_FOUND",
                "models/gemini-2.5-pro is not found for API version v1beta, or is not supported.",
                [],
            ),
        }
        if name not in faults:
            return None
        status, word, message, details = faults[name]
        body = {"error": {"code": status, "message": message, "status": word, "details": details}}
        return json_answer(body, status)
