"""`python3 -m gdbext`: the same as the `gdbext` command, also from a clone that nothing was installed from."""

import sys

try:
    from gdbext.frontend.cli import main
except ModuleNotFoundError as error:
    if error.name not in ("tabulate", "pygments", "elftools"):
        raise
    needed = "tabulate pygments pyelftools"
    sys.stderr.write(f"gdbext: the package {error.name} is missing; python3 -m pip install {needed}\n")
    sys.exit(4)

sys.exit(main())
