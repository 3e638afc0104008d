"""Error numbers: what the tables say, and what they are found by."""

import json

import pytest

from gdbext.analysis.failures.error_codes import by_name, by_number, code, in_message
from gdbext.cli.main import main
from gdbext.commands.error import explain_error
from gdbext.knowledge.errors import LIBRARIES, TEXT_FUNCTIONS
from gdbext.model.errors import OK, USAGE, UsageError
from gdbext.render import Style, render

STICKY = {214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911}  # driver_types.h; hardware


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.type)
def test_every_row_is_about_a_number_of_the_header_and_has_a_source(library):
    for row in library.rows:
        assert library.type == "CUresult" or row.number in library.names, row.number
        assert row.source and row.meaning
    assert len({row.number for row in library.rows}) == len(library.rows)
    assert all(name.startswith(library.prefixes) for name, _ in library.names.values())


def test_sticky_errors_are_those_of_the_header_and_two_of_the_hardware():
    assert {number for number in LIBRARIES[0].names if code("cudaError_t", number).sticky} == STICKY


def test_a_number_means_something_else_in_each_library():
    found = {one.library: one.name for one in by_number(1)}
    assert found == {
        "cudaError_t": "cudaErrorInvalidValue",
        "CUresult": "CUDA_ERROR_INVALID_VALUE",
        "cublasStatus_t": "CUBLAS_STATUS_NOT_INITIALIZED",
        "ncclResult_t": "ncclUnhandledCudaError",
    }


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        ("0x2bc", ["cudaErrorIllegalAddress", "CUDA_ERROR_ILLEGAL_ADDRESS"]),
        ("CUDA_ERROR_ILLEGAL_ADDRESS", ["CUDA_ERROR_ILLEGAL_ADDRESS"]),
        ("cudaerrorillegaladdress", ["cudaErrorIllegalAddress", "CUDA_ERROR_ILLEGAL_ADDRESS"]),
        ("IllegalAddress", ["cudaErrorIllegalAddress", "CUDA_ERROR_ILLEGAL_ADDRESS"]),
        ("CUBLAS_STATUS_EXECUTION_FAILED", ["CUBLAS_STATUS_EXECUTION_FAILED"]),
        ("[FT][ERROR] CUDA runtime error: misaligned address a.cc:3", ["cudaErrorMisalignedAddress"]),
        ("CUDA 46", ["cudaErrorDevicesUnavailable", "CUDA_ERROR_DEVICE_UNAVAILABLE"]),
        ("rank 3: NCCL error 2 at nccl.cc:7", ["ncclSystemError"]),
        ("cuBLAS status: 13", ["CUBLAS_STATUS_EXECUTION_FAILED"]),
        ("8", ["cudaErrorProfilerAlreadyStopped", "CUDA_ERROR_PROFILER_ALREADY_STOPPED", "CUBLAS_STATUS_ARCH_MISMATCH",
               "ncclTimeout"]),
    ],
)  # fmt: skip
def test_found_by_number_name_or_message(asked, names):
    assert [one.name for one in explain_error(asked).codes] == names


@pytest.mark.parametrize("asked", ["", "42", "-1", "nosuch", "NCCL 99", "CUDA 12.4", "9" * 500, "0x", "\x1b[31m"])
def test_what_is_no_error_is_one_line(asked):
    with pytest.raises(UsageError) as problem:
        explain_error(asked)
    assert "\n" not in str(problem.value) and len(str(problem.value)) < 300


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("Xid 79", "Xid 79 (the GPU has fallen off the bus) is an error of the GPU driver"),
        ("NVRM: Xid (PCI:0000:17:00): 43, pid=1", "Xid 43 (GPU stopped processing: usually an error in the program)"),
        ("xid 999", "Xid 999 is an error of the GPU driver"),
    ],
)
def test_an_xid_is_sent_to_the_kernels_log(asked, said):
    with pytest.raises(UsageError) as raised:
        explain_error(asked)
    assert said in str(raised.value) and "dmesg" in str(raised.value.hint)


def test_the_longest_text_in_a_message_decides():
    assert (
        in_message("NCCL error x.cc:3 'unhandled cuda error (run with NCCL_DEBUG=INFO)'").name
        == "ncclUnhandledCudaError"
    )
    assert in_message("operation not permitted when stream is capturing").number == 900
    assert in_message("all is well") is None


def test_functions_that_give_texts_belong_to_a_library():
    assert set(TEXT_FUNCTIONS.values()) == {library.type for library in LIBRARIES}


def test_shell_command(capsys):
    assert main(["error", "700"]) == OK
    said = " ".join(capsys.readouterr().out.split())
    assert "cudaErrorIllegalAddress" in said and "must be restarted" in said and "the same as cudaError_t" in said
    assert main(["error", "ncclRemoteError", "--json"]) == OK
    document = json.loads(capsys.readouterr().out)
    assert document["error"]["codes"][0]["number"] == 6 and document["error"]["codes"][0]["sticky"] is None
    assert main(["error", "nosuch"]) == USAGE


def test_a_name_without_a_row_is_explained_by_its_words():
    (one,) = by_name("cudaErrorInvalidNormSetting")
    assert one.meaning == "invalid norm setting" and one.sticky is None
    assert any("inferred from the name" in line for line in render(explain_error("27"), Style()))


def test_several_numbers_are_asked_for_one_by_one(capsys):
    assert main(["error", "700", "701"]) == USAGE
    assert capsys.readouterr().err == "gdbext: one error number at a time; gdbext error 700\n"
