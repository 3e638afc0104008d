"""TurboMind (lmdeploy): one process, a thread for every GPU."""

from gdbext.knowledge.launch.launchers import MODULE, SCRIPT
from gdbext.knowledge.row_kinds import EngineProfile, TitleRule

PROFILE = EngineProfile(
    name="turbomind",
    titles=(
        TitleRule(SCRIPT + r"lmdeploy\s+(?:serve|chat|eval|check_env)\b", "front end", "lmdeploy cli", alone=True),
        TitleRule(MODULE + r"lmdeploy(?:\.\S+)?(?:\s|$)", "front end", "lmdeploy cli", alone=True),
    ),
    libraries=(r"(?:^|/)_turbomind\S*\.so",),
    namespaces=(r"turbomind::",),
    python_paths=(r"(?:^|/)lmdeploy/",),
    threads_are_ranks=True,
    environment=("LMDEPLOY_DIST_INIT_ADDR", "TM_LOG_LEVEL"),
    notes={"ranks": "each GPU has its Engine and ModelExecutor threads in one process"},
)
