"""Landing pads of functions, and what the code there refers to."""

import struct

import pytest

from gdbext.capture.elf.call_sites import landing_pad
from gdbext.capture.machine.interface import Instruction
from gdbext.capture.machine.x86_64.clean_up import referenced_addresses

SITES = bytes([0x10, 5, 0x80, 1, 0, 0x20, 4, 0x90, 1, 1])  # 0x10 to 0x15: at 0x80; 0x20 to 0x24: at 0x90
TABLE = b"\xff\xff\x01" + bytes([len(SITES)]) + SITES
REGISTERS = {"rsp": 0x1000, "rbp": 0x2000, "rbx": 0x3000, "r12": 0x1100}


@pytest.mark.parametrize(
    "pc, pad", [(0x10, 0x480), (0x14, 0x480), (0x15, None), (0x20, 0x490), (0x30, None), (0, None)]
)
def test_a_call_has_its_landing_pad(pc, pad):
    assert landing_pad(TABLE + b"\0" * 8, 0x9000, 0x400, 0x400 + pc) == pad


def test_a_call_that_cleans_nothing_up():
    assert landing_pad(b"\xff\xff\x01\x05\x10\x05\x00\x00\x00", 0, 0, 0x12) is None


def test_other_encodings():
    words = struct.pack("<III", 0x10, 5, 0x80) + b"\0"
    assert landing_pad(b"\xff\xff\x03" + bytes([len(words)]) + words, 0, 0x400, 0x412) == 0x480
    relative = b"\x1b" + struct.pack("<i", 0x100)
    assert landing_pad(relative + b"\x9b\x05\x01" + bytes([len(SITES)]) + SITES, 0x9000, 0x400, 0x412) == 0x9181


@pytest.mark.parametrize("table", [b"", b"\xff", b"\xff\xff\x01\x80", b"\xff\xff\x01\x7f", b"\xff\xff\x55\x04\1\2\3\4"])
def test_damaged_tables(table):
    with pytest.raises(ValueError):
        landing_pad(table, 0, 0, 5)


def places(*lines, memory=None):
    """What code refers to; a line may begin with its address."""
    code, at = [], 0x4000
    for line in lines:
        address, _, text = line.rpartition(": ")
        at = int(address, 16) if address else at + 4
        code.append(Instruction(at, text))

    def fetch(start):
        return iter([one for one in code if one.address >= start])

    return referenced_addresses(fetch, code[0].address, REGISTERS, lambda at, size: (memory or {}).get(at))


@pytest.mark.parametrize(
    "lines, found",
    [
        (("lea    0x88(%rsp),%rdi", "call   0x1 <~Tensor>", "call   0x2 <_Unwind_Resume@plt>"), {0x1088}),
        (("lea    -0x60(%rbp),%rax", "mov    %rax,%rdi", "call 0x1 <_Unwind_Resume>"), {0x1FA0}),
        (("mov    %r12,%rdi", "call   0x1 <~Tensor>", "ud2"), {0x1100}),
        (("mov    %rax,%rbx", "mov    %rbx,%rdi", "call   0x2 <_Unwind_Resume@plt>"), set()),
        (("lea    0x100(%rsp),%rbp", "mov    0x8(%rbp),%rdi", "hlt"), set()),
        (("call   0x1 <__cxa_begin_catch@plt>", "mov    0x8(%rsp),%rdi"), set()),
        (("4000: jmp    0x4010 <f+16>", "4004: mov 0x8(%rsp),%rsi", "4010: mov 0x18(%rsp),%rsi", "ret"), {0x1018}),
        (("4000: je 0x4010 <f+16>", "4004: mov 0x8(%rsp),%rsi", "4008: ret", "4010: mov (%rsp),%r8"), {0x1008, 0x1000}),
        (("4000: jmp    0x4000 <f>",), set()),
    ],
)  # fmt: skip
def test_what_clean_up_code_refers_to(lines, found):
    assert places(*lines) == found


def test_the_address_of_an_object_that_was_kept_on_the_stack():
    kept = {0x1020: (0x7000).to_bytes(8, "little")}
    assert places("mov    0x20(%rsp),%rdi", "call   0x1 <~Tensor>", "ud2", memory=kept) == {0x1020, 0x7000}
