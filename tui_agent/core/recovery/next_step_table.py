"""The figures of `next_step`, fitted on recorded runs.

Written by tui_agent/lab/evaluation/next_step/train.py; do not edit.
"""

INTERCEPT = 0.9693
STALL = (0.0, -1.4466, -2.0868, -2.8952, -4.1106)
"""By the length of the stall, from 0."""
REPEATED = -0.0772
CAUSE = {"none": 0.0, "tool": 0.0, "infrastructure": -0.081, "form": 0.0022}
RECORD = 0.2751
"""For each half step of the record."""
EVIDENCE = 0.2593
"""In a stall, for each doubling of the run's own successes."""
HOLDS_BELOW = 0.05
"""Below it the chance came true in every recorded set, in runs of which no step has succeeded."""

STEPS: dict[str, tuple[int, ...]] = {
    "0 0 form": (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0),
    "0 0 none": (0, 0, 1, 3, 21, 85, 451, 1214, 3662, 3410, 5855, 5668, 5358, 3246, 2568, 1741, 1559),
    "1 0 infrastructure": (0, 0, 0, 0, 2, 1, 16, 61, 102, 66, 56, 22, 9, 9, 4, 2, 1),
    "1 0 tool": (0, 0, 0, 0, 3, 15, 141, 408, 2395, 598, 457, 200, 136, 67, 34, 14, 6),
    "1 1 infrastructure": (0, 0, 0, 0, 0, 0, 1, 5, 13, 7, 5, 8, 0, 1, 0, 0, 0),
    "1 1 tool": (0, 0, 0, 0, 5, 16, 88, 130, 165, 70, 67, 40, 35, 16, 6, 1, 0),
    "2 0 infrastructure": (0, 0, 0, 1, 0, 0, 18, 35, 45, 18, 14, 5, 5, 1, 1, 0, 0),
    "2 0 tool": (0, 0, 0, 1, 0, 7, 213, 171, 191, 67, 52, 19, 10, 6, 3, 1, 0),
    "2 1 infrastructure": (0, 0, 0, 0, 0, 0, 6, 7, 9, 5, 2, 0, 0, 1, 1, 0, 0),
    "2 1 tool": (0, 0, 0, 0, 4, 10, 622, 202, 95, 36, 15, 8, 3, 1, 0, 0, 0),
    "3 0 infrastructure": (0, 0, 0, 0, 0, 3, 14, 15, 14, 3, 4, 1, 0, 0, 0, 0, 0),
    "3 0 tool": (0, 0, 0, 0, 0, 5, 119, 51, 33, 12, 8, 4, 0, 0, 0, 0, 0),
    "3 1 infrastructure": (0, 0, 0, 0, 0, 0, 5, 3, 7, 2, 2, 0, 0, 0, 0, 0, 0),
    "3 1 tool": (0, 0, 0, 0, 6, 12, 696, 57, 20, 7, 7, 1, 0, 2, 0, 0, 0),
    "4 0 infrastructure": (0, 0, 0, 1, 6, 15, 27, 18, 13, 9, 3, 0, 0, 0, 0, 0, 0),
    "4 0 tool": (0, 0, 1, 35, 77, 56, 58, 24, 9, 10, 3, 1, 0, 0, 0, 0, 0),
    "4 1 infrastructure": (0, 0, 0, 0, 9, 19, 28, 16, 10, 5, 1, 0, 0, 0, 0, 0, 0),
    "4 1 tool": (0, 0, 3, 957, 1746, 863, 256, 27, 19, 6, 2, 0, 0, 0, 0, 0, 0),
}
"""Recorded steps by stall, repetition and cause; one number for each value of the record, the lowest first."""
