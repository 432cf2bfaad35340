"""The paper's experiments and claims, each as data; `mastery paper` runs and judges them.

experiments      what to train: curricula, programs, seeds, frames
run              train the experiments in one folder, or resume them
processes        train several jobs at the same time
curves           a job's thinned curves: small enough to ship, enough to redraw everything
configurations   the addition experiment's runs by estimator and converter
statistics       interquartile mean, improvement, intervals, time to a threshold
learned          shares of runs that learned: the world of 2018 taken apart, and agents compared
claims           what the paper says, and how the curves decide it
verdicts         whether a claim holds, what that rests on, and its mark
scorecard        the claims at a glance
figures          figures like the paper's
sections         tables and sections of the page
page             all of this as a page, and as the tables of docs/paper.md
interactive      the jobs on the page of `mastery report`
data/            the curves of the full-size experiments
"""
