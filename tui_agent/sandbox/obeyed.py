"""Files and folders that programs take up by themselves where they find them: settings and scripts of agents, shells,
editors, debuggers and tools, each with who says so.

The line: a program that is not asked for the work of the tree obeys them (git, a shell on its way, an editor, an agent,
a debugger, the settings of a package manager). What is run as the work itself is not among them: code, tests with their
`conftest.py`, `Makefile`, scripts of `package.json`, and environments in the tree, in which all is programs.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Obeyed:
    """One name, in any folder. Of a folder `entries` are what is obeyed in it; without any, everything is."""

    name: str
    whose: str
    source: str
    """Where its programs say that they read it."""
    folder: bool = False
    entries: tuple[str, ...] = ()


OWN_RULES = ".agent-tui.toml"


def _files(whose: str, source: str, *names: str) -> tuple[Obeyed, ...]:
    return tuple(Obeyed(name, whose, source) for name in names)


def _folder(name: str, whose: str, source: str, *entries: str) -> tuple[Obeyed, ...]:
    return (Obeyed(name, whose, source, folder=True, entries=entries),)


TABLE: tuple[Obeyed, ...] = (
    # agents: servers, hooks, commands, settings that allow
    *_files("agent-tui", "docs/CONFIGURATION.md", OWN_RULES),
    *_folder(".agent-tui", "agent-tui", "docs/CONFIGURATION.md"),
    *_folder(".agents", "several agents", "agentskills.io/home"),
    *_files("Claude Code", "code.claude.com/docs/en/mcp", ".mcp.json"),
    *_folder(".claude", "Claude Code", "code.claude.com/docs/en/settings"),
    *_folder(".codex", "Codex CLI", "developers.openai.com/codex/config-basic"),
    *_folder(".gemini", "Gemini CLI", "geminicli.com/docs/reference/configuration"),
    *_folder(".vibe", "mistral-vibe", "docs.mistral.ai/mistral-vibe"),
    *_files("OpenCode", "opencode.ai/docs/config", "opencode.json", "opencode.jsonc"),
    *_folder(".opencode", "OpenCode", "opencode.ai/docs/plugins"),
    *_folder(".copilot", "Copilot CLI", "docs.github.com/en/copilot/concepts/agents/about-copilot-cli"),
    *_folder(
        ".github", "Copilot CLI", "docs.github.com/en/copilot/reference/hooks-configuration", "hooks",
        "copilot", "mcp.json",
    ),
    *_folder(".cursor", "Cursor CLI", "cursor.com/docs/agent/hooks"),
    *_folder(".kimi", "kimi-code", "moonshotai.github.io/kimi-cli"),
    *_folder(".kimi-code", "kimi-code", "moonshotai.github.io/kimi-cli"),
    *_folder(".qwen", "qwen-code", "qwenlm.github.io/qwen-code-docs"),
    *_files("Crush", "github.com/charmbracelet/crush#configuration", "crush.json", ".crush.json"),
    *_folder(".crush", "Crush", "github.com/charmbracelet/crush#configuration"),
    *_folder(".kiro", "Kiro", "kiro.dev/docs/hooks"),
    *_folder(".amazonq", "Amazon Q", "docs.aws.amazon.com/amazonq/latest/qdeveloper-ug/mcp-ide.html"),
    *_folder(".roo", "Roo Code", "docs.roocode.com/features/mcp/using-mcp-in-roo"),
    *_folder(".kilocode", "Kilo Code", "kilo.ai/docs/automate/mcp/using-in-kilo-code"),
    *_folder(".kilo", "Kilo Code", "kilo.ai/docs/automate/mcp/using-in-kilo-code"),
    *_folder(".factory", "Factory", "docs.factory.ai/cli/configuration/mcp"),
    *_folder(".clinerules", "Cline", "docs.cline.bot/features/hooks", "hooks"),
    *_folder(".cline", "Cline", "docs.cline.bot/features/hooks"),
    *_folder(".continue", "Continue", "docs.continue.dev/customize/deep-dives/mcp"),
    *_folder(".windsurf", "Windsurf", "docs.windsurf.com/windsurf/cascade/hooks"),
    *_folder(".junie", "Junie", "junie.jetbrains.com/docs"),
    *_folder(".augment", "Auggie", "docs.augmentcode.com/cli/overview"),
    *_folder(".trae", "Trae", "docs.trae.ai/ide/model-context-protocol"),
    *_folder(".amp", "Amp", "ampcode.com/manual"),
    *_folder(".goose", "goose", "block.github.io/goose/docs"),
    *_folder(".openhands", "OpenHands", "docs.openhands.dev/openhands/usage/customization/repository"),
    *_folder(".iflow", "iFlow CLI", "platform.iflow.cn/en/cli"),
    *_folder(".codebuddy", "CodeBuddy", "copilot.tencent.com/docs/cli"),
    *_folder(".qoder", "Qoder", "docs.qoder.com/cli"),
    *_folder(".pi", "pi", "github.com/badlogic/pi-mono"),
    *_folder(".rovodev", "Rovo Dev", "support.atlassian.com/rovo/docs/use-rovo-dev-cli"),
    *_folder(".warp", "Warp", "docs.warp.dev/knowledge-and-collaboration/mcp"),
    *_files("aider", "aider.chat/docs/config/aider_conf.html", ".aider.conf.yml", ".aider.conf.yaml"),
    # editors: tasks, language servers, launches
    *_folder(
        ".vscode", "VS Code", "code.visualstudio.com/docs/configure/settings", "tasks.json", "settings.json",
        "launch.json", "mcp.json",
    ),
    *_folder(".devcontainer", "development containers", "containers.dev/implementors/json_reference"),
    *_files("development containers", "containers.dev/implementors/json_reference", ".devcontainer.json"),
    *_folder(".zed", "Zed", "zed.dev/docs/tasks", "tasks.json", "settings.json", "debug.json"),
    *_folder(
        ".idea", "JetBrains", "jetbrains.com/help/idea/project-and-ide-settings.html", "startup.xml",
        "watcherTasks.xml", "runConfigurations", "tools", "externalDependencies.xml",
    ),
    *_folder(".run", "JetBrains", "jetbrains.com/help/idea/run-debug-configuration.html"),
    *_folder(".fleet", "Fleet", "jetbrains.com/help/fleet", "run.json", "settings.json"),
    *_folder(".helix", "Helix", "docs.helix-editor.com/configuration.html"),
    *_folder(".vim", "coc.nvim", "github.com/neoclide/coc.nvim", "coc-settings.json"),
    *_folder(".nova", "Nova", "help.nova.app/projects", "Configuration.json", "Tasks"),
    *_files(
        "vim", "vimhelp.org/options.txt.html#exrc", ".exrc", ".vimrc", ".gvimrc", "_vimrc", ".nvimrc", ".nvim.lua",
        ".lvimrc", ".vimrc.local", ".local.vimrc",
    ),
    *_files("Emacs", "gnu.org/software/emacs/manual/html_node/emacs/Directory-Variables.html",
        ".dir-locals.el", ".dir-locals-2.el"),
    *_files("Kakoune", "github.com/mawww/kakoune", ".kakrc.local"),
    # shells, on the way into a folder
    *_files("direnv", "direnv.net/man/direnv.1.html", ".envrc", ".envrc.local"),
    *_files("autoenv", "github.com/hyperupcall/autoenv", ".autoenv", ".autoenv.zsh", ".autoenv_leave.zsh"),
    *_files("mise", "mise.jdx.dev/configuration.html", ".mise.toml", "mise.toml", ".mise.local.toml",
        "mise.local.toml", ".rtx.toml"),
    *_folder(".mise", "mise", "mise.jdx.dev/configuration.html"),
    *_folder("mise", "mise", "mise.jdx.dev/configuration.html", "config.toml", "config.local.toml"),
    *_files("rvm", "rvm.io/workflow/rvmrc", ".rvmrc"),
    *_folder(".shadowenv.d", "shadowenv", "shopify.github.io/shadowenv"),
    *_files("ondir", "alecthomas/ondir", ".ondirrc"),
    # debuggers and prompts of languages
    *_files("gdb", "sourceware.org/gdb/current/onlinedocs/gdb.html/Startup.html", ".gdbinit"),
    *_files("lldb", "lldb.llvm.org/man/lldb.html#configuration-files", ".lldbinit"),
    *_files("pdb", "docs.python.org/3/library/pdb.html", ".pdbrc", ".pdbrc.py"),
    *_files("Python", "docs.python.org/3/library/site.html", "sitecustomize.py", "usercustomize.py"),
    *_files("R", "stat.ethz.ch/R-manual/R-devel/library/base/html/Startup.html", ".Rprofile", ".Renviron"),
    *_files("Ruby", "docs.ruby-lang.org/en/master/IRB.html", ".irbrc", "_irbrc", ".pryrc", ".byebugrc", ".rdbgrc"),
    *_files("GHCi", "downloads.haskell.org/ghc/latest/docs/users_guide/ghci.html#the-ghci-files", ".ghci"),
    *_files("OCaml", "ocaml.org/manual/toplevel.html", ".ocamlinit"),
    *_files("Erlang", "erlang.org/doc/apps/erts/erl_cmd.html", ".erlang"),
    *_files("Elixir", "hexdocs.pm/iex/IEx.html", ".iex.exs"),
    *_files("Perl", "perldoc.perl.org/perldebug", ".perldb"),
    *_files("Octave", "docs.octave.org/latest/Startup-Files.html", ".octaverc"),
    *_files("gnuplot", "gnuplot.info/docs", ".gnuplot"),
    # settings of package managers
    *_files("npm", "docs.npmjs.com/cli/configuring-npm/npmrc", ".npmrc"),
    *_files("Yarn", "yarnpkg.com/configuration/yarnrc", ".yarnrc.yml", ".yarnrc"),
    *_files("pnpm", "pnpm.io/pnpmfile", ".pnpmfile.cjs", ".pnpmfile.mjs"),
    *_files("Bun", "bun.com/docs/runtime/bunfig", "bunfig.toml", ".bunfig.toml"),
    # other keepers of versions
    *_folder(".hg", "Mercurial", "mercurial-scm.org/doc/hgrc.5.html", "hgrc", "hgrc-not-shared", "sharedpath"),
    *_folder(".jj", "Jujutsu", "docs.jj-vcs.dev/latest/config", "repo/config.toml",
        "repo/workspace-config.toml", "workspace-config.toml"),
    *_folder(".sl", "Sapling", "sapling-scm.com/docs/introduction", "config"),
    *_folder(".bzr", "Breezy", "breezy-vcs.org/doc/en/user-reference", "branch/branch.conf"),
    *_folder("_darcs", "Darcs", "darcs.net/Using/Configuration", "prefs/defaults"),
    *_files("Repo", "gerrit.googlesource.com/git-repo", "PREUPLOAD.cfg"),
)  # fmt: skip

FILES = frozenset(one.name.casefold() for one in TABLE if not one.folder)
FOLDERS: dict[str, tuple[str, ...]] = {one.name.casefold(): one.entries for one in TABLE if one.folder}
"""Empty: everything in it."""
ENDINGS = (".code-workspace", ".pth")
"""Ends of names of the same kind: workspaces of VS Code, and what Python runs at each start."""
BY_NAME = {one.name.casefold(): one for one in TABLE}


def whose(path: str) -> str:
    """Which program obeys a file by itself, by its path in the workspace; "" when none is known."""
    parts = path.casefold().split("/")
    if within_environment(parts):
        return ""
    name = parts[-1]
    if name in FILES:
        return BY_NAME[name].whose
    if name.endswith(ENDINGS):
        return "Python" if name.endswith(".pth") else "VS Code"
    for place, part in enumerate(parts[:-1]):
        entries = FOLDERS.get(part)
        rest = "/".join(parts[place + 1 :])
        if entries is not None and (
            not entries or any(f"{rest}/".startswith(f"{entry.casefold()}/") for entry in entries)
        ):
            return BY_NAME[part].whose
    return ""


def within_environment(parts: list[str]) -> bool:
    """Whether it is among installed packages, where all is programs."""
    return any(part in {"site-packages", "dist-packages", "node_modules"} for part in parts[:-1])
