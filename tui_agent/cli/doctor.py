"""`agent-tui doctor`: what is configured, reachable and missing, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence

from tui_agent.cli.options import Parser, add_run_options, overrides

_EXAMPLE = """
agent-tui doctor
agent-tui doctor --model openai/qwen3 --api-base http://127.0.0.1:8080/v1
agent-tui doctor --json | jq '.checks[] | select(.status != "ok")'"""


def parser() -> Parser:
    made = Parser(
        "doctor",
        "Look at everything a run needs: the configuration and where each value comes from, keys (by name),\n"
        "the model's server, tools, terminal, disk. Exit code 1 when something must be put right.",
        _EXAMPLE,
    )
    made.add_argument("--json", action="store_true", help="one object on standard output, for programs")
    add_run_options(made)
    return made


def main(arguments: Sequence[str]) -> int:
    """Print the findings; 0 when nothing is broken, else 1."""
    namespace = parser().parse(arguments)
    from tui_agent.doctor import examine, print_report

    report = examine(overrides(namespace), namespace.config)
    print_report(report, as_json=namespace.json)
    return 0 if report.healthy else 1
