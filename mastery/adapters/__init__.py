"""Adapters: use a teacher with other libraries.

gymnasium, stable_baselines3, torch, ray, rllib and trl each need the library of that name; trackers
needs none. The other modules support these: task_env makes a task's environment, sync_envs steps
many environments in one process, ledger collects returns until a time-step ends, durable keeps a
shared teacher's updates on disk.
"""
