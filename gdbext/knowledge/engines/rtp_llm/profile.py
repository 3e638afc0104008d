"""RTP-LLM (Alibaba): one process per rank below a backend server, Python outside and C++ inside."""

from gdbext.knowledge.launch.launchers import MODULE, RTP_LLM
from gdbext.knowledge.row_kinds import EngineProfile, TitleRule

PROFILE = EngineProfile(
    name="rtp-llm",
    titles=(
        TitleRule(r"^rtp_llm_rank-(?P<local_rank>\d+)", "rank", "rtp_llm start_backend_server.py", local=True),
        # with one rank the backend server does the work itself
        TitleRule(r"^rtp_llm_backend_server", "backend server", "rtp_llm start_backend_server.py", alone=True),
        TitleRule(r"^rtp_llm_frontend_server", "front end", "rtp_llm start_frontend_server.py"),
        TitleRule(r"^rtp_llm_(?:dash_sc_server|vit_server|vit_proxy)", "server", "rtp_llm start_*.py"),
        TitleRule(MODULE + r"(?:rtp_llm|maga_transformer)\.start_\w+", "front end", "start of the whole server"),
        TitleRule(r"^\S*python\S*\s.*/(?:rtp_llm|maga_transformer)/start_\w+\.py", "front end", "the same by file"),
    ),
    libraries=(r"/(?:rtp_llm|maga_transformer)/\S*\.so", r"(?:^|/)librtp_\w+\.so"),
    namespaces=(r"rtp_llm::", r"maga_transformer::", r"fastertransformer::"),
    python_paths=(r"(?:^|/)rtp_llm/", r"(?:^|/)maga_transformer/"),
    variables=(RTP_LLM,),
    environment=("WORLD_RANK", "FT_CORE_DUMP_ON_EXCEPTION"),
    notes={
        "title": "rtp_llm_rank-N carries the local rank; v0.1.x sets no title",
        "timeout": "the process group's time limit is a century: no watchdog ever fires",
        "idle": "followers wait in CpuTpBroadcaster::broadcast on a unix socket while there is no work",
        "namespace": "fastertransformer:: until May 2025, rtp_llm:: since",
    },
)
