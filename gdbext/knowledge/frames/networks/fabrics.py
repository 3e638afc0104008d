"""Networks of large machines below and beside MPI: who polls them waits for a message of another process."""

from gdbext.knowledge.engines.frame_rows import message, step
from gdbext.knowledge.frame_precedence import API, LEAF, LOCK, OUTER, STEP
from gdbext.knowledge.row_kinds import FrameRule

RAY_GET = "ray-get"
"""Frame rule of a wait for the result of a task of Ray."""
RAY_TASK = (
    r"ray::core::(CoreWorker|TaskReceiver)::ExecuteTask|.*task_execution_handler|.*actor_method_executor$|_resume_span$"
)
"""What a worker's loop calls to carry out a task: _raylet.pyx, core_worker.cc, function_manager.py of Ray 2."""
PMIX_CALLS = (
    r"(OPAL_MCA_PMIX\w*_)?PMI[xX2]?_(Fence|Get|Connect|Disconnect|Finalize|Abort|Spawn|Lookup|Barrier|KVS)\w*"
    r"|(pmix|opal_pmix)\w*_(fence|get|connect|disconnect)\w*$"
)
"""Requests to the server of the launcher: prted, orted, slurmstepd or hydra's proxy (pmix.h, pmi.h)."""
PMIX_GET = r"(OPAL_MCA_PMIX\w*_)?PMI[xX2]?_(Get|KVS_Get|Info_Get(Job|Node)Attr)$"
"""Asks that server for one value: of the job, or one that another process publishes. A fence waits for all."""
JOB_STARTS = (
    r"(OPAL_MCA_PMIX\w*_)?PMI[xX2]?_Init|ompi_(mpi_init|mpi_instance_init\w*|rte_init)|orte_init|MPID_Init"
    r"|MPIR?I?I?_Init\w*"
)
"""The start of an MPI job, in which processes ask the launcher and meet their peers."""
_PROGRESS = "waits for messages of others: whoever makes progress has nothing else to do"

