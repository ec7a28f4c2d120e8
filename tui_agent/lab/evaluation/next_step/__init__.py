"""How the figures of `next_step` are counted, fitted and evaluated; data and pages stand in docs/lab/next_step."""
