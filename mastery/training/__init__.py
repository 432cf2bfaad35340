"""Train a job of many runs: programs × settings × seeds.

job       what to train, as data
devices   the GPU, or the CPU cores as JAX devices
loops/    one loop per kind of learner; each trains all runs of a job, chunk by chunk
train     train a job from start to end, or resume it
signals   save before exiting on Ctrl-C or SIGTERM
agent     load_agent(): the trained policy
playing   let it play in Gymnasium
"""
