"""OpenAI's models at Azure: the same protocol by deployments, with words of its own."""

from __future__ import annotations

import json
from typing import Any

from tests.openai_server import Answer, error, json_answer
from tests.servers.chat import OpenAIChat
from tests.servers.make import RETRY_AFTER, FaultName, Said

_CLEAN: dict[str, Any] = {"hate": {"filtered": False, "severity": "safe"}}


class Azure(OpenAIChat):
    """Azure OpenAI: each stream begins with what its content filter says of the prompt."""

    name = "azure"
    model = "azure/gpt-4o"
    base = ""

    def stream(self, said: Said) -> list[bytes]:
        verdict = {"prompt_index": 0, "content_filter_results": _CLEAN}
        first = {
            "id": "",
            "object": "",
            "created": 0,
            "model": "",
            "choices": [],
            "prompt_filter_results": [verdict],
        }
        return [f"data: {json.dumps(first)}\n\n".encode(), *super().stream(said)]

    def fault(self, name: FaultName) -> Answer | None:
        match name:
            case "rate_limit":
                words = (
                    "Requests to the ChatCompletions_Create Operation under Azure OpenAI API version 2024-10-21 have "
                    "exceeded token rate limit of your current OpenAI S0 pricing tier. "
                    f"Please retry after {RETRY_AFTER} seconds."
                )
                return error(429, words, code="429", retry_after=RETRY_AFTER)
            case "overloaded":
                return error(
                    503, "The service is temporarily unable to process your request. Please try again later."
                )
            case "auth":
                words = "Access denied due to invalid subscription key or wrong API endpoint."
                return json_answer({"error": {"code": "401", "message": words}}, 401)
            case "not_found":
                words = "The API deployment for this resource does not exist."
                return json_answer({"error": {"code": "DeploymentNotFound", "message": words}}, 404)
            case _:
                return super().fault(name)
