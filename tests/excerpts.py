"""Excerpts of files by their paths, a file that is worth one, and requests to a batch gdb without any."""

import subprocess

from gdbext.capture.symbols import excerpt
from gdbext.safe_open.kept_open_files import Shelf


def opened(path):
    return Shelf().open(str(path))


def parts_of(path, *arguments, **named):
    """The excerpt of a file; None where the file itself is better, or none can be made."""
    return excerpt.look(opened(path), *arguments, **named).parts


def weight_of(path):
    """Bytes of it that gdb would go through."""
    return excerpt.look(opened(path), []).symbol_bytes


def whole(copy, files):
    """The `files` and `modules` of a request in which gdb gets every file as it is."""
    rows = [
        {"path": file.opened.link, "bias": file.bias, "name": file.path, "program": file.path == copy.exe}
        for file in files
        if file.opened
    ]
    links = {file.path: file.opened.link for file in files if file.opened}
    modules = [(one.start, one.end, one.offset, one.file, links.get(one.file)) for one in copy.maps if one.is_file]
    return {"files": rows, "modules": modules}


FUNCTION = """.globl {name}
.type {name}, @function
{name}: .cfi_startproc
push %rbp
mov %rsp, %rbp
lea 1(%rdi), %eax
pop %rbp
ret
.cfi_endproc
.size {name}, . - {name}
"""


def compiled(folder, *flags):
    """A library with more symbols than are worth reading whole; the assembler takes a tenth of the compiler's time."""
    source = folder / "many.s"
    names = (f"function_with_a_rather_long_name_{number}" for number in range(30000))
    source.write_text(".text\n" + "".join(FUNCTION.format(name=name) for name in names))
    library = folder / "libmany.so"
    subprocess.run(["gcc", "-shared", *flags, "-o", library, source], check=True)
    return str(library)
