"""The run directory: all files of a training job. Reading it needs no JAX.

store         writes rows, checkpoints and agents
lock          one process trains in a directory at a time
milestones    which agents are kept from earlier moments of training
soundness     checks before a job is resumed
database      run.db: its tables, and every query that reads them
metrics       the data that a training loop reports
machine       hardware and package versions
results       the curves as arrays, and a list of jobs
export        curves as CSV, Parquet or TensorBoard event files
event_files   TensorBoard's file format
"""
