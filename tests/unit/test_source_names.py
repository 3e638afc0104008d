import pytest

from gdbext.model.text.source_names import source_name


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("__pyx_pw_6mpi4py_3MPI_4Comm_103Ssend", "mpi4py.MPI.Comm.Ssend"),
        ("__pyx_pw_6uvloop_4loop_4Loop_25run_forever", "uvloop.loop.Loop.run_forever"),
        ("__pyx_f_6uvloop_4loop_4Loop__run", "uvloop.loop.Loop._run"),
        ("__pyx_pf_3zmq_7backend_6cython_5_poll_zmq_poll", "zmq.backend.cython._poll.zmq_poll"),
        ("__pyx_pw_3zmq_7backend_6cython_5_poll_1zmq_poll", "zmq.backend.cython._poll.zmq_poll"),
        ("__pyx_gb_4core_4Pool_5generator", "core.Pool.generator"),
        ("__pyx_pw_6uvloop_4loop_4Loop_7__enter__", "uvloop.loop.Loop.__enter__"),
        (
            "_$LT$hyper..Client$u20$as$u20$Drop$GT$::drop::h0123456789abcdef",
            "<hyper::Client as Drop>::drop",
        ),
        ("tokio::runtime::park::hfedcba9876543210", "tokio::runtime::park"),
        ("core::f::_$u7b$$u7b$closure$u7d$$u7d$::h0123456789abcdef", "core::f::{{closure}}"),
        ("_$LT$a$u0a$b$GT$", "<a$u0a$b>"),  # no line end
        ("cost$", "cost$"),
        ("operator..", "operator.."),
        ("Map$C$..size", "Map$C$..size"),  # Scala
        ("__pyx_f_9short", "__pyx_f_9short"),  # its length is not there
        ("__pyx_pw_999999", "__pyx_pw_999999"),
        ("__pyx_pw_0_0_0_0", "__pyx_pw_0_0_0_0"),
        ("__Pyx_PyObject_Call", "__Pyx_PyObject_Call"),
        ("main", "main"),
        ("", ""),
    ],
)
def test_a_function_of_cython_is_named_as_in_its_source(name, source):
    assert source_name(name) == source
