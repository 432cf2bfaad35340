"""MiniGrid's rules: one step of an episode."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from mastery.errors import MasteryError
from mastery.minigrid.actions import DROP, FORWARD, LEFT, PICK_UP, RIGHT, TOGGLE
from mastery.minigrid.cells import (
    BOX,
    BOX_WITH_KEY,
    CLOSED,
    EMPTY_CELL,
    KEY,
    LOCKED,
    OPEN,
    UNLOCKED,
    is_movable,
    is_walkable,
)
from mastery.minigrid.editions import TODAY, Edition
from mastery.minigrid.grid import Array, once, read, write
from mastery.minigrid.state import State
from mastery.minigrid.tasks import TASKS

N_MAX = np.array([task.n_max for task in TASKS], np.int32)

PAPER_REWARD, MINIGRID_REWARD = 0, 1  # 1 − n / n_max, and 1 − 0.9 n / n_max
REWARDS = {"paper": PAPER_REWARD, "minigrid": MINIGRID_REWARD}
# Tables of both rewards for every n and n_max, because division on a GPU is not exact.
_LIMITS, _WHICH = np.unique(N_MAX, return_inverse=True)
_OFFSET = np.concatenate([[0], np.cumsum(_LIMITS + 1)[:-1]])[_WHICH].astype(np.int32)
_SHARE = np.concatenate([np.arange(limit + 1) / limit for limit in _LIMITS])
_REWARD = np.stack([1 - _SHARE, 1 - 0.9 * _SHARE]).astype(np.float32)


UNCHANGED = 255  # no cell


class Effect(NamedTuple):
    """What an action does with the cell ahead."""

    left: Array  # uint8: the cell ahead, after the action
    carrying: Array  # uint8: what the agent carries, after the action
    touched: Array  # uint8: the goal is reached if it is this cell; UNCHANGED for none
    walks: Array  # bool: whether the agent moves there


class StepResult(NamedTuple):
    """The result of a step, besides the new state."""

    reward: Array  # float32: above 0 only on success, so it is also the episode's return
    terminated: Array  # bool: the goal was reached
    truncated: Array  # bool: the episode has lasted n_max steps; can come with `terminated`
    task: Array  # int32: the task of the episode
    steps: Array  # int32: steps of the episode so far, this one included


def act(
    state: State, action: Array, reward: Array | int = PAPER_REWARD, edition: Edition = TODAY
) -> tuple[State, StepResult]:
    """Take one action in every environment.

    An episode that has ended continues if you act again; `engine.step` begins new ones instead.

    Args:
        state: The states.
        action: One action for all environments or one each. An invalid number does nothing, like
            `DONE`.
        reward: PAPER_REWARD or MINIGRID_REWARD, for all environments or one each.
        edition: The edition whose rules apply; static under `jit`.

    Returns:
        The new states and the outcome.

    Raises:
        MasteryError: If the shape of `action` or the value of `reward` is wrong.
    """
    action = jnp.asarray(action)
    if action.shape not in ((), jnp.shape(state.agent)):
        raise MasteryError(
            f"actions have shape {action.shape}: give one for each of {jnp.shape(state.agent)}"
        )
    if isinstance(reward, int) and reward not in (PAPER_REWARD, MINIGRID_REWARD):
        raise MasteryError(f"reward is {reward}: give PAPER_REWARD or MINIGRID_REWARD")
    ahead = front(state.agent, state.direction)
    seen = read(state.grid, ahead[..., None])[..., 0]

    left, carrying, touched, walks = effect(action, seen, state.carrying, edition)
    reached = touched == state.target
    steps = state.steps + 1
    n_max, value = _limit_and_reward(state.task, steps, reward)
    agent = jnp.where(walks, ahead, state.agent)
    ahead, left = once((ahead, left))
    after = state._replace(
        grid=write(state.grid, ahead, left),
        agent=agent,
        direction=turned(state.direction, action),
        carrying=carrying,
        steps=steps,
    )
    won = jnp.where(reached, value, jnp.float32(0))
    return after, StepResult(won, reached, steps >= n_max, after.task, steps)


def effect(action: Array, seen: Array, carried: Array, edition: Edition = TODAY) -> Effect:
    """What an action does if the agent has this cell ahead and carries that."""
    # picking up and dropping both swap the carried cell with the one ahead
    free = carried == EMPTY_CELL
    swap = ((action == PICK_UP) & free & is_movable(seen)) | (
        (action == DROP) & ~free & (seen == EMPTY_CELL)
    )
    carrying = jnp.where(swap, seen, carried)
    toggle = action == TOGGLE
    after_toggle = toggled(seen, carried, edition)
    left = jnp.where(swap, carried, jnp.where(toggle, after_toggle, seen))
    if edition.uses_up_keys:
        carrying = jnp.where(toggle & fits(seen, carried), jnp.uint8(EMPTY_CELL), carrying)
    # a target to pick up was ahead before the action; a target door is ahead after it
    touched = jnp.where(left != seen, jnp.where(toggle, left, seen), jnp.uint8(UNCHANGED))
    return Effect(left, carrying, touched, (action == FORWARD) & is_walkable(seen))


def turned(direction: Array, action: Array) -> Array:
    """The agent's direction after an action."""
    turn = (action == RIGHT).astype(jnp.int32) - (action == LEFT).astype(jnp.int32)
    return (direction + turn) & 3


