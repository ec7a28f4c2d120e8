"""Our side of the model host: a `Model` that has its calls made in a child process.

The child starts with the first call or with `start`, is started again when it died, and is killed when it
hangs; either is a typed fault of the calls that were under way, never a crash. What the child prints goes into
messages and reaches no screen.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress

from pydantic import BaseModel, ValidationError

from tui_agent import processes
from tui_agent.core.names import FaultKind
from tui_agent.core.values import Fault
from tui_agent.models import host_start, wire
from tui_agent.models.host_start import Begun, begin, host_command, host_environment
from tui_agent.models.masking import masked
from tui_agent.models.protocol import Delta, ModelFault, ModelRequest, Reply

_TAIL_LINES = 40
_PATIENCE = 2.0
"""Seconds that the child may take to end."""
_Queue = asyncio.Queue[wire.Piece | wire.Done | wire.Failed | wire.Budget | wire.Named]


class HostedModel:
    """A `Model` in a process of its own.

    `hang_timeout` is the longest time in seconds without a sign of life while a call goes on. `command`: the host's
    command line. `begun`: a host that begins already, and is the first.
    """

    def __init__(
        self,
        *,
        begun: Begun | None = None,
        hang_timeout: float = 30.0,
        command: Sequence[str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._hang_timeout = hang_timeout
        self._command = list(command) if command is not None else host_command()
        self._environment = environment
        self._begun = begun
        self._child: _Child | None = None
        self._starting = asyncio.Lock()
        self._last_id = 0
        self._closed = False
        self._keys: dict[str, str] = {}
        """Keys that the operator gave in this console, by variable: a host that is started again gets them as
        well.
        """

    @property
    def pid(self) -> int | None:
        """The child's process id, while there is one."""
        return self._child.pid if self._child is not None and self._child.alive else None

    async def start(self) -> None:
        """Start the child if none runs, so that the first call does not wait for it. Raises `ModelFault`."""
        await self._running()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta | Reply, None]:
        """See `protocol.Model`."""
        child = await self._running()
        call_id = self._next_id()
        queue = child.open(call_id)
        over = False
        try:
            await child.send(wire.Call(id=call_id, request=request))
            while True:
                message = await child.next(queue)
                match message:
                    case wire.Piece():
                        yield Delta(text=message.text, reasoning=message.reasoning)
                    case wire.Done():
                        over = True
                        yield message.reply
                        return
                    case wire.Failed():
                        over = True
                        raise ModelFault(message.fault)
        finally:
            child.forget(call_id, cancel=not over)

    async def context_tokens(
        self, model: str, api_base: str | None = None, api_key_variable: str | None = None
    ) -> int | None:
        """See `protocol.Model`; None also when the host cannot answer."""
        asked = wire.AskBudget(
            id=self._next_id(), model=model, api_base=api_base, api_key_variable=api_key_variable
        )
        answer = await self._answer(asked)
        return answer.tokens if isinstance(answer, wire.Budget) else None

    async def look_up(self, model: str, api_base: str | None = None) -> wire.Named | None:
        """Facts about this name at this address; None if the host cannot answer."""
        answer = await self._answer(wire.AskName(id=self._next_id(), model=model, api_base=api_base))
        return answer if isinstance(answer, wire.Named) else None

    async def _answer(self, question: wire.AskBudget | wire.AskName) -> object:
        try:
            child = await self._running()
            queue = child.open(question.id)
            try:
                await child.send(question)
                return await child.next(queue)
            finally:
                child.forget(question.id, cancel=False)
        except ModelFault:
            return None

    async def use_key(self, variable: str, key: str) -> None:
        """Make calls with this key from now on, in the place of the environment's; empty: without one."""
        self._keys[variable] = key
        if self._child is not None and self._child.alive:
            with suppress(ModelFault):
                await self._child.send(wire.UseKey(variable=variable, key=key))

    async def close(self) -> None:
        """End the child. May be called twice; a later call raises `ModelFault`."""
        self._closed = True
        child, self._child = self._child, None
        begun, self._begun = self._begun, None
        if begun is not None:
            await host_start.end(begun)
        if child is not None:
            await child.end(_PATIENCE)

    async def _running(self) -> _Child:
        async with self._starting:
            if self._closed:
                raise _closed()
            if self._child is None or not self._child.alive:
                if self._child is not None:
                    await self._child.end(0)
                self._child = await self._start()
                if self._closed:
                    await HostedModel.close(self)
                    raise _closed()
            return self._child

    async def _start(self) -> _Child:
        own = os.environ if self._environment is None else self._environment
        given = host_environment({**own, **self._keys})
        environment = {name: value for name, value in given.items() if self._keys.get(name, value)}
        begun, self._begun = self._begun, None
        try:
            child = await (begun or begin(self._command, environment))
        except OSError as error:
            raise ModelFault(
                Fault(
                    kind=FaultKind.BAD_REQUEST,
                    message=f"the model host cannot be started: {error}",
                    advice=f"Check that {self._command[0]} can be run, and that there is memory left.",
                )
            ) from error
        running = _Child(child, self._hang_timeout)
        if begun is not None:
            for variable, key in self._keys.items():
                await running.send(wire.UseKey(variable=variable, key=key))
        return running

    def _next_id(self) -> int:
        self._last_id += 1
        return self._last_id


class KeptHost(HostedModel):
    """A host that sessions share: it stays when one of them closes its model."""

    async def close(self) -> None:
        """The other sessions need it."""

    async def end(self) -> None:
        """End the process."""
        await super().close()


