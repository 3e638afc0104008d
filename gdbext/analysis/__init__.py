"""Snapshot and knowledge to judgement: pure functions."""
