"""TAB in bash, zsh and fish, each as it is; and the words that they ask for."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gdbext.cli.command_line import parser
from tests.front_end import gdbext

pytestmark = pytest.mark.process

BASH = r"""
eval "$(gdbext completion bash)"
asked() {
    COMP_LINE=$1 COMP_POINT=${#1} COMP_WORDS=($1) COMP_TYPE=9 COMPREPLY=()
    $(complete -p gdbext | sed 's/.*-F \([^ ]*\).*/\1/') gdbext
    echo "=="
    printf '%s\n' "${COMPREPLY[@]}"
}
"""
ZSH = r"""
autoload -U compinit && compinit -D -u
eval "$(gdbext completion zsh)"
_describe() { print -l -r -- $completions }
asked() {
    BUFFER=$1 CURSOR=${#1} words=(${(z)1})
    print "=="
    ${_comps[gdbext]}
}
"""
FISH = r"""
gdbext completion fish | source
function asked
    echo ==
    complete -C $argv[1]
end
"""
SHELLS = {"bash": (["bash", "--norc", "-c"], BASH), "zsh": (["zsh", "-f", "-c"], ZSH), "fish": (["fish", "-c"], FISH)}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A folder with `gdbext` of this Python, before all others."""
    folder = tmp_path_factory.mktemp("bin")
    command = folder / "gdbext"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m gdbext "$@"\n')
    command.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


@pytest.mark.parametrize("shell", SHELLS)
def test_tab(shell, path, tmp_path):
    words, script = SHELLS[shell]
    (tmp_path / "hang.json").touch()
    lines = (
        *("gdbext dia", "gdbext diagnose --engine v", "gdbext diagnose --eng", "gdbext error cudaErrorIllegalA"),
        *(f"gdbext diagnose {tmp_path}/ha", "gdbext run --dump g", "gdbext nothing x"),
    )
    script += "\n".join(f"asked '{line}'" for line in lines)
    environment = {**os.environ, "PATH": path, "HOME": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([*words, script], capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=300)
    answers = [[word.split("\t")[0] for word in one.split("\n") if word] for one in done.stdout.split("==\n")[1:]]
    found = [[word.split(":")[0].strip() for word in one] for one in answers]
    assert found == [
        *(["diagnose"], ["vllm"], ["--engine"], ["cudaErrorIllegalAddress"], [f"{tmp_path}/hang.json"], ["graphs"], []),
    ], done.stderr


def test_another_shell_is_refused_in_one_line():
    done = gdbext("completion", "powershell")
    assert done.returncode == 2 and "powershell" in done.stderr and done.stderr.count("\n") == 1


def test_help_has_the_lines_to_source(capsys):
    with pytest.raises(SystemExit):
        parser().parse_args(["completion", "--help"])
    text = capsys.readouterr().out
    assert "source <(gdbext completion bash)" in text and "gdbext completion fish | source" in text


def test_without_argcomplete_one_line_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "argcomplete", None)
    done = gdbext("completion", "bash")
    assert done.returncode == 4 and "python3 -m pip install argcomplete" in done.stderr and done.stdout == ""
