"""What the kernel's log and stacks tell of a task beside its wait: that it ends, and how long it was blocked."""

from dataclasses import dataclass
from typing import Tuple

from gdbext.knowledge.frames.system.linux_kernel import KILLED

HUNG = r".*INFO: task \S.{0,60}?:(?P<tid>\d{1,9}) blocked for more than (?P<seconds>\d{1,9}) seconds"
"""The line of the kernel's watchdog (kernel/hung_task.c)."""

_EXITS = r"(?:do_exit|do_group_exit|exit_(?:files|mm|task_work|sem|shm|fs|notify|signals))(?:\.\w+)*$"
"""What only a task runs that ends (kernel/exit.c); exec ends an address space as well."""
_BY_SIGNAL = "by a signal, or by the exit of another thread), so kill -9 changes nothing"


@dataclass(frozen=True)
class Ending:
    """What a task does that ends something, where each pattern matches a function on its stack."""

    through: Tuple[str, ...]
    does: str
    signals: bool = False  # it has got a fatal signal


ENDINGS: Tuple[Ending, ...] = (
    Ending((KILLED, _EXITS), f"is already exiting (killed {_BY_SIGNAL}", signals=True),
    Ending((KILLED,), f"is already being killed ({_BY_SIGNAL}", signals=True),
    Ending((_EXITS,), "is already exiting"),
    Ending(
        (r"(?:drm|kfd|uvm|nvidia(?:_\w+)?|nvkms)_(?:release|close)(?:\.\w+)*$",),
        "is closing a file of the GPU driver",
    ),
    Ending((r"filp_close(?:\.\w+)*$",), "is closing a file"),
)
"""The first that fits counts."""

HOLDER_OPEN = "The text does not show which task holds {lock}"
IN_DRIVER = "{others} {are} inside the GPU driver"
"""Who may hold it, as far as the stacks tell."""
