"""The agent's actions, with MiniGrid's numbers."""

LEFT, RIGHT, FORWARD, PICK_UP, DROP, TOGGLE, DONE = range(7)
ACTIONS = ("left", "right", "forward", "pick up", "drop", "toggle", "done")
