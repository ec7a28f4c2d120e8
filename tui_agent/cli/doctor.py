"""`agent-tui doctor`: what is configured, reachable and missing, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence

from tui_agent.cli.options import Parser, add_run_options, overrides

_EXAMPLE = """
agent-tui doctor
agent-tui doctor --model openai/qwen3 --api-base http://127.0.0.1:8080/v1
agent-tui doctor --forget-habits http://127.0.0.1:8080/v1
agent-tui doctor --json | jq '.checks[] | select(.status != "ok")'"""


def parser() -> Parser:
    made = Parser(
        "doctor",
        "Look at everything a run needs: the configuration and where each value comes from, keys (by name),\n"
        "the model's server and what was learnt of servers, tools, terminal, disk. Exit code 1 when something must be\n"
        "put right.",
        _EXAMPLE,
    )
    made.add_argument("--json", action="store_true", help="one object on standard output, for programs")
    made.add_argument(
        "--forget-habits",
        nargs="?",
        const="",
        metavar="ADDRESS",
        help="forget what was learnt of the server at ADDRESS (of all without one): which messages and parameters it "
        "takes; it is learnt again",
    )
    add_run_options(made)
    return made


def main(arguments: Sequence[str]) -> int:
    """Print the findings; 0 when nothing is broken, else 1."""
    namespace = parser().parse(arguments)
    from tui_agent.doctor import examine, forget_habits, print_report

    if namespace.forget_habits is not None:
        return forget_habits(overrides(namespace), namespace.config, namespace.forget_habits or None)
    report = examine(overrides(namespace), namespace.config)
    print_report(report, as_json=namespace.json)
    return 0 if report.healthy else 1
