"""Errors of the CUDA runtime and driver: their numbers mean the same in both.

`prints` is what cudaGetErrorString of cudart 12.9.79 returns. Sticky ones are those of which the header says that the
process must be started again, and the two uncorrectable hardware errors.
"""

from functools import partial
from typing import Tuple

from gdbext.knowledge.errors.error_row_kinds import ErrorRow

_row = partial(ErrorRow, source="driver_types.h 13.5")
_OURS = "driver_types.h 13.5, which does not call it sticky: taken so, as the hardware failed"

BLOCKING = "CUDA_LAUNCH_BLOCKING=1 makes the failing launch itself report it (not inside CUDA graphs)"
SANITIZER = "compute-sanitizer --tool memcheck on a small case names the kernel, the thread and the address"
CORE = "CUDA_ENABLE_COREDUMP_ON_EXCEPTION=1 writes a GPU core with the failing kernel and line; cuda-gdb opens it"
XID = "dmesg -T | grep Xid, on the host: the kernel driver's line shows whether the program or the hardware failed"
_KERNEL_FAULT = (BLOCKING, SANITIZER, CORE)
_HARDWARE = (
    XID,
    "nvidia-smi -q -d ECC,ROW_REMAPPER (before Ampere: PAGE_RETIREMENT); take the GPU out of service if the error "
    "recurs",
)

_sticky = partial(_row, sticky=True)
_kernel_fault = partial(_sticky, steps=_KERNEL_FAULT)

