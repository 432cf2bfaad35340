"""A Ray cluster of several nodes on this machine, in a process of its own.

Each line of its input is the environment of a node to add, as JSON; it answers with the cluster's
address and the number of the node's main process. It ends with its input.
"""

import json
import sys
import warnings

warnings.simplefilter("ignore")
from ray.cluster_utils import Cluster  # noqa: E402

answers, sys.stdout = sys.stdout, sys.stderr
cluster = Cluster()
try:
    for line in sys.stdin:
        node = cluster.add_node(
            num_cpus=1,
            object_store_memory=80 * 2**20,
            include_dashboard=False,
            env_vars=json.loads(line),
        )
        raylet = node.all_processes["raylet"][0].process.pid
        print(json.dumps([cluster.address, raylet]), file=answers, flush=True)
finally:
    cluster.shutdown()
