"""NCCL (and RCCL, same names) beside its public calls (`knowledge.vendor_calls`): launches beneath them, its threads.

Internal names are those of the wheels from PyPI (they keep `.symtab`): 2.4 to 2.32.
"""

from gdbext.knowledge.frame_precedence import API, OUTER, STEP
from gdbext.knowledge.row_kinds import FrameRule

_TREE = "NCCL sources, 2.4-2.32"

RULES = (
    FrameRule(
        "nccl-init-inside",
        "nccl-init",
        r"ncclCommInitRank(Dev|Func)$|ncclCommInitChildComm|ncclCommWaitForReady$|ncclDevr\w*(Init|Register|Create)\w*",
        f"{_TREE}; NVIDIA/nccl#1774",
        rank=OUTER,
        captures=("nranks", "myrank", "comm"),
    ),
    FrameRule(
        "nccl-destroy-inside",
        "nccl-destroy-abort",
        r"comm(Free|DestroySync|Reclaim|Cleanup)$|ncclProxy(Stop|Destroy)$|ncclDevrFinalize$",
        f"{_TREE}; NVIDIA/nccl#829, #1013, #1777",
        rank=OUTER + 1,
        captures=("comm",),
    ),
    FrameRule(
        "nccl-cpu-barrier",
        "nccl-group-launch",
        r"ncclCpuBarrier(In|Out|Last)|ncclBarrierEnqueue(Wait)?$|ncclCommIntraBarrier(In|Out)",
        "the ranks of one process meet on the CPU before a launch; h2oai/h2o4gpu#773",
        rank=API,
    ),
    FrameRule(
        "nccl-enqueue",
        "nccl-group-launch",
        r"ncclEnqueueCheck$",
        f"{_TREE}; `info` names the operation",
        rank=STEP,
        captures=(
            "info->comm",
            "info->comm->commHash",
            "info->comm->nRanks",
            "info->coll",
            "info->count",
            "info->opName",
        ),
    ),
    FrameRule(
        "nccl-group-end",
        "nccl-group-launch",
        r"(p?ncclGroup(End|EndInternal|Start|SimulateEnd)|groupLaunch|doLaunches|ncclLaunch(Kernel|Prepare|Finish)\w*"
        r"|waitWorkFifoAvailable|ncclStrongStream\w+|ncclTransport(P2p|Coll)\w+|ncclP2PPreconnectFunc|ncclCollPreconnectFunc"
        r"|asyncJobLaunch$|ncclAsyncJobComplete$|ncclGroupJob(Complete|Abort)$|ncclLaunchCeColl$|ncclCe(Launch|Init|AllGather|AllToAll|Scatter|Gather)\w*)",
        f"{_TREE}; NVIDIA/nccl#750",
        rank=API,
    ),
    FrameRule(
        "nccl-one-sided",
        "nccl-group-launch",
        r"p?nccl(PutSignal|Signal|WaitSignal)$|nccl(Launch)?Rma\w*(Launch|Wait|Put|Signal|Coll)\w*$",
        "NCCL 2.29+ collectives.cc, src/rma: waits for signals of the other ranks",
        rank=API,
    ),
    FrameRule(
        "nccl-proxy-call",
        "nccl-init",
        r"ncclProxy(CallBlocking\w*|Connect|Init)$|ncclPollProxyResponse$|nccl(Nvls|CollNet|P2p)\w*Setup\w*$|initTransportsRank$"
        r"|ncclTopo(GetSystem\w*|Compute\w*)$|ncclIb(Connect|Accept)\w*$|ncclNetSocket(Connect|Accept)$",
        f"{_TREE}: transports are set up, by requests to the proxy that serves the peer",
        rank=STEP,
    ),
    FrameRule(
        "nccl-bootstrap",
        "nccl-init",
        r"bootstrap(Init|AllGather|Barrier|Send|Recv|Intra\w+|Split|Bcast|RingAllGather)|ncclSocket(Accept|Connect|Ready)|socketProgress\w*"
        r"|socket(Start|Try|Poll)(Connect|Accept)",
        f"{_TREE}; NVIDIA/nccl#1260, #1324",
        rank=STEP,
    ),
    FrameRule(
        "nccl-async-job", "nccl-init", r"ncclAsyncJobMain$", f"{_TREE}: jobs of several communicators", rank=STEP
    ),
    FrameRule("nccl-mem-alloc", "device-alloc", r"p?nccl(MemAlloc|CommRegister)$", "nccl.h", rank=OUTER),
    FrameRule(
        "nccl-mem-free", "device-free", r"p?nccl(MemFree|CommDeregister|CommWindowDeregister)$", "nccl.h", rank=OUTER
    ),
    FrameRule(
        "nccl-proxy-progress",
        "condvar-idle",
        r"(ncclProxyProgress|ncclProxyGetPostedOps|proxyProgressAsync|persistentThread)$",
        f"{_TREE}; NVIDIA/nccl#394",
        helper="NCCL proxy",
    ),
    FrameRule("nccl-proxy-service", "condvar-idle", r"ncclProxyService(UDS)?$", _TREE, helper="NCCL proxy service"),
    FrameRule("nccl-socket-thread", "condvar-idle", r"persistentSocketThread$", _TREE, helper="NCCL socket"),
    FrameRule("nccl-ib-async", "condvar-idle", r"ncclIbAsyncThreadMain$", _TREE, helper="NCCL InfiniBand events"),
    FrameRule("nccl-ras", "condvar-idle", r"rasThreadMain$", _TREE, helper="NCCL RAS"),
    FrameRule("nccl-bootstrap-root", "condvar-idle", r"bootstrapRoot$", _TREE, helper="NCCL bootstrap root"),
    FrameRule(
        "nccl-rma-progress",
        "condvar-idle",
        r"ncclRmaProxyProgress\w*$",
        "NCCL 2.29+ src/rma/rma_proxy.cc",
        helper="NCCL RMA progress",
    ),
    FrameRule(
        "nccl-port-recovery",
        "condvar-idle",
        r"ncclIbPortRecoveryAsyncThreadMain$",
        "NCCL 2.29+ src/transport/net_ib/p2p_resiliency_recovery.cc",
        helper="NCCL InfiniBand events",
    ),
    FrameRule(
        "doca-service",
        "condvar-idle",
        r"priv_service_mainloop$",
        "NCCL src/transport/net_ib/gdaki/doca-gpunetio: a thread that rings doorbells for the GPU",
        helper="NCCL GIN progress",
    ),
    FrameRule("nccl-gin-progress", "condvar-idle", r"ncclGin\w*Progress\w*$", "NCCL 2.28+", helper="NCCL GIN progress"),
)
