"""Changes that restoring a saved state makes to one file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class FileChange:
    """The change that restoring a checkpoint makes to one file of the workspace."""

    action: Literal["create", "change", "delete"]
    path: str
