"""Offsets in libraries of a sanitizer's reports: functions and lines by the files at hand."""

import subprocess
from dataclasses import replace

import pytest
from elftools.elf.elffile import ELFFile

from gdbext.capture.symbols.module_offsets import Named, name_offsets
from gdbext.cli.main import main
from gdbext.collect.report_modules import has_offsets, with_names
from gdbext.model.gpu_errors import GpuError
from gdbext.model.job import JobSnapshot, RankSnapshot
from gdbext.model.stack import Frame
from tests.gpu_reports import Fault, log, report

SOURCE = """\
namespace engine {
int launch(int n) {
  volatile int k = n;
  return k + 1;
}
}
extern "C" int entry(int n) { return engine::launch(n) * 2; }
int main() { return entry(3); }
"""
LAUNCH = "_ZN6engine6launchEi"

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """Compiles the source and says where `launch` begins, seen from where the file is loaded."""
    folder = tmp_path_factory.mktemp("modules")
    (folder / "engine.cpp").write_text(SOURCE)

    def make(name, *options):
        path = folder / name
        subprocess.run(["g++", "-o", str(path), "engine.cpp", "-O0", *options], cwd=folder, check=True)
        with path.open("rb") as file:
            elf = ELFFile(file)
            table = elf.get_section_by_name(".symtab") or elf.get_section_by_name(".dynsym")
            value = table.get_symbol_by_name(LAUNCH)[0]["st_value"]
            base = min(one["p_vaddr"] for one in elf.iter_segments() if one["p_type"] == "PT_LOAD")
        return path, value - base

    return make


@pytest.mark.parametrize(
    "options",
    [
        ("-g", "-shared", "-fPIC"),
        ("-g", "-gdwarf-4", "-shared", "-fPIC"),
        ("-g", "-gdwarf-3", "-no-pie"),
        ("-g", "-gz", "-shared", "-fPIC"),
    ],
    ids=["dwarf-5", "dwarf-4", "program", "packed"],
)
def test_the_line_of_a_return_address(build, options):
    path, start = build(f"one{len(options)}{options[1]}.so", *options)
    found = name_offsets(str(path), [start + 1, start + 12])
    assert {one.symbol for one in found.values()} == {LAUNCH}
    assert found[start + 1].line == 2
    assert found[start + 12].line in (2, 3)
    assert {one.file.rpartition("/")[2] for one in found.values()} == {"engine.cpp"}


def test_without_lines_there_are_names(build):
    path, start = build("stripped.so", "-shared", "-fPIC", "-s")
    assert name_offsets(str(path), [start + 8, 3]) == {start + 8: Named(LAUNCH), 3: Named()}


def test_what_is_no_such_file(tmp_path):
    (tmp_path / "text").write_text("no library")
    with pytest.raises(ValueError, match="ELF"):
        name_offsets(str(tmp_path / "text"), [16])
    with pytest.raises(OSError, match="No such file"):
        name_offsets(str(tmp_path / "gone"), [16])


def job(*frames):
    error = GpuError(kind="invalid-access", text="Invalid read", host_frames=frames)
    return JobSnapshot(processes=(RankSnapshot(index=0, threads=(), gpu_errors=(error,)),))


def test_frames_get_names_and_those_without_a_file_are_said(build):
    path, start = build("named.so", "-g", "-shared", "-fPIC")
    known = Frame("kept", module="/opt/named.so", file="a.cpp", line=3, module_offset=start + 1)
    snapshot = job(
        Frame(None, module="/opt/named.so", module_offset=start + 1),
        Frame(None, module="libx.so", module_offset=9),
        known,
    )
    assert has_offsets(snapshot) and not has_offsets(job(known))
    found = with_names(snapshot, str(path.parent))
    first, second, third = found.processes[0].gpu_errors[0].host_frames
    assert (first.function, first.file.rpartition("/")[2], first.line) == ("engine::launch", "engine.cpp", 2)
    assert (second.function, third) == (None, known)
    assert found.problems == (f"1 file of the reports not found in {path.parent}: libx.so",)


def test_diagnose_takes_a_sysroot_for_reports(build, tmp_path, capsys):
    path, start = build("libth_transformer.so", "-g", "-shared", "-fPIC")
    (tmp_path / "opt").mkdir()
    path.rename(tmp_path / "opt/libth_transformer.so")
    lines = [line.replace("0x29bb07", hex(start + 1)) for line in report(replace(Fault(), kernel="k(int*)"), "B")]
    (tmp_path / "san.0.log").write_text(log([lines], 1))
    assert main(["diagnose", "--sysroot", str(tmp_path), str(tmp_path / "san.0.log")]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "launched by engine::launch (engine.cpp:2)" in said


def test_a_sysroot_without_a_use_is_refused(tmp_path, capsys):
    (tmp_path / "stack.txt").write_text("Thread 1 (LWP 2):\n#0  0x1 in f () from /x.so\n#1  0x2 in main ()\n")
    assert main(["diagnose", "--sysroot", "/", str(tmp_path / "stack.txt")]) == 2
    assert "--sysroot is for core files, and for reports of a sanitizer" in capsys.readouterr().err
