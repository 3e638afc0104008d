"""A job followed by polls, and one look before a restart."""
