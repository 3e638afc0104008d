"""The registers of x86-64: struct user_regs_struct in sys/user.h, asm/sigcontext.h, the AMD64 supplement of the ABI."""

from gdbext.capture.machine.interface import Architecture, CallRegisters, GdbRegisters, TimerCalls, UnwindRegisters

ARGUMENTS = ("rdi", "rsi", "rdx", "rcx", "r8", "r9")
"""Of functions (System V ABI, AMD64 supplement, 3.2.3)."""

X86_64 = Architecture(
    name="x86_64",
    e_machine=62,
    registers=27,
    sp=19,
    pc=16,
    thread_pointer=21,
    signal_sp=18,
    red_zone=128,
    # orig_rax; rdi, rsi, rdx, r10, r8, r9; rax; rcx
    call=CallRegisters(
        number=15, arguments=(14, 13, 12, 7, 9, 8), result=10, negative_outside=True, restart=219, pc_too=11
    ),
    # cs, ss, and no base of ds and es (arch/x86/include/asm/segment.h)
    fixed=((17, 0x33), (20, 0x2B), *((number, 0) for number in (21, 22, 23, 24))),
    address_bits=47,
    # struct pthread: behind a tcbhead_t of 704 bytes and a list node (nptl/descr.h, glibc 2.10 to 2.36)
    glibc_tid=0x2D0,
    # figure 3.36: rbp, rsp, the return address
    unwind=UnwindRegisters(frame=6, stack=7, return_address=16, below_frame=-8, alignment=16, frame_word=4),
    gdb=GdbRegisters(
        arguments=ARGUMENTS,
        kept=("rbx", "rbp", "r12", "r13", "r14", "r15"),
        stack="rsp",
        call_number="orig_rax",
        call_arguments=("rdi", "rsi", "rdx", "r10", "r8", "r9"),
        call_result="rax",
        thread_pointer="fs_base",
    ),
    timers=TimerCalls(create=222, settime=223, delete=226),
)
