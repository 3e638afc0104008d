"""The runner of a batch gdb trusts only the result record: every way to get none is one clear line."""

import os
import stat
import subprocess
import time
from pathlib import Path

import pytest

from gdbext.collect import gdbs_side_by_side
from gdbext.collect.gdb_runs import process as gdb_process
from gdbext.collect.gdb_runs.batch_runs import INIT, PROGRAMS, begin, find_gdb, run_batch, run_batches
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


def run(gdb, tmp_path, deadline=300, **request):
    return run_batch(gdb, {"schema": 1, **request}, tmp_path, deadline)


@pytest.mark.process
def test_the_result_is_read_and_progress_is_passed_on(fake, tmp_path):
    gdb = fake(f"echo 'progress: half'; echo noise; echo '{{\"ranks\": [7]}}' > {tmp_path}/result.json")
    lines = []
    assert run_batch(gdb, {"schema": 1}, tmp_path, 20, lines.append) == {"ranks": [7]}
    assert lines == ["half"]


@pytest.mark.process
def test_exit_status_zero_without_a_result_is_a_failure(fake, tmp_path):
    with pytest.raises(GdbextError, match="gave no result: boom"):
        run(fake("echo boom; exit 0"), tmp_path)


@pytest.mark.process
@pytest.mark.parametrize(
    ("printed", "short"),
    [("echo 'Error while executing Python code.'", True),
     ("echo 'SystemError: error return without exception set'", True),
     ("echo 'Python Exception <class ValueError>: no'; echo 'Error while executing Python code.'", False)],
)  # fmt: skip
def test_a_gdb_that_lost_its_error_may_be_short_of_memory(fake, tmp_path, printed, short):
    with pytest.raises(GdbextError, match="gave no result") as raised:
        run(fake(printed), tmp_path)
    assert ("may be short of memory" in str(raised.value)) == short


@pytest.mark.process
def test_a_result_that_is_no_json_is_none(fake, tmp_path):
    with pytest.raises(GdbextError, match="gave no result"):
        run(fake(f"echo '{{' > {tmp_path}/result.json"), tmp_path)


@pytest.mark.process
def test_a_gdb_without_python_says_so(fake, tmp_path):
    message = 'Scripting in the "Python" language is not supported in this copy of GDB.'
    with pytest.raises(GdbextError, match="was built without Python; use another gdb"):
        run(fake(f"echo '{message}' >&2; exit 1"), tmp_path)


@pytest.mark.process
def test_the_deadline_kills_gdb_and_its_children(fake, tmp_path):
    gdb = fake(f'[ -n "$OTHER" ] && read line && exit 7; sleep 300 & echo $! > {tmp_path}/child; wait')
    # Somebody else's gdb: the same program, of our user, in our session and process group.
    with subprocess.Popen([gdb], stdin=subprocess.PIPE, env={**os.environ, "OTHER": "1"}) as other:
        begin = time.monotonic()
        with pytest.raises(GdbextError, match=r"did not finish in 4 s; give it more time"):
            run(gdb, tmp_path, deadline=4)  # time enough to say who its child is
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


@pytest.mark.process
def test_a_killed_gdb_is_a_line(fake, tmp_path):
    with pytest.raises(
        GdbextError, match=r"gave no result: it was ended by signal 9 \(out of memory\?\); every process keeps running"
    ):
        run(fake("kill -9 $$"), tmp_path)


@pytest.mark.process
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


@pytest.mark.process
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


@pytest.mark.process
def test_gdbs_that_were_begun_wait_for_their_requests(fake, tmp_path):
    said, gdb = [], fake(AWAITED)
    with begin(gdb, 2, tmp_path) as begun:
        begun[1].wait()  # it ends at once: that is its own failure
        results = run_batches(
            gdb, [{}] * 3, tmp_path, 60, lambda number, line: said.append((number, line)), begun=begun
        )
    assert said == [(0, "goes")]
    assert (results[0], results[2]) == ({"ranks": [0]}, {"late": 1})
    assert "printed nothing" in str(results[1])


@pytest.mark.process
def test_gdbs_that_were_begun_for_nothing_are_gone(fake, tmp_path):
    with pytest.raises(GdbextError), begin(fake(AWAITED + "exec sleep 300"), 1, tmp_path) as begun:
        process = begun[0]._process
        raise GdbextError("no room")
    assert process.returncode is not None


