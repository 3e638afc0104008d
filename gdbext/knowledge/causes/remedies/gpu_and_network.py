"""Remedies of faults of a GPU, its driver, and the links between GPUs and hosts."""

from typing import Tuple

from gdbext.knowledge.causes.remedies.remedy_constants import AFTER_HANG, SANITIZER
from gdbext.knowledge.frames.system.linux_kernel import (
    AMD_MODULES,
    INTEL_MODULES,
    KERNEL,
    NVIDIA_MODULES,
    OTHER_MODULES,
)
from gdbext.knowledge.row_kinds import RemedyRule

_OF_ROCM = (
    r"Agent handle: 0x|\bhip(?:Error|[A-Z]\w+\()|\bHIP\b|\bHSA_|\bROCm\b|\bamdgpu\b|[Mm]emory access fault by GPU node"
)
"""Words of AMD's runtime in a line about a fault."""

_NO_SIGNAL = "no signal ends a thread that sleeps inside the driver: usually only a reboot helps"
_HUNG_TASKS = "Linux kernel/hung_task.c; Linux drivers/gpu/drm"

REMEDIES: Tuple[RemedyRule, ...] = (
    RemedyRule(
        "gpu-fault",
        "Check the values that the assert tests (usually indices: token ids, labels, positions); run once with "
        "CUDA_LAUNCH_BLOCKING=1 to see the Python line that launched the kernel",
        "the log line with the word Assertion names the kernel's source line and the condition that failed",
        "CUDA runtime API, error code 710; CUDA programming guide, assertion",
        rules=("kernel-assert",),
        reported=(),
    ),
    RemedyRule(
        "gpu-fault",
        "Run a small reproducer under compute-sanitizer, which names the kernel and the source line: gdbext run "
        "--sanitizer -- COMMAND",
        "the call that reports an illegal access is usually not the one that made it",
        SANITIZER,
        rules=("illegal-access",),
        reported=(),
        not_line=_OF_ROCM,
    ),
    RemedyRule(
        "gpu-fault",
        "Run a small reproducer with AMD_SERIALIZE_KERNEL=3, so that the failing call is the one that caused the "
        "fault; or run it under rocgdb, which stops in the faulty kernel",
        "the call that reports an illegal access is usually not the one that made it",
        "ROCm documentation, HIP debugging",
        rules=("illegal-access",),
        line=_OF_ROCM,
    ),
    RemedyRule(
        "gpu-fault",
        "Run nvidia-bug-report.sh, reset the GPU (nvidia-smi --gpu-reset -i N) or reboot, and update the driver; if "
        "it recurs, load the nvidia module with NVreg_EnableGpuFirmware=0 (no GSP firmware)",
        "the driver asks the GPU's system processor (GSP) for nearly everything: after one timeout all calls wait",
        "NVIDIA Xid catalogue, 119 and 120; NVIDIA driver README, GSP firmware",
        rules=("xid", "gsp-silent"),
        line=r"Timeout waiting for RPC from GSP|Xid[^\n]{0,60}: (?:119|120),",
        reported=(),
    ),
    RemedyRule(
        "gpu-fault",
        "Read the GPU driver's errors on the host, the earliest one first: dmesg -T | grep -iE "
        "'amdgpu|nvrm|xid|i915|nouveau|mtgpu'",
        "the first error names what failed; a reset is its effect",
        "Linux drivers/gpu/drm; NVIDIA Xid catalogue",
        rules=(
            "xid",
            "ecc",
            "gpu-page-fault",
            "queue-aborted",
            "gpu-does-not-go-on",
            "gpu-lost",
            "gsp-silent",
        ),
        reported=(),
    ),
    RemedyRule(
        "gpu-fault",
        AFTER_HANG,
        "a driver resets a GPU that hangs; the reset ends all work on it, and where it fails only a reboot helps",
        "Linux drivers/gpu/drm, amdgpu_device.c, amdgpu_device_gpu_recover",
        rules=("gpu-work-timed-out", "gpu-hang", "gpu-reset"),
        reported=(),
    ),
    RemedyRule(
        "gpu-fault",
        "Read the driver's error on the host (dmesg -T | grep -iE 'xid|nvrm|amdgpu'); for an illegal access on an "
        "NVIDIA GPU, run a reproducer under compute-sanitizer: gdbext run --sanitizer -- COMMAND",
        "the driver's error tells whether the program, the memory or the bus failed",
        "NVIDIA Xid catalogue",
        not_rules=("kernel-assert", "illegal-access", "gpu-work-timed-out", "gpu-hang", "gpu-reset"),
        reported=(),
    ),
    RemedyRule(
        "gpu-fault",
        "Read the driver's error on the host: dmesg -T | grep -iE 'xid|nvrm|amdgpu'",
        "it tells whether the program, the memory or the bus failed",
        "NVIDIA Xid catalogue",
        rules=("illegal-access",),
        reported=(),
    ),
    RemedyRule(
        "gpu-fault",
        "Check the index of the access at the line of the first report; if it names no line, build with -lineinfo",
        "the first report shows the invalid access; errors of the API and of other ranks follow from it",
        SANITIZER,
        reported=("invalid-access", "device-fault"),
    ),
    RemedyRule(
        "driver-bug",
        "Find the GPU driver's first error above this stack in the kernel log (dmesg -T | grep -E 'NVRM|Xid'): the "
        "number of an Xid tells what failed",
        "no signal ends a thread that sleeps inside the driver, and nvidia-smi --gpu-reset refuses while a process "
        "uses the GPU: usually only a reboot helps",
        "Linux kernel/hung_task.c; NVIDIA GPU memory error management, recovery actions",
        module=KERNEL,
        driver=NVIDIA_MODULES,
    ),
    RemedyRule(
        "driver-bug",
        "Find the GPU driver's first error above this stack in the kernel log (dmesg -T | grep -E 'amdgpu|kfd|radeon'):"
        " a ring timeout, a page fault or a GPU reset tells what failed",
        _NO_SIGNAL,
        _HUNG_TASKS,
        module=KERNEL,
        driver=AMD_MODULES,
    ),
    RemedyRule(
        "driver-bug",
        "Find the GPU driver's first error above this stack in the kernel log (dmesg -T | grep -E 'i915|xe 0000|drm'): "
        "a GPU hang or an engine reset tells what failed",
        _NO_SIGNAL,
        _HUNG_TASKS,
        module=KERNEL,
        driver=INTEL_MODULES,
    ),
    RemedyRule(
        "driver-bug",
        "Find the GPU driver's first error above this stack in the kernel log (dmesg -T)",
        _NO_SIGNAL,
        _HUNG_TASKS,
        module=KERNEL,
        driver=OTHER_MODULES,
    ),
    RemedyRule(
        "driver-bug",
        "Run without profilers and metrics that use CUPTI (nsys, torch.profiler, DCGM profiling), or update the driver",
        "the locks belong to the driver and to CUPTI",
        "pytorch/pytorch#60158",
        kinds=("mutex",),
    ),
    RemedyRule(
        "network-transport",
        "Look at the devices of this host (ibv_devinfo) and leave out the one that fails: NCCL_IB_HCA=^DEVICE",
        "NCCL uses every device that it finds, unless it is told otherwise",
        "NCCL user guide, NCCL_IB_HCA",
        rules=("network-device",),
    ),
    RemedyRule(
        "network-transport",
        "List the interfaces of each host (ip -br addr) and set NCCL_SOCKET_IFNAME to the one that connects all hosts",
        "a wrong interface has no route to the peers",
        "NCCL user guide, NCCL_SOCKET_IFNAME",
        rules=("no-interface", "unreachable"),
    ),
    RemedyRule(
        "network-transport",
        "Compare the network plugin version (NCCL_DEBUG=INFO prints it) and the libfabric version (fi_info "
        "--version) on all hosts; run once with NCCL_NET=Socket to see whether the plugin is the problem",
        "the plugin, not NCCL, opens the device; it fails where its library or driver does not fit",
        "aws-ofi-nccl README; NCCL user guide, NCCL_NET",
        rules=("net-plugin",),
    ),
    RemedyRule(
        "network-transport",
        "Check that libfabric sees the device: fi_info -p efa",
        "a device that libfabric does not list cannot be opened by the plugin either",
        "libfabric fi_info(1)",
        rules=("net-plugin",),
    ),
    RemedyRule(
        "network-transport",
        "Run once with NCCL_NET_GDR_LEVEL=LOC (UCX: UCX_IB_GPU_DIRECT_RDMA=n). If it then works: load "
        "nvidia_peermem, or update driver and network plugin; else raise the limit of locked memory (ulimit -l)",
        "the network card reads GPU memory only after a kernel module has registered it; no cable causes this",
        "NCCL user guide, NCCL_NET_GDR_LEVEL; UCX documentation",
        rules=("rdma-memory",),
    ),
    RemedyRule(
        "network-transport",
        "Compare both ends: the GID index (show_gids; NCCL_IB_GID_INDEX), link layer and MTU (ibv_devinfo), and the "
        "HCAs that NCCL chose (NCCL_DEBUG=INFO); on RoCE both need a GID of the same type",
        "the card refuses a connection whose parameters do not fit; a cable fails later, in a transfer",
        "ibv_modify_qp(3), EINVAL; NCCL user guide, NCCL_IB_GID_INDEX",
        rules=("infiniband-parameters",),
    ),
    RemedyRule(
        "network-transport",
        "Check the port and the cable at both ends of the link (InfiniBand: ibstat, perfquery; RoCE: rdma link, "
        "ethtool -S IFACE), read the peer's log, then restart the job",
        "the network card has repeated the transfer in vain: the connection is lost, and whoever waits for its data "
        "stays blocked",
        "NCCL user guide, NCCL_IB_RETRY_CNT; InfiniBand specification, retry counter",
        not_rules=("net-plugin", "rdma-memory", "infiniband-parameters", "queue-pair-not-connected"),
    ),
    RemedyRule(
        "network-transport",
        "On RoCE compare both ends' GIDs (ibv_devinfo -v; UCX_IB_GID_INDEX, NCCL_IB_GID_INDEX), then test the path: "
        "ib_write_bw -d DEVICE -x GID_INDEX on one host, the same plus that host's name on the other",
        "a wrong GID index connects, but no packet arrives",
        "NCCL user guide, NCCL_IB_GID_INDEX; linux-rdma/perftest",
        rules=("no-acknowledgement", "infiniband", "queue-pair-not-connected"),
    ),
    RemedyRule(
        "network-transport",
        "Run once with NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=INIT,NET, and choose the interface with "
        "NCCL_SOCKET_IFNAME and NCCL_IB_HCA",
        "NCCL then logs the interface and the network card of each rank",
        "NCCL user guide, environment variables",
        not_rules=("no-acknowledgement", "mpi-peer"),
    ),
    RemedyRule(
        "p2p-or-topology",
        "See which device it is: lspci -s ADDRESS, with the PCI address in that line (device=, Request device); if "
        "it is a GPU or an RDMA card, run the job once with NCCL_P2P_DISABLE=1",
        "a disk controller or a network card without RDMA has nothing to do with transfers between GPUs",
        "lspci(8)",
        rules=("iommu-fault",),
    ),
    RemedyRule(
        "p2p-or-topology",
        "End all processes that use the host's GPUs, reset them (nvidia-smi --gpu-reset), then restart "
        "nvidia-fabricmanager; or reboot. Until then set NCCL_NVLS_ENABLE=0 (NVSHMEM: NVSHMEM_DISABLE_NVLS=1)",
        "the fabric manager was restarted while processes used the GPUs; the driver learns its new state at a reset",
        "NVIDIA Fabric Manager user guide",
        rules=("nvlink-fabric",),
    ),
    RemedyRule(
        "p2p-or-topology",
        "Run once with NCCL_P2P_DISABLE=1. If the job then works, disable the IOMMU and PCIe ACS on bare metal; give a "
        "container all GPUs of the job",
        "data then goes through host memory, so the run shows whether the direct path is the problem",
        "NCCL user guide, troubleshooting",
        unset_in="NCCL_P2P_DISABLE=1",
        not_rules=("nvlink-fabric",),
    ),
    RemedyRule(
        "p2p-or-topology",
        "Test the path alone: p2pBandwidthLatencyTest, nvidia-smi topo -p2p r",
        "these commands show for each pair of GPUs whether direct access works",
        "CUDA samples; nvidia-smi manual",
    ),
)
