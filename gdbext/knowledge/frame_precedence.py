"""Weight (precedence) of a frame on its stack: the frame of the greatest weight decides, among equals the innermost."""

SILENT = 0  # never decides; the row is there for its captures
NAMED = 5  # only the words of its name say that it waits: nothing of a thread that runs
LEAF = 10  # a bare wait of the C library: says how the thread waits, not for what
LOCK = 20  # waits for a lock; an API further out says more
PYTHON = 30  # a Python function that waits
STEP = 40  # an internal function of a known library
API = 50  # a public function whose purpose is known
OUTER = 70  # a public function that does several others underneath: creating a cuBLAS handle, destroying a communicator
GIL = 85  # whatever is being done, it waits for the interpreter
FATAL = 95  # the thread is dying
