"""Models: an async stream of deltas that ends in a reply or a typed fault. litellm is imported here only."""
