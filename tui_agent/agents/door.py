"""The command that another agent runs at each of its events, with the event on standard input: `python -I -S
door.py AGENT [ADVISE [POLICY]]`.

Its path stands in people's settings. Python compiles a script each time that it runs it, so this one is next to
nothing; `hook_client` is kept compiled. The exit code is 0 whatever happens.
"""

import sys

if __name__ == "__main__":
    sys.path.insert(0, __file__.rpartition("/")[0])
    try:
        __import__("hook_client").main()
    except Exception:
        sys.exit(0)
