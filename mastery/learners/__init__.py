"""The learners: a recurrent PPO agent, and an LSTM that learns to add."""
