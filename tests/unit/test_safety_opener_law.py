"""Nothing but the opener opens what a target, a core or a snapshot names: every other `open` has its reason here."""

import ast
import re
from pathlib import Path

import gdbext

ROOT = Path(gdbext.__file__).parent
OPENS = {"open", "os.open", "os.fdopen", "io.open", "codecs.open", "mmap.mmap", "tokenize.open", "linecache.getline"}
METHODS = {"read_text", "read_bytes", "write_text", "write_bytes", "glob", "rglob", "iterdir"}
LOOKS = {
    *("os.stat", "os.lstat", "os.listdir", "os.scandir", "os.statvfs", "os.access", "os.path.exists", "os.path.isfile"),
    *("os.path.isdir", "os.path.getsize", "os.path.realpath", "os.path.samefile", "shutil.copy", "shutil.copyfile"),
}
OTHERS = re.compile(r"(shelf|Shelf\(\)|GpuCore|brackets|_patient)\.open$")  # they open by the opener, or no file
APART = {"opener", "rankpdb"}  # the opener itself; what runs inside of ranks opens their own files

EXCEPTIONS = {
    "of the kernel: /proc, /sys, /dev/kmsg": """
        capture/activity.py:take capture/activity.py:_text capture/blocked.py:_text capture/maps.py:read_maps_text
        capture/memory_file.py:read_vectors capture/nccl_scan.py:resident_of.parts capture/outside.py:_Look._tids
        capture/ptrace.py:Tracees.seize_new capture/ptrace.py:thread_state capture/ptrace.py:_status
        capture/ptrace.py:_blocked_registers capture/stop.py:_Held.prepare capture/stop.py:read_proc
        capture/surroundings.py:exists_beside capture/text_guard.py:opened capture/threads.py:look
        capture/threads.py:_text capture/undisturbed.py:_own_threads capture/versions.py:of_this_host
        debugger/batch.py:_end_with debugger/calls.py:_signals debugger/fates.py:whole debugger/live.py:_look
        discovery/peers.py:_holders discovery/procfs.py:ProcFS.pids discovery/procfs.py:ProcFS.exists
        discovery/procfs.py:ProcFS.tasks discovery/procfs.py:ProcFS.open_files discovery/procfs.py:ProcFS.owner
        discovery/procfs.py:ProcFS.owner_of_files discovery/procfs.py:ProcFS.may_attach discovery/procfs.py:ProcFS._read
        evidence/kernel_log.py:read_kernel_log evidence/question.py:_inner_pids frontend/afterwards.py:_threads
        frontend/capacity.py:_text
    """,
    "memory without a file": "capture/memory.py:CopyBuffer.__init__ capture/together.py:_Meeting.__init__",
    "written or read in a folder of ours": """
        capture/kill_timer.py:Note.__init__ debugger/outside.py:_error_in debugger/outside.py:_run
        capture/excerpt_file.py:write_file capture/minicore.py:write_core capture/user_cache.py:folder_of
        capture/user_cache.py:read capture/user_cache.py:write capture/user_cache.py:_shrink
        commands/private_folder.py:_room debugger/batch.py:main debugger/batch.py:_created debugger/outside.py:look
        debugger/pending.py:main frontend/gdb_files.py:GdbFiles._copied frontend/gdbrun.py:run_batches
        frontend/gdbrun.py:_record
    """,
    "a descriptor that is open": """
        debugger/batch.py:_read_early evidence/shared_memory.py:_about evidence/shared_memory.py:_nccl_files
        debugger/check_view.py:_placed frontend/remote_exec.py:hand
    """,
    "named by the user": """
        analysis/tensors/files.py:SavedTensor.__init__ capture/core_file.py:CoreFile.__init__
        capture/core_kind.py:looks_like_core capture/gpu_core.py:GpuCore.open capture/gpu_core.py:GpuCore.read
        commands/cores.py:matching commands/files.py:_check_taken commands/files.py:_created
        commands/files.py:_descriptor_of commands/files.py:_nameless commands/files.py:_stream
        commands/files.py:append_private commands/files.py:check_writable commands/files.py:new_file
        commands/output.py:_old_file discovery/checkup.py:_room frontend/bundle.py:snapshot_in frontend/cores.py:_look
        frontend/given_files.py:_expanded frontend/given_files.py:_is_pipe frontend/launch.py:_open_log
        frontend/launch.py:_start frontend/log_folder.py:_is_log
        frontend/pdb_inject.py:_ask frontend/reading.py:read frontend/reading.py:refuse_device
        frontend/terminal.py:write_lines frontend/vscode.py:_read frontend/watch.py:bundles_in
    """,
    "a part of gdbext, of its Python, or of the system": """
        discovery/programs.py:_runs discovery/programs.py:_steps discovery/programs.py:_trusted
        discovery/programs.py:_who_else discovery/interpreter.py:interpreters evidence/nvml.py:find_library
        init.py:_holds_all init.py:load
    """,
}


def calls(text):
    """(function, call) of each call that opens something, or looks it up by its name."""
    found = []

    def walk(node, name):
        for child in ast.iter_child_nodes(node):
            inner = name
            if isinstance(child, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
                inner = f"{name}.{child.name}" if name else child.name
            if isinstance(child, ast.Call):
                called = ast.unparse(child.func)
                method = called.rpartition(".")[2] if "." in called else ""
                if called in OPENS | LOOKS or method in METHODS or (method == "open" and not OTHERS.search(called)):
                    found.append((name, called))
            walk(child, inner)

    walk(ast.parse(text), "")
    return found


def test_what_is_looked_for_is_found():
    body = "open(p); os.open(p, 0); Path(p).read_text(); mmap.mmap(0, 1)"
    text = f"class A:\n    def f(self):\n        {body}\nPath(p).open()"
    assert [function for function, _ in calls(text)] == ["A.f"] * 4 + [""]
    assert calls("shelf.open(p); Shelf().open(p)") == [], "that is the opener"


def test_every_open_of_the_product_is_the_openers_or_has_its_reason():
    paths = [path for path in sorted(ROOT.rglob("*.py")) if path.relative_to(ROOT).parts[0] not in APART]
    assert len(paths) > 300
    found = {f"{path.relative_to(ROOT)}:{function}" for path in paths for function, _ in calls(path.read_text("utf-8"))}
    allowed = [place for places in EXCEPTIONS.values() for place in places.split()]
    assert sorted(found - set(allowed)) == [], "open it by gdbext.opener, or say here why not"
    assert sorted(set(allowed) - found) == [], "these open nothing any more"
    assert len(allowed) == len(set(allowed))
