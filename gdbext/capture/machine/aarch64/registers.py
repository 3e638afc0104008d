"""The registers of AArch64: struct user_pt_regs (x0-x30, sp, pc, pstate) in asm/ptrace.h; asm/ucontext.h.

The thread pointer is in another register set (NT_ARM_TLS).
"""

from gdbext.capture.machine.interface import Architecture, CallRegisters
from gdbext.knowledge.runtimes import system_calls as known

AARCH64 = Architecture(
    name="aarch64",
    e_machine=183,
    registers=34,
    sp=31,
    pc=32,
    thread_pointer=None,
    signal_sp=52,
    red_zone=128,
    # x8; x0 to x5, of which x0 becomes the result
    call=CallRegisters(number=8, arguments=(0, 1, 2, 3, 4, 5), result=0, negative_outside=False, restart=128),
    # asm-generic/unistd.h
    system_calls={
        22: known.EPOLL_PWAIT, 25: known.FCNTL, 32: known.FLOCK, 56: known.OPENAT, 63: known.READ, 64: known.WRITE,
        65: known.READV,
        66: known.WRITEV, 72: known.PSELECT6, 73: known.PPOLL, 95: known.WAITID, 98: known.FUTEX,
        101: known.NANOSLEEP, 115: known.CLOCK_NANOSLEEP, 128: known.RESTART, 182: known.MQ_TIMEDSEND,
        183: known.MQ_TIMEDRECEIVE, 188: known.MSGRCV, 189: known.MSGSND, 192: known.SEMTIMEDOP, 193: known.SEMOP,
        133: known.SIGSUSPEND, 202: known.ACCEPT,
        206: known.SENDTO, 207: known.RECVFROM, 211: known.SENDMSG, 212: known.RECVMSG, 242: known.ACCEPT4,
        220: known.CLONE, 260: known.WAIT4, 426: known.IO_URING_ENTER, 435: known.CLONE3,
    },
)  # fmt: skip
