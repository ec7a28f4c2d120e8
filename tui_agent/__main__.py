"""`python -m tui_agent` is `agent-tui`."""

from tui_agent.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
