"""The numbers of the system calls that mean something to us, in the model and in what is saved of it.

They are those of x86-64 (arch/x86/entry/syscalls/syscall_64.tbl). Another machine's are translated where they are read:
`Architecture.system_calls` (capture/machine).
"""

READ, WRITE, READV, WRITEV = 0, 1, 19, 20
ACCEPT, ACCEPT4, SENDTO, RECVFROM, SENDMSG, RECVMSG = 43, 288, 44, 45, 46, 47
POLL, SELECT, PPOLL, PSELECT6, EPOLL_WAIT, EPOLL_PWAIT = 7, 23, 271, 270, 232, 281
WAIT4, WAITID = 61, 247
CLONE, VFORK, CLONE3 = 56, 58, 435
OPEN, OPENAT = 2, 257
IO_URING_ENTER = 426
FCNTL, FLOCK = 72, 73
FUTEX = 202
MQ_TIMEDSEND, MQ_TIMEDRECEIVE = 242, 243
SEMOP, SEMTIMEDOP, MSGSND, MSGRCV = 65, 220, 69, 70
NANOSLEEP, CLOCK_NANOSLEEP = 35, 230
PAUSE, SIGSUSPEND = 34, 130
RESTART = 219
"""restart_syscall, which a call with a time-out becomes after it was interrupted."""

FOR_FILES = frozenset(
    (
        READ,
        WRITE,
        READV,
        WRITEV,
        ACCEPT,
        ACCEPT4,
        SENDTO,
        RECVFROM,
        SENDMSG,
        RECVMSG,
        EPOLL_WAIT,
        EPOLL_PWAIT,
        FCNTL,
        FLOCK,
    )
    + (IO_URING_ENTER, MQ_TIMEDSEND, MQ_TIMEDRECEIVE)
)
"""Those that may wait, and whose first argument is a descriptor."""

FUNCTIONS = {
    **{READ: "read", WRITE: "write", READV: "readv", WRITEV: "writev", ACCEPT: "accept", ACCEPT4: "accept4"},
    **{SENDTO: "sendto", RECVFROM: "recvfrom", SENDMSG: "sendmsg", RECVMSG: "recvmsg", POLL: "poll", SELECT: "select"},
    **{PPOLL: "ppoll", PSELECT6: "pselect", EPOLL_WAIT: "epoll_wait", EPOLL_PWAIT: "epoll_pwait", WAIT4: "wait4"},
    **{WAITID: "waitid", FUTEX: "futex_wait", NANOSLEEP: "nanosleep", CLOCK_NANOSLEEP: "clock_nanosleep"},
}
"""What the C library calls those that may wait."""
