"""Completion in the shell."""

from gdbext.commands.declaration import Argument, Command

COMMANDS = (
    Command(
        "Print the shell code that completes gdbext's commands, options and values on TAB",
        gdbext="completion",
        statuses="0 done, 2 wrong usage, 130 interrupted",
        run="gdbext.cli.completion",
        arguments=(Argument("shell", "bash, zsh or fish", "bash|zsh|fish", choices=("bash", "zsh", "fish")),),
        shell_examples=(
            "source <(gdbext completion bash)     # in ~/.bashrc",
            "source <(gdbext completion zsh)      # in ~/.zshrc, after compinit",
            "gdbext completion fish | source      # in ~/.config/fish/config.fish",
        ),
        answers=False,
    ),
)
