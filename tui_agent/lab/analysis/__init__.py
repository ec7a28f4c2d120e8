"""Recorded runs, judged by any policy and counted."""
