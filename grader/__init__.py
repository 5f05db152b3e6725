"""Scores submissions; for now it holds the tests of the kit itself."""
