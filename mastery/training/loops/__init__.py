"""Loops: each trains all runs of a job, chunk by chunk.

loop                 the interface of every loop
compiled             teacher and learner compiled: all runs at once on a GPU, in turn on a CPU
early                compiles functions in other threads, before they are called
traced               keeps on disk what was traced for a GPU
shared               several jobs in one compiled program
minigrid             a PPO agent in our own MiniGrid
addition             an LSTM that learns to add
reasoning            a transformer that learns from verifiable rewards, by GRPO
gymnasium            a PPO agent in any Gymnasium environments, stepped on the CPU
gymnasium_tasks      makes these environments and encodes their observations
gymnasium_episodes   plays episodes in them
named_arrays         a loop's carry as named arrays for a checkpoint
"""
