"""Which environment variables are taken to hold a secret, by their names.

One rule for two uses: commands do not get such variables, and their values never reach the disk.
"""

from __future__ import annotations

import re

_WORDS = frozenset({
    "KEY", "KEYS", "APIKEY", "TOKEN", "TOKENS", "SECRET", "SECRETS", "PASSWORD", "PASSWORDS", "PASSWD", "PASS", "PWD",
    "PASSPHRASE", "CREDENTIAL", "CREDENTIALS", "CREDS", "PAT",
})  # fmt: skip
_ENDINGS = ("APIKEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIALS")


def named_like_a_secret(name: str) -> bool:
    """Whether a variable of this name is taken to hold a secret: by its words, and by their endings (PGPASSWORD)."""
    upper = name.upper()
    if upper in {"PWD", "OLDPWD"}:
        return False
    words = re.split(r"[^A-Z0-9]+", upper)
    return any(word in _WORDS or word.endswith(_ENDINGS) for word in words)
