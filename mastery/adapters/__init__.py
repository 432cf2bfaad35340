"""Adapters: use a teacher with other libraries.

gymnasium, stable_baselines3, torch, ray, rllib and trl each need the library of that name; trackers
needs none. The other modules support them: task_env makes the environments of tasks, sync_envs
steps many environments in one process, ledger collects returns until a time-step ends, and durable
keeps a shared teacher's updates on disk.
"""
