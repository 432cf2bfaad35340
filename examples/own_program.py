"""A program of one's own: an object with init, observe and distribution, checked and then used.

python examples/own_program.py
mastery simulate key-corridor --program examples/own_program.py:LeastRecent
mastery train key-corridor --program examples/own_program.py:LeastRecent:sharpness=2,mr
"""

import mastery


class LeastRecent:
    """Trains on what has not been seen for the longest time, mostly."""

    def __init__(self, sharpness=0.5):
        self.sharpness = sharpness

    def init(self, noise):
        xp = noise.__array_namespace__()  # NumPy or JAX, as it is given
        return {"age": xp.zeros_like(noise[0])}

    def observe(self, state, evidence, noise):
        return {"age": (state["age"] + 1) * ~evidence.seen}

    def distribution(self, state):
        xp = state["age"].__array_namespace__()
        weight = xp.exp(self.sharpness * (state["age"] - state["age"].max()))
        return weight / weight.sum()


if __name__ == "__main__":
    curriculum = mastery.Curriculum.load("key-corridor")
    for line in mastery.check_program(LeastRecent(), curriculum):
        print("right:", line)
    teacher = mastery.Teacher(curriculum, LeastRecent(), seed=0)
    for _ in range(12):
        task = teacher.sample()
        teacher.update({task: 0.0})
        print(task, end=" ")
    print()
