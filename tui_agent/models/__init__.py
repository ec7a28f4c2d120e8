"""Models: an async stream of deltas that ends in a reply or a typed fault. Only in here is litellm imported."""
