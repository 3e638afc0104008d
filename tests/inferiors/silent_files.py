"""A file system of one file, by FUSE, that falls silent when it is told: what a dead server looks like.

    silent_files.py FOLDER FILE   mounts it on FOLDER; `FOLDER/file` has the content of FILE. Prints "ready".

SIGUSR1: it answers nothing any more. At the end of its standard input it ends, and the kernel with it. Layouts:
linux/fuse.h.
"""

import ctypes
import os
import select
import signal
import stat
import struct
import sys

IN, OUT = struct.Struct("<IIQQIIII"), struct.Struct("<IiQ")
ATTRIBUTES = struct.Struct("<6Q3I7I")
LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, RELEASE, FLUSH = 1, 2, 3, 14, 15, 17, 18, 25
INIT, OPENDIR, RELEASEDIR, ACCESS, INTERRUPT, BATCH_FORGET = 26, 27, 29, 34, 36, 42
ROOT, FILE = 1, 2
ENOENT, ENOSYS = 2, 38
LONG = 3600  # seconds that the kernel may keep what it is told


def attributes(node, size):
    mode = stat.S_IFDIR | 0o755 if node == ROOT else stat.S_IFREG | 0o755
    return ATTRIBUTES.pack(node, size, size // 512 + 1, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def answer(operation, node, body, data):
    """(error, content)"""
    size = len(data) if node == FILE else 4096
    if operation == INIT:
        return 0, struct.pack("<IIIIHHIIHHI7I", 7, 31, 1 << 16, 0, 16, 12, 4096, 1, 0, 0, 0, *[0] * 7)
    if operation == LOOKUP:
        if body.rstrip(b"\0") != b"file":
            return -ENOENT, b""
        return 0, struct.pack("<QQQQII", FILE, 1, LONG, LONG, 0, 0) + attributes(FILE, len(data))
    if operation == GETATTR:
        return 0, struct.pack("<QII", LONG, 0, 0) + attributes(node, size)
    if operation in (OPEN, OPENDIR):
        return 0, struct.pack("<QII", 0, 0, 0)
    if operation == READ:
        _, offset, length = struct.unpack_from("<QQI", body)
        return 0, data[offset : offset + length]
    if operation == STATFS:
        return 0, struct.pack("<5Q4I6I", 100, 50, 50, 10, 5, 4096, 255, 4096, 0, *[0] * 6)
    if operation in (RELEASE, RELEASEDIR, FLUSH, ACCESS):
        return 0, b""
    return -ENOSYS, b""


def main(folder, source):
    with open(source, "rb") as file:
        data = file.read()
    device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    options = f"fd={device},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()},default_permissions,allow_other"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"silent", os.fsencode(folder), b"fuse.silent", 0, options.encode()):
        sys.exit(f"no mount: {os.strerror(ctypes.get_errno())}")
    silent = []
    signal.signal(signal.SIGUSR1, lambda *_: (silent.append(True), os.write(1, b"silent\n")))
    print("ready", flush=True)
    while True:
        ready = select.select([device, 0], [], [])[0]
        if 0 in ready:
            break
        request = os.read(device, 1 << 20)
        _, operation, unique, node, *_ = IN.unpack_from(request)
        if operation in (FORGET, BATCH_FORGET, INTERRUPT) or silent:
            continue
        error, content = answer(operation, node, request[IN.size :], data)
        os.write(device, OUT.pack(OUT.size + len(content), error, unique) + content)
    libc.umount2(os.fsencode(folder), 2)  # MNT_DETACH
    os.close(device)


if __name__ == "__main__":
    main(*sys.argv[1:])
