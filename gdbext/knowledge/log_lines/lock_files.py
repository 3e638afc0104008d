"""Lines that tell of waiting for a lock file, or for another program that has one; and of locks that close a circle."""

from typing import Tuple

from gdbext.knowledge.row_kinds import LogRule

RULES: Tuple[LogRule, ...] = (
    LogRule(
        "waits-for-lock-file",
        r"\b[Ss]till waiting to acquire lock on \S|[Tt]he file lock '.{1,300}' could not be acquired"
        r"|[Ww]aiting for (?:the )?(?:cache |file |state )?lock(?: on|:| file| to be)"
        r"|Blocking waiting for file lock on "
        r"|\b[Cc]ould not (?:get|acquire|obtain) (?:a |the |exclusive )?lock (?:on |file |for )?[\"'`]?(?:/"
        r"|\w:\\|[^\s\"']{1,80}\.lock)"
        r"|[Uu]nable to (?:acquire|lock|obtain) .{0,60}(?:\.lock\b|/var/lib/dpkg|lock file|file lock|directory \S*/)"
        r"|Unable to create '.{1,300}\.lock': File exists|Timeout waiting to lock .{1,200}in use by"
        r"|[Ww]aiting for the other \w{1,40} instance to finish"
        r"|Error acquiring the state lock|Existing lock \S{1,200}: another copy is running"
        r"|Another (?:command|app|process|instance|copy) .{0,60}(?:is (?:currently )?(?:running|holding|using)"
        r"|holds) ?.{0,40}"
        r"(?:[Ww]aiting|\block)|LOCKERROR: |Failed to lock .{1,120}(?:File|file) (?:exists|locked)"
        r"|[Ww]aiting for .{0,60}(?:another|other) process.{0,60}\b(?:release|lock)|lock held by (?:current "
        r"|another )?process"
        r"|IO error: (?:While )?lock (?:file: )?\S{1,200}/LOCK|\bTimeout(?:Error)?\b.{0,80}\.lock\b",
        "the process waits for a lock file: another process holds the lock, or one that has exited left the file "
        "behind",
        "filelock; huggingface_hub; cargo; apt; git; Gradle; Terraform; conda; Bazel; LevelDB",
        "other",
        "low",
        "io",
    ),
    LogRule(
        "no-locks-there",
        r"\bNo locks available\b|\bENOLCK\b|unable to lock file, errno = (?:11|37|38|524)\b",
        "the file system cannot grant file locks (usually an NFS mount whose lock service cannot be reached)",
        "fcntl(2), ENOLCK; HDF5 H5FDsec2.c",
        "other",
        "low",
        "io",
    ),
    LogRule(
        "threads-in-a-circle",
        r"[Tt]hread: \d{1,9} waits for thread: \d{1,9} AND DEADLOCKED",
        "threads wait for each other's locks",
        "gdb-pthread-mutex helpers, the command `blocked`",
        "lock-order-deadlock",
        "low",
        "mutex",
    ),
    LogRule(
        "locked-twice",
        r"\b(?:mutex|lock|semaphore|spinlock)\b.{0,60}\block(?:ed)? twice\b"
        r"|recursively lock an os_unfair_lock|called on queue already owned by current thread"
        r"|Recursive (?:read|write|upgradeable) lock acquisitions not allowed|LockRecursionException"
        r"|(?:mutex|lock) (?:is )?already (?:held|owned|locked) by (?:this|the current|current|calling) (?:thread|task)"
        r"|waiting to lock monitor 0x[0-9a-f]{1,16} \(object 0x|[Ww]aiting for ownable synchronizer 0x",
        "this is a deadlock: a thread waits for a lock that it already holds, or threads wait for each other's locks",
        "Apple libplatform, libdispatch; .NET; OpenJDK, which prints such lines of deadlocks only",
        "lock-order-deadlock",
        "low",
        "mutex",
    ),
    LogRule(
        "rows-in-a-circle",
        r"^.{0,80}\b(?:ERROR|error|FATAL): {1,2}deadlock detected|[Dd]eadlock found when trying to get lock"
        r"|was deadlocked on (?:\w{1,20} ){1,4}resources|ORA-00060\b"
        r"|Process \d{1,9} waits for \w{1,40} on .{1,120}blocked by process",
        "a database found transactions that wait for each other's locks, and ended one of them",
        "PostgreSQL deadlock.c; MySQL; SQL Server; Oracle",
        "lock-order-deadlock",
        "low",
        "mutex",
    ),
)
