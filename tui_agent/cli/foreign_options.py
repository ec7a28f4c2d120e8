"""Options that people know from other agents, and what they are called here."""

from __future__ import annotations

from collections.abc import Container

_OURS = {
    "--max-iterations": (
        "max-steps",
        "max-turns",
        "max-iteration",
        "steps",
        "turns",
        "iterations",
        "step-limit",
        "max-rounds",
    ),
    "--max-cost": ("max-budget", "max-budget-usd", "max-price", "max-usd", "cost-limit", "budget"),
    "--approve all": (
        "yes",
        "y",
        "yes-always",
        "yolo",
        "full-auto",
        "auto-approve",
        "dangerously-skip-permissions",
        "dangerously-bypass-approvals-and-sandbox",
        "skip-permissions",
        "always-approve",
        "allow-all-tools",
        "force",
        "trust-all-tools",
    ),
    "--approve plan": ("plan", "read-only"),
    "--approve": ("permission-mode", "approval-mode", "ask-for-approval", "approval-policy"),
    "--workspace": ("cwd", "cd", "dir", "directory", "workdir", "working-dir", "work-dir", "project", "root"),
    "--api-base": ("base-url", "api-url", "endpoint", "openai-api-base", "host", "server"),
    "--model-timeout": ("request-timeout", "api-timeout", "idle-timeout"),
    "--context-tokens": ("max-context", "context-window", "context-length", "num-ctx"),
    "--reasoning-effort": ("effort", "thinking", "reasoning", "thinking-budget"),
    "--sandbox off": ("no-sandbox", "disable-sandbox"),
    "--output": ("output-format", "format"),
    "--output json": ("json",),
    "--output jsonl": ("stream-json", "jsonl"),
    "--check": ("verify", "test-cmd", "test-command", "verification-command"),
    "--model": ("m",),
    "--profile": ("config-profile",),
    '`agent-tui run "TASK"`': (
        "print",
        "prompt",
        "message",
        "task",
        "non-interactive",
        "headless",
        "exec",
        "p",
    ),
    "`agent-tui resume`": ("continue", "resume", "session", "session-id", "restore", "c"),
    "`/login` in the console, or the provider's own variable": ("api-key", "token", "openai-api-key"),
}
_HERE = {name: ours for ours, names in _OURS.items() for name in names}


def here(option: str, options: Container[str]) -> str:
    """Give what an option of another agent is here, among the `options` of a command; "": nothing that it has."""
    ours = _HERE.get(option.lstrip("-").replace("_", "-").lower(), "")
    return ours if not ours.startswith("--") or ours.partition(" ")[0] in options else ""
