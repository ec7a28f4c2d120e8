"""OpenAI's chat completions, and the servers that speak them with words of their own."""

from __future__ import annotations

from typing import Any, ClassVar

from tests.openai_server import DONE, Answer, Recorded, chunk, error, json_answer, stream
from tests.servers.make import PROMPT, RETRY_AFTER, WINDOW, FaultName, Make, Said, event, in_pieces


class OpenAIChat(Make):
    """api.openai.com, and what the others share with it."""

    name = "openai"
    model = "openai/gpt-4o"
    base = "/v1"
    reasoning_field: ClassVar[str] = "reasoning_content"

    def stream(self, said: Said) -> list[bytes]:
        sent = [chunk({"role": "assistant", "content": "" if said.text else None})]
        sent += [self._thought(each) for each in in_pieces(said.reasoning)]
        sent += [chunk({"content": each}) for each in in_pieces(said.text)]
        sent += [chunk({"refusal": each}) for each in in_pieces(said.refusal)]
        for at, (name, arguments) in enumerate(said.arguments):
            function = {"name": name, "arguments": ""}
            sent.append(
                chunk(
                    {
                        "tool_calls": [
                            {"index": at, "id": self._id(at), "type": "function", "function": function}
                        ]
                    }
                )
            )
            sent += [
                chunk({"tool_calls": [{"index": at, "function": {"arguments": each}}]})
                for each in in_pieces(arguments)
            ]
        sent.append(chunk(finish="tool_calls" if said.calls else "stop"))
        return [*sent, chunk(usage=said.usage, cached=said.cached[0], choices=False), DONE]

    def _id(self, at: int) -> str:
        return f"call_{at}"

    def _thought(self, words: str) -> bytes:
        return chunk({self.reasoning_field: words})

    def whole(self, said: Said) -> Any:
        calls = [
            {"id": self._id(at), "type": "function", "function": {"name": name, "arguments": arguments}}
            for at, (name, arguments) in enumerate(said.arguments)
        ]
        message: dict[str, Any] = {"role": "assistant", "content": said.text or None}
        if said.reasoning:
            message[self.reasoning_field] = said.reasoning
        if calls:
            message["tool_calls"] = calls
        if said.refusal:
            message["refusal"] = said.refusal
        prompt, completion = said.usage
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": "served-model",
            "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}],
            "usage": {
                "prompt_tokens": prompt,
                "completion_tokens": completion,
                "total_tokens": prompt + completion,
            },
        }

    def fault(self, name: FaultName) -> Answer | None:
        match name:
            case "rate_limit":
                words = "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29990."
                return error(429, words, code="rate_limit_exceeded", kind="tokens", retry_after=RETRY_AFTER)
            case "overloaded":
                words = "The engine is currently overloaded, please try again later"
                return error(503, words, kind="server_error")
            case "overflow":
                words = (
                    f"This model's maximum context length is {WINDOW} tokens. However, your messages resulted in "
                    f"{PROMPT} tokens. Please reduce the length of the messages."
                )
                return error(400, words, code="context_length_exceeded", kind="invalid_request_error")
            case "auth":
                words = "Incorrect API key provided: none. You can find your API key at https://platform.openai.com."
                return error(401, words, code="invalid_api_key", kind="invalid_request_error")
            case "not_found":
                words = "The model `gpt-4o` does not exist or you do not have access to it."
                return error(404, words, code="model_not_found", kind="invalid_request_error")
            case _:
                return None


