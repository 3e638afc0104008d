"""What cuda-gdb prints of the GPU: `info cuda kernels` of several releases, and stacks of kernels, as text."""

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.analysis.view.on_device import kernel_in_words
from gdbext.parsers import parse_files
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


FOCUS = (
    "[Switching focus to CUDA kernel 0, grid 11534, block (0,0,0), thread (0,0,0), device {0}, sm 0, warp 0, lane 0]\n"
)
IN_WAIT_PEER = """\
ncclFunction_AllGather_RING_SIMPLE_Sum_int8_t () at prims_simple.h:128 in _ZN10PrimitivesIa7FuncSumIaEE8waitPeerIL
i1ELi0EEEvllii inlined from prims_simple.h:227
128           while (connStepCache + (isSendNotRecv ? NCCL_STEPS : 0) < step + StepPerSlice) {
(cuda-gdb) bt
#0  ncclFunction_AllGather_RING_SIMPLE_Sum_int8_t ()
"""
HOST = """\
Thread 1 (Thread 0x7ffff7fa5000 (LWP 5101) "bench"):
#0  0x00007ffff7aa3ba4 in cudaStreamSynchronize () from /usr/local/cuda/lib64/libcudart.so.12
#1  0x0000555555557a11 in main (argc=1, argv=0x7ffd) at bench.cu:88
"""


def answer(text):
    return judge(parse_files([("paste.txt", text.encode())]))


def test_a_stack_of_the_gpu_is_no_thread_of_the_host():
    found = answer(FOCUS.format(1) + IN_WAIT_PEER)
    assert found.verdict.summary.startswith(
        "On device 1, cuda-gdb shows NCCL's all-gather kernel (ring, simple) in Primitives<…>::waitPeer "
        "(prims_simple.h:128): the GPU thread shown waits there for its neighbour in the ring. "
    )
    assert not found.snapshot.problems and found.processes[0].wait.kind == "unknown"
    actions = [one.action for one in found.verdict.remedies]
    assert actions[0].startswith("Look for a rank that has not started this collective: dump every rank's host threads")
    assert "in cuda-gdb (`bt`)" in actions[1]


def test_a_kernel_of_no_collective_waits_for_nobody():
    found = answer(FOCUS.format(0) + "#0  0x0000000000c8c6a0 in void scale<float>(float*)<<<(8,1,1),(32,1,1)>>> ()\n")
    assert found.verdict.summary.startswith("On device 0, cuda-gdb shows the kernel scale<float>. The text does not")
    assert found.verdict.remedies[0].action.startswith("Let the program run for some seconds")


@pytest.mark.parametrize(
    "shown, told",
    [
        (FOCUS.format(1) + IN_WAIT_PEER, "On device 1, cuda-gdb shows NCCL's all-gather kernel (ring, simple) in Prim"),
        (NEW, "On device 1, cuda-gdb lists NCCL's all-reduce kernel (ring, LL) as running. The kernel of a collective"),
    ],
)
def test_what_keeps_the_gpu_busy_is_told_beside_the_thread_that_waits_for_it(shown, told):
    said = answer(shown + HOST).verdict.summary
    assert " waits for the GPU in cudaStreamSynchronize, called from main (bench.cu:88). " in said
    assert told in said and "what keeps the GPU busy" not in said


def test_threads_of_the_host_after_one_of_the_gpu():
    first, second = answer(FOCUS.format(0) + HOST), answer(HOST)
    assert first.verdict.summary == second.verdict.summary
    back = "[Switching to Thread 0x7ffff7fa5000 (LWP 5101)]\n" + HOST.partition("\n")[2]
    assert "cuda-gdb shows" not in answer(FOCUS.format(0) + back).verdict.summary


@pytest.mark.parametrize(
    "kernel, words",
    [
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL128", "NCCL's all-reduce kernel (ring, LL128)"),
        ("ncclKernel_AllReduce_TREE_LL_Sum_float", "NCCL's all-reduce kernel (tree, LL)"),
        ("ncclDevKernel_SendRecv", "NCCL's send-recv kernel"),
        ("scale<float>", "the kernel scale<float>"),
    ],
)
def test_kernels_in_words(kernel, words):
    assert kernel_in_words(kernel) == words
