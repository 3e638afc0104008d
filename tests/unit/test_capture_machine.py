"""The machine apart: what a foreign one gives, and how its numbers become those of the model."""

import os
import platform
import re
import subprocess
import sys

import pytest

from gdbext.capture.copies import syscall_line
from gdbext.capture.elf.throw_sites import throw_sites
from gdbext.capture.locks_in_memory import futexes
from gdbext.capture.machine import ARCHITECTURES, gdb_registers, known_machine, machine_of, name_of, this_machine
from gdbext.capture.machine.code import code_here, code_of
from gdbext.capture.machine.disassembly import disassembly_here
from gdbext.knowledge.runtimes import system_calls
from gdbext.model.errors import GdbextError

X86, ARM = ARCHITECTURES
WORDS = tuple(range(100, 134))


@pytest.fixture
def on(monkeypatch):
    """Makes this another machine."""
    return lambda name: monkeypatch.setattr(platform, "machine", lambda: name)


def test_machines_by_name_and_by_the_number_in_files(on):
    assert [machine_of(62), machine_of(183), machine_of(243)] == [X86, ARM, None]
    assert [name_of(62), name_of(243), name_of(9999)] == ["x86_64", "RISC-V", "type 9999"]
    on("aarch64")
    assert this_machine() is known_machine() is ARM
    on("riscv64")
    assert this_machine() is None
    with pytest.raises(GdbextError, match=r"^processes of a riscv64 machine cannot be read: no row for it"):
        known_machine()


def test_what_is_not_known_of_a_machine_is_none(on):
    assert code_of(X86) is not None and code_of(ARM) is None and code_of(None) is None
    for name in ("aarch64", "riscv64"):
        on(name)
        assert (gdb_registers(), code_here(), disassembly_here()) == (None, None, None)
        with pytest.raises(ValueError, match=f"how {name} code throws is not known"):
            throw_sites(sys.executable)


@pytest.mark.parametrize("row", ARCHITECTURES, ids=lambda row: row.name)
def test_words_lie_within_the_register_set(row):
    known = [row.sp, row.pc, row.call.number, *row.call.arguments, row.call.result, *(index for index, _ in row.fixed)]
    known += [one for one in (row.thread_pointer, row.call.pc_too, row.unwind and row.unwind.frame_word) if one]
    assert all(0 <= one < row.registers for one in known) and len(row.call.arguments) == 6


def test_system_calls_have_the_numbers_of_the_model():
    assert [X86.call_number(one) for one in (0, 202, 333)] == [0, 202, 333]
    assert ARM.call_number(98) == system_calls.FUTEX and ARM.call_number(63) == system_calls.READ
    assert ARM.call_number(29) is None  # ioctl; 29 of the model's is another call
    named = {value for name, value in vars(system_calls).items() if name.isupper() and isinstance(value, int)}
    older = {system_calls.POLL, system_calls.SELECT, system_calls.EPOLL_WAIT, system_calls.OPEN, system_calls.VFORK}
    older |= {system_calls.PAUSE}
    assert set(ARM.system_calls.values()) == named - older


def test_a_call_is_translated_where_it_is_read(on):
    text = "98 0x7f00 0x80 0x3 0x4 0x5 0x6 0x7ffe0010 0x7f99\n"
    assert syscall_line.call_number(syscall_line.parse_standing(text)) == (98 if this_machine() is X86 else 202)
    on("aarch64")
    assert syscall_line.call_number(syscall_line.parse_standing(text)) == system_calls.FUTEX
    assert syscall_line.call_number(syscall_line.Standing(syscall_line.NO_CALL, (), 1, 2)) is None
    # Its registers do not say whether it is in a call.
    assert futexes.syscall_of(WORDS) is None and futexes.thread_ids({1: WORDS}, lambda ranges: []) == ({}, {})
    on("riscv64")
    assert syscall_line.call_number(syscall_line.parse_standing(text)) is None and futexes.syscall_of(WORDS) is None


FOREIGN = "import platform, runpy, sys; platform.machine = lambda: 'riscv64'; sys.argv = ['gdbext', *sys.argv[1:]]; "


@pytest.mark.process
@pytest.mark.parametrize("options", [[], ["--no-stop"]], ids=["stopped", "running"])
def test_a_machine_without_a_row_gives_one_line(options):
    argv = [sys.executable, "-c", f"{FOREIGN}runpy.run_module('gdbext', run_name='__main__')", "diagnose"]
    done = subprocess.run([*argv, *options, str(os.getpid())], capture_output=True, text=True)
    last = done.stderr.splitlines()[-1]
    assert re.match(r"gdbext: processes of a riscv64 machine cannot be read: no row for it; \S", last)
    assert done.returncode == 4 and done.stdout == "" and "Traceback" not in done.stderr
