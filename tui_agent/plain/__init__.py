"""The console in lines (`--plain`): for screen readers, dumb terminals and pipes. No control of the screen, no colour.

The session, the operator and the commands are the console's own; what differs is how they are shown and read.
"""