def rewards(task: int, reward: int) -> NDArray[np.float32]:
    """The reward of a success after each number of steps, from 0 to n_max."""
    start = _OFFSET[task]
    return _REWARD[reward, start : start + N_MAX[task] + 1]


def _limit_and_reward(task: Array, steps: Array, reward: Array | int) -> tuple[Array, Array]:
    """n_max of each task, and the reward of a success by its number of steps."""
    task = jnp.asarray(task, jnp.uint32)
    n_max = jnp.asarray(N_MAX).at[task].get(mode="promise_in_bounds")
    place = jnp.asarray(_OFFSET).at[task].get(mode="promise_in_bounds") + jnp.minimum(steps, n_max)
    return n_max, jnp.asarray(_REWARD).at[reward, place].get(mode="promise_in_bounds")


def toggled(cell: Array, carrying: Array, edition: Edition = TODAY) -> Array:
    """The cell after a toggle: doors open or close, and a box is replaced by its contents."""
    kind, colour = cell >> 3, cell & 7
    unlocks = (kind == LOCKED) & fits(cell, carrying)
    closes = kind == OPEN
    if edition.unlocked == UNLOCKED and not edition.uses_up_keys:
        closes |= kind == UNLOCKED
    cell = jnp.where(kind == CLOSED, OPEN << 3 | colour, cell)
    cell = jnp.where(unlocks, edition.unlocked << 3 | colour, cell)
    cell = jnp.where(closes, CLOSED << 3 | colour, cell)
    cell = jnp.where(kind == BOX, EMPTY_CELL, cell)
    is_full = (kind >= BOX_WITH_KEY) & (kind < UNLOCKED)
    return jnp.where(is_full, (KEY << 3) + (kind - BOX_WITH_KEY), cell).astype(jnp.uint8)


def fits(door: Array, carrying: Array) -> Array:
    """Whether the agent carries the key of this door, which is locked or was unlocked."""
    kind, colour = door >> 3, door & 7
    return ((kind == LOCKED) | (kind == UNLOCKED)) & (carrying == (KEY << 3 | colour))


def front(agent: Array, direction: Array) -> Array:
    """The position ahead of the agent. It is on the grid, because walls surround each map."""
    return agent + stride(direction)


def stride(direction: Array) -> Array:
    """The change of position for a step in a direction: +1, +16, −1, −16."""
    return jnp.where(direction & 1, 16, 1) * (1 - (direction & 2))
