"""Lines about setting up communicators, and about transports that fail."""

from typing import Tuple

from gdbext.knowledge.row_kinds import LogRule

_NCCL = "NCCL sources, 2.4-2.32"
_OF_MLX_RING = r"\[ring\] (?:Receiving from|Sending to) socket \d{1,9} failed with errno "


def _setup(id: str, pattern: str, means: str, source: str, confidence: str = "low", wait: str = "") -> LogRule:
    return LogRule(id, pattern, means, source, "init-rendezvous", confidence, wait)


def _network(id: str, pattern: str, means: str, source: str, confidence: str = "low", wait: str = "") -> LogRule:
    return LogRule(id, pattern, means, source, "network-transport", confidence, wait)


RULES: Tuple[LogRule, ...] = (
    LogRule(
        "duplicate-gpu",
        r"Duplicate GPU detected ?: ?rank \d+ and rank \d+ both on CUDA device",
        "two ranks were given the same GPU, which NCCL refuses",
        "NCCL init.cc",
        "other",
        "medium",
        "nccl-init",
    ),
    _setup(
        "rank-twice",
        r"Bootstrap Root ?: rank \d{1,6} of \d{1,6} ranks has already checked in",
        "two processes joined a communicator with the same rank number",
        "NCCL bootstrap.cc",
        "medium",
        "nccl-init",
    ),
    _setup(
        "ranks-counted-differently",
        r"Bootstrap Root ?: mismatch in rank count from procs",
        "processes joined a communicator with different numbers of ranks",
        "NCCL bootstrap.cc",
        "medium",
        "nccl-init",
    ),
    LogRule(
        "paddle-nccl-setup",
        r"nccl_context\.cc:\d{1,5}\] init nccl context nranks: \d",
        "Paddle sets up an NCCL communicator of that many ranks",
        "paddle/fluid/imperative/nccl_context.cc",
        wait="nccl-init",
    ),
    LogRule(
        "version-mismatch",
        r"Mismatched NCCL version detected",
        "the ranks run different releases of NCCL",
        "NCCL init.cc",
        "other",
        "medium",
        "nccl-init",
    ),
    _network(
        "no-interface",
        r"[Bb]ootstrap ?: no socket interface found|NET/Socket ?: ?[Nn]o (?:usable )?interface"
        r"|no device found (?:matching|after excluding) .{1,200}, verify NCCL_OOB_NET_IFNAME"
        r"|gloo/\S{1,80}\] .{0,80}Unable to find address for: ",
        "no network interface can be used: NCCL_SOCKET_IFNAME or GLOO_SOCKET_IFNAME matches none of this host",
        "NCCL bootstrap.cc, net_socket.cc; gloo transport/tcp/device.cc",
        "medium",
        "nccl-init",
    ),
    _network(
        "nvshmem-transport",
        r"nvshmem setup connections failed|^connect EPS failed|^transport create connect failed"
        r"|(?:nvshmem|NVSHMEM)(?!.{0,200}/host/(?:mem|team)/).{0,200}:\d{1,6}: non-zero status: \d",
        "NVSHMEM could not connect its transports",
        "NVSHMEM host/transport/transport.cpp, host/init/init.cu",
        wait="exited-or-crashed",
    ),
    _network(
        "ofi-poll",
        r"\bOFI poll failed \(",
        "libfabric, which MPICH runs on, reported a failed operation",
        "MPICH src/mpid/ch4/netmod/ofi/ofi_events.c",
        wait="exited-or-crashed",
    ),
    _setup(
        "clients-joined",
        r"Timed out after .{0,60} waiting for clients\. \d+/\d+ clients joined",
        "not all ranks joined the rendezvous store",
        "torch TCPStore.cpp",
        "medium",
        "store-wait",
    ),
    LogRule(
        "message-not-sent",
        r"wait timeout after \d+ms, keys?: /?(?:send_to|broadcast_from)/",
        "the process waited for a message that another process sends through torch's store, and none came in time",
        "vLLM distributed/utils.py: StatelessProcessGroup.send_obj, broadcast_obj",
        wait="store-wait",
    ),
    _setup(
        "store-connect",
        r"client socket has (?:timed out|failed to connect)|server socket has failed to (?:listen|bind)"
        r"|Rendezvous(?:Timeout|Connection|Closed)Error"
        r"|wait timeout after \d+ms, keys?: |failed to (?:connect|recv).{0,60}TCPStore|TCPStore.{0,80}(?:timed out"
        r"|Broken pipe)"
        r"|DEADLINE_EXCEEDED: (?:Barrier timed out|.{0,60}coordination service)",
        "a rank did not reach the rendezvous store, or did not join the rendezvous in time",
        "torch socket.cpp, TCPStore.cpp, elastic rendezvous/api.py; tsl coordination_service.cc",
        wait="store-wait",
    ),
    _setup(
        "store-barrier-timeout",
        r"Timed out initializing process group in store based barrier",
        "not all ranks of the group reached the rendezvous store in time",
        "torch distributed_c10d.py, _store_based_barrier",
        "medium",
        "exited-or-crashed",
    ),
    _setup(
        "store-barrier",
        r"Waiting in store based barrier to initialize process group",
        "ranks wait at the rendezvous store for the rest of their group",
        "torch distributed_c10d.py, _store_based_barrier",
        wait="store-wait",
    ),
    _setup(
        "no-connection",
        r"Connecting to rank \d{1,6} failed, waiting for \d+ milliseconds|connectFullMesh failed"
        r"|connect to (?:the )?tracker.{0,40} failed|Timed out trying to connect to"
        r"|Timed out during handshake while connecting to"
        r"|mesh_service\.cc:\d{1,5} : Check failed: .{0,80}WaitForConnected"
        r"|Failed to meet rendezvous '(?!.{0,200}: Socket closed)|failed to connect to all addresses"
        r"|unable to reliably start one or more daemons|Failed to connect to GCS|Could not connect to scheduler",
        "one process of the job could not reach another during connection setup",
        "LightGBM linkers_socket.cpp; gloo; rabit; distributed comm/core.py; gRPC; Ray gcs_client; "
        "Open MPI help-errmgr-base.txt",
    ),
    _network(
        "transfer-failed",
        r"(?:Mooncake|NIXL|UCX|KV(?: ?cache)?) transfer failed|Failed to connect to (?:target|segment): "
        r"|Failed to transfer KV cache|NIXL_ERR_(?:REMOTE_DISCONNECT|BACKEND)",
        "a transfer to another engine process failed",
        "Mooncake transfer engine; NIXL; vLLM kv_connector",
    ),
    _setup(
        "socket-of-rank",
        r"Getting socket times out|Transport init error|EI0006|create link failed.{0,80}remoteRank",
        "HCCL could not set up a connection to another rank in time",
        "CANN error code EI0006; vllm-project/vllm-ascend#486",
        wait="nccl-init",
    ),
    LogRule(
        "gil-not-acquired",
        r"Could not acquire GIL within \d+ ms",
        "torch's monitor could not get the GIL",
        "torch ProcessGroupNCCL.cpp",
        "gil-deadlock",
        "low",
    ),
    LogRule(
        "peer-access",
        r"NCCL WARN.*(?:enable peer access|cudaIpcOpenMemHandle|CUDA IPC|peer access is not supported)"
        r"|peer access is not supported between|PeerAccessUnsupported\b|PEER_ACCESS_UNSUPPORTED\b"
        r"|Could not enable P2P between dev|peer mapping resources exhausted",
        "direct access to another GPU's memory failed",
        _NCCL,
        "p2p-or-topology",
        "medium",
    ),
    _network(
        "no-acknowledgement",
        r"[Tt]ransport retry count(?:er)? exceeded",
        "an RDMA transfer failed because the peer did not acknowledge it: the peer is gone, or the link is broken",
        "UCX ib_mlx5_log.c; Open MPI btl_openib_component.c",
        "medium",
    ),
    _network(
        "rdma-memory",
        r"NET/IBP? ?: ?Got completion.{0,100}? (?:status=|error )(?P<completion>4|10)\b"
        r"|IBV_WC_(?:LOC_PROT|REM_ACCESS)_ERR|UCX +ERROR .{0,120}remote access error"
        r"|(?:Local|Remote) access(?: error)? on mlx|local protection error",
        "an RDMA transfer failed",
        "rdma-core libibverbs/verbs.h, enum ibv_wc_status; NCCL transport/net_ib; UCX ib_mlx5_log.c",
        "medium",
    ),
    _network(
        "infiniband-parameters",
        r"Call to (?:wrap_)?ibv_(?:modify|create)_qp\w* failed.{0,60}(?:Invalid argument|errno 22\b)",
        "the RDMA driver rejected the parameters of a connection during set-up (EINVAL)",
        "NCCL misc/ibvwrap.cc; ibv_modify_qp(3)",
        "medium",
    ),
    _network(
        "queue-pair-not-connected",
        r"Call to (?:wrap_)?ibv_modify_qp failed|Failed to modify QP to RT[RS]\b",
        "a queue pair could not be connected to its peer (InfiniBand or RoCE)",
        "NCCL ibvwrap.cc; ibv_modify_qp(3): INIT, RTR, RTS",
        "medium",
    ),
    _network(
        "infiniband",
        r"NET/IBP? ?: ?(?:Got completion(?:.{0,100}? (?:status=|error )(?P<completion>\d{1,2})\b)?"
        r"|Got async (?:fatal )?event)|async fatal event"
        r"|Call to (?:wrap_)?ibv_(?!modify_qp)\w+ failed|IBV_WC_\w+ERR"
        r"|UCX +ERROR .{0,120}remote access error|ROCE CQE error occurred"
        r"|mlx5_core .{0,80}device's health compromised"
        r"|(?:Local|Remote) (?:QP operation|access|operation|invalid request)"
        r"(?: error)? on mlx|Endpoint timeout|local protection error|syndrome 0x81",
        "an InfiniBand or RoCE operation failed",
        "NCCL transport/net_ib; UCX ib_mlx5_log.c; CANN error code EI0013; Mooncake rdma_endpoint.cpp; "
        "Linux mlx5 health.c; openucx/ucx#1920",
        "medium",
    ),
    _network(
        "net-plugin",
        r"NET/(?!IBP?\b|Socket\b)[A-Za-z]{2,20}\b.{0,200}?(?:completed with error|\bRC: ?-?[1-9])",
        "NCCL's network plugin reported an error",
        "aws-ofi-nccl nccl_ofi_net.c, nccl_ofi_rdma.c",
        "medium",
    ),
    _network(
        "network-device",
        r"NET/IB ?: ?Unable to open device",
        "a network device could not be opened",
        "NCCL transport/net_ib.cc",
    ),
    _network(
        "unreachable",
        r"NCCL WARN.*(?:No route to host|Connection timed out|Network is unreachable)",
        "the host that logged the line cannot reach its peer's address",
        "NCCL misc/socket.cc",
        "medium",
        "nccl-init",
    ),
    _setup(
        "refused",
        r"NCCL WARN.*(?:Connection refused|Connect to .{1,80} failed|exceeded (?:error )?retr)"
        r"|[Cc]onnection refused.*(?:retry|attempt)",
        "a peer is not listening on its address: it has not started, has exited, or uses another interface",
        "NCCL misc/socket.cc; NVIDIA/nccl#1324",
        wait="nccl-init",
    ),
    LogRule(
        "peer-closed",
        r"NCCL WARN.*(?:[Cc]onnection closed by (?:remote )?peer|Connection reset by peer|remote process exited)"
        r"|Call to \w{4,8} (?:from|to) \S{1,80} failed ?: ?(?:Connection reset|Broken pipe|Software caused)"
        r"|Failed to meet rendezvous '[^']{1,200}': Socket closed",
        "a peer closed the connection, usually because its process had already ended",
        "NCCL misc/socket.cc; torch_xla mesh_service.cc",
        "missing-rank",
        "low",
    ),
    LogRule(
        "gloo-closed",
        r"Connection closed by peer \[|gloo/transport/tcp/\S{1,40}\] (?:Read error|Write error)",
        "a peer of a Gloo collective closed its connection, usually because its process ended",
        "gloo transport/tcp/pair.cc",
        "missing-rank",
        "low",
        "gloo",
    ),
    LogRule(
        "gloo-peer",
        r"gloo/transport/tcp/\S{1,40}\] (?:timed out|\S{0,40} timeout)"
        r"|Timed out waiting \d+ ?ms for (?:send|recv) operation to complete",
        "a peer of a Gloo collective did not answer in time",
        "gloo transport/tcp/pair.cc, unbound_buffer.cc",
        "missing-rank",
        "low",
        "gloo",
    ),
    LogRule(
        "nvshmem-not-set-up",
        r"nvshmem initialization failed, exiting",
        "NVSHMEM failed to initialize and ended the process",
        "NVSHMEM src/host/init/init.cu",
        wait="exited-or-crashed",
    ),
    _network(
        "libfabric-completion",
        r"libfabric:\d{1,9}:\d{1,12}::\w{1,20}:\w{1,20}:\w{0,60}err\w{0,40}\(\):\d{1,6}<warn> err: \d",
        "a libfabric provider reported a failed operation; the library that uses libfabric may not pass the error on",
        "libfabric prov/efa/src/rdm/efa_rdm_cq.c; fi_cq_readerr(3)",
        wait="unknown",
    ),
    LogRule(
        "mlx-ring-bad-address",
        _OF_MLX_RING + r"14\b",
        "the buffer of that call is not valid memory in this process; a lost peer gives another error",
        "mlx/distributed/ring/ring.cpp; recv(2), EFAULT; ml-explore/mlx#4276",
        "other",
        wait="exited-or-crashed",
    ),
    LogRule(
        "mlx-ring-errno",
        _OF_MLX_RING + r"\d",
        "MLX's ring backend could not send to its neighbour in the ring, or receive from it",
        "mlx/distributed/ring/ring.cpp",
        wait="unknown",
    ),
    LogRule(
        "mlx-ring",
        r"\[ring\] Too many send/recv errors",
        "MLX's ring backend gave up after repeated send or receive failures; `errno` in the preceding lines gives the "
        "reason",
        "mlx/distributed/ring/ring.cpp",
        wait="exited-or-crashed",
    ),
    _network(
        "mpi-peer",
        r"At least one pair of MPI processes are unable to reach each other"
        r"|UCX +ERROR +no .{1,60} transport to |tcp_peer_recv_connect_ack: connect failed"
        r"|accepted a TCP connection from what appears to be a another Open MPI process"
        r"|recv_connect_ack\] received unexpected process identifier"
        r"|(?:lost connection to|lost communication with|unable to communicate with).{0,60}(?:peer|daemon|ORTE|PRRTE)"
        r"|peer process .{0,60}(?:unexpectedly|closed)|socket closed by remote peer|btl_tcp.{0,80}(?:failed|closed)"
        r"|UCX {1,4}(?:ERROR|FATAL) .{0,200}(?:reset by remote peer|unreachable|Connection refused)",
        "a peer of MPI or UCX is gone or cannot be reached",
        "Open MPI oob, btl/tcp, help-mca-bml-r2.txt; UCX tcp_ep.c, select.c",
        wait="mpi",
    ),
)
