"""Which prompts of a task come next: passes, weights, and nothing is left out for good."""

from collections import Counter

import numpy as np
import pytest

from mastery import Curriculum, Prompts, Task, Teacher

ONE = Curriculum([Task("a")])
TWO = Curriculum([Task("a"), Task("b")])


def make(n, curriculum=ONE, labels=None, **settings):
    names = curriculum.names
    labels = labels or [names[i % len(names)] for i in range(n)]
    return Prompts(range(n), Teacher(curriculum, "uniform", seed=0), labels, seed=0, **settings)


def play(prompts, n, rate, random, group=8):
    """Draw n prompts and report groups that pass with the given rates by id."""
    batch = prompts.next(n)
    rewards = random.random((n, group)) < np.asarray(rate)[batch.ids][:, None]
    prompts.report(batch, rewards.astype(float))
    return batch.ids.tolist()


def test_even_gives_every_prompt_once_in_a_pass():
    prompts = make(20, within="even")
    random = np.random.default_rng(0)
    passes = [[i for _ in range(4) for i in play(prompts, 5, [1.0] * 20, random)] for _ in range(3)]
    for found in passes:
        assert sorted(found) == list(range(20))
    assert passes[0] != passes[1]
    assert passes[0] != list(range(20))
    waits = make(3, within="even", update_every=None)
    first = waits.next(3)  # a whole pass, none of which is reported
    waits.report(first.ids[1:2], [[1.0]], tickets=first.tickets[1:2])
    assert waits.next(1).ids == first.ids[1]  # the only one that is free


def test_groups_that_were_all_alike_are_counted_while_they_follow_each_other():
    prompts = make(1, update_every=None)
    for rewards, wanted in (([0, 0], 1), ([1, 1], 2), ([1, 1, 1], 3), ([1], 3), ([0, 1], 0)):
        prompts.report(prompts.next(1), [rewards])
        assert prompts.explain().alike.tolist() == [wanted]


def test_known_prompts_are_rare_but_never_left_out_for_good():
    """Prompts 0 to 9 always fail, 10 to 19 always pass, 20 to 29 do either."""
    rate = [0.0] * 10 + [1.0] * 10 + [0.5] * 10
    prompts, random = make(30), np.random.default_rng(0)
    for _ in range(60):
        play(prompts, 5, rate, random)
    counts = Counter(i for _ in range(600) for i in play(prompts, 5, rate, random))
    settled = [counts[i] for i in range(20)]
    useful = [counts[i] for i in range(20, 30)]
    assert min(settled) > 0
    assert max(settled) < 0.5 * min(useful)


def test_a_prompt_that_waits_is_not_drawn_again_while_others_are_free():
    prompts = make(12, update_every=None)
    first = prompts.next(5).ids.tolist()
    second = prompts.next(7).ids.tolist()
    assert sorted(first + second) == list(range(12))
    assert len(prompts.next(12)) == 12  # all wait: they come again


def slow_probabilities(prompts, even):
    """Of each prompt of the only task, from first principles, without NumPy."""
    weights, turns = [], []
    for row in prompts.explain():
        p, free = row["estimate"], row["waiting"] == 0
        weights.append((p * (1 - p)) ** 3 if free else 0.0)
        turns.append(1 / 2 ** min(row["alike"], 3) if free else 0.0)
    return [
        (1 - even) * w / sum(weights) + even * t / sum(turns)
        for w, t in zip(weights, turns, strict=True)
    ]


def test_draws_have_the_explained_probabilities():
    rate = [0.0, 0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0, 1.0, 1.0]
    prompts, random = make(10, even=0.4, update_every=None), np.random.default_rng(1)
    for _ in range(12):
        play(prompts, 10, rate, random)
    wanted = slow_probabilities(prompts, 0.4)
    assert prompts.explain().probability == pytest.approx(wanted, rel=1e-9)
    state, counts, n = prompts.state_dict(), np.zeros(10), 4000
    for _ in range(n):  # one draw each from the same knowledge, the pass going on
        state["random"] = prompts._random.bit_generator.state
        arrays, now = state["arrays"], prompts._pool.state()
        for name in ("turn", "at", "order"):
            arrays[f"pool.{name}"] = now[name]
        prompts.load_state_dict(state)
        counts[prompts.next(1).ids] += 1
    error = np.sqrt(np.array(wanted) * (1 - np.array(wanted)) / n)
    assert np.all(np.abs(counts / n - wanted) < 4 * error + 0.01)


def test_tasks_get_the_teachers_shares():
    prompts = make(200, TWO)
    counts = Counter(task for _ in range(50) for task in prompts.next(3).tasks)
    assert sum(counts.values()) == 150
    assert abs(counts["a"] - 75) <= 25


def test_the_rate_of_a_task_is_that_of_all_its_prompts():
    """Not of those that were chosen: half of them always pass, the rest at 0.4."""
    rate = np.array([1.0, 0.4] * 50)
    prompts, random = make(100), np.random.default_rng(2)
    drawn = Counter()
    found = []
    for step in range(150):
        drawn.update(play(prompts, 16, rate, random))
        if step >= 50:
            found.append(prompts.explain([0]).rate[0])
    chosen = sum(rate[i] * n for i, n in drawn.items()) / sum(drawn.values())
    assert chosen < 0.6
    assert np.mean(found) == pytest.approx(0.7, abs=0.05)
