"""Transcripts of other agents, and our own exports, turned into our events: one file a format.

A format's module turns records into a neutral transcript (`transcript`); `normalise` makes events of it and
`judgement` lets our detectors speak over them. `load` is the way in. Nothing here runs a model or a tool.
"""
