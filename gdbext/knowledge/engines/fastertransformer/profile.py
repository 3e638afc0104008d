"""FasterTransformer: one process per rank by mpirun, or one thread per GPU inside Triton."""

from gdbext.knowledge.launch.launchers import PROGRAM, SCRIPT
from gdbext.knowledge.row_kinds import EngineProfile, TitleRule

PROFILE = EngineProfile(
    name="fastertransformer",
    titles=(
        TitleRule(PROGRAM + r"multi_gpu_\w+_example(?:\s|$)", "rank", "FasterTransformer examples/cpp"),
        TitleRule(PROGRAM + r"\w+_triton_example(?:\s|$)", "rank", "the same; its threads are the ranks"),
        TitleRule(SCRIPT + r"multi_gpu_\w+_example\.py(?:\s|$)", "rank", "FasterTransformer examples/pytorch"),
    ),
    libraries=(
        r"(?:^|/)libtransformer-shared\.so",
        r"(?:^|/)libtriton_fastertransformer\.so",
        r"(?:^|/)libth_(?:transformer|parallel_gpt|gpt|bert|t5|bart|decoding|encoder|decoder|swin|vit)\w*\.so",
    ),
    namespaces=(
        r"fastertransformer::",
        r"torch_ext::",
        r"triton::backend::fastertransformer",
        r"\w*TritonModel(?:Instance)?<",  # the Triton classes stand in the global namespace
        r"AbstractTransformerModel",
        r"(?:all2all_reduce_sum|all2all_gather|nccl_send|nccl_recv|nccl_broadcast)\b",  # v4.0 has no namespace
    ),
    threads_are_ranks=True,
    environment=("FT_LOG_LEVEL", "FT_DEBUG_LEVEL"),
    notes={
        "ranks": "with mpirun a process is a rank; in Triton and the *_triton_example programs a thread is",
        "device": "the device is the rank modulo the number of devices",
    },
)
