"""How CPython's own frames are called on a native stack. All patterns are matched against the whole name."""

from typing import Tuple

INTERPRETER_FILES: Tuple[str, ...] = (
    r"python(\d(\.\d+)?)?[dt]*",  # the program
    r"libpython\d(\.\d+)?[dmt]*\.so(\.\d+)*",
    r"libpython\d\.\d+[dmt]*-[0-9a-f]{8}\.so(\.\d+)*",  # as auditwheel renames it
)
"""File names of what contains the interpreter."""

STANDARD_LIBRARY_PATHS: Tuple[str, ...] = (r".*/lib-dynload/[^/]+\.so",)
"""Paths of the standard library's extension modules: part of the interpreter when static, files when not."""

EVAL_FUNCTIONS: Tuple[str, ...] = (
    r"_PyEval_EvalFrameDefault",
    r"PyEval_EvalFrameEx",  # only where the first does not occur: it is a mere door to it since 3.6
)
"""Functions that execute one run of Python frames, in order of preference."""

CLONE_SUFFIX = r"(\.(cold|localalias|part|constprop|isra|lto_priv|llvm|warm|hot)(\.\d+)*)+$"
"""What compilers append to the name of a clone or of a split-off part of a function."""

MACHINERY: Tuple[str, ...] = (
    # calls
    r"_?PyObject_(\w*Call\w*|Vectorcall\w*)",
    r"_?PyObject_MakeTpCall",
    r"_?Py(Function|Vectorcall|CFunction|Method|StaticMethod|Stack)_\w*([Cc]all|FastCall|Unpack)\w*",
    r"\w+_(vectorcall|tp_call)(_\w+)?",
    r"_?vectorcall_(method|unbound|maybe)|object_vacall|_?vectorcall",
    r"cfunction_(call|vectorcall|enter_call)\w*|cfunction_call_varargs",
    r"(type|wrapper|partial|method|instancemethod|wrapperdescr|\w+_lru_cache)_(call|wrapper)",
    r"method_call|call_(function|method|attribute|unbound\w*|trampoline\w*)|do_call(_core)?|call_function_var",
    r"_PyEval_Vector|_?PyEval_(Eval(Code|Frame)\w*|Call\w*)|_PyEvalFrame\w+|function_code_fastcall|trace_call_function",
    r"_TAIL_CALL_\w+|py_trampoline_evaluator|_PyJIT\w*",
    # descriptors, operators, iterators and built-ins that call back
    r"slot_(tp|nb|sq|mp|am|bf)_\w+",
    r"(gen|coro|async_gen)_(iternext|send|send_ex2?|throw|close|asend_\w+)|PyIter_(Next|Send)|_PyGen_\w+",
    r"(map|filter|zip|enum|reversed)_(next|iternext)|builtin_\w+|list_(sort|extend)\w*|binarysort|do_richcompare",
    r"(unsafe_object|safe_object)_compare|PyObject_RichCompare(Bool)?",
    r"context_run|task_(step|wakeup)\w*",
    # threads, imports and the way in
    r"thread_run|pythread_wrapper|t_bootstrap",
    r"_?PyImport_\w+|import_find_and_load|exec_code_in_module",
    r"_?Py_(BytesMain|Main|RunMain)|pymain_\w+|_?PyRun_\w+|pyrun_\w+|run_(mod|eval_code_obj|pyc_file)",
)
"""Functions through which the interpreter calls and is called: they say nothing next to the Python frames."""

HANDLES_SIGNALS = r"_?PyErr_CheckSignals\w*"
"""The function of CPython that calls the handlers which were written in Python, in the main thread (signalmodule.c)."""

KEPT: Tuple[str, ...] = (
    r"take_gil|drop_gil|PyEval_(RestoreThread|SaveThread|AcquireThread|ReleaseThread|AcquireLock|ReleaseLock)",
    r"_?PyGILState_(Ensure|Release)|_?PyThreadState_(Attach|Detach|Suspend|Delete\w*|Clear)",
    r"PyThread_\w+|_?PyMutex_\w+|_PyParkingLot_\w+|_PySemaphore_\w+",
    r"Py_(Finalize|FinalizeEx|EndInterpreter|Exit)|finalize_\w+|wait_for_thread_shutdown|call_(py_exitfuncs|ll_exitfuncs)",
    rf"{HANDLES_SIGNALS}|slot_tp_(finalize|del)|handle_callback",
    r"_?PyGC_\w+|gc_collect\w*|PyOS_\w+|Py_FatalError\w*|_Py_FatalError\w*|fatal_error\w*",
)
"""Functions of the interpreter that mean something wherever they stand: locks, the GIL, code that it calls between any
two instructions (signal handlers, finalisers, callbacks of weak references), fork, the end."""

JOINED = "joined_thread"
"""What the ident of the thread that threading.Thread.join() waits for is called among captured values."""
JOIN_OF_THREAD = (r"join", r"(^|/)threading\.py$", "self", "_ident")
"""Function, file, its local variable and that one's attribute: Lib/threading.py, 3.8 to 3.14."""
