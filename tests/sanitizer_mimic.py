"""A stand-in for compute-sanitizer: it takes the options of one release, runs the program, writes reports at its end.

What it copies was tried with the releases themselves: a signal ends it at once and leaves its program running, its log
has the banner first, a variable of %q that is not set ends it without a log.
"""

import os
import sys
from pathlib import Path

OF_2020 = "tool target-processes launch-timeout max-connections print-limit error-exitcode log-file filter leak-check"
OF_2022 = f"{OF_2020} num-callers-host kernel-regex injection-path"
OF_2024 = OF_2022.replace("filter ", "").replace("kernel-regex", "kernel-name")
OF_2026 = f"{OF_2024} strip-paths backtrace-short"
RELEASES = {"2020.3": OF_2020, "2022.3": OF_2022, "2024.1": OF_2024, "2026.4": OF_2026}
"""Options of each release, of those that matter here: by --help of the tool."""

_SOURCE = """
import os, re, signal, subprocess, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
options = {options!r}.split()
words = sys.argv[1:]
if words == ["--version"]:
    print("Version {release}.0.0 (build 1) (public-release)")
    sys.exit()
if words == ["--help"]:
    print("Usage: compute-sanitizer [options] [your-program]\\n\\nGeneral options:\\n  -h [ --help ]   This\\n")
    print("\\n".join("  --%s arg (=no)   Help." % one for one in options))
    sys.exit()
given = dict()
while words[0].startswith("--"):
    name, value = words.pop(0), words.pop(0)
    given[name] = value
    if name[2:] not in options:
        sys.exit("unrecognised option '%s'" % name)
def variable(found):
    if found[1] not in os.environ:
        sys.exit("Failed to read environment variable '%s' for macro '%%q'." % found[1])
    return os.environ[found[1]]
with open(re.sub(r"%q\\{{(.*?)\\}}", variable, given["--log-file"]), "w") as log:
    print("========= COMPUTE-SANITIZER", file=log, flush=True)
    status = subprocess.call(words)
    report = os.environ.get("MIMIC_REPORT", "")
    if report:
        print(open(report).read(), file=log)
    if status < 0 or os.environ.get("MIMIC_CUDA") == "0":
        print("========= Error: Target application terminated before first instrumented API call", file=log)
        sys.exit(255)
    print("========= ERROR SUMMARY: %d errors" % bool(report), file=log)
sys.exit(int(given["--error-exitcode"]) if report else 0)
"""


def installed(folder: Path, release: str = "2026.4") -> Path:
    """A folder with the program and what it needs beside it; a driver's library is in it, too."""
    folder.mkdir(parents=True)
    source = _SOURCE.format(options=RELEASES[release], release=release)
    (folder / "compute-sanitizer").write_text(f"#!{sys.executable}{source}")
    for name in ("TreeLauncherSubreaper", "compute-sanitizer"):
        (folder / name).touch()
        (folder / name).chmod(0o755)
    for name in ("libsanitizer-collection.so", "libcuda.so.1"):
        (folder / name).touch()
    return folder


def environment(folder: Path, **more: str) -> "dict[str, str]":
    """With the stand-in first; without ranks and tools of the shell that tests run in."""
    kept = {name: value for name, value in os.environ.items() if name in ("HOME", "LANG", "TMPDIR", "PYTHONPATH")}
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    return {**kept, "PATH": path, "LD_LIBRARY_PATH": str(folder), **more}
