"""A real server of SGLang on CPUs, with a fault in one of its processes; `scripts/bench sglang` diagnoses each."""
