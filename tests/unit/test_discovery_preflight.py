"""Why an attach would fail, and the remedy for this very case."""

import os
import subprocess
import sys

import pytest
from discovery_tree import Tree

from gdbext.discovery.preflight_checks.attach_permission import attach_problems, check
from gdbext.discovery.proc.procfs import ProcFS

US = 50
SYS_PTRACE = {"CapPrm": f"{1 << 19:016x}", "CapEff": f"{1 << 19:016x}"}
ROOT = {"Uid": "0\t0\t0\t0"}


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A tree in which we are process 50, a child of shell 40, user 1000, without capabilities."""
    made = Tree(tmp_path)
    made.add(40, 1, "/bin/bash")
    os.symlink(str(US), tmp_path / "self")
    monkeypatch.setattr(ProcFS, "owner_of_files", lambda self, pid: 1000)
    return made


def us(tree, **details):
    tree.add(US, 40, "gdb", **details)


def problems(tree, pid=60):
    answer = check(ProcFS(str(tree.folder)), pid)
    assert answer.pid == pid
    assert answer.ok == (not any(problem.blocking for problem in answer.problems))
    return [(problem.text, problem.remedy, problem.blocking) for problem in answer.problems]


def only(tree, pid=60):
    (problem,) = problems(tree, pid)
    return problem


def yama(tree, scope):
    (tree.folder / "sys/kernel/yama").mkdir()
    (tree.folder / "sys/kernel/yama/ptrace_scope").write_text(f"{scope}\n")


def test_same_user_is_fine(tree):
    us(tree)
    tree.add(60, 1, "python train.py")
    assert problems(tree) == []


def test_dead(tree):
    us(tree)
    text, _, blocking = only(tree, 999)
    assert text == "no process 999 is running"
    assert blocking


def test_kernel_thread(tree):
    us(tree)
    tree.add(60, 2, [""], kernel=True, comm="kworker/0:1")
    assert "kernel thread" in only(tree)[0]


def test_zombie(tree):
    us(tree)
    tree.add(60, 40, [""], state="Z", comm="train")
    assert "zombie" in only(tree)[0]
    assert only(tree)[2]


def test_thread_of_a_process(tree):
    us(tree)
    tree.add(60, 1, "x", status={"Tgid": 55})
    assert only(tree)[:2] == ("60 is a thread of process 55", "use 55")


def test_ourselves(tree):
    us(tree)
    assert "this debugger itself" in only(tree, US)[0]


def test_our_own_shell_is_a_warning(tree):
    us(tree)
    text, remedy, blocking = only(tree, 40)
    assert "has started this debugger" in text
    assert "another terminal" in remedy
    assert not blocking


def test_another_tracer_is_named(tree):
    us(tree)
    tree.add(60, 1, "x", status={"TracerPid": 70}, state="t")
    tree.add(70, 1, "strace -p 60 --token SECRET")
    text, remedy, blocking = only(tree)
    assert text == "60 is traced by process 70 (strace -p 60 --token ***)"
    assert "kill 70" in remedy
    assert blocking


def test_attached_to_us_already(tree):
    us(tree)
    tree.add(60, 1, "x", status={"TracerPid": US}, state="t")
    assert "already" in only(tree)[0]


def test_other_user(tree):
    us(tree)
    tree.add(60, 1, "x", status={"Uid": "1001\t1001\t1001\t1001"})
    text, remedy, blocking = only(tree)
    assert text == "60 runs as user 1001, we are user 1000"
    assert "sudo -u '#1001'" in remedy
    assert blocking


def test_other_user_does_not_matter_with_the_capability(tree):
    us(tree, status=SYS_PTRACE)
    tree.add(60, 1, "x", status={"Uid": "1001\t1001\t1001\t1001"})
    assert problems(tree) == []


def test_capability_ends_at_the_user_namespace(tree):
    us(tree, status={**SYS_PTRACE, **ROOT}, namespaces={"user": "user:[2]"})
    tree.add(60, 1, "x", status={"Uid": "1001\t1001\t1001\t1001"}, namespaces={"user": "user:[1]"})
    text, remedy, _ = only(tree)
    assert "another user namespace" in text
    assert "nsenter --target 60 -U" in remedy


@pytest.mark.parametrize(
    "mark, remedy",
    [
        ("0::/kubepods/besteffort/pod1", "kubectl debug"),
        ("0::/docker/abc", "docker exec --privileged"),
        ("0::/libpod-abc", "podman exec --privileged"),
    ],
)
def test_root_of_a_container_without_the_capability(tree, mark, remedy):
    us(tree, status=ROOT)
    (tree.folder / str(US) / "cgroup").write_text(mark + "\n")
    tree.add(60, 1, "x")
    text, advice, blocking = only(tree)
    assert text == "60 runs as user 1000, and this root has no CAP_SYS_PTRACE"
    assert remedy in advice
    assert "SYS_PTRACE" in advice
    assert blocking


def test_target_with_more_capabilities(tree):
    us(tree)
    tree.add(60, 1, "x", status={"CapPrm": "0000000000003000"})
    assert only(tree)[0] == "60 has capabilities that we lack (0x3000)"


def test_not_dumpable(tree, monkeypatch):
    us(tree)
    tree.add(60, 1, "x")
    monkeypatch.setattr(ProcFS, "owner_of_files", lambda self, pid: 0)
    assert "not dumpable" in only(tree)[0]


def test_yama_lets_only_parents_attach(tree):
    us(tree)
    yama(tree, 1)
    tree.add(60, 1, "x")
    tree.add(61, US, "x")
    text, remedy, blocking = only(tree)
    assert text.startswith("kernel.yama.ptrace_scope is 1")
    assert "sudo sysctl kernel.yama.ptrace_scope=0" in remedy
    assert blocking
    assert problems(tree, 61) == []


def test_yama_in_a_container_is_a_matter_of_the_host(tree):
    us(tree)
    yama(tree, 2)
    (tree.folder / str(US) / "mountinfo").write_text("1 0 0:1 / / rw - overlay /var/lib/docker/overlay2/x\n")
    tree.add(60, 1, "x")
    assert only(tree)[1].startswith("on the host: sudo sysctl")


@pytest.mark.parametrize(
    "mount",
    [
        "42 27 8:1 /var/lib/containers/storage/overlay /var/lib/containers/storage/overlay rw - ext4 /dev/vda rw",
        "46 42 0:40 / /var/lib/containers/storage/overlay/85fc/merged rw - overlay overlay rw,lowerdir="
        "/var/lib/containers/storage/overlay/l/IUHY",
        "47 1 0:41 / /var/lib/docker/overlay2/1f/merged rw - overlay overlay rw,lowerdir=/var/lib/docker/overlay2/l/X",
        "48 1 0:4 net:[4026532291] /run/docker/netns/default rw - nsfs nsfs rw",
        "49 1 0:42 / /var/lib/kubelet/pods/8f/volumes/kubernetes.io~projected/kube-api-access rw - tmpfs tmpfs rw",
        "50 1 0:43 / /run/containerd/io.containerd.runtime.v2.task/k8s.io/9/rootfs rw - overlay overlay rw",
    ],
)
def test_a_host_that_runs_containers_is_none(tree, mount):
    us(tree)
    yama(tree, 2)
    (tree.folder / str(US) / "mountinfo").write_text(f"1 0 8:1 / / rw - ext4 /dev/vda rw\n{mount}\n")
    tree.add(60, 1, "x")
    assert only(tree)[1].startswith("run with sudo, or: ")


def test_a_pod_is_known_by_its_mounts(tree):
    us(tree)
    tree.add(60, 1, "x", status={"CapPrm": f"{1:016x}"})
    lines = (
        "1 0 0:40 / / rw - overlay overlay rw,lowerdir=/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/5/fs",
        "2 1 0:41 / /run/secrets/kubernetes.io/serviceaccount ro - tmpfs tmpfs rw",
    )
    (tree.folder / str(US) / "mountinfo").write_text("\n".join(lines))
    assert "kubectl debug" in only(tree)[1] and "-- gdbext diagnose" in only(tree)[1]


@pytest.mark.parametrize("scope, found", [(1, 0), (2, 0), (3, 1)])
def test_yama_and_the_capability(tree, scope, found):
    us(tree, status=SYS_PTRACE)
    yama(tree, scope)
    tree.add(60, 1, "x")
    assert len(problems(tree)) == found


def test_the_kernels_own_answer_decides(tree, monkeypatch):
    us(tree)
    yama(tree, 1)
    tree.add(60, 1, "x")
    monkeypatch.setattr(ProcFS, "may_attach", lambda self, pid: True)
    assert problems(tree) == []  # prctl(PR_SET_PTRACER) cannot be seen in /proc


def test_refusal_that_nothing_explains(tree, monkeypatch):
    us(tree)
    tree.add(60, 1, "x")
    monkeypatch.setattr(ProcFS, "may_attach", lambda self, pid: False)
    text, remedy, blocking = only(tree)
    assert "the kernel does not permit tracing" in text
    assert "SELinux" in remedy
    assert blocking


def test_uninterruptible_and_stopped_are_warnings(tree):
    us(tree)
    tree.add(60, 1, "x", state="D")
    (tree.folder / "60/wchan").write_text("nfs_wait")
    tree.add(61, 1, "x", state="T")
    text, remedy, blocking = only(tree)
    assert "uninterruptibly in nfs_wait" in text
    assert "/proc/60/stack" in remedy
    assert not blocking
    assert only(tree, 61)[1:] == ("kill -CONT 61 resumes it", False)


def test_target_in_a_container(tree):
    us(tree)
    tree.add(60, 1, "x", status={"NSpid": "60\t7"})
    text, remedy, blocking = only(tree)
    assert "as pid 7 there" in text
    assert "/proc/60/root" in text and not remedy, "its files are read from there: nothing is to be done"
    assert not blocking


def test_other_mount_namespace(tree):
    us(tree, namespaces={"mnt": "mnt:[1]"})
    tree.add(60, 1, "x", namespaces={"mnt": "mnt:[2]"})
    assert "sees other files" in only(tree)[0]


def test_ranks_of_one_container_are_told_of_once(tree):
    """Seen from the host their pids inside differ, and mean nothing for the others."""
    us(tree)
    for pid in (60, 61):
        tree.add(pid, 1, "x", status={"NSpid": f"{pid}\t{pid - 53}"})
    ((problem, pids),) = attach_problems(ProcFS(str(tree.folder)), (60, 61))
    assert (problem.text, pids) == ("PID runs in a container: gdbext reads its files through /proc/PID/root", (60, 61))


def test_seccomp_filter(tree):
    us(tree, status={"Seccomp": "2"})
    tree.add(60, 1, "x")
    assert not only(tree)[2]


@pytest.mark.parametrize("details", [{}, SYS_PTRACE])
def test_a_filter_that_refuses_ptrace_is_no_maybe(tree, monkeypatch, details):
    """No capability helps against it (Podman, --cap-add SYS_PTRACE and a profile without ptrace)."""
    us(tree, status={"Seccomp": "2", **details})
    (tree.folder / str(US) / "cgroup").write_text("0::/libpod-abc\n")
    tree.add(60, 1, "x")
    monkeypatch.setattr(ProcFS, "ptrace_filtered", lambda self: True)
    text, remedy, blocking = only(tree)
    assert "seccomp filter blocks ptrace(2)" in text and blocking
    assert "--security-opt seccomp=unconfined" in remedy and "--no-stop" in remedy
    assert check(ProcFS(str(tree.folder)), 60).barred, "what /proc shows is told all the same"


def test_a_filter_that_lets_us_trace_is_no_matter(tree, monkeypatch):
    """As Docker's and Podman's own: no word of it."""
    us(tree, status={"Seccomp": "2"})
    tree.add(60, 1, "x")
    monkeypatch.setattr(ProcFS, "ptrace_filtered", lambda self: False)
    assert problems(tree) == []


def test_another_user_in_a_container_has_one_way_in(tree):
    """No word of the capabilities of that user: who becomes it has them too."""
    us(tree)
    (tree.folder / str(US) / "cgroup").write_text("0::/libpod-abc\n")
    tree.add(60, 1, "x", status={**ROOT, "CapPrm": "00000000a80425fb"})
    assert only(tree) == (
        "60 runs as user 0, we are user 1000",
        "enter as that user: podman exec --user 0 -it CONTAINER bash",
        True,
    )


def test_podman_with_a_storage_of_its_own(tree):
    """cgroups of version 2 in a namespace: no path tells, only the file that Podman puts in."""
    us(tree, status=ROOT)
    (tree.folder / str(US) / "mountinfo").write_text(
        "81 73 254:0 /userdata/.containerenv /run/.containerenv rw - ext4 x rw\n"
    )
    tree.add(60, 1, "x")
    assert "podman exec --user 1000" in only(tree)[1]


def test_without_self_nothing_breaks(tmp_path):
    tree = Tree(tmp_path)
    tree.add(60, 1, "x")
    assert check(ProcFS(str(tmp_path)), 60).pid == 60


UNDUMPABLE = """
import ctypes, os, sys
if os.getuid() == 0:
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
ctypes.CDLL(None).prctl(4, 0)
print(flush=True)
sys.stdin.read()
"""


@pytest.mark.process
def test_a_real_process_that_is_not_dumpable():
    """Its folder is its user's all the same; only what is in it is root's."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", UNDUMPABLE], **pipes) as process:
        assert process.stdout.readline() == b"\n"
        user = os.getuid() or 65534
        assert (ProcFS().owner(process.pid), ProcFS().owner_of_files(process.pid)) == (user, 0)
        process.stdin.close()


