"""A job started for debugging."""

from gdbext.commands.declaration import ALL_THE_REST, Argument, Command

COMMANDS = (
    Command(
        "Start a job with a log for each rank, and the pdb prompt of one rank in this terminal",
        gdbext="launch",
        statuses="that of the program that it starts, 2 wrong usage",
        run="gdbext.cli.launch",
        arguments=(
            Argument(
                "--rank",
                "the rank that stops where its code calls breakpoint_() of gdbext.rankpdb; the others wait "
                "(default: 0; sets RANK_TO_DEBUG)",
                "N",
                int,
            ),
            Argument("--logs", "folder for the logs (default: a new one here)", "DIR"),
            Argument("words", "torchrun, msrun, mpirun, ...", "-- COMMAND", nargs=ALL_THE_REST),
        ),
        answers=False,
    ),
)
