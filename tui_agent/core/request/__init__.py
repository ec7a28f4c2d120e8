"""The request that a model call sends: the window of the history, made coherent."""
