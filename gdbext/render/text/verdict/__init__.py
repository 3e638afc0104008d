"""A verdict as text: answer, chain, table, stacks."""
