"""What calls of torch.distributed say of ranks: the group, and of a message the other side."""

GROUP, RANKS = "group", "ranks"
"""The name of a group, and its members' global ranks in the order of the group."""

NEW_GROUP = "group_name"
"""The name of a group that is being made: a number, counted by each rank for itself, where all ranks must make it."""

NAMES_OF_GROUPS, RANKS_OF_GROUPS = "_pg_names", "_pg_group_ranks"
"""Dictionaries of torch/distributed/distributed_c10d.py by group: its name; global rank -> rank in the group."""

TO, FROM = ("dst", "group_dst"), ("src", "group_src")
"""Arguments of messages: a global rank, or one of the group."""

LIST_OF_RANKS = r"\d{1,6}(,\d{1,6}){0,16383}$"
