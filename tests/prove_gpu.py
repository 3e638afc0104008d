"""What only a GPU can prove, in one run: arming, real cores of a fault and of a hang, a dump that is asked for, what
cuda-gdb says of the same files, the sanitizer. JSON on stdout; status 0 all proven, 1 something failed, 77 no GPU."""

import argparse
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from gdbext.parsers import cuda_kernels

ROOT = Path(__file__).resolve().parents[1]
NO_GPU = 77
TOOL = "/usr/local/cuda*/bin/compute-sanitizer"
_SECONDS = 180


class NotProven(Exception):
    """What was expected and did not come."""


class Skipped(Exception):
    """What is missing for a step."""


def gdbext(*words, status=None):
    """Its answer as JSON. Raises `NotProven`."""
    done = subprocess.run([sys.executable, "-m", "gdbext", *map(str, words)], **_pipes())
    if status is not None and done.returncode not in status:
        raise NotProven(f"gdbext {' '.join(map(str, words))}: status {done.returncode}: {done.stderr.strip()[-600:]}")
    return done


def _pipes():
    return {"cwd": ROOT, "capture_output": True, "text": True, "timeout": _SECONDS}


def program(folder, what):
    """The words that start the program, armed."""
    arm = [sys.executable, "-m", "gdbext", "gpucore", "-q", "arm", "--dir", str(folder), "--"]
    return [*arm, sys.executable, "-m", "tests.inferiors.gpu_program", what]


def expect(found, wanted, what):
    if found != wanted:
        raise NotProven(f"{what}: {found!r}, expected {wanted!r}")


