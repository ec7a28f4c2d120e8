"""The playbook: what recovered failures of earlier runs, counted, kept on the disk, and offered when they come back."""
