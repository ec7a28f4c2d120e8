"""Many real runs at once: tasks from a file, worker processes that carry them out, and how all of them stand."""
