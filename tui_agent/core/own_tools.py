"""The facts of this program's own tools as plain values, by name: `core.tool_facts` reads them.

Written by docs/write_tools.py from the tools' classes; change it there.
"""

from __future__ import annotations

from typing import Any

ROWS: dict[str, dict[str, Any]] = {
    "ask_operator": {
        "effect": "dialogue",
        "uses": {"question": "says", "options": "says"},
        "subject": "question",
        "waits": True,
    },
    "bash": {
        "effect": "command",
        "uses": {"command": "runs", "timeout": "says", "background": "says"},
        "subject": "command",
        "beside": (("background", "  ⚙"),),
        "folded": 6,
        "at_end": True,
    },
    "bash_output": {"effect": "read", "uses": {"id": "says", "wait": "says"}, "subject": "id"},
    "bash_stop": {"effect": "read", "uses": {"id": "says"}, "subject": "id", "acts": True},
    "edit_file": {
        "effect": "write",
        "uses": {"path": "writes", "old": "says", "new": "says", "replace_all": "says", "edits": "says"},
        "subject": "path",
        "folded": 14,
    },
    "finish": {"effect": "dialogue", "uses": {"answer": "says"}, "subject": "answer", "works": False},
    "glob": {"effect": "read", "uses": {"pattern": "reads"}, "subject": "pattern", "looks": "search"},
    "grep": {
        "effect": "read",
        "uses": {"pattern": "says", "path": "reads", "glob": "says"},
        "subject": "pattern",
        "beside": (("path", " in {}"), ("glob", " in {}")),
        "looks": "search",
        "folded": 5,
    },
    "list_dir": {"effect": "read", "uses": {"path": "reads"}, "subject": "path", "looks": "folder"},
    "read_file": {
        "effect": "read",
        "uses": {"path": "reads", "offset": "says", "limit": "says"},
        "subject": "path",
        "beside": (("offset", " from line {}"),),
        "looks": "file",
        "folded": 3,
    },
    "read_skill": {"effect": "read", "uses": {"name": "says", "file": "says"}, "looks": "other"},
    "task": {"effect": "task", "uses": {"name": "says", "prompt": "says"}, "subject": "name"},
    "update_plan": {
        "effect": "read",
        "uses": {"plan": "says", "explanation": "says"},
        "label": "plan",
        "works": False,
    },
    "web_fetch": {
        "effect": "network",
        "uses": {"url": "sends", "raw": "says"},
        "subject": "url",
        "looks": "other",
    },
    "write_file": {
        "effect": "write",
        "uses": {"path": "writes", "content": "says"},
        "subject": "path",
        "folded": 8,
    },
}
