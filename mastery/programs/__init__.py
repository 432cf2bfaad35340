"""Programs: what to train on next, given the returns so far."""
