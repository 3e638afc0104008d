"""Plain MPI and NCCL programs, such as nccl-tests: what is left when no engine is recognised."""

from gdbext.knowledge.launch.launchers import MODULE, PROGRAM
from gdbext.knowledge.row_kinds import EngineProfile, TitleRule

PROFILE = EngineProfile(
    name="mpi",
    titles=(
        TitleRule(
            PROGRAM + r"(?:all_reduce|all_gather|all_gather_v|alltoall|broadcast|gather|hypercube|reduce|"
            r"reduce_scatter|scatter|sendrecv)_perf(?:_mpi)?(?:\s|$)",
            "rank",
            "nccl-tests and rccl-tests; without mpirun its threads are the ranks",
        ),
        TitleRule(
            MODULE + r"mpi4py\.futures\.server(?:\s|$)",
            "rank",
            "mpi4py futures/_core.py: the workers that MPIPoolExecutor spawns; TensorRT-LLM's LLM API uses them",
        ),
    ),
    libraries=(r"(?:^|/)lib(?:mpi|mpi_\w+|mpich\w*|nccl|rccl|nvshmem\w*)\.so",),
    namespaces=(r"ncclTest", r"testResult_t"),
    threads_are_ranks=True,
    environment=("OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "PALS_RANKID"),
)
