"""Programs that run what their arguments say, name or load: no rule that a card offers covers them with any arguments.

One table, from the programs' own manuals: 112 of its 847 names were found beside an option that stands here in the
manual pages of Debian 12, of 53 more the page was looked at, and 682 rest on memory of them. Where a program is
dangerous by an option alone and its others are known, it stands in `programs.PROGRAMS` instead, and a rule covers
those.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tui_agent.permissions.commands import SimpleCommand
from tui_agent.permissions.programs import base_name, interprets, known_program, runs_another

_TABLE = """
tar gtar | --to-command, --checkpoint-action=exec=, --use-compress-program, --rsh-command, --info-script | tar(1)
bsdtar cpio | --use-compress-program, --rsh-command | bsdtar(1), cpio(1)
split gsplit | --filter=COMMAND | split(1)
gsort | --compress-program=PROG | sort(1)
install ginstall | --strip-program=PROGRAM | install(1)
sdiff diff3 | --diff-program=PROGRAM | sdiff(1), diff3(1)
colordiff | diff's own options | colordiff(1)
rsync | -e, --rsh=COMMAND, --rsync-path=PROGRAM | rsync(1)
zip | -TT cmd, --unzip-command cmd | zip(1)
dar borg restic duplicity dump restore rclone | -E, --rsh, --password-command, --gpg-binary, -F script | their manuals
man | -P pager, -H browser | man(1)
less more most pager pg bat batcat delta ag ugrep | !command, +!command, --pager=COMMAND, --filter=COMMANDS | less(1),
  more(1), bat(1), ag(1), ugrep(1)
ack | --pager=PROGRAM, --output=EXPR | ack(1)
rga | --rga-adapters | rga --help
fzf sk peco | --preview COMMAND, --bind execute(COMMAND), --exec | fzf(1), sk(1), peco(1)
scp sftp slogin ssh-copy-id sshfs sshuttle mosh autossh ssh-argv0 | -S program, -o ProxyCommand=, --ssh-cmd, --server
  | scp(1), sftp(1), ssh_config(5), mosh(1)
ssh-keygen ssh-add ssh-agent keychain sshpass sshd | -D pkcs11, -s pkcs11, a command after the options |
  ssh-keygen(1), ssh-add(1), ssh-agent(1), sshpass(1)
wget wget2 aria2c | --use-askpass=COMMAND, --execute command, --on-download-complete=COMMAND | wget(1), aria2c(1)
yt-dlp youtube-dl gallery-dl | --exec CMD, --downloader | yt-dlp(1), gallery-dl(1)
nc ncat netcat socat | -e filename, -c string, --sh-exec, EXEC:, SYSTEM: | nc(1), ncat(1), socat(1)
lftp ftp tnftp telnet | !command, -e commands | lftp(1), ftp(1), telnet(1)
tcpdump tshark wireshark nmap hping3 | -z postrotate-command, -X lua_script, --script, exec | tcpdump(1), tshark(1),
  nmap(1)
iptables ip6tables | --modprobe=command | iptables(8)
ip tc | netns exec, vrf exec, exec | ip-netns(8), ip-vrf(8), tc-exec(8)
openvpn pppd dhclient udhcpc wg-quick hostapd_cli wpa_cli stunnel | --up cmd, connect script, -sf script, PostUp, -a
  file | openvpn(8), pppd(8), dhclient(8), wg-quick(8)
mount umount fsck swapon losetup | -t type: mount.TYPE, helper=, fsck.TYPE | mount(8), umount(8), fsck(8)
openssl gpg gpg2 gpgsm gpgconf gpg-agent gpg-connect-agent gpgtar | -engine, -provider-path, --agent-program,
  --photo-viewer, --pinentry-program, --gpg | openssl(1), gpg(1), gpgsm(1), gpg-agent(1)
gcc g++ cc c++ c89 c99 cpp gfortran gnat gdc tcc clang clang++ clang-cl nvcc icc icx | -wrapper, -B, -specs=,
  -fplugin=, -run, -Xclang -load, --run | gcc(1), clang(1), tcc(1), nvcc --help
ld gold lld mold collect2 ar gcc-ar nm gcc-nm ranlib gcc-ranlib libtool | --plugin NAME, --dynamic-linker,
  --mode=execute | ld(1), ar(1), nm(1), libtool --help
opt llc lli bugpoint lit llvm-lit clang-tidy scan-build intercept-build | -load=PLUGIN, a program or test | opt(1),
  lli(1), bugpoint(1), lit(1), clang-tidy --help
