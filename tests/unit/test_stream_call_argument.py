"""What a call passed in a register, by the code before it."""

import pytest

from gdbext.capture.machine.interface import Constant, Instruction, Kept
from gdbext.capture.machine.x86_64.call_argument import argument
from gdbext.model.missing import Missing

CALL = "call   0x401050 <cudaStreamSynchronize@plt>"


def code(*lines, call=CALL):
    return [Instruction(0x1000 + 8 * at, text) for at, text in enumerate((*lines, call))]


@pytest.mark.parametrize(
    "lines, found",
    [
        (("mov    %rbx,%rdi",), Kept("rbx")),
        (("mov    0x28(%rbx),%rdi",), Kept("rbx", (0x28,))),
        (("mov    (%r12),%rdi",), Kept("r12", (0,))),
        (("mov    -0x18(%rbp),%rax", "mov    %rax,%rdi"), Kept("rbp", (-0x18,))),
        (("mov    -0x8(%rbp),%rax", "mov    0x18(%rax),%rax", "mov    %rax,%rdi"), Kept("rbp", (-8, 0x18))),
        (("mov    %rbx,%rdi", "mov    $0x5,%esi", "nop", "test   %rax,%rax"), Kept("rbx")),
        (
            ("mov    %rdi,%rbx", "lock addl $0x1,0x300c(%rip)        # 0x1", "mov    0x18(%rdi),%rdi"),
            Kept("rbx", (0x18,)),
        ),
        (("mov    %rsi,-0x20(%rbp)", "mov    %rsi,%rdi"), Kept("rbp", (-0x20,))),
        (("lea    0x10(%rsp),%rdi",), Kept("rsp", (), 0x10)),
        (("lea    -0x40(%rbp),%rax", "mov    %rax,%rdi"), Kept("rbp", (), -0x40)),
        (("lea    0x8(%rbx),%rax", "mov    0x10(%rax),%rdi"), Kept("rbx", (0x18,))),
        (("mov    0x8(%rbx),%rax", "lea    0x10(%rax),%rdi"), Kept("rbx", (8,), 0x10)),
        (("xor    %edi,%edi",), Constant(0)),
        (("mov    $0x2,%edi",), Constant(2)),
        (("movq   $0x1,%rdi",), Constant(1)),
    ],
)
def test_what_can_still_be_read(lines, found):
    assert argument(code(*lines), "cudaStreamSynchronize", "rdi") == found


@pytest.mark.parametrize(
    "lines, reason",
    [
        (("mov    %rbx,%rdi", "mov    %rax,%rbx"), "kept"),
        (("mov    0x28(%rsp),%rdi", "push   %rax"), "kept"),
        (("mov    %rbx,%rdi", "xchg   %rbx,%rcx"), "computed"),
        (("mov    %ebx,%edi",), "computed"),
        (("lea    0x10(%rsp,%rax,8),%rdi",), "computed"),
        (("lea    0x2fd2(%rip),%rdi        # 0x4000",), "computed"),
        (("lea    0x10(%rsp),%rdi", "push   %rax"), "kept"),
        (("mov    $0x0,%eax", "lea    0x8(%rax),%rdi"), "kept"),
        (("mov    (%rax,%rbx,8),%rdi",), "computed"),
        (("cmove  %rbx,%rdi",), "computed"),
        (("mov    %rbx,%rdi", "call   0x1 <other>"), "another call"),
        (("mov    %rbx,%rdi", "jne    0x2000 <f>"), "another call or jump"),
        (("mov    %rax,%rdi",), "was given it itself"),
        (("mov    $0x0,%eax", "mov    0x8(%rax),%rdi"), "kept"),
        (("nop",) * 40, "kept"),
        ((), "was given it itself"),
    ],
)
def test_what_is_not_certain_is_not_known(lines, reason):
    found = argument(code(*lines), "cudaStreamSynchronize", "rdi")
    assert isinstance(found, Missing) and reason in found.reason


@pytest.mark.parametrize(
    "call",
    ["jmp    0x401050 <cudaStreamSynchronize@plt>", "call   *%rax", "call   0x1 <other@plt>", "call   0x401050", "ret"],
)
def test_another_call(call):
    assert isinstance(argument(code("mov    %rbx,%rdi", call=call), "cudaStreamSynchronize", "rdi"), Missing)


@pytest.mark.parametrize(
    "call",
    [
        "callq  0x401050 <cudaStreamSynchronize@plt>",
        "call   0x401050 <cudaStreamSynchronize>",
        "call   *0x2fd2(%rip)        # 0x403ff8 <cudaStreamSynchronize@got.plt>",
        "bnd call 0x401050 <cudaStreamSynchronize@plt>",
    ],
)
def test_ways_of_calling(call):
    assert argument(code("mov    %rbx,%rdi", call=call), "cudaStreamSynchronize", "rdi") == Kept("rbx")


def test_a_jump_into_the_preparation():
    lines = [Instruction(0x1000, "je     0x1010 <f+16>"), Instruction(0x1008, "mov    %rbx,%rdi")]
    lines += [Instruction(0x1010, "nop"), Instruction(0x1018, CALL)]
    assert "jumps" in argument(lines, "cudaStreamSynchronize", "rdi").reason
    assert isinstance(argument([], "cudaStreamSynchronize", "rdi"), Missing)
