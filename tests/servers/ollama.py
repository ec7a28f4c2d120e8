"""Ollama's own protocol: a line of JSON a piece, calls whole."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from tests.openai_server import Answer, Recorded, json_answer
from tests.servers.make import WINDOW, FaultName, Make, Said, in_pieces


class Ollama(Make):
    """A local Ollama."""

    name = "ollama"
    model = "ollama_chat/qwen3:8b"
    retry_after = None
    facts: ClassVar[dict[str, Any]] = {
        "/api/show": {
            "parameters": f'num_ctx                        {WINDOW}\nstop                           "<|im_end|>"',
            "details": {"family": "qwen3"},
            "model_info": {"general.architecture": "qwen3", "qwen3.context_length": 40_960},
            "capabilities": ["completion", "tools", "thinking"],
            "template": "{{ .Tools }}",
        },
        "/api/ps": {"models": []},
        "/api/tags": {"models": [{"name": "qwen3:8b", "model": "qwen3:8b"}]},
    }

    def streamed(self, request: Recorded) -> bool:
        return request.body.get("stream", True) is not False

    def _line(self, message: dict[str, Any], **more: Any) -> dict[str, Any]:
        named = {"model": "qwen3:8b", "created_at": "2025-09-01T00:00:00Z"}
        return {**named, "message": {"role": "assistant", "content": "", **message}, "done": False, **more}

    def _ending(self, said: Said) -> dict[str, Any]:
        prompt, completion = said.usage
        return {"done": True, "done_reason": "stop", "prompt_eval_count": prompt, "eval_count": completion}

    def _calls(self, said: Said) -> list[dict[str, Any]]:
        return [{"function": {"name": name, "arguments": dict(given)}} for name, given in said.calls]

    def stream(self, said: Said) -> list[bytes]:
        lines = [self._line({"thinking": each}) for each in in_pieces(said.reasoning)]
        lines += [self._line({"content": each}) for each in in_pieces(said.text)]
        lines += [self._line({"tool_calls": [each]}) for each in self._calls(said)]
        lines.append(self._line({}, **self._ending(said)))
        return [json.dumps(each).encode() + b"\n" for each in lines]

    def whole(self, said: Said) -> Any:
        message: dict[str, Any] = {"content": said.text}
        if said.reasoning:
            message["thinking"] = said.reasoning
        if said.calls:
            message["tool_calls"] = self._calls(said)
        return self._line(message, **self._ending(said))

    def fault(self, name: FaultName) -> Answer | None:
        faults = {
            "overloaded": (503, "server busy, please try again.  maximum pending requests exceeded"),
            "overflow": (400, "the input length exceeds the context length"),
            "auth": (401, "unauthorized"),
            "not_found": (404, "model 'qwen3:8b' not found"),
            "no_tools": (400, "registry.ollama.ai/library/qwen3:8b does not support tools"),
        }
        if name not in faults:
            return None
        status, words = faults[name]
        return json_answer({"error": words}, status)
