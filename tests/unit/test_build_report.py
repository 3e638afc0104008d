"""`doctor --build` and `--how`: what a build will show, by small files of g++ and by processes of ours."""

import json
import os
import shutil
import signal
import struct
import subprocess
import sys
from types import SimpleNamespace

import pytest
from discovery_tree import Tree

from gdbext.analysis.build_report.file_points import points_of
from gdbext.capture.build_facts import built_file as reader
from gdbext.capture.build_facts.built_file import built_file, texts_in
from gdbext.cli import main
from gdbext.commands import build_report, doctor
from gdbext.commands.all_commands import IN_SHELL
from gdbext.commands.completion_words import words_for
from gdbext.discovery.preflight_checks.process_debug_settings import debug_checks, numbers, process_points
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.knowledge.engines.all_build_ways import BUILDS, BUILT
from gdbext.knowledge.engines.all_profiles import NAMES
from gdbext.knowledge.errors.checks import DEBUG_CHECKS
from gdbext.model.build_report import DEBUG, SYMBOLS, BuildReport, BuiltFile, DebugCheck, DeviceCode
from gdbext.model.checkup import Point
from gdbext.model.errors import NothingFound, UsageError
from gdbext.model.missing import Missing
from gdbext.render import Style, dumps, render
from gdbext.safe_open.kept_open_files import Shelf
from tests.fat_binaries import CUBIN, container, cubin, entry, library
from tests.unit.test_safety_elf import elf

STYLE = Style(width=100, color=False, unicode=True)
SOURCE = """
#include <cstdlib>
#include <string>
#include <vector>
namespace fastertransformer {
void syncAndCheck(const char *file, int line) {
    static char *level = std::getenv("FT_DEBUG_LEVEL");
    if (level && std::string(level) == "DEBUG") std::abort();
}
struct Layer { virtual ~Layer() {} virtual int forward(int n); };
int Layer::forward(int n) {
    std::vector<std::string> words;
    for (int i = 0; i < n; i++) words.push_back(std::to_string(i));
    syncAndCheck(__FILE__, __LINE__);
    int sum = 0;
    for (const std::string &word : words) sum += word.size();
    return sum;
}
std::string join(const std::vector<std::string> &all) {
    std::string text;
    for (const std::string &one : all) text += one + ",";
    return text;
}
}
int main(int count, char **words) {
    fastertransformer::Layer layer;
    if (count > 1) { std::puts("up"); std::fflush(stdout); std::getchar(); }
    return layer.forward(count) + fastertransformer::join({words, words + count}).size();
}
""".replace("#include <cstdlib>", "#include <cstdio>\n#include <cstdlib>")


@pytest.fixture(scope="module")
def builds(tmp_path_factory):
    """By name, each compiled once: what there is of it under which options."""
    folder = tmp_path_factory.mktemp("builds")
    (folder / "engine.cpp").write_text(SOURCE)
    running = {}
    for name, flags in {
        "debug": "-g -O0",
        "release": "-O2",
        "kept": "-g -O2 -fno-omit-frame-pointer",
        "split": "-g -O1 -gsplit-dwarf",
        "packed": "-g -O3 -gz=zlib",
    }.items():
        command = ["g++", *flags.split(), "-o", str(folder / name), "engine.cpp", "-Wl,--build-id"]
        running[name] = subprocess.Popen(command, cwd=folder)
    assert [one.wait() for one in running.values()] == [0] * len(running)
    shutil.copy(folder / "kept", folder / "apart")
    subprocess.run(["objcopy", "--only-keep-debug", "apart", "apart.debug"], cwd=folder, check=True)
    subprocess.run(["strip", "-s", "apart"], cwd=folder, check=True)
    subprocess.run(["objcopy", "--add-gnu-debuglink=apart.debug", "apart"], cwd=folder, check=True)
    shutil.copy(folder / "release", folder / "stripped")
    subprocess.run(["strip", "-s", "stripped"], cwd=folder, check=True)
    return folder


def read(path, environment=()):
    return built_file(str(path), Shelf().open(str(path)), dict(environment))


