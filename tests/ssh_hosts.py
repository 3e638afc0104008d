"""Hosts on one machine: each a network, PID, mount and UTS namespace of its own, with an sshd and a /tmp of its own.

They stand on a bridge in a network namespace that nobody else sees; `Hosts.caller` leads into it. `hN` has the address
10.77.0.N, the accounts root and `ranks`, and a host key that the caller knows. No account has a home of this machine:
what a login runs there (pyenv, conda) would leave its locks behind when a host is killed.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Dict, List, Optional, Sequence

from tests.polling import wait_until

SSHD = shutil.which("sshd", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin") or "/usr/sbin/sshd"


def _missing() -> str:
    if os.getuid() != 0:
        return "namespaces and sshd need root"
    bridge = ["unshare", "--net", "--mount", "--pid", "--uts", "--fork", "--mount-proc"]
    done = subprocess.run([*bridge, "ip", "link", "add", "bridge", "type", "bridge"], capture_output=True, text=True)
    return f"the kernel allows no network of its own here: {done.stderr}" if done.returncode else ""


MISSING = _missing()
"""Why there can be no such hosts here."""
_SPACES = ("--net", "--mount", "--pid", "--uts", "--fork", "--kill-child", "--mount-proc")
_OUTSIDE = """set -e
mount --make-rprivate /
mount --bind "$1/names" /etc/hosts
mount --bind "$1/ssh_config" /etc/ssh/ssh_config
mount --bind "$1/passwd" /etc/passwd
ip link set lo up
ip link add bridge type bridge
ip address add 10.77.0.254/24 dev bridge
ip link set bridge up
echo ready
exec sleep infinity
"""
# It begins when its cable is there. A host has little room in /tmp and none of the machine's files there.
_INSIDE = """set -e
read -r line
hostname "$2"
ip link set lo up
ip address add "10.77.0.$3/24" dev eth0
ip link set eth0 up
mount -t tmpfs -o size=64m,mode=1777 none /tmp
mount -t tmpfs -o mode=755 none /run
mkdir -p /run/sshd
[ "$4" = gdb ] || for path in /usr/bin/gdb /usr/local/bin/gdb; do [ ! -e $path ] || mount --bind /dev/null $path; done
exec "$5" -D -e -f "$1/sshd_config"
"""
_ACCOUNTS = "root:x:0:0::/run:/bin/sh\nranks:x:2077:2077::/:/bin/sh\n"
_SSHD = """HostKey {0}/host_key
AuthorizedKeysFile {0}/user_key.pub
PermitRootLogin yes
StrictModes no
UsePAM no
PidFile none
MaxStartups 100
SetEnv "PATH={1}"
"""
_SSH = """Host *
    IdentityFile {0}/user_key
    UserKnownHostsFile {0}/known
    StrictHostKeyChecking yes
"""


class Hosts:
    """`folder`: one that is outside /tmp of the hosts' view, such as below /var/tmp. `without_gdb`: names of hosts."""

    def __init__(self, folder: Path, count: int, without_gdb: Sequence[str] = ()) -> None:
        self.folder, self.names = folder, [f"h{number}" for number in range(1, count + 1)]
        self._without_gdb = without_gdb
        self._first: Dict[str, subprocess.Popen[bytes]] = {}
        folder.chmod(0o755)
        for key in ("host_key", "user_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key], check=True)
        host_key = " ".join((folder / "host_key.pub").read_text().split()[:2])
        addresses = {name: f"10.77.0.{number}" for number, name in enumerate(self.names, 1)}
        (folder / "names").write_text("127.0.0.1 localhost\n" + "".join(f"{a} {n}\n" for n, a in addresses.items()))
        (folder / "known").write_text("".join(f"{n},{a} {host_key}\n" for n, a in addresses.items()))
        (folder / "passwd").write_text(_ACCOUNTS + Path("/etc/passwd").read_text())  # the first of a name counts
        (folder / "sshd_config").write_text(_SSHD.format(folder, os.environ["PATH"]))
        (folder / "ssh_config").write_text(_SSH.format(folder))
        words = ["unshare", "--net", "--mount", "--kill-child", "--fork", "sh", "-c", _OUTSIDE, "sh", str(folder)]
        self._outside = subprocess.Popen(words, stdout=subprocess.PIPE)
        assert self._outside.stdout is not None
        with self._outside.stdout as stream:
            assert stream.readline() == b"ready\n"
        self._place = _below(self._outside.pid)
        self.start(self.names)

    def __enter__(self) -> Hosts:
        return self

    def __exit__(self, *_: object) -> None:
        for process in (*self._first.values(), self._outside):
            process.kill()
            process.wait()

    @property
    def caller(self) -> List[str]:
        """Words before a command that calls the hosts."""
        return ["nsenter", f"--target={self._place}", "--net", "--mount", "--"]

    def on(self, name: str) -> List[str]:
        """Words before a command that runs on a host without sshd."""
        return ["nsenter", f"--target={self.first(name)}", "--net", "--mount", "--pid", "--uts", "--"]

    def first(self, name: str) -> int:
        """The pid of its first process, which is its sshd."""
        return _below(self._first[name].pid)

    def tmp(self, name: str) -> Path:
        """/tmp of a host, seen from here."""
        return Path(f"/proc/{self.first(name)}/root/tmp")

    def start(self, names: Sequence[str]) -> None:
        """Those hosts begin, or begin anew after `kill`."""
        cables = []
        for name in names:
            number = self.names.index(name) + 1
            gdb = "none" if name in self._without_gdb else "gdb"
            words = ["sh", "-c", _INSIDE, "sh", str(self.folder), name, str(number), gdb, str(SSHD)]
            with open(self.folder / f"{name}.log", "ab") as log:
                one = subprocess.Popen([*self.caller, "unshare", *_SPACES, *words], stdin=subprocess.PIPE, stderr=log)
            self._first[name] = one
            inside = _below(one.pid)
            cables += [
                f"ip link delete v{number} 2>/dev/null || true",  # of one that was killed: the kernel takes its time
                # one address of its card, also when it begins anew: the caller still knows it
                f"ip link add v{number} type veth peer name eth0 address 02:00:00:00:00:{number:02x} netns {inside}",
                f"ip link set v{number} master bridge up",
            ]
        subprocess.run([*self.caller, "sh", "-ec", "\n".join(cables)], check=True)
        for name in names:
            stream = self._first[name].stdin
            assert stream is not None
            stream.write(b"go\n")
            stream.close()
        for name in names:
            wait_until(lambda name=name: self._listens(name), f"sshd of {name} listens")  # type: ignore[misc]

    def kill(self, name: str) -> None:
        """It is gone with all its processes, as by a power cut."""
        os.kill(self.first(name), signal.SIGKILL)
        self._first[name].wait()

    def _listens(self, name: str) -> bool:
        if self._first[name].poll() is not None:
            raise RuntimeError(f"{name} ended: {(self.folder / f'{name}.log').read_text()[-500:]}")
        table = Path(f"/proc/{self.first(name)}/net/tcp").read_text()
        return any(line.split()[1].endswith(":0016") for line in table.splitlines()[1:])


def _below(pid: int) -> int:
    """The only child of `unshare --fork`."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    found: Optional[List[str]] = wait_until(lambda: children.read_text().split(), "the namespace has a process")
    assert found
    return int(found[0])
