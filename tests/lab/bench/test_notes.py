"""What a real model does at failing steps: the points, what it reads there, and what its replies are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import openai_server as server
from tests.kept_host import KeptHost
from tests.lab.bench.harness import CASES
from tui_agent.cli import main
from tui_agent.config.profiles import ModelParameters
from tui_agent.config.settings import Settings
from tui_agent.lab.bench import next_moves, notes
from tui_agent.lab.bench.behaviours import BEHAVIOURS
from tui_agent.lab.bench.bench import BenchError
from tui_agent.lab.bench.case import Call
from tui_agent.lab.bench.next_moves import move_of, moved, moves, page, shares
from tui_agent.lab.bench.notes import CONDITIONS, REPLIES, Point, Sampled, Scene
from tui_agent.models.protocol import ModelRequest, Reply

KEPT = Path(__file__).resolve().parents[3] / "docs" / "lab" / "notes"
in_the_hosts_loop = pytest.mark.asyncio(loop_scope="session")
TOOLS = {"read_file": ("path",), "bash": ("command",), "list_dir": (), "finish": ("answer",)}


def read(path: str) -> Call:
    return Call("read_file", {"path": path})


def point(number: int = 2, case: str = "a/b") -> Point:
    said = {"function": {"name": "read_file", "arguments": json.dumps({"path": "conf/old.ini"})}, "id": "1"}
    messages = [
        {"role": "user", "content": "Read the port."},
        {"role": "assistant", "content": None, "tool_calls": [said]},
        {"role": "tool", "tool_call_id": "1", "content": "Error: There is no file 'conf/old.ini'."},
    ]
    note = "The second failure of this call."
    return Point(
        f"{case}#{number}",
        case,
        number,
        messages,
        note,
        read("conf/old.ini"),
        [read("conf/new.ini")],
        "new.ini",
    )


def scene(*points: Point) -> Scene:
    tools = [
        {"function": {"name": name, "description": "", "parameters": {"required": list(required)}}}
        for name, required in TOOLS.items()
    ]
    return Scene("openai/small", "You work.", tools, points)


def fence(name: str, **arguments: str) -> str:
    return f"```tool_call\n{json.dumps({'name': name, 'arguments': arguments})}\n```"


# --- points -----------------------------------------------------------------------------------------------------


async def test_a_point_is_made_by_the_loop_itself_with_its_note_and_its_ways_out(tmp_path: Path) -> None:
    made = await notes.scene_of([CASES["wrong-path/typo"], CASES["plain-work/upper"]], "m", tmp_path)
    assert [one.id for one in made.points] == [f"wrong-path/typo#{row}" for row in (1, 2, 3)]
    third = made.points[2]
    assert [message["role"] for message in third.messages] == ["user", *["assistant", "tool"] * 3]
    assert third.error.startswith("Error: There is no file 'conf/settigns.ini'")
    assert third.note.startswith("The third failure of this call of read_file")
    assert (third.call, third.ways) == (read("conf/settigns.ini"), (read("conf/settings.ini"),))
    assert {"read_file", "bash", "finish"} <= made.names


async def test_a_folder_keeps_its_points_and_takes_no_other_model(tmp_path: Path) -> None:
    notes.keep_scene(scene(point(3)), tmp_path)
    kept = await notes.begun([], "openai/small", tmp_path)
    assert (kept.points[0].call, kept.points[0].ways) == (read("conf/old.ini"), [read("conf/new.ini")])
    with pytest.raises(BenchError, match=r"holds the replies of openai/small\. Name another folder"):
        await notes.begun([], "openai/other", tmp_path)
    with pytest.raises(BenchError, match="None of these cases has a failing step"):
        await notes.begun([], "openai/small", tmp_path / "other")


@pytest.mark.parametrize(
    ("condition", "last"),
    [
        ("nothing", "Error: There is no file 'conf/old.ini'."),
        ("note", "<recovery_note>\nThe second failure of this call.\n</recovery_note>"),
        (
            "short",
            "<recovery_note>\nDo not send that call again. Send a different one now.\n</recovery_note>",
        ),
        ("in the result", "Error: There is no file 'conf/old.ini'.\n\nThe second failure of this call."),
        ("named", 'Send this one next: read_file {"path": "conf/new.ini"}\n</recovery_note>'),
        ("refused", "The error was: There is no file 'conf/old.ini'."),
    ],
)
def test_a_condition_changes_what_is_read_last_and_nothing_before(condition: str, last: str) -> None:
    one = point()
    read_there = CONDITIONS[condition](one)
    assert str(read_there[-1]["content"]).endswith(last)
    assert read_there[:2] == list(one.messages[:2])
    request = notes.request_for(scene(one), one, condition)
    assert (request.tools, [message["role"] for message in request.messages][:3]) == (
        [],
        ["system", "user", "assistant"],
    )


# --- moves ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "move"),
    [
        (fence("read_file", path="conf/old.ini"), next_moves.REPEATS),
        (fence("read_file", path="./conf/old.ini"), next_moves.NEARLY),
        (
            fence("read_file", path="conf/old.ini", note="a longer option, which changes nothing"),
            next_moves.NEARLY,
        ),
        (fence("read_file", path="conf/new.ini"), next_moves.NAMED),
        (fence("bash", command="cat conf/new.ini"), next_moves.NAMED),
        ("Let me look.\n\n" + fence("list_dir", path="."), next_moves.ANOTHER),
        ('```json\n{"name": "list_dir", "arguments": {}}\n```', next_moves.ANOTHER),
        ('{"name": "list_dir", "arguments": {}}', next_moves.ANOTHER),
        (fence("finish", answer="The port is 80."), next_moves.ANSWERS),
        (fence("finish", answer="I could not read it."), next_moves.GIVES_UP),
        ("I am sorry, the file does not exist.", next_moves.GIVES_UP),
        ("The port is 80.", next_moves.ANSWERS),
        (fence("open_file", path="conf/new.ini"), next_moves.BREAKS_FORM),
        (fence("read_file", file="conf/new.ini"), next_moves.BREAKS_FORM),
        ('```tool_call\n{"name": "read_file", "arg', next_moves.BREAKS_FORM),
    ],
)
def test_a_reply_is_read_as_the_program_would_and_is_one_move(text: str, move: str) -> None:
    assert move_of(point(), Sampled("a/b#2", "note", 0, text), TOOLS) == move


def test_words_that_the_limit_cut_are_no_answer() -> None:
    assert move_of(point(), Sampled("a/b#2", "note", 0, "First I", cut=True), TOOLS) == next_moves.BREAKS_FORM


def replies(one: Point, **by_condition: str) -> list[Sampled]:
    stays = fence("read_file", path="conf/old.ini")
    return [Sampled(one.id, name, 0, by_condition.get(name, stays)) for name in CONDITIONS]


def test_differences_are_paired_and_only_whole_points_count() -> None:
    first, second = point(case="a/b"), point(case="a/c")
    new = fence("read_file", path="conf/new.ini")
    said = [*replies(first, named=new), *replies(second, named=new, nothing=new)]
    made = moves(scene(first, second, point(1)), [*said, Sampled("a/b#1", "note", 0, new)])
    assert len(made) == 2
    by_name = {one.condition: one for one in shares(made)}
    assert by_name["named"].share[next_moves.NAMED].mean == 1.0
    assert by_name["named"].gain[next_moves.NAMED].mean == 0.5
    assert by_name["note"].gain[next_moves.REPEATS].mean == 0.5
    turned = moved(made, "named", frozenset({next_moves.NAMED}))
    assert (turned.mean, turned.count) == (1.0, 1), "of those that would not have gone there"


def test_the_page_says_what_the_kept_replies_of_a_real_model_are() -> None:
    assert page(notes.read_scene(KEPT), notes.read_replies(KEPT)) == (KEPT / next_moves.PAGE).read_text(
        "utf-8"
    )


def test_the_machine_that_repeats_takes_notes_and_refusals_as_the_real_model_did() -> None:
    made = moves(notes.read_scene(KEPT), notes.read_replies(KEPT))
    own = BEHAVIOURS["repeats"]
    seen = [moved(made, condition, to).mean for _, condition, to in next_moves.TURNED]
    assert [own.named, own.noted, own.refused] == pytest.approx(seen, abs=0.005)


# --- sampling ---------------------------------------------------------------------------------------------------


async def test_a_killed_sampling_asks_for_what_is_missing_and_for_nothing_twice(tmp_path: Path) -> None:
    here = scene(point(1), point(2))
    asked: list[tuple[str, int | None]] = []

    async def ask(request: ModelRequest, parameters: ModelParameters) -> Reply:
        asked.append((json.dumps(request.messages), parameters.seed))
        return Reply(text="x", finish_reason="stop")

    wanted = list(notes.wanted(here, 2, seed=1))
    assert len(wanted) == 2 * 2 * len(CONDITIONS)
    async for _ in notes.sample(here, wanted[:5], tmp_path, ask):
        pass
    with (tmp_path / REPLIES).open("a") as file:
        file.write('{"point": "a/b#1", "condi')  # a kill in the middle of a line
    async for _ in notes.sample(here, wanted, tmp_path, ask):
        pass
    kept = [(one.point, one.condition, one.sample) for one in notes.read_replies(tmp_path)]
    assert kept == [(one.id, condition, number) for one, condition, number in wanted]
    assert len(asked) == len(set(asked)) == len(wanted)
    assert len({seed for _, seed in asked}) == 4, (
        "one for each point and sample, the same under all conditions"
    )


def settings(url: str, **more: object) -> Settings:
    return Settings.model_validate({"model": "openai/small", "api_base": url, "max_cost": 1.0, **more})


@in_the_hosts_loop
async def test_a_real_model_is_asked_through_the_programs_own_client(tmp_path: Path, host: KeptHost) -> None:
    reply = server.text(fence("list_dir", path="."), usage=(100, 10))
    prices = {"openai/small": {"prompt": 0.0, "completion": 0.0}}
    notes.keep_scene(scene(point()), tmp_path)
    async with server.OpenAIServer([reply] * 30) as known:
        await notes.carry_out([], settings(known.url, prices=prices), host, 1, 1, tmp_path)
    bodies = [recorded.body for recorded in known.requests]
    assert len(bodies) == len(CONDITIONS)
    assert {body["temperature"] for body in bodies} == {notes.TEMPERATURE}
    assert all("tools" not in body for body in bodies)
    said = page(notes.read_scene(tmp_path), notes.read_replies(tmp_path))
    assert "| `note` | 0% | 0% | 0% | 100% | 0% | 0% | 0% |" in said


@in_the_hosts_loop
@pytest.mark.parametrize(
    ("price", "says", "asked"),
    [(None, "is not known, so that --max-cost", 1), (10_000.0, "have cost 2.0000 USD", 2)],
)
async def test_a_limit_on_the_cost_holds(
    tmp_path: Path, host: KeptHost, price: float | None, says: str, asked: int
) -> None:
    notes.keep_scene(scene(point()), tmp_path)
    prices = {} if price is None else {"openai/small": {"prompt": price, "completion": 0.0}}
    async with server.OpenAIServer([server.text("x", usage=(100, 0))] * 30) as known:
        with pytest.raises(BenchError, match=says):
            await notes.carry_out([], settings(known.url, prices=prices), host, 1, 1, tmp_path)
    assert len(notes.read_replies(tmp_path)) == asked


def test_the_command_wants_a_limit_for_a_model_and_else_replies_that_are_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["--out", str(tmp_path)]
    assert main(["bench", "notes", *out, "--model", "openai/small"]) == 2
    assert main(["bench", "notes", *out]) == 2
    said = capsys.readouterr().err
    assert "say how much at most with --max-cost" in said
    assert "name a --model, or a folder with replies" in said
    notes.keep_scene(scene(point()), tmp_path)
    (tmp_path / REPLIES).write_text(
        json.dumps({"point": "a/b#2", "condition": "note", "sample": 0, "text": "x"}) + "\n"
    )
    assert main(["bench", "notes", *out]) == 0
    assert "0 replies under each condition" in (tmp_path / next_moves.PAGE).read_text()
