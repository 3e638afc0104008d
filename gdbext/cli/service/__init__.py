"""`gdbext watch --service`: several jobs followed day and night, and whoever is to know is told."""
