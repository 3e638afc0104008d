"""A program started with its engine's checks, profiler or dumps, or under compute-sanitizer."""

from gdbext.commands.declaration import ALL_THE_REST, Argument, Command

COMMANDS = (
    Command(
        "Start a program with the engine's own checks, profiler or dumps switched on, or under compute-sanitizer",
        gdbext="run",
        statuses="that of the program that it starts, 2 wrong usage; with --sanitizer 0 no error reported, 1 errors, "
        "3 the reports do not decide, 4 no report was written",
        run="gdbext.cli.run",
        arguments=(
            Argument("--check", "set the variables that make the engine check every layer", flag=True),
            Argument(
                "--profile",
                "start the profiler at once or, where the engine can, prepare it for `gdbext profile start`",
                flag=True,
            ),
            Argument(
                "--dump",
                "write compiled graphs, or the tensors of each layer",
                "graphs|tensors",
                choices=("graphs", "tensors"),
            ),
            Argument(
                "--sanitizer",
                "run it under compute-sanitizer and diagnose its reports (memcheck, if no =TOOL is given)",
                "memcheck|racecheck|initcheck|synccheck",
                choices=("memcheck", "racecheck", "initcheck", "synccheck"),
                nargs="?",
                bare="memcheck",
            ),
            Argument("--kernel", "let the sanitizer check only kernels whose name matches REGEX", "REGEX"),
            Argument("--dry-run", "print what would be run, and run nothing", flag=True),
            Argument("--engine", "use the settings of this engine (default: by COMMAND)", "NAME", completes="engine"),
            Argument("--dir", "folder for the files (default: a new one here)", "DIR"),
            Argument("--steps", "profile these steps (100-150)", "A-B"),
            Argument(
                "--set",
                "set a key of MindSpore's dump configuration, or an option of the sanitizer",
                "NAME=VALUE",
                many=True,
            ),
            Argument("--quiet", "do not print which variables are set", flag=True, short="-q"),
            Argument("program", "the program and its arguments", "-- COMMAND", nargs=ALL_THE_REST),
        ),
        answers=False,
    ),
)