class Mistral(OpenAIChat):
    """api.mistral.ai: thoughts are blocks of the content, and unknown fields are refused."""

    name = "mistral"
    model = "mistral/magistral-medium-latest"
    retry_after = None

    def _id(self, at: int) -> str:
        return f"D681PevK{at}"

    def _thought(self, words: str) -> bytes:
        return chunk({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": words}]}]})

    def answer(self, said: Said, request: Recorded) -> Answer:
        """See `Make`."""
        for at, message in enumerate(request.body["messages"]):
            unknown = set(message) - {"role", "content", "tool_calls", "tool_call_id", "name", "prefix"}
            if unknown:
                where = {"type": "extra_forbidden", "loc": ["body", "messages", at, "assistant", *unknown]}
                return json_answer({"detail": [{**where, "msg": "Extra inputs are not permitted"}]}, 422)
        return super().answer(said, request)

    def fault(self, name: FaultName) -> Answer | None:
        faults = {
            "rate_limit": (429, "rate_limited", "Requests rate limit exceeded", "1300"),
            "overloaded": (
                503,
                "service_unavailable",
                "The model is overloaded. Please try again later.",
                "3700",
            ),
            "overflow": (
                400,
                "invalid_request_prompt",
                f"Prompt contains {PROMPT} tokens, too large for model with {WINDOW} maximum context length",
                "3051",
            ),
            "not_found": (400, "invalid_model", "Invalid model: magistral-medium-latest", "1500"),
        }
        if name == "auth":
            return json_answer({"detail": "Unauthorized"}, 401)
        if name not in faults:
            return None
        status, kind, message, code = faults[name]
        body = {"object": "error", "message": message, "type": kind, "param": None, "code": code}
        return json_answer(body, status)


class DeepSeek(OpenAIChat):
    """api.deepseek.com: a thought that led to calls must come back with them, in every later request."""

    name = "deepseek"
    model = "deepseek/deepseek-reasoner"
    retry_after = None

    def answer(self, said: Said, request: Recorded) -> Answer:
        """See `Make`."""
        with_calls = [each for each in request.body["messages"] if each.get("tool_calls")]
        if any(not str(each.get("reasoning_content") or "").strip() for each in with_calls):
            words = "The reasoning_content in the thinking mode must be passed back to the API."
            return error(400, words, kind="invalid_request_error", code="invalid_request_error")
        return super().answer(said, request)

    def fault(self, name: FaultName) -> Answer | None:
        match name:
            case "rate_limit":
                return error(429, "You are sending requests too quickly", kind="rate_limit_error")
            case "overloaded":
                return error(503, "Service is too busy: the server is overloaded", kind="service_unavailable")
            case "auth":
                return error(401, "Authentication Fails (no such user)", kind="authentication_error")
            case "overflow":
                words = (
                    f"This model's maximum context length is {WINDOW} tokens. However, you requested {PROMPT} tokens "
                    f"({PROMPT - 10} in the messages, 10 in the completion). Please reduce the length of the messages "
                    "or completion."
                )
                return error(400, words, kind="invalid_request_error", code="invalid_request_error")
            case _:
                return None


class LlamaCpp(OpenAIChat):
    """llama-server. Older builds answer an overflow of a stream with 200 and nothing at all."""

    name = "llama.cpp"
    model = "openai/qwen3-8b"
    retry_after = None
    facts: ClassVar[dict[str, Any]] = {
        "/props": {
            "default_generation_settings": {"n_ctx": WINDOW},
            "total_slots": 1,
            "model_path": "qwen3.gguf",
        },
        "/v1/models": {
            "object": "list",
            "data": [
                {
                    "id": "qwen3-8b",
                    "object": "model",
                    "owned_by": "llamacpp",
                    "meta": {"n_ctx_train": 40_960, "n_params": 8_190_735_360},
                }
            ],
        },
    }
    overflow: ClassVar[dict[str, Any]] = {
        "error": {
            "code": 400,
            "message": "the request exceeds the available context size, try increasing it",
            "type": "exceed_context_size_error",
            "n_prompt_tokens": PROMPT,
            "n_ctx": WINDOW,
        }
    }

    def fault(self, name: FaultName) -> Answer | None:
        match name:
            case "overloaded":
                return json_answer(_llama(503, "Loading model", "unavailable_error"), 503)
            case "auth":
                return json_answer(_llama(401, "Invalid API Key", "authentication_error"), 401)
            case "overflow":
                return json_answer(self.overflow, 400)
            case "no_tools":
                return json_answer(_llama(500, "tools param requires --jinja flag", "server_error"), 500)
            case _:
                return None


def _llama(code: int, message: str, kind: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "type": kind}}


class Vllm(OpenAIChat):
    """vLLM, reached as any server with OpenAI's protocol; it names its window."""

    name = "vllm"
    model = "hosted_vllm/Qwen/Qwen3-8B"
    retry_after = None
    facts: ClassVar[dict[str, Any]] = {
        "/v1/models": {
            "object": "list",
            "data": [{"id": "Qwen/Qwen3-8B", "object": "model", "owned_by": "vllm", "max_model_len": WINDOW}],
        }
    }
    reasoning_field = "reasoning"

    def fault(self, name: FaultName) -> Answer | None:
        faults = {
            "overloaded": (503, "ServiceUnavailableError", "The server is overloaded"),
            "overflow": (
                400,
                "BadRequestError",
                f"This model's maximum context length is {WINDOW} tokens. However, your request has {PROMPT} tokens.",
            ),
            "not_found": (404, "NotFoundError", "The model `Qwen/Qwen3-8B` does not exist."),
            "no_tools": (
                400,
                "BadRequestError",
                '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
            ),
        }
        if name == "auth":
            return json_answer({"error": "Unauthorized"}, 401)
        if name not in faults:
            return None
        status, kind, message = faults[name]
        return json_answer(
            {"error": {"message": message, "type": kind, "param": None, "code": status}}, status
        )


class LmStudio(OpenAIChat):
    """LM Studio: a fault of a stream is an event in it, under status 200."""

    name = "lm_studio"
    model = "lm_studio/qwen3-8b"
    retry_after = None
    facts: ClassVar[dict[str, Any]] = {
        "/api/v0/models": {
            "object": "list",
            "data": [
                {
                    "id": "qwen3-8b",
                    "object": "model",
                    "type": "llm",
                    "state": "loaded",
                    "max_context_length": 131_072,
                    "loaded_context_length": WINDOW,
                    "capabilities": ["tool_use"],
                }
            ],
        },
        "/v1/models": {"object": "list", "data": [{"id": "qwen3-8b", "object": "model"}]},
    }

    def fault(self, name: FaultName) -> Answer | None:
        match name:
            case "overflow":
                words = (
                    "The number of tokens to keep from the initial prompt is greater than the context length "
                    f"(n_keep: {PROMPT}>= n_ctx: {WINDOW}). Try to load the model with a larger context length, or "
                    "provide a shorter input"
                )
                return stream(event({"error": {"message": words}, "message": words}, "error"))
            case "not_found":
                words = 'Model "qwen3-8b" not found.'
                return error(404, words, kind="invalid_request_error", code="model_not_found")
            case _:
                return None
