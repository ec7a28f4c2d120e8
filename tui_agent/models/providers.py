"""Providers that speak OpenAI's chat protocol: the address of each, and the variables of its key.

Source of every row: `litellm.get_llm_provider` and `litellm.validate_environment` of litellm 1.110, which serves these
providers through its OpenAI-like handlers. Everything that is not listed here goes through litellm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tui_agent.config.profiles import Client


class Provider(NamedTuple):
    """A provider by the prefix of its models' names."""

    base: str
    """Address of its API; empty: the operator gives one."""
    keys: tuple[str, ...] = ()
    """Variables that may hold its key, the one to name in messages first; none: it wants no key."""
    base_variables: tuple[str, ...] = ()
    """Variables that may hold another address."""


def _hosted(base: str, name: str, *more_keys: str) -> Provider:
    """A provider whose variables are named after it."""
    return Provider(base, (f"{name}_API_KEY", *more_keys), (f"{name}_API_BASE",))


_MANY_NAMES_TOGETHER = ("TOGETHER_API_KEY", "TOGETHER_AI_API_KEY", "TOGETHER_AI_TOKEN")
_MANY_NAMES_FIREWORKS = ("FIREWORKS_API_KEY", "FIREWORKSAI_API_KEY", "FIREWORKS_AI_TOKEN")

PROVIDERS: dict[str, Provider] = {
    "openai": Provider(
        "https://api.openai.com/v1", ("OPENAI_API_KEY",), ("OPENAI_BASE_URL", "OPENAI_API_BASE")
    ),
    "custom_openai": Provider("", (), ()),
    # Servers for local models and gateways of one's own.
    "hosted_vllm": Provider("", (), ("HOSTED_VLLM_API_BASE",)),
    "lm_studio": Provider("", (), ("LM_STUDIO_API_BASE",)),
    "llamafile": Provider("http://127.0.0.1:8080/v1", (), ("LLAMAFILE_API_BASE",)),
    "lemonade": Provider("http://localhost:8000/api/v1", (), ("LEMONADE_API_BASE",)),
    "docker_model_runner": Provider(
        "http://localhost:22088/engines/llama.cpp", (), ("DOCKER_MODEL_RUNNER_API_BASE",)
    ),
    "litellm_proxy": Provider("", ("LITELLM_PROXY_API_KEY",), ("LITELLM_PROXY_API_BASE",)),
    # Providers.
    "ai21": _hosted("https://api.ai21.com/studio/v1", "AI21"),
    "aiml": _hosted("https://api.aimlapi.com/v1", "AIML"),
    "baseten": _hosted("https://inference.baseten.co/v1", "BASETEN"),
    "bigmodel": _hosted("https://open.bigmodel.cn/api/paas/v4", "BIGMODEL"),
    "cerebras": _hosted("https://api.cerebras.ai/v1", "CEREBRAS"),
    "chutes": _hosted("https://llm.chutes.ai/v1", "CHUTES"),
    "codestral": _hosted("https://codestral.mistral.ai/v1", "CODESTRAL"),
    "dashscope": _hosted("https://dashscope.aliyuncs.com/compatible-mode/v1", "DASHSCOPE"),
    "deepinfra": _hosted("https://api.deepinfra.com/v1/openai", "DEEPINFRA"),
    "deepseek": _hosted("https://api.deepseek.com/beta", "DEEPSEEK"),
    "featherless_ai": Provider(
        "https://api.featherless.ai/v1",
        ("FEATHERLESS_AI_API_KEY", "FEATHERLESS_API_KEY"),
        ("FEATHERLESS_AI_API_BASE", "FEATHERLESS_API_BASE"),
    ),
    "fireworks_ai": Provider(
        "https://api.fireworks.ai/inference/v1",
        ("FIREWORKS_AI_API_KEY", *_MANY_NAMES_FIREWORKS),
        ("FIREWORKS_API_BASE",),
    ),
    "friendliai": Provider(
        "https://api.friendli.ai/serverless/v1",
        ("FRIENDLIAI_API_KEY", "FRIENDLI_TOKEN"),
        ("FRIENDLI_API_BASE",),
    ),
    "galadriel": _hosted("https://api.galadriel.com/v1", "GALADRIEL"),
    "github": _hosted("https://models.inference.ai.azure.com", "GITHUB"),
    "groq": _hosted("https://api.groq.com/openai/v1", "GROQ"),
    "hyperbolic": _hosted("https://api.hyperbolic.xyz/v1", "HYPERBOLIC"),
    "inception": _hosted("https://api.inceptionlabs.ai/v1", "INCEPTION"),
    "lambda_ai": _hosted("https://api.lambda.ai/v1", "LAMBDA"),
    "meta_llama": _hosted("https://api.llama.com/compat/v1", "LLAMA"),
    "mistral": _hosted("https://api.mistral.ai/v1", "MISTRAL"),
    "modelscope": _hosted("https://api-inference.modelscope.cn/v1", "MODELSCOPE"),
    "moonshot": _hosted("https://api.moonshot.ai/v1", "MOONSHOT"),
    "morph": _hosted("https://api.morphllm.com/v1", "MORPH"),
    "nano-gpt": _hosted("https://nano-gpt.com/api/v1", "NANOGPT"),
    "nebius": _hosted("https://api.studio.nebius.ai/v1", "NEBIUS"),
    "novita": _hosted("https://api.novita.ai/v3/openai", "NOVITA"),
    "nscale": _hosted("https://inference.api.nscale.com/v1", "NSCALE"),
    "nvidia_nim": _hosted("https://integrate.api.nvidia.com/v1", "NVIDIA_NIM"),
    "openrouter": _hosted("https://openrouter.ai/api/v1", "OPENROUTER"),
    "perplexity": Provider(
        "https://api.perplexity.ai",
        ("PERPLEXITYAI_API_KEY", "PERPLEXITY_API_KEY"),
        ("PERPLEXITY_API_BASE",),
    ),
    "poe": _hosted("https://api.poe.com/v1", "POE"),
    "publicai": _hosted("https://api.publicai.co/v1", "PUBLICAI"),
    "qwencloud": _hosted(
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "QWENCLOUD", "DASHSCOPE_API_KEY"
    ),
    "sambanova": _hosted("https://api.sambanova.ai/v1", "SAMBANOVA"),
    "scaleway": Provider("https://api.scaleway.ai/v1", ("SCW_SECRET_KEY",)),
    "synthetic": _hosted("https://api.synthetic.new/openai/v1", "SYNTHETIC"),
    "tencent": _hosted("https://tokenhub-intl.tencentcloudmaas.com/v1", "TENCENT"),
    "together_ai": Provider(
        "https://api.together.ai/v1", ("TOGETHERAI_API_KEY", *_MANY_NAMES_TOGETHER), ("TOGETHER_AI_API_BASE",)
    ),
    "v0": _hosted("https://api.v0.dev/v1", "V0"),
    "vercel_ai_gateway": _hosted("https://ai-gateway.vercel.sh/v1", "VERCEL_AI_GATEWAY", "VERCEL_OIDC_TOKEN"),
    "volcengine": _hosted("https://ark.cn-beijing.volces.com/api/v3", "VOLCENGINE"),
    "wandb": _hosted("https://api.inference.wandb.ai/v1", "WANDB"),
    "xai": _hosted("https://api.x.ai/v1", "XAI"),
    "xiaomi_mimo": _hosted("https://api.xiaomimimo.com/v1", "XIAOMI_MIMO"),
    "zai": _hosted("https://api.z.ai/api/paas/v4", "ZAI"),
}

