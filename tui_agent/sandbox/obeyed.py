"""Files and folders that programs take up by themselves wherever they find them: settings and scripts of
agents, shells, editors, debuggers and tools, each with its source.

The line: a program that is not asked for the work of the tree obeys them (git, a shell on its way, an editor, an agent,
a debugger, the settings of a package manager). What is run as the work itself is not among them: code, tests with their
`conftest.py`, `Makefile`, scripts of `package.json`, and environments in the tree, in which all is programs: `.pnp.cjs`
is one, too. Agents come and go: a file that is named as they name theirs is taken for one, with or without a row.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Obeyed:
    """One name, in any folder. Of a folder `entries` are what is obeyed in it; without any, everything is."""

    name: str
    whose: str
    source: str
    """The page on which its programs say that they read it."""
    folder: bool = False
    entries: tuple[str, ...] = ()


OWN_RULES = ".agent-tui.toml"


def _files(whose: str, source: str, *names: str) -> tuple[Obeyed, ...]:
    return tuple(Obeyed(name, whose, source) for name in names)


def _folder(name: str, whose: str, source: str, *entries: str) -> tuple[Obeyed, ...]:
    return (Obeyed(name, whose, source, folder=True, entries=entries),)


_CODEARTS = "support.huaweicloud.com/intl/en-us/usermanual-cli"
_TABNINE = "docs.tabnine.com/main/getting-started/tabnine-cli"
_WITH_SKILLS = {
    ".adal": "AdaL", ".commandcode": "Command Code", ".kode": "Kode", ".mcpjam": "MCPJam", ".neovate": "Neovate",
    ".pochi": "Pochi", ".zencoder": "Zencoder",
}  # fmt: skip
"""Folders of agents in a tree, of which it is known that skills with their scripts are read from them."""

TABLE: tuple[Obeyed, ...] = (
    # agents: servers, hooks, commands, settings that allow
    *_files("agent-tui", "docs/CONFIGURATION.md", OWN_RULES),
    *_folder(".agent-tui", "agent-tui", "docs/CONFIGURATION.md"),
    *_folder(".agents", "several agents", "agentskills.io/home"),
    *_files("Claude Code", "code.claude.com/docs/en/mcp", ".mcp.json"),
    *_folder(".claude", "Claude Code", "code.claude.com/docs/en/settings"),
    *_folder(".codex", "Codex CLI", "developers.openai.com/codex/hooks"),
    *_folder(".gemini", "Gemini CLI", "geminicli.com/docs/hooks"),
    *_folder(".vibe", "mistral-vibe", "docs.mistral.ai/mistral-vibe"),
    *_files("OpenCode", "opencode.ai/docs/config", "opencode.json", "opencode.jsonc"),
    *_folder(".opencode", "OpenCode", "opencode.ai/docs/plugins"),
    *_folder(".copilot", "Copilot CLI", "docs.github.com/en/copilot/concepts/agents/about-copilot-cli"),
    *_folder(
        ".github", "Copilot CLI", "docs.github.com/en/copilot/reference/hooks-configuration", "hooks",
        "copilot", "mcp.json",
    ),
    *_folder(".cursor", "Cursor CLI", "cursor.com/docs/hooks"),
    *_folder(".kimi", "Kimi Code", "moonshotai.github.io/kimi-cli"),
    *_folder(".kimi-code", "Kimi Code", "moonshotai.github.io/kimi-cli"),
    *_folder(".qwen", "Qwen Code", "qwenlm.github.io/qwen-code-docs/en/users/features/mcp"),
    *_files("Crush", "github.com/charmbracelet/crush#configuration", "crush.json", ".crush.json"),
    *_folder(".crush", "Crush", "github.com/charmbracelet/crush#configuration"),
    *_folder(".kiro", "Kiro", "kiro.dev/docs/hooks"),
    *_folder(".amazonq", "Amazon Q", "docs.aws.amazon.com/amazonq/latest/qdeveloper-ug/mcp-ide.html"),
    *_folder(".roo", "Roo Code", "docs.roocode.com/features/mcp/using-mcp-in-roo"),
    *_folder(".kilocode", "Kilo Code", "kilo.ai/docs/automate/mcp/using-in-kilo-code"),
    *_folder(".kilo", "Kilo Code", "kilo.ai/docs/automate/mcp/using-in-kilo-code"),
    *_folder(".factory", "Factory", "docs.factory.ai/cli/configuration/mcp"),
    *_folder(".clinerules", "Cline", "docs.cline.bot/customization/hooks", "hooks"),
    *_folder(".cline", "Cline", "docs.cline.bot/customization/hooks"),
    *_folder(".continue", "Continue", "docs.continue.dev/customize/deep-dives/mcp"),
    *_folder(".windsurf", "Windsurf", "docs.windsurf.com/windsurf/cascade/hooks"),
    *_folder(".junie", "Junie", "junie.jetbrains.com/docs/junie-cli-mcp-configuration.html"),
    *_folder(".augment", "Auggie", "docs.augmentcode.com/cli/overview"),
    *_folder(".trae", "Trae", "docs.trae.ai/ide/model-context-protocol"),
    *_folder(".amp", "Amp", "ampcode.com/manual"),
    *_folder(".goose", "goose", "block.github.io/goose/docs"),
    *_folder(".openhands", "OpenHands", "docs.openhands.dev/openhands/usage/customization/repository"),
    *_folder(".iflow", "iFlow CLI", "platform.iflow.cn/en/cli/configuration/settings"),
    *_folder(".codebuddy", "CodeBuddy", "codebuddy.ai/docs/cli/settings"),
    *_folder(".qoder", "Qoder", "docs.qoder.com/en/cli/hooks"),
    *_folder(".pi", "pi", "github.com/badlogic/pi-mono"),
    *_folder(".rovodev", "Rovo Dev", "support.atlassian.com/rovo/docs/use-rovo-dev-cli"),
    *_folder(".warp", "Warp", "docs.warp.dev/knowledge-and-collaboration/mcp"),
    *_files("Qoder", "docs.qoder.com/cli/using-cli", ".qoder.json"),
    *_files("Kilo Code", "kilo.ai/docs/automate/mcp/using-in-kilo-code", "kilo.json", "kilo.jsonc"),
    *_folder(".agent", "Antigravity", "docs.rs/crate/agent-config/latest/source/docs/agents/antigravity.md"),
    *_folder(".devin", "Devin CLI", "docs.devin.ai/cli/extensibility/hooks"),
    *_folder(".tabnine", "Tabnine CLI", f"{_TABNINE}/features/settings/settings-reference"),
    *_folder(".codeartsdoer", "CodeArts", f"{_CODEARTS}/codeartsagent_cli_0013.html"),
    *_folder(".bob", "IBM Bob", "bob.ibm.com/docs/ide/configuration/mcp/mcp-in-bob"),
    *_folder(".mux", "Mux", "github.com/coder/mux/blob/main/docs/init-hooks.md"),
    *_folder(".cmux", "Mux", "github.com/coder/mux/blob/main/docs/init-hooks.md"),
    *_folder(".hermes", "Hermes Agent", "hermes-agent.nousresearch.com/docs/user-guide/configuration"),
    *_folder(".forge", "Forge", "forgecode.dev/docs"),
    *_folder(".gitlab", "GitLab Duo", "docs.gitlab.com/user/gitlab_duo/model_context_protocol/mcp_clients", "duo"),
    *_files("gptme", "gptme.org/docs/config.html", "gptme.toml", "gptme.local.toml"),
    *_folder(".prime", "Prime Agent", "github.com/PrimeIntellect-ai/prime-agent/pull/1223"),
    *_folder(".codev", "Codev", "github.com/cluesmith/codev/issues/1328"),
    *_folder(".af-cron", "Codev", "github.com/cluesmith/codev/issues/1328"),
    *_folder(".codeframe", "CodeFRAME", "github.com/frankbria/codeframe/issues/905"),
    *_folder(".cate", "cate", "github.com/0-AI-UG/cate/pull/518"),
    *_files("agent-cli", "github.com/basnijholt/agent-cli/issues/630", "agent-cli-config.toml"),
    *_files("workmux", "smithery.ai/skills/okm321/workmux-init", ".workmux.yaml"),
    *_files("Firebender", "github.com/intellectronica/ruler", "firebender.json"),
    *_folder(".idx", "Firebase Studio", "github.com/intellectronica/ruler"),
    *_folder("config", "MCPorter", "github.com/neondatabase/add-mcp", "mcporter.json"),
    *(
        one
        for name, whose in _WITH_SKILLS.items()
        for one in _folder(name, whose, "github.com/vercel-labs/skills/blob/main/src/agents.ts")
    ),
    *_files("aider", "aider.chat/docs/config/aider_conf.html", ".aider.conf.yml", ".aider.conf.yaml"),
    # editors: tasks, language servers, launches
    *_folder(
        ".vscode", "VS Code", "code.visualstudio.com/docs/configure/settings", "tasks.json", "settings.json",
        "launch.json", "mcp.json", "c_cpp_properties.json", "extensions",
    ),
    *_folder(
        ".vs", "Visual Studio", "learn.microsoft.com/visualstudio/ide/customize-build-and-debug-tasks-in-visual-studio",
        "mcp.json", "tasks.vs.json", "launch.vs.json",
    ),
    *_folder(".devcontainer", "development containers", "containers.dev/implementors/json_reference"),
    *_files("development containers", "containers.dev/implementors/json_reference", ".devcontainer.json"),
    *_folder(".zed", "Zed", "zed.dev/docs/tasks", "tasks.json", "settings.json", "debug.json"),
    *_folder(
        ".idea", "JetBrains", "jetbrains.com/help/idea/project-and-ide-settings.html", "startup.xml",
        "watcherTasks.xml", "runConfigurations", "tools", "externalDependencies.xml", "workspace.xml",
    ),
    *_folder(".run", "JetBrains", "jetbrains.com/help/idea/run-debug-configuration.html"),
    *_folder(".fleet", "Fleet", "jetbrains.com/help/fleet", "run.json", "settings.json"),
    *_folder(".helix", "Helix", "docs.helix-editor.com/configuration.html"),
    *_folder(".vim", "coc.nvim", "github.com/neoclide/coc.nvim", "coc-settings.json"),
    *_folder(".bsp", "editors with build servers", "build-server-protocol.github.io/docs/overview/server-discovery"),
    *_files("SourceKit-LSP", "github.com/swiftlang/sourcekit-lsp", "buildServer.json"),
    *_folder(".sourcekit-lsp", "SourceKit-LSP", "github.com/swiftlang/sourcekit-lsp", "config.json"),
    *_folder(".ruby-lsp", "Ruby LSP", "shopify.github.io/ruby-lsp"),
    *_files("lazy.nvim", "github.com/folke/lazy.nvim", ".lazy.lua"),
    *_files("neoconf.nvim", "github.com/folke/neoconf.nvim", ".neoconf.json"),
    *_files("lazygit", "github.com/jesseduffield/lazygit/blob/master/docs/Config.md", ".lazygit.yml"),
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
    *_files("PsySH", "github.com/advisories/GHSA-4486-gxhx-5mg7", ".psysh.php"),
    *_files("phpdbg", "php.net/manual/en/book.phpdbg.php", ".phpdbginit"),
    *_files("jdb", "docs.oracle.com/en/java/javase/21/docs/specs/man/jdb.html", ".jdbrc", "jdb.ini"),
    *_files("Jupyter", "github.com/jupyter/jupyter_core/blob/main/jupyter_core/application.py",
        *(f"jupyter{of}_config.{end}" for of in ("", "_notebook", "_server", "_lab") for end in ("py", "json"))),
    *_files("Octave", "docs.octave.org/latest/Startup-Files.html", ".octaverc"),
    *_files("gnuplot", "gnuplot.info/docs", ".gnuplot"),
    # settings of package managers
    *_files("npm", "docs.npmjs.com/cli/configuring-npm/npmrc", ".npmrc"),
    *_files("Yarn", "yarnpkg.com/configuration/yarnrc", ".yarnrc.yml", ".yarnrc"),
    *_files("pnpm", "pnpm.io/pnpmfile", ".pnpmfile.cjs", ".pnpmfile.mjs"),
    *_folder(".yarn", "Yarn", "yarnpkg.com/configuration/yarnrc", "releases", "plugins", "sdks"),
    *_files("Corepack", "github.com/nodejs/corepack", ".corepack.env"),
    *_folder(".cargo", "Cargo", "doc.rust-lang.org/cargo/reference/config.html", "config.toml", "config"),
    *_folder(".bundle", "Bundler", "bundler.io/man/bundle-config.1.html", "config"),
    *_folder(".mvn", "Maven", "maven.apache.org/configure.html"),
    *_files("Gradle", "docs.gradle.org/current/userguide/gradle_wrapper.html", "gradle-wrapper.properties"),
    *_files("Bazel", "bazel.build/run/bazelrc", ".bazelrc"),
    *_files("Bazelisk", "github.com/bazelbuild/bazelisk", ".bazeliskrc", ".bazelversion"),
    *_files("Ansible", "docs.ansible.com/ansible/latest/reference_appendices/config.html", "ansible.cfg"),
    *_files("Bun", "bun.com/docs/runtime/bunfig", "bunfig.toml", ".bunfig.toml"),
    # other keepers of versions
    *_folder(".hg", "Mercurial", "mercurial-scm.org/doc/hgrc.5.html", "hgrc", "hgrc-not-shared", "sharedpath"),
    *_folder(".jj", "Jujutsu", "docs.jj-vcs.dev/latest/config", "repo/config.toml",
        "repo/workspace-config.toml", "workspace-config.toml"),
    *_folder(".sl", "Sapling", "sapling-scm.com/docs/introduction", "config"),
    *_folder(".bzr", "Breezy", "breezy-vcs.org/doc/en/user-reference", "branch/branch.conf"),
    *_folder("_darcs", "Darcs", "darcs.net/Using/Configuration", "prefs/defaults"),
    *_folder(".pijul", "Pijul", "pijul.org/manual", "config", "config.toml"),
    *_files("Repo", "gerrit.googlesource.com/git-repo", "PREUPLOAD.cfg"),
)  # fmt: skip

FILES = frozenset(one.name.casefold() for one in TABLE if not one.folder)
FOLDERS: dict[str, tuple[str, ...]] = {one.name.casefold(): one.entries for one in TABLE if one.folder}
"""Empty: everything in it."""
ENDINGS = {".code-workspace": "VS Code", ".pth": "Python", ".sublime-project": "Sublime Text"}
"""Ends of names of the same kind, with whose they are: workspaces of editors, and what Python runs at each start."""
_ENDS = tuple(ENDINGS)
_OF_AGENTS = frozenset({"mcp.json", "mcp_config.json", "mcp_settings.json", ".mcp.json"})
"""Names that agents give to the file of the servers that they start, wherever it lies."""
_OF_AGENTS_IN_THEIR_FOLDER = frozenset(
    {"hooks.json", "hooks.v1.json", "settings.json", "settings.local.json"}
)
"""Names of their hooks and settings, in a folder whose name begins with a dot."""
BY_NAME = {one.name.casefold(): one for one in TABLE}


def whose(path: str) -> str:
    """Name the program that obeys a file by itself, by its path in the workspace; "" if none is known."""
    parts = path.casefold().split("/")
    if within_environment(parts):
        return ""
    name = parts[-1]
    if name in FILES:
        return BY_NAME[name].whose
    for place, part in enumerate(parts[:-1]):
        entries = FOLDERS.get(part)
        rest = "/".join(parts[place + 1 :])
        if entries is not None and (
            not entries or any(f"{rest}/".startswith(f"{entry.casefold()}/") for entry in entries)
        ):
            return BY_NAME[part].whose
    return _by_its_form(name, parts[-2] if len(parts) > 1 else "")


def is_obeyed_file(name: str, folder: str) -> bool:
    """Tell if programs obey a file of this name, in a folder of that name; both in small letters."""
    return name in FILES or bool(_by_its_form(name, folder))


def _by_its_form(name: str, folder: str) -> str:
    """Name whose a file without a row is, by the end of its name or as agents name theirs; "" if nobody's."""
    if name.endswith(_ENDS):
        return next(whose for end, whose in ENDINGS.items() if name.endswith(end))
    in_its_folder = folder.startswith(".") and name in _OF_AGENTS_IN_THEIR_FOLDER
    return "an agent" if in_its_folder or name in _OF_AGENTS else ""


def within_environment(parts: list[str]) -> bool:
    """True if it is among installed packages, which are all programs."""
    return any(part in {"site-packages", "dist-packages", "node_modules"} for part in parts[:-1])
