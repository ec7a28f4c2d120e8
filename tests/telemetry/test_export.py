"""A real session sends its spans and metrics to a receiver of OTLP over HTTP, masked, if a collector is named."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.session_harness import LiveSession, start_session
from tui_agent import installed
from tui_agent.core.events import Notice
from tui_agent.telemetry import export, names

TURNS = [
    {
        "calls": [
            {"tool": "bash", "args": {"command": "echo $((6*7)) sk-ant-api03-" + "a1B2" * 12 + "; exit 3"}}
        ]
    },
    {"text": "All done."},
]


class Receiver(ThreadingHTTPServer):
    """Keeps what is posted to it, by path."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.posted: list[tuple[str, bytes]] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.posted.append((self.path, body))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_request(self, code: Any = "-", size: Any = "-") -> None:
        """Print nothing."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="the extra [otel] is not installed")
    with Receiver() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


async def test_a_session_sends_spans_and_metrics_without_secrets(receiver: Receiver, tmp_path: Path) -> None:
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    telemetry = {"endpoint": receiver.address, "content": True}
    live = await start_session(tmp_path, TURNS, telemetry=telemetry)
    await live.run()
    await live.close()
    assert said_of(live) == []
    spans = [
        span
        for path, body in receiver.posted
        if path == "/v1/traces"
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    told = [span.name.split()[0] for span in sorted(spans, key=lambda span: span.start_time_unix_nano)]
    assert told == ["invoke_agent", "chat", "execute_tool", "chat"]
    (tool,) = (span for span in spans if span.name == "execute_tool bash")
    attributes = {one.key: one.value for one in tool.attributes}
    assert attributes[names.ERROR_TYPE].string_value == "tool_execution"
    assert attributes[names.EXIT_CODE].int_value == 3
    assert "42" in attributes[names.RESULT].string_value
    sent = b"".join(body for _, body in receiver.posted)
    assert b"sk-ant-api03" not in sent
    assert b"echo $((6*7))" in sent
    metrics = [
        metric.name
        for path, body in receiver.posted
        if path == "/v1/metrics"
        for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    ]
    assert {names.AGENT_DURATION, names.TOOL_DURATION, names.INFERENCE_DURATION} <= set(metrics)


async def test_a_collector_that_is_away_is_said_once_and_ends_no_run(
    receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "LAST_SECONDS", 0.0)
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "1")
    receiver.shutdown()
    receiver.server_close()
    live = await start_session(tmp_path, TURNS, telemetry={"endpoint": receiver.address})
    assert (await live.run()).outcome == "answered"
    await live.until(lambda _: said_of(live))
    (said,) = said_of(live)
    assert said.startswith(f"Telemetry does not reach {receiver.address}: ")
    await live.close()


def said_of(live: LiveSession) -> list[str]:
    return [event.text for event in live.of(Notice) if "Telemetry" in event.text]


async def test_packages_that_are_not_there_are_said_with_the_command_that_adds_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.metric_exporter", None)
    live = await start_session(tmp_path, TURNS[1:], telemetry={"endpoint": "http://127.0.0.1:9"})
    await live.until(lambda _: said_of(live))
    (said,) = said_of(live)
    assert installed.adding("otel") in said
    await live.close()


async def test_a_fault_of_the_sdk_is_said_and_ends_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(endpoint: str) -> None:
        raise ValueError(f"no use of {endpoint}")

    monkeypatch.setattr(export, "providers", broken)
    live = await start_session(tmp_path, TURNS[1:], telemetry={"endpoint": "http://127.0.0.1:9"})
    await live.until(lambda _: said_of(live))
    assert said_of(live) == [
        "Telemetry does not reach http://127.0.0.1:9: ValueError: no use of http://127.0.0.1:9"
    ]
    assert (await live.run()).outcome == "answered"
    await live.close()
