"""The run directory: all files of a training job. Reading it needs no JAX.

writing       what every writer needs: a lock, transactions
store         writes rows, checkpoints and agents, and locks the directory
milestones    which agents are kept from earlier moments of training
part          writes the rows of a recorded run
parts         finds the runs of a recorded job
soundness     checks before a job is resumed
database      run.db: its tables, and every query that reads them
metrics       the data that a training loop reports
machine       hardware and package versions
curves        curves as arrays
side_by_side  the curves of recorded runs over the same frames
results       the curves as arrays, and a list of jobs
export        curves as CSV, Parquet or TensorBoard event files
event_files   TensorBoard's file format
"""