CUDA: Tuple[ErrorRow, ...] = (
    _row(0, "no error", prints="no error"),
    _row(
        1,
        "an argument of the call is out of range or does not fit the others",
        causes=(
            "a size or shape of 0 or below after a wrong batch or sequence length",
            "a pointer that belongs to another device, or was freed",
            "too much dynamic shared memory without cudaFuncSetAttribute",
        ),
        steps=("look at the arguments of the call in the frame with the check",),
        prints="invalid argument",
    ),
    _row(
        2,
        "the device (or the host, for pinned memory) does not have enough free memory",
        causes=(
            "KV cache sized for an empty GPU while another process or rank uses it too",
            "a longer sequence or larger batch than the start-up profiling saw",
            "fragmentation of the caching allocator; CUDA graphs and lazy modules take memory late",
        ),
        steps=(
            "nvidia-smi: see which other processes use this GPU",
            "lower the engine's memory fraction, maximum batch or sequence length",
        ),
        prints="out of memory",
    ),
    _row(
        3,
        "the driver could not be initialised, or was used in a process forked after CUDA was initialised",
        causes=("fork after CUDA was used: workers must be spawned", "a broken driver installation"),
        steps=("start workers with spawn (VLLM_WORKER_MULTIPROC_METHOD=spawn, torch.multiprocessing spawn)",),
        prints="initialization error",
    ),
    _row(
        4,
        "CUDA is used while the process ends: the driver is being unloaded",
        causes=("destructors of static objects free device memory after main", "a thread runs on during exit"),
        steps=("release device objects before main returns; it is seldom the first error: look further up in the log",),
        prints="driver shutting down",
    ),
    _row(
        9,
        "grid or block dimensions that the device does not allow",
        causes=("a grid dimension of 0 (an empty batch) or above 65535 in y or z", "more than 1024 threads a block"),
        steps=("look at the shapes from which the launch computes its grid",),
        prints="invalid configuration argument",
    ),
    _row(
        35,
        "the installed driver is older than the CUDA runtime needs, or no driver is installed",
        causes=("a container without the driver's libraries (no --gpus)", "an image newer than the host's driver"),
        steps=("nvidia-smi shows the driver's release; use an image for it or newer drivers, or --gpus all",),
        prints="CUDA driver version is insufficient for CUDA runtime version",
    ),
    _row(
        36,
        "the installed driver is older than this call of the CUDA runtime needs",
        causes=("an image or a wheel whose CUDA release is newer than the host's driver",),
        steps=(
            "nvidia-smi shows the newest CUDA release that the driver supports: update the driver, or use a build for "
            "that release",
        ),
        prints="API call is not supported in the installed CUDA driver",
    ),
    _row(
        46,
        "the device is busy: it is in exclusive mode, or in a state that takes no new context",
        causes=("another process holds it in EXCLUSIVE_PROCESS mode", "a dying process still has its context"),
        steps=(
            "nvidia-smi -q -d COMPUTE shows the mode, nvidia-smi the processes that use the GPU",
            "as root, nvidia-smi -i GPU -c DEFAULT ends the exclusive mode",
        ),
        prints="CUDA-capable device(s) is/are busy or unavailable",
    ),
    _row(
        98,
        "the kernel does not exist for this device",
        causes=("the library was built without this GPU's architecture",),
        steps=("cuobjdump --list-elf on the library shows its architectures; build with the right one",),
        prints="invalid device function",
    ),
    _row(
        100,
        "no GPU is visible to this process",
        causes=("CUDA_VISIBLE_DEVICES is empty or wrong", "a container without GPUs", "no device files in /dev"),
        steps=("run nvidia-smi in the same container; look at CUDA_VISIBLE_DEVICES of the rank",),
        prints="no CUDA-capable device is detected",
    ),
    _row(
        101,
        "a device number that this process does not have",
        causes=(
            "the local rank is used as device number although CUDA_VISIBLE_DEVICES leaves only one",
            "more ranks than GPUs",
        ),
        steps=("compare the local rank, CUDA_VISIBLE_DEVICES and the number of GPUs",),
        prints="invalid device ordinal",
    ),
    _row(
        201,
        "no context is current on this thread, or it was destroyed",
        causes=("a thread that never called cudaSetDevice", "a primary context that was reset"),
        steps=("call cudaSetDevice and (before CUDA 12) cudaFree(0) at the start of each thread",),
        prints="invalid device context",
    ),
    _row(
        209,
        "the library has no code for this GPU",
        causes=("built for other architectures (TORCH_CUDA_ARCH_LIST, CMAKE_CUDA_ARCHITECTURES)",),
        steps=("build with this GPU's compute capability, or with PTX of an older one",),
        prints="no kernel image is available for execution on the device",
    ),
    ErrorRow(
        214,
        "an ECC error of GPU memory that could not be corrected",
        _OURS,
        sticky=True,
        causes=("failing memory of this GPU",),
        steps=_HARDWARE,
        prints="uncorrectable ECC error encountered",
    ),
    _row(
        217,
        "these two GPUs cannot reach each other's memory",
        causes=("custom all-reduce switched on without NVLink or PCIe peer access",),
        steps=("nvidia-smi topo -p2p r; switch custom all-reduce off",),
        prints="peer access is not supported between these two devices",
    ),
    ErrorRow(
        220,
        "an NVLink error that could not be corrected",
        _OURS,
        sticky=True,
        causes=("a bad link or a GPU that was reset while the job ran",),
        steps=(XID, "nvidia-smi nvlink -e"),
        prints="uncorrectable NVLink error detected during the execution",
    ),
    _row(
        222,
        "PTX from a toolchain newer than this driver can compile",
        causes=("an image newer than the host's driver",),
        steps=("use a newer driver, or a build with machine code for this GPU",),
        prints="the provided PTX was compiled with an unsupported toolchain.",
    ),
    _sticky(
        226,
        "an access to a peer GPU's memory failed, or the hardware contained an error",
        causes=("a peer rank died and its memory went with it", "failing hardware"),
        steps=_HARDWARE,
        prints="Invalid access of peer GPU memory over nvlink or a hardware error",
    ),
    _row(
        304,
        "a call of the operating system failed inside the driver",
        causes=("memlock or file limits of the container", "missing rights for IPC between containers"),
        steps=("check the limits of the rank: cat /proc/PID/limits; docker --ulimit memlock=-1 --ipc=host",),
        prints="OS call failed or operation not supported on this OS",
    ),
    _row(
        400,
        "a stream, event or other handle that is not valid here",
        causes=("a stream of another device than the current one", "a handle that was destroyed, or never created"),
        steps=("look at the handle's owner and at the device that is current on this thread",),
        prints="invalid resource handle",
    ),
    _row(
        600,
        "the work is not finished yet: a normal result of a query, not an error",
        causes=("a query whose result is checked like an error",),
        prints="device not ready",
    ),
    _kernel_fault(
        700,
        "a kernel read or wrote an address that it may not access",
        causes=(
            "an index beyond a tensor: token ids, block tables and slots of the KV cache, expert ids",
            "memory that was freed or moved while a kernel on another stream still used it",
            "a stale pointer inside a CUDA graph",
        ),
        prints="an illegal memory access was encountered",
    ),
    _row(
        701,
        "the kernel needs more registers or shared memory than a block can have",
        causes=("a debug build of a kernel", "a block size chosen for another GPU"),
        steps=("use fewer threads a block, or __launch_bounds__",),
        prints="too many resources requested for launch",
    ),
    _sticky(
        702,
        "a kernel ran longer than the limit of this device",
        causes=("a GPU that drives a display", "a kernel that waits for a peer that never arrives"),
        steps=("nvidia-smi -q shows whether a display is attached", "gdbext diagnose on all ranks"),
        prints="the launch timed out and was terminated",
    ),
    _row(
        704,
        "peer access was enabled before: mostly harmless",
        causes=("two libraries of one process both enable it",),
        steps=("the caller should take it as success and clear it with cudaGetLastError",),
        prints="peer access is already enabled",
    ),
    _row(
        709,
        "the context of this thread was destroyed",
        causes=("cudaDeviceReset or process end while a thread still works",),
        steps=("look for the thread that tears down first",),
        prints="context is destroyed",
    ),
    _sticky(
        710,
        "an assert in a kernel failed",
        causes=("an index out of range in embedding or gather (token id beyond the vocabulary)",),
        steps=("the rank's stdout has the assert's text, block and thread", BLOCKING, CORE),
        prints="device-side assert triggered",
    ),
    _kernel_fault(714, "the GPU's stack of a kernel is damaged", prints="hardware stack error"),
    _kernel_fault(
        715,
        "a kernel ran an instruction that does not exist",
        causes=("a damaged code object or a compiler fault", "a trap in a kernel of the library"),
        prints="an illegal instruction was encountered",
    ),
    _kernel_fault(
        716,
        "a kernel used an address that is not aligned for the type of the access",
        causes=("a vectorised load (float4, half8) from a slice with an odd offset",),
        prints="misaligned address",
    ),
    _kernel_fault(
        717,
        "an instruction for shared or local memory got an address of another kind",
        prints="operation not supported on global/shared address space",
    ),
    _kernel_fault(
        718,
        "a kernel jumped to an address that has no code",
        causes=("a damaged function pointer or stack",),
        prints="invalid program counter",
    ),
    _sticky(
        719,
        "a kernel failed, and no other error (700, 710, ...) fits: mostly a bad pointer or access beyond shared memory",
        steps=(*_KERNEL_FAULT, XID),
        prints="unspecified launch failure",
    ),
    _row(
        720,
        "a cooperative launch with more blocks than fit the GPU at once",
        causes=("MPS or another process uses part of the GPU", "a grid computed for a larger GPU"),
        steps=("cudaOccupancyMaxActiveBlocksPerMultiprocessor returns how many fit",),
        prints="too many blocks in cooperative launch",
    ),
    _kernel_fault(721, "a kernel ended without releasing its tensor memory"),
    _row(
        801,
        "this GPU, driver or vGPU profile does not support the call",
        causes=("memory pools (cudaMallocAsync), peer access or managed memory on a vGPU or an older GPU",),
        prints="operation not supported",
    ),
    _row(
        802,
        "the system is not ready: no CUDA call works yet, usually because nvidia-fabricmanager does not run (NVSwitch)",
        causes=("nvidia-fabricmanager is stopped or of another release than the driver",),
        steps=(
            "systemctl status nvidia-fabricmanager; if it does not run: systemctl start nvidia-fabricmanager, then "
            "restart the process (to restart a running one may end other jobs on this host)",
            "compare the release of nvidia-fabricmanager with the driver's (nvidia-smi)",
        ),
        prints="system not yet initialized",
    ),
    _row(
        803,
        "the kernel driver and libcuda have mismatched releases",
        causes=("the driver was updated and the host not rebooted", "libcuda of the image shadows the host's"),
        steps=("compare cat /proc/driver/nvidia/version with ldconfig -p | grep libcuda, in the container",),
        prints="system has unsupported display driver / cuda driver combination",
    ),
    _sticky(
        810,
        "the MPS server ended this client",
        causes=("another client of the same server had a fatal error",),
        steps=(
            "look for the client that failed first: server.log in CUDA_MPS_LOG_DIRECTORY (default /var/log/nvidia-mps)",
        ),
        prints="the MPS client has been terminated by the server",
    ),
    _row(
        900,
        "this call is not allowed while the stream is being captured",
        causes=("a synchronisation, allocation or debug check inside a CUDA graph capture",),
        steps=("switch debug checks off while capturing, or run eagerly (vLLM: --enforce-eager)",),
        prints="operation not permitted when stream is capturing",
    ),
    _row(
        901,
        "an earlier call spoilt the capture",
        steps=("look at the first error during the capture",),
        prints="operation failed due to a previous error during capture",
    ),
    _row(
        906,
        "work on the legacy default stream while a blocking stream is being captured",
        causes=("a library that uses stream 0, called during capture",),
        steps=("give the library the capturing stream, or capture on a non-blocking one",),
        prints="operation would make the legacy stream depend on a capturing blocking stream",
    ),
    _sticky(911, "an error outside CUDA, in an object that CUDA waits for", steps=(XID,)),
    _row(
        999,
        "the driver failed and reports no reason",
        sticky=None,
        causes=("a driver that was updated under the process", "a GPU that fell off the bus"),
        steps=(
            XID,
            "after a driver update: restart the process; if it fails again, reload the driver or reboot",
            "in a container, or after suspend: check that /dev/nvidia-uvm exists and opens",
        ),
        prints="unknown error",
    ),
)
"""The errors that somebody has met in an inference engine. All others have a name in `numbers`."""