def _closed() -> ModelFault:
    return ModelFault(Fault(kind=FaultKind.BAD_REQUEST, message="the model was closed already"))


class _Child:
    """One child process, its pipes and the calls that wait for it."""

    def __init__(self, child: processes.Child, hang_timeout: float) -> None:
        self._child = child
        self._process = child.process
        self._stdin, self._stdout, self._stderr = _pipes(child.process)
        self._hang_timeout = hang_timeout
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[int, _Queue] = {}
        self._tail: deque[str] = deque(maxlen=_TAIL_LINES)
        self._fault: Fault | None = None
        self._last_report_at = self._loop.time()
        self._listener = asyncio.ensure_future(self._listen())
        self._printed = asyncio.ensure_future(self._keep_what_it_prints())
        self._watchdog = asyncio.ensure_future(self._watch())

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._fault is None and self._process.returncode is None

    def open(self, call_id: int) -> _Queue:
        """A queue for the reports about a call."""
        if not self._waiting:
            self._last_report_at = self._loop.time()
        queue: _Queue = asyncio.Queue()
        self._waiting[call_id] = queue
        return queue

    def forget(self, call_id: int, *, cancel: bool) -> None:
        """The call is over for us."""
        self._waiting.pop(call_id, None)
        if cancel and self.alive:
            self._stdin.write(wire.line(wire.Cancel(id=call_id)))

    async def send(self, message: BaseModel) -> None:
        """Send a command; reports are read while a large one goes out. Raises `ModelFault`."""
        if not self.alive:
            raise ModelFault(await self._why_it_ended())
        try:
            self._stdin.write(wire.line(message))
            await self._stdin.drain()
        except ConnectionError as error:
            raise ModelFault(await self._why_it_ended()) from error

    async def next(self, queue: _Queue) -> wire.Piece | wire.Done | wire.Failed | wire.Budget | wire.Named:
        """The next report about a call. Raises `ModelFault` when the child is gone."""
        if self._fault is not None and queue.empty():
            raise ModelFault(self._fault)
        return await queue.get()

    async def end(self, patience: float) -> None:
        """Have the child end: by closing its pipe, and by force after `patience` seconds, or once this is cancelled."""
        self._stdin.close()
        try:
            if patience > 0:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._process.wait(), patience)
        finally:
            await self._child.end()
            self._watchdog.cancel()
            await asyncio.gather(self._listener, self._printed, self._watchdog, return_exceptions=True)

    def _kill(self) -> None:
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.kill()

    async def _listen(self) -> None:
        try:
            while line := await self._stdout.readline():
                self._last_report_at = self._loop.time()
                self._take(line)
        except (ValidationError, ValueError) as error:
            self._fail(
                Fault(
                    kind=FaultKind.BAD_OUTPUT,
                    message=f"the model host sent something that is no report: {str(error).splitlines()[0]}",
                    advice="It is started again with the next try.",
                )
            )
            return
        await self._process.wait()
        # What it printed last explains why.
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._printed), 1.0)
        self._fail(self._died())

    def _take(self, line: bytes) -> None:
        report = wire.reports.validate_json(line)
        if not isinstance(report, wire.Alive):
            queue = self._waiting.get(report.id)
            if queue is not None:
                queue.put_nowait(report)

    async def _keep_what_it_prints(self) -> None:
        while block := await self._stderr.read(65_536):
            self._tail.extend(line for line in block.decode("utf-8", "replace").splitlines() if line.strip())

    async def _watch(self) -> None:
        """Kill the child when it gives no sign of life while a call waits for it."""
        nap = min(1.0, self._hang_timeout / 4)
        while True:
            asleep = self._loop.time()
            await asyncio.sleep(nap)
            now = self._loop.time()
            if now - asleep > self._hang_timeout / 2:
                # This process did not run (suspended, a busy machine): nothing is known about the child.
                self._last_report_at = now
            silent = now - self._last_report_at
            if self._waiting and silent > self._hang_timeout:
                self._fail(
                    Fault(
                        kind=FaultKind.TIMEOUT,
                        message=f"the model host gave no sign of life for {silent:.0f} s and was ended",
                        advice="It is started again with the next try.",
                    )
                )
                return

    def _fail(self, fault: Fault) -> None:
        """The child is of no use any more: every call that waits gets the fault."""
        if self._fault is not None:
            return
        self._fault = fault
        self._kill()
        for call_id, queue in self._waiting.items():
            queue.put_nowait(wire.Failed(id=call_id, fault=fault))

    async def _why_it_ended(self) -> Fault:
        """The host's end, told after its last words were read; some time is left for them."""
        await asyncio.wait({self._listener}, timeout=_PATIENCE)
        return self._fault or self._died()

    def _died(self) -> Fault:
        code = self._process.returncode
        how = f"by signal {-code}" if code is not None and code < 0 else f"with exit code {code}"
        last = masked(self._tail[-1]) if self._tail else ""
        return Fault(
            kind=FaultKind.CONNECTION,
            message=f"the model host ended {how}" + (f": {last}" if last else ""),
            advice="It is started again with the next try.",
        )


def _pipes(
    process: asyncio.subprocess.Process,
) -> tuple[asyncio.StreamWriter, asyncio.StreamReader, asyncio.StreamReader]:
    if process.stdin is None or process.stdout is None or process.stderr is None:
        raise ValueError("the model host is started with three pipes")
    return process.stdin, process.stdout, process.stderr
