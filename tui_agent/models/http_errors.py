"""How an answer of a model's server is no reply, whatever its status says."""

from __future__ import annotations

from collections.abc import Mapping

from tui_agent.core.names import FaultKind


class RefusedAnswerError(Exception):
    """An answer that is not taken; `kind` and `todo` are for the fault."""

    def __init__(self, kind: FaultKind, message: str, todo: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.todo = todo


class AnsweredWithError(Exception):
    """A call was answered with an error under a status of success, which libraries read as a reply without content.

    `body`: as it came, or read already.
    """

    def __init__(self, status: int, headers: Mapping[str, str], body: object) -> None:
        super().__init__(f"status {status} with an error")
        self.status = status
        self.headers = dict(headers)
        self.body = body
