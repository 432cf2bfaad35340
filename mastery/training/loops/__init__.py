"""What trains the runs of a job, chunk by chunk.

loop                 what every loop does
compiled             teacher and learner compiled: all runs at once on a GPU, in turn on a CPU
minigrid             a PPO agent in our own MiniGrid
addition             an LSTM that learns to add
gymnasium            a PPO agent in any Gymnasium environments, on the CPU:
gymnasium_tasks      makes them, and
gymnasium_episodes   plays in them
named_arrays         what a loop carries, as named arrays for a checkpoint
"""