rustc rustdoc cross | -C linker=, --test-runtool, --wrapper | rustc --help, rustdoc --help
ldd | the program itself, for its loader | ldd(1)
ctags etags cflow protoc cppcheck gcovr lcov doxygen global gtags | --options=FILE, --cpp=COMMAND,
  --plugin=EXECUTABLE, --addon=, --gcov-tool | ctags(1), cflow(1), protoc --help, cppcheck(1), lcov(1)
patch quilt | ed scripts by ed | patch(1)
ed red ex vi vim view vimdiff gvim rview rvim nvim vimtutor emacs emacsclient nano pico joe kak micro hx code subl
  editor sensible-editor | !command, -c command, --eval, --speller | ed(1), vim(1), nvim(1), emacs(1), nano(1)
mc ranger nnn lf vifm tig lazygit vd | their own commands and configurations by option | their manuals
mail mailx s-nail mutt neomutt msmtp fetchmail procmail sendmail | ~!command, -e command, --passwordeval, --plugin, -C
  file | mailx(1), mutt(1), msmtp(1), fetchmail(1)
valgrind vgdb rr perf lldb uftrace heaptrack hyperfine bpftrace dtrace stap kcov dlv py-spy memray scalene viztracer
  kernprof gdbserver sprof | a program after the options, -c command | valgrind(1), perf-record(1), lldb(1),
  hyperfine(1), bpftrace(8)
fakeroot fakeroot-ng fakechroot proot schroot capsh prlimit runcon choom uclampset coresched enosys pipesz linux32
  linux64 i386 x86_64 uname26 setarch sg newgrp run0 gosu su-exec fstab-decode | a program after the options, -c
  command | fakeroot(1), capsh(1), prlimit(1), runcon(1), choom(1), setarch(8), sg(1)
systemd-inhibit systemd-cat systemd-nspawn machinectl systemctl busctl dbus-send gdbus dbus-launch gapplication
  gtk-launch launchctl schtasks | a program, or a service that is asked to run one | systemd-inhibit(1),
  systemd-cat(1), systemctl(1), busctl(1), dbus-send(1)
chronic ts tsp sem eatmydata datefudge faketime cpulimit trickle torsocks torify tsocks proxychains4 nocache cgexec
  schedtool logsave softlimit setuidgid chpst envdir tini dumb-init supervisord s6-svscan openvt scriptlive
  asciinema ttyrec | a program after the options, --command | chronic(1), ts(1), faketime(1),
  cpulimit(1), logsave(8), openvt(1), scriptlive(1), asciinema(1)
mpirun mpiexec orterun srun sbatch salloc qsub bsub torchrun accelerate deepspeed optirun primusrun gamemoderun vglrun
  wine wine64 mono box64 dosbox kvm | a program after the options | mpirun(1), srun(1), wine(1)
xterm urxvt st konsole gnome-terminal xfce4-terminal alacritty kitty wezterm foot zutty x-terminal-emulator terminator
  tilix tmux screen zellij byobu dtach abduco xinit startx xdotool i3-msg swaymsg hyprctl rofi dmenu_run | -e command,
  new-session command, exec | xterm(1), tmux(1), screen(1), x-terminal-emulator(1), xdotool(1)
crontab anacron logrotate run-parts incrontab update-alternatives | what is run later | crontab(1), anacron(8),
  logrotate(8), run-parts(8)
watchexec nodemon reflex air concurrently npm-run-all run-s run-p cross-env cross-env-shell env-cmd
  start-server-and-test forever pm2 foreman honcho overmind hivemind nyc c8 | a command after the options, -x | their
  manuals
mise asdf proto rbenv pyenv nodenv goenv rustup volta fnm nvm sdk devbox flox devenv guix pixi pipx micromamba
  toolbox distrobox | exec, run, shell, x | mise exec --help, asdf help, pyenv exec, rustup run --help, guix-shell
dotenv dotenvx op doppler infisical chamber aws-vault aws-okta saml2aws envchain teller sops vault consul nomad | run,
  exec, exec-env | dotenv --help, op run --help, doppler run --help, sops --help
nix-env nix-build nix-instantiate nixos-rebuild | expressions that build | nix-env(1), nix-build(1)
ansible ansible-playbook ansible-console salt-call fab vagrant adb heroku gh glab hub gcloud fly flyctl railway vercel
  netlify wrangler serverless sam cdk | -a command, shell, run, ssh, alias set | ansible(1), adb help, gh alias set
  --help, heroku help
