"""One training job of many runs: programs × settings × seeds.

job       what is trained, as data
machine   the devices it is trained on, and how it uses the cores
loops/    one for each kind of learner; all runs of a job, chunk by chunk
train     a job from start to end, and on after an interruption
signals   Ctrl-C, while there is something to save
agent     load_agent(): the trained policy
"""
