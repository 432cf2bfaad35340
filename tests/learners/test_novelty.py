"""What is new in an episode, against sets of Python."""

from __future__ import annotations

import jax
import numpy as np

from mastery.learners import novelty

look = jax.jit(novelty.look)


def views(rng, n, kinds=70):
    return rng.integers(0, kinds, size=(n, 7, 7)).astype(np.uint8)


def test_a_view_is_new_once_in_an_episode():
    rng = np.random.default_rng(0)
    some = views(rng, 12)
    visited, shown = novelty.nothing(3), [set(), set(), set()]
    missed = 0
    for t in range(300):
        starts = rng.random(3) < (0.05 if t else 1)
        which = rng.integers(len(some), size=3)
        visited, new = look(visited, starts, some[which])
        for e in range(3):
            shown[e] = set() if starts[e] else shown[e]
            if new[e]:
                assert which[e] not in shown[e]  # never twice
            elif which[e] not in shown[e]:
                missed += 1  # another view had its place
            shown[e].add(which[e])
    assert missed == 0  # these twelve have twelve places


def test_views_that_differ_in_one_cell_have_places_of_their_own():
    """Two of them meet about once in 1024 times; 49 · 69 pairs here."""
    rng = np.random.default_rng(1)
    one = views(rng, 1)[0]
    others = np.repeat(one[None], 49 * 69, 0)
    for i in range(49):
        for k in range(69):
            cell = divmod(i, 7)
            others[i * 69 + k][cell] = (one[cell] + 1 + k) % 70
    first, _ = look(
        novelty.nothing(len(others)), np.ones(len(others), bool), np.broadcast_to(one, others.shape)
    )
    _, new = look(first, np.zeros(len(others), bool), others)
    assert (~np.asarray(new)).sum() <= 15  # 3.3 by chance


def test_an_episode_that_has_shown_much_knows_what_it_has_not_seen_by_chance_alone():
    rng = np.random.default_rng(2)
    visited, started = novelty.nothing(64), np.ones(64, bool)
    for _ in range(200):
        visited, _ = look(visited, started, views(rng, 64))
        started = np.zeros(64, bool)
    taken = np.asarray(visited).mean()
    assert abs(taken - (1 - np.exp(-200 / 1024))) < 0.02  # as many as random places
    _, new = look(visited, started, views(rng, 64))
    assert (~np.asarray(new)).mean() < 2.5 * taken
