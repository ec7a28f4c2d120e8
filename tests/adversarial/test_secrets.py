"""Attacks on secrets: ways by which a key could reach the disk, a command, an export or a stranger."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import subprocess
from pathlib import Path

import pytest

from tests.adversarial.attack import Attack, attack, attacks
from tests.cli.conftest import CommandLine
from tests.runtime.session_harness import start_session
from tests.tools.box import Box
from tui_agent.formats.exporters import FORMATS, export_session
from tui_agent.frontend.prompt_history import PromptHistory
from tui_agent.store.redaction import Redactor

KEY = "kx7Q-vT93zLm04RpWd8s"
"""Of no known shape: only its variable's name says what it is."""


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_API_KEY", KEY)


def holding(folder: Path, text: str = KEY) -> list[Path]:
    """Files below a folder that hold the text, also inside of git's compressed objects."""
    found = [path for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]
    for store in folder.glob("checkpoints/*"):
        out = subprocess.run(
            ["git", "--git-dir", store, "cat-file", "--batch-all-objects", "--batch"],
            capture_output=True, check=False,
        ).stdout  # fmt: skip
        found += [store] if text.encode() in out else []
    return found


@attacks(
    Attack("env", "`env` in a command", "The key is not there", value="env"),
    Attack("printenv", "`printenv` of the variable", "It is empty", value="printenv ACME_API_KEY; true"),
    Attack(
        "own_environ", "/proc/self/environ and that of the shell", "The key is not there",
        value="cat /proc/self/environ /proc/$$/environ | tr '\\0' '\\n'",
    ),
    Attack("exported", "`declare -x` and `compgen -e`", "The key is not there", value="declare -x; compgen -e"),
    Attack("nested_shell", "A login shell in the command", "The key is not there", value="bash -lc env; sh -c env"),
    Attack(
        "python_environ", "os.environ of a Python that it starts", "The key is not there",
        value="python3 -c 'import os; print(dict(os.environ))'",
    ),
)  # fmt: skip
async def test_environment_of_commands(row: Attack, box: Box) -> None:
    text = (await box.call("bash", command=row.value)).content
    assert KEY not in text
    assert "PATH=" in text or row.name in {"printenv", "python_environ", "exported"}


