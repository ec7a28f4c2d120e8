"""Session files of this and of other agents: importers and exporters."""
