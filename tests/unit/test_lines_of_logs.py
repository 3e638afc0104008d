# ruff: noqa: E501 - lines of logs are as long as they are
"""Log lines: whose they are, which came first, who is missing, and what the log says against what gdbext reads in it."""

import pytest

from gdbext.analysis.failures.system_errors import errno_in
from gdbext.analysis.verdict.judge import judge
from gdbext.cli.main import main
from gdbext.knowledge.log_lines import FIRST_FAULTS, LOG_RULES
from gdbext.parsers import parse_files
from gdbext.render.style import Style
from gdbext.render.text.ending.short_answer import Line, ending

IB = "transport/net_ib.cu:788 NCCL WARN NET/IB : Got completion with error 4, opcode 1, len 21938, vendor err 81\n"
MISMATCH = "node1:{1}:{1} [3] init.cu:1197 NCCL WARN Mismatched collective detected, please check your collective calls at and around rank {0}. You can\n"
MISMATCHES = MISMATCH.format(11, 39719) + MISMATCH.format(9, 39717)
BARRIER = "[2023-07-16 19:17:36,147][torch.distributed.distributed_c10d][INFO] - Waiting in store based barrier to initialize process group for rank: {0}, key: store_based_barrier_key:{1} (world_size={2}, worker_count={3}, timeout=0:30:00)\n"
DEEPEP = "DeepEP timeout check failed: rank = {0}, thread = {1}, value = {2})\n"
ANNOUNCED = "[I ProcessGroupWrapper.cpp:562] [Rank {0}] Running collective: CollectiveFingerPrint(SequenceNumber={1}, OpType=ALLREDUCE, TensorShape=[])\n"
NO_BLOCK = "({0} pid=89) INFO [shm_broadcast.py:501] No available shared memory broadcast block found in 60 seconds. This typically happens when some processes are hanging or doing some time-consuming work.\n"
WATCHDOG = """\
(RayWorkerVllm pid=5304) [E ProcessGroupNCCL.cpp:916] [Rank 7] NCCL watchdog thread terminated with exception: CUDA error: {0}
(RayWorkerVllm pid=5304) Exception raised from c10_cuda_check_implementation at ../c10/cuda/CUDAException.cpp:44 (most recent call first):
(RayWorkerVllm pid=5304) frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x57 (0x7fdc6a997617 in /usr/lib/libc10.so)
"""
MODEL = """\
Traceback (most recent call last):
  File "wdl.py", line 31, in <module>
    model = hugectr.Model(solver, reader, optimizer)
RuntimeError: Runtime error: {0}
        ncclGroupEnd() at ResourceManagerCore(/src/resource_manager_core.cpp:175)
"""


def answer(text):
    return judge(parse_files([("paste.txt", text.encode())]))


def ranks(found):
    return sorted((one.rank, one.pid) for one in found.snapshot.processes)


def actions(found):
    return " ".join(one.action for one in found.verdict.remedies)


def test_what_the_log_says_comes_before_what_gdbext_reads_in_it():
    found = answer("node1:77:88 [0] NCCL WARN Bootstrap : no socket interface found\n").verdict.summary
    said, _, reading = found.partition(' found". ')
    assert said.startswith('The log of pid 77 reports: "node1:77:88 [0] NCCL WARN Bootstrap')
    assert reading.startswith("No network interface can be used")


def test_pid_and_rank_of_one_line_are_of_one_process():
    found = answer(MISMATCHES)
    assert ranks(found) == [(9, 39717), (11, 39719)]
    assert (found.verdict.cause, found.verdict.culprits) == (
        "collective-mismatch",
        (),
    )  # the odd rank may be a neighbour
    assert found.verdict.summary.startswith('The logs of ranks 9,11 report, for example: "')
    assert "NCCL_DEBUG_SUBSYS=COLL" in actions(found)
    found = answer(WATCHDOG.format("unknown error"))
    assert ranks(found) == [(7, 5304)]
    assert (
        ranks(answer("[Rank 3] Some NCCL operations have failed or timed out, as its loader (pid 7579) was killed\n"))[
            0
        ][1]
        is None
    )