OTHER_USER = """
import os
from gdbext.discovery.preflight_checks.attach_permission import check, attach_problems
from gdbext.discovery.proc.procfs import ProcFS
if os.getuid() == 0:
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
answer = check(ProcFS(), 1)
print(answer.ok, answer.problems[0].text)
"""


@pytest.mark.process
def test_process_of_root_is_out_of_reach_for_a_user():
    done = subprocess.run([sys.executable, "-c", OTHER_USER], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("False 1 runs as user 0, we are user ")


@pytest.mark.process
def test_own_child_is_within_reach():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        try:
            assert check(ProcFS(), child.pid).ok
        finally:
            child.communicate(b"\n")
    assert not check(ProcFS(), child.pid).ok


def test_capabilities_end_at_our_user_namespace(tree, tmp_path, monkeypatch):
    monkeypatch.setattr(ProcFS, "may_attach", lambda self, pid: False)
    us(tree, status={**SYS_PTRACE, **ROOT})
    tree.add(60, 1, "python train.py", status=ROOT)
    (tmp_path / str(US) / "uid_map").write_text("         0          0 4294967295\n")
    assert "the kernel does not permit tracing" in only(tree)[0]
    (tmp_path / str(US) / "uid_map").write_text("         0       1000          1\n")
    text, remedy, blocking = only(tree)
    assert "in another user namespace" in text and "on the host with sudo" in remedy and blocking
