"""Reports of compute-sanitizer: what is read of each generation, and of logs that are cut, mixed or endless."""

import io
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from gdbext.analysis.verdict.judge import judge
from gdbext.cli.inputs import reading
from gdbext.cli.terminal import Progress
from gdbext.commands.page import page_of
from gdbext.model.gpu_errors import SeenIn
from gdbext.model.snapshot_files.codec import dump_snapshot, load_snapshot
from gdbext.parsers import parse_files
from gdbext.parsers.compute_sanitizer.report_block import host_frame
from gdbext.parsers.compute_sanitizer.report_stream import ReportStream
from gdbext.render import PLAIN, page_text, render
from tests.gpu_reports import GENERATIONS, NEAREST, Fault, log, report, xml

FAULT = Fault()


def read(*texts, names=None):
    names = names or [f"log{number}" for number in range(len(texts))]
    return parse_files([(name, text.encode()) for name, text in zip(names, texts)])


def only(text):
    (process,) = read(text).processes
    (error,) = process.gpu_errors
    return error


@pytest.mark.parametrize("generation", GENERATIONS)
def test_every_generation_says_the_same(generation):
    error = only(log([report(FAULT, generation)], 1))
    assert (error.kind, error.tool, error.space, error.access, error.size) == (
        "invalid-access",
        "memcheck",
        "global",
        "write",
        4,
    )
    (place,) = error.places
    assert (place.function, error.kernel, place.thread, place.block) == (
        FAULT.kernel,
        FAULT.kernel,
        "(3,0,0)",
        "(1,0,0)",
    )
    assert (place.file.rpartition("/")[2], place.line) == (("kernels.cu", 41) if generation != "B" else ("", None))
    assert (error.address, error.problem) == (FAULT.address, "out of bounds")
    near = error.nearest
    assert (near and (near.side, near.distance, near.size)) == (("after", 1, 9665) if generation in NEAREST else None)
    assert len(error.host_frames) == 2
    assert error.host_frames[1].function == (None if generation == "B" else FAULT.function)
    assert error.host_frames[1].module_offset == 0x29BB07


def test_xml_says_the_same():
    error = only(xml(FAULT))
    assert (error.kind, error.space, error.size, error.kernel) == ("invalid-access", "global", 4, FAULT.kernel)
    assert (error.places[0].thread, error.places[0].block, error.places[0].line) == ("(3,0,0)", "(1,0,0)", 41)
    assert [frame.function for frame in error.host_frames] == ["cudaLaunchKernel", FAULT.function]


def test_a_cut_xml_gives_its_whole_records():
    text = xml(FAULT, 3)
    (process,) = read(text[: text.rindex("<where>")]).processes
    assert process.gpu_errors[0].count == 2
    assert any("ends without its summary" in problem for problem in process.problems)


def test_the_verdict_names_kernel_engine_frame_and_python_frame():
    fault = replace(FAULT, python="buffer.py:585")
    answer = judge(read(log([report(fault, "D")], 1), names=["san.0.log"]))
    verdict, (found,) = answer.verdict, answer.gpu_errors
    assert (verdict.cause, verdict.confidence, verdict.culprits) == ("gpu-fault", "high", (0,))
    assert (found.engine_frame.function, found.python_frame.file, found.python_frame.line) == (
        FAULT.function,
        "buffer.py",
        585,
    )
    for text in ("kernels.cu:41", FAULT.function, "buffer.py:585", "1 byte after", "9,665", "(3,0,0)"):
        assert text in verdict.evidence[0].text
    assert "Kernel errors" in "\n".join(render(answer, PLAIN))


def test_launches_and_ranks_are_folded_with_counts():
    first = [report(replace(FAULT, thread=f"({number},0,0)", address=number), "D") for number in range(5)]
    answer = judge(read(log(first, 5), log(first[:2], 2), names=["san.0.log", "san.1.log"]))
    (found,) = answer.gpu_errors
    assert (found.seen, found.count) == ((SeenIn(0, 5), SeenIn(1, 2)), 7)
    assert answer.verdict.culprits == (0, 1)
    assert "7 times on ranks 0-1" in found.text


