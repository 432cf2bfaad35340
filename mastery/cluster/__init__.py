"""Train a job in parts on a Ray cluster, into one folder on storage that all nodes share.

train.py      `train` and `resume`: submit the parts, show their progress, forward Ctrl-C
connect.py    connect to a cluster, or say quickly why not
nodes.py      the cluster's nodes: how many parts they can train, and whether they are fit to
place.py      what a node must have: the same versions, and the job's folder
work.py       what runs on a node: one part
messages.py   the lines and the progress that parts send

Ray decides where a part runs and when. If its node dies, Ray runs it again elsewhere, and there it
resumes from its last checkpoint.
"""
