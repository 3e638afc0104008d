"""Libraries that move data between GPUs of several processes, beside NCCL: NVSHMEM, MSCCL++, Mooncake, NIXL."""

from gdbext.knowledge.engines.frame_rows import message, step
from gdbext.knowledge.frame_precedence import API, LEAF, LOCK, OUTER
from gdbext.knowledge.row_kinds import FrameRule

RULES = (
    FrameRule(
        "nvshmem-proxy",
        "condvar-idle",
        r"(nvshmemi_proxy_progress(_minimal)?|bootstrap_root)$",
        "NVIDIA/nvshmem src/host/proxy/proxy.cpp, src/modules/bootstrap/uid",
        rank=LOCK,
        helper="NVSHMEM proxy",
    ),
    FrameRule(
        "nvshmem-setup",
        "nccl-init",
        r"nvshmem(i|id|x)?_(hostlib_init\w*|common_init|init\w*|bootstrap\w*|team_split\w*)$|bootstrap_(uid|mpi|pmi\w*|shmem)_\w+$"
        r"|deep_ep::\w+::sync$",
        "NVIDIA/nvshmem src/host/init, src/modules/bootstrap; DeepEP csrc/deep_ep.cpp",
        rank=OUTER,
    ),
    FrameRule(
        "nvshmem-alloc",
        "nccl-group-launch",
        r"nvshmemx?_(malloc|calloc|align|free|buffer_(un)?register\w*)$",
        "nvshmem_api.h: memory is allocated by all processing elements together",
        rank=API,
        collective="barrier",
    ),
    FrameRule(
        "nvshmem-end",
        "nccl-destroy-abort",
        r"nvshmem(i|id|x)?_(hostlib_finalize|finalize)$",
        "nvshmem_api.h",
        rank=OUTER,
    ),
    FrameRule(
        "mscclpp-setup",
        "nccl-init",
        r"mscclpp::(TcpBootstrap::(Impl::)?(initialize|establishConnections)|Communicator::(connect|buildSemaphore|recvMemory)\w*)$",
        "microsoft/mscclpp src/core/bootstrap, communicator.cc",
        rank=OUTER,
    ),
    *(
        step(
            f"mscclpp-{collective}",
            "nccl-group-launch",
            rf"mscclpp::(Tcp)?Bootstrap::(Impl::)?{name}$",
            "microsoft/mscclpp src/core/bootstrap/bootstrap.cc: over sockets, between processes",
            collective=collective,
        )
        for name, collective in (
            ("allGather", "all_gather"),
            ("barrier", "barrier"),
            ("groupBarrier", "barrier"),
            ("send", "send"),
            ("recv", "recv"),
        )
    ),
    message(
        "mscclpp-flush",
        r"mscclpp::\w*Connection::(flush|updateAndSync)$|mscclpp::IbQp::pollCq$",
        "microsoft/mscclpp src/core/connection.cc: waits until everything has been sent",
    ),
    FrameRule(
        "mscclpp-threads",
        "condvar-idle",
        r"mscclpp::(Proxy(Service)?::start\b|IBConnection::recvThreadFunc|UnixSocketServer::(start|mainLoop)|NpKit::CpuTimestampUpdateThread)",
        "microsoft/mscclpp src/core/proxy.cc, connection.cc, unix_socket.cc, npkit.cc",
        rank=LEAF,
        helper="network progress",
        leaf=True,
    ),
    FrameRule(
        "mooncake-threads",
        "condvar-idle",
        r"mooncake::(\w+::)+(transferWorker|monitorWorker|doProcessContextEvents|\w*ThreadMain|\w*[wW]orkerThread\w*|\w*[wW]orkerLoop"
        r"|\w*[wW]orkerMainloop|pollerLoop|acceptLoop|\w*PollingLoop|\w*ReplicationLoop|queryThreadLoop|initiatorLoop)$",
        "kvcache-ai/Mooncake mooncake-transfer-engine, mooncake-store, mooncake-pg: threads of their own",
        rank=LEAF,
        helper="network progress",
        leaf=True,
    ),
    message(
        "mooncake-transfer",
        r"(mooncake::)?TransferEnginePy::(batchT|t)ransferSync\w*$|mooncake::Client::Transfer(Read|Write|Data)$",
        "kvcache-ai/Mooncake transfer_engine_py.cpp, client_service.cpp: until another process has sent or taken it",
    ),
    FrameRule(
        "nixl-threads",
        "condvar-idle",
        r"nixl\w*(Thread::(run|operator\(\)|\w*[pP]rogress\w*)|Engine::(progressThread\w*|progressFunc|startListener|threadProgressFunc)|AgentData::commWorker\w*)$"
        r"|nixlMDStreamListener::\w+$",
        "ai-dynamo/nixl src/plugins, src/core: threads of their own",
        rank=LEAF,
        helper="network progress",
        leaf=True,
    ),
    message(
        "nixl-transfer",
        r"nixl\w*(Engine|Worker|Agent|Rail)::(progress\w*|waitForCompletion\w*|connect|makeConnection)$",
        "ai-dynamo/nixl src/plugins, nixl_agent.cpp",
    ),
    FrameRule(
        "ofi-plugin",
        "mpi",
        r"nccl_(net_)?ofi_\w+$|(send|recv|listen)_?comm_\w*(test|connect|accept)\w*$",
        "aws/aws-ofi-nccl src",
        rank=LOCK,
        module=r"lib(nccl-net|rccl-net|fabric)",
    ),
)
