"""How often the verdict is right on a real server of SGLang (on CPUs), idle, at work and with a fault in one process.

SGLang is installed by package names into `.cache/sglang`, once. What only GPUs need of it is left out.
"""

import subprocess
from pathlib import Path

from tests.bench.engines import installed, measure
from tests.inferiors import sglang_server
from tests.inferiors.sglang_server.server import SGLANG
from tests.inferiors.sglang_server.table import SERVED

_OURS = Path(sglang_server.__file__).parent
_TORCH = ("torch==2.13.0", "setuptools")


def _fill(pip, packages):
    """The packages of the list come without what they ask for: SGLang asks for another torch and for GPU kernels."""
    subprocess.run([*pip, "install", *_TORCH], check=True)
    subprocess.run([*pip, "install", "--no-deps", "-r", str(_OURS / "requirements.txt")], check=True)
    kernels = packages / "sgl_kernel"
    kernels.mkdir()
    (kernels / "__init__.py").write_text((_OURS / "sgl_kernel.py").read_text())
    patched = packages / "torchvision" / "_meta_registrations.py"
    patched.write_text((_OURS / "torchvision_operators.py").read_text() + patched.read_text())


if __name__ == "__main__":
    measure(SGLANG, SERVED, lambda: installed("sglang", "sglang==0.5.23", _fill), __doc__)
