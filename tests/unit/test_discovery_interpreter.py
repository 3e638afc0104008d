"""The interpreter that works for the debugger is found, in the order that is documented."""

from gdbext.discovery.proc.shell_python import interpreters


def executable(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def test_a_checkout_with_its_environment(tmp_path):
    beside = executable(tmp_path / "checkout/.venv/bin/python")
    on_path = executable(tmp_path / "bin/python3")
    environ = {"PATH": str(tmp_path / "bin")}
    package = str(tmp_path / "checkout/gdbext")
    assert interpreters(environ, package) == (beside, on_path)
    named = executable(tmp_path / "mine/python")
    assert interpreters({**environ, "GDBEXT_PYTHON": named}, package) == (named, beside, on_path)
    assert interpreters({**environ, "GDBEXT_PYTHON": "python3"}, package) == (on_path, beside)


def test_an_installed_package(tmp_path):
    versioned = executable(tmp_path / "env/bin/python3.12")
    plain = executable(tmp_path / "env/bin/python3")
    assert interpreters({"PATH": ""}, str(tmp_path / "env/lib/python3.12/site-packages/gdbext")) == (versioned, plain)


def test_what_cannot_be_executed_is_none(tmp_path):
    (tmp_path / "python").write_text("")
    assert interpreters({"PATH": "", "GDBEXT_PYTHON": str(tmp_path / "python")}, str(tmp_path / "gdbext")) == ()
    assert interpreters({"PATH": "", "GDBEXT_PYTHON": "/nonexistent"}, str(tmp_path / "gdbext")) == ()
