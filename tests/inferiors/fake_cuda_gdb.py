"""Sourced by a plain gdb: it answers `info cuda kernels` with the text of a file, as a cuda-gdb would."""

import gdb  # noqa: TID251


class Info(gdb.Command):
    def __init__(self, name, text, prefix=False):
        self._text = text
        super().__init__(name, gdb.COMMAND_STATUS, prefix=prefix)

    def invoke(self, argument, from_tty):
        if self._text is None:
            raise gdb.GdbError("fatal:  All CUDA devices are used for display and cannot be used while debugging.")
        gdb.write(self._text)


def become(text):
    gdb.cuda = object()  # what a cuda-gdb is told by, since 12.7
    Info("info cuda", "", prefix=True)
    Info("info cuda devices", "  Dev PCI Bus/Dev ID Name\n*   3 00:1e.0 H200\n")
    Info("info cuda kernels", text)
