"""The program with streams in every state, linked to the stand-in libraries."""

from tests.gdb.gdbrun import Target
from tests.inferiors.demo_build import libraries


class StreamTarget(Target):
    """A running stream_states.cpp. `release`: flags instead of those of a debug build."""

    def __init__(self, *arguments, release=(), **options):
        runtime = libraries()["libcudart.so.12"]
        folder = f"-L{runtime.parent}", f"-Wl,-rpath,{runtime.parent}"
        flags = (*(release or ("-g", "-O0")), "-Wl,--no-as-needed", *folder, f"-l:{runtime.name}", "-ldl")
        super().__init__(*arguments, source="stream_states.cpp", flags=flags, **options)

    def capture_mode(self):
        """cudaStreamCaptureMode of the main thread, which is 0 (global) unless somebody changes it."""
        self._process.stdin.write("mode\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())
