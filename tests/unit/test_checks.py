"""Messages of failed checks, what they mean, and faults of the kernel: without gdb."""

import re

import pytest

from gdbext.analysis.failures import check_messages, fatal_signal
from gdbext.analysis.failures.error_codes import code
from gdbext.cli.run import checking
from gdbext.commands.check import list_
from gdbext.knowledge.errors.checks import CALLED, FAIL_FUNCTIONS, MESSAGES, NEVER_SEARCHED, STARTING, SWITCHES
from gdbext.model.check_report import (
    CheckReport,
    CheckStatus,
    Failure,
    SourceLine,
    SwitchResult,
    SwitchResults,
    WatchedRank,
)
from gdbext.model.errors import UsageError
from gdbext.model.stack import Frame
from gdbext.render import Style, render
from gdbext.render.json.document import document

ILLEGAL = "an illegal memory access was encountered"


@pytest.mark.parametrize(
    ("message", "engine", "error", "place"),
    [
        (f"[FT][ERROR] CUDA runtime error: {ILLEGAL} /w/src/cuda_utils.h:44 \n", "fastertransformer", 700,
         ("/w/src/cuda_utils.h", 44)),
        (f"[TM][ERROR] CUDA runtime error: {ILLEGAL} src/llama.cu:7 \n", "turbomind", 700, ("src/llama.cu", 7)),
        (f"[ERROR] CUDA runtime error: {ILLEGAL} rtp_llm/cpp/a.cc:9", "rtp-llm", 700, ("rtp_llm/cpp/a.cc", 9)),
        ("[ERROR] NCCL error: unhandled cuda error (run with NCCL_DEBUG=INFO for details) b.cc:3", "rtp-llm", 1,
         ("b.cc", 3)),
        (f"[TensorRT-LLM][ERROR] CUDA runtime error in cudaFree(p): {ILLEGAL} (/s/x.cpp:12)\n1 0x5", "tensorrt-llm",
         700, ("/s/x.cpp", 12)),
        ("[TensorRT-LLM][ERROR] Assertion failed: rank < size (/s/y.cpp:5)", "tensorrt-llm", None, ("/s/y.cpp", 5)),
        ("[FT][ERROR] size mismatch Assertion fail: /a/Tensor.cc:3 \n", "", None, ("/a/Tensor.cc", 3)),
        ("[FT][ERROR] CUDA runtime error: CUBLAS_STATUS_EXECUTION_FAILED g.cc:8 \n", "fastertransformer", 13,
         ("g.cc", 8)),
        (f"CUDA error: {ILLEGAL}\nCUDA kernel errors might be asynchronously reported", "torch", 700, ("", None)),
        ("NCCL error in: ../NCCLUtils.hpp:154, remote process exited or there was a network error, NCCL 2.21",
         "torch", 6, ("../NCCLUtils.hpp", 154)),
        ("cuda call failed: misaligned address at my/fork.cu:5", "", 716, ("my/fork.cu", 5)),
        (f"Failed at /s/kernel.cuh:41: CUDA error: {ILLEGAL}. ", "sglang", 700, ("/s/kernel.cuh", 41)),
        (f"CUDA error (csrc/select.cu:9): {ILLEGAL}", "", 700, ("csrc/select.cu", 9)),
        (f"CUDA error in /f/DevKernel.h:12 executing 'f()': {ILLEGAL}", "", 700, ("/f/DevKernel.h", 12)),
        (f"rms_norm, /v/norm.cu:77, CUDA error: {ILLEGAL}", "torch", 700, ("/v/norm.cu", 77)),
        ("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has", "torch", 2, ("", None)),
    ],
)  # fmt: skip
def test_each_engines_message_gives_error_and_place(message, engine, error, place):
    found = check_messages.failure_of(message)
    assert found.engine == engine
    assert (found.error.number if found.error else None) == error
    assert (found.file, found.line) == place


@pytest.mark.parametrize(
    "message", ["", "no such key", "basic_string::at", "bad_alloc", "connection reset", "x" * 9000]
)
def test_other_exceptions_are_no_failed_check(message):
    assert check_messages.failure_of(message) is None


def test_the_message_decides_before_what_was_noted():
    noted = code("cudaError_t", 35)
    assert check_messages.failure_of(f"[FT][ERROR] CUDA runtime error: {ILLEGAL} a.cc:1", noted).error.number == 700
    assert check_messages.failure_of("[FT][ERROR] CUDA runtime error: Unsinn a.cc:1", noted).error.number == 35


