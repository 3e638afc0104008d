"""The notes of core files, for who reads them (capture/cores/core_notes.py) and who writes them
(capture/cores/minicore.py).

sys/procfs.h (elf_prstatus, elf_prpsinfo), core(5) for NT_FILE; 64-bit Linux, the same on every architecture we know but
for the registers.
"""

from struct import Struct

NT_PRSTATUS, NT_PRPSINFO, NT_AUXV, NT_FILE, NT_SIGINFO = 1, 3, 6, 0x46494C45, 0x53494749
PRSTATUS_HEAD = Struct("<iiihxxQQiiii64x")  # signal, code, errno, cursig, pending, held, pid, ppid, pgrp, sid
PRSTATUS_TAIL = Struct("<ixxxx")  # behind the registers: fpvalid
PRPSINFO = Struct("<bbbbxxxxQIIiiii16s80s")
FILES_HEAD = Struct("<QQ")  # number of mappings, bytes of a page
FILES_ROW = Struct("<QQQ")  # start, end, offset in pages; behind them all, their names
