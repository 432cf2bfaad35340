"""Edge cases of the rules, each played in the real package and by the engine."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from episodes import differences, host, play

from mastery import MasteryError
from mastery.minigrid.actions import DONE, DROP, FORWARD, LEFT, PICK_UP, RIGHT, TOGGLE
from mastery.minigrid.cells import (
    BALL,
    BLUE,
    BOX,
    BOX_WITH_KEY,
    CLOSED,
    DECODED,
    EMPTY_CELL,
    GREEN,
    GREY,
    KEY,
    LOCKED,
    OPEN,
    RED,
    WALL_CELL,
    YELLOW,
)
from mastery.minigrid.exchange import to_package
from mastery.minigrid.grid import pack, unpack
from mastery.minigrid.levels import generate
from mastery.minigrid.rules import MINIGRID_REWARD, PAPER_REWARD, act
from mastery.minigrid.state import Level, State, start
from mastery.minigrid.tasks import NAMES, TASKS
from mastery.minigrid.vision import observe

DOOR = (5, 2)  # in the wall between the two rooms
BEFORE = (4, 2)  # the cell to its left


def two_rooms(things: dict[tuple[int, int], int], agent=BEFORE, direction=0, task="UnlockPickup"):
    """A map of two rooms with a target in the right one, and these things besides."""
    number = NAMES.index(task)
    target = {"door": OPEN << 3 | RED, "box": BOX << 3 | GREEN, "ball": BALL << 3 | BLUE}
    cells = np.full((16, 16), WALL_CELL, np.uint8)
    cells[1:5, 1:5] = cells[1:5, 6:10] = EMPTY_CELL
    goal = target[TASKS[number].goal]
    if goal >> 3 != OPEN:
        cells[4, 9] = goal
    for (x, y), cell in things.items():
        cells[y, x] = cell
    x, y = agent
    return Level(pack(cells), jnp.int32(16 * y + x), jnp.int32(direction), jnp.uint8(goal), number)


def run(level: Level | State, actions: list[int], reward: int = MINIGRID_REWARD):
    """Play in both, see that nothing differs, and give the engine's last state and outcome."""
    script = iter(actions)
    env = to_package(level)
    state = level if isinstance(level, State) else start(level)
    segments = play(env, lambda env: next(script), limit=len(actions))
    assert differences(segments) == (len(actions), 0)
    for action in actions:
        state, outcome = act(state, jnp.int32(action), reward)
    return state, outcome


def cell_at(state: State, x: int, y: int) -> int:
    return int(unpack(state.grid)[y, x])


LOCKED_RED, CLOSED_RED, OPEN_RED = LOCKED << 3 | RED, CLOSED << 3 | RED, OPEN << 3 | RED
RED_KEY, BLUE_KEY = KEY << 3 | RED, KEY << 3 | BLUE


def test_the_right_key_opens_a_locked_door_and_is_kept():
    level = two_rooms({DOOR: LOCKED_RED, (4, 1): RED_KEY}, direction=3)
    state, _ = run(level, [PICK_UP, RIGHT, TOGGLE])
    assert cell_at(state, *DOOR) == OPEN_RED
    assert state.carrying == RED_KEY


def test_a_door_that_was_unlocked_closes_and_opens_without_its_key():
    level = two_rooms({DOOR: LOCKED_RED, (4, 1): RED_KEY}, direction=3)
    state, _ = run(level, [PICK_UP, RIGHT, TOGGLE, TOGGLE])
    assert cell_at(state, *DOOR) == CLOSED_RED
    state, _ = run(level, [PICK_UP, RIGHT, TOGGLE, TOGGLE, LEFT, DROP, RIGHT, TOGGLE])
    assert cell_at(state, *DOOR) == OPEN_RED
    assert state.carrying == EMPTY_CELL


def test_the_wrong_key_and_an_empty_hand_do_nothing_to_a_locked_door():
    level = two_rooms({DOOR: LOCKED_RED, (4, 1): BLUE_KEY}, direction=3)
    state, _ = run(level, [PICK_UP, RIGHT, TOGGLE])
    assert cell_at(state, *DOOR) == LOCKED_RED
    state, _ = run(level, [RIGHT, TOGGLE, FORWARD])
    assert cell_at(state, *DOOR) == LOCKED_RED
    assert state.agent == 16 * 2 + 4


def test_a_ball_of_the_doors_colour_is_no_key():
    level = two_rooms({DOOR: LOCKED_RED, (4, 1): BALL << 3 | RED}, direction=3)
    state, _ = run(level, [PICK_UP, RIGHT, TOGGLE])
    assert cell_at(state, *DOOR) == LOCKED_RED