@pytest.mark.parametrize(
    ("name", "may"),
    [("St13runtime_error", True), ("N3c105ErrorE", True), ("N12tensorrt_llm3_v16common13TllmExceptionE", True),
     ("N9turbomind1XE", True), ("N6sglang4host10PanicErrorE", True),
     ("N3c1016AcceleratorErrorE", True), ("N3c1016DistBackendErrorE", True), ("N3c1019NotImplementedErrorE", False),
     ("N3c1010IndexErrorE", False),
     ("St12out_of_range", False), ("4Mine", False), ("i", False), ("St9bad_alloc", False)],
)  # fmt: skip
def test_types_that_no_check_throws_are_not_watched(name, may):
    assert check_messages.may_be_thrown(name) is may


def test_sources_are_ones_that_a_reader_can_find():
    said = [row.source for row in (*MESSAGES, *FAIL_FUNCTIONS, *CALLED, *SWITCHES)] + [row[3] for row in STARTING]
    assert not [text for text in said if "facts" in text or ".md" in text]


def test_rows_have_sources_and_engines_that_exist():
    for row in (*MESSAGES, *FAIL_FUNCTIONS, *SWITCHES):
        assert row.source
    row = next(row for row in SWITCHES if row.engine == "fastertransformer")
    assert row.level == "_ZZN17fastertransformer12syncAndCheckEPKciE5levelB5cxx11"
    assert row.level_guard == "_ZGVZN17fastertransformer12syncAndCheckEPKciE5levelB5cxx11"
    assert all(len(row) == 4 and row[3] for row in STARTING)
    assert len(list_(None, None).kinds) == len(MESSAGES) + len(FAIL_FUNCTIONS) + len(SWITCHES)


@pytest.mark.parametrize(
    ("library", "searched"),
    [("libth_transformer.so", True), ("engine", True), ("libc10_cuda.so", True), ("libtorch_cuda.so", True),
     ("libc.so.6", False), ("libcudart.so.12", False), ("libpython3.11.so.1.0", False), ("libtorch_cpu.so", False),
     ("libnccl.so.2", False), ("libcommon.so", True), ("ld-linux-x86-64.so.2", False)],
)  # fmt: skip
def test_which_files_are_searched(library, searched):
    assert (re.match(NEVER_SEARCHED, library) is None) is searched


def test_what_asynchronous_means_depends_on_the_error_and_on_blocking_launches():
    failed = Failure("check", "check", error=code("cudaError_t", 700), file="a.cc", line=3)
    assert "launched earlier" in check_messages.timing(failed, {}) and "a.cc:3" in check_messages.timing(failed, {})
    assert "is the one that failed" in check_messages.timing(failed, {"CUDA_LAUNCH_BLOCKING": "1"})
    assert check_messages.timing(Failure("check", "check", error=code("cudaError_t", 35)), {}).endswith(
        "call itself failed."
    )
    assert check_messages.timing(Failure("check", "check", error=code("ncclResult_t", 6)), {}) == ""


def test_the_report_says_between_which_checks_as_far_as_it_is_known():
    failed = Failure("check", "check", error=code("cudaError_t", 700), file="a.cc", line=9, engine="fastertransformer")
    plain = check_messages.timing(failed, {}, "a.cc:5")
    assert "Which check passed last is unknown" in plain and "the one before it in the source is a.cc:5" in plain
    assert "Which check passed last is unknown" in check_messages.timing(failed, {})
    every = check_messages.timing(failed, {"FT_DEBUG_LEVEL": "DEBUG"}, "a.cc:5")
    assert "between the check before this one (a.cc:5) and a.cc:9" in every and "unknown" not in every
    hidden = Failure("check", "check", error=code("cublasStatus_t", 13), file="a.cc", line=9)
    assert "launched earlier" in check_messages.timing(hidden, {})
    assert "launched earlier" in check_messages.timing(Failure("signal", "SIGABRT", error=code("cudaError_t", 719)), {})


SOURCE = """void Layer::forward() {
    check_cuda_error(cudaMalloc(&p, n));
    launch(p);  // check_cuda_error(not this)
    if (debug)
        sync_check_cuda_error();
    TLLM_CUDA_CHECK(f());
    C10_CUDA_CHECK(g());
    other(check_cuda);
    check_cuda_value(h());
}""".splitlines()


@pytest.mark.parametrize(
    ("first", "line", "before"), [(1, 9, 7), (1, 7, 6), (1, 6, 5), (1, 5, 2), (1, 2, None), (3, 5, None)]
)
def test_the_check_before_is_found_in_the_source(first, line, before):
    assert check_messages.check_before(SOURCE, first, line) == before


