"""A program started with its engine's checks, profiler or dumps."""

from gdbext.commands.declaration import ALL_THE_REST, Argument, Command

COMMANDS = (
    Command(
        "Start a program with the engine's own checks, profiler or dumps switched on",
        gdbext="run",
        statuses="that of the program it starts, 2 wrong usage",
        run="gdbext.cli.run",
        arguments=(
            Argument("--check", "set the variables that make the engine check every layer", flag=True),
            Argument("--profile", "profile from the start, or make profiling possible", flag=True),
            Argument(
                "--dump",
                "write compiled graphs, or the tensors of each layer",
                "graphs|tensors",
                choices=("graphs", "tensors"),
            ),
            Argument("--engine", "use the settings of this engine (default: by COMMAND)", "NAME", completes="engine"),
            Argument("--dir", "folder for the files (default: a new one here)", "DIR"),
            Argument("--steps", "profile these steps (100-150)", "A-B"),
            Argument("--set", "a key of MindSpore's dump file", "NAME=VALUE", many=True),
            Argument("--quiet", "do not print which variables are set", flag=True, short="-q"),
            Argument("program", "the program and its arguments", "-- COMMAND", nargs=ALL_THE_REST),
        ),
        answers=False,
    ),
)
