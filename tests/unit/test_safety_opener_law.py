"""Nothing but the opener opens what a target, a core or a snapshot names: every other `open` has its reason here."""

import ast
import re

from tests.unit.product_sources import sources

OPENS = {"open", "os.open", "os.fdopen", "io.open", "codecs.open", "mmap.mmap", "tokenize.open", "linecache.getline"}
METHODS = {"read_text", "read_bytes", "write_text", "write_bytes", "glob", "rglob", "iterdir"}
LOOKS = {
    *("os.stat", "os.lstat", "os.listdir", "os.scandir", "os.statvfs", "os.access", "os.path.exists", "os.path.isfile"),
    *("os.path.isdir", "os.path.getsize", "os.path.realpath", "os.path.samefile", "shutil.copy", "shutil.copyfile"),
}
OTHERS = re.compile(r"(shelf|Shelf\(\)|GpuCore|brackets|_slow)\.open$")  # they open by the opener, or no file
APART = {"safe_open", "rankpdb"}  # the opener itself; what runs inside of ranks opens their own files

EXCEPTIONS = {
    "of the kernel: /proc, /sys, /dev/kmsg": """
        capture/without_stop/counters.py:take capture/proc_texts.py:read_text capture/memory/maps.py:read_maps_text
        capture/memory/memory_file.py:read_vectors capture/nccl/memory_scan.py:resident_of.parts
        capture/stop/copy_of_process.py:_Held.prepare capture/copies/copied_process.py:read_proc
        capture/locks_in_memory/lock_context.py:exists_beside capture/stop/breakpoint_guard.py:open_memories
        capture/proc_texts.py:threads_of capture/stop/no_interruption.py:_own_threads
        inside_gdb/stacks/read_copies.py:_end_with inside_gdb/stacks/held_ranks.py:_HeldReading.alive
        discovery/locks_pipes_sockets/open_files.py:each_descriptor
        discovery/locks_pipes_sockets/open_files.py:descriptors
        discovery/locks_pipes_sockets/shared_mappings.py:SharedMemory._has_no_name
        discovery/locks_pipes_sockets/shared_mappings.py:SharedMemory._is_not_listed
        discovery/proc/procfs.py:ProcFS.pids discovery/proc/procfs.py:ProcFS.exists
        discovery/proc/procfs.py:ProcFS.tasks discovery/proc/procfs.py:ProcFS.open_files
        discovery/proc/procfs.py:ProcFS.owner discovery/proc/procfs.py:ProcFS.owner_of_files
        discovery/proc/procfs.py:ProcFS.may_attach discovery/proc/procfs.py:ProcFS._read
        witnesses/kernel_log.py:read_kernel_log witnesses/question.py:_inner_pids cli/gpu_cores/arm.py:_gpus
        cli/gpu_cores/armed_ranks.py:_same_root
    """,
    "memory without a file": """
        cli/service/alerts.py:Alerts._start cli/service/look_process.py:LookProcess.__init__
        capture/memory/process_memory.py:CopyBuffer.__init__ capture/stop/several_processes.py:_Meeting.__init__
    """,
    "written or read in a folder of ours": """
        capture/copies/held_note.py:Note.__init__ inside_gdb/stacks/other_ranks.py:_error_in
        inside_gdb/stacks/other_ranks.py:_run capture/elf/writer.py:SectionFile.write
        capture/cores/minicore.py:write_core capture/user_cache.py:folder_of capture/user_cache.py:read
        capture/user_cache.py:write capture/user_cache.py:_shrink capture/private_folder.py:_room
        inside_gdb/stacks/read_copies.py:main inside_gdb/stacks/read_copies.py:_created
        inside_gdb/stacks/other_ranks.py:look inside_gdb/ranks/pending_python.py:main
        collect/gdb_runs/opened_files.py:GdbFiles._copied collect/gdb_runs/batch_runs.py:run_batches
        collect/gdb_runs/batch_runs.py:_record
    """,
    "a descriptor that is open": """
        cli/gpu_cores/armed_ranks.py:DumpPipe.cores cli/gpu_cores/armed_ranks.py:DumpPipe.is_whole
        cli/gpu_cores/armed_ranks.py:DumpPipe.pipe cli/gpu_cores/armed_ranks.py:_status
        cli/gpu_cores/trigger.py:Dump._open inside_gdb/stacks/read_copies.py:_read_early
        witnesses/shared_memory.py:_mount_statements witnesses/shared_memory.py:_nccl_files
        inside_gdb/failed_checks/report.py:_placed cli/pdb/remote_exec.py:send_script
    """,
    "named by the user": """
        cli/gpu_cores/arm.py:_room analysis/tensors/tensor_files.py:SavedTensor.__init__
        capture/cores/core_file.py:CoreFile.__init__ capture/cores/core_kind.py:looks_like_core
        capture/cores/core_kind.py:looks_like_gpu_core capture/gpu_cores/gpu_core.py:GpuCore.open
        capture/gpu_cores/gpu_core.py:GpuCore.read snapshot_builder/core_job.py:matching
        commands/user_files.py:_check_taken commands/user_files.py:_created
        commands/user_files.py:_descriptor_of commands/user_files.py:_nameless commands/user_files.py:_stream
        commands/user_files.py:append_private commands/user_files.py:check_writable
        commands/user_files.py:new_file commands/completion_words.py:files_at commands/output.py:_old_file
        discovery/checkup.py:_room cli/diagnosis_bundle.py:snapshot_in collect/core_files.py:_look
        cli/inputs/given_files.py:_expanded cli/inputs/given_files.py:_is_pipe cli/launch.py:_open_log
        cli/launch.py:_start cli/inputs/log_folder.py:_is_log cli/pdb/inject.py:_ask cli/inputs/reading.py:read
        cli/inputs/reading.py:refuse_device cli/terminal.py:write_lines cli/vscode.py:_read
        commands/kernel_reports.py:job_of cli/sanitizer/sanitize.py:_logs cli/sanitizer/sanitized_run.py:size_of
        cli/watching/look_with_bundle.py:bundles_in cli/watching/look_with_bundle.py:_size
        cli/watching/before_kill.py:_forget_draft cli/watching/look_before_kill.py:run
        cli/service/service_settings.py:_file cli/service/service.py:Service._shrink
        cli/service/host_lock.py:HostLock._opened cli/service/host_lock.py:HostLock.__init__
        cli/service/webhook_child.py:post cli/profiler/profile.py:_token
        cli/profiler/profile_requests.py:read_requests cli/dump.py:_walk cli/profiler/profile_report.py:_merged
        cli/profiler/profile_report.py:_part cli/profiler/profile_report.py:_timeline
        traces/ascend/ascend_files.py:_rows traces/ascend/ascend_files.py:exchanges
        traces/ascend/ascend_rank.py:_there
        traces/ascend/ascend_totals.py:read traces/traces_of_job.py:_read traces/trace_files.py:ascend_rank
        traces/trace_files.py:_in_folder traces/trace_files.py:find_trace_files traces/traces_of_job.py:_one_run
        traces/traces_of_job.py:size_of traces/merged_trace.py:_draft_path traces/merged_trace.py:_part
        traces/merged_trace.py:_write traces/perfetto.py:_slices traces/rank_trace.py:read_rank
        traces/summary.py:_span traces/summary.py:read_totals collect/hosts/host_names.py:hosts_of
    """,
    "a part of gdbext, of its Python, or of the system": """
        cli/installed.py:installed collect/hosts/on_host.py:Asked.file
        collect/hosts/on_host.py:send collect/hosts/one_file.py:files_below
        collect/hosts/one_file.py:_compiled collect/hosts/one_file.py:of_this_installation
        collect/hosts/one_file_main.py:_forget_old
        collect/hosts/one_file_main.py:_holds collect/hosts/one_file_main.py:unpack_archive
        collect/hosts/fan_out.py:start_text cli/sanitizer/installed_tool.py:_is_script
        cli/sanitizer/installed_tool.py:_libraries cli/sanitizer/rank_commands.py:_python
        discovery/proc/programs.py:_runs discovery/proc/programs.py:_steps discovery/proc/programs.py:_trusted
        discovery/proc/programs.py:_who_else discovery/proc/shell_python.py:interpreters
        witnesses/nvml.py:find_library cli/demo.py:_cause commands/demo_looks.py: init.py:_holds_all
        init.py:load
    """,
}


def calls(tree):
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

    walk(tree, "")
    return found


def test_what_is_looked_for_is_found():
    body = "open(p); os.open(p, 0); Path(p).read_text(); mmap.mmap(0, 1)"
    text = f"class A:\n    def f(self):\n        {body}\nPath(p).open()"
    assert [function for function, _ in calls(ast.parse(text))] == ["A.f"] * 4 + [""]
    assert calls(ast.parse("shelf.open(p); Shelf().open(p)")) == [], "that is the opener"


def test_every_open_of_the_product_is_the_openers_or_has_its_reason():
    looked_at = {name: source.tree for name, source in sources().items() if name.partition("/")[0] not in APART}
    found = {f"{name}:{function}" for name, tree in looked_at.items() for function, _ in calls(tree)}
    allowed = [place for places in EXCEPTIONS.values() for place in places.split()]
    assert sorted(found - set(allowed)) == [], "open it by gdbext.safe_open, or say here why not"
    assert sorted(set(allowed) - found) == [], "these open nothing any more"
    assert len(allowed) == len(set(allowed))
