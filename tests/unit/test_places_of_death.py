"""Where a process died: the place that its own lines and frames name, and advice for its language and system."""

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.parsers import parse_files

HANDLER = """#0  0x00007f74d56905d0 in ?? ()
#1  <signal handler called>
#2  0x00007f74d612d3e6 in array_find () from /opt/lib/libfind.so
#3  0x00007f74d612da98 in need_buffers () from /opt/lib/libfind.so
#4  0x00007f74d7413483 in handle_incoming () from /opt/lib/libapp.so
"""
UCX = """[node1:9192 :0:9218] Caught signal 11 (Segmentation fault: address not mapped to object at address 0x8)

/src/ucp/dt/dt.c: [ ucp_mem_type_pack() ]
      ...
       79     if (length == 0) {
==>    80         return UCS_OK;

==== backtrace (tid:   9218) ====
 0 0x0000000000058ce3 ucs_debug_print_backtrace()  /src/ucs/debug/debug.c:656
"""
EXPORTS = """[node1:342:0:345] Caught signal 11 (Segmentation fault: address not mapped to object at address 0x14)
==== backtrace (tid: 345) ====
 0 0x0000000000042520 __sigaction()  ???:0
 1 0x00000000000bde56 pncclReduceScatter()  ???:0
 2 0x00000000000be816 pncclReduceScatter()  ???:0
 3 0x00000000000bde56 pncclReduceScatter()  ???:0
"""
CALLED = """[node1:342:0:345] Caught signal 11 (Segmentation fault: address not mapped to object at address 0x14)
==== backtrace (tid: 345) ====
 0 0x0000000000042520 __sigaction()  ???:0
 1 0x00000000000bde56 pncclReduceScatter()  ???:0
 2 0x00000000000be816 train_step()  ???:0
"""
STRIPPED = """[node1:342:0:345] Caught signal 11 (Segmentation fault: address not mapped to object at address (nil))
==== backtrace (tid: 345) ====
 0 0x0000000000042520 __sigaction() ???:0
 1 0x00000000010d475f createInferRuntime_INTERNAL() ???:0
 2 0x000000000107dd42 getInferLibVersion() ???:0
 3 0x00000000010b59b1 {third}() ???:0
 4 0x0000000000127022 app::Runtime::Runtime() :0
 5 0x0000000000039bb5 TRITONBACKEND_ModelInstanceInitialize() ???:0
"""
TWO_HANDLERS = """41 0x000000000028aa23 std::_Function_handler<void (), app::Models::load(int, std::function<void ()>&&)::{{lambda()#2}}>::_M_invoke()  models.cc:0
42 0x00000000003ded82 std::thread::_State_impl<std::thread::_Invoker<std::tuple<app::Pool::Pool(unsigned long)::{{lambda()#1}}> > >::_M_run()  pool.cc:0
43 0x00000000000dc253 std::error_code::default_error_condition()  ???:0
44 0x0000000000094ac3 pthread_condattr_setpshared()  ???:0
=================================
{between}[node1:00116] *** Process received signal ***
[node1:00116] Signal: Segmentation fault (11)
[node1:00116] [ 0] /usr/lib/libc.so.6(+0x42520)[0x7f2879822520]
[node1:00116] [ 1] /opt/ucx/lib/libucs.so.0(ucs_arbiter_dispatch_nonempty+0x72)[0x7f28489e8862]
"""  # noqa: E501
PYTHON = """Fatal Python error: {error}

Current thread 0x00007fddf2235640 (most recent call first):
  File "/opt/decode.py", line 514 in begin_forward
  File "/opt/flash.py", line 149 in begin
"""
SET_UP = """Program terminated with signal 11, Segmentation fault.
#0  0x00007f5050b23a6e in {inner} (comm=0xece8380) at init.cu:100
#1  0x00007f5050b27dad in {outer} (comms=<optimized out>) at init.cu:692
"""
PANIC = """thread 'tokio-runtime-worker' panicked at core/src/queue.rs:87:14:
Queue dropped the receiver: "Full(..)"
stack backtrace:
   0:        0x106906cb0 - __mh_execute_header
  19:        0x193580c08 - __pthread_cond_wait
"""
ASSERT = """Traceback (most recent call last):
  File "/opt/adapter.py", line 1298, in wait_for_save
    assert len(slots) == len(tokens)
AssertionError{said}
"""
WINDOWS = """Exception Code: 0xC0000005
  #0 0x00007fffa4e3b000 (C:\\app\\torch\\lib\\torch_hip.dll+0x0)
  #1 0x00007fffa747a287 at::cuda::_scaled_mm_v2(class at::Tensor const &) (C:\\app\\torch\\lib\\torch_hip.dll+0x263f287)
"""
INTEL = """forrtl: error (76): Abort trap signal
Image              PC                Routine            Line        Source
e3sm.exe           00000000029B4C7E  Unknown               Unknown  Unknown
libc-2.11.3.so     00002AAAB1C10E51  abort                 Unknown  Unknown
e3sm.exe           00000000025D1AE4  pio_support_mp_pi         124  pio_support.F90
e3sm.exe           00000000025CFAD5  pio_utils_mp_chec          59  pio_utils.F90
"""
GFORTRAN = """Program received signal SIGSEGV: Segmentation fault - invalid memory reference.

Backtrace for this error:
#0  0x7f2ad9a2a31f in ???
#1  0x55b9a4d7e1d9 in solve_
	at /src/solve.f90:12
"""
BOUNDS = """Fortran runtime error: Index '11' of dimension 1 of array 'a' above upper bound of 10

Error termination. Backtrace:
#0  0x7f2ad9a2a31f in ???
#1  0x55b9a4d7e1d9 in solve_
	at /src/solve.f90:12
"""
AT_EXIT = """Fatal Python error: could not acquire lock for <_io.BufferedWriter name='<stdout>'> at interpreter shutdown
Python runtime state: finalizing (tstate=0x562c)

Thread 0x00007f3bf3a1d640 (most recent call first):
  File "/opt/output.py", line 542 in {name}
  File "/opt/process.py", line 63 in push_output

{more}Current thread 0x00007f3bf53c6740 (most recent call first):
<no Python frame>
"""
OTHER = """Thread 0x00007f3bf3a1d641 (most recent call first):
  File "/opt/queue.py", line 5 in get

"""


