"""ptrace(2), for what gdb itself traces: only gdb's own thread may call it."""

import ctypes

ptrace = ctypes.CDLL(None).ptrace
ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
