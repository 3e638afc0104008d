"""Jobs followed by polls, one look before a restart, and the service that tells others."""