@pytest.mark.process
@pytest.mark.parametrize(
    ("name", "symbols", "debug", "levels", "inlined", "frames"),
    [
        ("debug", "all", "inside", ("-O0",), False, "yes"),
        ("release", "all", "none", (), None, "no"),
        ("stripped", "exported", "none", (), None, "no"),
        ("kept", "all", "inside", ("-O2",), True, "yes"),
        ("split", "all", "objects", (), None, "no"),
        ("packed", "all", "inside", ("-O3",), True, "no"),
        ("apart", "exported", "apart", ("-O2",), True, "yes"),
    ],
)
def test_what_a_compiler_left_in_a_file(builds, name, symbols, debug, levels, inlined, frames):
    found = read(builds / name)
    assert (found.symbols, found.debug, found.optimised, found.inlined) == (symbols, debug, levels, inlined)
    assert found.frame_pointers == frames and not found.problem
    assert len(found.build_id) == 40 and found.build_id in subprocess.check_output(
        ["readelf", "-n", builds / name], text=True
    )
    assert all(one.startswith("GNU C") for one in found.compilers) and bool(found.compilers) == bool(levels)
    assert found.symbols in SYMBOLS and found.debug in DEBUG and found.device_code is None


@pytest.mark.process
def test_debug_information_that_debuginfod_has_fetched(builds, tmp_path):
    build_id = read(builds / "stripped").build_id
    cache = tmp_path / ".cache/debuginfod_client" / build_id
    cache.mkdir(parents=True)
    shutil.copy(builds / "kept", cache / "debuginfo")
    found = read(builds / "stripped", {"HOME": str(tmp_path)})
    assert (found.debug, found.debug_file) == ("cached", str(cache / "debuginfo")) and found.optimised == ("-O2",)
    (cache / "debuginfo").write_bytes(b"")  # its client's note that no server has it
    assert read(builds / "stripped", {"HOME": str(tmp_path)}).debug == "none"


