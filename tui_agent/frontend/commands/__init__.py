"""What the operator can ask for, once for every console."""
