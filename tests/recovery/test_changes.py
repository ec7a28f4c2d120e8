"""What counts as a change of the workspace, and that no call after one is refused for want of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.recovery.player import Player
from tui_agent.core import events
from tui_agent.core.recovery.error_place import error_place
from tui_agent.core.recovery.policy import PRESETS
from tui_agent.core.recovery.writes import Writes, program_of, writes, writes_before_its_end

CALLS = [
    ("bash", {"command": "pytest -q"}),
    ("bash", {"command": "python run.py"}),
    ("read_file", {"path": "a"}),
    ("bash", {"command": "ls"}),
]
CHANGES = ["edit", "look", "own command"]

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("fail"), st.integers(0, 3), st.integers(0, 1)),
        st.tuples(st.just("ok"), st.integers(0, 3), st.integers(0, 1)),
        st.tuples(st.just("answer"), st.sampled_from(["skip", "answer", "retry"]), st.just(0)),
        st.tuples(st.just("change"), st.sampled_from(CHANGES), st.just(0)),
    ),
    min_size=4,
    max_size=40,
)


def play(player: Player, kind: str, what: Any, which: int, number: int) -> None:
    match kind, what:
        case (("fail" | "ok"), place):
            tool, arguments = CALLS[place]
            said = {"error": f"boom {which}"} if kind == "fail" else {"content": f"fine {which}"}
            player.batch({"tool": tool, "input": arguments, "ok": kind == "ok", **said})
        case "answer", choice:
            if player.level == "escalate":
                player.answer(choice, "look at the date")
        case "change", "edit":
            player.batch({"tool": "edit_file", "input": {"path": "x.py", "new": str(number)}, "ok": True})
        case "change", "look":
            saved = events.CheckpointSaved(ref="r", iteration=player.iteration + 1, files=("x.py",))
            player.feed(saved)
        case "change", "own command":
            player.feed(events.OwnCommandEnded(command="sed -i s/a/b/ x.py", exit_code=0))


@given(STEPS, st.booleans())
def test_whatever_came_before_a_call_after_a_change_is_never_blocked_and_never_withheld(
    steps: list[tuple[str, Any, int]], present: bool
) -> None:
    player = Player(operator_present=present)
    for number, (kind, what, which) in enumerate(steps):
        play(player, kind, what, which, number)
        if kind == "change":
            for tool, arguments in CALLS:
                assert player.permit(tool, arguments).refusal not in {"blocked", "withheld"}


@pytest.mark.parametrize(("seen", "rule"), [("x.py", "ring.stop"), ("other.py", "ring.guide")])
def test_a_slow_look_at_the_workspace_finds_nothing_new_in_what_the_run_has_edited(
    seen: str, rule: str
) -> None:
    ring_alone = {"attempts": "off", "stuck": False, "cognition": "off", "streak": "off"}
    player = Player(PRESETS["combined"].model_copy(update=ring_alone), operator_present=False)
    player.batch({"tool": "edit_file", "input": {"path": "x.py", "new": "1"}, "ok": True})
    for _ in range(4):
        player.batch({"tool": "read_file", "input": {"path": "a"}, "ok": False, "error": "Permission denied"})
    player.feed(events.CheckpointSaved(ref="r", iteration=1, files=(seen,)))
    player.batch({"tool": "read_file", "input": {"path": "a"}, "ok": False, "error": "Permission denied"})
    assert any(record.rule == rule for record in player.state.last_verdicts)


COMMANDS = [
    ("ls -la", Writes.NOTHING),
    ("grep x y 2>/dev/null", Writes.NOTHING),
    ("sed -n 1,10p a.py", Writes.NOTHING),
    ("sed -i 's/a/b/' t.py", Writes.SURELY),
    ("cat > a.py <<'EOF'\nx > 1\nEOF", Writes.SURELY),
    ("echo hi > a", Writes.SURELY),
    ("pytest -q 2>&1 | tee out.log", Writes.NOTHING),
    ("python -m pytest -q > out.txt", Writes.NOTHING),
    ("python gen.py > data.json", Writes.OUTPUT),
    ("python fix.py", Writes.MAYBE),
    ("python3 -c 'print(2 > 1)'", Writes.NOTHING),
    ("python3 - <<'EOF'\nopen('a', 'w').write('x')\nEOF", Writes.SURELY),
    ("git diff", Writes.NOTHING),
    ("git stash list", Writes.NOTHING),
    ("git checkout -- a.py", Writes.SURELY),
    ("cd /a && pip install -e .", Writes.SURELY),
    ("npm test", Writes.NOTHING),
    ("npm run build", Writes.MAYBE),
    ("ruff check .", Writes.NOTHING),
    ("ruff check --fix .", Writes.SURELY),
    ("black --check .", Writes.NOTHING),
    ("find . -name x -delete", Writes.SURELY),
    ("find . | xargs sed -i s/a/b/", Writes.SURELY),
    ("bash -c 'rm x'", Writes.SURELY),
    ("for f in *; do sed -i s/a/b/ $f; done", Writes.SURELY),
    ("for f in *; do cat $f; done", Writes.MAYBE),
    ("SELECT * FROM a WHERE x > 3", Writes.NOTHING),
    ("export A=1", Writes.SURELY),
]


@pytest.mark.parametrize(("command", "kind"), COMMANDS, ids=[row[0][:40] for row in COMMANDS])
def test_what_a_command_may_change_is_read_from_its_text(command: str, kind: Writes) -> None:
    assert writes(command) is kind


@given(st.text(max_size=300))
def test_no_text_breaks_the_reading_of_commands_and_errors(text: str) -> None:
    writes(text)
    writes_before_its_end(text)
    program_of(text)
    error_place(text)


@pytest.mark.parametrize(
    ("command", "output", "wrote"),
    [
        ("sed -i s/a/b/ x.py && pytest", "1 failed", True),
        ("cp a b", "cp: cannot stat 'a'", False),
        ("mv a b && cp -r b c", "mv: cannot stat 'a': No such file or directory", False),
        ("mv a b && cp -r b c", "cp: cannot stat 'b': No such file or directory", True),
        ("mv a b && cp -r b c && touch d", "mv: cannot stat 'a'", False),
        ("find . | sort -o /tmp/a && cat /tmp/a", "sort: open failed: /tmp/a: No such file", False),
        ("mv a b; rm c; ./build", "mv: cannot stat 'a'\nbad value", True),
        ("/bin/mv a b && ls", "exit code 1: /bin/mv: cannot stat 'a'", False),
    ],
)
def test_what_was_written_before_a_command_failed_counts(command: str, output: str, wrote: bool) -> None:
    assert writes_before_its_end(command, output) is wrote


PLACES = [
    ("    assert 1 == 2\nE   assert 1 == 2\n\ntests/test_tax.py:11: AssertionError", "tests/test_tax.py:11"),
    (
        '  File "app/run.py", line 3, in <module>\n  File "/usr/lib/python3.11/json/x.py", line 9',
        "app/run.py:3",
    ),
    ("src/main.c:11:5: error: expected ';'\nsrc/main.c:30:1: error: more", "src/main.c:11"),
    ("--- FAIL: TestTax\n    tax_test.go:12: got 1", "tax_test.go:12"),
    ("no place at all", ""),
]


@pytest.mark.parametrize(("message", "place"), PLACES, ids=[row[1] or "none" for row in PLACES])
def test_the_failing_place_is_the_one_that_says_what_is_wrong(message: str, place: str) -> None:
    assert error_place(message) == place


def test_the_log_of_a_command_in_the_background_is_a_change_once() -> None:
    player = Player()
    player.batch({"tool": "bash", "input": {"command": "npm run dev"}, "ok": True, "content": "b1"})
    player.feed(events.BackgroundStarted(id="b1", call_id="", command="npm run dev"))

    def seen(name: str) -> int:
        before = player.state.changes.count
        player.feed(events.CheckpointSaved(ref="r", iteration=player.iteration + 1, files=(name,)))
        return player.state.changes.count - before

    assert [seen("requests.txt") for _ in range(3)] == [1, 0, 0]
    assert seen("app.py") == 1, "another file is still a change"
    player.feed(events.BackgroundEnded(id="b1", command="npm run dev", how="exited", code=0, duration=1.0))
    assert [seen("requests.txt") for _ in range(2)] == [1, 1], "by whoever it was now"