@pytest.mark.process
def test_a_file_in_text_and_as_a_document(builds, capsys):
    assert main.main(["doctor", "--build", str(builds / "stripped")]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "warning names stripped" in said and "compile with -g" in said
    assert "fastertransformer::syncAndCheck is compiled in; FT_DEBUG_LEVEL=DEBUG at start switches it on" in said
    assert "--how fastertransformer" in said
    assert main.main(["doctor", "--build", str(builds / "debug"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    (file,) = document["files"]
    assert document["engine"] == "fastertransformer" and document["ways"][0]["commands"]
    assert (file["symbols"], file["debug"], file["inlined"], file["device_code"]) == ("all", "inside", False, None)
    assert [check["on"] for check in file["checks"]] == [None]


@pytest.mark.process
def test_gpu_code_and_its_lines_are_told(builds, tmp_path, capsys):
    path = library(tmp_path, container(entry(CUBIN, 90, cubin(tmp_path))))
    assert main.main(["doctor", "--build", str(path)]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "sm_90" in said and "a fault in a kernel gets no line: no -lineinfo" in said


@pytest.fixture
def running(builds, tmp_path):
    """A rank of FasterTransformer-like code that waits, started with its check on."""
    program = tmp_path / "engine"
    shutil.copy(builds / "debug", program)
    process = subprocess.Popen(
        [str(program), "--password=secret"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "FT_DEBUG_LEVEL": "DEBUG"},
    )
    with process:
        assert process.stdout.readline() == b"up\n"
        yield SimpleNamespace(pid=process.pid, program=program)
        process.kill()


@pytest.mark.process
def test_a_process(running, capsys):
    status = main.main(["doctor", "--build", str(running.pid), "--json"])
    document = json.loads(capsys.readouterr().out)
    (file,) = document["files"]
    assert file["path"] == str(running.program) and file["debug"] == "inside"
    assert [check["on"] for check in file["checks"]] == [True]
    assert "secret" not in json.dumps(document) and document["target"].startswith(f"process {running.pid} (")
    names = {point["name"] for point in document["points"]}
    assert {"core limit", "core files", "attach", "/dev/shm"} <= names and document["other_files"] > 2
    assert status == (1 if any(point["state"] != "ok" for point in document["points"]) else 0)


@pytest.mark.process
@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_a_file_that_was_changed_under_the_process(running, how, monkeypatch):
    running.program.unlink()
    if how == "replaced":
        shutil.copy("/bin/true", running.program)
    monkeypatch.setattr("gdbext.capture.symbols.mapped_libraries._Finder._locate", _beyond_reach(how))
    report = build_report.build_report(str(running.pid))
    (file,) = report.files
    assert f"was {how} after it was loaded" in file.problem and file.symbols == "unknown"
    assert [point.state for point in file.points] == ["warning"] and report.lacking


def _beyond_reach(how):
    """As for a user who is not root: the kernel's own ways to a file are closed."""
    return lambda self, mapping, loaded: f"{mapping.file} was {how} after it was loaded: no names for its frames"


@pytest.mark.process
def test_a_removed_program_is_read_by_the_kernels_way(running):
    running.program.unlink()
    (file,) = build_report.build_report(str(running.pid)).files
    assert file.symbols == "all" and not file.problem


@pytest.mark.process
def test_a_python_process_without_a_file_of_an_engine_has_its_settings(capsys):
    code = "import sys; print('up', flush=True); sys.stdin.read()"
    process = subprocess.Popen([sys.executable, "-X", "faulthandler", "-c", code], stdin=-1, stdout=-1)
    with process:
        process.stdout.readline()
        status = main.main(["doctor", "--build", str(process.pid), "--json"])
        process.stdin.close()
    points = {point["name"]: point for point in json.loads(capsys.readouterr().out)["points"]}
    assert points["segfault"]["state"] == "ok" and status in (0, 1)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("/etc/passwd", "not a 64-bit little-endian ELF file"),
        ("/nowhere/at/all", "No such file or directory"),
        ("/tmp", "it is a folder"),
        ("/dev/null", "it is a device"),
        ("999999999", "no process 999999999 is running"),
        ("2" * 40, "No such file"),
    ],
)
def test_one_line_for_what_is_no_build(target, said, capsys):
    assert main.main(["doctor", "--build", target]) == 4
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


def test_a_cut_file_a_fifo_and_a_hostile_one(tmp_path):
    fifo = tmp_path / "fifo.so"
    os.mkfifo(fifo)
    cut = tmp_path / "cut.so"
    hostile = tmp_path / "hostile.so"
    whole = elf([(b".nv_fatbin", 1, 2, 0, container(entry(CUBIN, 80, b"")), 0)])
    cut.write_bytes(whole[: len(whole) - 60])
    for path, said in ((fifo, "it is a FIFO"), (cut, "cut off")):
        with pytest.raises(NothingFound, match=said):
            build_report.build_report(str(path))
    for size in (1 << 40, 1 << 63, (1 << 64) - 1):
        hostile.write_bytes(elf([(b".debug_str", 1, 0, 0, (64, size), 0), (b".debug_info", 1, 0, 0, (64, size), 0)]))
        try:
            found = read(hostile)
        except MemoryError:  # the reader takes none
            pytest.fail("memory was taken for a size that a file says of itself")
        assert found.problem or found.compilers == ()


def test_a_table_beyond_the_end_of_any_file(tmp_path):
    """The kernel refuses to go there."""
    path = tmp_path / "beyond.so"
    head = bytearray(elf([(b".text", 1, 6, 0, b"", 0)]))
    struct.pack_into("<Q", head, 40, (1 << 62) - 1)  # e_shoff
    path.write_bytes(head)
    assert "an ELF table is damaged" in read(path).problem or "cut off" in read(path).problem


def test_seventy_thousand_sections(tmp_path):
    """Their number stands in the first header; beyond twice as many the file is refused in one line."""
    many = tmp_path / "many.so"
    many.write_bytes(elf([(b"", 1, 0, 0, b"", 0)] * 70_000 + [(b".nv_fatbin", 1, 2, 0, b"", 0)], count=70_003))
    assert read(many).symbols == "none"
    head = bytearray(many.read_bytes())
    at = struct.unpack_from("<Q", head, 40)[0]
    struct.pack_into("<Q", head, at + 32, 1 << 33)
    many.write_bytes(head)
    assert "too many sections" in read(many).problem


def test_compressed_strings_that_lie_are_said(tmp_path):
    path = tmp_path / "lies.so"
    for kind, size in ((1, 100), (1, 1 << 50), (2, 100), (7, 100)):
        packed = struct.pack("<IIQQ", kind, 0, size, 1) + b"no stream at all"
        path.write_bytes(elf([(b".debug_info", 1, 0, 0, b"x", 0), (b".debug_str", 1, 0x800, 0, packed, 0)]))
        found = read(path)
        assert found.debug == "inside" and "compressed and could not be read" in found.problem
        assert [point.name for point in points_of(found, False) if point.state == "warning"] == ["names", "file"]


@pytest.mark.parametrize(
    ("producers", "compilers", "levels", "inlined"),
    [
        (["GNU C++17 12.2.0 -mtune=generic -g -O2 -O3 -fPIC"], ("GNU C++17 12.2.0",), ("-O3",), True),
        (["GNU C++14 9.4.0 -march=x86-64 -g"], ("GNU C++14 9.4.0",), ("-O0",), False),
        (["GNU C17 13.1.0 -g1 -O2", "GNU C17 13.1.0 -g -O2"], ("GNU C17 13.1.0",), ("-O2",), True),
        (["GNU C17 13.1.0 -g -O"], ("GNU C17 13.1.0",), ("-O1",), True),
        (["GNU C17 13.1.0 -g -O2 -fno-inline"], ("GNU C17 13.1.0",), ("-O2",), False),
        (["Ubuntu clang version 14.0.0-1ubuntu1"], ("Ubuntu clang version 14.0.0",), (), None),
        (
            ["clang LLVM (rustc version 1.70.0 (90c541806 2023-05-31))"],
            ("clang LLVM (rustc version 1.70.0)",),
            (),
            None,
        ),
        (["GNU AS 2.40", "GNU Coreutils of nothing"], (), (), None),
        (
            ["GNU C++17 12.2.0 -g -O2", "GNU C++17 12.2.0 -g -O0", "x" * 9000],
            ("GNU C++17 12.2.0",),
            ("-O0", "-O2"),
            True,
        ),
    ],
)
def test_producers(tmp_path, producers, compilers, levels, inlined):
    path = tmp_path / "made.so"
    strings = b"".join(one.encode() + b"\0" for one in ["int", *producers, "char"])
    path.write_bytes(elf([(b".debug_info", 1, 0, 0, b"x", 0), (b".debug_str", 1, 0x30, 0, strings, 0)]))
    found = read(path)
    assert (found.compilers, found.optimised, found.inlined) == (compilers, levels, inlined)


def test_a_producer_across_two_pieces_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr("gdbext.capture.build_facts.compilers._PIECE", 64)
    path = tmp_path / "made.so"
    strings = b"n" * 60 + b"\0GNU C++17 12.2.0 -g -O2 -fPIC\0" + b"n" * 200 + b"\0"
    path.write_bytes(elf([(b".debug_info", 1, 0, 0, b"x", 0), (b".debug_str", 1, 0x30, 0, strings, 0)]))
    assert read(path).optimised == ("-O2",)


def test_texts_are_looked_for_in_constants_and_names_alone(tmp_path):
    path = tmp_path / "texts.so"
    constant, name = b"\0FT_DEBUG_LEVEL\0", b"\0_ZN7rtp_llm19syncAndCheckInDebugEPKci\0"
    sections = [(b".rodata", 1, 2, 0, constant, 0), (b".dynstr", 3, 2, 0, name, 0)]
    path.write_bytes(elf([*sections, (b".debug_str", 1, 0, 0, b"TM_DEBUG_LEVEL\0", 0)]))
    texts = [row.text for row in DEBUG_CHECKS]
    assert texts_in(Shelf().open(str(path)), texts) == {b"FT_DEBUG_LEVEL", b"syncAndCheckInDebug"}


def test_checks_are_on_off_or_unknown():
    texts = [b"syncAndCheckInDebug"]
    for environment, on in (({"LOG_LEVEL": "TRACE"}, True), ({"LOG_LEVEL": "INFO"}, False), (Missing("denied"), None)):
        (check,) = debug_checks(texts, environment)
        assert (check.function, check.variable, check.on) == ("rtp_llm::syncAndCheckInDebug", "LOG_LEVEL=DEBUG", on)


def points(tree, environment, libraries, releases=()):
    found = process_points(ProcFS(str(tree.folder)), 60, environment, libraries, dict(releases))
    return {point.name: point for point in found}


@pytest.fixture
def tree(tmp_path):
    made = Tree(tmp_path)
    made.add(60, 1, "python serve.py")
    (tmp_path / "sys/kernel").mkdir(parents=True, exist_ok=True)
    (tmp_path / "60/limits").write_text(
        "Limit  Soft Limit  Hard Limit  Units\nMax core file size  0  unlimited  bytes\n"
    )
    return made


TORCH = ("/x/libtorch_cuda.so", "/x/libc10.so", "/x/libnccl.so.2", "/x/libcuda.so.1")


def test_settings_of_a_process(tree):
    (tree.folder / "sys/kernel/core_pattern").write_text("core\n")
    bare = points(tree, {}, TORCH, {"torch": "2.13.0+cu130", "nvidia_nccl_cu13": "2.23.4"})
    assert bare["NCCL's log"].state == "warning" and "NCCL_DEBUG=WARN" in bare["NCCL's log"].remedy
    assert bare["recorder"].state == "ok" and "2.13.0 is here" in bare["recorder"].text
    assert bare["NCCL's RAS"].state == "warning" and bare["NCCL's RAS"].text.startswith("unknown")
    assert bare["C++ stacks"].state == bare["GPU core"].state == bare["GPU hang"].state == "warning"
    assert bare["core limit"].state == "warning" and "prlimit --pid 60" in bare["core limit"].remedy
    assert bare["core files"].state == "warning" and "without %p" in bare["core files"].text
    wanted = {
        **{"NCCL_DEBUG": "info", "TORCH_FR_BUFFER_SIZE": "0", "TORCH_SHOW_CPP_STACKTRACES": "1"},
        **{"CUDA_ENABLE_COREDUMP_ON_EXCEPTION": "1", "NCCL_RAS_ENABLE": "1"},
    }
    (tree.folder / "sys/kernel/core_pattern").write_text("|/usr/lib/systemd/systemd-coredump %P\n")
    (tree.folder / "60/limits").write_text(
        "Max core file size        unlimited            unlimited            bytes\n"
    )
    full = points(tree, wanted, TORCH)
    assert {name for name, one in full.items() if one.state != "ok"} - {"attach"} == {"recorder", "GPU hang"}
    assert "TORCH_FR_BUFFER_SIZE=0" in full["recorder"].text


def test_what_is_not_mapped_needs_no_setting_and_what_cannot_be_read_is_unknown(tree):
    assert not {"NCCL's log", "recorder", "segfault"} & set(points(tree, {}, ("/bin/true",)))
    unread = points(tree, Missing("Permission denied"), TORCH)
    assert "unknown" in unread["variables"].text and "NCCL's log" not in unread
    assert "unknown" in unread["core files"].text


@pytest.mark.parametrize(("mask", "state"), [(1 << signal.SIGSEGV - 1, "ok"), (0, "warning")])
def test_the_handler_of_a_crash(tree, mask, state):
    (tree.folder / "60/status").write_text(f"Name:\tpython\nSigCgt:\t{mask:016x}\n")
    assert points(tree, {}, ("/x/libpython3.11.so",))["segfault"].state == state


def test_releases_compare_as_numbers():
    assert numbers("2.9.1") < numbers("2.13.0+cu130") and numbers("no release") == ()


def test_how_each_engine_is_built(capsys):
    assert set(BUILT) <= set(NAMES) and {row.engine for row in BUILDS} == set(BUILT)
    for engine in BUILT:
        assert main.main(["doctor", "--how", engine]) == 0
        said = capsys.readouterr().out
        (row,) = (row for row in BUILDS if row.engine == engine)
        assert all(f"  {command}\n" in said for command in row.commands) and "source: " in said


def test_names_of_engines_as_people_write_them():
    assert [build_report.how(name).engine for name in ("llama.cpp", "TensorRT_LLM")] == ["llama-cpp", "tensorrt-llm"]
    option = next(one for one in IN_SHELL["doctor"].arguments if one.name == "--how")
    assert words_for(option) == BUILT


def test_line_tables_without_variables_are_told(tmp_path):
    path = tmp_path / "made.so"
    strings = b"\0GNU C++17 12.2.0 -g1 -O2 -fPIC\0"
    path.write_bytes(elf([(b".debug_info", 1, 0, 0, b"x", 0), (b".debug_str", 1, 0x30, 0, strings, 0)]))
    assert read(path).lines_only
    (point,) = (one for one in points_of(read(path), False) if one.name == "lines")
    assert point.state == "warning" and "no arguments" in point.text


def test_questions_that_cannot_be_asked(capsys):
    assert main.main(["doctor", "--build", ""]) == 4
    assert main.main(["doctor", "--hosts", "node1", "--build", "/bin/true"]) == 2
    assert "this host alone" in capsys.readouterr().err
    assert main.main(["doctor", "--how", "nothing"]) == 2
    assert "known are" in capsys.readouterr().err
    with pytest.raises(UsageError, match="two questions"):
        build_report.answer("x", "vllm")
    assert doctor.doctor(None, SimpleNamespace(build=None, how="vllm")).engine == "vllm"


def test_a_report_of_every_kind_has_lines_that_fit_and_no_escapes():
    code = DeviceCode(("sm_80",), (), 4, 1, 3, 2, 0, "a fat binary is cut off, or its header is damaged")
    check = DebugCheck("fastertransformer", "check\x1b[2J", "A=1", False, "note " * 30)
    base = BuiltFile(path="/evil\x1b[2J/" + "x" * 200, symbols="functions", debug="objects", compilers=("GNU C 1",) * 6)
    files = [
        BuiltFile(**{**base.__dict__, "symbols": symbols, "debug": debug, "device_code": code, "checks": (check,)})
        for symbols in SYMBOLS
        for debug in DEBUG
    ]
    files = tuple(BuiltFile(**{**one.__dict__, "points": tuple(points_of(one, True))}) for one in files)
    report = BuildReport(
        target="process 1", engine="vllm", files=files, points=(Point("core limit", "ok", "unlimited"),), others=3
    )
    lines = render(report, STYLE)
    assert all("\x1b" not in line for line in lines) and report.lacking and report.read
    said = " ".join(" ".join(lines).split())
    assert "2 of 4 cubins have -lineinfo; 3 of 4 were looked into, 1 of 4 cubins are compressed" in said
    assert json.loads(dumps(report))["other_files"] == 3


def test_nothing_of_a_report_is_missing_where_all_is_there():
    file = BuiltFile(
        path="/a", symbols="all", debug="inside", optimised=("-O2",), compilers=("GNU C17 13",), frame_pointers="yes"
    )
    full = BuiltFile(**{**file.__dict__, "points": tuple(points_of(file, False))})
    assert render(BuildReport(target="/a", engine="", files=(full,)), STYLE)[-1].startswith("Nothing is missing")


def test_a_file_whose_checks_cannot_be_looked_for_keeps_the_rest(tmp_path, monkeypatch):
    path = library(tmp_path, section=".rodata")
    monkeypatch.setattr(build_report, "texts_in", lambda *_: (_ for _ in ()).throw(ValueError("damaged")))
    assert build_report.build_report(str(path)).files[0].symbols == "none"
    assert reader.DAMAGED
