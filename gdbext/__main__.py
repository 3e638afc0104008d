"""The `gdbext` command, also as `python3 -m gdbext` from a clone; gdbext.pyz: collect/hosts/one_file_main.py."""

import os
import sys


def main() -> int:
    """Run it; what goes wrong while its modules are loaded is one line too."""
    try:
        # Here, so that a Ctrl-C in the middle of it is caught.
        from gdbext.collect.ctrl_c_while_loading import interrupts_wait

        with interrupts_wait():
            if "_ARGCOMPLETE" in os.environ:  # a shell asks what TAB may complete to
                from gdbext.cli.completion import complete

                complete()
            from gdbext.cli.main import main as run
        return run()
    except KeyboardInterrupt:
        return 130
    except (OSError, MemoryError) as error:
        sys.stderr.write(f"gdbext: cannot load its modules: {error or 'out of memory'}; raise the limit (ulimit -a)\n")
        return 4


if __name__ == "__main__":
    sys.exit(main())
