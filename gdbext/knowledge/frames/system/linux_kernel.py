"""Functions of Linux, as /proc/PID/stack, the kernel's watchdog and perf print them: where a thread waits there."""

from __future__ import annotations

from gdbext.knowledge.frame_precedence import LEAF
from gdbext.knowledge.row_kinds import FrameRule

_LINUX = "Linux 4.18-6.12 sources"
_SUFFIX = r"(\.\w+)*$"
KERNEL = r"\["
"""Code of the kernel and its modules, as the texts of it name libraries: `[kernel]`, `[nvidia_uvm]`."""
KERNEL_ENTRIES = r"(do_syscall_64|entry_SYSCALL\w*|(__)?(x64|arm64)_sys\w*|el0t?_\w*(svc|sync)\w*|ret_from_fork\w*)"
"""Where a stack inside of the kernel begins."""
ONLY_BEGINS = rf"({KERNEL_ENTRIES}|kthread)\b"
"""What alone is left of a stack in the kernel whose rest is cut off tells nothing."""

GPU_MODULE = (
    r"\[(?:amdgpu|amdkfd|amdttm|amddrm\w*|nvidia(?:_\w+)?|nouveau|i915|xe|gpu_sched|drm(?:_\w+)?|ttm|radeon|lima|panfrost|mali\w*"
    r"|habanalabs|ascend_\w+|drv_\w+_host|dxgkrnl)\]"
)
GPU_HELPERS = r"\[(?:gpu_sched|drm(?:_\w+)?|ttm|amdttm|amddrm\w*)\]"
"""Those of them that drivers of several vendors use, or that only help the driver."""
NVIDIA_MODULES, AMD_MODULES, INTEL_MODULES = r"\[nvidia(?:_\w+)?\]", r"\[(?:amdgpu|amdkfd|radeon)\]", r"\[(?:i915|xe)\]"
OTHER_MODULES = rf"(?!{NVIDIA_MODULES}|{AMD_MODULES}|{INTEL_MODULES})"
GPU_ENDS = r"\w*_(?:fini|release|postclose|close|destroy|reset|suspend|remove|unload|unregister|evict|recover)\w*"
"""Functions with which a driver ends or resets something: no signal ends a wait there."""


KILLED = r"get_signal(?:_to_deliver)?(?:\.\w+)*$"
"""What a thread runs that ends by a signal, or because another thread of the process ends all (kernel/signal.c)."""


def _function(id: str, kind: str, names: str, rank: int = LEAF) -> FrameRule:
    return FrameRule(id, kind, rf"({names}){_SUFFIX}", _LINUX, rank=rank)


_FILE_SYSTEMS = (
    r"9p|afs|autofs|autofs4|bcachefs|bch2|beegfs|fhgfs|btrfs|ceph|cifs|coda|dlm|ecryptfs|erofs|exfat|ext[234]|f2fs|fat|fuse|gfs2|gpfs|hfs"
    r"|hfsplus|iomap|isofs|jbd2|jffs2|jfs|kernfs|ll|lockd|lov|lustre|mdc|minix|mmfs|netfs|nfs|nfs3|nfs4|nfsd|nilfs|ntfs|ntfs3|ocfs2|orangefs"
    r"|osc|ovl|ptlrpc|obd|ldlm|quota|dquot|smb|smb2|smb3|squashfs|ubifs|udf|verity|vboxsf|xfs|xlog|zfs|zil|zio|dmu|txg|spa|arc"
)
_DISKS = (
    r"inode|dio|bio|blk|blkdev|bdev|block|submit|buffer|bh|page|folio|filemap|super|sb|wb|writeback|dm|md|raid1|raid5|raid10|nvme|scsi|sd|sg|ata|virtblk"
    r"|virtio|nbd|rbd|drbd|loop|iscsi|dirty|truncate|swap|readahead|vfs|pipe|splice|tty|n_tty"
)
_SOCKETS = (
    r"tcp|udp|inet|inet6|unix|sock|sk|skb|rpc|xprt|svc|netlink|packet|vsock|tipc|sctp|rds|rdma|ib|mlx[45]|iw_cm|ucma"
)

