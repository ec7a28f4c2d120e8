"""Whole runs of a small real model: what is asked, what is kept and played again, and the page of it."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from tests import openai_server as server
from tests.kept_host import KeptHost
from tests.lab.bench.harness import CASES
from tui_agent.cli import main
from tui_agent.config.settings import Settings
from tui_agent.lab.bench import real, real_page
from tui_agent.lab.bench.bench import ROWS, BenchError, read_rows
from tui_agent.lab.bench.case import chosen
from tui_agent.lab.bench.kept_replies import REPLIES, KeptReplies, RememberedModel, held
from tui_agent.lab.bench.run import Row, Unit
from tui_agent.models.protocol import Model

KEPT = Path(__file__).resolve().parents[3] / "docs" / "lab" / "real"
MODEL = "openai/small"
in_the_hosts_loop = pytest.mark.asyncio(loop_scope="session")


def test_forty_cases_of_which_a_third_are_healthy() -> None:
    cases = chosen(real.CASES)
    assert len(cases) >= 40
    assert 0.3 <= sum(case.negative for case in cases) / len(cases) <= 0.4


# --- kept replies -----------------------------------------------------------------------------------------------


def fence(name: str, **arguments: str) -> str:
    return f"```tool_call\n{json.dumps({'name': name, 'arguments': arguments})}\n```"


def settings(url: str, price: float | None = 0.0, max_cost: float = 1.0) -> Settings:
    prices = {} if price is None else {MODEL: {"prompt": price, "completion": 0.0}}
    return Settings.model_validate({
        "model": MODEL, "api_base": url, "sandbox": {"mode": "off"}, "prices": prices, "max_cost": max_cost
    })  # fmt: skip


WRITES = (
    fence("write_file", path="out.txt", content="HELLO"),
    fence("finish", answer="It is in out.txt."),
)


def script() -> list[server.Answer]:
    return [server.text(said, usage=(100, 10)) for said in WRITES] * 5


async def carried_out(
    out: Path, known: server.OpenAIServer, host: KeptHost, *policies: str, price: float | None = 0.0
) -> list[Row]:
    model = real.SmallModel(settings(known.url, price), host, replies=KeptReplies(out))
    await real.carry_out(real.units([CASES["plain-work/upper"]], MODEL, [1]), policies, model, 1, out)
    return read_rows(out)


@in_the_hosts_loop
async def test_the_first_call_is_the_cases_and_the_same_conversation_is_asked_about_once(
    tmp_path: Path, host: KeptHost
) -> None:
    async with server.OpenAIServer(script()) as known:
        rows = await carried_out(tmp_path, known, host, "retries", "combined")
        assert [(row.policy, row.solved, row.iterations) for row in rows] == [
            ("retries", True, 3),
            ("combined", True, 3),
        ]
        assert len(known.requests) == len(WRITES), "the second policy got the replies of the first"
        first = known.requests[0].body
        assert '"name": "list_dir"' in first["messages"][2]["content"]
        assert (first["temperature"], first["max_tokens"]) == (real.TEMPERATURE, real.LONGEST_REPLY)
        assert "tools" not in first

        assert await carried_out(tmp_path, known, host, "retries", "combined") == rows
        with (tmp_path / REPLIES).open("a") as file:
            file.write('{"run": "plain-w')  # a kill in the middle of a line
        await carried_out(tmp_path, known, host, "retries", "forge")
        assert len(known.requests) == len(WRITES)


@in_the_hosts_loop
async def test_a_server_that_is_not_there_is_no_result(tmp_path: Path, host: KeptHost) -> None:
    async with server.OpenAIServer([server.error(401, "no")] * 9) as known:
        with pytest.raises(BenchError, match="ended with model_failed: is the server there"):
            await carried_out(tmp_path, known, host, "retries")
    assert read_rows(tmp_path) == []


@in_the_hosts_loop
@pytest.mark.parametrize(
    ("price", "says"), [(None, "is not known, so that --max-cost"), (10_000.0, "have cost 1.0000 USD")]
)
async def test_a_limit_on_the_cost_ends_the_bench(
    tmp_path: Path, host: KeptHost, price: float | None, says: str
) -> None:
    async with server.OpenAIServer(script()) as known:
        with pytest.raises(BenchError, match=says):
            await carried_out(tmp_path, known, host, "retries", "combined", price=price)


@in_the_hosts_loop
async def test_two_benches_do_not_add_to_one_folder(tmp_path: Path, host: KeptHost) -> None:
    async with server.OpenAIServer(script()) as known:
        with held(tmp_path), pytest.raises(BenchError, match="Another bench adds to"):
            await carried_out(tmp_path, known, host, "retries")
        assert not known.requests


def test_the_command_wants_a_limit_for_a_model_and_else_runs_that_are_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["--out", str(tmp_path)]
    assert main(["bench", "real", *out, "--model", MODEL]) == 2
    assert main(["bench", "real", *out]) == 2
    said = capsys.readouterr().err
    assert "say how much at most with --max-cost" in said
    assert "name a --model, or a folder with results" in said
    (tmp_path / ROWS).write_bytes((KEPT / ROWS).read_bytes())
    assert main(["bench", "real", *out]) == 0
    assert (tmp_path / real_page.PAGE).read_bytes() == (KEPT / real_page.PAGE).read_bytes()


# --- what a real model said --------------------------------------------------------------------------------------


class Replayed(real.SmallModel):
    """The kept replies alone. `requests_without` counts what is not among them."""

    made: list[RememberedModel]

    def model_for(self, settings: Settings, case: real.Case, unit: Unit) -> Model:
        model = super().model_for(settings, case, unit)
        assert isinstance(model, RememberedModel)
        self.made.append(model)
        return model


def came_of(row: Row) -> dict[str, object]:
    """What does not hang on the time or the length of the system prompt."""
    return {
        key: value
        for key, value in asdict(row).items()
        if key not in {"seconds", "tokens", "until_person", "cost"}
    }


PLAYED = [row for row in read_rows(KEPT) if row.case in {"same-call/log", "wrong-path/plural"}]


@pytest.mark.parametrize("kept", PLAYED, ids=lambda row: f"{row.case}-{row.policy}")
async def test_kept_replies_of_a_real_model_give_the_kept_run_again(tmp_path: Path, kept: Row) -> None:
    model = Replayed(settings("http://127.0.0.1:9"), replies=KeptReplies(KEPT), asks=False)
    object.__setattr__(model, "made", [])
    row = await real.play(
        CASES[kept.case], Unit(kept.case, kept.behaviour, kept.seed), kept.policy, tmp_path, model
    )
    words_changed = sum(one.missed for one in model.made)
    if kept.policy in ("retries", "forge"):
        assert not words_changed, (
            "nothing of today's rules is in these runs: what was said must be asked again"
        )
    if not words_changed:
        assert came_of(row) == came_of(kept)


# --- the page ----------------------------------------------------------------------------------------------------


def test_the_page_says_what_the_kept_runs_came_to() -> None:
    assert real_page.page(read_rows(KEPT)) == (KEPT / real_page.PAGE).read_text("utf-8")


def test_only_what_ran_under_every_policy_is_compared_and_harm_is_a_healthy_run_made_worse() -> None:
    some = PLAYED[0]
    rows = [
        replace(some, case=case, negative=case == "a/well", policy=policy, solved=solved)
        for case, policy, solved in [
            ("a/well", "retries", True),
            ("a/well", "combined", False),
            ("b/ill", "retries", False),
            ("b/ill", "combined", True),
            ("c/half", "combined", True),
        ]
    ]
    ran = real_page.compared(rows)
    assert [row.case for row in ran["combined"]] == ["a/well", "b/ill"]
    text = real_page.page(rows)
    assert "2 runs under each policy, of 2 cases (1 healthy)" in text
    assert "| `combined` | 1 of 1 (21%–100%) | 0 of 1 (0%–79%) | 1 of 1 (21%–100%) | · |" in text
    assert "| `combined` over `retries` | **+100 (+100 to +100)** | **-100 (-100 to -100)** |" in text
