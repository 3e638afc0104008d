"""`source gdbext/init.py`: from anywhere, twice, silent, and clear when something is missing."""

import ast
import functools
import os
import re
import resource
import shutil
import sys

import pytest

import gdbext
from tests.gdb.gdbrun import INIT, ROOT, Target, Terminal, gdb_batch

pytestmark = pytest.mark.gdb
LOADED = "python import gdbext; print('from', gdbext.__file__)"
SHOW = "python from gdbext.inside_gdb.typed_commands import execution; print('output', execution.WITHOUT_OUTPUT)"


@pytest.mark.parametrize("folder, path", [(ROOT, "gdbext/init.py"), (ROOT / "gdbext", "init.py"), ("/", str(INIT))])
def test_from_any_folder_and_twice(turn_gdb, folder, path):
    answer = gdb_batch(turn_gdb, f"source {path}", "cd /", LOADED, "help llm-ranks", source=path, cwd=folder)
    assert answer.err == ""
    printed = answer.out.splitlines()
    assert f"from {ROOT}/gdbext/__init__.py" in printed
    assert "List the attached ranks, or those that could be attached." in printed


def test_loading_prints_nothing_and_changes_no_setting(any_gdb):
    def values(answer):
        lines = [re.sub(r"^convenience: *", "", line) for line in answer.out.splitlines()]
        return [line for line in lines if "llm" not in line and not line.startswith("history")]

    plain, loaded = gdb_batch(any_gdb, "info set", source=None), gdb_batch(any_gdb, "info set")
    assert len(values(plain)) > 200
    assert values(loaded) == values(plain)
    silent = gdb_batch(any_gdb)
    assert silent.text == ""


def test_a_person_is_told_once_what_comes_next(any_gdb):
    with Terminal(any_gdb, f"source {INIT}", f"source {INIT}", "echo end\\n") as terminal:
        said = terminal.expect("end\r\n")
        assert said.count("gdbext ") == 1
        assert f"gdbext {gdbext.__version__}: llm-attach-all, then llm-diagnose; all commands: apropos llm-\r\n" in said
        terminal.expect(re.escape(Terminal.PROMPT))
        terminal.command("set pagination off")
        listed = terminal.command("apropos llm-")
    assert all(f"{name} -- " in listed for name in ("llm-attach-all", "llm-diagnose"))


def test_names_without_the_library_mean_the_same(any_gdb):
    answer = gdb_batch(
        any_gdb, "llm-diagnose -h", "llm-nccl-diagnose -h", "llm-comms -h", "llm-nccl-comms -h",
        "complete llm-diagnose --exp", "complete llm-comms --sc",
    )  # fmt: skip
    *helped, completed = answer.out.split("usage: ")[1:]
    assert len({text.split("Say who")[0] for text in helped[:2]}) == 1 and "--explain-verdict" in helped[0]
    assert "llm-diagnose --explain-verdict\nllm-comms --scan\n" in completed and answer.err == ""


def test_a_command_of_the_users_own_by_that_name_stays(turn_gdb):
    answer = gdb_batch(turn_gdb, "alias llm-diagnose = echo", f"source {INIT}", "llm-diagnose mine", source=None)
    assert (answer.out, answer.err) == ("mine", "")


def test_from_a_second_place_is_refused_in_one_line(turn_gdb, tmp_path):
    shutil.copytree(ROOT / "gdbext", tmp_path / "gdbext", ignore=shutil.ignore_patterns("__pycache__"))
    answer = gdb_batch(turn_gdb, f"source {tmp_path}/gdbext/init.py", "help llm-ranks")
    assert answer.err.count("\n") == 1
    assert f"already loaded from {ROOT}/gdbext" in answer.err
    assert "List the attached ranks" in answer.out


