"""Lines of kernels, launchers, schedulers and engines that say that a process ended."""

from typing import Tuple

from gdbext.knowledge.log_lines.last_words import CHILD
from gdbext.knowledge.row_kinds import LogRule

_DEAD, _MISSING = "exited-or-crashed", "missing-rank"
_SIGNALS = r"(?:Killed|Out Of Memory|Segmentation fault|Aborted|Bus error|Illegal instruction)"

RULES: Tuple[LogRule, ...] = (
    LogRule(
        "ray-killed-for-memory",
        r"killed due to (?:the node running low on memory|memory pressure)",
        "Ray killed a process of the job because its host was short of memory",
        "Ray memory_monitor.cc, worker_killing_policy.cc",
        _MISSING,
        "medium",
        _DEAD,
        befell="{ranks} {was} killed by Ray because its host was short of memory",
        alone="other",
    ),
    LogRule(
        "killed-for-memory",
        r"oom-kill|oom_kill|Out of memory: Kill(?:ed)? process|OOMKilled|OOM Killed"
        r"|emory cgroup out of memory: Kill|node was low on resource: memory|Killing process.{0,60}out of memory",
        "a process of the job was killed because the host or the container ran out of memory",
        "Linux oom killer; Kubernetes; Slurm",
        _MISSING,
        "medium",
        _DEAD,
        befell="{ranks} {was} killed because the host or the container ran out of memory",
        alone="other",
    ),
    LogRule(
        "killed",
        r"exitcode: -9\b.{0,40}local_rank: (?P<rank>\d+)|exitcode {1,9}: -9 \(pid"
        r"|is killed by signal: Killed|xit Code: {0,9}137\b|xit code:? ?137\b"
        r"|: line \d{1,6}: {1,6}\d{1,9} Killed\b|^Killed$|died with <Signals\.SIGKILL|\bsignal: killed\b"
        r"|xited with code 137\b|xitCode:? ?137\b"
        r"|exits with return code = -9\b|crashed with exit code -9\b",
        "a process of the job was killed; the usual cause is that the host ran out of memory",
        "torchrun; DeepSpeed; SGLang watchdog.py; torch data loader; Slurm; Kubernetes",
        _MISSING,
        "medium",
        _DEAD,
        befell="{ranks} {was} killed (exit code -9); the usual cause is that the host ran out of memory",
        alone="other",
    ),
    LogRule(
        "worker-died",
        r"Worker proc VllmWorker-(?P<rank>\d+) died unexpectedly|RayWorkerProc rank=\[(?P<rank2>\d+(?:, ?\d+)*)\] died"
        r"|(?:Worker|Engine core) proc \S{1,80} died unexpectedly"
        r"|Scheduler or DataParallelController \S{1,20} terminated with"
        r"|Rank (?P<rank3>\d+) scheduler is dead"
        r"|actor died unexpectedly before finishing|Worker exit type: SYSTEM_ERROR"
        r"|A worker died or was killed while executing|has been marked dead because the detector"
        r"|actor is dead because its node has died|because the node it was running on is dead"
        r"|is dead because the health check failed"
        r"|DUE TO NODE FAILURE|srun: error: Node failure on "
        r"|Raylet is terminated|Owner's (?:worker|node) has (?:died|crashed)"
        r"|[Ww]orker (?:process )?(?:rank )?(?P<rank4>\d+) (?:has died|is dead|exited unexpectedly)"
        r"|srun: error: \S{1,120} task (?P<rank5>\d+): "
        + _SIGNALS
        + r"|srun: error: \S{1,120} tasks? [\d,-]+: "
        + _SIGNALS,
        "a worker of the job ended while the job still needed it",
        "vLLM multiproc_executor.py, ray_executor_v2.py, core_client.py; SGLang engine.py; Ray gcs, "
        "exceptions.py; Slurm",
        _MISSING,
        "medium",
        _DEAD,
        befell="{ranks} ended while the job still needed the worker",
    ),
    LogRule(
        "mpi-rank-died",
        r"(?:noticed that|has exited due to) process rank (?P<rank>\d+) with PID \d+ on\b"
        r"|MPI_ABORT was invoked on rank (?P<rank2>\d+) in communicator"
        r"|RANK (?P<rank3>\d+) PID \d+ RUNNING AT|BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
        "the launcher saw a rank die",
        "Open MPI's mpirun, PRRTE; MPICH's hydra",
        _MISSING,
        "medium",
        _DEAD,
        befell="the launcher saw {ranks} die",
        alone="other",
    ),
    LogRule(
        "container-failed",
        r"Container rank (?P<rank>\d+) status failed cmd (?:.{0,400} code (?P<code>-?\d{1,4})\b)?",
        "Paddle's launcher saw a process exit",
        "paddle/distributed/launch/controllers/controller.py; Paddle#47326",
        _MISSING,
        "medium",
        _DEAD,
        befell="Paddle's launcher saw {ranks} exit{number}",
        alone="unknown",
    ),
    LogRule(
        "rank-exit-code",
        r"failed \(exitcode: (?P<code>-?\d{1,4})\) local_rank: \d+ \(pid: \d+\)"
        r"|exitcode {1,9}: (?P<code2>-?\d{1,4}) \(pid: \d|exits with return code = (?P<code3>-?\d{1,4})"
        r"|detected that one or more processes exited with non-zero status"
        r"|Primary job +terminated normally, but \d{1,6} process"
        r"|Signal \d{1,2} \(SIG\w{2,6}\) received by PID \d"
        r"|srun: error: \S{1,120} tasks? [\d,-]+: Exited with exit code",
        "the launcher saw a rank exit",
        "torch elastic multiprocessing/api.py; DeepSpeed launcher/launch.py; Slurm",
        wait=_DEAD,
    ),
    LogRule(
        "crash-in-kernel-log",
        r"traps: .{1,20}\[\d+\] (?:general protection|trap )|\]: segfault at [0-9a-f]{1,16} ip "
        r"|\]: (?:segfault|bus error|unhandled .{1,60}) \(\d{1,2}\) at |\]: unhandled exception: "
        r"|Killing \S{1,20}:\d{1,9} due to hardware memory corruption",
        "the kernel stopped a process after an invalid memory access",
        "Linux arch/x86/mm/fault.c, kernel/traps.c, arch/arm64/kernel/traps.c, arch/powerpc/kernel/traps.c",
        wait=_DEAD,
    ),
    LogRule(
        "child-died",
        rf"^{CHILD}|terminated abnormally with signal \d+|of user \d+ dumped core"
        r"|: line \d{1,6}: {1,6}\d{1,9} (?:Killed|Aborted|Segmentation fault|Bus error|Terminated)\b"
        r"|^\[\d{1,4}\] {1,4}[+-]? {1,4}\d{1,9} (?:abort|segmentation fault|bus error|killed|terminated|trace trap"
        r"|illegal hardware instruction|floating point exception)\b"
        r"|^zsh: (?:abort|segmentation fault|bus error|killed)\b"
        r"|died with <Signals\.SIG[A-Z]{3,5}: \d|returned non-zero exit status -?\d|exit status 3221\d{6}\b"
        r"|# A fatal error has been detected by the Java Runtime|BrokenProcessPool: |TerminatedWorkerError: "
        r"|node down: Not properly terminated|\*{3}Exception: (?:SegFault|Illegal|Numerical|Other)"
        r"|[Ss]tub process .{0,80}is not healthy"
        r"|signal: (?:killed|aborted|segmentation fault|bus error)",
        "a child process did not end normally",
        "cpython multiprocessing/process.py, subprocess.py, concurrent/futures; joblib; pytest-xdist; CTest; "
        "systemd-coredump; bash, zsh; Go os/exec; OpenJDK; Triton python_be.cc",
        wait=_DEAD,
    ),
    LogRule(
        "engine-dead",
        r"EngineDeadError|WorkerProc (?:hit an exception|was terminated|failed to start|initialization failed)"
        r"|Error executing method \w"
        r"|EngineCore (?:encountered (?:an issue|a fatal error)"
        r"|failed to start)"
        r"|Engine (?:core initialization failed|background task failed|loop has died)"
        r"|(?:ActorDied|ActorUnavailable|WorkerCrashed|NodeDied|NodeFailed|OwnerDied|RayActor)Error\b|\bNodeFailed\b"
        r"|The actor is dead because|Received sigquit from a child process"
        r"|Subprocess .{0,90}(?:exited|crashed) with (?:exit )?code"
        r"|Scheduler hit an exception"
        r"|(?:MpiSession|MpiPool|MPI) worker .{0,40}(?:has died|died unexpectedly"
        r"|exited unexpectedly)",
        "an engine or one of its worker processes ended",
        "vLLM v1/engine/exceptions.py; Ray exceptions.py; SGLang scheduler.py; TensorRT-LLM executor/proxy.py",
        wait=_DEAD,
    ),
    LogRule(
        "engine-part-dead",
        r"(?:Detokenizer|DataParallelController|TokenizerManager) hit an exception"
        r"|Dumping input data for V1 LLM engine|Engine process failed to start|Initialization failed\. warmup error"
        r"|Unrecoverable error in executor|main process disappeared",
        "a part of an engine ended",
        "SGLang detokenizer_manager.py, http_server.py; vLLM logging_utils/dump_input.py, v1/engine/utils.py; "
        "TensorRT-LLM; CANN te_fusion",
        wait=_DEAD,
    ),
    LogRule(
        "batch-system-ended-it",
        r"slurmstepd: error: \*{3} (?:STEP|JOB) \S{1,40} ON \S{1,80} (?:CANCELLED|FAILED)|DUE TO (?:TIME LIMIT"
        r"|PREEMPTION)|Job step aborted: Waiting up to"
        r"|(?:reason|Reason): ?(?:Evicted|Preempted|NodeLost|DeadlineExceeded)|CrashLoopBackOff"
        r"|Back-off restarting failed container|(?:Liveness|Startup) probe failed",
        "the batch system or the cluster ended the job",
        "Slurm slurmstepd; Kubernetes kubelet events",
        wait=_DEAD,
    ),
    LogRule(
        "ended-from-outside",
        r"`Termination signal` is detected|^(?:\[SignalInfo: )?\*{3} SIGTERM \(|\*{3} SIGTERM received at "
        r"|^Signal: Terminated \(15\)|^Signal Received: 15 |[Cc]aught signal 15\b|^Terminated$",
        "a signal from outside (SIGTERM) ended the process",
        "Paddle signal handler; glog; Open MPI; UCX; bash",
        wait=_DEAD,
    ),
    LogRule(
        "launcher-interrupted",
        r"Sending process (?P<worker>\d+) closing signal SIG(?:INT|HUP|QUIT)\b"
        r"|Received \d+ death signal, shutting down workers",
        "the launcher itself got that signal, as after Ctrl-C or from a batch system, and passed it on to its workers",
        "torch elastic multiprocessing/api.py, agent/server/api.py: after a failed rank it sends SIGTERM",
    ),
    LogRule(
        "ended-by-launcher",
        r"Sending process (?P<worker>\d+) closing signal (?!SIG(?:INT|HUP|QUIT)\b)"
        r"|Killing subprocess (?P<worker2>\d+)|Process \d+ got signal: \d+|Terminating worker"
        r"|Force Terminated (?:job|Step)",
        "the launcher ended that process, because another one had failed or the launcher itself was told to stop",
        "torch elastic multiprocessing/api.py; DeepSpeed launcher/launch.py; Slurm",
        wait=_DEAD,
    ),
    LogRule(
        "loader-worker-failed",
        r"DataLoader worker \(pid \d{1,9}\) is killed by signal: (?:Aborted|Segmentation|Illegal|Floating)",
        "a DataLoader worker process crashed",
        "torch/utils/data/_utils/signal_handling.py; torch DataLoader.cpp",
        "other",
        wait=_DEAD,
        own=True,
    ),
    LogRule(
        "manager-saw-it-end",
        r"\b(?:exited, |\()code=(?:killed|dumped|exited)\b(?!, status=0)|\bResult: (?:core-dump|oom-kill|signal)\b"
        r"|Failed with result '(?:core-dump|oom-kill|signal|watchdog)'"
        r"|was sent (?:SIG(?:KILL|ABRT|SEGV|BUS|ILL|FPE)\b|code \d)|^=>> PBS: job killed|Faulting application name: "
        r"|WORKER TIMEOUT \(pid:|Abort\(-?\d+\) on node (?P<rank>\d+) "
        r"|application called MPI_Abort\(.{0,80}\) - process (?P<rank2>\d+)"
        r"|\b(?:[Pp]rocess|[Ww]orker|[Cc]hild|[Rr]ank|[Aa]ctor|[Cc]ontainer|[Nn]ode|[Jj]ob|[Tt]ask)\b.{0,60}"
        r"(?: died| crashed| killed| exited| terminated| aborted| failed)\b.{0,60}"
        r"(?:\bsignal\b|\bSIG[A-Z]{3,5}\b|exit[ _]?(?:code|status)\b[ =:(]{0,3}-?[1-9])",
        "a process manager reported that a process ended",
        "systemd service.c; gunicorn arbiter.py; MPICH and Intel MPI; PBS; Windows; the words that managers use",
        wait=_DEAD,
    ),
)
