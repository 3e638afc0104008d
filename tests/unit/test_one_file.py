"""gdbext.pyz: everything in one file, the same bytes each time, unpacked once, whole or not at all."""

import ast
import json
import os
import py_compile
import re
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import gdbext
from gdbext.collect.hosts import one_file

ROOT = Path(__file__).parents[2]
BARE = [sys.executable, "-I", "-S"]  # a Python that has no package at all
pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    target = tmp_path_factory.mktemp("one") / "gdbext.pyz"
    subprocess.run([sys.executable, ROOT / "scripts" / "package", "-o", target], check=True)
    return target


@pytest.fixture
def run(archive, tmp_path):
    def go(*words, **environ):
        told = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home"), **environ}
        return subprocess.run([*BARE, archive, *words], env=told, cwd=tmp_path, capture_output=True, text=True)

    (tmp_path / "home").mkdir()
    return go


def unpacked(home):
    return [path for path in (home / ".cache" / "gdbext").iterdir() if path.is_dir()]


def test_it_is_small_and_the_same_each_time(archive, tmp_path):
    again = tmp_path / "again.pyz"
    subprocess.run([sys.executable, ROOT / "scripts" / "package", "-o", again], check=True)
    assert again.read_bytes() == archive.read_bytes() and archive.stat().st_size < 3_000_000
    names = zipfile.ZipFile(archive).namelist()
    assert {"LICENSES/clustershell-COPYING.LGPLv2.1", "LICENSES/gdbext", "gdbext/init.py"} <= set(names)
    assert not [name for name in names if name.endswith((".so", ".pyc")) or name.startswith(("/", "."))]


def test_a_python_without_packages_runs_all_of_it(run, tmp_path):
    version = run("--version")
    assert version.returncode == 0 and "(one file, build " in version.stdout, version.stderr
    text = tmp_path / "hang.txt"
    text.write_text("Thread 1 (Thread 0x7f (LWP 5)):\n#0  0x00007f in futex_wait () from /lib/libc.so.6\n")
    answer = run("diagnose", text, "--json", "-q")
    assert json.loads(answer.stdout)["schema"] == 1, answer.stderr
    (folder,) = unpacked(tmp_path / "home")
    assert folder.stat().st_mode & 0o777 == 0o700
    init = Path(run("gdbinit").stdout.strip())
    assert init == folder / "gdbext" / "init.py" and init.stat().st_mode & 0o077 == 0


def test_several_at_once_and_a_damaged_folder(run, tmp_path):
    with ThreadPoolExecutor(8) as pool:
        assert {done.returncode for done in pool.map(lambda _: run("--version"), range(8))} == {0}
    (folder,) = unpacked(tmp_path / "home")
    (folder / "ONE_FILE").write_text("of another build")
    (folder / "gdbext" / "__init__.py").unlink()
    assert run("--version").returncode == 0 and [folder] == unpacked(tmp_path / "home")


def test_without_a_cache_nothing_stays(run, tmp_path):
    done = run("explain", "late-rank", GDBEXT_CACHE="off", TMPDIR=str(tmp_path))
    assert done.returncode == 0 and not (tmp_path / "home" / ".cache").exists() and not list(tmp_path.glob("gdbext-*"))
    refused = run("gdbinit", GDBEXT_CACHE="off")
    assert refused.returncode != 0 and refused.stderr.count("\n") == 1 and "folder that stays" in refused.stderr


def test_a_folder_that_others_may_write_is_not_used(run, tmp_path):
    cache = tmp_path / "home" / ".cache" / "gdbext"
    cache.mkdir(parents=True)
    cache.chmod(0o777)
    assert run("--version").returncode == 0 and not list(cache.iterdir())


def test_a_cut_file_is_one_line(archive, tmp_path, run):
    cut = tmp_path / "cut.pyz"
    cut.write_bytes(archive.read_bytes()[: -archive.stat().st_size // 2])
    done = subprocess.run([*BARE, cut, "--version"], capture_output=True, text=True)
    assert done.returncode != 0 and not done.stdout


def test_gdb_and_the_shell_need_the_same_packages():
    """`init.py` runs before the package can be imported, and has the list itself."""
    text = (Path(gdbext.__file__).parent / "init.py").read_text("utf-8")
    (listed,) = re.findall(r"^DEPENDENCIES = (\(.*\))$", text, re.MULTILINE)
    assert ast.literal_eval(listed) == gdbext.PACKAGES


def test_what_this_python_has_compiled_goes_along_and_is_used_as_it_is(tmp_path):
    """Only what belongs to the source as it is now."""
    package = tmp_path / "gdbext"
    (package / "model").mkdir(parents=True)
    names = ("kept", "changed", "never")
    sources = {f"gdbext/model/{name}.py": f"NAME = {name!r}\n".encode() for name in names}
    for name, text in sources.items():
        (tmp_path / name).write_bytes(text)
    for name in names[:2]:
        py_compile.compile(str(package / "model" / f"{name}.py"))
    sources["gdbext/model/changed.py"] += b"\n"
    found = dict(one_file._compiled(package, sources))
    tag = sys.implementation.cache_tag
    assert list(found) == [f"gdbext/model/__pycache__/kept.{tag}.pyc"]
    source = tmp_path / "there" / "kept.py"
    compiled = source.parent / "__pycache__" / f"kept.{tag}.pyc"
    compiled.parent.mkdir(parents=True)
    source.write_text("NAME = 'another source, newer than what was compiled'")
    compiled.write_bytes(found.popitem()[1])
    done = subprocess.run(
        [sys.executable, "-c", "import kept; print(kept.NAME)"], cwd=source.parent, stdout=subprocess.PIPE
    )
    assert done.stdout == b"kept\n"