@pytest.fixture
def copied(tmp_path):
    """The package alone in a folder, like a pip install of it without its dependencies."""
    shutil.copytree(ROOT / "gdbext", tmp_path / "site" / "gdbext", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "site"


def dependencies_into(folder):
    """The three packages as they are installed here."""
    import elftools
    import pygments
    import tabulate

    folder.mkdir(parents=True, exist_ok=True)
    for module in (elftools, pygments):
        shutil.copytree(os.path.dirname(module.__file__), folder / module.__name__)
    if os.path.basename(tabulate.__file__) == "__init__.py":
        shutil.copytree(os.path.dirname(tabulate.__file__), folder / "tabulate")
    else:
        shutil.copy(tabulate.__file__, folder)


def bare_environment(tmp_path, **more):
    """No home, no python3 that has the packages, and gdb's own Python without user packages."""
    (tmp_path / "bin").mkdir(exist_ok=True)
    return {"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path / "home"), "LC_ALL": "C.UTF-8", **more}


def isolated(gdb, copied, environment, *commands):
    """The newest gdb runs on a Python that has the packages itself: hide them, as on another machine."""
    hide = "python import sys; sys.path[:] = [place for place in sys.path if '-packages' not in place]"
    return gdb_batch(
        gdb, "set width 0", hide, f"source {copied}/gdbext/init.py", SHOW, *commands, "show llm frames",
        source=None, env=environment,
    )  # fmt: skip


@pytest.mark.parametrize("place", ["beside", "venv", "site", "user", "asked"])
def test_dependencies_are_found(turn_gdb, copied, tmp_path, place):
    environment = bare_environment(tmp_path)
    folders = {
        "beside": copied,
        "venv": copied / ".venv/lib/python3.11/site-packages",
        "site": tmp_path / "elsewhere",
        "user": tmp_path / "home/.local/lib/python3.9/site-packages",
        "asked": tmp_path / "asked",
    }
    dependencies_into(folders[place])
    if place == "site":
        environment["GDBEXT_SITE"] = str(folders["site"])
    if place == "asked":
        python = tmp_path / "bin" / "python3"
        code = f'import sys; sys.path.insert(0, "{folders["asked"]}"); exec(sys.argv[1])'
        python.write_text(f"#!/bin/sh\nexec {sys.executable} -S -c '{code}' \"$2\"\n")
        python.chmod(0o755)
    answer = isolated(turn_gdb, copied, environment)
    assert "output None" in answer.out, answer.text


def test_without_dependencies_one_line_says_what_to_do(turn_gdb, copied, tmp_path):
    with Target("plain") as target:
        answer = isolated(turn_gdb, copied, bare_environment(tmp_path), f"llm-ranks {target.pid}")
    assert "llm frames: 256" in answer.out  # what needs none of them works
    assert "Traceback" not in answer.text
    (line,) = [line for line in answer.err.splitlines() if "pip install" in line]
    assert "No module named" in line


def test_nothing_else_is_importable_from_those_folders(turn_gdb, copied, tmp_path):
    dependencies_into(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "json.py").write_text("raise SystemExit('shadowed')")
    (tmp_path / "elsewhere" / "stranger.py").write_text("")
    environment = bare_environment(tmp_path, GDBEXT_SITE=str(tmp_path / "elsewhere"))
    answer = gdb_batch(
        turn_gdb, "python import json, tabulate; print('json fine')", "python import stranger",
        source=f"{copied}/gdbext/init.py", env=environment,
    )  # fmt: skip
    assert "json fine" in answer.out
    assert "No module named 'stranger'" in answer.err


@pytest.mark.parametrize(
    "pretend, words",
    [
        ("gdb.VERSION = '9.2'", "gdb 10.1 or newer; this is 9.2"),
        ("gdb.convenience_variable = lambda name: 0", "it has a None of its own beside Python's"),
        ("import sys; sys.version_info = (3, 6, 8)", "Python 3.8 or newer; this one has 3.6"),
    ],
)
def test_what_is_too_old_is_told_in_one_line(turn_gdb, pretend, words):
    answer = gdb_batch(turn_gdb, f"python {pretend}", f"source {INIT}", source=None)
    assert answer.out == ""
    assert answer.err.count("\n") == 1
    assert words in answer.err


def test_the_file_itself_can_be_read_by_an_old_python():
    """Nothing that Python 3.5 or 2.7 would call a syntax error before it comes to the message."""
    newer = (ast.JoinedStr, ast.AnnAssign, ast.NamedExpr, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(INIT.read_text())):
        assert not isinstance(node, newer), ast.dump(node)
        if isinstance(node, ast.FunctionDef):
            assert node.returns is None and not node.args.kwonlyargs and not node.args.posonlyargs
            assert all(argument.annotation is None for argument in node.args.args)


def test_with_too_few_files_one_line_says_so(turn_gdb):
    """At some limit gdb itself still works, and our modules cannot be opened any more."""
    said = []
    for most in range(10, 17):
        limit = functools.partial(resource.setrlimit, resource.RLIMIT_NOFILE, (most, most))
        answer = gdb_batch(turn_gdb, preexec_fn=limit)
        if "Python not initialized" in answer.err or "warning: " in answer.err:
            continue  # too few for gdb itself, or for it to open our file
        assert "Traceback" not in answer.err
        assert "Python Exception" not in answer.err
        said += [line for line in answer.err.splitlines() if line.startswith("gdbext could not be loaded")]
    assert said and all("Too many open files" in line for line in said)
