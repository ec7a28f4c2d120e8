"""A price of the configuration: what a model behind one's own gateway costs, so that a limit on the cost can hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests import openai_server as server
from tests.kept_host import KeptHost
from tests.openai_server import OpenAIServer
from tests.runtime.scripted import ScriptedOperator
from tui_agent.cli import main
from tui_agent.config.errors import ConfigError
from tui_agent.config.profiles import ModelProfile, Price
from tui_agent.config.settings import Settings, load_settings
from tui_agent.core import events
from tui_agent.models.choose import ModelByName
from tui_agent.models.usage import cost
from tui_agent.session.opening import open_session

OF_X = '[prices."openai/x"]\nprompt = 1\ncompletion = 2'
CALL = server.calls([("read_file", json.dumps({"path": "a.txt"}))], usage=(900_000, 50_000))


@pytest.mark.parametrize(
    ("price", "tokens", "usd"),
    [
        (Price(prompt=2, completion=10), (1_000_000, 100_000, None), 3.0),
        (Price(prompt=2, completion=10), (1_000_000, 100_000, 400_000), 3.0),
        (Price(prompt=2, completion=10, cached=0.5), (1_000_000, 100_000, 400_000), 2.4),
        (Price(prompt=2, completion=10, cached=0.5), (100, 0, 400), 0.00005),
        (Price(prompt=0, completion=0), (5, 5, 5), 0.0),
        (Price(prompt=2, completion=10), (None, 5, None), None),
        (Price(prompt=2, completion=10), (5, None, None), None),
    ],
)
def test_a_call_costs_its_tokens_by_the_million(
    price: Price, tokens: tuple[int | None, int | None, int | None], usd: float | None
) -> None:
    assert cost(price, *tokens) == (None if usd is None else pytest.approx(usd))


def settings_of(folder: Path, text: str, **options: Any) -> Settings:
    file = folder / "config.toml"
    file.write_text(text)
    return load_settings({"workspace": str(folder), **options}, file, {}, folder)


@pytest.mark.parametrize(
    ("text", "name", "prompt"),
    [
        ('[prices."openai/x"]\nprompt = 1\ncompletion = 2', "openai/x", 1),
        ('[aliases]\nfast = "openai/x"\n[prices."openai/x"]\nprompt = 1\ncompletion = 2', "fast", 1),
        (
            '[profiles.p]\nmodel = "openai/x"\n[prices."openai/x"]\nprompt = 1\ncompletion = 2',
            "p",
            1,
        ),
        (
            '[profiles.p]\nmodel = "openai/x"\nprice = { prompt = 3, completion = 4 }\n' + OF_X,
            "p",
            3,
        ),
        ('[prices."openai/x"]\nprompt = 1\ncompletion = 2', "openai/y", None),
    ],
)
def test_what_a_name_costs(tmp_path: Path, text: str, name: str, prompt: float | None) -> None:
    price = settings_of(tmp_path, text).called(name).price
    assert (None if price is None else price.prompt) == prompt


def test_the_price_of_a_profile_is_not_for_another_model_in_its_place(tmp_path: Path) -> None:
    text = '[profiles.p]\nmodel = "openai/x"\nprice = { prompt = 0, completion = 0 }'
    chosen = settings_of(tmp_path, text, profile="p", model="openai/dear")
    assert chosen.called(chosen.model).model == "openai/dear"
    assert chosen.called(chosen.model).price is None


@pytest.mark.parametrize("amount", ["-1", "nan", "inf", "'free'", "1e9"])
def test_a_price_that_is_none_is_refused(tmp_path: Path, amount: str) -> None:
    with pytest.raises(ConfigError, match="prices"):
        settings_of(tmp_path, f'[prices."openai/x"]\nprompt = {amount}\ncompletion = 2')


@pytest.mark.parametrize(
    "text",
    [
        '[prices."openai/x"]\nprompt = 0\ncompletion = 0',
        '[profiles.p]\nmodel = "openai/x"\nprice = { prompt = 0, completion = 0 }',
    ],
)
def test_a_checkout_sets_no_price(tmp_path: Path, text: str) -> None:
    (tmp_path / ".agent-tui.toml").write_text(text)
    with pytest.raises(ConfigError, match="a project's file may not set this"):
        load_settings({"workspace": str(tmp_path)}, None, {"AGENT_TUI_CONFIG": ""}, tmp_path)


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("by_profile", [False, True])
async def test_the_limit_on_the_cost_ends_a_run_on_an_own_gateway(
    host: KeptHost, tmp_path: Path, by_profile: bool
) -> None:
    (tmp_path / "a.txt").write_text("x")
    price = Price(prompt=0.4, completion=1.2)  # 0.42 USD a call
    async with OpenAIServer([CALL]) as provider:
        chosen: dict[str, Any] = (
            {
                "model": "here",
                "profiles": {"here": ModelProfile(model="openai/test", api_base=provider.url, price=price)},
            }
            if by_profile
            else {"model": "openai/test", "api_base": provider.url, "prices": {"openai/test": price}}
        )
        settings = Settings(
            workspace=tmp_path, state_dir=tmp_path / "state", max_cost=1.0, sandbox="off", **chosen
        )
        session = await open_session(settings, ScriptedOperator(present=False), ModelByName(settings, host))
        await session.submit("go")
        finished = await session.wait()
        await session.close()
    assert finished is not None
    assert (finished.outcome, finished.rule) == (events.Outcome.PARTIAL, "limit.cost"), finished.reason
    assert session.state.metrics.usage.priced == pytest.approx(3 * 0.42)
    assert session.state.metrics.usage.unpriced == 0


def test_models_and_doctor_show_the_price(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "config.toml"
    file.write_text(
        'model = "openai/mine"\napi_base = "http://127.0.0.1:9/v1"\n'
        '[prices."openai/mine"]\nprompt = 0.25\ncompletion = 1.5\ncached = 0.05\n'
        '[profiles.p]\nmodel = "openai/other"\nprice = { prompt = 7, completion = 8 }\n'
    )
    assert main(["models", "--config", str(file)]) == 0
    shown = capsys.readouterr().out
    assert "$7 in" in shown
    assert "$8 out" in shown
    main(["doctor", "--config", str(file)])
    said = capsys.readouterr().out
    assert "$0.25 in, $1.5 out, $0.05 cached a million tokens" in said
    file.write_text('model = "openai/mine"\napi_base = "http://127.0.0.1:9/v1"\nmax_cost = 1.0\n')
    main(["doctor", "--config", str(file)])
    said = capsys.readouterr().out
    assert '[prices."openai/mine"]' in said
