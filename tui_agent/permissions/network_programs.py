"""Programs that reach other machines, by which of their subcommands and options, and the machines that words name."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tui_agent.shell_programs import GIT_OPTIONS, base_name, behind_options, interprets

DOWNLOADERS = frozenset({
    "curl", "wget", "http", "https", "xh", "aria2c", "lynx", "w3m", "fetch", "nc", "ncat", "netcat", "socat", "openssl",
    "ssh", "scp", "ftp", "tftp", "dig", "nslookup", "gsutil", "aws",
})  # fmt: skip
"""Programs that write out, or into a file, what comes from another machine."""
SENDERS = frozenset({"nc", "ncat", "netcat", "socat", "telnet"})
"""Programs that send whatever they are fed."""
_ALWAYS = (DOWNLOADERS - {"openssl"}) | SENDERS | {
    "sftp", "mosh", "links", "axel", "yt-dlp", "ping", "traceroute", "host", "whois", "nmap", "rclone", "s3cmd",
    "gcloud", "az", "kubectl", "helm", "gh", "glab", "terraform", "flyctl", "heroku", "vercel", "netlify", "wrangler",
    "mail", "sendmail",
}  # fmt: skip
_GETS = frozenset(
    {"install", "add", "update", "upgrade", "download", "sync", "i", "ci", "publish", "fetch", "get", "pull"}
)
_BY_SUBCOMMAND: dict[str, frozenset[str]] = {
    "git": frozenset({"push", "pull", "fetch", "clone", "ls-remote", "submodule", "send-email", "lfs"}),
    "hg": frozenset({"push", "pull", "clone", "incoming", "outgoing"}),
    "svn": frozenset({"checkout", "co", "update", "up", "commit", "ci", "export"}),
    "openssl": frozenset({"s_client", "ocsp"}),
    **dict.fromkeys(
        ("docker", "podman", "nerdctl"),
        frozenset({"pull", "push", "run", "build", "login", "compose", "buildx"}),
    ),
    **dict.fromkeys(
        ("pip", "pip3", "pipx", "uv", "poetry", "pdm", "rye", "hatch", "conda", "mamba"), _GETS | {"pip", "lock"}
    ),
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), _GETS | {"create", "dlx", "x", "login", "audit", "up"}),
    **dict.fromkeys(
        ("cargo", "gem", "bundle", "composer", "dart", "flutter", "mix", "cabal", "stack"), _GETS | {"search", "push"}
    ),
    "go": frozenset({"get", "install", "mod"}),
    **dict.fromkeys(
        ("apt", "apt-get", "dnf", "yum", "zypper", "apk", "brew", "snap", "flatpak", "port"),
        _GETS | {"dist-upgrade", "tap"},
    ),
}  # fmt: skip
"""Subcommands by which a program reaches another machine; for packages, all that gets or gives any."""
_ADDRESS = re.compile(
    r"\b(?:https?|ftps?|sftp|ssh|git|wss?|s3|gs)://(?:[^/@\s'\"]*@)?(\[[^\]\s]+\]|[^/:?#\s'\"]+)"
)
_REMOTE = re.compile(r"(?:[\w.+-]+@)?([\w-]+(?:\.[\w-]+)*):(?!/?/|\\|=)\S*")
_MACHINE = re.compile(
    r"(?:[\w.+-]+@)?((?:[\w-]+\.)+[A-Za-z]\w+|\d+(?:\.\d+){3}|localhost|\[[\da-fA-F:]+\])(?::\d+)?(?:[/?].*)?"
)
_SENDING = re.compile(
    r"-[a-zA-Z]*[dFT]|--(?:data(?:-\w+)?|json|form(?:-string)?|upload-file|post-(?:file|data)|body-(?:file|data))(?:=.*)?"
    r"|(?:-[dF]|--\w[\w-]*=)?(?:\w+=)?@.+|-d@.*|-F\w+=@.*|-T.+"
)
_NAMED_PLAINLY = SENDERS | {
    "curl",
    "wget",
    "http",
    "https",
    "xh",
    "ssh",
    "sftp",
    "ping",
    "host",
    "dig",
    "nslookup",
    "whois",
    "telnet",
    "ftp",
}


def reaches_network(texts: Sequence[str]) -> bool:
    """True if a program with these arguments is known to reach another machine."""
    name = base_name(texts[0]) if texts else ""
    if name in {"rsync", "scp"}:
        return any(_REMOTE.fullmatch(text) or "://" in text for text in texts[1:])
    if name in _ALWAYS:
        return not set(texts[1:]) & {"--version", "--help", "-V"} or len(texts) > 2
    if name in _BY_SUBCOMMAND:
        rest = behind_options(texts[1:], GIT_OPTIONS if name == "git" else ())
        return bool(rest) and rest[0] in _BY_SUBCOMMAND[name]
    return interprets(name) and any(_ADDRESS.search(text) for text in texts[1:])


def hosts_of(texts: Sequence[str]) -> list[str]:
    """Name the machines that a program is told to reach, as far as they are named."""
    name = base_name(texts[0]) if texts else ""
    found = dict.fromkeys(host for text in texts[1:] for host in _ADDRESS.findall(text))
    if not found and name in {"rsync", "scp", "ssh", "git", "sftp"}:
        found = dict.fromkeys(remote[1] for text in texts[1:] if (remote := _REMOTE.fullmatch(text)))
    if not found and name in _NAMED_PLAINLY:
        found = dict.fromkeys(machine[1] for text in texts[1:] if (machine := _MACHINE.fullmatch(text)))
    if name == "ssh" and not found:
        found |= dict.fromkeys(behind_options(texts[1:], ("-p", "-i", "-o", "-l", "-F"))[:1])
    return list(found)


def sends(texts: Sequence[str]) -> bool:
    """True if a program that reaches another machine is told to send a file, or what it is fed."""
    name = base_name(texts[0]) if texts else ""
    if name in {"rsync", "scp"}:
        plain = [text for text in texts[1:] if not text.startswith("-")]
        return bool(plain) and _REMOTE.fullmatch(plain[-1]) is not None
    if name not in {"curl", "wget", "http", "https", "xh"}:
        return False
    options = {text.partition("=")[0] for text in texts[1:] if _SENDING.fullmatch(text)}
    reads_file = any("@" in text and _SENDING.fullmatch(text) for text in texts[1:])
    return reads_file or bool(options & {"-T", "--upload-file", "--post-file", "--body-file"})
