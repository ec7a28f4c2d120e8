"""Sessions of other agents, judged by our policies while they go on: finding them, following them."""
