"""Random curricula, programs and histories for Hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from mastery import Curriculum, Recipe, Task


@st.composite
def curricula(draw, sizes=(1, 2, 3, 6, 9)):
    n = draw(st.sampled_from(sizes))
    names = draw(st.permutations([f"t{i}" for i in range(n)]))
    pairs = [(i, j) for j in range(n) for i in range(j)]
    edges = draw(st.sets(st.sampled_from(pairs))) if pairs else set()
    tasks = []
    for j in range(n):
        minimum = draw(st.sampled_from([-1.0, 0.0, 0.25]))
        span = draw(st.sampled_from([0.5, 1.0, 2.0]))
        after = tuple(names[i] for i in range(j) if (i, j) in edges)
        tasks.append(Task(names[j], minimum, minimum + span, after))
    return Curriculum(draw(st.permutations(tasks)))


@st.composite
def histories(draw, n, most=40):
    """A list of time-steps, each {task: return}; returns are whole 16ths, exact in float32."""
    steps = draw(st.integers(0, most))
    seed = draw(st.integers(0, 2**32 - 1))
    share = draw(st.sampled_from([0.1, 0.5, 1.0]))
    trend = draw(st.sampled_from([0.0, 0.5]))
    import numpy as np

    random = np.random.default_rng(seed)
    return [
        {
            c: float(round(16 * (trend * t / most)) + random.integers(-8, 25)) / 16
            for c in range(n)
            if random.random() < share
        }
        for t in range(steps)
    ]


unit = st.sampled_from([0.0, 0.05, 0.2, 0.6, 1.0])


@st.composite
def recipes(draw, windows=(2, 10)):
    progress = draw(st.sampled_from(["linreg", "window", "online", "competence"]))
    attention = draw(st.sampled_from(["mastering-rate", "learning-progress"]))
    distribution = draw(st.sampled_from(["prop", "gprop", "boltzmann"]))
    settings = {"window": draw(st.sampled_from(windows))}
    if progress in ("window", "online"):
        settings["alpha"] = draw(st.sampled_from([0.1, 0.5, 1.0]))
    if attention == "mastering-rate":
        settings |= {"delta": draw(unit), "gamma_pred": draw(unit), "gamma_succ": draw(unit)}
        settings["power"] = draw(st.sampled_from([0.0, 1.0, 6.0]))
    if distribution == "gprop":
        settings["epsilon"] = draw(unit)
    if distribution == "boltzmann":
        settings["temperature"] = draw(st.sampled_from([0.25, 1.0]))
    return Recipe.parse(
        "mr", progress=progress, attention=attention, distribution=distribution, **settings
    )
