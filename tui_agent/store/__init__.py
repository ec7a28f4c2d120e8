"""Data kept on disk: journals and their index, checkpoints, saved states, masked secrets, the list of
sessions.
"""
