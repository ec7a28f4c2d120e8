"""The benchmark of recovery: cases with faults, models as machines, and what each policy makes of them.

Everything runs through the production loop with real tools in real workspaces. Faults are put in at the seams (the
model, a tool, the world outside), never in the engine. Nothing else of the package imports this wing.
"""