OWN_SERVERS = frozenset({"openai", "hosted_vllm", "lm_studio", "llamafile", "lemonade", "custom_openai"})
"""Those whose name says nothing of the server when the operator gives an address."""


OTHER_PROTOCOLS = frozenset(
    {
        *("anthropic", "anthropic_text", "azure", "azure_ai", "azure_text", "bedrock", "bedrock_converse"),
        *("cloudflare", "cohere", "cohere_chat", "databricks", "gemini", "github_copilot", "huggingface"),
        *("minimax", "nlp_cloud", "oci", "ollama", "ollama_chat", "openai_like", "predibase", "replicate"),
        *("sagemaker", "sagemaker_chat", "snowflake", "vertex_ai", "vertex_ai_beta", "vllm", "watsonx"),
    }
)
"""Prefixes that litellm serves by another protocol or another way to sign in, also at an address of one's own."""


def likely_client(model: str, *, with_address: bool) -> Client:
    """The client that a name most likely needs, told without a look at any table."""
    prefix, slash, _ = model.partition("/")
    if prefix in OTHER_PROTOCOLS:
        return "litellm"
    if prefix in PROVIDERS or with_address:
        return "openai"
    return "litellm" if slash or model.startswith(("claude", "gemini")) else "openai"


def name_on_the_wire(provider: str, name: str) -> str:
    """The model's name as the provider knows it; `name` has no prefix any more."""
    match provider:
        case "fireworks_ai" if "/" not in name:
            return f"accounts/fireworks/models/{name}"
        case "openrouter" if "/" not in name:
            return f"openrouter/{name}"
        case _:
            return name