STEPS = """
folder=$(echo "$*" | sed "s/.*'\\(.*\\)\\/request.*/\\1/")
out=$folder/result.json
echo '{"complete": false, "problems": [], "frames": [], "ranks": []}' > $out
echo "progress: stacks of 1/3"
echo '{"at": 5}' >> $out; echo '{"frames": [1, 2], "rank": {"index": 5}}' >> $out; echo '{"at": 6}' >> $out
echo "progress: stacks of 2/3"
"""


@pytest.mark.process
def test_what_a_gdb_wrote_before_it_failed_counts(fake, tmp_path):
    record = run(fake(STEPS + "printf '{\"frames\": [3' >> $out; kill -11 $$"), tmp_path)
    assert (record["complete"], record["frames"], record["ranks"], record["at"]) == (False, [1, 2], [{"index": 5}], 6)
    assert "ended by signal 11" in str(record["failure"])
    whole = (
        """echo '{"frames": [3], "rank": {"index": 6}}' >> $out; echo '{"complete": true, "problems": ["x"]}' >> $out"""
    )
    record = run(fake(STEPS + whole), tmp_path)
    assert (record["complete"], record["frames"], record["problems"]) == (True, [1, 2, 3], ["x"])


@pytest.mark.process
def test_one_copy_does_not_get_the_time_of_all(fake, tmp_path):
    begun = time.monotonic()
    record = run(fake(STEPS + "exec sleep 300"), tmp_path, deadline=4, ranks=[5, 6, 7])
    assert time.monotonic() - begun < 60
    assert record["at"] == 6 and "did not finish in 3" in str(record["failure"]), "3/4 of it: one waits behind"


@pytest.mark.process
def test_a_gdb_without_memory_is_one_line(fake, tmp_path):
    unicode = "Error occurred in Python: (unicode error) \\\\N escapes not supported (can't load unicodedata module)"
    exhausted = "virtual memory exhausted: can't allocate 8 bytes."
    for said in (exhausted, "MemoryError", "Recursive internal problem.", unicode):
        with pytest.raises(GdbextError, match="ran out of memory; give it more") as caught:
            run(fake(f'echo "{said}"; printf "\\000\\n"; kill -6 $$'), tmp_path)
        assert "\n" not in str(caught.value)


@pytest.mark.process
def test_a_gdb_that_aborts_without_a_word_may_have_no_memory(fake, tmp_path):
    """18.1 with 39 MB of data."""
    with pytest.raises(
        GdbextError, match=r"signal 6 \(out of memory\?\); every process keeps running; try again; give it more"
    ):
        run(fake("kill -6 $$"), tmp_path)


@pytest.mark.process
def test_a_gdb_has_a_limit_of_memory_and_leaves_no_core(fake, tmp_path, monkeypatch):
    monkeypatch.setattr(gdbs_side_by_side, "memory_at_hand", lambda: 8 << 30)
    with pytest.raises(GdbextError) as caught:
        run(fake("while [ $(ulimit -d) = unlimited ]; do :; done; echo $(ulimit -d) $(ulimit -c)"), tmp_path)
    data, core = str(caught.value).partition("no result: ")[2].partition(";")[0].split()
    assert core == "0" and 4 << 20 <= int(data) <= (4 << 20) + (os.cpu_count() * 16 << 10), "half of it, and the stacks"


@pytest.mark.process
def test_nobody_waits_for_a_gdb_that_the_kernel_keeps(fake, tmp_path, monkeypatch):
    """As one that reads a file of a dead server."""
    monkeypatch.setattr(gdb_process, "_kill_group", lambda pid: None)
    monkeypatch.setattr(gdb_process, "_LEFT_BEHIND", 0.1)
    begun = time.monotonic()
    with pytest.raises(GdbextError, match="did not finish"):
        run(fake(f"echo $$ > {tmp_path}/pid; exec sleep 300"), tmp_path, deadline=4)
    assert time.monotonic() - begun < 60
    os.kill(int((tmp_path / "pid").read_text()), 9)
    gdb_process._left.pop().wait()


def test_the_modules_that_gdb_runs_are_there():
    for module in PROGRAMS.values():
        file = Path(INIT).parent.parent.joinpath(*module.split(".")).with_suffix(".py")
        assert "def main(" in file.read_text()
