"""Which accelerator a rank works on, as far as /proc tells."""

from __future__ import annotations

import re
from typing import Mapping, Optional, Sequence, Tuple

from gdbext.model.text.digits import is_whole

_FAMILIES: Tuple[Tuple[str, str, Tuple[str, ...]], ...] = (
    # name that frameworks use, device file, variables that choose and order devices (the first that is set counts)
    ("npu", r"^/dev/davinci(\d+)$", ("ASCEND_RT_VISIBLE_DEVICES", "ASCEND_VISIBLE_DEVICES")),
    ("cuda", r"^/dev/nvidia(\d+)$", ("CUDA_VISIBLE_DEVICES",)),
    ("cuda", r"^/dev/kfd()$", ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")),
)


def device_of(local_rank: Optional[int], environ: Mapping[str, str], open_files: Sequence[str]) -> Optional[str]:
    """Text like `cuda:1`, or `cuda:1 (GPU 3)` where the process counts other than the host; None when unknown.

    The first number is what the process itself calls the device, as far as it follows the custom "device = local
    rank". A CUDA process opens the file of every GPU it may see: files decide only when there is just one.
    """
    for name, pattern, variables in _FAMILIES:
        opened = [found.group(1) for found in (re.match(pattern, path) for path in open_files) if found]
        visible = next((environ[variable] for variable in variables if environ.get(variable)), None)
        if opened or visible is not None:
            return _device(name, local_rank, visible, sorted(set(opened)))
    return None


def _device(name: str, local_rank: Optional[int], visible: Optional[str], opened: Sequence[str]) -> Optional[str]:
    devices = [part.strip() for part in visible.split(",") if part.strip()] if visible else []
    if len(devices) == 1:
        return _text(name, 0, devices[0])
    if local_rank is not None and local_rank < len(devices):
        return _text(name, local_rank, devices[local_rank])
    only = opened[0] if len(opened) == 1 else ""
    if local_rank is not None and not devices:
        return _text(name, local_rank, only or str(local_rank))
    return _text(name, devices.index(only) if only in devices else int(only), only) if only else None


def _text(name: str, index: int, host: str) -> str:
    """`host` is the number of the device on the host, or a UUID."""
    if host == str(index):
        return f"{name}:{index}"
    return f"{name}:{index} (GPU {host})" if is_whole(host) else f"{name}:{index} ({host[:12]})"
