"""The run directory: all files of a training job. Reading it needs no JAX.

store         writes metrics and checkpoints, and locks the directory
database      reads run.db
metrics       the data that a training loop reports
machine       hardware and package versions
results       the curves as arrays, and a list of jobs
export        curves as CSV, Parquet or TensorBoard event files
event_files   TensorBoard's file format
"""