def test_a_box_gives_way_to_its_key_and_an_empty_box_to_nothing():
    hidden = (BOX_WITH_KEY + YELLOW) << 3 | GREY
    state, _ = run(two_rooms({(4, 1): hidden}, direction=3), [TOGGLE])
    assert cell_at(state, 4, 1) == KEY << 3 | YELLOW
    state, _ = run(two_rooms({(4, 1): BOX << 3 | GREY}, direction=3), [TOGGLE])
    assert cell_at(state, 4, 1) == EMPTY_CELL


def test_the_target_box_is_destroyed_by_a_toggle_and_that_is_no_success():
    level = two_rooms({}, agent=(8, 4))
    state, outcome = run(level, [TOGGLE, PICK_UP])
    assert cell_at(state, 9, 4) == EMPTY_CELL
    assert not outcome.terminated


def test_a_box_is_carried_and_dropped_with_its_key_inside():
    hidden = (BOX_WITH_KEY + YELLOW) << 3 | GREY
    state, _ = run(two_rooms({(4, 1): hidden}, direction=3), [PICK_UP, LEFT, DROP])
    assert cell_at(state, 3, 2) == hidden
    state, _ = run(two_rooms({(4, 1): hidden}, direction=3), [PICK_UP, LEFT, DROP, TOGGLE])
    assert cell_at(state, 3, 2) == KEY << 3 | YELLOW


def test_hands_hold_one_thing():
    level = two_rooms({(4, 1): RED_KEY, (3, 2): BLUE_KEY}, direction=3)
    state, _ = run(level, [PICK_UP, LEFT, PICK_UP])
    assert state.carrying == RED_KEY
    assert cell_at(state, 3, 2) == BLUE_KEY


@pytest.mark.parametrize("ahead", [WALL_CELL, OPEN_RED, CLOSED_RED, BLUE_KEY, BOX << 3 | RED])
def test_nothing_is_dropped_where_something_is(ahead):
    place = DOOR if ahead in (OPEN_RED, CLOSED_RED, WALL_CELL) else (3, 2)
    level = two_rooms({(4, 1): RED_KEY, place: ahead}, direction=3)
    state, _ = run(level, [PICK_UP, RIGHT if place == DOOR else LEFT, DROP])
    assert state.carrying == RED_KEY
    assert cell_at(state, *place) == ahead


def test_dropping_nothing_and_picking_up_nothing_do_nothing():
    level = two_rooms({})
    state, _ = run(level, [DROP, PICK_UP, LEFT, DROP, PICK_UP, TOGGLE])
    assert np.array_equal(state.grid, level.grid)


def test_what_is_carried_shows_at_the_agents_own_cell():
    level = two_rooms({(4, 1): RED_KEY}, direction=3)
    assert observe(start(level))[3, 6].tolist() == [1, 0, 0]
    state, _ = run(level, [PICK_UP])
    assert observe(state)[3, 6].tolist() == DECODED[RED_KEY].tolist() == [5, 0, 0]


def test_the_door_one_stands_in_is_not_seen_but_seen_through():
    level = two_rooms({DOOR: OPEN_RED})
    state, _ = run(level, [FORWARD])
    assert state.agent == 16 * 2 + 5
    image = np.asarray(observe(state))
    assert image[3, 6].tolist() == [1, 0, 0]
    assert image[3, 5].tolist() == [1, 0, 0]  # the room beyond
    assert image[2, 6].tolist() == image[4, 6].tolist() == [2, 5, 0]  # the wall to both sides
    assert (image[0, 6] == 0).all()  # and what is behind it


def test_a_closed_door_hides_what_is_behind_it():
    for cell, seen in ((CLOSED_RED, 0), (LOCKED_RED, 0), (OPEN_RED, 1)):
        image = np.asarray(observe(start(two_rooms({DOOR: cell}))))
        assert image[3, 4, 0] == seen
    run(two_rooms({DOOR: CLOSED_RED}), [DONE, TOGGLE, FORWARD, FORWARD, TOGGLE])


def test_picking_the_target_up_ends_the_episode():
    state, outcome = run(two_rooms({}, agent=(8, 4)), [LEFT, RIGHT, PICK_UP])
    assert bool(outcome.terminated) is True
    assert bool(outcome.truncated) is False
    assert outcome.reward == np.float32(1 - 0.9 * 3 / 288)
    assert state.carrying == BOX << 3 | GREEN


def test_toggling_or_facing_a_target_ball_is_no_success():
    level = two_rooms({}, agent=(8, 4), task="ObstructedMaze-1Dl")
    _, outcome = run(level, [TOGGLE, FORWARD, DROP, DONE])
    assert not outcome.terminated
    _, outcome = run(level, [TOGGLE, PICK_UP])
    assert outcome.terminated


def test_a_ball_of_another_colour_is_not_the_target():
    things = {(8, 3): BALL << 3 | GREEN}
    level = two_rooms(things, agent=(8, 4), direction=3, task="ObstructedMaze-1Dl")
    state, outcome = run(level, [PICK_UP])
    assert state.carrying == BALL << 3 | GREEN
    assert not outcome.terminated


