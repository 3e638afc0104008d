"""MindSpore: workers and one scheduler, started by msrun with the same command line."""

from gdbext.knowledge.launch.launchers import MINDSPORE
from gdbext.knowledge.row_kinds import EngineProfile

PROFILE = EngineProfile(
    name="mindspore",
    libraries=(r"(?:^|/)libmindspore\S*\.so", r"(?:^|/)_c_expression\S*\.so", r"/mindspore/\S*\.so"),
    namespaces=(r"mindspore::",),
    python_paths=(r"(?:^|/)(?:vllm_)?mindspore/", r"(?:^|/)mindformers/", r"(?:^|/)mindspeed(?:_llm)?/"),
    variables=MINDSPORE,
    environment=("MS_ROLE", "MS_SCHED_HOST", "MS_WORKER_NUM"),
    notes={"scheduler": "only MS_ROLE tells it from worker 0: both carry RANK_ID=0"},
)
