"""One teacher for many rollout workers, with Ray.

    python examples/ray_workers.py

Each worker is a process, on this machine or another of the cluster. Here the learner gets better at
a task by playing it, and the workers play at the same time; then the teacher is killed, and goes on
where it was. Needs `pip install 'mastery-curriculum[ray]'`.
"""

import tempfile

import numpy as np
import ray

from mastery import Curriculum, Teacher
from mastery.adapters.ray import RemoteTeacher

CURRICULUM = Curriculum.load("key-corridor")


@ray.remote
def rollouts(episodes, seed):
    random = np.random.default_rng(seed)
    skill = dict.fromkeys(CURRICULUM.names, 0.0)
    with RemoteTeacher(seed=seed) as teacher:  # at the end, waits until all is acknowledged
        for _ in range(episodes):
            task = teacher.sample()  # does not wait
            skill[task] += 0.002 * all(skill[name] > 0.3 for name in CURRICULUM[task].after)
            teacher.update({task: min(1.0, skill[task]) * random.random()})  # nor does this
    return teacher.acknowledged


if __name__ == "__main__":
    ray.init(num_cpus=2, log_to_driver=False, include_dashboard=False)
    with tempfile.TemporaryDirectory() as folder:  # in earnest: one that all machines share
        teacher = RemoteTeacher.start(Teacher(CURRICULUM, "mr", seed=0), folder)
        print("acknowledged:", ray.get([rollouts.remote(1000, seed) for seed in range(2)]))
        ray.kill(teacher.actor, no_restart=False)  # as if its process had died
        print("acknowledged:", ray.get([rollouts.remote(1000, seed) for seed in range(2)]))
        print("updates the teacher has:", teacher.time_step)
        print(teacher.explain())
        teacher.stop()
    ray.shutdown()
