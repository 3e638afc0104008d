"""What the real servers of all engines share: how one is started with a plugin, asked, brought to its fault, ended."""
