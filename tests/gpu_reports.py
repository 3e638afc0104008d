"""Reports as compute-sanitizer and cuda-memcheck print them: a writer for each of the four generations and for XML.

A   cuda-memcheck                     at 0x.. in FILE:LINE:KERNEL, Host Frame:LIB (FUNCTION + 0x..) [0x..]
B   compute-sanitizer 2020 to 2021.2  at 0x.. in KERNEL, Host Frame:LIB [0x..]
C   2021.3 to 2023.2                  the nearest allocation; a host frame on two lines
D   2023.3 on                         at KERNEL+0x.. in FILE:LINE, Python frames, numbers with commas
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import List

GENERATIONS = "ABCD"
NEAREST = "CD"  # generations that tell the nearest allocation


@dataclass(frozen=True)
class Fault:
    """An access of a kernel that leaves its memory."""

    kernel: str = "void scale<float>(float *, int)"
    file: str = "kernels.cu"
    line: int = 41
    access: str = "write"
    space: str = "global"
    size: int = 4
    thread: str = "(3,0,0)"
    block: str = "(1,0,0)"
    address: int = 0x7F0000009664
    distance: int = 1
    allocation: int = 9665
    function: str = "ParallelGpt<half>::forward"  # of the engine
    python: str = ""  # FILE:LINE of a Python caller, of generation D


def report(fault: Fault, generation: str, mark: str = "=========") -> List[str]:
    """The lines of one report, without the empty one behind it."""
    return [f"{mark} {line}" for line in _lines(fault, generation)]


def _lines(fault: Fault, generation: str) -> List[str]:
    by = f"    by thread {fault.thread} in block {fault.block}"
    bytes_ = "" if generation == "A" else " bytes"
    head = f"Invalid __{fault.space}__ {fault.access} of size {fault.size}{bytes_}"
    address = f"    Address 0x{fault.address:x} is out of bounds"
    near = f"    and is {fault.distance:,} bytes after the nearest allocation at 0x7f0000000000 of size"
    if generation == "A":
        at = f"    at 0x00000250 in /src/{fault.file}:{fault.line}:{fault.kernel}"
        host = [
            "    Saved host backtrace up to driver entry point at kernel launch time",
            "    Host Frame:/lib64/libcuda.so.1 (cuLaunchKernel + 0x2b8) [0x222dc8]",
            f"    Host Frame:./server ({fault.function} + 0x12) [0x29bb07]",
        ]
    elif generation == "B":
        at = f"    at 0x3b0 in {fault.kernel}"
        host = ["    Host Frame:/lib64/libcuda.so.1 [0x222dc8]", "    Host Frame:/opt/libth_transformer.so [0x29bb07]"]
    elif generation == "C":
        at = f"    at 0x3b0 in /src/{fault.file}:{fault.line}:{fault.kernel}"
        host = [
            "    Saved host backtrace up to driver entry point at kernel launch time",
            "    Host Frame:cudaLaunchKernel [0x846eb]",
            "               in /usr/lib/libcudart.so.12",
            f"    Host Frame:{fault.function}(int) [0x29bb07]",
            "               in /opt/libth_transformer.so",
        ]
    else:
        at = f"    at {fault.kernel}+0x70 in {fault.file}:{fault.line}"
        address = f"    Access to 0x{fault.address:x} is out of bounds"
        host = [
            "    Saved host backtrace up to driver entry point at kernel launch time",
            "        Host Frame: cudaLaunchKernel [0x846eb] in libcudart.so.12",
            f"        Host Frame: {fault.function}(int) [0x29bb07] in libth_transformer.so",
        ]
        host += [f"        Host Frame: low_latency_dispatch in {fault.python}"] if fault.python else []
    allocation = f"{fault.allocation:,}" if generation == "D" else f"{fault.allocation}"
    nearest = [f"{near} {allocation} bytes"] if generation in NEAREST else []
    return [head, at, by, address, *nearest, *host]


def log(reports: List[List[str]], errors: int, hidden: int = 0, mark: str = "=========") -> str:
    """A whole log: banner, reports, summary."""
    lines = [f"{mark} COMPUTE-SANITIZER"]
    for one in reports:
        lines += [*one, mark]
    lines.append(f"{mark} ERROR SUMMARY: {errors} errors")
    if hidden:
        lines.append(f"{mark} ERROR SUMMARY: {hidden} errors were not printed. Use --print-limit option to adjust")
    return "\n".join(lines) + "\n"


def xml(fault: Fault, records: int = 1) -> str:
    """What `--xml --save FILE` writes."""
    kernel = fault.kernel.replace("<", "&lt;").replace(">", "&gt;")
    function = fault.function.replace("<", "&lt;").replace(">", "&gt;")
    x, y, z = fault.thread.strip("()").split(",")
    record = f"""  <record>
    <kind>Memcheck</kind><level>Error</level>
    <who><threadIdx><x>{x}</x><y>{y}</y><z>{z}</z></threadIdx><blockIdx><x>1</x><y>0</y><z>0</z></blockIdx></who>
    <what><text>Invalid __{fault.space}__ {fault.access} of size {fault.size} bytes</text><space>{fault.space}</space>
      <size>{fault.size}</size><direction>{fault.access}</direction><error>out of bounds</error>
      <address>0x{fault.address:x}</address></what>
    <where><func>{kernel}</func><path>{fault.file}</path><line>{fault.line}</line><pc>0x70</pc></where>
    <hostStack><saveLocation>kernel launch time</saveLocation>
      <frame><func>cudaLaunchKernel</func><module>/usr/lib/libcudart.so.12</module><pc>0x846eb</pc></frame>
      <frame><func>{function}(int)</func><module>/opt/libth_transformer.so</module><pc>0x29bb07</pc></frame>
    </hostStack>
  </record>
"""
    return '<?xml version="1.0"?>\n<ComputeSanitizerOutput>\n' + record * records + "</ComputeSanitizerOutput>\n"
