"""The runner of a batch gdb trusts only the result record: every way to get none is one clear line."""

import os
import stat
import subprocess
import time

import pytest

from gdbext.frontend.gdbrun import begin, find_gdb, run_batch, run_batches
from gdbext.model.errors import GdbextError


@pytest.fixture
def fake(tmp_path):
    """Makes an executable that stands in for gdb."""

    def make(script):
        path = tmp_path / "gdb"
        path.write_text("#!/bin/sh\n" + script)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    return make


def run(gdb, tmp_path, deadline=20, **request):
    return run_batch(gdb, {"schema": 1, **request}, tmp_path, deadline)


def test_the_result_is_read_and_progress_is_passed_on(fake, tmp_path):
    gdb = fake(f"echo 'progress: half'; echo noise; echo '{{\"ranks\": [7]}}' > {tmp_path}/result.json")
    lines = []
    assert run_batch(gdb, {"schema": 1}, tmp_path, 20, lines.append) == {"ranks": [7]}
    assert lines == ["half"]


def test_exit_status_zero_without_a_result_is_a_failure(fake, tmp_path):
    with pytest.raises(GdbextError, match="gave no result: boom"):
        run(fake("echo boom; exit 0"), tmp_path)


def test_a_result_that_is_no_json_is_none(fake, tmp_path):
    with pytest.raises(GdbextError, match="gave no result"):
        run(fake(f"echo '{{' > {tmp_path}/result.json"), tmp_path)


def test_a_gdb_without_python_says_so(fake, tmp_path):
    message = 'Scripting in the "Python" language is not supported in this copy of GDB.'
    with pytest.raises(GdbextError, match="was built without Python; use another gdb"):
        run(fake(f"echo '{message}' >&2; exit 1"), tmp_path)


def test_the_deadline_kills_gdb_and_its_children(fake, tmp_path):
    gdb = fake(f'[ -n "$OTHER" ] && read line && exit 7; sleep 300 & echo $! > {tmp_path}/child; wait')
    # Somebody else's gdb: the same program, of our user, in our session and process group.
    with subprocess.Popen([gdb], stdin=subprocess.PIPE, env={**os.environ, "OTHER": "1"}) as other:
        begin = time.monotonic()
        with pytest.raises(GdbextError, match=r"did not finish in 1 s; give it more time"):
            run(gdb, tmp_path, deadline=1)
        assert time.monotonic() - begin < 60
        other.communicate(b"on\n")
        assert other.returncode == 7, "a gdb that is not ours is let alone"
    child = int((tmp_path / "child").read_text())
    with pytest.raises(ProcessLookupError):
        while True:  # the killed child may still be a zombie for a moment
            os.kill(child, 0)
            with open(f"/proc/{child}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":
                    raise ProcessLookupError


def test_a_killed_gdb_is_a_line(fake, tmp_path):
    with pytest.raises(
        GdbextError, match=r"gave no result: it was ended by signal 9 \(out of memory\?\); every process runs on"
    ):
        run(fake("kill -9 $$"), tmp_path)


def test_endless_output_does_not_fill_memory(fake, tmp_path):
    with pytest.raises(GdbextError, match="gave no result"):
        run(fake("yes 'a line of output' | head -c 20000000"), tmp_path)


def test_no_gdb_at_all(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(GdbextError, match=r"no gdb found .*install it"):
        find_gdb()


def test_the_gdb_asked_for_comes_first(fake, monkeypatch):
    gdb = fake("")
    monkeypatch.setenv("GDBEXT_GDB", gdb)
    assert find_gdb() == gdb
    with pytest.raises(GdbextError, match="/no/such/gdb"):
        find_gdb("/no/such/gdb")


SIDE_BY_SIDE = """
for word; do case $word in *request*) name=$word;; esac; done
number=$(echo "$name" | sed -n "s/.*request\\.\\([0-9]*\\)\\.json.*/\\1/p")
folder=$(echo "$name" | sed "s/.*'\\(.*\\)\\/request.*/\\1/")
case $number in
"") echo "progress: first"; echo '{"ranks": [0]}' > $folder/result.json ;;
1) echo "boom" ;;
2) echo "progress: third"; sleep 300 ;;
3) exec 1>&- 2>&-; echo '{"ranks": [3]}' > $folder/result.3.json ;;
esac
"""


def test_several_side_by_side_and_the_failure_of_one_is_its_own(fake, tmp_path):
    said = []
    begin = time.monotonic()
    results = run_batches(fake(SIDE_BY_SIDE), [{}] * 4, tmp_path, 4, lambda number, line: said.append((number, line)))
    assert time.monotonic() - begin < 60
    assert sorted(said) == [(0, "first"), (2, "third")]
    assert (results[0], results[3]) == ({"ranks": [0]}, {"ranks": [3]})
    assert "gave no result: boom" in str(results[1])
    assert "did not finish in 4 s" in str(results[2])


AWAITED = """
for word; do case $word in *awaited*) name=$word;; esac; done
folder=$(echo "$name" | sed "s/.*'\\(.*\\)\\/request.*/\\1/")
number=$(echo "$name" | sed -n "s/.*request\\.\\([0-9]*\\)\\.json.*/\\1/p")
[ -n "$name" ] || { echo '{"late": 1}' > $(echo "$*" | sed "s/.*'\\(.*\\)\\/request.*/\\1/")/result.2.json; exit; }
[ "$number" = 1 ] && exit
read line || exit
echo "progress: goes"
[ -e "$folder/request.json" ] && echo '{"ranks": [0]}' > $folder/result.json
"""


def test_gdbs_that_were_begun_wait_for_their_requests(fake, tmp_path):
    said, gdb = [], fake(AWAITED)
    with begin(gdb, 2, tmp_path) as begun:
        begun[1].wait(time.monotonic() + 60)  # it ends at once: that is its own failure
        results = run_batches(
            gdb, [{}] * 3, tmp_path, 60, lambda number, line: said.append((number, line)), begun=begun
        )
    assert said == [(0, "goes")]
    assert (results[0], results[2]) == ({"ranks": [0]}, {"late": 1})
    assert "printed nothing" in str(results[1])


def test_gdbs_that_were_begun_for_nothing_are_gone(fake, tmp_path):
    with pytest.raises(GdbextError), begin(fake(AWAITED + "exec sleep 300"), 1, tmp_path) as begun:
        process = begun[0]._process
        raise GdbextError("no room")
    assert process.returncode is not None
