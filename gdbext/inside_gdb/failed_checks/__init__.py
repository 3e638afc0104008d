"""Stops where a CUDA check fails."""
