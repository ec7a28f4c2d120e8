"""What is known of a start before its configuration is read."""

from pathlib import Path

import pytest

from tui_agent.config.settings import load_settings
from tui_agent.frontend.arguments import ConsoleArguments, model_early

_FILE = """
model = "openai/general"
api_base = "http://127.0.0.1:1/v1"
[aliases]
quick = "forced"
[profiles.forced]
model = "openai/small"
client = "litellm"
[profiles.elsewhere]
model = "anthropic/claude"
api_base = "http://127.0.0.1:2"
[profiles.at-the-provider]
model = "groq/llama"
api_base = ""
"""


@pytest.mark.parametrize(
    ("given", "variables"),
    [
        ({}, {}),
        ({"model": "openai/other"}, {}),
        ({"model": "forced"}, {}),
        ({"model": "quick"}, {}),
        ({"profile": "forced"}, {}),
        ({"profile": "forced", "model": "openai/other"}, {}),
        ({"profile": "forced", "api_base": "http://127.0.0.1:3/v1"}, {}),
        ({"profile": "elsewhere"}, {}),
        ({"model": "at-the-provider"}, {}),
        ({}, {"AGENT_TUI_PROFILE": "elsewhere"}),
        ({}, {"AGENT_TUI_MODEL": "quick"}),
    ],
)
def test_the_model_that_is_known_early_is_the_one_that_the_settings_mean(
    given: dict[str, object],
    variables: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(_FILE)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    early = model_early(ConsoleArguments(given, file))
    settings = load_settings({**given, "workspace": tmp_path}, file)
    means = settings.called(settings.model)
    wanted = means.profile.client if means.profile is not None else None
    assert (early.name, early.api_base or None, early.client) == (means.model, means.api_base, wanted)


@pytest.mark.parametrize(
    "text", ["", "profile = 3", "profiles = 3\nmodel = 'x'", "aliases = []\nmodel = ['x']", "\udcff", "= ="]
)
def test_a_file_that_is_wrong_says_nothing_early_and_raises_nothing(text: str, tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    early = model_early(ConsoleArguments({}, file))
    assert (early.api_base, early.client) == (None, None)