def test_a_number_that_may_be_a_pid_is_no_rank():
    job = read(log([report(FAULT, "D")], 1), names=["san.48122.log"])
    assert [process.rank for process in job.processes] == [None]


def test_a_race_has_both_sides():
    text = (
        "========= COMPUTE-SANITIZER\n"
        "========= Error: Race reported between Write access at k(int *)+0xf0 in f.cu:12\n"
        "=========     and Read access at k(int *)+0x190 in f.cu:14 [32 hazards]\n=========\n"
        "========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)\n"
    )
    error = only(text)
    assert [(one.access, one.function, one.line) for one in error.places] == [
        ("write", "k(int *)", 12),
        ("read", "k(int *)", 14),
    ]
    assert (error.hazards, error.tool) == (32, "racecheck")
    assert judge(read(text)).verdict.cause == "other"  # wrong numbers: no fault of the GPU


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        ("Uninitialized __global__ memory read of size 4 bytes", "uninitialized"),
        ("Barrier error detected. Divergent thread(s) in block.", "barrier"),
        ("Leaked 64 bytes at 0x7f00", "leak"),
        ('Program hit cudaErrorInvalidValue (error 1) due to "x" on CUDA API call to cudaMemcpy.', "api-error"),
        ("Program hit error 17 on CUDA API call to cudaFree ", "api-error"),
        ("Invalid __shared__ atomic of size 8 bytes", "invalid-access"),
        ("Malloc/Free error encountered : Double free", "invalid-free"),
        ("Some error that is new", "other"),
    ],
)
def test_other_kinds(head, kind):
    text = f"========= COMPUTE-SANITIZER\n========= {head}\n=========     at k()+0x10 in f.cu:2\n=========\n"
    assert only(text + "========= ERROR SUMMARY: 1 error\n").kind == kind


def test_a_leak_and_a_failed_call_are_no_fault():
    text = "========= COMPUTE-SANITIZER\n========= Leaked 64 bytes at 0x7f00\n=========\n"
    verdict = judge(read(text)).verdict
    assert (verdict.cause, verdict.confidence) == ("other", "low")


def test_a_clean_report_is_no_fault():
    answer = judge(read(log([], 0)))
    assert answer.gpu_errors == ()
    assert (answer.verdict.cause, answer.verdict.confidence, answer.hangs) == ("not-a-hang", "low", False)
    assert "1 report with a summary of 0 errors" in answer.verdict.summary
    assert answer.snapshot.processes[0].said == ("the sanitizer's summary says 0 errors",)


@pytest.mark.parametrize(
    "line", ["Error: Target application terminated before first instrumented API call", "Internal Sanitizer Error"]
)
def test_a_report_without_an_error_and_a_summary_tells_nothing(line):
    answer = judge(read(f"========= COMPUTE-SANITIZER\n========= {line}\n"))
    assert (answer.verdict.cause, answer.hangs) == ("unknown", None)
    assert "they are not complete" in answer.verdict.summary


def test_what_the_print_limit_hid_is_said():
    (process,) = read(log([report(FAULT, "D")], 101, hidden=100)).processes
    assert any("100 errors of 101 were not printed" in problem for problem in process.problems)


def test_a_cut_report_says_so():
    (process,) = read(log([report(FAULT, "C")], 1).rpartition("========= ERROR")[0]).processes
    assert process.gpu_errors
    assert any("ends without its summary" in problem for problem in process.problems)


@pytest.mark.parametrize("prefix", ["[rank{}]: ", "[1,{}]<stderr>:", "[{}] ", "{}: ", "\x1b[31m[rank{}]: "])
def test_prefixes_of_launchers_part_interleaved_ranks(prefix):
    lines = log([report(FAULT, "D")], 1).splitlines()
    text = "".join(f"{prefix.format(rank)}{line}\n" for line in lines for rank in (0, 1))
    job = read(text)
    assert [(process.rank, len(process.gpu_errors)) for process in job.processes] == [(0, 1), (1, 1)]
    assert not any(process.problems for process in job.processes)


