"""An agent of the Agent Client Protocol as a process, without any package: `python agent_process.py HOW`."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

HOW = sys.argv[1]
MODES = {
    "currentModeId": "build",
    "availableModes": [{"id": "build", "name": "Build"}, {"id": "plan", "name": "Plan"}],
}
state = {"mode": "build", "prompts": 0, "asked": 0}


def send(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def update(what: str, /, **more: Any) -> None:
    send(method="session/update", params={"sessionId": "s", "update": {"sessionUpdate": what, **more}})


def say(text: str) -> None:
    update("agent_message_chunk", content={"type": "text", "text": text})


def call(command: str, status: str) -> None:
    given = {"title": command, "kind": "execute", "rawInput": {"command": command}}
    update("tool_call", toolCallId="c", status=status, **given)


def prompted(number: Any) -> None:
    state["prompts"] += 1
    if HOW == "works":
        call("make all", "pending")
        options = [
            {"optionId": "y", "name": "Yes", "kind": "allow_once"},
            {"optionId": "n", "name": "No", "kind": "reject_once"},
        ]
        state["asked"] = number
        params = {"sessionId": "s", "toolCall": {"toolCallId": "c"}, "options": options}
        send(id=900, method="session/request_permission", params=params)
    elif HOW == "sleeps" and state["prompts"] == 1:
        state["asked"] = number
        call("sleep 600", "in_progress")
    else:
        if HOW == "rubbish":
            print("\x1b]0;boo\x07{not json\n[1]\nnull\n" + '{"jsonrpc": "2.0", "method": 5}', flush=True)
            update("tool_call", toolCallId=["x"], content=7)
        if HOW == "floods":
            for _ in range(20_000):
                update("agent_thought_chunk", content={"type": "text", "text": "hm "})
        say("Still here." if HOW in {"rubbish", "floods"} else f"Prompt {state['prompts']} was heard.")
        send(id=number, result={"stopReason": "end_turn"})


def permitted(_: Any) -> None:
    text = [{"type": "content", "content": {"type": "text", "text": "no rule to make all"}}]
    update("tool_call_update", toolCallId="c", status="failed", content=text)
    say(f"All is well in {state['mode']}.")
    send(id=state["asked"], result={"stopReason": "end_turn"})


def asked(message: dict[str, Any]) -> None:
    number, method, params = message.get("id"), message.get("method"), message.get("params") or {}
    match method:
        case "initialize" if HOW == "missing":
            send(id=number, result={"hello": "there"})
        case "initialize":
            version = 7 if HOW == "newer" else 1
            send(id=number, result={"protocolVersion": version, "authMethods": [{"id": "by-key"}]})
        case "session/new" if HOW == "login":
            send(id=number, error={"code": -32000, "message": "Authentication required"})
        case "session/new":
            send(id=number, result={"sessionId": "s", "modes": MODES})
            update("available_commands_update", availableCommands=[{"name": "review", "description": "Look"}])
        case "session/set_mode":
            state["mode"] = params["modeId"]
            send(id=number, result={})
        case "session/prompt":
            prompted(number)
        case "session/cancel":
            send(id=state["asked"], result={"stopReason": "cancelled"})
        case None if number == 900:
            permitted(message)


if HOW == "dies":
    print("Error: no key for the model", file=sys.stderr)
    sys.exit(3)
if HOW == "hangs":
    time.sleep(600)
for line in sys.stdin:
    asked(json.loads(line))
