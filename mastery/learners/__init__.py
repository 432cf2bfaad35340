"""What learns here: a recurrent PPO agent, and an LSTM that learns to add."""