docker-compose podman-compose nerdctl buildah ctr crictl lxc lxc-attach incus multipass oc helm kustomize skaffold
  tilt minikube kind k9s terraform tofu terragrunt pulumi packer act earthly dagger | run, exec, --post-renderer,
  --enable-exec, local-exec | docker compose run, oc exec, helm(1), kustomize build --help, terraform docs
gmake bmake remake nmake mingw32-make colormake cmake ctest cpack ninja meson muon bazel bazelisk buck
  buck2 pants please plz scons waf ant mvn mvnw mvnd mvndebug gradle gradlew sbt mill lein boot clj clojure bb just
  task go-task mage rake gulp grunt invoke inv doit tup redo b2 bjam xmake premake premake5 autoconf autoreconf
  autom4te automake aclocal autoheader | --eval=STRING, -P, -E, -f FILE, -C DIR, properties, expressions | make(1),
  cmake(1), ctest(1), ninja(1), mvn(1), autom4te(1)
pre-commit lefthook husky lint-staged lerna nx turbo mix rebar3 stack cabal opam dune zig nimble crystal shards dub
  rdmd flutter pub xcodebuild xcrun fastlane msbuild nuget conan vcpkg | tasks, recipes and hooks by name or file |
  pre-commit run --help, nx --help, stack exec --help, opam exec, conan install
pip pip3 pipdeptree easy_install uvicorn gunicorn hypercorn celery twistd trial flask django-admin alembic scrapy
  jupyter jupyter-lab jupyter-nbconvert papermill marimo streamlit locust behave robot nosetests nose2 py.test
  sphinx-build mkdocs pydoc pydoc3 cookiecutter copier coverage pylint flake8 yapf pyinstaller snakemake luigi dbt
  datasette sqlite-utils pygmentize mitmproxy mitmdump mitmweb tox nox | setup.py, -p module, --app, --load-plugins,
  --init-hook, -D extensions, -s script, -x -l file | pip install, pytest(1), pylint(1), sphinx-build(1), mitmdump
  --help, pygmentize(1)
gem rspec rubocop standardrb cucumber rails rackup puma thor pry erb yard guard jekyll asciidoctor sidekiq | -r file,
  -e, runner, extensions | gem(1), rspec --help, rubocop --help, erb(1), asciidoctor(1)
cpan cpanm carton prove plackup morbo rename prename file-rename exiftool perldoc cowsay cowthink | -e, --exec, a Perl
  expression, -if EXPR, -M module, -f cowfile | cpan(1), prove(1), rename(1p), exiftool(1), perldoc(1), cowsay(6)
composer phpunit pest phpstan psalm php-cs-fixer rector behat artisan drush wp symfony | --bootstrap, scripts, -c
  FILE, eval | phpunit --help, phpstan --help, wp eval
corepack eslint stylelint prettier jest vitest mocha ava karma playwright cypress webpack rollup vite esbuild babel
  tsc swc ng next nuxt astro storybook electron npm-check ncu degit | --require, --plugin, --config FILE,
  --resolve-plugins-relative-to, --runner | eslint --help, prettier --help, jest --help, mocha --help, webpack --help
go ginkgo gotestsum golangci-lint goreleaser mockgen wasm-pack maturin | -exec, -toolexec, -vettool,
  --post-run-command, -exec_only | go help test, go help build, gotestsum --help, mockgen --help
cargo cargo-nextest | --config, run, install, build scripts | cargo(1)
javac javadoc kotlin kotlinc scalac scala-cli amm groovyc jrunscript jdb jcmd jar spark-shell spark-submit spark-sql
  hadoop beeline hive | -processorpath, -Xplugin, -script, -e script, !sh | javac(1), jrunscript(1), kotlinc -help
ocaml ocamlc ocamlopt utop clisp ecl ccl ghci iex erlc gleam raku fsi csi nim v dart octave matlab maxima sage gnuplot
  wolframscript scilab mlr dc blender gimp soffice libreoffice | -e, --eval, system(), ! | ocaml(1), octave(1),
  gnuplot(1), mlr(1), dc(1), blender --help
mksh lksh oksh loksh yash posh rbash rzsh nu elvish xonsh osh ysh ion | -c command | mksh(1), yash(1)
psql pgcli pgbench pg_ctl postgres sqlite sqlite3 duckdb mysql mariadb mycli litecli usql sqlplus mongo mongosh
  cqlsh redis-cli redis-server clickhouse clickhouse-client clickhouse-local | \\!, .shell, .system, .load, system,
  \\setshell, host, --loadmodule, executable() | psql(1), sqlite3(1), pgbench(1), mysql(1), duckdb.org/docs,
  redis.io/docs