RULES = (
    FrameRule(
        "ucx-driver-lock",
        "mutex",
        r"_*(GI_+)?_*(pthread_rwlock_(wr|rd)lock|pthread_mutex_lock|lll_lock_wait)\w*$",
        "uct/cuda, uct/rocm: the transport calls the GPU's driver, which waits for a lock of its own",
        rank=STEP + 1,
        under=r"uct_(cuda|rocm|ze)_\w+",
        caller=r"lib(cuda|amdhip64|hsa-runtime64|ze_)",
    ),
    message(
        "ucx-finish",
        r"ucp_(worker|ep)_(flush|fence|close|destroy)\w*|ucp_disconnect\w*|ucp_(request_cancel|cleanup)$|uct_(ep|iface)_flush\w*",
        "ucp.h, uct.h: waits until everything has been sent",
        rank=STEP + 1,
    ),
    message(
        "ucx-progress",
        r"(ucp|uct)_(?!init|config|md_open|md_query|component|lib_query)\w+|ucs_callbackq_\w+",
        f"ucp.h, uct.h; {_PROGRESS}",
    ),
    message(
        "ucc",
        r"(ucc|xccl)_(?!constructor|init_version)\w+|hcoll_\w+|hmca_\w+|sharp_(coll_)?\w+",
        "ucc.h, hcoll_api.h, sharp_coll.h: collectives beside MPI's own",
    ),
    FrameRule(
        "fabric-thread",
        "condvar-idle",
        r"(cm_thread|xnet_(auto|run)_progress|ips_ptl_pollintr|psm\w*_progress_func|listen_thread|rdmacm_event_dispatch"
        r"|mca_btl_tcp_progress_thread_engine|(tcpx|ofi|rxm|cxip|psm\d|vrb|efa|btl_openib|ompi_btl|udcm|_*gnix|fi_sockets?|sock|ips_ptl)"
        r"_\w*thread\w*)$",
        "libfabric providers and Open MPI's transports: threads of their own",
        rank=LEAF,
        helper="network progress",
    ),
    message(
        "libfabric",
        r"(fi|ofi|rxm|rxd|tcpx|xnet|udpx|smr|sm2|vrb|efa|rxr|cxip|opx|_*gnix|psmx\d?|mrail|lnx"
        r"|sock_(av|cntr|comm|conn|cq|dgram|dom|ep|eq|mr|msg|pe|rdm|rx|tx))"  # CPython's own begin with sock_ as well
        r"_(?!getinfo|fabric$|domain$|init|ini$|freeinfo|\w*monitor|mr_|memhooks|intercept)\w+",
        f"rdma/fi_*.h and the providers of libfabric; {_PROGRESS}",
    ),
    message("psm", r"_*(psm[23]|psmi|ips|amsh)_\w+", f"psm2_mq.h, psm3; {_PROGRESS}"),
    message(
        "verbs",
        r"ibv_(exp_)?poll_cq|(mlx[45]|bnxt_re|irdma|i40iw|hns_roce|rxe|efa|hfi1|qedr|mana|ionic)_\w*poll\w*"
        r"|rdma_(get_cm_event|resolve_\w+|connect|accept)$",
        f"infiniband/verbs.h, rdma_cma.h and providers; {_PROGRESS}",
        rank=LOCK + 1,
    ),
    message(
        "cray",
        r"GNI_(Cq|Post|Ep|Smsg|Wait)\w*|cxi_(eq|cq|ct)_\w+|DMAPP_\w+|dmapp_\w+|PAMI_\w+|DCMF_\w+|LAPI_\w+|Ptl(CT|EQ|ME|Put|Get)\w*",
        f"uGNI, libcxi, DMAPP, PAMI, Portals; {_PROGRESS}",
    ),
    FrameRule(
        "verbs-objects",
        "io",
        r"ibv_(reg|dereg|rereg)\w*mr\w*$|ibv_(create|destroy|modify|open|alloc|dealloc|close)_\w+$|(ibv|verbs)_\w*cmd_\w+$",
        "infiniband/verbs.h: a call into the kernel's driver, which pins memory or waits for the adapter",
        rank=LOCK,
    ),
    FrameRule(
        "cxi-driver",
        "io",
        r"cxil_\w+$",
        "libcxi.c: a write() to the file of Slingshot's driver, which pins memory or sets up a queue",
        rank=STEP + 1,
    ),
    message(
        "openshmem",
        r"(p?o?shmemx?|shmem_internal|shmem_transport|mca_(scoll|spml|atomic))_(?!init|my_pe|n_pes|malloc|free)\w+",
        "OpenSHMEM 1.5: shmem.h; Open MPI, Sandia and Cray",
        rank=API,
    ),
    message(
        "openshmem-init",
        r"(p?o?shmem_init\w*|shmem_internal_init\w*|start_pes)$",
        "OpenSHMEM: all processing elements meet in the start",
        rank=OUTER,
    ),
    message(
        "pgas",
        r"(gasnet[cei]?|gex|upcxx?|upcr|P?ARMCI|armci|comex|GA|pnga|chpl_comm|_gfortran_caf)_\w*"
        r"(?i:poll|barrier|wait|sync|fence|progress|advance|reduce|broadcast|coll)\w*|upcxx::\w*(wait|barrier|progress)\w*",
        f"GASNet-EX, UPC++, ARMCI, Global Arrays, Chapel, coarrays; {_PROGRESS}",
    ),
    message(
        "charm",
        r"(Lrts\w+|Cmi(NotifyIdle|GetNonLocal\w*|\w*Barrier\w*)|Csd(Scheduler\w*|NextMessage|SchedulePoll)|Converse(Exit|CommonExit)"
        r"|AdvanceCommunication\w*|PumpNetwork\w*|PumpMsgs\w*)$",
        f"Charm++ converse.h: the scheduler of a processing element waits for messages; {_PROGRESS}",
        rank=LOCK + 1,
    ),
    message(
        "pmix",
        PMIX_CALLS,
        "pmix.h, pmi.h: asks the launcher, which waits for all processes",
    ),
    message(
        "pmix-init",
        JOB_STARTS,
        "pmix.h, Open MPI and MPICH: the start of a job",
        rank=STEP + 2,
    ),
    FrameRule(
        "oneccl-worker",
        "condvar-idle",
        r"ccl_worker(_func|::\w+)",
        "oneCCL worker threads: they carry out what the callers have given them",
        rank=LEAF,
        helper="oneCCL worker",
        under=r"ccl_worker_func|start_thread|clone",
    ),
    step(
        "oneccl-inside",
        "nccl-group-launch",
        r"ccl_(wait|executor::(wait|test)|request::|coll_|sched|comm::|all|reduce|broad|bcast|barrier|send|recv)\w*|(ccl::)?atl_(ofi|mpi|base)"
        r"|ccl::v\d+::\w*event\w*::wait",
        "oneCCL src/coll, src/exec, src/atl",
    ),
    FrameRule(
        "oneccl-setup",
        "nccl-init",
        r"ccl_comm::(create\w*|init)|ccl::\w*(::\w+)*create_communicator\w*|(internal|users|pmi_resizable\w*)_kvs::\w+",
        "oneCCL: communicators are set up over a store of keys",
        rank=STEP + 2,
    ),
    message(
        "rabit",
        r"rabit::|xgboost::collective::|LightGBM::(Network|Linkers|TcpSocket)\b",
        "XGBoost src/collective and rabit, LightGBM src/network: collectives over sockets",
    ),
    FrameRule(
        "rabit-tracker",
        "nccl-init",
        r"rabit::(Init|engine::AllreduceBase::(ReConnectLinks|ConnectTracker|Init))|RabitInit\w*|LightGBM::(Network::Init|Linkers::Con)"
        r"|xgboost::collective::\w*(Tracker|Bootstrap|ConnectWorkers)",
        "XGBoost's tracker and LightGBM's machine list: all workers meet",
        rank=OUTER,
    ),
    step(
        "parameter-server",
        "ipc-queue",
        r"ps::(Customer::WaitRequest|Postoffice::\w*Barrier\w*|KV(Worker|Server)<.*>::(Wait|Pull|Push)|Simple(App)::Wait)|byteps::\w+::(Wait|Barrier)\w*",
        "ps-lite: waits for the parameter servers",
    ),
    FrameRule(
        "horovod-background",
        "condvar-idle",
        r"horovod::common::(\(anonymous namespace\)::)?(BackgroundThreadLoop|RunLoopOnce)$",
        "Horovod operations.cc: sleeps between its cycles",
        rank=LEAF,
        helper="Horovod background",
        leaf=True,
    ),
    message(
        "horovod",
        r"horovod::common::(MPI|Gloo|Controller|CCL)\w*::\w+|horovod::common::\w*(Controller|Negotiat)\w*",
        "Horovod mpi_controller.cc, gloo_controller.cc",
        rank=LOCK + 1,
    ),
    FrameRule(
        "ray-task-loop",
        "ipc-queue",
        r"ray::core::CoreWorker(Process(Impl)?)?::(RunTaskExecutionLoop|RunWorkerTaskExecutionLoop)",
        "Ray: a worker waits for tasks",
        rank=LOCK,
        idle=True,
        calls=RAY_TASK,
    ),
    step(
        RAY_GET,
        "ipc-queue",
        r"ray::core::(GetRequest|CoreWorker(MemoryStore|PlasmaStoreProvider)?)::(Get|Wait|Put|Create)|plasma::(PlasmaReceive|PlasmaClient)"
        r"|ray::experimental::\w*MutableObject\w*::",
        "Ray core_worker.cc: waits for an object that another process makes",
    ),
    FrameRule(
        "ray-io",
        "condvar-idle",
        r"ray::core::CoreWorker::RunIOService|ray::(gcs|raylet)::\w+::Run\w*Loop",
        "Ray: the thread of the event loop",
        rank=LEAF,
        helper="Ray background",
    ),
)
