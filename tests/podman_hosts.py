"""Hosts that are containers: an image by debootstrap, a gloo job of one rank a container, one rank late.

`gdbext diagnose --hosts 'p[1-3]' --via 'podman exec -i %h'` must name it; the same through a stand-in for kubectl. Then
the pod of docs/deploy/sidecar.yaml by `podman kube play`, with and without its rights. `scripts/try-hosts podman`
installs what it needs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Dict, List, Sequence, Tuple

import yaml

from tests.polling import wait_until

ROOT = Path(__file__).parents[1]
PYTHON = Path(os.path.realpath(sys.executable)).parents[1]
COUNT, LATE = 3, 1
WITHOUT_GDB = "p3"
IMAGE, SERVICE = "localhost/gdbext-ranks", "localhost/gdbext"
_PACKAGES = "python3,gdb,libboost-regex1.74.0,python3-prometheus-client,python3-tomli,ca-certificates"
_MIRROR = "http://deb.debian.org/debian"
VIA = "podman exec -i %h"
_ENTRY = '#!/bin/sh\nexec python3 /usr/local/lib/gdbext.pyz "$@"\n'
# What `--hosts k8s:` asks, answered by podman: the running containers that have a label, and a shell in one.
_KUBECTL = """#!/bin/sh -e
case $1 in
get) for word; do case $word in --selector=*) label=${word#--selector=} ;; esac; done
    podman ps --filter "label=$label" --format 'pod/{{.Names}}' ;;
exec) shift 3; name=$1; shift 2; exec podman exec -i "$name" "$@" ;;
esac
"""


# podman raises limits, which a machine that is itself a container may not allow: they stay as they are.
_RUNC = """#!{0}
import json, os, sys
for word, following in zip(sys.argv, sys.argv[1:]):
    if word in ("--bundle", "--process"):
        path = os.path.join(following, "config.json") if word == "--bundle" else following
        with open(path) as stream:
            config = json.load(stream)
        config.get("process", config).pop("rlimits", None)
        with open(path, "w") as stream:
            json.dump(config, stream)
