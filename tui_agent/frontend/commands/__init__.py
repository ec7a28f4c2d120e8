"""Commands of the operator, once for every console."""
