"""What gdb prints and takes where names of the target are in it: none of them is a Ctrl-C, a command or a row."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gdb.gdbrun import INIT, build, gdb_batch

pytestmark = pytest.mark.gdb

ROOT = Path(__file__).parents[2]

FORGOTTEN = "Python Exception <class 'KeyboardInterrupt'>: "
RUN = """
import gdb, os
from gdbext.inside_gdb.base import compat
from gdbext.inside_gdb.base.compat import quoted

def tried(name, command, function=compat.run):
    try:
        function(command)
        print(name, "is read")
    except KeyboardInterrupt:
        print(name, "is a Ctrl-C")
    except gdb.error as error:
        print(name, "is refused:", error)

def interrupted(event):
    raise KeyboardInterrupt(KeyboardInterrupt)  # as gdb prints one that comes by a signal

program = os.environ["NAMED"]
"""

PLAIN = (
    "static int foo(int x) { return x + 1; } int other(int); int main(int c, char **v) { return foo(c) + other(c); }"
)
# A file whose name, in gdb's table, makes a row of a stub that is none; the next one has no place in the table.
FAKING = """# 1 "x\\0121.1                         y   0x0000000000001234 <a@plt>\\0121.7  y   0x1234 <a@plt>\\012.c"
static int foo(int x) { return x + 2; } int other(int c) { return foo(c); }
"""


def said(gdb, tmp_path, program, script, *commands, **options):
    path = tmp_path / "script.py"
    path.write_text(RUN + script)
    environment = {**os.environb, b"NAMED": os.fsencode(program), b"PYTHONPATH": b""}
    return gdb_batch(gdb, f"source {path}", *commands, env=environment, errors="replace", **options).text


def diagnosed(gdb, subject, folder):
    words = [sys.executable, "-m", "gdbext", "stacks", "--gdb", gdb, "--once", subject]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, env=environment, cwd=folder, capture_output=True, text=True, errors="replace")
    return done.stdout + done.stderr


def test_a_name_is_not_taken_for_a_ctrl_c(any_gdb, tmp_path):
    """gdb prints the name of a file that it adds; what Python's callbacks raise, it prints too."""
    folder = tmp_path / FORGOTTEN
    folder.mkdir()
    program = shutil.copy(build("debugger_target.c"), folder)
    script = """
gdb.execute("set confirm off")
gdb.execute("set python print-stack message")
tried("its name", f"add-symbol-file {quoted(program)} -o 0x10000")
gdb.events.new_objfile.connect(interrupted)
tried("the other", f"add-symbol-file {quoted(program)} -o 0x90000")
"""
    text = said(any_gdb, tmp_path, program, script)
    assert "its name is read" in text and "the other is a Ctrl-C" in text


@pytest.mark.parametrize(
    ("name", "why"), [(b"rank\nshell touch planted #", "a line break"), (b"rank\xff", "not UTF-8")]
)
def test_a_name_that_gdb_cannot_be_given(any_gdb, tmp_path, name, why):
    """What stands behind a line break is a command to gdb. The rank is attached all the same."""
    program = os.fsencode(tmp_path) + b"/" + name
    for path in (program, program.split(b"\n")[0]):
        shutil.copy(build("debugger_target.c"), path)
    script = """
tried("program", f"file {quoted(program)}")
tried("core", program, compat.open_core)
"""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([program, "wait"], **pipes) as process:
        assert process.stdout.readline() == b"ready\n"
        core = f"{tmp_path}/core.rank"
        commands = (f"source {INIT}", f"llm-attach-all {process.pid}", f"generate-core-file {core}", "llm-detach-all")
        text = said(any_gdb, tmp_path, program, script, *commands, cwd=tmp_path)
        live = diagnosed(any_gdb, str(process.pid), tmp_path)
        process.kill()
    dead = diagnosed(any_gdb, core, tmp_path)
    assert "__GI___libc_read" in live and "__GI___libc_read" in dead, "only the program's own functions have no names"
    in_gdb = gdb_batch(any_gdb, f"llm-attach-all --core {core}", "llm-bt", cwd=tmp_path, errors="replace").text
    assert "__GI___libc_read" in in_gdb
    assert f"program is refused: gdb cannot be given a name {'with' if 'line' in why else 'that is'} {why}" in text
    assert "core is refused" in text
    assert "All of them are running again." in text and "mistake" not in text
    assert not (tmp_path / "planted").exists()


def test_a_row_of_a_table_is_not_taken_from_a_name(any_gdb, tmp_path):
    for name, text in (("plain.c", PLAIN), ("faking.c", FAKING)):
        (tmp_path / name).write_text(text)
    program = tmp_path / "program"
    subprocess.run(["gcc", "-g", "-O0", tmp_path / "plain.c", tmp_path / "faking.c", "-o", program], check=True)
    script = """
gdb.execute(f"file {program}")
point = gdb.Breakpoint("foo")
compat.disable_stubs(point)
print(len(compat.locations(point)), "places")
"""
    text = said(any_gdb, tmp_path, program, script, "info breakpoints")
    assert "2 places" in text and "<a@plt>" in text
    places = re.findall(r"^1\.\d +(\w) +0x\w+ in foo ", text, re.MULTILINE)
    assert places == ["y", "y"] and "Error" not in text
