"""The figures of `next_step`, fitted on recorded runs.

Written by tui_agent/lab/evaluation/next_step/train.py; do not edit.
"""

INTERCEPT = 0.8335
STALL = (0.0, -1.425, -2.1597, -2.9955, -4.1908)
"""By the length of the stall, from 0."""
REPEATED = 0.0
CAUSE = {"none": 0.0, "tool": 0.0, "infrastructure": 0.2543, "form": 0.0011}
RECORD = 0.3365
"""For each half step of the record."""
EVIDENCE = 0.2321
"""In a stall, for each doubling of the run's own successes."""
HOLDS_BELOW, HOLDS_FROM = (0.05, 0.8)
"""Below the one and from the other on, the chance came true with strong models and with weak ones."""

STEPS: dict[str, tuple[int, ...]] = {
    "0 0 form": (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0),
    "0 0 none": (0, 0, 0, 0, 3, 23, 129, 283, 1134, 830, 2195, 2575, 2785, 1913, 1939, 1476, 1320),
    "1 0 infrastructure": (0, 0, 0, 0, 0, 0, 0, 0, 5, 1, 1, 0, 1, 6, 2, 1, 0),
    "1 0 tool": (0, 0, 0, 0, 0, 4, 28, 144, 1584, 160, 106, 39, 49, 42, 27, 13, 4),
    "1 1 infrastructure": (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0),
    "1 1 tool": (0, 0, 0, 0, 4, 9, 61, 98, 92, 14, 5, 7, 4, 3, 4, 1, 0),
    "2 0 infrastructure": (0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 2, 1, 1, 0, 0),
    "2 0 tool": (0, 0, 0, 0, 0, 1, 146, 29, 28, 5, 2, 1, 2, 5, 2, 0, 0),
    "2 1 infrastructure": (0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0),
    "2 1 tool": (0, 0, 0, 0, 3, 3, 609, 170, 57, 8, 1, 1, 0, 0, 0, 0, 0),
    "3 0 tool": (0, 0, 0, 0, 0, 1, 76, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0),
    "3 1 infrastructure": (0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
    "3 1 tool": (0, 0, 0, 0, 4, 7, 685, 39, 8, 0, 0, 0, 0, 1, 0, 0, 0),
    "4 0 tool": (0, 0, 0, 35, 70, 47, 24, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0),
    "4 1 tool": (0, 0, 0, 952, 1733, 847, 233, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0),
}
"""Recorded steps by stall, repetition and cause; one number for each value of the record, the lowest first."""