def verdict(text):
    return judge(parse_files([("a.txt", text.encode())])).verdict


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HANDLER, "died in array_find"),
        (UCX, "died of SIGSEGV in ucp_mem_type_pack (dt.c:80)"),
        (EXPORTS, "a recursive function without a name (nearest exported symbol: pncclReduceScatter)"),
        (CALLED, "died of SIGSEGV in pncclReduceScatter"),
        (EXPORTS, "Thread 345 of pid 342 died"),
        (
            STRIPPED.format(third="createInferRuntime_INTERNAL"),
            "createInferRuntime_INTERNAL), called from app::Runtime",
        ),
        (STRIPPED.format(third="buildEngine"), "died of SIGSEGV in createInferRuntime_INTERNAL"),
        (TWO_HANDLERS.format(between=""), "Pid 116 died of SIGSEGV in ucs_arbiter_dispatch_nonempty (libucs.so.0)"),
        (TWO_HANDLERS.format(between="loading ...\n"), "and pid 116 died in ucs_arbiter"),  # perhaps of another rank
        (
            TWO_HANDLERS.partition("====")[0].format(),
            "died in a function that the text does not show (frames 0-40 are missing), reached through app::Models",
        ),
        (PYTHON.format(error="Segmentation fault"), "in native code called from begin_forward"),
        (SET_UP.format(inner="commFree", outer="ncclCommInitAll"), "something in ncclCommInitAll had failed first"),
        (PANIC, 'queue.rs:87:14: Queue dropped the receiver: "Full(..)""'),
        (ASSERT.format(said=""), "AssertionError: assert len(slots) == len(tokens)"),
        (WINDOWS, "an access violation in an unnamed function of torch_hip.dll, called from at::cuda::_scaled_mm_v2"),
        (INTEL, "The thread shown died in pio_support_mp_pi (pio_support.F90:124)."),
        (GFORTRAN, "died of SIGSEGV in solve_ (solve.f90:12)"),
        (BOUNDS, "above upper bound of 10"),
        (AT_EXIT.format(name="write", more=""), "Thread 0x00007f3bf3a1d640 was then in write (output.py:542)"),
        (AT_EXIT.format(name="write", more=OTHER), "Thread 0x00007f3bf3a1d640 was then in write (output.py:542)"),
    ],
)
def test_where_it_died(text, said):
    answer = verdict(text)
    assert said in answer.summary
    assert answer.confidence == "low"


@pytest.mark.parametrize(
    ("text", "unsaid"),
    [
        (PYTHON.format(error="Cannot recover from stack overflow."), "native code"),  # the interpreter's own word
        (SET_UP.format(inner="commFree", outer="ncclCommFinish"), "first failure"),
        (SET_UP.format(inner="setupLane", outer="ncclCommInitAll"), "first failure"),
        (PANIC, "__pthread_cond_wait"),
        (ASSERT.format(said=": no slots"), "assert len"),
        (AT_EXIT.format(name="read_input", more=OTHER), "was then in"),  # either may have it
    ],
)
def test_what_is_not_said_of_a_death(text, unsaid):
    assert unsaid not in verdict(text).summary


def test_a_panic_that_has_its_message_takes_no_other_line():
    text = "thread 'main' panicked at 'no room', src/main.rs:3:5\nINFO server: next line\n"
    assert "next line" not in verdict(text).summary


def test_of_two_copies_of_a_line_the_whole_one_is_quoted():
    whole = "/src/fa.h:1146: GGML_ASSERT(S[j] > 0) failed"
    text = f"/src/fa.h:1146: {whole}{whole}\n{whole}\n"
    assert f'reports: "{whole}".' in verdict(text).summary


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        (WINDOWS, "a minidump of the process"),
        (INTEL, "coredumpctl gdb"),  # `.exe` is a name on Linux, too
        (ASSERT.format(said=""), "Log the tested values just before the assert"),
        ("FatalError: `Termination signal` is detected by the operating system.\n", "Find who sent the signal"),
        (
            "Container rank 0 status failed cmd ['python', '-u', 'train.py'] code -6 log log/default.0.log\n",
            "Read log/default.0.log",
        ),
        (PANIC, "Read the source at the place that the panic line names"),
        ("terminate called after throwing an instance of 'std::runtime_error'\n  what():  no\n", "catch throw"),
    ],
)
def test_advice_fits_language_and_system(text, advice):
    assert advice in verdict(text).remedies[0].action
