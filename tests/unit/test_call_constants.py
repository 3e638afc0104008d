"""Constants that code loads before a call: from bytes as compilers write them."""

import struct

import pytest

from gdbext.capture.machine.x86_64.call_constants import addresses_before, constants_before

END = 0x401000
CALL = b"\xe8\0\0\0\0"


def lea(opcode, target, after):
    """`lea target(%rip),%register`, with `after` bytes of code behind it."""
    return opcode + struct.pack("<i", target - (END - after))


def test_optimised_code():
    call = b"\x89\xc7" + CALL  # mov %eax,%edi
    file = lea(b"\x48\x8d\x35", 0x402010, len(call))
    name = lea(b"\x48\x8d\x15", 0x402040, len(call) + 7)
    code = b"\x41\xb8\x01\0\0\0" + b"\xb9\x2a\0\0\0" + name + file + call
    assert constants_before(code, END) == {1: 0x402010, 2: 0x402040, 3: 42}
    assert list(addresses_before(code, END)) == [0x402040, 0x402010]


def test_code_that_is_not_optimised_goes_through_rax():
    tail = b"\x48\x89\xc6" + CALL  # mov %rax,%rsi
    code = b"\xb9\x2a\0\0\0" + lea(b"\x48\x8d\x05", 0x402010, len(tail)) + tail
    assert constants_before(code, END)[1] == 0x402010


def test_code_at_a_fixed_address_and_the_last_load_counts():
    code = b"\xbe\x10\x20\x40\0" + b"\xb9\x07\0\0\0" + b"\xb9\x08\0\0\0" + CALL
    assert constants_before(code, END) == {1: 0x402010, 3: 8}


@pytest.mark.parametrize("code", [b"", b"\x90" * 96, CALL, b"\x48\x8d\x35", b"\xb9\x01"])
def test_nothing_is_made_up(code):
    assert constants_before(code, END) == {}
