"""llama.cpp and what embeds it: one process for all GPUs."""

from gdbext.knowledge.launch.launchers import MODULE, PROGRAM
from gdbext.knowledge.row_kinds import EngineProfile, TitleRule

PROFILE = EngineProfile(
    name="llama-cpp",
    titles=(
        TitleRule(
            PROGRAM + r"llama-(?:server|cli|run|bench|batched\S*|perplexity|parallel|simple\S*|speculative\S*|"
            r"embedding|imatrix|lookup\S*|mtmd-cli|tts)(?:\s|$)",
            "rank",
            "llama.cpp tools",
        ),
        TitleRule(PROGRAM + r"(?:ggml-)?rpc-server(?:\s|$)", "server", "llama.cpp: lends its GPUs over the network"),
        TitleRule(MODULE + r"llama_cpp\.server\S*", "rank", "llama-cpp-python"),
        TitleRule(PROGRAM + r"ollama\s+runner\b", "rank", "ollama"),
        TitleRule(PROGRAM + r"ollama\s+serve\b", "front end", "ollama"),
    ),
    libraries=(r"(?:^|/)lib(?:llama|ggml|mtmd)\S*\.so",),
    namespaces=(r"ggml_", r"gguf_", r"llama_", r"llm_(?:build|graph)_", r"server_(?:context|slot|queue)", r"mtmd_"),
    python_paths=(r"(?:^|/)llama_cpp/",),
    threads_are_ranks=True,
    notes={"abort": "ggml_abort starts a debugger of its own, which fails while another one is attached"},
)
