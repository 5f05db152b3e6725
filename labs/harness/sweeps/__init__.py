"""Sweeps: a program killed at every point of a kind, finished each time, and judged."""