SPLITS = {"bytes": 1, "words": 7, "halves": len(KEY) // 2}


@attacks(
    *(
        Attack(
            f"split_{name}", f"A key that comes in pieces of {size} characters, in a reply, in arguments and in output",
            "It is masked everywhere: events, journal, kept outputs, index", value=size,
        )
        for name, size in SPLITS.items()
    )
)  # fmt: skip
async def test_split_over_pieces(row: Attack, tmp_path: Path) -> None:
    pieces = [KEY[at : at + row.value] for at in range(0, len(KEY), row.value)]
    slowly = "; ".join(f"printf %s {piece}; sleep 0.02" for piece in pieces)
    flood = f"yes {pieces[0]}''{''.join(pieces[1:])} | head -c 200000"
    live = await start_session(
        tmp_path,
        [
            {"text": f"I found {KEY}", "calls": [{"tool": "bash", "args": {"command": slowly}}]},
            {"calls": [{"tool": "bash", "args": {"command": flood}}]},
            {"calls": [{"tool": "write_file", "args": {"path": "f", "content": "x"}}]},
            f"The key is {KEY}.",
        ],
        sandbox="auto",
    )
    await live.run(f"use {KEY}")
    await live.close()
    assert KEY not in repr(live.events)
    assert holding(tmp_path / "state") == []
    assert any("masked:ACME_API_KEY" in repr(event) for event in live.events)


@attack(
    "A key in arguments, escaped as JSON, quoted for a URL, as a name of a file, as a key of an object",
    "Masked in what is kept; the tool still runs with the exact text",
)
async def test_in_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = 'p"ass\\w/ö r%d?x'
    monkeypatch.setenv("ODD_PASSWORD", odd)
    from urllib.parse import quote

    calls = [
        {"tool": "write_file", "args": {"path": "f.txt", "content": odd}},
        {"tool": "write_file", "args": {"path": f"d/{KEY}.txt", "content": json.dumps(odd)}},
        {"tool": "bash", "args": {"command": f"echo {quote(odd, safe='')} {KEY}"}},
        {"tool": "read_file", "args": {"path": "f.txt", KEY: 1}},
    ]
    live = await start_session(tmp_path, [{"calls": [call]} for call in calls] + ["done"], sandbox="auto")
    await live.run()
    await live.close()
    assert (tmp_path / "workspace" / "f.txt").read_text() == odd
    for form in (odd, json.dumps(odd)[1:-1], quote(odd, safe=""), KEY):
        assert form not in repr(live.events)
        assert [path for path in holding(tmp_path / "state", form) if "checkpoints" not in str(path)] == []


@attack(
    "A masked secret is read and written back by the model, whole and in an edit",
    "The file holds the secret as before, never its placeholder",
    fell="the file held `[masked:api-key]`",
)
async def test_written_back(tmp_path: Path) -> None:
    secret = "sk-" + "a1B2c3D4e5F6g7H8"
    live = await start_session(
        tmp_path,
        [
            {"calls": [{"tool": "read_file", "args": {"path": ".env"}}]},
            {"calls": [{"tool": "write_file", "args": {"path": ".env", "content": "A=1\nKEY=[masked:api-key]\n"}}]},
            {"calls": [{"tool": "edit_file", "args": {"path": ".env", "old": "A=1", "new": "B=[masked:nothing]"}}]},
            "done",
        ],
        files={".env": f"KEY={secret}\n"},
        sandbox="auto",
    )  # fmt: skip
    await live.run()
    await live.close()
    assert (tmp_path / "workspace" / ".env").read_text() == f"A=1\nKEY={secret}\n"


@attack(
    "The same failing call, with a key among its arguments, again and again",
    "It is blocked like any other: masking does not change which call it is",
    fell="calls with masked arguments were never blocked",
)
async def test_blocked_in_spite_of_masks(tmp_path: Path) -> None:
    command = {"command": f"false # {KEY} sk-a1B2c3D4e5F6g7H8"}
    live = await start_session(
        tmp_path, [{"calls": [{"tool": "bash", "args": command}]}] * 6 + ["done"], sandbox="auto"
    )
    await live.run()
    await live.close()
    started = [event for event in live.events if event.type == "tool_started"]
    assert len(started) == 3


@attack(
    "Exports of a session that met a key, in every form",
    "None holds the key",
)
async def test_exports(tmp_path: Path) -> None:
    live = await start_session(
        tmp_path, [{"calls": [{"tool": "bash", "args": {"command": f"echo {KEY}"}}]}, KEY], sandbox="auto"
    )
    await live.run(KEY)
    await live.close()
    for form in FORMATS:
        assert KEY not in export_session(live.session.folder, form), form


@attack(
    "A recording from elsewhere that holds this machine's key, imported",
    "The session made of it does not hold it",
)
def test_imported(cli: CommandLine) -> None:
    recording = cli.home / "chat.json"
    messages = [{"role": "user", "content": f"use {KEY}"}, {"role": "assistant", "content": f"I used {KEY}"}]
    recording.write_text(json.dumps({"messages": messages}))
    done = cli("sessions", "import", str(recording), ACME_API_KEY=KEY)
    assert done.code == 0, done
    assert KEY not in done.out + done.err
    assert holding(cli.state) == []


@attack(
    "A fault of the console whose text and traceback hold a key",
    "The crash report holds a mask, and is for its owner alone",
    fell="the traceback was written as it was, readable by all",
)
def test_crash_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tui_agent.console.terminal.crash import crash_text

    monkeypatch.setenv("AGENT_TUI_STATE_DIR", str(tmp_path / "state"))
    try:
        raise ValueError(f"cannot parse {KEY} and sk-a1B2c3D4e5F6g7H8")
    except ValueError as error:
        said = crash_text(error)
    (report,) = (tmp_path / "state").iterdir()
    assert KEY not in said + report.read_text()
    assert "sk-a1B2c3D4e5F6g7H8" not in said + report.read_text()
    assert "test_crash_report" in report.read_text()
    assert stat.S_IMODE(report.stat().st_mode) == 0o600


@attack(
    "A key typed or pasted into the prompt",
    "The history in the file holds a mask",
    fell="the history held texts as they were typed",
)
def test_prompt_history(tmp_path: Path) -> None:
    history = PromptHistory()
    history.load(tmp_path / "state" / "history")
    history.add(f"my key is {KEY}, and ghp_{'a1' * 18}")
    assert history.previous("") == f"my key is {KEY}, and ghp_{'a1' * 18}"
    kept = (tmp_path / "state" / "history").read_text()
    assert KEY not in kept
    assert "ghp_a1" not in kept
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700


@attack(
    "Everything that a run leaves in the state folder, under a umask that lets others read",
    "Folders are 0700, files 0600",
    fell="the index was 0644, the folder 0755",
)
async def test_modes(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        live = await start_session(
            tmp_path,
            [
                {"calls": [{"tool": "write_file", "args": {"path": "f", "content": "x"}}]},
                {"calls": [{"tool": "bash", "args": {"command": "yes | head -c 100000"}}]},
                "done",
            ],
            sandbox="auto",
        )
        await live.run()
        await live.close()
        from tui_agent.store.session_store import SessionStore

        await asyncio.to_thread(SessionStore(tmp_path / "state").refresh)
    finally:
        os.umask(before)
    state = tmp_path / "state"
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    open_to_others = [
        path for path in state.rglob("*")
        if stat.S_IMODE(path.stat().st_mode) & 0o077 and "checkpoints" not in path.parts
    ]  # fmt: skip
    assert open_to_others == []
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o700 for path in (state / "checkpoints").iterdir())


@attack(
    "A run that says its key in the answer, to every kind of output, with a wrong key in the environment",
    "Neither standard output nor errors hold it",
)
def test_output_of_a_run(cli: CommandLine) -> None:
    model = cli.scenario(f'[[turns]]\ntext = "the key is {KEY}"\n')
    for kind in ("text", "json", "jsonl"):
        done = cli("run", "go", "--model", model, "--output", kind, ACME_API_KEY=KEY)
        assert KEY not in done.out + done.err, kind


@attack(
    "1 MB of text that looks like the beginning of secrets: `sk-`, `-----BEGIN `, `Bearer `, `://a:`, `X_KEY=`",
    "Masked in linear time",
    fell="11 MB/s at best, on the loop",
    slow=True,
)
def test_masking_is_linear() -> None:
    import time

    redactor = Redactor({"ACME_API_KEY": KEY})
    for piece in (
        "sk-",
        "-----BEGIN ",
        "Bearer a",
        "://a:b",
        "A_KEY=a",
        "eyJa.",
        "A_",
        KEY[:-1],
        "a" * 64 + "\n",
    ):
        text = piece * (1_000_000 // len(piece))
        begun = time.process_time()
        redactor.text(text)
        stream = redactor.stream()
        for at in range(0, 200_000, 1_000):
            stream.feed(text[at : at + 1_000])
        stream.flush()
        assert time.process_time() - begun < 6, piece


@attack(
    "A command reads the environment of the program through /proc/<parent>/environ, encoded as base64 and reversed",
    "The key is not there",
    fell="it was, and masks do not know encoded keys",
    slow=True,
)
def test_environment_of_the_program(cli: CommandLine) -> None:
    up = "p=$(awk '/^PPid/{print $2}' /proc/$p/status)"
    reading = f"p=$$; while [ $p -gt 1 ]; do base64 -w0 /proc/$p/environ; {up}; done"
    turns = (
        f"[[turns]]\ncalls = [{{ tool = 'bash', args = {{ command = {json.dumps(reading + ' > out.txt; true')} }} }}]\n"
        '[[turns]]\ntext = "done"\n'
    )
    done = cli.process("run", "go", "--model", cli.scenario(turns), "--approve", "all", OPENAI_API_KEY=KEY)
    assert done.code == 0, done
    import base64

    found = (cli.workspace / "out.txt").read_text() if (cli.workspace / "out.txt").exists() else ""
    decoded = b"".join(base64.b64decode(part + "==") for part in found.split("=") if part)
    assert b"PATH=" in decoded or not found
    assert KEY.encode() not in decoded


@attack(
    "A workspace with an ignored and a tracked `.env` that hold keys, and a checkpoint of it",
    "The store of checkpoints holds no key of this environment",
    fell="git's objects held it in clear",
)
async def test_checkpoints_keep_no_key(tmp_path: Path) -> None:
    live = await start_session(
        tmp_path,
        [{"calls": [{"tool": "write_file", "args": {"path": "f.txt", "content": "x"}}]}, "done"],
        files={".env": f"ACME_API_KEY={KEY}\n", "notes.txt": "plain\n"},
        sandbox="auto",
    )
    await live.run()
    await live.close()
    assert holding(tmp_path / "state") == []