apt apt-get aptitude dpkg dpkg-architecture dpkg-buildpackage debuild dpkg-source rpm rpmbuild dnf yum zypper pacman
  yay paru makepkg apk snap flatpak brew port emerge xbps-install conda mamba | scripts of packages, -o
  DPkg::Pre-Invoke=, --pre-invoke=, --eval, --command | apt-get(8), dpkg(1), dpkg-architecture(1), rpm(8), pacman(8)
hg svn bzr brz fossil cvs jj darcs p4 git-lfs git-annex gclient | --config extensions.X=, --diff-cmd, --config-option,
  -d :ext:, --config aliases | hg(1), svn help, fossil help, cvs(1), jj help
ccache sccache distcc bear icecc | a compiler after the options | ccache(1), distcc(1), bear(1)
sox play rec mpv mplayer vlc feh scrot gs ghostscript ps2pdf groff troff nroff tex latex pdftex pdflatex xetex xelatex
  luatex lualatex latexmk tectonic texi2any makeinfo pandoc enscript highlight plantuml magick convert mogrify
  identify montage compare composite display animate import stream conjure gm | |program, --script, --action,
  -dNOSAFER, -U, --shell-escape, --filter, --lua-filter, |command | sox(1), mpv(1), feh(1), gs(1), groff(1), tex(1),
  pandoc(1), enscript(1), ImageMagick security policy
msgfilter msgexec xdg-open open gio start nginx httpd apache2 caddy haproxy updatedb kexec modprobe insmod visudo vipw
  login agetty getty sulogin slattach dmsetup debugfs debconf | a program after the options, -l, -c command, modules |
  msgexec(1), xdg-open(1), nginx(8), modprobe(8), agetty(8)
"""


@dataclass(frozen=True)
class Runner:
    """A program that runs what it is given."""

    how: str
    """By what: options, or where the program stands in its arguments."""
    source: str
    """The manual that says so."""


def _read(table: str) -> dict[str, Runner]:
    found: dict[str, Runner] = {}
    for row in re.split(r"\n(?! )", table.strip()):
        # What it is run by may hold a bar of its own.
        names, _, rest = " ".join(row.split()).partition(" | ")
        how, _, source = rest.rpartition(" | ")
        found |= dict.fromkeys(names.split(), Runner(how, source))
    return found


RUNNERS = _read(_TABLE)
"""By name. What the arguments of wrappers and interpreters are is told in `programs`, for rules that forbid too."""

_LOADERS = re.compile(r"ld-[\w.-]*\.so[\w.]*|ld\.so|qemu-\w+|git-.*")
_SUBCOMMAND = 2
"""Words up to which a program with subcommands is named."""
_PLAIN_SUBCOMMANDS = {
    "git": frozenset({
        "add", "commit", "branch", "checkout", "switch", "restore", "reset", "rm", "mv", "stash", "tag", "blame",
        "describe", "rev-parse", "rev-list", "ls-files", "ls-tree", "shortlog", "merge-base", "cat-file", "clean",
        "apply", "name-rev", "notes", "show-ref", "for-each-ref", "count-objects", "fsck", "gc", "worktree",
    }),
    "cargo": frozenset({"fmt"}),
}  # fmt: skip
"""Subcommands without an option that runs something, of programs of which others have one: git-SUBCOMMAND(1)."""


def runs_what_it_is_given(command: SimpleCommand, prefix: int) -> bool:
    """Whether what follows the first `prefix` words may be a program in itself, so that no rule should cover it all."""
    known = known_program(command.words[:prefix])
    if known is not None and len(known[0].split()) == prefix:
        return False
    name = base_name(command.program).casefold()
    plain = _PLAIN_SUBCOMMANDS.get(name)
    if plain is not None:
        return prefix < _SUBCOMMAND or command.words[1].text not in plain
    return _LOADERS.fullmatch(name) is not None or any(
        one in RUNNERS or runs_another(one) or interprets(one) for one in _also_known_as(name)
    )


def _also_known_as(name: str) -> tuple[str, ...]:
    """A name as manuals have it: without a version (`gcc-12`), a variant (`vim.tiny`), or a target before it."""
    plain = re.sub(r"-?\d[\d.]*$", "", name)
    of_target = re.search(r"-(?:linux|mingw|elf|eabi)", plain) is not None
    return name, plain, name.partition(".")[0], plain.rpartition("-")[2] if of_target else plain
