"""Lines of drivers and runtimes about a fault of the device, or of how a process may use it."""

from typing import Tuple

from gdbext.knowledge.row_kinds import LogRule

_XID = "NVIDIA Xid catalogue"
RING_TIMEOUT = (
    r"(?:amdgpu.{0,80}|\*ERROR\* .{0,40})\bring (?P<ring>[\w.]{1,30}) timeout"
    r"|radeon.{0,60}\bring (?P<ring2>\d{1,3}) stalled for more than"
)
RESET_BEGINS = (
    r"amdgpu.{0,60}GPU reset begin|\bi915\b.{0,60}Resetting (?:chip|\w{3,5}) "
    r"|\bxe 0000:\S{1,20}.{0,40}(?:GPU|GT\d?:) ?reset"
)
RESET_FAILS = (
    r"(?:amdgpu|\bi915\b|radeon).{0,120}?\b(?P<step>ring \S{1,30} test failed(?: \(-?\d{1,5}\))?|K[CG]Q \w{4,8} failed"
    r"|GPU reset(?:\(\d{1,6}\))? failed|GPU reset end with ret = -\d{1,5}|GPU Recovery Failed|ASIC reset failed"
    r"|Failed to reset (?:chip|engine)|GPU recovery timed out|failed to unmap legacy queue)"
)
RESET_DONE = r"amdgpu.{0,60}GPU reset\(\d{1,6}\) succeeded|\bdevice wedged, but recovered through reset"
"""What a driver prints of work that did not finish, and of the reset that follows."""


def _fault(
    id: str,
    pattern: str,
    means: str,
    source: str,
    confidence: str = "medium",
    wait: str = "cuda-error-throw",
    of_device: bool = False,
    of_kernel: bool = False,
) -> LogRule:
    return LogRule(id, pattern, means, source, "gpu-fault", confidence, wait, of_device=of_device, of_kernel=of_kernel)


