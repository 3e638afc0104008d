"""What the unwind tables of the target's files say of an address; they stay where all symbols are stripped."""

from __future__ import annotations

import struct
from typing import Optional

from gdbext.capture.elf.reader import ElfSymbols
from gdbext.capture.elf.unwind_entries import Entry, UnwindTable
from gdbext.inside_gdb.base.memory import TargetMemory
from gdbext.inside_gdb.base.modules import Modules
from gdbext.safe_open.kept_open_files import Shelf


def unwind_entry(memory: TargetMemory, modules: Modules, pc: int) -> Optional[Entry]:
    """The entry of the function that an address lies in, with addresses as they are in the target."""
    path, address = modules.find(pc)
    if path is None or address is None or not path.startswith("/"):
        return None
    try:
        file = Shelf().open(memory.root + path)
        with file.stream() as stream, file.mapped() as data:
            entry = UnwindTable(data, ElfSymbols(stream).sections).entry(address)
    except (OSError, ValueError, struct.error):
        return None
    if entry is None:
        return None
    sites = None if entry.call_sites is None else entry.call_sites + pc - address
    return entry._replace(start=entry.start + pc - address, call_sites=sites)
