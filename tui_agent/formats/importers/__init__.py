"""Transcripts of other agents, and our own exports, turned into our events: one file a format.

A format's module turns records into a neutral transcript (`transcript`), `normalise` turns that into events, and
`judgement` adds the verdicts of a policy. `load` does all of it. Nothing here runs a model or a tool.
"""
