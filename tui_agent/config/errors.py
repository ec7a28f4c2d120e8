"""Messages about a wrong configuration: the place, what is wrong, and what is allowed.

Light on purpose (the front door catches `ConfigError` before anything heavy is imported), and it never
repeats a value that could be a secret.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

PROVIDER_KEYS = {
    "anthropic": "ANTHROPIC_API_KEY",
    "azure": "AZURE_API_KEY",
    "cohere": "COHERE_API_KEY",
    "deepseek": "DEEPSEEK_API_KEY",
    "fireworks_ai": "FIREWORKS_AI_API_KEY",
    "gemini": "GEMINI_API_KEY",
    "groq": "GROQ_API_KEY",
    "huggingface": "HUGGINGFACE_API_KEY",
    "mistral": "MISTRAL_API_KEY",
    "openai": "OPENAI_API_KEY",
    "openrouter": "OPENROUTER_API_KEY",
    "perplexity": "PERPLEXITYAI_API_KEY",
    "together_ai": "TOGETHERAI_API_KEY",
    "xai": "XAI_API_KEY",
}
"""Providers, as their models' names begin, and the variables from which their keys come."""


def models_with_keys(environ: Mapping[str, str]) -> list[str]:
    """How the names of the models begin for which `environ` has a key: `openai/…`."""
    return [f"{provider}/…" for provider, variable in PROVIDER_KEYS.items() if environ.get(variable)]


class ConfigError(Exception):
    """The configuration cannot be used; `message` says what, why and what to do. Exit code 2."""

    def __init__(self, message: str, problems: Sequence[Problem] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.problems = problems


class Problem(NamedTuple):
    """One thing that is wrong: the place (a file, a variable, an option), the key, what is allowed there."""

    where: str
    key: str
    says: str

    def __str__(self) -> str:
        subject = f"{self.where}: {self.key}" if self.key else self.where
        return f"{subject}: {self.says}"


def raise_for(problems: Iterable[Problem]) -> None:
    """Raise one `ConfigError` that lists every problem; nothing when there is none."""
    found = list(dict.fromkeys(problems))
    if not found:
        return
    head = "The configuration is wrong" + (f" in {len(found)} places:" if len(found) > 1 else ":")
    lines = [head, *(f"  {problem}" for problem in found)]
    lines.append(
        "Nothing was started. Correct what is named above, then start again. docs/reference/SETTINGS.md lists every "
        "key."
    )
    raise ConfigError("\n".join(lines), found)


def nearest(name: str, names: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known name that is most like `name`; None if none is near."""
    known = {candidate.lower(): candidate for candidate in names}
    folded = name.lower().replace("-", "_").replace(" ", "_")
    if folded in known:
        return known[folded]
    from difflib import get_close_matches

    close = get_close_matches(folded, list(known), n=1, cutoff=cutoff)
    return known[close[0]] if close else None


def unknown_key(where: str, key: str, names: Iterable[str]) -> Problem:
    """A key that does not exist, with the nearest one that does, or all of them."""
    known = sorted(names)
    near = nearest(key.rpartition(".")[2], known)
    section = key.rpartition(".")[0]
    if near is not None:
        return Problem(
            where, key, f"there is no such key; the nearest is {section + '.' if section else ''}{near}"
        )
    return Problem(where, key, f"there is no such key; allowed are {', '.join(known)}")


def secret_key(where: str, key: str) -> Problem:
    """A provider key in a place that may hold none. The value is never repeated."""
    return Problem(
        where,
        key,
        "a provider key does not belong in a file, where others can read it: "
        "set the provider's own variable, as OPENAI_API_KEY, in your environment and take it out here",
    )


class MissingModelError(ConfigError):
    """No model was chosen."""


def missing_model(environ: Mapping[str, str]) -> MissingModelError:
    """No model was chosen: which would go with the keys that are present."""
    present = models_with_keys(environ)
    if present:
        why = f"your environment has a key for {', '.join(present)}, but not which of its models to use."
    else:
        why = "no option, variable or file names one, and no provider's key is set either."
    return MissingModelError(
        f"No model is chosen: {why}\n"
        'Name one with --model, AGENT_TUI_MODEL or `model = "…"` in the user configuration, for example\n'
        '  agent-tui "fix the tests" --model openai/gpt-5            (key in OPENAI_API_KEY)\n'
        '  agent-tui "fix the tests" --model openai/qwen3 --api-base http://127.0.0.1:8080/v1\n'
        "Without a key and a network, `agent-tui demo` shows everything."
    )
