"""Slurm on hosts of `ssh_hosts`: Debian's slurmd on each, slurmctld and the caller's commands on the first.

A stand-in sanitizer started by srun: a report of each rank, also when it is stopped. A gloo job of one rank a host,
started by srun, one rank late: `gdbext diagnose --hosts slurm:JOBID` must name it.
`scripts/try-hosts slurm` installs what it needs.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import List

from tests import sanitizer_mimic, ssh_hosts
from tests.polling import DEADLINE, wait_until

ROOT = Path(__file__).parents[1]
COUNT, LATE = 8, 4
_CONFIG = """ClusterName=tests
SlurmctldHost=h1
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=/run/munge/munge.socket.2
StateSaveLocation={0}/state
SlurmdSpoolDir=/run/slurmd
SlurmdPidFile=/run/slurmd.pid
SlurmctldPidFile=/run/slurmctld.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
NodeName={1} CPUs=1 RealMemory=100 State=UNKNOWN
PartitionName=all Nodes={1} Default=YES MaxTime=INFINITE State=UP
"""


class Slurm:
    """Runs while its hosts do: their end is its end."""

    def __init__(self, hosts: ssh_hosts.Hosts) -> None:
        self.hosts = hosts
        self._key, self._config = hosts.folder / "munge.key", hosts.folder / "slurm.conf"
        self._key.write_bytes(os.urandom(1024))
        self._key.chmod(0o400)
        (hosts.folder / "state").mkdir()
        self._config.write_text(_CONFIG.format(hosts.folder, f"h[1-{len(hosts.names)}]"))
        for name in hosts.names:
            self._start(name, "mkdir -p /run/munge /run/slurmd && chown -R root /run/munge && chmod 755 /run/munge")
            self._start(name, f"munged --force --key-file={self._key} --pid-file=/run/munge/munged.pid"
                        " --log-file=/run/munge/munged.log --seed-file=/run/munge/munged.seed")  # fmt: skip
        self._start(hosts.names[0], f"slurmctld -f {self._config} -L {hosts.folder}/slurmctld.log")
        for name in hosts.names:
            self._start(name, f"slurmd -N {name} -f {self._config} -L {hosts.folder}/{name}.slurmd.log")
        wait_until(lambda: self.asked("sinfo", "-h", "-o", "%T").split() == ["idle"], "all nodes of Slurm are idle")

    def _start(self, name: str, line: str) -> None:
        done = subprocess.run([*self.hosts.on(name), "sh", "-c", line], capture_output=True, text=True)
        assert done.returncode == 0, (name, line, done.stderr)

    def words(self, *command: str) -> List[str]:
        """A command of Slurm on the first host."""
        return [*self.hosts.on(self.hosts.names[0]), "env", f"SLURM_CONF={self._config}", *command]

    def asked(self, *command: str) -> str:
        return subprocess.run(self.words(*command), capture_output=True, text=True).stdout


def sanitized(slurm: Slurm) -> None:
    """`gdbext run --sanitizer -- srun` with a stand-in, one rank a host: to its end, and stopped by Ctrl-C."""
    folder = slurm.hosts.folder
    environ = sanitizer_mimic.environment(sanitizer_mimic.installed(folder / "tools"), PYTHONPATH=str(ROOT))
    (folder / "never").mkdir()
    stays = f"mkfifo {folder}/never/$SLURM_PROCID; exec 3<>{folder}/never/$SLURM_PROCID; echo ready; read x <&3"
    for name, line, number in (("ends", "echo ready", 0), ("stopped", stays, signal.SIGINT)):
        words = [sys.executable, "-m", "gdbext", "run", "--sanitizer", "--dir", str(folder / name), "--"]
        words += ["srun", f"--nodes={COUNT}", f"--ntasks={COUNT}", "sh", "-c", line]
        job = subprocess.Popen(
            slurm.words(*words), env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert job.stdout is not None
        for _ in range(COUNT):
            assert job.stdout.readline() == "ready\n", job.communicate()
        if number:
            gdbext = Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()
            os.kill(int(gdbext[0]) if gdbext else job.pid, number)
        out, said = job.communicate(timeout=DEADLINE)
        logs = sorted(path.name for path in (folder / name).iterdir())
        ended = [path for path in (folder / name).iterdir() if "ERROR SUMMARY" in path.read_text()]
        if logs != [f"san.{rank}.log" for rank in range(COUNT)] or (not number and len(ended) < COUNT):
            sys.exit(f"NOT   run --sanitizer -- srun, {name}: {logs}, {len(ended)} with an end; {out} {said}")
        print(f"ok    run --sanitizer -- srun, {name}: {len(logs)} reports, {len(ended)} with their end;", end=" ")
        print(f"status {job.returncode}: {out.splitlines()[-1]}\n      {said.splitlines()[-1]}")


def main() -> None:
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(dir="/var/tmp", prefix="slurm-")))
        hosts = running.enter_context(ssh_hosts.Hosts(folder, COUNT))
        slurm = Slurm(hosts)
        print("slurm:", slurm.asked("sinfo", "--version").strip(), slurm.asked("sinfo", "-h").split())
        sanitized(slurm)
        rank = f"{sys.executable} -m tests.inferiors.host_rank tcp://h1:29500 $SLURM_PROCID {COUNT} {LATE} {folder}"
        command = f"cd {ROOT}; GLOO_SOCKET_IFNAME=eth0 RANK=$SLURM_PROCID WORLD_SIZE={COUNT} exec {rank}"
        job = subprocess.Popen(slurm.words("srun", f"--nodes={COUNT}", f"--ntasks={COUNT}", "sh", "-c", command))
        running.callback(job.wait)
        running.callback(job.terminate)
        wait_until(lambda: len(list(folder.glob("ready.*"))) == COUNT, "all ranks are there")
        number = slurm.asked("squeue", "-h", "-o", "%A").split()[0]
        print(f"job {number}: {COUNT} ranks, rank {LATE} late")
        words = slurm.words(sys.executable, "-m", "gdbext", "diagnose", "--json", "--hosts", f"slurm:{number}")
        done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT)
        answer = json.loads(done.stdout)
        verdict = answer.get("verdict", {})
        if done.returncode != 1 or verdict.get("cause") != "missing-rank" or verdict.get("culprits") != [LATE]:
            sys.exit(f"NOT   diagnose by srun --overlap: {answer.get('error') or verdict}")
        print(f"ok    diagnose by srun --overlap: rank {LATE} is named; {len(answer['hosts'])} hosts read")
        words = slurm.words(sys.executable, "-m", "gdbext", "ranks", "--json", "--hosts", f"slurm:{number}")
        jobs = json.loads(subprocess.run(words, capture_output=True, text=True, cwd=ROOT).stdout).get("jobs", [])
        ranks = [(one["rank"], one["host"]) for job in jobs for one in job["ranks"]]
        if ranks != list(enumerate(hosts.names)):
            sys.exit(f"NOT   ranks by srun --overlap: {jobs}")
        print("ok    ranks by srun --overlap: one a host, and none of our own processes")


if __name__ == "__main__":
    main()
