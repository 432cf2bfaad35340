"""Hypothesis draws the same examples in every run, so that a failure can be repeated."""

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, print_blob=True)
settings.load_profile("repeatable")
