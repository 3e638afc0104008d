"""Where a setter stores its argument, by its code: found where it is certain, and nowhere else."""

import pytest

from gdbext.capture.machine.interface import Instruction
from gdbext.capture.machine.x86_64.stored_argument import stored_at
from gdbext.model.missing import Missing


def code(*lines):
    return [Instruction(0x1000 + 8 * at, text) for at, text in enumerate(lines)]


STACK = ("push   %rbp", "mov    %rsp,%rbp", "sub    $0x20,%rsp")


@pytest.mark.parametrize(
    ("lines", "offset"),
    [
        (("endbr64", "mov    %esi,0x18(%rdi)", "ret"), 0x18),
        (("mov    %esi,0x200(%rdi)", "ret"), 0x200),
        (("push   %r14", "mov    %esi,%r14d", "push   %rbx", "mov    %rdi,%rbx", "sub    $0xb8,%rsp",
          "mov    %esi,0x18(%rdi)", "mov    (%rdi),%rdi", "call   0x2ff0 <_ZN4alog6Logger8setLevelEj>", "ret"), 0x18),
        (("mov    %rdi,%rbx", "mov    %esi,%ebp", "call   0x5 <f>", "mov    %ebp,0x1c(%rbx)", "ret"), 0x1C),
        ((*STACK, "mov    %rdi,-0x8(%rbp)", "mov    %esi,-0xc(%rbp)", "mov    -0x8(%rbp),%rax",
          "mov    -0xc(%rbp),%edx", "mov    %edx,0x18(%rax)", "leave", "ret"), 0x18),
        (("push   %rdi", "push   %rsi", "call   0x5 <f>", "pop    %rcx", "pop    %rdx", "mov    %ecx,0x18(%rdx)"),
         0x18),
        (("add    $0x10,%rdi", "mov    %esi,0x8(%rdi)"), 0x18),
        (("lea    0x10(%rdi),%rax", "sub    $0xfffffffffffffff8,%rax", "mov    %esi,(%rax)"), 0x18),
        (("cmp    $0x8,%esi", "ja     0x1018 <g+24>", "mov    %esi,0x18(%rdi)", "ret"), 0x18),
        (("test   %esi,%esi", "je     0x1018 <g+24>", "ret", "mov    %esi,0x18(%rdi)", "ret"), 0x18),
        (("movups %xmm0,0x40(%rdi)", "mov    %esi,0x18(%rdi)", "movl   $0x0,0x1c(%rdi)", "ret"), 0x18),
    ],
)  # fmt: skip
def test_where_the_argument_goes(lines, offset):
    assert stored_at(code(*lines)) == offset


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ((), "not seen to store"),
        (("ret",), "not seen to store"),
        (("mov    %esi,0x18(%rdi)", "mov    %esi,0x1c(%rdi)", "ret"), "several offsets"),
        (("je     0x1018 <g+24>", "mov    %esi,0x18(%rdi)", "ret", "mov    %esi,0x20(%rdi)", "ret"), "several offsets"),
        (("mov    %esi,0x18(%rdi)", "movl   $0x4,0x18(%rdi)", "ret"), "changes what it stored"),
        (("mov    %esi,0x18(%rdi)", "movups %xmm0,0x10(%rdi)", "ret"), "changes what it stored"),
        (("mov    (%rdi),%rdi", "mov    %esi,0x18(%rdi)", "ret"), "not seen to store"),  # of another object
        (("call   0x5 <f>", "mov    %esi,0x18(%rdi)", "ret"), "not seen to store"),  # the call may have changed both
        (("add    $0x1,%esi", "mov    %esi,0x18(%rdi)", "ret"), "not seen to store"),
        (("mov    %si,0x18(%rdi)", "ret"), "not seen to store"),
        (("mov    %rsi,0x18(%rdi)", "ret"), "not seen to store"),  # a member of 8 bytes
        (("mov    %esi,0x18(%rdi,%rax,4)", "ret"), "not seen to store"),
        (("ret", "mov    %esi,0x18(%rdi)"), "not seen to store"),
        (("call   0x5 <__stack_chk_fail@plt>", "mov    %esi,0x18(%rdi)"), "not seen to store"),
        (("rep stos %al,%es:(%rdi)", "mov    %esi,0x18(%rdi)"), "not seen to store"),
        (("mov    %edi,%ebx", "mov    %esi,0x18(%rbx)"), "not seen to store"),
        ((*STACK, "mov    %rdi,-0x8(%rbp)", "movl   $0x0,-0x4(%rbp)", "mov    -0x8(%rbp),%rax",
          "mov    %esi,0x18(%rax)"), "not seen to store"),
        (("xchg   %rdi,%rsi", "mov    %esi,0x18(%rdi)"), "not seen to store"),
        (("nop",) * 3000, "too long"),
        (("(bad)", "mov", "push", ",", "mov    %fs:0x28,%rax", "jmp    *%rax"), "not seen to store"),
    ],
)  # fmt: skip
def test_what_is_not_certain_is_not_known(lines, reason):
    found = stored_at(code(*lines))
    assert isinstance(found, Missing) and reason in found.reason
