"""What a call does, by its name without the vendor's prefix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Tuple

_GUIDE = "CUDA programming guide, implicit synchronization"


@dataclass(frozen=True)
class Verb:
    """Calls of one effect. `names` is a regular expression for all that follows the prefix."""

    id: str
    kind: str  # label of labels.WAIT_KINDS
    names: str
    source: str
    captures: Tuple[str, ...] = ()


@dataclass(frozen=True)
class Operation:
    """A collective or a part of one, as libraries spell it."""

    collective: str
    names: str  # regex
    captures: Tuple[str, ...]  # parameters of NCCL


DEVICE: Tuple[Verb, ...] = (
    Verb(
        "pinned-alloc",
        "pinned-host-alloc",
        r"MallocHost|HostAlloc|FreeHost|Host(Malloc|Free|Register|Unregister)"
        r"|Mem(AllocHost|HostAlloc|FreeHost|HostRegister|HostUnregister)",
        f"{_GUIDE}; NVIDIA/nccl#48",
    ),
    Verb(
        "device-alloc",
        "device-alloc",
        r"Malloc(Pitch|3D|Array|3DArray|MipmappedArray|Managed|Async|FromPoolAsync|WithFlags|Physical|Align32|Cached)?"
        r"|Ipc(Open|Get)(Mem|Event)Handle|(Device(Enable|Disable)|CtxEnable)PeerAccess|MapMem|ImportExternalMemory"
        r"|Mem(Alloc|AllocPitch|AllocManaged|AllocAsync|AllocFromPoolAsync|AllocDevice|Create|Map|SetAccess|AddressReserve"
        r"|PoolCreate|PoolSetAccess|(Pool)?(Import|Export)(From|To)ShareableHandle|GetHandleForAddressRange|MapArrayAsync)"
        r"|Multicast(Create|AddDevice|BindMem|BindAddr)|(Array|Array3D|MipmappedArray)Create|(Device|Shared)Alloc",
        f"{_GUIDE}; cuda.h: virtual memory, multicast objects, memory of other processes",
        ("size",),
    ),
    Verb(
        "device-free",
        "device-free",
        r"Free(Array|Async|MipmappedArray|Physical)?|IpcCloseMemHandle|UnmapMem|MulticastUnbind|DeviceGraphMemTrim"
        r"|(Array|MipmappedArray)Destroy|DestroyExternalMemory"
        r"|Mem(Free|FreeAsync|Unmap|Release|AddressFree|PoolTrimTo|PoolDestroy)",
        _GUIDE,
    ),
    Verb(
        "module-load",
        "module-load",
        r"Module(Load\w*|Unload|GetFunction|GetGlobal|GetLoadingMode|Create)|Library\w+|Link\w+|BinaryLoad\w*"
        r"|Kernel(GetFunction|GetAttribute|SetAttribute|Create)|Func(Load|[GS]etAttributes?|SetCacheConfig)"
        r"|GetFuncBySymbol|GetSymbol(Address|Size)|Occupancy\w+|Program(Build|Compile|Link)\w*|ModuleDynamicLink",
        "CUDA programming guide, lazy loading; torchcomms PR#2334",
    ),
    Verb(
        "init",
        "module-load",
        r"Init(Device)?|SetDevice(Flags)?|GetDevice(Count|Properties)?|CtxCreate|CreateContext|DevicePrimaryCtxRetain"
        r"|GreenCtxCreate|ContextCreate(Ex)?",
        "context creation; libcudart 12: cudaSetDevice initialises",
    ),
    Verb(
        "launch",
        "kernel-launch",
        r"Launch(Kernel|KernelExC?|CooperativeKernel\w*|HostFunc|Device|Grid\w*|Callback)?|(Module|\w*)LaunchKernel\w*"
        r"|Graph(Launch|Upload|Instantiate\w*)|InvokeKernel|Kernel(Launch|Launch\w+)"
        r"|CommandListAppendLaunchKernel|CommandQueueExecuteCommandLists",
        "NVIDIA/nccl#750, #1766",
        ("stream",),
    ),
    Verb(
        "enqueue",
        "kernel-launch",
        r"EventRecord(WithFlags)?|RecordEvent|Stream(WaitEvent|WaitValue\d*|WriteValue\d*|BatchMemOp|AddCallback)|Ctx(Record|Wait)Event"
        r"|(Signal|Wait)ExternalSemaphoresAsync|GraphExec(Update|Destroy)|MemBatchDecompressAsync",
        "CUDA programming guide, asynchronous execution: a call returns when there is room in the queue of its stream",
        ("stream",),
    ),
    Verb(
        "stream-sync",
        "stream-sync",
        r"(Stream|Queue|CommandQueue|CommandList|Fence)(Host)?(Synchronize|Sync|Query|Wait)(WithTimeout)?"
        r"|(Synchronize|Query)Stream(WithTimeout)?|QueryQueue|SyncQueue",
        "NVIDIA/nccl#585, #1550",
        ("stream",),
    ),
    Verb(
        "event-sync",
        "event-sync",
        r"(Event|Notifier)(Host)?(Synchronize|Query|QueryStatus|Destroy|ElapsedTime|Wait)"
        r"|(Synchronize|Query|Destroy|Wait)(Event|Notifier)\w*",
        "CUDA runtime API, event management",
    ),
    Verb(
        "device-sync",
        "device-sync",
        r"(Device|Thread|Ctx|ExecutionCtx|GreenCtx)(Synchronize|Sync|Reset|Exit|Destroy)|DevicePrimaryCtx(Reset|Release)"
        r"|(Synchronize|Sync|Reset)Device(WithTimeout)?|DestroyContext",
        _GUIDE,
    ),
    Verb(
        "memcpy",
        "memcpy-sync",
        r"(Memcpy|Memset|MemPrefetch)\w*|CommandListAppendMemory(Copy|Fill)\w*|MemBuffer(Read|Write|Copy|Fill)\w*",
        f"{_GUIDE}; NVIDIA/nccl#613",
        ("count", "kind", "stream"),
    ),
    Verb(
        "pointer-query",
        "mutex",
        r"Pointer[GS]etAttributes?|MemGetInfo|DeviceGetAttribute|(Device|Ctx)SetLimit|DeviceCanAccessPeer|CtxSetCurrent",
        "takes the driver's lock only; libfabric#9003",
    ),
)

COLLECTIVE: Tuple[Operation, ...] = (
    Operation("all_reduce", r"[Aa]ll_?[Rr]educe", ("count", "datatype", "op")),
    Operation("broadcast", r"[Bb]road_?cast|Bcast", ("count", "datatype", "root")),
    Operation("reduce_scatter", r"[Rr]educe_?[Ss]catter(_block)?", ("recvcount", "datatype", "op")),
    Operation("reduce", r"[Rr]educe", ("count", "datatype", "op", "root")),
    Operation("all_gather", r"[Aa]ll_?[Gg]ather|fcollect", ("sendcount", "datatype")),
    Operation("all_to_all", r"[Aa]ll_?[Tt]o_?[Aa]ll", ("count", "datatype")),
    Operation("gather", r"[Gg]ather", ("count", "datatype", "root")),
    Operation("scatter", r"[Ss]catter", ("count", "datatype", "root")),
    Operation("barrier", r"[Bb]arrier(_all)?|sync_all", ()),
    Operation("send_recv", r"BatchSendRecv", ()),
    Operation("send", r"[Ss]end", ("count", "datatype", "peer")),
    Operation("recv", r"[Rr]ecv", ("count", "datatype", "peer")),
)

COMMUNICATOR: Tuple[Verb, ...] = (
    Verb(
        "init",
        "nccl-init",
        r"CommInit\w*|Comm(Split|Grow|Shrink|WindowRegister)|DevCommCreate|(Comm)?GetUniqueId|GetRootInfo|CreateSubCommConfig"
        r"|InitComm\w*|create_communicators?|init\w*",
        "NCCL sources 2.4-2.32; CANN hccl.h; NVIDIA/nccl#1774",
        ("nranks", "myrank", "comm"),
    ),
    Verb(
        "destroy",
        "nccl-destroy-abort",
        r"Comm(Destroy|Abort|Finalize|Revoke|Suspend|Resume)\w*|finalize",
        "NVIDIA/nccl#829, #1013, #1777",
        ("comm",),
    ),
)
