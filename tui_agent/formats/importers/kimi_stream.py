"""What `kimi -p --output-format stream-json` prints: messages of OpenAI's form, whose results have no mark.

Only a command says that it failed.
"""

from __future__ import annotations

from tui_agent.core.events import FailureKind
from tui_agent.formats.importers.faults import rejection_kind
from tui_agent.formats.importers.kimi_results import EXITED
from tui_agent.formats.importers.openai_messages import MessageReader
from tui_agent.formats.importers.reading import Record
from tui_agent.formats.importers.results import exited, judged
from tui_agent.formats.importers.step_reader import Format
from tui_agent.formats.importers.transcript import Call, ImportReport, Result


class KimiStream(MessageReader, Format):
    """One conversation."""

    name = "Kimi Code stream"

    def __init__(self, report: ImportReport) -> None:
        Format.__init__(self, report)

    @classmethod
    def knows(cls, record: Record) -> bool:
        """The version of the program, at the head."""
        return record.get("role") == "meta" and record.get("type") == "system.version"

    def take(self, message: Record) -> None:
        if message.get("role") == "meta":
            self.leave_out("meta")
        else:
            super().take(message)

    def judge(self, call: Call, content: str, record: Record) -> Result:
        """How a call has ended, by the last line of its output if it is a command."""
        code = EXITED.search(content)
        if code is not None:
            return exited(call, content[: code.start()], None, int(code[1]))
        if rejection_kind(content[:200]) is FailureKind.UNKNOWN_TOOL:
            return judged(call, content, None, content)
        return judged(call, content, None, None) if call.name == "Bash" else Result("unknown", content)
