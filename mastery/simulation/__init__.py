"""Synthetic learners: try a curriculum and a program in seconds, without training anything.

order      the order that the learner needs, if it is not the curriculum's
simulate   the learners, and a comparison of programs
page       the HTML page of `mastery simulate --out`
prompts    a synthetic language model that is trained on prompts, and a comparison of programs
"""
