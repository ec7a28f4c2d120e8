"""Recovery: pure judgement over the event stream. No input or output, no waiting, no clock, no randomness."""
