"""Plain torch.distributed jobs: what torchrun starts. Listed after the engines that are built on torch."""

from gdbext.knowledge.row_kinds import EngineProfile, TitleRule

PROFILE = EngineProfile(
    name="torch",
    titles=(TitleRule(r"^ray::(?:RayTrainWorker|TorchTrainer)\b", "rank", "Ray Train"),),
    libraries=(r"(?:^|/)libtorch(?:_cpu|_cuda|_python|_hip|_npu)?\.so", r"(?:^|/)libc10(?:_cuda|_hip)?\.so"),
    environment=("TORCHELASTIC_RUN_ID", "MASTER_ADDR"),
    notes={"frames": "no namespace: torch's own frames are library frames, the job's code is the user's"},
)