def test_a_check_that_is_always_called_is_told_by_its_frame_or_by_its_message():
    what = "c10::cuda::c10_cuda_check_implementation"
    named = (Frame("f"), Frame(f"{what} [clone .cold]"), Frame("vllm::norm"))
    assert check_messages.called_check(named, "")[0] == 1
    assert check_messages.called_check((Frame("turbomind::check<cudaError>"),), "")[1].file == 2
    assert check_messages.called_check((Frame(None), Frame("f")), what)[0] == 0
    assert check_messages.called_check((Frame("f"),), what) is None and check_messages.called_check((), what) is None


@pytest.mark.parametrize(
    ("text", "is_source"),
    [("/pytorch/aten/src/ATen/native/cuda/Copy.cu", True), ("c10/cuda/CUDAGuardImpl.h", True), ("attention.cc", True),
     ("", False), (None, False), ("forward", False), ("a file.cc", False), ("\x01.h", False),
     ("x" * 600 + ".h", False)],
)  # fmt: skip
def test_names_of_source_files(text, is_source):
    assert check_messages.looks_like_source(text) is is_source


def test_steps_leave_out_what_is_done_already():
    failed = Failure("check", "check", error=code("cudaError_t", 700), engine="fastertransformer")
    plain = check_messages.steps(failed, None, {})
    assert "llm-check enable" in plain[0] and any("CUDA_LAUNCH_BLOCKING=1" in step for step in plain)
    done = check_messages.steps(failed, None, {"CUDA_LAUNCH_BLOCKING": "1", "FT_DEBUG_LEVEL": "DEBUG"})
    assert not any("CUDA_LAUNCH_BLOCKING=1" in step or "llm-check enable" in step for step in done)


def test_the_engine_frame_is_the_first_that_is_no_check():
    names = ("__cxa_throw", "fastertransformer::check<int>", "fastertransformer::Ffn::forward", "main")
    frames = tuple(Frame(name, module="/w/engine") for name in names)
    assert check_messages.engine_frame(frames) == 2 and check_messages.check_frame(frames) == 1
    assert check_messages.engine_frame((Frame(None, module="/w/engine"),)) is None


def test_a_full_dev_shm_is_told_from_failing_memory():
    full = fatal_signal.Fault("SIGBUS", 2, 0x7F00, "/dev/shm/nccl-Ab", 4096, 8 << 20, 4096, 1 << 20, 0, True)
    said = " ".join(fatal_signal.explain_fault(full))
    assert "/dev/shm/nccl-Ab" in said and "it is full" in said and "1.0 MiB" in said
    assert "--shm-size" in fatal_signal.steps(full)[0]
    broken = fatal_signal.Fault("SIGBUS", 4, 0x7F00, "/dev/shm/nccl-Ab", total=1 << 20, free=0)
    assert "hardware" in fatal_signal.explain_fault(broken)[0] and "shm" not in " ".join(fatal_signal.steps(broken))
    cut = fatal_signal.Fault("SIGBUS", 2, 0x7F00, "/models/w.bin", 8192, 4096, 4096, 1 << 40, 1 << 39, True)
    said = " ".join(fatal_signal.explain_fault(cut))
    assert "was truncated" in said and "is full" not in said


def test_room_in_dev_shm_makes_the_report_less_sure():
    seen = fatal_signal.Fault("SIGBUS", 2, 0x7F00, "/dev/shm/nccl-Ab", 4096, 8 << 20, 8 << 20, 1 << 34, 1 << 33, True)
    said = " ".join(fatal_signal.explain_fault(seen))
    assert "8.0 GiB of 16.0 GiB free now, which does not explain it" in said and "it is full" not in said
    first, second, *_ = fatal_signal.steps(seen)
    assert "memory.max" in first and second.startswith("if it was full a moment ago") and "--shm-size" in second
    unknown = fatal_signal.Fault("SIGBUS", 2, 0x7F00, "/dev/shm/nccl-Ab")
    assert fatal_signal.steps(unknown)[0].startswith("give the container more")


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (fatal_signal.Fault("SIGSEGV", 1, 8), "null pointer"),
        (fatal_signal.Fault("SIGSEGV", 1, 0x7000000000, mapped=False), "Nothing is mapped"),
        (fatal_signal.Fault("SIGSEGV", 2, 0x7000000000, mapped=True, access="---p"), "device pointer"),
        (
            fatal_signal.Fault("SIGSEGV", 2, 0x7000000000, "/w/a.so", mapped=True, access="r--p"),
            "mapped r--p from /w/a.so",
        ),
        (fatal_signal.Fault("SIGBUS"), "no file is known"),
    ],
)
def test_faults_in_words(seen, words):
    assert words in fatal_signal.explain_fault(seen)[0]


