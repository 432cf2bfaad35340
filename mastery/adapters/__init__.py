"""A teacher in other libraries.

gymnasium, stable_baselines3, torch, ray, rllib and trl each need the library they are named after;
trackers needs none. The others are parts of these: environments and task_env make a task's
environment, sync_envs steps many of them in one process, ledger gathers returns until a time-step
is over, durable keeps a shared teacher's updates on disk.
"""
