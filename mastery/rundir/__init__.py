"""The run directory: everything that is kept of a training job. Reading it needs no JAX.

store         metrics, checkpoints, and who is using it
database      run.db, to read from
results       the curves as arrays, and a list of jobs
export        as CSV, as Parquet, or as event files
event_files   TensorBoard's format
"""
