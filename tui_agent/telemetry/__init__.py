"""Spans and metrics of OpenTelemetry about a session, for a collector that the settings name."""
