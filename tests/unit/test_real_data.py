"""The real pastes are whole: texts and labels in pairs, legal labels, even threads only, none twice, seals unbroken."""

import hashlib
import json
import re
import tarfile
from collections import Counter
from pathlib import Path

import pytest

REAL = Path(__file__).parents[1] / "data" / "real"
SIZES = {f"batch-{number}": 25 if number < 9 else 20 for number in range(1, 11)}
SIZES.update(
    {"batch-11": 47, "batch-12": 48, "batch-13": 54, "batch-14": 81, "batch-15": 60, "batch-16": 60, "batch-17": 41}
)
SIZES.update(
    {"batch-18": 45, "batch-19": 45, "batch-20": 42, "batch-21": 45, "batch-22": 40, "batch-23": 42, "batch-24": 36}
)
SIZES["batch-25"] = 34
SIZES["batch-26"] = 40
SIZES["batch-27"] = 40
SIZES["batch-28"] = 40
SIZES["batch-29"] = 40
SIZES["batch-30"] = 40
BATCHES = list(SIZES)
SEALED = set(BATCHES[2:]) - {f"batch-{number}" for number in range(17, 31)}

WAITS = re.findall(
    r"[\w-]+",
    """pinned-host-alloc device-alloc device-free cublas module-load kernel-launch stream-sync event-sync device-sync
    memcpy-sync nccl-init nccl-group-launch nccl-destroy-abort store-wait mpi gloo ipc-queue gil mutex condvar-idle
    io python-code native-compute exited-or-crashed sigbus cuda-error-throw unknown""",
)
CAUSES = re.findall(
    r"[\w-]+",
    """implicit-sync-vs-collective lazy-module-load-vs-collective missing-rank collective-mismatch multi-comm-ordering
    init-rendezvous network-transport p2p-or-topology launch-serialisation gil-deadlock lock-order-deadlock
    fork-after-cuda destructor-or-teardown shm-too-small gpu-fault driver-bug not-a-hang other unknown""",
)
KEYS = {
    "id", "source", "title_own_words", "tool", "engine", "scope", "evidence", "format", "libs", "truth", "processes",
}  # fmt: skip
MAY = {"notes", "world_size"}
FORMATS = {"gdb", "cuda-gdb", "py-spy", "faulthandler", "lldb", "log"}


def files(batch):
    """The files of a batch by name, from its folder or, still sealed, from its archive (never unpacked to disk)."""
    folder = REAL / batch
    if folder.is_dir():
        return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
    with tarfile.open(REAL / "sealed" / f"{batch}.tar.xz") as archive:
        return {Path(member.name).name: archive.extractfile(member).read() for member in archive.getmembers()}


def cases(batch):
    return [json.loads(data) for name, data in files(batch).items() if name.endswith(".json")]


def thread_of(source):
    match = re.fullmatch(r"https://github\.com/([\w.-]+/[\w.-]+)/(?:issues|pull)/(\d+)", source)
    assert match, source
    return match[1].lower(), int(match[2])


@pytest.mark.parametrize("batch", BATCHES)
def test_a_batch_has_its_number_of_texts_each_with_its_label(batch):
    names = files(batch)
    texts = {name[:-4] for name in names if name.endswith(".txt")}
    labels = {name[:-5] for name in names if name.endswith(".json")}
    assert len(texts) == SIZES[batch]
    assert texts == labels == {case["id"] for case in cases(batch)}
    assert len(names) == 2 * SIZES[batch]
    assert all(data.strip() for data in names.values())


@pytest.mark.parametrize("batch", BATCHES)
def test_keys_and_labels_are_legal(batch):
    for case in cases(batch):
        truth = case["truth"]
        also = truth.get("also_acceptable", {})
        assert set(case) >= KEYS
        assert set(case) <= KEYS | MAY
        assert {truth["wait"], *also.get("wait", [])} <= set(WAITS)
        assert {truth["cause"], *also.get("cause", [])} <= set(CAUSES)
        assert set(also) <= {"wait", "cause"}
        assert truth["confidence"] in {"high", "medium", "low"}
        assert case["scope"] in {"scored", "adjacent"}
        assert case["format"] in FORMATS
        assert case["title_own_words"]
        assert truth["why_own_words"]


@pytest.mark.parametrize("batch", BATCHES)
def test_the_decisive_thread_fits_the_evidence(batch):
    for case in cases(batch):
        decisive, processes = case["truth"]["decisive"], case["processes"]
        if case["evidence"] == "stack":
            threads = {thread["id"]: thread for thread in processes[decisive["process"]]["threads"]}
            assert threads[decisive["thread"]]["frames"]
        else:
            assert decisive["thread"] is None
            assert decisive["process"] in (None, *range(len(processes)))
        if case["evidence"] == "none":
            assert decisive["process"] is None
            assert case["truth"]["wait"] == "unknown"


@pytest.mark.parametrize("batch", BATCHES)
def test_threads_and_frames_stand_in_the_text(batch):
    texts = files(batch)
    for case in cases(batch):
        text = texts[case["id"] + ".txt"].decode()
        for process in case["processes"]:
            for thread in process["threads"]:
                assert thread.get("no_header") or thread["id"] in text
                for frame in thread["frames"]:
                    assert set(frame) == {"fn", "lib", "file", "line"}
                    assert frame["fn"] == "??" or re.split("[<(]", frame["fn"])[0] in text


def test_every_thread_is_even_and_none_comes_twice():
    found = Counter(thread_of(case["source"]) for batch in BATCHES for case in cases(batch))
    corpus = {
        (repo.lower(), int(number))
        for repo, number in map(str.split, (REAL / "corpus-sources.txt").read_text().splitlines())
    }
    assert not {thread for thread in found if thread[1] % 2}
    assert set(found.values()) == {1}
    assert not set(found) & corpus


def test_the_seals_are_unbroken():
    seals = [line.split("  ") for line in (REAL / "SEALS").read_text().splitlines()]
    sealed, opened = [], {}
    for digest, name in seals:
        if name.endswith(":file"):
            sealed.append((digest, name[len("sealed/") : -len(".tar.xz:file")]))
        elif name.startswith("batch-"):
            opened[name] = digest
        elif (REAL / name).exists():
            assert hashlib.sha256((REAL / name).read_bytes()).hexdigest() == digest
    for batch in BATCHES:
        digests = {name: hashlib.sha256(data).hexdigest() for name, data in files(batch).items()}
        if batch in SEALED:
            assert sorted(digests.values()) == sorted(digest for digest, name in sealed if name == batch)
        else:
            assert {f"{batch}/{name}": digest for name, digest in digests.items()} == {
                name: digest for name, digest in opened.items() if name.startswith(batch + "/")
            }


def test_the_readme_lists_the_open_cases_and_hides_the_sealed_ones():
    readme = (REAL / "README.md").read_text()
    for batch in BATCHES:
        for case in cases(batch):
            assert (case["source"] + ")" in readme) == (batch not in SEALED or (REAL / batch).is_dir())
