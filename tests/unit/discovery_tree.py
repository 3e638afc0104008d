"""A /proc of our own: processes written as files, as the kernel would show them."""

import os

PYTHON = "/usr/bin/python3.11"
SITE = "/usr/lib/python3/site-packages"
TORCH = f"{SITE}/torch/lib/libtorch_cpu.so"
NCCL = f"{SITE}/nvidia/nccl/lib/libnccl.so.2"
OVERWRITTEN = b"\0" * 64
CAPABILITIES = {"CapPrm": "0" * 16, "CapEff": "0" * 16}


class Tree:
    """`add` writes one process; `proc` reads them all."""

    def __init__(self, folder):
        self.folder = folder
        self.groups = {}
        (folder / "sys/kernel").mkdir(parents=True)
        (folder / "sys/kernel/hostname").write_text("node7\n")
        self.add(1, 0, "/sbin/init")

    def add(self, pid, parent, arguments, **details):
        """`arguments` is a string (split at blanks) or a list. Details: environ (dict or bytes), exe, files,
        open_files, group, state, comm, kernel, status (dict), namespaces (dict), threads."""
        words = arguments.split(" ") if isinstance(arguments, str) else list(arguments)
        home = self.folder / str(pid)
        (home / "fd").mkdir(parents=True)
        (home / "ns").mkdir()
        (home / "cmdline").write_bytes(b"".join(word.encode() + b"\0" for word in words if word))
        self._write_stat(home, pid, parent, words, details)
        environ = details.get("environ", {})
        if isinstance(environ, dict):
            environ = b"".join(f"{name}={value}\0".encode() for name, value in environ.items())
        (home / "environ").write_bytes(environ)
        files = details.get("files", ())
        lines = [
            f"7f{index:06x}000-7f{index:06x}fff r-xp 0 08:01 {index + 1} {path}" for index, path in enumerate(files)
        ]
        (home / "maps").write_text("".join(f"{line}\n" for line in ["00400000-00401000 rw-p 0 00:00 0", *lines]))
        os.symlink(
            details.get("exe", PYTHON if words[0].endswith(("python", "python3")) else words[0] or "x"), home / "exe"
        )
        for number, path in enumerate(details.get("open_files", ())):
            os.symlink(path, home / "fd" / str(number))
        for kind, identity in {"pid": "pid:[1]", **details.get("namespaces", {})}.items():
            os.symlink(identity, home / "ns" / kind)
        return pid

    def _write_stat(self, home, pid, parent, words, details):
        comm = details.get("comm", words[0].rsplit("/", 1)[-1][:15])
        group = details.get("group", self.groups.get(parent, pid))
        self.groups[pid] = group
        flags = 0x00200000 if details.get("kernel") else 0
        threads = details.get("threads", 1)
        state = details.get("state", "S")
        fields = [state, parent, group, group, 0, -1, flags, *[0] * 10, threads, 0, 1000 + pid, 0]
        (home / "stat").write_text(f"{pid} ({comm}) {' '.join(str(field) for field in fields)}\n")
        ids = "1000\t1000\t1000\t1000"
        status = {"Name": comm, "State": f"{state} (x)", "Tgid": pid, "TracerPid": 0, "Uid": ids, "NSpid": pid}
        status.update(CAPABILITIES)
        status.update(details.get("status", {}))
        (home / "status").write_text("".join(f"{name}:\t{value}\n" for name, value in status.items()))

    def titled(self, pid, parent, title, **details):
        """A Python process whose title was set by setproctitle: its environment is gone."""
        details.setdefault("environ", OVERWRITTEN)
        details.setdefault("exe", PYTHON)
        return self.add(pid, parent, [title], **details)

    def torch_rank(self, pid, parent, rank, world, local_size=None, **details):
        """A worker of torchrun."""
        local_size = local_size or world
        environ = {
            "RANK": rank,
            "WORLD_SIZE": world,
            "LOCAL_RANK": rank % local_size,
            "LOCAL_WORLD_SIZE": local_size,
            "GROUP_RANK": rank // local_size,
            "GROUP_WORLD_SIZE": world // local_size,
            "MASTER_ADDR": "node7",
            "MASTER_PORT": 29500,
            "TORCHELASTIC_RUN_ID": "none",
            **details.pop("environ", {}),
        }
        details.setdefault("files", (TORCH,))
        return self.add(pid, parent, details.pop("title", f"{PYTHON[:-3]} -u train.py"), environ=environ, **details)
