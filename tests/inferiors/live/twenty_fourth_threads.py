"""Engines of one process that hang, and healthy ones, twenty-fourth set: `twenty_fourth_threads.py NAME FOLDER`."""

import asyncio
import concurrent.futures
import ctypes
import itertools
import random
import threading

from tests.inferiors.live.place import at, child_of, in_folder, run, wait_for_role, work_for
from tests.inferiors.live.twenty_fourth_extension import extension

EXPRESSION = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)


def child_names(level):
    return int(level >= 0)


def scene_exists():
    """As GafferHQ/gaffer#1686: whether a path exists is computed by threads in C++, and a node of the graph is in
    Python. The binding does not let go of the interpreter's lock while it waits for them."""
    expression = EXPRESSION(child_names)
    print(extension().scene_exists(expression, 6), flush=True)
    binding = extension(ctypes.PyDLL)
    at("main")
    binding.scene_exists(expression, 6)


def read_in_worker():
    at("child")
    print(extension().read_chunk(1), flush=True)


def reads_after_fork():
    """As google/tensorstore#206: an array has been read, and its library has a pool of threads since then. A process is
    forked to read more of it, and has the pool without the threads."""
    print(extension().read_chunk(0), flush=True)
    worker = child_of(read_in_worker)
    wait_for_role("child")
    at("main")
    worker.join()


class MemoryAwarePrefixCache:
    """What was computed for the beginnings of prompts. A copy of it can only be made by the one worker."""

    def __init__(self, worker):
        self.lock, self.entries, self.worker, self.hits = threading.Lock(), {}, worker, 0
        self.fetching = threading.Event()

    def fetch(self, prompt):
        with self.lock:
            self.fetching.set()
            beginning = max((one for one in self.entries if prompt.startswith(one)), key=len)
            copy = self.worker.submit(list, self.entries[beginning]).result()
            self.hits += 1
        return copy

    def store(self, prompt, state):
        with self.lock:
            self.entries[prompt] = state


def generate(cache, prompt, until):
    """Of a request that is in flight; its state is stored at its end."""
    state = [ord(letter) for letter in prompt]
    while not until.is_set():
        state.append(sum(state) % 256)
        work_for(0.01)
    cache.store(prompt, state)


def clones_a_snapshot():
    """As jjang-ai/vmlx#240: the cache has something for a request. With its lock it waits for the worker to make a
    copy; the worker is in another request, which comes to its end and is stored."""
    worker = concurrent.futures.ThreadPoolExecutor(1, "mlx-worker")
    cache, over = MemoryAwarePrefixCache(worker), threading.Event()
    over.set()
    worker.submit(generate, cache, "tell me", over).result()
    print(cache.fetch("tell me a story")[-1], flush=True)
    cache.fetching.clear()
    worker.submit(generate, cache, "why is it", cache.fetching)
    at("main")
    cache.fetch("tell me more")


class Flow:
    """Its methods can ask the user. Those that are not coroutines are run in a thread."""

    def __init__(self):
        self.loop = None

    async def round_trip(self, question):
        await asyncio.sleep(0.01)
        return f"an answer to {question}"

    def ask(self, question):
        return asyncio.run_coroutine_threadsafe(self.round_trip(question), self.loop).result()

    def begin(self):
        return self.ask("what is it about?")

    async def go_on(self):
        at("main")
        return self.ask("and how long?")

    async def kickoff(self):
        self.loop = asyncio.get_running_loop()
        print(await asyncio.to_thread(self.begin), flush=True)
        return await self.go_on()


def asks_from_a_flow():
    """As crewAIInc/crewAI#5788: a method of a flow asks the user, for which a coroutine is run in the loop, and waited
    for. This method is a coroutine itself, in the thread of the same loop."""
    asyncio.run(Flow().kickoff())


def permute(weight, heads):
    """The rows of each head are in another order there."""
    import torch

    halves = weight.reshape(heads, 2, -1, weight.shape[1])
    rows = [halves[head, half, row] for head in range(heads) for row in range(halves.shape[2]) for half in range(2)]
    return torch.stack(rows)


def convert_file(path):
    import torch

    names = [f"layers.{layer}.{part}" for layer in range(200) for part in ("q_proj", "k_proj", "v_proj")]
    torch.save(torch.ones(256, 128), path)
    converted = {}
    for name in names:
        weight = torch.load(path)
        for _ in range(20):
            weight = permute(weight, 8)
        converted[name.replace("proj", "attn")] = weight.half()
    torch.save(converted, in_folder("converted.pth"))


def converts_a_checkpoint():
    """Healthy, as Lightning-AI/lit-llama#120: a checkpoint is converted, file after file. The first one takes ten
    minutes, and the bar is at 0 until then."""
    import torch

    torch.set_num_threads(1)
    at("main")
    for number in itertools.count():
        print(f"{number}/33 files", flush=True)
        convert_file(in_folder("shard.bin"))


def merge_pairs(word):
    """The most frequent pair of a word becomes one part, again and again."""
    parts = list(word)
    while len(parts) > 1:
        counts = {}
        for pair in zip(parts, parts[1:]):
            counts[pair] = counts.get(pair, 0) + 1
        best, merged = max(counts, key=counts.get), []
        if counts[best] < 2:
            break
        for part in parts:
            if merged and (merged[-1], part) == best:
                merged[-1] += part
            else:
                merged.append(part)
        parts = merged
    return len(parts)


def merges_a_long_word():
    """Healthy, as huggingface/tokenizers#1206: words are merged by many threads. One text has no spaces, and is one
    word of some megabytes; all threads but one have come to an end."""
    letters = random.Random(1)
    words = ["".join(letters.choices("abcdefghij", k=6)) for _ in range(300)]
    words.insert(0, "".join(letters.choices("abcdefghij", k=1 << 20)))
    with concurrent.futures.ThreadPoolExecutor(3, "rayon") as pool:
        results = [pool.submit(merge_pairs, word) for word in words]
        concurrent.futures.wait(results[1:])
        print("count pairs: 99%", flush=True)
        at("main")
        results[0].result()


PROGRAMS = {
    "scene-exists": scene_exists,
    "reads-after-fork": reads_after_fork,
    "clones-a-snapshot": clones_a_snapshot,
    "asks-from-a-flow": asks_from_a_flow,
    "converts-a-checkpoint": converts_a_checkpoint,
    "merges-a-long-word": merges_a_long_word,
}

if __name__ == "__main__":
    run(PROGRAMS)