def test_interleaved_ranks_without_a_prefix_are_said():
    lines = log([report(FAULT, "D")], 1).splitlines()
    job = read("".join(f"{line}\n{line}\n" for line in lines))
    assert any("several ranks wrote into one log" in problem for problem in job.processes[0].problems)


def test_colours_and_another_prefix():
    text = log([report(FAULT, "D", "@@@")], 1, mark="@@@")
    assert only(text).kernel == FAULT.kernel
    assert only("".join(f"\x1b[1m{line}\x1b[0m\n" for line in log([report(FAULT, "D")], 1).splitlines())).size == 4


def test_stacks_around_reports_stay():
    stack = 'Thread 0x00007f0000000001 (most recent call first):\n  File "serve.py", line 3 in step\n'
    job = read("Fatal Python error: Aborted\n\n" + stack + log([report(FAULT, "D")], 1))
    (process,) = job.processes
    assert process.threads and process.gpu_errors


def test_rules_of_other_tools_are_no_reports():
    text = "========= FAILURES =========\n=========== short\n========= 3 passed\n"
    assert read(text).processes == ()


def test_a_snapshot_keeps_them():
    job = read(log([report(FAULT, "D")], 1))
    assert load_snapshot(dump_snapshot(job)) == job


@pytest.mark.parametrize(
    ("text", "function", "module", "line"),
    [
        ("/lib64/libcuda.so.1 (cuLaunchKernel + 0x2b8) [0x222dc8]", "cuLaunchKernel", "/lib64/libcuda.so.1", None),
        ("/path/lib.so [0x10]", None, "/path/lib.so", None),
        ("f(int) [0x29bb07] in lib.so", "f", "lib.so", None),
        ("f(int) in file.cpp:1184", "f", None, 1184),
        ("f(int) [0x1] in file.cpp:1184", "f", None, 1184),
    ],
)
def test_host_frames(text, function, module, line):
    frame = host_frame(text)
    assert (frame.function, frame.module, frame.line) == (function, module, line)


def test_a_log_beyond_the_bounds_loses_nothing(monkeypatch):
    monkeypatch.setattr(reading, "HEAD", 4000)
    monkeypatch.setattr(reading, "TAIL", 4000)
    monkeypatch.setattr(reading, "_PIECE", 1000)
    text = log([report(replace(FAULT, thread=f"({number},0,0)"), "D") for number in range(300)], 300)
    given_text = reading._Input("log", io.BytesIO(text.encode()), Progress(True)).read()
    assert given_text.reports is not None
    job = parse_files([("log", given_text.data)], {"log": given_text.reports})
    assert [error.count for error in job.processes[0].gpu_errors] == [300]
    assert job.processes[0].problems == ()


def test_many_different_errors_are_counted():
    stream = ReportStream()
    for number in range(2500):
        for line in [*report(replace(FAULT, line=number), "D"), "========="]:
            stream.feed(line)
    (found,) = stream.finished()
    assert len(found.errors) == 2000
    assert any("500 errors of more than 2,000 kinds" in problem for problem in found.problems)


@settings(max_examples=30, deadline=None)
@given(
    lines=some.lists(some.sampled_from([*report(FAULT, "A"), *report(FAULT, "D"), "=========", "x", "========= y"])),
    cut=some.integers(0, 400),
)
def test_any_mix_of_lines_gives_an_answer(lines, cut):
    text = "\n".join(["========= COMPUTE-SANITIZER", *lines])
    for one in (text, text[cut:], xml(FAULT)[cut:], xml(FAULT)[:-cut]):
        answer = judge(read(one))
        assert render(answer, PLAIN)


PREFIXES = ("[1,{}]<stdout>:", "[1,{}]<stderr>:", "{}: ", "[rank{}]: ")


