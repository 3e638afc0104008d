"""How ranks are started: launchers, their variables and options."""
