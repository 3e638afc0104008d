"""`python3 -m gdbext`: the same as the `gdbext` command."""

import sys

from gdbext.frontend.cli import main

sys.exit(main())
