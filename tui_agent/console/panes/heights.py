"""Heights of many blocks, most of them estimated: the block at a row, in logarithmic time.

A Fenwick tree: a conversation of any length finds the block under a row, and corrects a block's height once
it is drawn, without walking over the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate


class HeightIndex:
    """Heights in rows by block, with their running sums."""

    def __init__(self, heights: Iterable[int] = ()) -> None:
        self._heights = list(heights)
        sums = [0, *accumulate(self._heights)]
        self._tree = [total - sums[node & (node - 1)] for node, total in enumerate(sums)]
        self.total = sums[-1]

    def __len__(self) -> int:
        return len(self._heights)

    def __getitem__(self, index: int) -> int:
        return self._heights[index]

    def append(self, height: int) -> None:
        """One more block at the end."""
        node = len(self._tree)
        value, step = height, 1
        while step < node & -node:
            value += self._tree[node - step]
            step <<= 1
        self._heights.append(height)
        self._tree.append(value)
        self.total += height

    def set(self, index: int, height: int) -> None:
        change = height - self._heights[index]
        if not change:
            return
        self._heights[index] = height
        self.total += change
        node = index + 1
        while node < len(self._tree):
            self._tree[node] += change
            node += node & -node

    def offset(self, index: int) -> int:
        """The row at which a block begins; `len(self)` gives the total."""
        total, node = 0, index
        while node:
            total += self._tree[node]
            node -= node & -node
        return total

    def locate(self, row: int) -> tuple[int, int]:
        """The block that holds `row` and the row within it. Raises IndexError beyond the end."""
        if not 0 <= row < self.total:
            raise IndexError(row)
        position, rest = 0, row
        step = 1 << (len(self._heights).bit_length())
        while step:
            node = position + step
            if node < len(self._tree) and self._tree[node] <= rest:
                position = node
                rest -= self._tree[node]
            step >>= 1
        return position, rest
