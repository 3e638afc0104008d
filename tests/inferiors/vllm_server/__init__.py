"""A real server of vLLM on CPUs, with a fault in one of its processes; `scripts/bench vllm` diagnoses each of them."""
