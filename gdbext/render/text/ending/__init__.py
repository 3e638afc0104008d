"""The last lines of an output: the answer in so few that it stays on the screen."""
