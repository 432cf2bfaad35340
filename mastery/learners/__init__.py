"""Learners that come with mastery: a recurrent PPO agent for MiniGrid."""
