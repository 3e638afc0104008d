"""Answers in the forms of other tools and of chats: one table, one writer a file."""
