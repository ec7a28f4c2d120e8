"""The figures of `next_step`, fitted on recorded runs.

Written by docs/next_step/train.py; do not edit.
"""

INTERCEPT = 1.5434
STALL = (0.0, -1.1675, -1.8921, -2.5985, -4.0744)
"""By the length of the stall, from 0."""
REPEATED = -0.2065
CAUSE = {"none": 0.0, "tool": 0.0, "infrastructure": 0.465, "form": 0.0023}
RECORD = 0.2396
"""For each half step of the record."""

STEPS: dict[str, tuple[int, ...]] = {
    "0 0 form": (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0),
    "0 0 none": (17, 26, 196, 95, 1087, 551, 2112, 1663, 2088, 1640, 1938, 1407, 2711),
    "1 0 infrastructure": (0, 0, 5, 0, 0, 0, 1, 1, 1, 0, 2, 5, 2),
    "1 0 tool": (3, 1, 1434, 22, 283, 113, 148, 97, 80, 91, 71, 33, 37),
    "1 1 infrastructure": (0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0),
    "1 1 tool": (11, 9, 65, 56, 89, 36, 19, 11, 15, 23, 11, 5, 2),
    "2 0 infrastructure": (1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1),
    "2 0 tool": (142, 1, 30, 3, 28, 5, 6, 1, 5, 2, 7, 5, 2),
    "2 1 infrastructure": (1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1),
    "2 1 tool": (540, 13, 175, 33, 66, 11, 8, 5, 2, 1, 0, 0, 0),
    "3 0 tool": (63, 0, 15, 11, 3, 0, 0, 1, 2, 0, 1, 0, 0),
    "3 1 infrastructure": (1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
    "3 1 tool": (500, 13, 168, 28, 25, 5, 1, 1, 0, 0, 0, 2, 0),
    "4 0 tool": (159, 16, 10, 3, 1, 0, 0, 0, 0, 0, 0, 0, 0),
    "4 1 tool": (3451, 202, 81, 19, 5, 0, 0, 1, 0, 0, 0, 0, 0),
}
"""Recorded steps by stall, repetition and cause; one number for each value of the record, the lowest first."""