def test_a_fault_of_the_network_before_a_mismatch_may_be_its_cause():
    verdict = answer(IB + MISMATCHES).verdict
    assert (verdict.cause, verdict.confidence) == ("network-transport", "low")
    assert "A later line says" in verdict.summary and "Mismatched collective" in verdict.summary
    assert answer(MISMATCHES + IB).verdict.cause == "collective-mismatch"  # and not the other way round
    sure = "RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running collective: X\n"
    verdict = answer(IB + sure).verdict  # torch has compared the calls
    assert verdict.cause == "collective-mismatch" and "may be the cause" in verdict.summary
    timeout = (
        "[rank1]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4, OpType=BROADCAST) ran for 600 ms\n"
    )
    assert "An earlier line says" not in answer(timeout).verdict.summary
    assert {one for one in FIRST_FAULTS if "-" in one or one == "memory"} == set(FIRST_FAULTS)
    assert {"no-memory-left", "memory"} <= {rule.id for rule in LOG_RULES}


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([(0, 1, 2, 1)], "rank 0 has joined, and rank 1 has not."),
        ([(rank, 1, 4, 2) for rank in (0, 2)], "ranks 0,2 have joined, and ranks 1,3 have not."),
        ([(0, 1, 8, 3)], "3 of 8 members have joined, among them rank 0."),  # of two it is not known who they are
        ([(0, 2, 2, 1)], "1 of 2 members has joined, among them rank 0."),  # a later group may be of ranks 0 and 5
        ([(5, 1, 2, 1)], "1 of 2 members has joined, among them rank 5."),
    ],
)
def test_members_that_did_not_join_are_named_where_they_are_known(lines, told):
    found = answer("".join(BARRIER.format(*line) for line in lines))
    assert found.verdict.summary.endswith(f" According to the log, {told}")
    assert {one.rank for one in found.snapshot.processes} == {line[0] for line in lines}
    assert "nc -vz MASTER_ADDR" in found.verdict.remedies[0].action


def test_with_more_members_than_ranks_nobody_is_missing():
    found = answer(BARRIER.format(0, 1, 4, 8))
    assert "8 members where the world size is 4" in found.verdict.summary and "rank that has not joined" not in actions(
        found
    )


def test_deepeps_barrier_names_the_peer_that_did_not_come():
    text = "".join(DEEPEP.format(rank, peer, 1024 * (peer == 5)) for rank in (6, 2) for peer in range(8))
    found = answer(text)
    assert ranks(found) == [(2, None), (5, None), (6, None)]
    assert [found.snapshot.processes[one].rank for one in found.verdict.culprits] == [5]
    found = answer("".join(DEEPEP.format(6, peer, 0) for peer in range(8)))
    assert (found.verdict.cause, found.verdict.culprits, ranks(found)) == ("unknown", (), [(6, None)])


def test_the_rank_whose_announced_collective_is_the_oldest_is_behind():
    text = "".join(ANNOUNCED.format(rank, number) for rank, number in ((2, 1275), (2, 1276), (0, 1277), (1, 1277)))
    found = answer(text)
    assert found.verdict.cause == "unknown" and "Rank 2 is behind, unless" in found.verdict.summary
    found = answer(text + ANNOUNCED.format(2, 1277))
    assert "None of these ranks is behind" in found.verdict.summary and "the lowest collective number first" in actions(
        found
    )


def test_collectives_that_are_announced_do_not_crowd_out_an_error():
    text = "".join(ANNOUNCED.format(0, number) for number in range(2000))
    found = answer(f"{text}[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n")
    assert found.verdict.cause == "other" and "out of memory" in found.verdict.summary
    assert len(found.snapshot.processes[0].said) == 2


@pytest.mark.parametrize(
    ("writer", "told"),
    [("VllmWorkerProcess", "This worker waits for the engine"), ("Worker_TP0", "This worker waits for the engine"),
     ("EngineCore_DP0", "The engine process waits for its workers"), ("Proxy", "A process waits at vLLM's")],
)  # fmt: skip
def test_who_waits_at_vllms_queue(writer, told):
    found = answer(NO_BLOCK.format(writer))
    assert told in found.verdict.summary and "inside a step" not in found.verdict.summary
    assert "py-spy dump" in found.verdict.remedies[0].action


def test_an_error_that_the_watchdog_sees_is_of_another_call():
    verdict = answer(WATCHDOG.format("unknown error")).verdict
    assert "watchdog only saw the error" in verdict.summary and "call itself failed" not in verdict.summary
    assert "code of the call" not in actions(answer(WATCHDOG.format("unknown error")))
    own = WATCHDOG.replace(
        "[E ProcessGroupNCCL.cpp:916] [Rank 7] NCCL watchdog thread terminated with exception", "RuntimeError"
    )
    assert "call itself failed" in answer(own.format("invalid argument")).verdict.summary


