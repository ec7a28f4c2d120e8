"""Sessions: the journal that keeps the events, and what is made from it: resume, replay, fork, rewind, the
store."""
