"""Finding what a person means by SESSION or FILE: a file, a session's id or the beginning of one, or the newest."""

from __future__ import annotations

from pathlib import Path

from tui_agent.cli.options import UsageError
from tui_agent.config_errors import nearest

_SHOWN = 5


def saved_session(state_dir: Path, wanted: str | None) -> Path:
    """The folder of a session, or the file that `wanted` names; without `wanted` the newest session.

    Raises `UsageError` with what there is where nothing or more than one thing fits.
    """
    if wanted is not None and Path(wanted).expanduser().exists():
        return Path(wanted).expanduser()
    root = state_dir / "sessions"
    journals = list(root.glob("*/events.jsonl")) if root.is_dir() else []
    if wanted is None:
        if not journals:
            raise UsageError(
                f"no session is saved under {root} yet.\nagent-tui demo makes one without a key."
            )
        return max(journals, key=lambda journal: journal.stat().st_mtime).parent
    names = sorted(journal.parent.name for journal in journals)
    fitting = [wanted] if wanted in names else [name for name in names if name.startswith(wanted)]
    if len(fitting) == 1:
        return root / fitting[0]
    if fitting:
        some = ", ".join(fitting[:_SHOWN]) + (" …" if len(fitting) > _SHOWN else "")
        raise UsageError(f"more than one session begins with {wanted!r}: {some}\nWrite more of the name.")
    near = nearest(wanted, names)
    hint = f"the nearest is {near}" if near else f"{len(names)} are saved under {root}"
    raise UsageError(
        f"{wanted!r} is neither a file nor a session: {hint}.\n`agent-tui sessions` lists what there is."
    )
