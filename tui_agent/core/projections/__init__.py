"""The parts of the state, one file each: what is folded from the events and how. `state` joins them."""
