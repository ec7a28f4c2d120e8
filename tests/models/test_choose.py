"""A name stands for a scenario or for litellm, anew at each call, and choosing imports nothing heavy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tui_agent.config.settings import Settings
from tui_agent.core.events import FaultKind
from tui_agent.models.choose import ModelByName
from tui_agent.models.hosted import HostedModel
from tui_agent.models.protocol import ModelFault, ModelRequest, Reply
from tui_agent.models.scenario_checks import ScenarioError
from tui_agent.models.scripted import ScriptedModel

ROOT = Path(__file__).resolve().parents[2]

HEAVY = """
import sys
import tui_agent.models.scenario_file
tui_agent.models.scenario_file.load_scenario("recovery")
print(sorted({"litellm", "pydantic", "asyncio", "textual", "httpx"} & set(sys.modules)))
import tui_agent.models.choose
print(sorted({"litellm", "textual", "httpx"} & set(sys.modules)))
"""


def test_reading_a_demo_s_title_and_choosing_a_model_import_nothing_heavy() -> None:
    done = subprocess.run([sys.executable, "-c", HEAVY], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[]", "[]"]


async def last_of(model, name: str) -> Reply:
    request = ModelRequest(model=name, messages=[{"role": "user", "content": "x"}])
    pieces = [piece async for piece in model.stream(request)]
    return pieces[-1]


async def test_a_name_chooses_the_model_and_another_name_another_one_in_mid_session(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.toml").write_text(f"[[turns]]\ntext = '{name}'\nnext = 'a'\nlabel = 'a'\n")
    one, two = f"scripted:{tmp_path}/one.toml", f"scripted:{tmp_path}/two.toml"
    model = ModelByName(Settings(model=one))
    await model.start()
    assert [(await last_of(model, name)).text for name in (one, two, one)] == ["one", "two", "one"]
    assert isinstance(model.named(one), ScriptedModel)
    hosted = model.named("gpt-4o")
    assert isinstance(hosted, HostedModel)
    assert hosted is model.named("anthropic/claude")
    assert hosted.pid is None, "nothing is started before it is used"
    await model.close()


async def test_a_model_that_cannot_be_closed_leaves_no_other_one_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = ModelByName(Settings(model="scripted:breaker"))
    closed: list[HostedModel] = []

    async def break_off(_: ScriptedModel) -> None:
        raise OSError("broken")

    async def close(hosted: HostedModel) -> None:
        closed.append(hosted)

    monkeypatch.setattr(ScriptedModel, "close", break_off)
    monkeypatch.setattr(HostedModel, "close", close)
    hosted = model.named("gpt-4o")
    with pytest.raises(OSError, match="broken"):
        await model.close()
    assert closed == [hosted]


async def test_a_model_that_was_closed_starts_no_host_for_a_question_that_comes_late() -> None:
    model = ModelByName(Settings(model="scripted:breaker"))
    await model.close()
    assert await model.sees("gpt-4o")
    hosted = model.named("gpt-4o")
    assert isinstance(hosted, HostedModel)
    assert hosted.pid is None
    with pytest.raises(ModelFault, match="closed"):
        await last_of(model, "gpt-4o")


def test_a_scenario_that_cannot_be_used_is_refused_at_once() -> None:
    with pytest.raises(ScenarioError):
        ModelByName(Settings(model="scripted:none"))


async def test_a_scenario_that_is_named_wrongly_in_mid_session_is_a_fault() -> None:
    model = ModelByName(Settings(model="scripted:breaker"))
    with pytest.raises(ModelFault, match="no scenario named") as raised:
        await last_of(model, "scripted:breakr")
    assert raised.value.fault.kind is FaultKind.NOT_FOUND
