"""Packaging of gdbext. Each dependency stands with its reason."""

import pathlib
import re
import sys

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

HERE = pathlib.Path(__file__).parent
VERSION = re.search(r'__version__ = "([^"]+)"', (HERE / "gdbext" / "__init__.py").read_text("utf-8")).group(1)
MANUAL = "build/man/gdbext.1"


DEMO_ENGINE = ("tests/__init__.py", "tests/polling.py", "tests/inferiors/job.[ch]", "tests/inferiors/engine/*",
               "tests/inferiors/cuda/*", "tests/inferiors/cuda/nccl/*",
               *(f"tests/inferiors/{name}.py" for name in ("show", "demo", "demo_build", "scenarios")))  # fmt: skip
"""What `gdbext demo` builds and starts where a compiler is: it comes into the package as gdbext/demo/engine."""


class WithManual(build_py):
    """The manual page is made of the commands' rows, which import the standard library alone. The sources of the demo
    engine are those of the tests."""

    def run(self) -> None:
        sys.path.insert(0, str(HERE))
        from gdbext.cli.man import page

        path = HERE / MANUAL
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(page()) + "\n", "utf-8")
        super().run()
        for pattern in DEMO_ENGINE if not getattr(self, "editable_mode", False) else ():
            for source in filter(pathlib.Path.is_file, HERE.glob(pattern)):
                target = pathlib.Path(self.build_lib, "gdbext", "demo", "engine", source.relative_to(HERE))
                self.mkpath(str(target.parent))
                self.copy_file(str(source), str(target))


setup(
    name="gdbext",
    version=VERSION,
    description="A GDB extension for multi-GPU LLM inference engines: who hangs, why, and with what numbers",
    long_description=(HERE / "README.md").read_text("utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    packages=find_packages(include=["gdbext", "gdbext.*"]),
    package_data={"gdbext": ["py.typed", "demo/*.json", "render/html/templates/*"]},
    data_files=[("share/man/man1", [MANUAL])],
    cmdclass={"build_py": WithManual},
    python_requires=">=3.8",
    install_requires=[
        "tabulate>=0.8.9",  # tables
        "pygments>=2.10",  # colours of source lines and stacks
        # TAB in bash, zsh and fish; loaded at a TAB alone (18 ms), has all three on Python 3.8. shtab's script needs no
        # process at a TAB, but has no fish below Python 3.9 and cannot know which pids run.
        "argcomplete>=3",
        # VS Code's files have comments and commas at the end of lists: `gdbext vscode`. Kept (2026), pure Python, 3.8;
        # commentjson and jsonc-parser have had no release since 2021.
        "json5>=0.9",
        "pyelftools>=0.29",  # ELF notes, symbols and DWARF of libraries and cores
    ],
    extras_require={
        "cluster": ["ClusterShell>=1.9"],  # many hosts at once
        "gpu": ["nvidia-ml-py"],  # utilisation and power of the GPUs, read in a child process
        "trace": [
            "msgspec>=0.18",  # decodes events in C, arguments stay text: a quarter of json's time
            "isal>=1.1",  # inflates at 2.4 times zlib's speed, deflates at 10 times
            "perfetto",  # the messages of --perfetto
        ],
        "service": [  # `gdbext watch --service`
            "prometheus_client>=0.20",  # its numbers: the endpoint, the text file and their escaping are the library's
            "tomli>=2; python_version < '3.11'",  # its file: the standard library's reader for older Pythons
        ],
        "report": ["jinja2>=3"],  # HTML pages: escapes by itself whatever a target put into its names
        "test": [
            "pytest>=7",
            "pytest-xdist",  # gdb tests side by side
            "pytest-timeout",  # a test that hangs fails by its name, with the stacks of all threads
            "ml_dtypes",  # small float formats, decoded independently
            "nvidia-cuda-runtime-cu12==12.9.79",  # 3 MB: its calls fail for real where there is no GPU
            "nvidia-cuda-nvcc-cu12==12.9.86",  # 40 MB: its ptxas makes real cubins in 30 ms; needs no GPU
            "gguf",  # block-quantised formats, dequantised independently
            "pywhispercpp",  # a libggml that somebody else built
            "jsonschema>=4.23; python_version >= '3.9'",  # answers against their schema
            "hypothesis",  # parsers and memory readers against arbitrary input
            "ruff==0.17.5",
            "mypy==2.4.1",
            "types-tabulate",
            "types-Pygments",
            "setproctitle",  # real process titles, as the engines set them
            "py-spy",  # the Python frames we read are compared with its
            "pystack",  # a peer in the benchmark
            "gdb-for-pwndbg",  # the newest gdb, beside the distribution's
            *("msgspec>=0.18", "isal>=1.1", "perfetto"),  # the extra `trace`
            "jinja2>=3",  # the extra `report`
            "selenium; python_version >= '3.9'",  # drives Debian's Chromium: no node, no browser of its own
            "axe-core-python",  # accessibility of the page: axe's script and nothing else
            "ClusterShell>=1.9",  # the extra `cluster`
            *("prometheus_client>=0.20", "tomli>=2; python_version < '3.11'"),  # the extra `service`
            "pyyaml",  # manifests of docs/deploy, read by a test
            "mpi4py",  # ranks of the live matrix under Open MPI
            "nvidia-nccl-cu13==2.28.9",  # a real libnccl with its debug information; needs no GPU to be mapped
        ],
        "bench": ["ray", "pyzmq"],  # actors and sockets of the live matrix; ray is large
        "mutate": ["mutmut==3.8.1; python_version >= '3.10'"],  # scripts/mutate
    },
    entry_points={"console_scripts": ["gdbext = gdbext.__main__:main"]},
    classifiers=[
        "License :: OSI Approved :: Apache Software License",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3",
        "Topic :: Software Development :: Debuggers",
    ],
)
