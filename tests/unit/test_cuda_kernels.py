"""`info cuda kernels` of several releases, as text."""

import pytest

from gdbext.parsers.cuda_kernels import MOST_KERNELS, kernels

# NVIDIA's manual of 11.x: Name and Args are columns of their own
OLD = """\
  Kernel Parent Dev Grid Status   SMs Mask   GridDim  BlockDim      Name Args
*      1      -   0    2 Active 0x00ffffff (240,1,1) (128,1,1) acos_main parms=...
       2      1   0    3 Sleeping 0x00000000 (1,1,1) (32,1,1) child<int> a=1, b=0x2
"""
# cuda-gdb 11.8 and 12.x: Invocation, and masks of 64 or 28 digits
NARROW, WIDE = "0x" + "1".zfill(28), "0x" + "ff".zfill(64)
NEW = f"""\
  Kernel Parent Dev Grid Status                           SMs Mask GridDim  BlockDim Invocation
*      0      -   0    7 Active {NARROW} (4,1,1) (256,1,1) bad_store(int*, (anonymous namespace)::S)(p=0x7f, s=...)
       1      -   1    8 Active {WIDE} (132,1,1) (512,1,1) ncclDevKernel_AllReduce_Sum_bf16_RING_LL(args4K=...)
       3      -   0   -1 Pending 0x0 (1,1,1) (1,1,1) void ns::k<(int)3, float>(float *)()
"""


def rows(text):
    return [(one.focus, one.kernel, one.parent, one.device, one.grid, one.status, one.name) for one in kernels(text)[0]]


def test_older_releases():
    assert rows(OLD) == [
        (True, 1, None, 0, 2, "Active", "acos_main"),
        (False, 2, 1, 0, 3, "Sleeping", "child<int>"),
    ]
    first, second = kernels(OLD)[0]
    assert (first.grid_size, first.block_size, first.arguments) == ("(240,1,1)", "(128,1,1)", "parms=...")
    assert second.arguments == "a=1, b=0x2"


def test_newer_releases():
    assert rows(NEW) == [
        (True, 0, None, 0, 7, "Active", "bad_store(int*, (anonymous namespace)::S)"),
        (False, 1, None, 1, 8, "Active", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"),
        (False, 3, None, 0, -1, "Pending", "void ns::k<(int)3, float>(float *)"),
    ]
    assert [one.arguments for one in kernels(NEW)[0]] == ["p=0x7f, s=...", "args4K=...", ""]
    assert kernels(NEW)[1] == ()


def test_lines_that_a_narrow_terminal_wrapped():
    wrapped = NEW.replace(" (4,1,1)", "\n    (4,1,1)").replace(" bad_store", "\n      bad_store")
    assert kernels(wrapped) == kernels(NEW)


@pytest.mark.parametrize(
    "text", ["", "No CUDA kernels.\n", "No CUDA devices.\n", "Focus not set on any active CUDA kernel.\n"]
)
def test_nothing_runs(text):
    assert kernels(text) == ((), ())


def test_what_is_not_understood_is_told_and_capped():
    found, strange = kernels("something new\n" + OLD)
    assert len(found) == 2 and strange == ("something new",)
    many = "".join(f"  {number} - 0 1 Active 0x1 (1,1,1) (1,1,1) k()\n" for number in range(1000))
    assert len(kernels(many)[0]) == MOST_KERNELS
    assert kernels("* 1 - 0 2 Active 0x1 (1,1,1)\n")[0][0].name == ""
    kernels("(" * 5000 + "\n* 1 - 0 2 Active 0x1 (1,1,1) (1,1,1) " + "(" * 5000)
