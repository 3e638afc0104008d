"""Names as the linker knows them."""

import time

import pytest

from gdbext.model.text.mangled import qualified_name
from gdbext.parsers import parse_files

NAMES = {
    "_ZN4c10d16ProcessGroupNCCL9allreduceERSt6vectorIN2at6TensorESaIS3_EERKNS_16AllreduceOptionsE":
        "c10d::ProcessGroupNCCL::allreduce",
    "_ZL21waitWorkFifoAvailableP8ncclCommj": "waitWorkFifoAvailable",
    "_ZN17fastertransformer11ParallelGptIfE7forwardEv": "fastertransformer::ParallelGpt<…>::forward",
    "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE": "std::condition_variable::wait",
    "_ZNK12tensorrt_llm7runtime10CudaStream11synchronizeEv": "tensorrt_llm::runtime::CudaStream::synchronize",
    "_ZN4c10d16ProcessGroupNCCLD1Ev": "c10d::ProcessGroupNCCL::~ProcessGroupNCCL",
    "_ZN4c10d12_GLOBAL__N_19doWaitingEv": "c10d::(anonymous namespace)::doWaiting",
    "_ZNK3foo3barclEv": "foo::bar::operator()",
    "_ZN3gdb3fooINS_3barILi4ELb1EEEEENS_3bazET_": "gdb::foo<…>",
    "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE9_M_createERmm": "std::__cxx11::basic_string<…>::_M_create",
    "_Z17ncclLaunchPrepareP8ncclComm@@NCCL_2": "ncclLaunchPrepare",
    "cudaStreamSynchronize": None,
    "_Z": None,
    "_ZTVN4c10d5StoreE": None,  # a table, no function
    "_ZN999bad": None,
    "_zend": None,
}  # fmt: skip


@pytest.mark.parametrize("symbol", NAMES)
def test_the_qualified_name(symbol):
    assert qualified_name(symbol) == NAMES[symbol]


def test_hostile_names_cost_little():
    begin = time.perf_counter()
    for text in ("_ZN" + "I" * 4000, "_Z" + "S_" * 3000, "_ZN" + "1a" * 2000, "_ZN1aI" + "N1b" * 1500, "_ZUl" * 900):
        qualified_name(text)
    assert time.perf_counter() - begin < 20.0, "milliseconds; what goes wrong here takes for ever"


def test_a_stack_of_mangled_names_is_read():
    text = b"PID 7 - process\nTID 7:\n#0  0x00007f11a90a7f01 _ZN4c10d8TCPStore6doWaitEv\n"
    assert parse_files([("x", text)]).processes[0].threads[0].frames[0].function == "c10d::TCPStore::doWait"