def test_nccls_words_without_its_name():
    found = answer(MODEL.format("unhandled system error"))
    assert "NCCL's ncclSystemError, from ncclGroupEnd: " in found.verdict.summary
    assert "NCCL_DEBUG=WARN" in found.verdict.remedies[0].action
    assert "That is NCCL's" not in answer(MODEL.format("ncclSystemError: unhandled system error")).verdict.summary
    other = MODEL.format("internal error").replace("ncclGroupEnd() at", "load() at")  # many libraries say so
    assert "NCCL" not in answer(other).verdict.summary + answer(other).verdict.remedies[0].action


def test_advice_on_an_address_needs_one():
    without = "RuntimeError: tensorflow/mesh_service.cc:172 : Check failed: impl_->channel->WaitForConnected( now() )\n"
    assert "has no address" in actions(answer(without)) and "peer that the log line names" not in actions(
        answer(without)
    )
    refused = (
        "node1:39719:39719 [3] misc/socket.cc:480 NCCL WARN Connect to 10.0.0.1<38007> failed : Connection refused\n"
    )
    assert "peer that the log line names" in actions(answer(refused))
    rank = "[LightGBM] [Warning] Connecting to rank 5 failed, waiting for 1626 milliseconds\n"
    assert "the rank in that line" in actions(answer(rank))


def test_the_worker_of_a_loader_died_not_the_process_that_says_so():
    stack = 'Traceback (most recent call last):\n  File "dataloader.py", line 990, in _try_get_data\n    data = get()\n'
    line = "RuntimeError: DataLoader worker (pid 7579) is killed by signal: Bus error. It is possible that\n"
    found = answer(stack + line)
    assert found.processes[0].wait.kind != "sigbus" and "pid 7579" in found.verdict.summary
    assert found.verdict.remedies[0].action.startswith("Check how full /dev/shm is (df -h /dev/shm)")


def test_what_is_refused_is_answered_with_a_command(tmp_path, capsys):
    file = tmp_path / "launch.txt"
    file.write_text("[node2:1347854] [[43885,0],1] OOB_SEND: rml_oob_send.c:265\n")
    assert main(["diagnose", str(file)]) == 4
    said = capsys.readouterr().err
    assert "could not be parsed" not in said and "gdbext diagnose dump.txt" in said and "paste" not in said


def test_a_short_answer_keeps_what_a_quotation_means():
    said = '"node3: a line of the log that is as long as such lines are". '
    verdict = f"cause (low confidence): The log reports: {said}It means that the peer is gone. {'More is said. ' * 40}"
    told = " ".join(ending(verdict, "", [Line("do", ("this",))], Style(width=80)))
    assert "the peer is gone." in told and len(told) < 600


CLIQUE = "2024-07-29 02:14:59.{0}: E external/xla/xla/service/rendezvous.cc:38] This thread has been waiting for `initialize clique for rank {1}; clique=devices=[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]; stream=0; run_id=724296073` for 10 seconds and may be stuck. Expected 8 threads to join the rendezvous, but not all of them arrived on time.\n"


def test_xlas_ranks_that_wait_in_a_set_up_have_arrived():
    found = answer(CLIQUE.format(920189, 6) + CLIQUE.format(920271, 0))
    assert (found.verdict.cause, found.verdict.culprits) == ("init-rendezvous", ())
    assert "initialize clique" in found.verdict.summary and "have arrived" in found.verdict.summary
    assert found.verdict.remedies[0].action.startswith("Find a participant that no such line names")


RING = "[ring] Receiving from socket 51 failed with errno {0}\n[ring] Too many send/recv errors. Aborting...\n"


@pytest.mark.parametrize(
    ("number", "cause", "told"),
    [
        (14, "other", "Errno 14 is EFAULT (bad address). The buffer of that call is not valid memory"),
        (104, "unknown", "On Linux, errno 104 is ECONNRESET (connection reset by peer). MLX's ring backend could not"),
    ],
)
def test_an_error_number_of_the_system_is_told_in_words(number, cause, told):
    found = answer(RING.format(number)).verdict
    assert (found.cause, told in found.summary) == (cause, True), found.summary


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("recv failed (errno: 14)", "errno 14 is EFAULT (bad address)"),
        ("sendmsg: errno=110", "on Linux, errno 110 is ETIMEDOUT (connection timed out)"),
        ("OSError: [Errno 37] No locks available", ""),
        ("returned 113(No route to host) errno 115(Operation now in progress)", ""),
        ("RET   _umtx_op -1 errno 60 Operation timed out", ""),
        ("connect failed, ECONNREFUSED, errno 111", ""),
        ("errno 0, errno 999", ""),
    ],
)
def test_only_a_number_without_words_is_explained(line, told):
    assert errno_in(line) == told
