"""What restoring a saved state does to one file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class FileChange:
    """What restoring a checkpoint does to one file of the workspace."""

    action: Literal["create", "change", "delete"]
    path: str