class Proof:
    def __init__(self, folder):
        self.folder, self.hang = folder, None

    def armed_fault(self):
        """A failing kernel of an armed program leaves a core: exception, kernel, line, threads."""
        done = subprocess.run(program(self.folder / "fault", "fault"), **_pipes())
        (file,) = self._files("fault", done.stderr)
        core = json.loads(gdbext("gpucore", "read", "--json", file, status=(1,)).stdout)["cores"][0]
        fault = core["exceptions"][0]
        expect(fault["kernel"], "engine::scale<…>", "kernel")
        expect(fault["frames"][0]["line"] if fault["frames"] else None, 41, "line")
        verdict = json.loads(gdbext("diagnose", "-q", "--json", file, status=(1,)).stdout)["verdict"]
        expect(verdict["cause"], "gpu-fault", "cause")
        return {"core": core, "stderr": done.stderr[-3000:], "rows": row_sizes(file)}

    def status_of_a_hang(self):
        """An armed program that hangs is ready to be asked; where its pipe shows."""
        self.hang = subprocess.Popen(program(self.folder / "hang", "hang"), cwd=ROOT, stdout=subprocess.PIPE, text=True)
        expect(self.hang.stdout.readline(), "spinning\n", "the program")
        pid = self.hang.pid
        done = gdbext("gpucore", "status", pid, "--json", status=(0,))
        sleeping = {Path(one).read_text() for one in glob.glob(f"/proc/{pid}/task/*/wchan")}
        opened = [os.readlink(one) for one in glob.glob(f"/proc/{pid}/fd/*") if "corepipe" in os.path.realpath(one)]
        return {"status": json.loads(done.stdout), "wchan": sorted(sleeping), "pipes_open": opened}

    def triggered_hang(self):
        """The core that was asked for names the kernel that spins; whether the process goes on."""
        if self.hang is None:
            raise Skipped("there is no hanging program")
        done = gdbext("gpucore", "trigger", self.hang.pid, "--yes", "--json", "--deadline", 120, status=(0,))
        rank = json.loads(done.stdout)["ranks"][0]
        core = json.loads(gdbext("gpucore", "read", "--json", rank["file"], status=(0,)).stdout)["cores"][0]
        kernel = core["devices"][0]["kernels"][0]
        expect(kernel["name"], "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "kernel")
        expect(kernel["places"][0]["frames"][0]["line"], 60, "line")
        return {"rank": rank, "core": core, "alive": self.hang.poll() is None, "rows": row_sizes(rank["file"])}

    def cuda_gdb_agrees(self):
        """cuda-gdb at hand names the same kernels in the same files."""
        cuda_gdb = shutil.which("cuda-gdb") or next(iter(glob.glob("/usr/local/cuda*/bin/cuda-gdb")), None)
        if cuda_gdb is None:
            raise Skipped("no cuda-gdb is here")
        told = {}
        for file in glob.glob(str(self.folder / "*" / "*.nvcudmp")):
            told[file] = compared(cuda_gdb, file)
        if not told:
            raise Skipped("no core was written")
        return told

    def sanitizer(self):
        """`gdbext run --sanitizer` with this release's flags reports the same fault: kernel and line."""
        done = gdbext(*self._sanitized("fault"), status=(1,))
        return {"said": same_fault(done.stdout)}

    def sanitizer_stopped(self):
        """The reports of a program that Ctrl-C stopped are in its log, with their end."""
        words = [sys.executable, "-m", "gdbext", *map(str, self._sanitized("stay"))]
        job = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        expect(job.stdout.readline(), "failed\n", "the program")
        job.send_signal(signal.SIGINT)
        said, notes = job.communicate(timeout=_SECONDS)
        (log,) = (self.folder / "stay-memcheck").iterdir()
        if "ERROR SUMMARY" not in log.read_text():
            raise NotProven(f"{log.name} has no summary; {notes[-1500:]}")
        return {"said": same_fault(said), "status": job.returncode, "notes": notes[-1500:]}

    def sanitizer_tools(self):
        """Each tool takes the options of this release and reports nothing of a kernel without an error; its time."""
        began = time.monotonic()
        plain = subprocess.run([sys.executable, "-m", "tests.inferiors.gpu_program", "work"], **_pipes())
        expect(plain.returncode, 0, f"the program alone: {plain.stderr[-600:]}")
        seconds = {"alone": round(time.monotonic() - began, 2)}
        for tool in ("memcheck", "initcheck", "synccheck", "racecheck"):
            began = time.monotonic()
            gdbext(*self._sanitized("work", tool), status=(0,))
            seconds[tool] = round(time.monotonic() - began, 2)
        return {"seconds": seconds}

    def _sanitized(self, what, tool="memcheck"):
        """Words behind `gdbext` that run the program under the sanitizer. Raises `Skipped`."""
        found = shutil.which("compute-sanitizer") or next(iter(glob.glob(TOOL)), None)
        if found is None:
            raise Skipped("no compute-sanitizer is here")
        os.environ["PATH"] += os.pathsep + os.path.dirname(found)
        words = ["run", f"--sanitizer={tool}", "--dir", self.folder / f"{what}-{tool}", "--"]
        return [*words, sys.executable, "-m", "tests.inferiors.gpu_program", what]

    def _files(self, name, said):
        found = sorted((self.folder / name).glob("*.nvcudmp"))
        if len(found) != 1:
            raise NotProven(f"{len(found)} cores were written: {said[-1500:]}")
        return found

    def end(self):
        if self.hang is not None:
            self.hang.kill()
            self.hang.wait()


STEPS = (
    "armed_fault",
    "status_of_a_hang",
    "triggered_hang",
    "cuda_gdb_agrees",
    "sanitizer",
    "sanitizer_stopped",
    "sanitizer_tools",
)


def same_fault(said):
    """What is said of the fault of the program. Raises `NotProven`."""
    text = " ".join(said.split())
    if "gpu-fault" not in text or "scale" not in text or "engine.cu:41" not in text:
        raise NotProven(f"no fault of scale at engine.cu:41: {said[-1500:]}")
    return said[-3000:]


def row_sizes(file):
    """Bytes of a row of each table, as this driver writes them."""
    from gdbext.capture.gpu_cores.gpu_core_file import GpuCoreFile, open_core
    from gdbext.knowledge.runtimes.gpu_core_format import TABLES

    with open_core(str(file)) as stream:
        core = GpuCoreFile(stream)
        return {table.title: sorted({one.row_size for one in core.of(kind)}) for kind, table in TABLES.items()}


def compared(cuda_gdb, file):
    """What cuda-gdb and we say of one core. Raises `NotProven` where they differ."""
    words = [cuda_gdb, "-nx", "-batch", "-iex", "set python print-stack none"]
    if "GNU gdb (GDB) 10" in subprocess.run([cuda_gdb, "--version"], **_pipes()).stdout:
        words += ["-iex", "python gdb._execute_unwinders=None"]  # Debian's 11.8 loads two libpythons
    asked = ("echo @@", "info cuda kernels", "echo @@", "info cuda sms", "bt")
    done = subprocess.run(
        [*words, "-ex", f"target cudacore {file}", *(word for one in asked for word in ("-ex", one))], **_pipes()
    )
    core = json.loads(gdbext("gpucore", "read", "--json", file, status=(0, 1)).stdout)["cores"][0]
    kernels = {one["symbol"]: one for each in core["devices"] for one in each["kernels"]}
    said = done.stdout + done.stderr
    shown, _ = cuda_kernels.kernels(done.stdout.split("@@")[1])
    ours = {(one["grid"], _size(one["grid_size"]), _size(one["block_size"])) for one in kernels.values()}
    expect({(one.grid, one.grid_size, one.block_size) for one in shown}, ours, "kernels of cuda-gdb")
    for fault in core["exceptions"][:1]:
        pc = re.search(r"triggered at PC (0x[0-9a-f]+)(?: .*?\((\S+?):(\d+)\))?", said)
        expect(pc and pc[1], fault["pc"], "address of the exception")
        if pc[3]:
            lines = [str(one["line"]) for one in fault["frames"]]
            expect(pc[3] in lines, True, f"line {pc[3]} of cuda-gdb among ours, {lines},")
    return {"kernels": [one.name for one in shown], "said": said[-3000:]}


def _size(numbers):
    return f"({','.join(map(str, numbers))})"


def main():
    asked = argparse.ArgumentParser(prog="scripts/prove-gpu", description=__doc__)
    asked.add_argument("--output", help="write the JSON to this file")
    asked.add_argument("--only", choices=STEPS, action="append", help="these steps alone")
    asked.add_argument("--keep", help="folder for the cores (default: one that is removed)")
    options = asked.parse_args()
    if not glob.glob("/dev/nvidia[0-9]*"):
        print("no GPU is here (/dev/nvidia0): nothing was proven", file=sys.stderr)
        answer = {"gpu": False, "steps": []}
        status = NO_GPU
    else:
        answer = {"gpu": True, "driver": _read("/proc/driver/nvidia/version"), "steps": []}
        folder = Path(options.keep or tempfile.mkdtemp(prefix="prove-gpu-")).resolve()
        proof = Proof(folder)
        try:
            for name in options.only or STEPS:
                answer["steps"].append(_step(proof, name))
        finally:
            proof.end()
            if not options.keep:
                shutil.rmtree(folder, ignore_errors=True)
        status = int(any(one["state"] == "failed" for one in answer["steps"]))
    text = json.dumps(answer, indent=1)
    if options.output:
        Path(options.output).write_text(text + "\n")
    else:
        print(text)
    return status


def _step(proof, name):
    began = time.monotonic()
    method = getattr(proof, name)
    row = {"name": name, "proves": method.__doc__, "state": "proven"}
    try:
        row["found"] = method()
    except Skipped as missing:
        row.update(state="skipped", why=str(missing))
    except Exception as error:  # each step is for itself
        row.update(state="failed", why=f"{type(error).__name__}: {error}"[:2000])
    row["seconds"] = round(time.monotonic() - began, 1)
    print(f"{row['state']}: {name} ({row['seconds']} s){' ' + row.get('why', '')}", file=sys.stderr)
    return row


def _read(path):
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None


if __name__ == "__main__":
    sys.exit(main())
