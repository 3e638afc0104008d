"""Folders that are full, read-only or not there: by mounts of our own, in a mount namespace of our own."""

import ctypes
import errno
import os
import resource
import shutil
from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True)
_NEWNS, _NEWTIME = 0x20000, 0x80  # linux/sched.h
_RDONLY, _REMOUNT, _BIND, _REC, _PRIVATE, _DETACH = 1, 32, 4096, 16384, 1 << 18, 2  # sys/mount.h
SHARED = ("/tmp", "/var/tmp", "/dev/shm")


def _check(result):
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def mount(where, options="", flags=0):
    """A tmpfs there."""
    _check(_libc.mount(b"chaos", str(where).encode(), b"tmpfs", flags, options.encode()))


def may_mount():
    """Whether we can have namespaces of our own; asked in a child, so that nothing changes here."""
    child = os.fork()
    if not child:
        os._exit(_libc.unshare(_NEWNS | _NEWTIME) != 0)
    return os.waitpid(child, 0)[1] == 0


def own_namespace(checkout):
    """From here on what we mount is seen by us and our children only, and /tmp and /dev/shm are ours alone: what is
    left there was left by a round. They go away with us. A `checkout` that lies in one of them stays visible."""
    _check(_libc.unshare(_NEWNS))
    _check(_libc.mount(b"none", b"/", None, _REC | _PRIVATE, None))
    _cover(checkout, "mode=1777")


def _cover(checkout, options, flags=0):
    """Empty folders in place of the shared ones, but for the checkout."""
    kept = os.open(checkout, os.O_PATH)  # in this namespace: from another it could not be mounted
    for folder in filter(os.path.isdir, SHARED):
        mount(folder, options)
        if folder in map(str, Path(checkout).parents):
            os.makedirs(checkout)
            source = f"/proc/self/fd/{kept}".encode()
            _check(_libc.mount(source, str(checkout).encode(), None, _BIND | _REC, None))
        if flags:
            _check(_libc.mount(b"chaos", folder.encode(), b"tmpfs", _REMOUNT | flags, None))
    os.close(kept)


class Place:
    """The folders of one round: `tmp`, `home`, `out`, `cwd`, as the plan wants them."""

    def __init__(self, folder, kind):
        self._folder, self._kind, self._mounted = Path(folder), kind, []
        self._folder.mkdir()
        for name in ("tmp", "home", "out", "cwd"):
            (self._folder / name).mkdir(mode=0o700)
        self.tmp, self.home, self.out, self.cwd = (self._folder / name for name in ("tmp", "home", "out", "cwd"))
        if kind == "full-tmp":
            self._mount(self.tmp, "size=64k")
            self._fill(self.tmp, 0)
        elif kind == "tiny-tmp":
            self._mount(self.tmp, "size=256k")
        elif kind == "full-out":
            self._mount(self.out, "size=64k")
            self._fill(self.out, 8192)
        elif kind == "read-only-home":
            self._mount(self.home, "", _RDONLY)
        elif kind == "no-home":
            self.home.rmdir()
        elif kind == "no-tmp":
            self._mount(self.cwd, "", _RDONLY)

    def _mount(self, where, options, flags=0):
        mount(where, options, flags)
        self._mounted.append(where)

    @staticmethod
    def _fill(where, room):
        try:
            with open(where / "filler", "wb", buffering=0) as file:
                while True:
                    file.write(bytes(4096))
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
        os.truncate(where / "filler", max(0, os.path.getsize(where / "filler") - room))

    @property
    def environment(self):
        found = {"HOME": str(self.home), "TMPDIR": str(self.tmp)}
        if self._kind == "no-tmp":
            found["TMPDIR"] = str(self._folder / "nowhere")
        return found

    def leftovers(self):
        """Files below tmp and cwd, and those of home that are no cache."""
        found = [path for folder in (self.tmp, self.cwd) for path in folder.rglob("*") if path.name != "filler"]
        if self.home.is_dir():
            found += [path for path in self.home.rglob("*") if ".cache" not in path.parts]
        return sorted(str(path.relative_to(self._folder)) for path in found)

    def close(self):
        for where in self._mounted:
            _check(_libc.umount2(str(where).encode(), _DETACH))
        shutil.rmtree(self._folder)


def prepare_child(plan, checkout):
    """What is done between fork and exec: the namespaces and limits of the plan."""
    if plan.place == "no-tmp":
        _check(_libc.unshare(_NEWNS))
        _cover(checkout, "", _RDONLY)
    if plan.clock == "other-namespace":
        _check(_libc.unshare(_NEWTIME))
        with open("/proc/self/timens_offsets", "w") as file:
            file.write("monotonic 100000 0\nboottime 100000 0\n")
    for name, value in plan.limits:
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, value))