def test_unlock_ends_when_the_door_opens():
    level = two_rooms({DOOR: LOCKED_RED, (4, 1): RED_KEY}, direction=3, task="Unlock")
    _, outcome = run(level, [PICK_UP])
    assert not outcome.terminated
    _, outcome = run(level, [PICK_UP, RIGHT, TOGGLE])
    assert outcome.terminated
    assert outcome.reward == np.float32(1 - 0.9 * 3 / 288)


def test_success_on_the_very_last_step_is_both_terminated_and_truncated():
    state = start(two_rooms({}, agent=(8, 4)))._replace(steps=jnp.int32(287))
    _, outcome = run(state, [PICK_UP])
    assert outcome.terminated
    assert outcome.truncated
    assert outcome.reward == np.float32(1 - 0.9)


def test_an_episode_is_truncated_after_n_max_steps():
    state = start(two_rooms({}))._replace(steps=jnp.int32(286))
    _, outcome = run(state, [DONE])
    assert not outcome.truncated
    _, outcome = run(state, [DONE, DONE])
    assert outcome.truncated
    assert not outcome.terminated
    assert outcome.reward == 0


def test_rewards_are_the_floats_nearest_to_the_formulas():
    level = two_rooms({}, agent=(8, 4))
    n = np.arange(1, 3601)
    states = jax.vmap(lambda k: start(level)._replace(steps=k))(jnp.asarray(n - 1, jnp.int32))
    jitted = jax.jit(act)
    for number, task in enumerate(TASKS):
        played = states._replace(task=jnp.full(3600, number, jnp.int32))
        inside = n <= task.n_max
        for reward, share in ((PAPER_REWARD, 1.0), (MINIGRID_REWARD, 0.9)):
            _, outcome = jitted(played, jnp.full(3600, PICK_UP), reward)
            expected = (1 - share * (n / task.n_max)).astype(np.float32)
            assert np.asarray(outcome.terminated).all()
            assert np.array_equal(np.asarray(outcome.reward)[inside], expected[inside])
            # after its end an episode's reward stays what it was at the last step
            assert (np.asarray(outcome.reward)[~inside] == expected[task.n_max - 1]).all()
            assert np.array_equal(outcome.truncated, n >= task.n_max)


@pytest.mark.parametrize("action", [-1, 7, 100, 2**31 - 1])
def test_a_number_that_is_no_action_does_nothing(action):
    state = start(jax.jit(generate)(jax.random.key(0), jnp.arange(18)))
    after, outcome = act(state, jnp.full(18, action))
    assert all(
        np.array_equal(a, b) for a, b in zip(host(state)[:-1], host(after)[:-1], strict=True)
    )
    assert (after.steps == 1).all()
    assert not outcome.terminated.any()


def test_jit_vmap_and_plain_agree():
    states = start(jax.jit(generate)(jax.random.key(1), jnp.arange(18)))
    actions = jnp.arange(18) % 7
    plain = host((act(states, actions), observe(states)))
    jitted = host(jax.jit(lambda s, a: (act(s, a), observe(s)))(states, actions))
    one_by_one = host(jax.vmap(lambda s, a: (act(s, a), observe(s)))(states, actions))
    for other in (jitted, one_by_one):
        assert all(
            np.array_equal(a, b)
            for a, b in zip(jax.tree.leaves(plain), jax.tree.leaves(other), strict=True)
        )


def test_the_papers_reward_is_the_default():
    state = start(two_rooms({}, agent=(8, 4)))._replace(steps=jnp.int32(71))
    _, outcome = act(state, PICK_UP)
    assert outcome.reward == 0.75  # 1 − 72 / 288
    assert outcome.steps == 72
    assert outcome.task == NAMES.index("UnlockPickup")


def test_environments_can_have_rewards_of_their_own():
    level = two_rooms({}, agent=(8, 4))
    states = jax.vmap(lambda n: start(level)._replace(steps=n))(jnp.array([143, 143], jnp.int32))
    states = states._replace(task=jnp.full(2, NAMES.index("UnlockPickup"), jnp.int32))
    both = jnp.array([PAPER_REWARD, MINIGRID_REWARD])
    _, outcome = act(states, jnp.full(2, PICK_UP), both)
    assert outcome.reward.tolist() == [0.5, np.float32(0.55)]


def test_what_cannot_be_acted_upon_is_refused_even_under_jit():
    states = start(jax.jit(generate)(jax.random.key(0), jnp.arange(3)))
    for call in (act, jax.jit(act)):
        with pytest.raises(MasteryError, match=r"actions have shape \(3, 1\)"):
            call(states, jnp.zeros((3, 1), jnp.int32))
    with pytest.raises(MasteryError, match="reward is 5"):
        act(states, jnp.zeros(3, jnp.int32), 5)
    with pytest.raises(MasteryError, match="there is no task 18"):
        generate(jax.random.key(0), np.array([0, 18]))
