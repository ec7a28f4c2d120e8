"""Habits of known providers and servers from the start: a row each, with its source.

A row holds for a provider (as litellm names it), for a host, or for a model wherever it runs; all that match are taken,
one after the other. What a server turned out to take otherwise is kept by `kept_habits` and stands before these rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from tui_agent.models.habits import Habits


@dataclass(frozen=True)
class Known:
    """The habits of a known server. It matches by provider or host, and by the model if one is given."""

    name: str
    source: str
    habits: Mapping[str, Any] = field(default_factory=dict)
    providers: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    """A host, or a domain with all its hosts."""
    model: str = ""
    """A pattern in the model's name, in small letters."""


_MISTRAL = {"after_tool": "result", "turns": "alternate", "ids": "nine"}
_MISTRAL_MODELS = r"(?<![a-z])(?:mistral|ministral|magistral|devstral|codestral|mixtral|pixtral)"

KNOWN = (
    Known(
        "models of Mistral, on any server",
        "mistralai/mistral-common#169 (vLLM), ggml-org/llama.cpp#19851, charmbracelet/crush#279 (OpenRouter), "
        "onyx-dot-app/onyx#6458 (Azure): the validator and the templates want turns and no user after a result",
        _MISTRAL,
        model=_MISTRAL_MODELS,
    ),
    Known(
        "Mistral",
        "datapizza-labs/datapizza-ai#98 (code 3230), editor-code-assistant/eca#233 (code 3280), BerriAI/litellm#30835 "
        "(unknown fields are refused)",
        {**_MISTRAL, "reasoning": "none", "call_fields": False},
        ("mistral", "codestral"),
        ("mistral.ai",),
    ),
    Known(
        "DeepSeek",
        "api-docs.deepseek.com/guides/thinking_mode, earendil-works/pi#3636: reasoning_content with every call",
        {"reasoning": "empty", "reasoning_name": "reasoning_content"},
        ("deepseek",),
        ("deepseek.com",),
    ),
    Known(
        "Moonshot",
        "agentscope-ai/QwenPaw#433, VicBilibily/GCMP#162: reasoning_content with every call, not empty",
        {"reasoning": "filled", "reasoning_name": "reasoning_content"},
        ("moonshot",),
        ("moonshot.cn", "moonshot.ai", "kimi.com"),
    ),
    Known(
        "Kimi's thinking models, on any server",
        "agentscope-ai/QwenPaw#433 (SiliconFlow), QuantumNous/new-api#4408, mastra-ai/mastra#12592: as at Moonshot",
        {"reasoning": "filled"},
        model=r"kimi-(?:k2[.-](?:5|6|thinking)|k[3-9]|thinking|for-coding)",
    ),
    Known(
        "Gemini in OpenAI's form",
        "ai.google.dev/gemini-api/docs/thought-signatures, microsoft/autogen#7136; QwenLM/qwen-code#1186 and "
        "pydantic/pydantic-ai#3538 ($schema, additionalProperties), router-for-me/CLIProxyAPI#3512 ($comment)",
        {"schema": frozenset({"$schema", "additionalProperties", "$comment", "enumDescriptions"})},
        hosts=("generativelanguage.googleapis.com",),
    ),
    Known(
        "Groq",
        "janhq/jan#8136, tashfeenahmed/freellmapi#1070: reasoning_content is unsupported; vercel/ai#8057: reasoning "
        "too, with models that do not reason",
        {"reasoning": "none", "call_fields": False},
        ("groq",),
        ("groq.com",),
    ),
    Known(
        "Cerebras",
        "Kilo-Org/kilocode#10375, QwenLM/qwen-code#11045: takes reasoning, refuses reasoning_content",
        {"reasoning_name": "reasoning"},
        ("cerebras",),
        ("cerebras.ai",),
    ),
    Known(
        "xAI",
        "langchain-ai/langchain#34140, pipecat-ai/pipecat#646: wants a content beside calls",
        {"content": "empty"},
        ("xai",),
        ("x.ai",),
    ),
    Known(
        "DashScope",
        "QwenLM/qwen-code#5265: the content field is a required field",
        {"content": "empty"},
        ("dashscope",),
        ("dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com", "dashscope-us.aliyuncs.com"),
    ),
    Known(
        "vLLM",
        "vllm-project/vllm#27755, #33402, #38488: new releases read reasoning, and reasoning_content no more, so it "
        "goes back in the field in which it came; the model's template decides on turns",
        providers=("hosted_vllm", "vllm"),
    ),
    Known(
        "OpenRouter",
        "openrouter.ai/docs/use-cases/reasoning-tokens: reasoning_details go back as they came; the rest is as with "
        "the provider behind it",
        providers=("openrouter",),
        hosts=("openrouter.ai",),
    ),
    Known(
        "LM Studio",
        "lmstudio-ai/lmstudio-bug-tracker#261: content null beside calls is refused; templates decide on turns",
        {"content": "empty"},
        providers=("lm_studio",),
    ),
    Known(
        "llama.cpp",
        "idiap/sdialog#122, moltis-org/moltis#317: template errors come with status 500 or 400; the template decides",
        providers=("llamafile",),
    ),
    Known(
        "Gemma 1 and 2, on any server",
        "huggingface/chat-ui#1386, sgl-project/sglang#892, vllm-project/vllm#2964: no system role, roles in turns",
        {"system": "user", "turns": "alternate", "after_tool": "result"},
        model=r"(?<![a-z])gemma-?(?:1|2)?(?:\.1)?-(?:\d+b|it)|gemma2?:",
    ),
    Known(
        "Gemma 3, on any server",
        "huggingface/text-generation-inference#3198, idiap/sdialog#122: roles in turns",
        {"turns": "alternate", "after_tool": "result"},
        model=r"(?<![a-z])gemma-?3",
    ),
    Known(
        "Llama 3, on own servers",
        "vllm-project/vllm#25108, #12938: one call a message in its template",
        {"parallel": False},
        ("hosted_vllm", "vllm", "custom_openai", "llamafile", "lm_studio"),
        model=r"llama-?3(?:\.[123])?-",
    ),
    Known(
        "Volcengine",
        "AstrBotDevs/AstrBot#6852: MissingParameter messages.content",
        {"content": "empty"},
        ("volcengine",),
        ("volces.com",),
    ),
    Known(
        "SGLang",
        "sgl-project/sglang#1342, #892: template errors with status 500; #4236: content null beside calls is refused",
    ),
    Known("Ollama", "ollama/ollama#18241: template errors come with status 500; thoughts are in `reasoning`"),
    Known(
        "TGI", "huggingface/text-generation-inference#3198: template errors; Gemma 3 has no place for results"
    ),
    Known(
        "Z.ai",
        "MetaGLM/zhipuai-sdk-python-v4#14: code 1214 for ids that come twice and for no message of the user",
    ),
    Known("Together", "nothing particular is reported of its messages"),
    Known(
        "Fireworks",
        "BerriAI/litellm#40682: takes reasoning_content back; FlowiseAI/Flowise#2866 (stream_options)",
    ),
    Known("SiliconFlow", "agentscope-ai/QwenPaw#433: code 20015, wants what the model's own server wants"),
    Known(
        "GitHub Models and Azure",
        "anomalyco/opencode#37964, Azure/azure-sdk-for-net#45719: parameters are learnt",
    ),
)


def known_habits(provider: str, api_base: str | None, model: str) -> Habits:
    """The habits that a server has from the start."""
    host = ""
    # An address that is none is found out by whoever calls it.
    with suppress(ValueError):
        host = urlsplit(api_base or "").hostname or ""
    habits = Habits()
    for row in KNOWN:
        if row.habits and _matches(row, provider, host, model.lower()):
            habits = replace(habits, **row.habits)
    return habits


def _matches(row: Known, provider: str, host: str, model: str) -> bool:
    placed = bool(row.providers or row.hosts)
    here = provider in row.providers or any(host == each or host.endswith(f".{each}") for each in row.hosts)
    named = bool(row.model) and re.search(row.model, model) is not None
    if row.model:
        return named and (here or not placed)
    return here
