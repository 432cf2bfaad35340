"""GPU kernels of the PPO agent on MiniGrid's cells, where XLA's are slow.

calls     how kernels are called, and their number formats
vision    cells → x: three convolutions
memory    x → h: the LSTM over the frames of a segment
heads     h, x → logits and value
agent     all of them together, with their gradients
"""
