"""Code on the GPU, as cuda-gdb shows it: which device it is on, and what NCCL's functions there wait for."""

from typing import Mapping, Tuple

DEVICE_FOCUS = r"\[(?:Switching focus|Current focus set) to CUDA kernel \d.{0,200}?\bdevice (?P<device>\d{1,4})\b"
"""Said before frames of the device, of the GPU thread that cuda-gdb has selected (cuda-gdb manual, kernel focus)."""

WAVEFRONT = r"\s{0,8}WFs: (?P<wave>\(\d{1,9},\d{1,9},\d{1,9}\)/\d{1,6})"
"""Said before frames of a wavefront by the analysis of rocSHMEM that runs rocgdb: its workgroup, and its number."""

LISTED_KERNEL = (
    r"^\*?\s{0,8}\d{1,6}\s{1,8}(?:-|\d{1,6})\s{1,8}(?P<device>\d{1,4})\s{1,12}-?\d{1,12}\s{1,8}Active\s.{0,300}?"
    r"\b(?P<kernel>nccl(?:Dev)?Kernel\w*)"
)
"""A kernel of NCCL in the table of `info cuda kernels`."""

KERNEL_OF_NCCL = r"(?:void )?nccl(?:Dev)?(?:Kernel|Func)(?:tion)?_\w+?_(?P<algorithm>RING|TREE|COLLNET|NVLS|PAT)"
"""NCCL device/generate.py, older common.h: the algorithm is a word of the name, as the protocol is."""

PROTOCOLS: Mapping[str, str] = {"_LL128": "LL128", "_LL": "LL", "_SIMPLE": "simple"}
"""The first that is in the name."""

PEERS: Mapping[str, str] = {"RING": "its neighbour in the ring", "TREE": "a neighbour in the tree"}
"""Whom a kernel of that algorithm exchanges data with."""

WAITS_FOR_PEER: Tuple[str, ...] = (r"(?:.*::)?(?:waitPeer|waitSend|waitRecv|readLL\w*)(?:<.*>)?$",)
"""Functions that spin until a peer has sent or taken data: NCCL device/prims_simple.h, prims_ll.h, prims_ll128.h."""
