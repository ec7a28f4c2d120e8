"""Home folders as commands see them: out of sight, but for the tools in them; and the places of keys and passwords.

The parts of a home folder that are shown can be read and not written. Secrets stay hidden even within a part
that is shown.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from tui_agent import untrusted_files

HOMES = ("/home", "/root")
"""Parents of users' home folders."""

_SECRET_AT_HOME = (
    # keys and passwords
    ".ssh", ".gnupg", ".netrc", ".git-credentials", ".config/git/credentials", ".password-store", ".age",
    ".local/share/keyrings", ".config/op", ".config/sops", ".vault-token", ".pgpass", ".my.cnf", ".Xauthority",
    "Library/Keychains", ".ICEauthority", ".local/share/kwalletd",
    # clouds and code hosts
    ".aws", ".azure", ".config/gcloud", ".boto", ".kube", ".docker", ".dockercfg", ".config/containers", ".oci",
    ".config/gh", ".config/hub", ".config/glab-cli", ".config/doctl", ".fly", ".config/heroku", ".netlify",
    ".config/netlify", ".vercel", ".config/vercel", ".local/share/com.vercel.cli", ".wrangler", ".config/.wrangler",
    ".terraform.d", ".terraformrc", ".config/rclone", ".rclone.conf", ".s3cfg", ".databrickscfg", ".snowflake",
    ".config/stripe", ".kaggle", ".huggingface", ".cache/huggingface/token", ".cache/huggingface/stored_tokens",
    # registries of packages
    ".npmrc", ".yarnrc.yml", ".pypirc", ".config/pip", ".pip", ".condarc", ".config/pypoetry", ".config/hatch",
    ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".local/share/gem/credentials",
    ".bundle/config", ".m2/settings.xml", ".m2/settings-security.xml", ".gradle/gradle.properties", ".nuget/NuGet",
    ".composer/auth.json", ".config/composer/auth.json", ".sbt/.credentials", ".ivy2/.credentials",
    ".config/uv/credentials", ".local/share/uv/credentials", ".subversion/auth",
    # agents
    ".claude", ".claude.json", ".codex", ".gemini", ".copilot", ".config/github-copilot", ".cursor", ".vibe",
    ".config/opencode", ".local/share/opencode", ".config/goose", ".local/share/goose", ".aider.conf.yml", ".qwen",
    ".kimi", ".continue", ".codeium", ".config/Cursor", ".config/Code", ".vscode-server", ".config/io.datasette.llm",
    # browsers and mail
    ".mozilla", ".thunderbird", ".config/google-chrome", ".config/chromium", ".config/BraveSoftware",
    ".config/microsoft-edge", ".config/vivaldi", "Library/Application Support/Google/Chrome",
    # what a person did
    ".bash_history", ".zsh_history", ".zhistory", ".python_history", ".node_repl_history", ".psql_history",
    ".mysql_history", ".sqlite_history", ".lesshst", ".viminfo", ".local/share/fish", ".local/share/atuin",
)  # fmt: skip
SECRET_PLACES = (
    *(f"~/{name}" for name in _SECRET_AT_HOME),
    *("/etc/shadow", "/etc/gshadow", "/etc/ssh/ssh_host_ed25519_key", "/etc/ssh/ssh_host_rsa_key"),
)
"""Files and folders that hold keys, passwords or what a person did; commands cannot read them."""