def report(**more):
    failure = Failure(
        "check", "ft::check", "whole \x1b[31mmessage", "text", code("cudaError_t", 700), "cudaFree(p)", "/w/a.cc", 8
    )
    frames = (Frame("ft::check"), Frame("ft::Layer::forward", file="/w/a.cc", line=8), Frame("main"))
    source = (SourceLine(7, "{"), SourceLine(8, "\tcheck(x);\x1b[2J"), SourceLine(9, "}"))
    return CheckReport(failure, 1.0, 77, 3, frames=frames, engine_frame=1, source=source, steps=("a step",), **more)


def test_the_report_names_rank_error_place_and_marks_the_line():
    lines = render(report(streams=(("stream_ of f", "0x7f00"),)), Style(width=100))
    text = "\n".join(lines)
    assert lines[0] == "Rank 3 (pid 77): a check failed at a.cc:8: cudaErrorIllegalAddress (700)"
    assert "▶ 8      check(x);" in text and "must be restarted" in " ".join(text.split()) and "1. a step" in text
    assert "\x1b" not in text and "0x7f00" in text
    assert all(len(line) <= 100 for line in render(report(), Style(width=100, unicode=False)))


def test_the_document_has_the_whole_report():
    said = document(report())
    assert said["failure"]["error"]["number"] == 700 and said["failure"]["line"] == 8
    assert said["process"]["rank"] == 3 and said["engine_frame"] == 1 and said["source"][1]["line"] == 8


def test_status_and_switches_in_words():
    rank = WatchedRank(1, 77, 0, "vllm", ("exit",), 3, ("/w/libengine.so",), 12, 1, ("too many",))
    text = "\n".join(render(CheckStatus(True, ranks=(rank,)), Style()))
    assert "libengine.so" in text and "too many" in text
    assert document(CheckStatus(True, ranks=(rank,)))["ranks"][0]["passed"] == 12
    answer = SwitchResults((SwitchResult(77, 0, "ft::syncAndCheck", True, "done"),))
    assert render(answer, Style()) == ["rank 0 (pid 77): ft::syncAndCheck: done"]
    assert document(answer)["switches"][0]["done"] is True


def test_run_check_sets_what_is_not_set():
    environment, said = checking("turbomind", {"FT_DEBUG_LEVEL": "INFO"})
    assert environment == {"FT_DEBUG_LEVEL": "INFO", "TM_DEBUG_LEVEL": "DEBUG", "CUDA_LAUNCH_BLOCKING": "1"}
    assert any("is already set" in line for line in said)
    assert set(checking(None, {})[0]) == {row[1] for row in STARTING}
    with pytest.raises(UsageError):
        checking("nosuch", {})


REPORT = next(row for row in FAIL_FUNCTIONS if row.function.endswith("CheckErrorStream::Report"))


@pytest.mark.parametrize(
    ("text", "file", "line", "place"),
    [
        ("core/a.cc(7): Check failed: x > 0 (0 vs. 1) ", "", 0, ("core/a.cc", 7)),
        ("core/a.cc(7): Check failed: x > 0 ", "/w/src/core/a.cc", 7, ("/w/src/core/a.cc", 7)),
        ("core/a.cc(7): Check failed: x > 0 ", "/w/src/other.cc", 7, ("core/a.cc", 7)),  # what lies beside an object
        ("core/a.cc(7): Check failed: x > 0 ", "\x01\x02", 1 << 30, ("core/a.cc", 7)),
        ("Check failed: x > 0 ", "/w/src/core/a.cc", 7, ("/w/src/core/a.cc", 7)),
        ("Check failed: x > 0 ", "not a file", 7, ("", None)),
        ("Check failed: x > 0 ", "/w/src/core/a.cc", 0, ("", None)),
        ("", "", 0, ("", None)),
    ],
)
def test_a_function_of_a_failure_has_its_text_and_a_place_that_can_be(text, file, line, place):
    found = check_messages.make_failure(REPORT, text, None, file, line)
    assert (found.file, found.line) == place and found.raised == "aborts"
    assert found.text == (text.split(": ", 1)[1].strip() if "a.cc(" in text else text.strip())
    assert found.message == text.strip()
