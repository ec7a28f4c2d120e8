"""The laboratory: what measures the product from outside and is no part of it.

`bench/` runs policies on equal faults, `analysis/` judges recorded runs, `evaluation/` writes the pages of docs/lab.
`commands/` holds `agent-tui bench` and `agent-tui analyze`, which the command line finds by name. No other room
imports this one.
"""
