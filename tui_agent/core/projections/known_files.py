"""Which content of the workspace's files the model knows: that of its last read or write of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class KnownFiles(Mapping[str, str]):
    """Path → SHA-256 of the bytes that the model read or wrote last."""

    digests: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    """With the `seq` of the event that says so."""

    def __getitem__(self, path: str) -> str:
        return self.digests[path][0]

    def __iter__(self) -> Iterator[str]:
        return iter(self.digests)

    def __len__(self) -> int:
        return len(self.digests)

    def with_read(self, files: Mapping[str, str], seq: int) -> KnownFiles:
        """Also these, from the event `seq`."""
        return KnownFiles({**self.digests, **{path: (digest, seq) for path, digest in files.items()}})

    def up_to(self, seq: int) -> KnownFiles:
        """Files that a conversation which goes back to `seq` still knows for sure; others count as never
        read.
        """
        return KnownFiles({path: known for path, known in self.digests.items() if known[1] <= seq})
