"""Programs that manage a repository's hooks, and the settings of each: a hook of theirs does what these say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

_ENDINGS = ("yml", "yaml", "toml", "json", "js", "cjs", "mjs", "ts", "local")


def _with_endings(*names: str) -> tuple[str, ...]:
    return tuple(f"{name}.{end}" for name in names for end in _ENDINGS)


MANAGERS: dict[str, tuple[str, ...]] = {
    "husky": (".husky", ".huskyrc", *_with_endings(".huskyrc")),
    "lefthook": (
        *(f"{dot}lefthook{local}.{end}" for dot in ("", ".") for local in ("", "-local") for end in _ENDINGS[:4]),
        *(".lefthook", ".lefthook-local", ".config/lefthook.yml", ".config/lefthook.yaml"),
    ),
    "pre-commit": (".pre-commit-config.yaml", ".pre-commit-config.yml"),
    "pre_commit": (".pre-commit-config.yaml", ".pre-commit-config.yml"),
    "prek": (".pre-commit-config.yaml", "prek.toml"),
    "overcommit": (".overcommit.yml", ".local-overcommit.yml", ".git-hooks"),
    "simple-git-hooks": _with_endings(".simple-git-hooks", "simple-git-hooks"),
    "captainhook": ("captainhook.json", "captainhook.config.json"),
    "grumphp": ("grumphp.yml", "grumphp.yml.dist", "grumphp.yaml"),
    "git-hooks": ("git_hooks", "githooks", ".githooks"),
    "cargo-husky": (".cargo-husky",),
    "rusty-hook": (".rusty-hook.toml",),
    "hk": ("hk.pkl",),
    "husky.net": (".husky",),
    "lint-staged": (".lintstagedrc", *_with_endings(".lintstagedrc", "lint-staged.config")),
    "nano-staged": (".nano-staged.json", "nano-staged.json", ".nanostagedrc"),
    "commitlint": (".commitlintrc", *_with_endings(".commitlintrc", "commitlint.config")),
}  # fmt: skip
"""By the word in a hook that tells them."""


def managed_by(hook: str, folder: Path, tree: Path) -> Iterator[Path]:
    """The settings that a hook obeys, whether they exist or not: by its text, and for husky by its place."""
    said = hook.lower()
    if "/.husky/" in f"{folder}/":
        said += " husky"
    for word, places in MANAGERS.items():
        if word in said if len(word) > 2 else f" {word} " in said:
            yield from (tree / place for place in places)