_TOOLS = (
    # languages and their managers of versions
    ".cargo", ".rustup", ".pyenv", ".nvm", ".fnm", ".volta", ".asdf", ".rbenv", ".rvm", ".sdkman", ".jenv", ".goenv",
    ".nodenv", ".bun", ".deno", ".ghcup", ".cabal", ".stack", ".opam", ".elan", ".juliaup", ".julia", ".dotnet",
    ".swiftly", ".nix-profile", ".nix-defexpr", ".linuxbrew", ".pub-cache", ".mix", ".hex", ".sbt", ".ivy2", ".m2",
    ".coursier", ".gem", ".npm-global", ".npm-packages", ".yarn", ".pnpm", ".nuget", ".composer", ".virtualenvs",
    ".conda", "miniconda3", "anaconda3", "miniforge3", "mambaforge", "go", "perl5", "bin", ".bin", "Android/Sdk",
    ".local/bin", ".local/lib", ".local/pipx", ".local/venvs", ".local/opt", ".local/go", ".platformio",
    *(f".local/share/{name}" for name in ("pnpm", "uv", "mise", "rtx", "fnm", "pipx", "virtualenvs", "gem", "nvim")),
    # what was fetched once and is large
    *(f".cache/{name}" for name in ("huggingface", "torch", "ms-playwright", "Cypress", "puppeteer", "electron")),
    *(f".cache/{name}" for name in ("node", "deno", "bazelisk", "coursier", "go-build", "whisper", "clip")),
    # settings without a secret
    ".gitconfig", ".config/git", ".gitignore_global", ".gitattributes_global", ".editorconfig", ".config/ruff",
    ".config/mise", ".config/nix", ".config/go", ".inputrc", ".config/matplotlib", ".tool-versions",
)  # fmt: skip
"""In the home folder: what commands need of it to work at all."""
_NAMED_BY = (
    "CARGO_HOME", "RUSTUP_HOME", "PYENV_ROOT", "NVM_DIR", "VOLTA_HOME", "BUN_INSTALL", "DENO_DIR", "GOROOT", "GOPATH",
    "GOMODCACHE", "JAVA_HOME", "ANDROID_HOME", "ANDROID_SDK_ROOT", "DOTNET_ROOT", "CONDA_PREFIX", "VIRTUAL_ENV",
    "SDKMAN_DIR", "RBENV_ROOT", "GEM_HOME", "PNPM_HOME", "ASDF_DIR", "MISE_DATA_DIR", "HF_HOME", "TORCH_HOME",
)  # fmt: skip
"""Variables that name the place of a tool."""
_ABOVE = frozenset({"bin", "sbin", "shims", "Scripts"})
"""A program in such a folder needs what stands beside the folder."""


def tools_at_home(home: Path, workspace: Path) -> Iterator[Path]:
    """Paths in home folders that commands may read: tools, the folders of PATH, and the repository that holds
    the workspace. The paths need not exist.
    """
    for name in _TOOLS:
        yield home / name
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        if folder.startswith(os.sep):
            path = _real(Path(folder))
            yield path
            if path.name in _ABOVE and path.parent != home / ".local":
                yield path.parent
    for name in _NAMED_BY:
        if (named := os.environ.get(name, "")).startswith(os.sep):
            yield _real(Path(named))
    yield _real(Path(sys.base_prefix))
    yield _real(Path(sys.prefix))
    yield from _repository_around(workspace, home)


def _repository_around(workspace: Path, home: Path) -> Iterator[Path]:
    """The repository that the workspace is a part of, and git's folder for it if that is elsewhere."""
    for folder in (workspace, *workspace.parents):
        entry = folder / ".git"
        if folder == home or folder.parent == folder:
            return
        if entry.is_dir():
            yield folder
            return
        if entry.is_file():
            yield folder
            yield from _kept_elsewhere(entry)
            return


def _kept_elsewhere(entry: Path) -> Iterator[Path]:
    """The target of a `.git` that is a file: a worktree's folder in the repository it was made from, or a
    submodule's.

    Only what says itself that it belongs here: a checkout could name any folder.
    """
    try:
        said = _text(entry)
        folder = _real(entry.parent / said.removeprefix("gitdir:").strip())
        if not said.startswith("gitdir:") or not (folder / "HEAD").is_file():
            return
        if any(folder.is_relative_to(above / ".git" / "modules") for above in entry.parents):
            yield folder
        elif _real(folder / _text(folder / "gitdir")) == entry:
            common = _real(folder / _text(folder / "commondir"))
            if folder.parent == common / "worktrees" and (common / "objects").is_dir():
                yield common
    except (OSError, ValueError):
        return


def _text(file: Path) -> str:
    if not file.is_file():
        raise ValueError(file)
    return os.fsdecode(untrusted_files.head(file, 4096)).strip()


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))
