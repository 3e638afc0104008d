"""File systems whose files are opened with care: those that may not answer, and those whose files are no files.

Names as in /proc/PID/mountinfo (proc_pid_mountinfo(5)); numbers are `f_type` of statfs(2) (linux/magic.h).
"""

from gdbext.knowledge.word_tables import numbered

MAY_HANG = frozenset(
    (
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "9p", "virtiofs", "afs", "coda", "davfs"),
        *("ceph", "lustre", "gpfs", "beegfs", "wekafs", "glusterfs", "ocfs2", "gfs2", "orangefs", "pvfs2", "panfs"),
        *("vmhgfs", "vboxsf", "prl_fs", "autofs", "fuse", "fuseblk"),
    )
)
"""A server, or a program, answers for them: without it an `open` waits, and no signal but SIGKILL ends that."""

MAY_HANG_FAMILIES = ("fuse.", "nfs", "cifs")
"""Beginnings of names that count as well: `fuse.sshfs`, `fuse.juicefs`."""

PSEUDO = numbered(
    "0x9FA0=proc 0x62656572=sysfs 0x64626720=debugfs 0x74726163=tracefs 0x73636673=securityfs 0xF97CFF8C=selinuxfs "
    "0x27E0EB=cgroup 0x63677270=cgroup2 0xCAFE4A11=bpf 0xDE5E81E4=efivarfs 0x62656570=configfs 0x42494E4D=binfmt_misc "
    "0x6165676C=pstore 0x1CD1=devpts 0x19800202=mqueue"
)
"""Their files look regular, and to read them asks the kernel for something: /proc/kmsg takes messages from others."""
