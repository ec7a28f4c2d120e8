"""A session's events on their way to a collector, by OTLP over HTTP: the session only puts them into a queue.

A thread takes them out, imports the SDK, makes spans and metrics, and has the SDK send them. The usual variables of
OpenTelemetry (`OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_SERVICE_NAME`, …) hold; that an address stands in one of them turns
nothing on.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING

from tui_agent import __version__, installed
from tui_agent.core.events import Event, Notice, ReplyDelta, ToolProgress
from tui_agent.telemetry import names
from tui_agent.telemetry.spans import Spans

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.trace import TracerProvider

    from tui_agent.config.sections import TelemetrySettings
    from tui_agent.core.state import RunState
    from tui_agent.store.recorder import SessionRecorder

LAST_SECONDS = 3.0
"""Longest time for what is still to be sent when a session is closed."""
_PIECES = frozenset({ReplyDelta, ToolProgress})
"""Events of no interest here, which come often."""
logger = logging.getLogger(__name__)
_of_the_sdk = logging.getLogger("opentelemetry")
_of_the_sdk.addHandler(logging.NullHandler())  # else its warnings would be written over the screen


def providers(endpoint: str) -> tuple[TracerProvider, MeterProvider]:
    """The SDK's providers, which send to the collector at `endpoint`."""
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    service = Resource.create({"service.name": names.AGENT, "service.version": __version__})
    resource = service.merge(OTELResourceDetector().detect())
    base = endpoint.rstrip("/")
    tracing = TracerProvider(resource=resource, shutdown_on_exit=False)
    tracing.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=f"{base}/v1/traces")))
    reader = PeriodicExportingMetricReader(OTLPMetricExporter(endpoint=f"{base}/v1/metrics"))
    return tracing, MeterProvider([reader], resource=resource, shutdown_on_exit=False)


class Export:
    """The way of one session's events to the collector; it begins at once, and ends with `close`."""

    def __init__(self, settings: TelemetrySettings, session: str, recorder: SessionRecorder) -> None:
        self._settings = settings
        self._session = session
        self._recorder = recorder
        self._loop = asyncio.get_running_loop()
        self._closed = False
        self._events: SimpleQueue[Event | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="telemetry", daemon=True)
        self._thread.start()
        recorder.subscribe(self._hear)

    def _hear(self, event: Event, _: RunState) -> None:
        if type(event) not in _PIECES:
            self._events.put(event)

    async def close(self) -> None:
        """Send what is left, as far as that takes no longer than `LAST_SECONDS`."""
        self._closed = True
        self._events.put(None)
        await asyncio.to_thread(self._thread.join, LAST_SECONDS)

    def _run(self) -> None:
        told = _FirstFault(self._tell)
        _of_the_sdk.addHandler(told)
        try:
            self._send()
        except ImportError as missing:
            self._tell(f"{missing}. Install what is missing: {installed.adding('otel')}")
        except Exception as fault:  # of the SDK; it must not be printed over the screen
            logger.exception("telemetry ended")
            self._tell(f"{type(fault).__name__}: {fault}")
        finally:
            _of_the_sdk.removeHandler(told)

    def _send(self) -> None:
        tracing, metering = providers(self._settings.endpoint)
        scope = (names.AGENT, __version__)
        tracer, meter = tracing.get_tracer(*scope), metering.get_meter(*scope)
        spans = Spans(tracer, meter, self._session, content=self._settings.content)
        at = time.time()
        while (event := self._events.get()) is not None:
            at = event.at
            spans.take(event)
        spans.close(at)
        tracing.shutdown()
        metering.shutdown()

    def _tell(self, why: str) -> None:
        """Say in the session why nothing gets out, if there still is one."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._record_fault, why)

    def _record_fault(self, why: str) -> None:
        if not self._closed:
            text = f"Telemetry does not reach {self._settings.endpoint}: {why}"
            self._recorder.record(Notice(severity="warning", text=text))


class _FirstFault(logging.Handler):
    """Tells the first warning of the SDK."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._tell: Callable[[str], None] | None = tell

    def emit(self, record: logging.LogRecord) -> None:
        tell, self._tell = self._tell, None
        if tell is not None:
            tell(record.getMessage())


def exported(settings: TelemetrySettings, session: str, recorder: SessionRecorder) -> Export | None:
    """Send what is recorded from now on; None if the settings name no collector."""
    return Export(settings, session, recorder) if settings.endpoint else None
