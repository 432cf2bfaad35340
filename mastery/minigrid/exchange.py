"""Convert states to and from environments of the `minigrid` package."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from mastery.errors import MasteryError
from mastery.minigrid.cells import (
    BALL,
    BOX,
    BOX_WITH_KEY,
    CLOSED,
    COLOURS,
    EMPTY_CELL,
    KEY,
    LOCKED,
    OPEN,
    UNLOCKED,
    WALL,
    WALL_CELL,
)
from mastery.minigrid.grid import pack, unpack
from mastery.minigrid.missions import mission
from mastery.minigrid.state import Level, State, start
from mastery.minigrid.tasks import SIDE, TASKS, MiniGridTask, task_id

_DOORS = (LOCKED, CLOSED, OPEN, UNLOCKED)
_SIMPLE = {"wall": WALL, "key": KEY, "ball": BALL, "box": BOX}


def from_package(env: Any, task: str | None = None) -> State:
    """Convert an environment of the package to a state, at any point of an episode.

    Args:
        env: An environment of the package, wrapped or not, after `reset`.
        task: The task's name. By default, the environment's registered name.

    Returns:
        The state, without leading axes.

    Raises:
        MasteryError: If the environment is not one of the eighteen tasks, or if its level cannot be
            represented here, for example because two things look like the goal.

    Example:
        >>> env = gymnasium.make("MiniGrid-Unlock-v0")
        >>> env.reset(seed=0)
        >>> state = from_package(env)
    """
    env = getattr(env, "unwrapped", env)
    if task is None:
        if getattr(env, "spec", None) is None:
            raise MasteryError("the environment has no registered name; say which task it is")
        task = env.spec.id
    number = task_id(task)
    known = TASKS[number]
    where = f"the environment {known.id}"
    _check_fits(env, known, where)
    cells = np.full((SIDE, SIDE), WALL_CELL, np.uint8)
    for y in range(env.height):
        for x in range(env.width):
            cells[y, x] = _cell(env.grid.get(x, y), f"{where}, at ({x}, {y})")
    edge = np.ones((env.height, env.width), bool)
    edge[1:-1, 1:-1] = False
    if (cells[: env.height, : env.width][edge] >> 3 != WALL).any():
        raise MasteryError(f"{where} has an opening in its outermost cells: they must all be wall")
    x, y = (int(v) for v in env.agent_pos)
    level = Level(
        grid=pack(cells),
        agent=jnp.int32(SIDE * y + x),
        direction=jnp.int32(env.agent_dir),
        target=jnp.uint8(_target(env, known, cells, where)),
        task=jnp.int32(number),
    )
    return start(level)._replace(
        carrying=jnp.uint8(_cell(env.carrying, f"{where}, what is carried")),
        steps=jnp.int32(env.step_count),
    )


def _check_fits(env: Any, known: MiniGridTask, where: str) -> None:
    """Raise a `MasteryError` if the environment is not one of this task, with a level."""
    expected = {
        "width": known.width,
        "height": known.height,
        "max_steps": known.n_max,
        "agent_view_size": 7,
        "see_through_walls": False,
    }
    for name, value in expected.items():
        if getattr(env, name, None) != value:
            raise MasteryError(
                f"{where} has {name} {getattr(env, name, None)}: levels of this task have {value}"
            )
    if env.agent_pos is None:
        raise MasteryError(f"{where} has no level yet: call reset() first")


def _target(env: Any, known: MiniGridTask, cells: NDArray[np.uint8], where: str) -> int:
    """The cell of the goal, which must be the only one of its kind and colour."""
    goal = getattr(env, "door" if known.goal == "door" else "obj", None)
    if goal is None:
        raise MasteryError(f"{where} has no goal of this task: it is another environment")
    target = _cell(goal, f"{where}, its goal")
    if known.goal == "door":
        if goal.is_open:
            raise MasteryError(f"{where} has an open door already: there is nothing left to do")
        alike = int(np.isin(cells >> 3, (LOCKED, CLOSED, OPEN))[cells & 7 == target & 7].sum())
        target = OPEN << 3 | target & 7
    else:
        alike = int((cells == target).sum())
    if alike > 1:
        raise MasteryError(
            f"{where} has {alike} things that look like its goal: it is known by kind and colour "
            "here, so there may be only one"
        )
    return target


def to_package(state: State | Level) -> Any:
    """Convert a state to an environment of the package.

    The package applies its own rules: an unlocked door of the 2018 edition becomes an open door,
    which can be closed.

    Args:
        state: The state or level of one environment, without leading axes.

    Returns:
        An unwrapped environment of the package.

    Raises:
        MasteryError: If `state` has leading axes or is neither a state nor a level, or if the
            package is not installed.
    """
    if isinstance(state, Level):
        state = start(state)
    if not isinstance(state, State):
        raise MasteryError(f"a level or a state is needed, not {type(state).__name__}")
    if np.ndim(state.agent) != 0:
        raise MasteryError(
            f"this is the state of {np.shape(state.agent)} environments; choose one, as in "
            "jax.tree.map(lambda x: x[0], state)"
        )
    try:
        import gymnasium
        import minigrid  # noqa: F401  (registers its environments)
        from minigrid.core.grid import Grid
    except ModuleNotFoundError:
        raise MasteryError("this needs the package itself: pip install minigrid") from None

    task = TASKS[int(state.task)]
    env: Any = gymnasium.make(task.id, disable_env_checker=True).unwrapped
    env.reset(seed=0)
    env.grid = Grid(task.width, task.height)
    cells, target, goal = unpack(state.grid), int(state.target), None
    for y in range(task.height):
        for x in range(task.width):
            cell = int(cells[y, x])
            thing = _thing(cell)
            env.grid.set(x, y, thing)
            if thing is not None:
                thing.init_pos = thing.cur_pos = (x, y)
                is_door = cell >> 3 in _DOORS and cell & 7 == target & 7
                if is_door if task.goal == "door" else cell == target:
                    goal = thing
    y, x = divmod(int(state.agent), SIDE)
    env.agent_pos, env.agent_dir = (x, y), int(state.direction)
    env.carrying, env.step_count = _thing(int(state.carrying)), int(state.steps)
    env.mission = mission(target)
    setattr(env, "door" if task.goal == "door" else "obj", goal or _thing(target))
    return env


def _cell(thing: Any, where: str) -> int:
    if thing is None:
        return EMPTY_CELL
    colour = COLOURS.index(thing.color)
    if thing.type == "door":
        kind = OPEN if thing.is_open else LOCKED if thing.is_locked else CLOSED
    elif thing.type == "box" and thing.contains is not None:
        inner = thing.contains
        if inner.type != "key":
            raise MasteryError(f"{where}: a box holds a {inner.type}; here a box holds only keys")
        kind = BOX_WITH_KEY + COLOURS.index(inner.color)
    elif thing.type in _SIMPLE:
        kind = _SIMPLE[thing.type]
    else:
        raise MasteryError(
            f"{where}: there is a {thing.type}; here are only walls, doors, keys, balls and boxes"
        )
    return kind << 3 | colour


def _thing(cell: int) -> Any:
    from minigrid.core.world_object import Ball, Box, Door, Key, Wall

    if cell == EMPTY_CELL:
        return None
    kind, colour = cell >> 3, COLOURS[cell & 7]
    if kind in _DOORS:
        return Door(colour, is_open=kind in (OPEN, UNLOCKED), is_locked=kind == LOCKED)
    if kind >= BOX_WITH_KEY:
        return Box(colour, contains=Key(COLOURS[kind - BOX_WITH_KEY]))
    return {WALL: Wall, KEY: Key, BALL: Ball, BOX: Box}[kind](colour)