RULES: Tuple[LogRule, ...] = (
    _fault(
        "xid",
        r"NVRM: Xid \((?:PCI:)?(?P<bus>[0-9A-Fa-f:.]{4,20})\): (?P<xid>\d{1,5})\b|NVRM: Xid|\bXid \(|\bSXid \(",
        "the NVIDIA kernel driver reported a GPU fault",
        _XID,
        wait="unknown",  # of where the process stands the driver says nothing
        of_device=True,
        of_kernel=True,
    ),
    _fault(
        "gsp-silent",
        r"_kgspIsHeartbeatTimedOut|_kgspLogRpcTimeout|NVRM: .{0,80}Timeout waiting for RPC from GSP",
        "the GPU system processor (GSP) no longer answers the driver",
        "NVIDIA open-gpu-kernel-modules kernel_gsp.c",
        wait="unknown",
        of_device=True,
    ),
    _fault(
        "ecc",
        r"[Uu]ncorrectable (?:ECC|NVLink) error|CUDA_ERROR_ECC_UNCORRECTABLE"
        r"|amdgpu.{0,80}uncorrectable hardware errors? detected",
        "the GPU's memory or link reported an error that cannot be corrected",
        _XID + "; Linux amdgpu_ras.c",
    ),
    _fault(
        "kernel-assert",
        r"device-side assert(?:ion)? triggered|\b(?:cuda|hip)ErrorAssert\b|\bCUDA_ERROR_ASSERT\b|\bCUDA_EXCEPTION_12\b",
        "an assert in a kernel failed; the call that reports it is not the cause",
        "CUDA runtime API, error code 710",
    ),
    _fault(
        "illegal-access",
        r"illegal memory access was encountered|misaligned address|unspecified launch failure"
        r"|Memory access fault by GPU|Invalid __(?:global|shared|local)__ (?:read|write|atomic)"
        r"|\bCUDA_EXCEPTION_\d{1,2}\b|^CUDA Exception: "
        r"|_ERROR_(?:ILLEGAL|MISALIGNED|INVALID_PC|HARDWARE_STACK|LAUNCH_FAILED)"
        r"|Error(?:IllegalAddress|IllegalInstruction|MisalignedAddress|LaunchFailure|HardwareStackError)\b",
        "a kernel failed on the device; the call that reports the failure is usually not its cause",
        "CUDA runtime API, error codes 700-719; ROCm",
    ),
    _fault(
        "queue-aborted",
        r"HSA_STATUS_ERROR_(?:MEMORY_APERTURE_VIOLATION|MEMORY_FAULT|ILLEGAL_INSTRUCTION|EXCEPTION"
        r"|INVALID_PACKET_FORMAT)"
        r"|HW Exception by GPU node|Queue 0x[0-9a-f]{1,16} [Aa]borting with error",
        "the ROCm runtime aborted a queue: a kernel failed on the device",
        "ROCm rocdevice.cpp callbackQueue; ROCR hsa.h",
    ),
    _fault(
        "npu-exception",
        r"(?:aicore|AICore|ai core|AI Core|aivec|vector core|aicpu|AI CPU) (?:exception|execution failed|error)"
        r"|fftsplus (?:aicore|aivector|mix) error",
        "a kernel failed on the NPU",
        "CANN device_error_proc.cc",
    ),
    _fault(
        "xpu-lost",
        r"UR_RESULT_ERROR_DEVICE_LOST|ZE_RESULT_ERROR_DEVICE_LOST|PI_ERROR_DEVICE_LOST",
        "the GPU was lost to the driver",
        "oneAPI Unified Runtime ur_api.h",
    ),
    _fault(
        "gpu-work-timed-out",
        r"amdgpu.{0,80}\bProcess information: process \S.{0,40} pid \d{1,9} thread",
        "work of that process did not finish on the GPU in time, so the GPU or that work hangs",
        "Linux amdgpu_job.c, amdgpu_job_timedout",
        wait="unknown",
        of_kernel=True,
    ),
    _fault(
        "gpu-hang",
        rf"{RING_TIMEOUT}|\bi915\b.{{0,60}}GPU HANG"
        r"|\bxe 0000:\S{1,20}.{0,40}Timedout job|radeon.{0,80}GPU lockup",
        "work did not finish on the GPU in time, so the GPU or that work hangs",
        "Linux amdgpu_job.c, i915_gpu_error.c, xe_guc_submit.c, radeon_fence.c",
        wait="unknown",
        of_kernel=True,
    ),
    _fault(
        "gpu-lost",
        r"NVRM: .{0,80}(?:fallen off the bus|GPU is lost|RmInitAdapter failed|[Tt]imeout after \d+s of waiting for RPC)"
        r"|nvidia.{0,40}GPU has fallen off the bus|Unable to determine the device handle for GPU",
        "the GPU no longer answers its driver",
        "NVIDIA open-gpu-kernel-modules; nvidia-smi",
        wait="",
    ),
    _fault(
        "gpu-does-not-go-on",
        r"nvidia-modeset: .{0,40}(?:Error while waiting for GPU progress|Lost display notification"
        r"|Failed to query display engine)"
        r"|NVRM: .{0,120}(?:GPU (?:is )?(?:not responding|hung)|\bRC watchdog: GPU is probably locked)"
        r"|\bGPU HANG: ecode|\*ERROR\* .{0,80}(?:GPU hang|[Ff]ence fallback timer expired"
        r"|failed to (?:idle|halt) )"
        r"|nouveau.{0,80}(?:channel \S{1,20} killed|failed to idle channel|timeout(?: at|$))"
        r"|\bdrm\b.{0,80}(?:flip_done|commit wait) timed out|Hung? GPU detected|habanalabs.{0,80}is not responding",
        "the driver timed out waiting for the GPU",
        "NVIDIA open-gpu-kernel-modules nvkms; Linux i915, amdgpu, nouveau, drm_atomic_helper.c",
        "low",
        "unknown",
    ),
    LogRule(
        "driver-failed-itself",
        r"NVRM: .{0,80}(?:[Aa]ssert(?:ion)? [Ff]ailed|nvAssert|_issueRpcAndWait|rpcSendMessage failed)",
        "a check in the NVIDIA kernel driver failed",
        "NVIDIA open-gpu-kernel-modules",
    ),
    _fault(
        "gpu-page-fault",
        r"amdgpu.{0,60}\bProcess (?!information)\S.{0,40} pid \d{1,9} thread|amdgpu.{0,60}\bpage fault\b"
        r"|\bMMU\b.{0,40}(?:FAULT|[Ff]ault)\b"
        r"|nouveau.{0,80}\bfault \d\d|Faulty UTCL2 client|\bFAULT_[A-Z_]{3,30}\s{1,3}ACCESS_TYPE_(?:VIRT|PHYS)_",
        "the GPU driver reported a fault in GPU work that a process had submitted",
        "Linux gmc_v*.c, nouveau; MTGPU; NVIDIA Xid catalogue, 31",
        of_kernel=True,
    ),
    _fault(
        "gpu-reset",
        rf"{RESET_BEGINS}|amdkfd.{{0,60}}HW exception",
        "the GPU did not answer, and the kernel driver began to reset it",
        "Linux amdgpu_device.c, amdgpu_job.c",
        wait="",
    ),
    LogRule(
        "gpu-reset-step-failed",
        RESET_FAILS,
        "a step of the GPU's reset failed",
        "Linux amdgpu_device.c, gfx_v*.c, i915 intel_reset.c",
        of_kernel=True,
    ),
    LogRule(
        "gpu-reset-done",
        RESET_DONE,
        "the driver has reset the GPU",
        "Linux amdgpu_device.c, drm_drv.c",
        of_kernel=True,
    ),
    LogRule(
        "nvlink-fabric",
        r"NV_ERR_FABRIC_STATE_OUT_OF_SYNC|NVLink fabric state cached by the driver is out of sync",
        "the driver's view of the NVLink fabric is out of date, so allocating NVLS multicast memory fails (NCCL, "
        "NVSHMEM, torch symmetric memory)",
        "NVIDIA open-gpu-kernel-modules nvstatuscodes.h, mem_multicast_fabric.c",
        "p2p-or-topology",
        of_device=True,
    ),
    LogRule(
        "fork-after-cuda",
        r"Cannot re-?initialize (?:CUDA|HIP|NPU|XPU) in forked subprocess|initialization error.{0,60}fork",
        "torch found that the process was forked after its parent had initialised CUDA",
        "torch/cuda/__init__.py _lazy_init; vllm-project/vllm#12754",
        "fork-after-cuda",
        "high",
        "exited-or-crashed",
    ),
)