RULES = (
    _function(
        "kernel-gpu-event", "event-sync", r"kfd_wait_on_events|kfd_ioctl_wait_events|svm_range_restore_work", LEAF + 3
    ),
    _function(
        "kernel-gpu-fence",
        "device-sync",
        r"dma_fence_(default_)?wait\w*|amdgpu_\w*(fence|sync)\w*wait\w*|drm_sched_entity_flush|amdgpu_cs_wait_\w+"
        r"|i915_\w*wait\w*|xe_\w*wait\w*fence\w*|evict_process_queues_cpsch|unmap_queues_cpsch|dma_resv_wait\w*"
        r"|ttm_bo_wait\w*"
        r"|drm_\w*(wait|flush)\w*",
        LEAF + 3,
    ),
    _function(
        "kernel-gpu-driver",
        "device-sync",
        r"uvm_(spin_loop|\w*wait\w*)|wait_for_entry_with_spin|nv_wait_\w+|nvkms_\w*wait\w*|dxgvmb_send_\w+"
        r"|kfd_process_\w*evict\w*"
        r"|amdgpu_\w*(reset|recover)\w*|xe_guc_\w*wait\w*|habanalabs_\w*wait\w*|hl_\w*wait\w*|devmm_\w*wait\w*"
        r"|trs_\w*wait\w*",
        LEAF + 2,
    ),
    _function(
        "kernel-driver-lock",
        "mutex",
        r"os_(cond_)?acquire_(semaphore|mutex|rwlock\w*|spinlock)|rmapiLock\w*|rmGpuLock\w*",
        LEAF + 2,
    ),
    _function(
        "kernel-lock",
        "mutex",
        r"rwsem_down_(read|write)_slowpath|__?mutex_lock\w*|mutex_lock\w*|__down\w*|down_(read|write)\w*|__lock_page\w*"
        r"|folio_lock\w*|__ww_mutex_lock\w*|dup_mm|dup_mmap|queued_spin_lock_slowpath|mmap_write_lock\w*",
        LEAF + 2,
    ),
    _function(
        "kernel-io",
        "io",
        r"io_schedule\w*|folio_wait_\w+|wait_on_page_\w+|rpc_wait_bit_killable|nfs\w*_wait\w*|pipe_(read|write|wait\w*)"
        r"|unix_stream_\w+|tcp_recvmsg\w*|sk_wait_data|inet_csk_accept|jbd2_log_wait_commit|fuse_\w+|cifs_\w*wait\w*"
        r"|request_wait_answer|cl_sync_io_wait\w*|ptlrpc_\w*wait\w*|kernel_wait(4|id)|blk_mq_get_tag|ep_poll"
        r"|do_sys_poll"
        r"|poll_schedule_timeout\w*|do_select|n_tty_read|wait_transaction_locked|add_transaction_credits"
        r"|start_this_handle|jbd2_\w+"
        r"|(xfs|ext4|btrfs|ceph|nfs4?|gfs2|ocfs2|beegfs|fhgfs|cifs|smb2|9p)_\w*(wait|lock|force|commit|sync|open"
        r"|discover)\w*"
        r"|(ll|osc|mdc|ldlm|lov|ptlrpc|obd)_\w+|rpc_\w+|cxiWaitEventWait|kxWait\w*|(__)?cv_(timed)?wait\w*|zil_\w+"
        r"|txg_\w+|zio_wait|dmu_\w+"
        r"|wait_on_buffer|__wait_on_bit\w*|bit_wait_io|submit_bio_wait|blk_\w*wait\w*|sync_inodes\w*|writeback_\w+"
        r"|balance_dirty_pages\w*|fanotify_(handle_event|get_response)\w*",
        LEAF + 1,
    ),
    _function("kernel-futex", "condvar-idle", r"futex_wait\w*|do_futex|futex_do_wait|__x64_sys_futex", LEAF - 1),
    _function(
        "kernel-wait",
        "condvar-idle",
        r"wait_for_completion\w*|wait_for_common|(__)?wait_rcu_gp|synchronize_(rcu|srcu|net)\w*|(__)?flush_work\w*"
        r"|kthread_stop|wait_woken"
        r"|do_sigtimedwait|sigsuspend|pipe_wait|do_semtimedop|do_msgrcv|ipc_\w*wait\w*",
        LEAF,
    ),
    _function("kernel-sleep", "condvar-idle", r"hrtimer_nanosleep|do_nanosleep|common_nsleep\w*|msleep\w*", LEAF),
    _function(
        "kernel-exit",
        "exited-or-crashed",
        r"do_exit|do_group_exit|do_coredump|exit_mmap|mmput|coredump_wait",
        LEAF - 1,  # whoever waits at its end for something is held up by that
    ),
    FrameRule(
        "kernel-gpu-module",
        "device-sync",
        r"\w+",
        "Linux drivers/gpu, NVIDIA and accelerators: a stack that stands in a module of theirs",
        module=GPU_MODULE,
        rank=LEAF,
    ),
    FrameRule(
        "kernel-by-name-lock",
        "mutex",
        rf"(?!\w*(?:unlock|block|clock|lockd|relock|trylock))(\w*_)?(lock|mutex|rwsem|sem|semaphore|down|spin_lock)(_\w+)?{_SUFFIX}",
        _LINUX,
        module=KERNEL,
        rank=LEAF + 1,
    ),
    FrameRule(
        "kernel-by-name-io",
        "io",
        rf"_*(\w+_)?({_FILE_SYSTEMS}|{_DISKS}|{_SOCKETS})_\w+{_SUFFIX}",
        "Linux fs/, block/, drivers/ and net/: functions begin with the name of their folder",
        module=KERNEL,
        rank=LEAF + 1,
    ),
)
