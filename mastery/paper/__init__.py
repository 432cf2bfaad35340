"""The paper's experiments and its claims, each as data; `mastery paper` runs and judges them.

experiments      what is trained: curricula, programs, seeds, frames
run              train them, or go on with them, in one folder
curves           what is kept of a job: small enough to be shipped, enough to redraw everything
configurations   the addition experiment's runs by estimator and converter
statistics       interquartile mean, improvement, intervals, time to a threshold
learned          shares of runs: the world of 2018 taken apart, and agents side by side
claims           what the paper says, and how it is judged from the curves
figures          pictures like the paper's
page             all of that as a page, and as the tables of docs/paper.md
data/            the curves of the full-size experiments
"""