os.execvp("/usr/sbin/runc", sys.argv)
"""


def script(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def podman(*words: object, check: bool = True) -> str:
    done = subprocess.run(["podman", *map(str, words)], capture_output=True, text=True)
    assert not check or done.returncode == 0, (words, done.stderr)
    return done.stdout


def make_images(folder: Path) -> None:
    """Debian with Python and gdb; and the same with gdbext as one file, as docs/deploy/Containerfile makes it."""
    if subprocess.run(["podman", "image", "exists", IMAGE]).returncode != 0:
        print("image: debootstrap", flush=True)
        base = ["debootstrap", "--variant=minbase", f"--include={_PACKAGES}", "bookworm"]
        subprocess.run([*base, folder / "debian", _MIRROR], check=True, stdout=subprocess.DEVNULL)
        packed = subprocess.Popen(["tar", "-C", folder / "debian", "-c", "."], stdout=subprocess.PIPE)
        subprocess.run(["podman", "import", "-", IMAGE], stdin=packed.stdout, check=True, capture_output=True)
        assert packed.wait() == 0
    subprocess.run([ROOT / "scripts" / "package"], check=True, stdout=subprocess.DEVNULL)
    name = podman("create", IMAGE, "true").strip()
    script(folder / "gdbext", _ENTRY)
    podman("cp", ROOT / "build" / "gdbext.pyz", f"{name}:/usr/local/lib/gdbext.pyz")
    podman("cp", folder / "gdbext", f"{name}:/usr/local/bin/gdbext")
    podman("commit", "--change", 'ENTRYPOINT ["gdbext"]', name, SERVICE)
    podman("rm", name)


def rank_words(*words: object) -> List[str]:
    return [sys.executable, "-m", "tests.inferiors.host_rank", "tcp://127.0.0.1:29517", *map(str, words)]


def start_rank(rank: int, folder: Path) -> str:
    name = f"p{rank + 1}"
    words = ["--network=host", f"--hostname={name}", "--cap-add=SYS_PTRACE", "--label=app=ranks"]
    words += [f"--volume={path}:{path}:ro" for path in (ROOT, PYTHON)]
    words += [f"--volume={folder}:{folder}", f"--workdir={ROOT}", f"--env=RANK={rank}", f"--env=WORLD_SIZE={COUNT}"]
    if name == WITHOUT_GDB:
        words.append("--volume=/dev/null:/usr/bin/gdb")
    podman("run", "--detach", f"--name={name}", *words, IMAGE, *rank_words(rank, COUNT, LATE, folder))
    return name


def pod(folder: Path, name: str, with_rights: bool) -> Any:
    """The pod of the sidecar's manifest with a rank in place of vLLM, and our images. Without rights: neither the
    capability nor the common process namespace."""
    manifest = yaml.safe_load((ROOT / "docs" / "deploy" / "sidecar.yaml").read_text("utf-8"))
    spec = manifest["spec"]
    manifest["metadata"]["name"] = name
    binds = {f"bind{number}": path for number, path in enumerate((ROOT, PYTHON, folder))}
    spec["volumes"] += [{"name": key, "hostPath": {"path": str(path)}} for key, path in binds.items()]
    del spec[
        "initContainers"
    ]  # podman 4.3 removes one before it has ended; it knows no preStop that would use its file
    for one in spec["containers"]:
        one["image"] = IMAGE if one["name"] == "server" else SERVICE
    server, sidecar = spec["containers"]
    spec["volumes"].append({"name": "token", "hostPath": {"path": str(folder)}})
    sidecar["volumeMounts"].append({"name": "token", "mountPath": "/run/secrets/kubernetes.io/serviceaccount"})
    server.update(command=rank_words(0, 1, 0, folder), args=[], workingDir=str(ROOT))
    server["env"] += [{"name": "RANK", "value": "0"}, {"name": "WORLD_SIZE", "value": "1"}]
    server["volumeMounts"] += [{"name": key, "mountPath": str(path)} for key, path in binds.items()]
    del server["livenessProbe"]
    if not with_rights:
        del server["securityContext"], sidecar["securityContext"], spec["shareProcessNamespace"]
    return manifest


def gdbext(*words: str, **environ: str) -> Tuple[int, Dict[str, Any]]:
    argv = [sys.executable, "-m", "gdbext", *words, "--json"]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=ROOT, env={**os.environ, **environ})
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, json.loads(done.stdout)


def expect(what: str, holds: bool, seen: object) -> None:
    """One line; the first that does not hold ends it."""
    print(("ok    " if holds else "NOT   ") + what, flush=True)
    if not holds:
        sys.exit(f"{seen}"[:4000])


def names_the_late_rank(what: str, status: int, answer: Dict[str, Any]) -> None:
    verdict = answer.get("verdict", {})
    held = status == 1 and verdict.get("cause") == "missing-rank" and verdict.get("culprits") == [LATE]
    expect(f"{what}: rank {LATE} is named", held, answer.get("error") or verdict)


def of_containers(folder: Path, names: Sequence[str]) -> None:
    hosts, path = f"p[1-{COUNT}]", f"{folder}:{os.environ['PATH']}"
    status, answer = gdbext("diagnose", "--hosts", hosts, "--via", VIA)
    names_the_late_rank("diagnose by podman exec", status, answer)
    said = [one for one in answer["problems"] if one.startswith(WITHOUT_GDB)]
    expect(f"{WITHOUT_GDB} has no gdb, and its Python frames answer", len(said) == 1, answer["problems"])
    status, answer = gdbext("doctor", "--hosts", hosts, "--via", VIA)
    hindered = [one["text"][:16] for one in answer["points"] if one["state"] == "hindrance"]
    expect("doctor names the missing gdb", status == 1 and hindered == [f"{WITHOUT_GDB}: no gdb found"], answer)
    status, answer = gdbext("diagnose", "--hosts", "p1", "--via", "podman exec -i --user 2077 %h", "--once")
    expect("another user may not look, and is told who may", "CAP_SYS_PTRACE" in answer.get("error", ""), answer)
    script(folder / "kubectl", _KUBECTL)
    names_the_late_rank("diagnose by k8s:", *gdbext("diagnose", "--hosts", "k8s:serving/app=ranks", PATH=path))
    left = [podman("exec", name, "ls", "/tmp").split() for name in names]
    expect("nothing stays in /tmp", not any(left), left)


def of_a_pod(folder: Path, with_rights: bool) -> None:
    for ready in folder.glob("ready.*"):
        ready.unlink()
    name = f"server-{with_rights}".lower()
    manifest = folder / f"{name}.yaml"
    manifest.write_text(yaml.safe_dump(pod(folder, name, with_rights)))
    try:
        podman("kube", "play", manifest)
        wait_until(lambda: list(folder.glob("ready.*")), "the rank of the pod is there")
        sidecar = f"{name}-gdbext"
        if with_rights:
            answer = inside(sidecar, "diagnose", "--once")
            read = [(one["rank"], one["state"]) for one in answer.get("processes", ())]
            expect("sidecar: the rank of the other container is read", read == [(0, "ok")], answer)
            wait_until(lambda: '"event": "watching"' in podman("logs", sidecar), "the service follows it")
            expect("sidecar: its service follows the rank", True, None)
        texts = [
            one["text"] + (one["remedy"] or "") for one in inside(sidecar, "doctor")["points"] if one["name"] == "pod"
        ]
        said = " ".join(texts)
        lacks = ["SYS_PTRACE" in said and "kubectl patch" in said, "shareProcessNamespace" in said]
        expect(f"doctor in the pod says what is missing: {sum(lacks)} of 2", all(lacks) != with_rights, texts)
    finally:
        podman("pod", "rm", "--force", "--time=0", name)


def inside(container: str, *words: str) -> Dict[str, Any]:
    done = subprocess.run(["podman", "exec", container, "gdbext", *words, "--json"], capture_output=True, text=True)
    found: Dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> None:
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(dir="/var/tmp", prefix="podman-")))
        script(folder / "runc", _RUNC.format(sys.executable))
        config = '[engine]\nruntime = "runc"\n[engine.runtimes]\nrunc = ["{}/runc"]\n'
        (folder / "containers.conf").write_text(config.format(folder))
        os.environ["CONTAINERS_CONF"] = str(folder / "containers.conf")
        make_images(folder)
        names: List[str] = []
        running.callback(lambda: podman("rm", "--force", "--time=0", *names) if names else None)
        for rank in range(COUNT):
            names.append(start_rank(rank, folder))
        wait_until(lambda: len(list(folder.glob("ready.*"))) == COUNT, "all ranks are there")
        of_containers(folder, names)
        for with_rights in (True, False):
            of_a_pod(folder, with_rights)


if __name__ == "__main__":
    main()
