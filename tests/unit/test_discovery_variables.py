"""Rank variables of launchers, in order of trust."""

import pytest

from gdbext.discovery.ranks.argument_words import option, option_value, rank_arguments
from gdbext.discovery.ranks.rank_variables import claims_of, number
from gdbext.knowledge.launch.launchers import VARIABLES


@pytest.mark.parametrize("row", VARIABLES, ids=[row.launcher for row in VARIABLES])
def test_every_row_is_read(row):
    environ = dict.fromkeys((*row.job, *row.needs), "x")
    numbers = {row.rank: 3, row.world_size: 8, row.local_rank: 1, row.local_size: 4, row.node: 1, row.nodes: 2}
    environ.update({name: str(value) for name, value in numbers.items() if name})
    claim = next(claim for claim in claims_of(environ) if claim.row == row)
    assert claim.rank == 3
    assert claim.world_size == (8 if row.world_size else None)
    assert claim.local_rank == (1 if row.local_rank else None)
    assert claim.local_size == (4 if row.local_size else None)
    assert claim.role == "rank"


@pytest.mark.parametrize(
    "environ, launcher",
    [
        ({"RANK": "1", "TORCHELASTIC_RUN_ID": "x", "SLURM_PROCID": "0"}, "torchrun"),
        ({"RANK": "1", "SLURM_PROCID": "0"}, "torch environment"),
        ({"RANK": "0", "OMPI_COMM_WORLD_RANK": "1"}, "Open MPI"),
        ({"PMIX_RANK": "1", "OMPI_COMM_WORLD_RANK": "1"}, "Open MPI"),
        ({"PMI_RANK": "1", "SLURM_PROCID": "1"}, "PMI (MPICH, Hydra, Intel MPI)"),
        ({"RANK_ID": "1", "MS_ROLE": "MS_WORKER", "RANK": "0"}, "MindSpore"),
        ({"RANK_ID": "1", "RANK_TABLE_FILE": "t", "RANK_SIZE": "2"}, "MindSpore rank table"),
        ({"WORLD_RANK": "1", "RANK": "0"}, "RTP-LLM"),
        ({"SLURM_PROCID": "1"}, "Slurm"),
    ],
)
def test_order_of_trust(environ, launcher):
    assert claims_of(environ)[0].row.launcher == launcher


def test_rank_id_alone_says_nothing():
    assert claims_of({"RANK_ID": "1"}) == ()


@pytest.mark.parametrize("text", [None, "", "-1", "x", "1.5", "٣", "99999999999", "10000001"])
def test_what_is_no_number(text):
    assert number(text) is None


def test_options():
    assert option(["x", "--tp", "4"], ("--tp",)) == "4"
    assert option(["x", "--tp=4"], ("--tp",)) == "4"
    assert option(["x", "--headless", "--tp", "4"], ("--headless",)) == ""
    assert option(["x", "--tp-extra", "4"], ("--tp",)) is None
    assert option_value([["a"], ["b", "-tp", "x"], ["c", "-tp", "8"]], ("-tp",)) == 8


@pytest.mark.parametrize(
    "title, numbers",
    [
        ("x --rank 3 --world-size 4", {"rank": (3, "--rank")}),
        ("x --local-rank=2", {"local_rank": (2, "--local-rank")}),
        ("x --local_rank 2 --rank=5", {"rank": (5, "--rank"), "local_rank": (2, "--local_rank")}),
        ("x --tp-rank 1 --pp_rank 2", {"tp": (1, "--tp-rank"), "pp": (2, "--pp_rank")}),
        ("trainer [rank 7]", {"rank": (7, "[rank")}),
        ("x --node-rank 1 --lora-rank 16 --max_lora_rank=8", {}),
    ],
)
def test_rank_arguments(title, numbers):
    assert rank_arguments(title) == numbers
