"""What gdb sources: `source /path/to/gdbext/init.py`. `gdbext gdbinit` prints that path.

Finds the package and its pure-Python dependencies although gdb's Python is not the shell's, checks the versions,
registers the commands once. Prints nothing and changes no setting of gdb.
"""

# No annotations, no f-strings: this file alone must be readable by Pythons that are too old, to say so.
# ruff: noqa: UP031
# mypy: ignore-errors
import importlib.machinery
import os
import re
import sys

import gdb

GDB_FLOOR = (10, 1)  # Debian 11; cuda-gdb 11.6 is 10.2
PYTHON_FLOOR = (3, 8)  # the oldest Python such a gdb is built with
DEPENDENCIES = ("tabulate", "pygments", "elftools")
OPTIONAL = ("jinja2", "markupsafe")  # for HTML pages; beside the others, or not at all
LIBRARY_ONLY = "gdbext_library_only"  # set by a batch gdb of ours: nobody types commands there
_ASK_SECONDS = 5


class DependencyFinder:
    """Lets `import` find our dependencies, and nothing else, outside of gdb's own search path.

    It stands last on `sys.meta_path`: whatever gdb's Python has itself wins. The folders are looked at when an
    import has failed everywhere else, so a gdb that has the packages pays nothing.
    """

    def __init__(self, package_parent):
        self.package_parent = package_parent
        self._places = None

    def find_spec(self, name, path=None, target=None):
        if name not in DEPENDENCIES and name not in OPTIONAL:
            return None
        if self._places is None:
            self._places = [place for place in self._known_places() if _holds_all(place)] or self._ask_python()
        return importlib.machinery.PathFinder.find_spec(name, self._places)

    def _known_places(self):
        for place in os.environ.get("GDBEXT_SITE", "").split(os.pathsep):
            if place:
                yield os.path.expanduser(place)
        yield self.package_parent  # the same site-packages, when installed by pip
        from glob import glob  # here and not above, as `subprocess` below

        pattern = os.path.join("lib", "python3*", "site-packages")
        for prefix in (os.path.join(self.package_parent, ".venv"), os.path.expanduser("~/.local")):
            for place in sorted(glob(os.path.join(prefix, pattern)), reverse=True):
                yield place

    @staticmethod
    def _ask_python():
        """The folders of the shell's python3, the one whose pip the user most likely used."""
        import subprocess  # here: what cannot be loaded at the top of this file is a traceback

        # Nothing comes from the present folder, which may be a rank's: neither the program nor what it imports.
        from gdbext.discovery.proc.programs import find

        code = (
            "import sys; sys.path = [*filter(None, sys.path)]; import %s; print(*(m.__file__ for m in (%s)), sep='\\n')"
        )
        code %= (", ".join(DEPENDENCIES), ", ".join(DEPENDENCIES))
        python = find("python3").path
        if python is None:
            return []
        try:
            answer = subprocess.run(
                [python, "-c", code],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=_ASK_SECONDS,
                env={key: value for key, value in os.environ.items() if not key.startswith("PYTHON")},
            )
        except (OSError, subprocess.TimeoutExpired):
            return []
        files = answer.stdout.decode("utf-8", "replace").split("\n")
        packages = [os.path.dirname(file) if "__init__" in file else file for file in files if file]
        return sorted({os.path.dirname(package) for package in packages})


def _holds_all(place):
    return all(
        os.path.isdir(os.path.join(place, name)) or os.path.isfile(os.path.join(place, name + ".py"))
        for name in DEPENDENCIES
    )


def too_old():
    """Why this gdb cannot run the extension, or None."""
    found = re.search(r"(\d+)\.(\d+)", gdb.VERSION)
    if found and (int(found.group(1)), int(found.group(2))) < GDB_FLOOR:
        return "gdbext needs gdb %d.%d or newer; this is %s" % (GDB_FLOOR + (gdb.VERSION,))
    if sys.version_info[:2] < PYTHON_FLOOR:
        return "gdbext needs a gdb with Python %d.%d or newer; this one has %d.%d" % (
            PYTHON_FLOOR + tuple(sys.version_info[:2])
        )
    if gdb.convenience_variable("gdbext_nothing") is not None:  # Debian's nvidia-cuda-gdb 11.8, linked to libpython
        return "gdbext cannot run in this gdb: it has a None of its own beside Python's; use NVIDIA's cuda-gdb, or gdb"
    return None


def load(file):
    """Make the package importable and register its commands; the second time it does nothing.

    Returns why it cannot, or None.
    """
    problem = too_old()
    if problem:
        return problem
    package = os.path.dirname(os.path.realpath(os.path.expanduser(file)))
    loaded = sys.modules.get("gdbext")
    if loaded is not None and os.path.dirname(os.path.realpath(loaded.__file__)) != package:
        return "gdbext is already loaded from %s; start a new gdb for %s" % (loaded.__file__, package)
    parent = os.path.dirname(package)
    if loaded is None:
        if parent not in sys.path:
            sys.path.append(parent)
        sys.meta_path.append(DependencyFinder(parent))
    if gdb.convenience_variable(LIBRARY_ONLY) is not None:
        return None
    from gdbext.inside_gdb.typed_commands import command_registration
    from gdbext.pretty_printers import by_type

    command_registration.register()
    by_type.register()
    return None


try:
    _problem = load(__file__)
except (KeyboardInterrupt, MemoryError, OSError) as error:  # Ctrl-C, limits
    _problem = "gdbext could not be loaded (%s); source it again" % (str(error) or type(error).__name__)
if _problem:  # raised from a sourced file, it would print a traceback
    gdb.write(_problem + "\n", gdb.STDERR)
