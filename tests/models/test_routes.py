"""Which provider, address and client a model's name means, told without litellm."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tui_agent.models import routes
from tui_agent.models.providers import OTHER_PROTOCOLS, PROVIDERS, likely_client

ROOT = Path(__file__).resolve().parents[2]
OWN = "http://127.0.0.1:8000/v1"

ROUTES = [
    # name, address, client, provider, name on the wire, address of the API
    ("openai/gpt-4o", None, "openai", "openai", "gpt-4o", "https://api.openai.com/v1"),
    ("gpt-4o", None, "openai", "openai", "gpt-4o", "https://api.openai.com/v1"),
    ("openai/responses/gpt-5", None, "litellm", "openai", "responses/gpt-5", "https://api.openai.com/v1"),
    ("openai/o3-pro", None, "litellm", "openai", "o3-pro", "https://api.openai.com/v1"),
    ("my-model", OWN, "openai", "openai", "my-model", OWN),
    ("meta-llama/Llama-3", OWN, "openai", "openai", "meta-llama/Llama-3", OWN),
    ("mistral/devstral", None, "openai", "mistral", "devstral", "https://api.mistral.ai/v1"),
    ("mistral/devstral", OWN, "openai", "mistral", "devstral", OWN),
    ("fireworks_ai/kimi", None, "openai", "fireworks_ai", "accounts/fireworks/models/kimi", "https://api.fireworks.ai/inference/v1"),
    ("openrouter/anthropic/claude", None, "openai", "openrouter", "anthropic/claude", "https://openrouter.ai/api/v1"),
    ("openrouter/auto", None, "openai", "openrouter", "openrouter/auto", "https://openrouter.ai/api/v1"),
    ("anthropic/claude-sonnet-4-5", None, "litellm", "anthropic", "claude-sonnet-4-5", ""),
    ("claude-sonnet-4-5", None, "litellm", "anthropic", "claude-sonnet-4-5", ""),
    ("anthropic/claude", OWN, "litellm", "anthropic", "claude", OWN),
    ("gemini/gemini-2.5-pro", None, "litellm", "gemini", "gemini-2.5-pro", ""),
    ("ollama_chat/qwen3", None, "litellm", "ollama_chat", "qwen3", ""),
    ("nobody/knows", None, "litellm", "", "nobody/knows", ""),
]  # fmt: skip


@pytest.mark.parametrize(("model", "base", "client", "provider", "wire_name", "address"), ROUTES)
def test_a_name_means_a_provider_an_address_and_a_client(
    model: str,
    base: str | None,
    client: str,
    provider: str,
    wire_name: str,
    address: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for known in PROVIDERS.values():
        for variable in (*known.keys, *known.base_variables):
            monkeypatch.delenv(variable, raising=False)
    at = routes.route(model, base)
    assert (at.client, at.facts.provider, at.wire_name, at.address) == (client, provider, wire_name, address)
    assert at.client == routes.client_for(model, base)


def test_the_client_can_be_forced_as_far_as_it_speaks_the_protocol() -> None:
    assert routes.route("openai/x", OWN, client="litellm").client == "litellm"
    assert routes.route("openai/responses/gpt-5", None, client="openai").client == "openai"
    assert routes.route("anthropic/claude", None, client="openai").client == "litellm"


def test_a_server_of_one_s_own_needs_no_key_and_a_provider_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert routes.route("m", OWN).api_key == "none"
    assert not routes.route("m", OWN).lacks_key
    assert routes.route("openai/gpt-4o", None).lacks_key
    monkeypatch.setenv("MINE", "k")
    assert routes.route("openai/gpt-4o", None, "MINE").api_key == "k"
    assert routes.route("openai/gpt-4o", None, "OTHER").lacks_key


def test_an_address_in_the_environment_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", OWN)
    assert routes.route("openai/x", None).address == OWN
    monkeypatch.setenv("GROQ_API_BASE", OWN)
    assert routes.route("groq/x", None).address == OWN


@pytest.mark.parametrize(
    ("name", "provider", "listed", "near"),
    [
        ("openai/gpt-4o", True, True, False),
        ("gpt-4o", True, True, False),
        ("openai/gpt-4oo", True, False, True),
        ("nosuch/zzzzqqqq", False, False, False),
    ],
)
def test_a_name_is_looked_up_in_the_list_of_its_provider(
    name: str, provider: bool, listed: bool, near: bool
) -> None:
    found = routes.look_up(name)
    assert (found[0], found[1], bool(found[2])) == (provider, listed, near)


def test_no_prefix_means_two_protocols() -> None:
    assert not OTHER_PROTOCOLS & PROVIDERS.keys()
    assert all(likely_client(f"{name}/x", with_address=False) == "openai" for name in PROVIDERS)


AS_LITELLM_SAYS = """
import os
os.environ.update({"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MODE": "PRODUCTION"})
import litellm
from tui_agent.models import catalogue, prices
litellm.suppress_debug_info = True
table = catalogue._table()
# Signing in to some providers is tried by asking for them; some are priced otherwise than by the table.
left_out = {"github_copilot", "chatgpt", "perplexity"}
names = [
    name
    for name, row in table.items()
    if row.get("mode") == "chat" and row.get("litellm_provider") not in left_out
]
usages = (
    {"prompt_tokens": 1_000, "completion_tokens": 200, "total_tokens": 1_200},
    {"prompt_tokens": 300_000, "completion_tokens": 200, "total_tokens": 300_200,
     "prompt_tokens_details": {"cached_tokens": 1_000}, "completion_tokens_details": {"reasoning_tokens": 50}},
)
compared, different = 0, []
for name in names[:: max(1, len(names) // 300)]:
    row = catalogue.facts(name)
    try:
        info = litellm.get_model_info(name)
        theirs = [sum(litellm.cost_per_token(model=name, usage_object=litellm.Usage(**usage))) for usage in usages]
    except Exception:
        continue
    compared += 1
    ours = [prices.cost_of(row, usage) or 0.0 for usage in usages]
    if any(abs(one - other) > 1e-9 + 1e-6 * other for one, other in zip(ours, theirs)):
        different.append((name, "cost", ours, theirs))
    for key in ("max_input_tokens", "supports_function_calling", "supports_vision", "supports_prompt_caching"):
        if (row.get(key) or None) != (info.get(key) or None):
            different.append((name, key, row.get(key), info.get(key)))
print(compared)
for each in different:
    print(*each)
"""


@pytest.mark.process
def test_cost_window_and_abilities_of_200_models_are_what_litellm_says() -> None:
    done = subprocess.run(
        [sys.executable, "-c", AS_LITELLM_SAYS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    compared, *different = [line for line in done.stdout.splitlines() if line.strip()]
    assert int(compared) >= 200
    assert different == []
