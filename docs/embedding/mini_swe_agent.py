"""mini-swe-agent: an agent whose commands are asked for, and whose next request has the note."""

from pathlib import Path
from typing import Any

from guard import Guard
from minisweagent import Environment, Model
from minisweagent.agents.default import DefaultAgent

TOOL = "bash"


class Guarded(DefaultAgent):
    """The default agent under the engine."""

    def __init__(self, model: Model, env: Environment, task: str, journal: Path, **settings: Any) -> None:
        super().__init__(model, env, **settings)
        self.guard = Guard(task, [TOOL], journal)

    def query(self) -> dict:
        """Ask the model, with the note behind all else; the note is no part of the history."""
        kept = self.messages
        note = [self.model.format_message(role="user", content=self.guard.note)] if self.guard.note else []
        self.messages = kept + note
        try:
            reply = super().query()
        finally:
            self.messages = kept
        self.add_messages(reply)
        return reply

    def execute_actions(self, message: dict) -> list[dict]:
        """Carry the commands out that may run."""
        outputs = [self._executed(action) for action in message.get("extra", {}).get("actions", [])]
        self.guard.step_ended()
        said = self.model.format_observation_messages(message, outputs, self.get_template_vars())
        return self.add_messages(*said)

    def _executed(self, action: dict) -> dict:
        arguments = {"command": action["command"]}
        if refusal := self.guard.refusal(TOOL, arguments):
            return {"output": refusal, "returncode": -1, "exception_info": ""}
        try:
            result = self.env.execute(action)
        except BaseException:  # the command that submits ends the run by an exception
            self.guard.succeeded(TOOL, arguments, "")
            self.guard.step_ended()
            raise
        if result["returncode"]:
            self.guard.failed(TOOL, arguments, f"exit code {result['returncode']}\n{result['output']}")
        else:
            self.guard.succeeded(TOOL, arguments, result["output"])
        return result
