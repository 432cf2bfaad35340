"""Synthetic learners: try a curriculum and a program in seconds, without training anything.

simulate   the learners, and a comparison of programs
page       the HTML page of `mastery simulate --out`
"""
