"""One training job of many runs: curricula × programs × seeds, kept in a directory.

job             what is to be trained, as data
loop            what both loops give: metrics and evaluations
minigrid_loop   teacher, environments and agent as one compiled program, for all runs at once
gymnasium_loop  the same for any Gymnasium environment, on the CPU
store           the run directory: metrics, checkpoints, who is using it
train           from begin to end, and on after an interruption
results         what came of it, as arrays
report          the same as a page; export: as CSV, Parquet or for TensorBoard
agent           load_agent(): the trained policy
"""