@settings(max_examples=40, deadline=None)
@given(
    of_ranks=some.lists(some.lists(some.sampled_from(GENERATIONS), min_size=1, max_size=3), min_size=2, max_size=4),
    prefix=some.sampled_from(PREFIXES),
    coloured=some.booleans(),
    order=some.randoms(use_true_random=False),
    cut=some.integers(0, 600),
)
def test_ranks_that_write_into_one_log_are_told_apart(of_ranks, prefix, coloured, order, cut):
    """Line by line between each other, behind a launcher's prefix, with colours, and cut anywhere."""
    written = [
        log([report(replace(FAULT, line=number + 1), one) for one in of_rank], len(of_rank)).splitlines()
        for number, of_rank in enumerate(of_ranks)
    ]
    turns = [number for number, lines in enumerate(written) for _ in lines]
    order.shuffle(turns)
    mark = "\x1b[31m=========" if coloured else "========="
    end = "\x1b[0m" if coloured else ""
    queues = [iter(lines) for lines in written]
    lines = [prefix.format(rank) + next(queues[rank]).replace("=========", mark, 1) + end for rank in turns]
    text = "\n".join(lines) + "\n"
    job = read(text)
    assert {one.rank: sum(error.count for error in one.gpu_errors) for one in job.processes} == {
        number: len(of_rank) for number, of_rank in enumerate(of_ranks)
    }
    for one in job.processes:
        assert {place.line for error in one.gpu_errors for place in error.places} <= {None, one.rank + 1}
        assert one.problems == ()
    short = judge(read(text[: len(text) - cut]))
    found = {one.rank: sum(error.count for error in one.gpu_errors) for one in short.snapshot.processes}
    assert all(count <= len(of_ranks[rank]) for rank, count in found.items())
    starts = [len("\n".join(lines[:number])) for number in range(len(lines))]
    begun = {turns[at] for at, line in enumerate(lines) if "ERROR SUMMARY" in line and starts[at] < len(text) - cut}
    for one in short.snapshot.processes:
        assert one.rank in begun or any("without its summary" in problem for problem in one.problems)


@settings(max_examples=60, deadline=None)
@given(text=some.text(max_size=300), generation=some.sampled_from(GENERATIONS))
def test_any_name_of_a_kernel_gives_an_error(text, generation):
    name = "k" + "".join(text.split()) + "(int)"
    fault = replace(FAULT, kernel=name)
    assert judge(read(log([report(fault, generation)], 1))).gpu_errors


@pytest.mark.parametrize("place", ["before", "inside"])
def test_an_entity_is_never_expanded(place):
    """A short file of entities would be a long text."""
    root, declares = "<ComputeSanitizerOutput>", '<!DOCTYPE a [<!ENTITY bomb "boom">]>'
    text = xml(FAULT).replace(root, f"{declares}{root}&bomb;" if place == "before" else f"{root}{declares}&bomb;", 1)
    snapshot = read(text)
    said = [*snapshot.problems, *(problem for process in snapshot.processes for problem in process.problems)]
    assert any("its XML is damaged" in problem for problem in said)
    assert "boom" not in dump_snapshot(snapshot)


def page(*texts):
    diagnosis = judge(read(*texts, names=[f"san.{rank}.log" for rank in range(len(texts))]))
    return page_text(page_of(diagnosis, "diagnose", None))


def test_the_page_shows_them():
    text = page(log([report(FAULT, "D")], 1), log([report(FAULT, "D")], 1))
    assert "Kernel errors, as a sanitizer reports them" in text
    row = text[text.index("Kernel errors, as") :].partition("</tbody>")[0]
    for words in (
        "Invalid __global__ write of size 4 bytes, out of bounds",
        "void scale&lt;float&gt;(float *, int) at kernels.cu:41, thread (3,0,0) of block (1,0,0)",
        "1 byte after the nearest allocation of 9,665 bytes",
        "ParallelGpt&lt;half&gt;::forward",
        "2 times<small>ranks 0-1</small>",
    ):
        assert words in row


def test_names_in_a_report_are_no_part_of_the_page():
    kernel = "k<script>alert(1)</script>(int)"
    text = page(log([report(replace(FAULT, kernel=kernel), "D")], 1))
    assert "<script>alert(1)" not in text
    assert "k&lt;script&gt;alert(1)" in text
