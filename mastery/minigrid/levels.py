"""Generate levels. All tasks share the same arithmetic; the task is data.

MiniGrid draws cells until one is free. Here one draw is enough: the free cells are the bits of a
number, and the r-th set bit is the chosen cell. The distribution is the same, without a loop.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from mastery.errors import MasteryError
from mastery.minigrid.cells import (
    BALL,
    BLUE,
    BOX,
    BOX_WITH_KEY,
    CLOSED,
    EMPTY_CELL,
    GREEN,
    GREY,
    KEY,
    LOCKED,
    OPEN,
    WALL_CELL,
)
from mastery.minigrid.editions import TODAY, Edition
from mastery.minigrid.grid import Array, once, write
from mastery.minigrid.state import Level
from mastery.minigrid.tasks import (
    EAST,
    NORTH,
    SIDE,
    SOUTH,
    TASKS,
    WEST,
    MiniGridTask,
    Room,
    place_of_door,
)
from mastery.random_numbers import bits

DOORS = 12  # places for a door
NOWHERE = -1

# Rooms are at most 4 × 4 inside. A set of cells in a room is a 24-bit number: bit 4 · v + u is the
# cell in column u from the left (the first inside the room is 0) and row v below the upper wall
# (v = 0 is that wall itself, which can be open in a corridor).
_COLUMN = 0x111111  # the leftmost cells


class _Table(NamedTuple):
    """The tasks' parameters: integers, with these shapes for one task."""

    step: Array  # distance between rooms: room_size − 1
    rows: Array
    door: Array  # (12,): kind of the door at each place, 0 for none
    door_colour: Array  # (12,): which of the level's colours
    lock_place: Array  # (2, 4): the place of each locked door, 12 for none; two share a room
    lock_room: Array  # (2, 4): top left of the room with its key, as a position
    before: Array  # (2, 4): step from the door to the cell before it in that room
    goal_rooms: Array  # (4,): top left of the rooms that may hold the goal
    goal_count: Array
    goal_free: Array  # cells where the goal may be, as a set
    inside: Array  # cells of a room, as a set
    agent_room: Array  # top left, as a position
    agent_free: Array  # cells where the agent may start, as a set
    agent_doors: Array  # (4,): place of the door on each side, 12 for none
    with_keys: Array  # whether the agent starts in the room of the first two keys
    goal: Array  # kind of the target
    corridor: Array
    maze: Array
    blocked: Array
    hidden: Array


def _row(task: MiniGridTask) -> tuple[NDArray[np.uint32], _Table]:
    step, size = task.room_size - 1, task.room_size - 2

    def top_left(room: Room) -> int:
        return SIDE * step * room[1] + step * room[0]

    def cells(rows: range) -> int:
        return sum(1 << (4 * v + u) for v in rows for u in range(size))

    door, colour = np.zeros(DOORS, np.int32), np.zeros(DOORS, np.int32)
    for room, side, c in task.closed:
        place = place_of_door(room, side)
        assert place is not None
        door[place], colour[place] = CLOSED, c
    place_of, room_of, before = np.full((2, 4), DOORS), np.zeros((2, 4)), np.zeros((2, 4))
    for n, lock in enumerate(task.locks):
        k = n % 2, n // 2
        place = place_of_door(lock.room, lock.side)
        assert place is not None
        door[place], colour[place] = LOCKED, lock.colour
        place_of[k], room_of[k] = place, top_left(lock.room)
        before[k] = -(1, SIDE, -1, -SIDE)[lock.side]
    goal_rooms = np.zeros(4, np.int32)
    goal_rooms[: len(task.goal_rooms)] = [top_left(room) for room in task.goal_rooms]
    inside = cells(range(1, task.room_size - 1))
    goal_free = inside
    if task.rows == 1 and task.columns == 2:
        # while it places things, MiniGrid takes the agent to be in the middle of the map, which is
        # in the right room, and places nothing on it or next to it
        goal_free &= ~sum(1 << (4 * v + u) for u, v in ((2, 3), (1, 3), (3, 3), (2, 2), (2, 4)))
    above = task.corridor and task.agent_room[1] > 0
    below = task.corridor and task.agent_room[1] < task.rows - 1
    sides = [place_of_door(task.agent_room, side) for side in (EAST, SOUTH, WEST, NORTH)]
    table = _Table(
        step=step,
        rows=task.rows,
        door=door,
        door_colour=colour,
        lock_place=place_of,
        lock_room=room_of,
        before=before,
        goal_rooms=goal_rooms,
        goal_count=max(1, len(task.goal_rooms)),
        goal_free=goal_free,
        inside=inside,
        agent_room=top_left(task.agent_room),
        agent_free=cells(range(0 if above else 1, task.room_size - (0 if below else 1))),
        agent_doors=[DOORS if side is None else side for side in sides],
        with_keys=any(lock.room == task.agent_room for lock in task.locks),
        goal={"door": OPEN, "box": BOX, "ball": BALL}[task.goal],
        corridor=task.corridor,
        maze=task.maze,
        blocked=task.blocked,
        hidden=task.hidden,
    )
    return _walls(task), _Table(*(np.asarray(column, np.int32) for column in table))


def _walls(task: MiniGridTask) -> NDArray[np.uint32]:
    """Walls and floor, four cells a word."""
    step = task.room_size - 1
    y, x = np.mgrid[:SIDE, :SIDE]
    wall = (x % step == 0) | (y % step == 0) | (x >= task.width) | (y >= task.height)
    if task.corridor:  # the middle rooms form one
        wall &= ~((x > step) & (x < 2 * step) & (y > 0) & (y < task.height - 1))
    return np.where(wall, WALL_CELL, EMPTY_CELL).astype(np.uint8).ravel().view("<u4")


@lru_cache(maxsize=8)
def _rows(
    tasks: tuple[MiniGridTask, ...],
) -> tuple[NDArray[np.uint32], NDArray[np.int32], list[tuple[int, ...]]]:
    """For all tasks: walls and floor, (18, 64); the columns of their parameters, concatenated,
    (…, 18); and the shape of each column."""
    rows = [_row(task) for task in tasks]
    packed = [np.concatenate([c.ravel() for c in row]) for _, row in rows]
    shapes = [np.shape(column) for column in rows[0][1]]
    return np.stack([base for base, _ in rows]), np.stack(packed, axis=1), shapes


_FIRST_LOCK = np.arange(8).reshape(2, 4) == 0  # the only one in a corridor


def _look_up(task: Array, edition: Edition) -> _Table:
    """Look up the parameters of these tasks at once; each field has its own axes first."""
    _, packed, shapes = _rows(edition.tasks)
    numbers = jnp.asarray(packed).at[:, task.astype(jnp.uint32)].get(mode="promise_in_bounds")
    columns, start = [], 0
    for shape in shapes:
        size = int(np.prod(shape))
        columns.append(numbers[start : start + size].reshape(*shape, *task.shape))
        start += size
    return _Table(*columns)


def generate(key: Array, task: Array, edition: Edition = TODAY) -> Level:
    """Generate a new level for each given task.

    Args:
        key: A JAX random key.
        task: Indices into TASKS, of any shape.
        edition: The edition whose levels to generate; static under `jit`.

    Returns:
        The levels, with leading axes of the shape of `task`.

    Raises:
        MasteryError: If a Python or NumPy index is not from 0 to 17. JAX arrays are not checked.

    Example:
        >>> levels = generate(jax.random.key(0), np.full(64, task_id("Unlock")))
        >>> state = start(levels)
    """
    task = _checked_tasks(task)
    t = _look_up(task, edition)
    words = bits(key, (32, *task.shape))
    t, words = once((t, words))
    order, any_way = words[:DOORS], words[31]
    high, low = words[DOORS:31] >> 16, words[DOORS:31] & 0xFFFF  # 16 bits do for small ranges
    is_corridor, is_maze = t.corridor == 1, t.maze == 1

    row, key_row = _pick(high[12], t.rows), _pick(low[12], t.rows)  # the corridor's lock and key
    along, colours, kinds, doors = _place_doors(t, row, order, high[:DOORS], low[:DOORS])

    # a ball before each locked door, and its key in the same room; two keys share a room
    drawn = is_corridor & _FIRST_LOCK.reshape(2, 4, *[1] * task.ndim)
    place = jnp.where(drawn, 2 * row + 1, t.lock_place)
    room = jnp.where(drawn, SIDE * t.step * key_row, t.lock_room)
    locked = place < DOORS
    balls, is_ball = _at(doors, place) + t.before, locked & (t.blocked == 1)
    ball_bits = jnp.where(is_ball, _cell_bit(balls - room), 0)
    late = jnp.where(is_maze, ball_bits, 0) if edition.buries_keys else jnp.zeros_like(ball_bits)
    taken = (ball_bits & ~late).sum(0)
    keys, taken = _place_keys((high[13:17], low[13:17]), t.inside, taken, locked, late)
    shade = _at(colours, place)
    key_cells = jnp.where(t.hidden == 1, (BOX_WITH_KEY + shade) << 3 | GREY, KEY << 3 | shade)

    goal_at, target = _place_goal(t, row, colours[0], high[17:19], low[17], edition)
    agent, direction = _place_agent(t, kinds, along, taken[0] * t.with_keys, any_way)

    ball = jnp.where(is_maze, GREEN, _pick(low[18], 6)) | BALL << 3
    things = [
        (jnp.where(is_ball, balls, NOWHERE), jnp.broadcast_to(ball, balls.shape)),
        (jnp.where(locked, room + keys, NOWHERE), key_cells),
    ]
    if edition.buries_keys:
        things.reverse()  # what is painted later wins
    each = (8, *task.shape)
    at = [place for places, _ in things for place in places.reshape(each)]
    cells = [cell for _, several in things for cell in several.reshape(each)]
    where = [*jnp.where(kinds > 0, doors, NOWHERE), *at, goal_at]
    what = [*(kinds << 3 | colours), *cells, target]
    return Level(
        grid=_paint(task, where, what, edition),
        agent=agent.astype(jnp.int32),
        direction=direction.astype(jnp.int32),
        target=target.astype(jnp.uint8),
        task=task,
    )


def _checked_tasks(task: Array) -> Array:
    if isinstance(task, (int, np.integer, np.ndarray)):
        wrong = np.asarray(task)[(np.asarray(task) < 0) | (np.asarray(task) >= len(TASKS))]
        if wrong.size:
            raise MasteryError(f"there is no task {wrong.ravel()[0]}: give 0 to {len(TASKS) - 1}")
    return jnp.asarray(task, jnp.int32)


def _place_doors(t: _Table, row: Array, order: Array, high: Array, low: Array) -> list[Array]:
    """The offset of each door along its wall, its colour, its kind (0 for none) and its cell.

    Args:
        t: The parameters of the tasks.
        row: The row of a corridor's locked door.
        order: Random words that order colours and walls.
        high: Random words for the offsets.
        low: Random words for the colours.
    """
    along, colours = _pick(high, t.step - 1), _pick(low, 6)
    colours = jnp.where(t.maze == 1, _at(_permutation(order[:6]), t.door_colour), colours)
    kinds = jnp.where(t.corridor == 1, _corridor_doors(row, t.rows, order), t.door)
    return once([along, colours, kinds, _door_positions(t.step, along)])  # type: ignore[no-any-return]


def _place_keys(
    words: tuple[Array, Array], inside: Array, taken: Array, locked: Array, late: Array
) -> tuple[Array, Array]:
    """The cells of the keys, from the corners of their rooms, (2, 4, …); and all taken cells.

    Args:
        words: Random words for the first and the second key of each room.
        inside: The cells of a room, as bits.
        taken: Those that are taken already.
        locked: Whether there is such a key.
        late: The cells that are taken after each key is placed.
    """
    keys = []
    for k, half in enumerate(words):
        free = inside & ~taken
        bit = _select(free, _pick(half, lax.population_count(free)))
        keys.append(_cell_offset(bit))
        taken |= jnp.where(locked[k], 1 << bit, 0) | late[k]
    return jnp.stack(keys), taken


def _place_goal(
    t: _Table, row: Array, door_colour: Array, high: Array, low: Array, edition: Edition
) -> tuple[Array, Array]:
    """Where the goal is painted, nowhere if it is a door; and its cell.

    Args:
        t: The parameters of the tasks.
        row: The row of a corridor's goal.
        door_colour: The colour of the goal if it is a door.
        high: Random words for its room and its colour.
        low: Random words for its cell.
        edition: The edition, which knows what an unlocked door is.
    """
    room = _at(t.goal_rooms, _pick(high[0], t.goal_count))
    room = jnp.where(t.corridor == 1, SIDE * t.step * row + 2 * t.step, room)
    bit = _select(t.goal_free, _pick(low, lax.population_count(t.goal_free)))
    is_door = t.goal == OPEN
    colour = jnp.where(is_door, door_colour, jnp.where(t.maze == 1, BLUE, _pick(high[1], 6)))
    target = jnp.where(is_door, edition.unlocked, t.goal) << 3 | colour
    return jnp.where(is_door, NOWHERE, room + _cell_offset(bit)), target


def _paint(task: Array, where: list[Array], what: list[Array], edition: Edition) -> Array:
    """Draw things at their positions onto the task's walls and floor."""
    where, what = once((where, what))
    base, *_ = _rows(edition.tasks)
    grid = jnp.asarray(base).at[task.astype(jnp.uint32)].get(mode="promise_in_bounds")
    for at, cell in zip(where, what, strict=True):
        grid = write(grid, at, cell)
    return grid


def _corridor_doors(row: Array, rows: Array, order: Array) -> Array:
    """KeyCorridor's doors, (12,): the locked one, and unlocked ones until all rooms are connected.

    MiniGrid adds doors at random, in any wall of the left and right rooms that does not touch the
    locked room, until all rooms are connected. In other words: number the walls in random order,
    and find the smallest number such that every room has a path to the corridor through walls of at
    most that number. Every wall up to that number has a door.
    """
    place = np.arange(DOORS).reshape(DOORS, *[1] * row.ndim)
    beside, below = place < 6, (place >= 6) & ((place - 6) % 3 != 1)
    # the row of the wall, or of the room above it
    j = np.where(beside, place // 2, (place - 6) // 3)
    is_right = np.where(beside, place % 2, (place - 6) % 3 // 2) == 1
    inside = np.where(beside, j, j + 1) < rows
    touches = is_right & ((j == row) | (~beside & (j + 1 == row)))
    never = jnp.uint32(0xFFFFFFFF)
    cost = jnp.where((beside | below) & inside & ~touches, order >> 1, never)
    most = jnp.zeros_like(order[0])
    for side in range(2):
        reach = [cost[2 * j + side] for j in range(3)]  # of each room, through its own door
        down = [cost[6 + 3 * j + 2 * side] for j in range(2)]
        for a, b in ((0, 1), (2, 1), (1, 0), (1, 2), (0, 1), (2, 1)):
            reach[a] = jnp.minimum(reach[a], jnp.maximum(down[min(a, b)], reach[b]))
        for room in range(3):
            counted = (room < rows) & ((room != row) | (side == 0))
            most = jnp.maximum(most, jnp.where(counted, reach[room], 0))
    doors = jnp.where(cost <= most, CLOSED, 0)
    return jnp.where(place == 2 * row + 1, LOCKED, doors)


def _place_agent(t: _Table, kinds: Array, along: Array, taken: Array, word: Array) -> Array:
    """Draw a free cell and a direction such that no object and no door is ahead."""
    # the corridor's unlocked doors are added after the agent is placed
    doors = jnp.where((t.corridor == 1) & (kinds == CLOSED), 0, kinds)
    there = (t.agent_doors < DOORS) & (_at(doors, t.agent_doors) > 0)
    across = _at(along, t.agent_doors)  # a door's distance from the corner of the room
    u = [t.step - 2, across[SOUTH], 0, across[NORTH]]
    v = [across[EAST] + 1, t.step - 1, across[WEST] + 1, 1]
    faced = [
        (taken & ~_COLUMN) >> 1,
        taken >> 4,
        (taken & ~(_COLUMN << 3)) << 1,
        taken << 4,
    ]
    free = t.agent_free & ~taken
    ways = [
        free & ~faced[side] & ~jnp.where(there[side], 1 << (4 * v[side] + u[side]), 0)
        for side in (EAST, SOUTH, WEST, NORTH)
    ]
    counts = [lax.population_count(way) for way in ways]
    r = _pick(word >> 8, sum(counts), 24)
    direction, way = jnp.zeros_like(r), ways[0]
    for side in (SOUTH, WEST, NORTH):
        on = (direction == side - 1) & (r >= counts[side - 1])
        r = jnp.where(on, r - counts[side - 1], r)
        direction, way = jnp.where(on, side, direction), jnp.where(on, ways[side], way)
    return t.agent_room + _cell_offset(_select(way, r)), direction


def _door_positions(step: Array, along: Array) -> Array:
    """Positions of the twelve places for a door, each at its offset along its wall."""
    place = np.arange(DOORS).reshape(DOORS, *[1] * step.ndim)
    beside = SIDE * (place // 2 * step + 1 + along) + (place % 2 + 1) * step
    below = SIDE * ((place - 6) // 3 + 1) * step + (place - 6) % 3 * step + 1 + along
    return jnp.where(place < 6, beside, below)


def _pick(random: Array, n: Array | int, bits: int = 16) -> Array:
    """An integer from 0 to n − 1, from this many random bits.

    The probabilities are equal to within n / 2^bits, at most one part in 4,000 here.
    """
    return (random * jnp.asarray(n, jnp.uint32) >> bits).astype(jnp.int32)


def _permutation(words: Array) -> Array:
    """A random permutation along the first axis, from one random word per element."""
    n = words.shape[0]
    unique = (words & ~jnp.uint32(7)) | np.arange(n, dtype=np.uint32).reshape(
        n, *[1] * (words.ndim - 1)
    )
    return (unique[None] < unique[:, None]).sum(1)


def _at(values: Array, index: Array) -> Array:
    """values[index] along the first axis; the other axes match elementwise.

    An index past the end reads the last value, which the caller then ignores.
    """
    flat = jnp.minimum(index, values.shape[0] - 1).astype(jnp.uint32)
    flat = flat.reshape(-1, *values.shape[1:])
    found = jnp.take_along_axis(values, flat, 0, mode="promise_in_bounds")
    return found.reshape(index.shape)


def _cell_bit(offset: Array) -> Array:
    """The set that holds only the cell at this offset from the top left of its room."""
    return 1 << (4 * (offset >> 4) + (offset & 15) - 1)


def _cell_offset(bit: Array) -> Array:
    """The offset of this bit's cell from the top left of its room."""
    return SIDE * (bit >> 2) + (bit & 3) + 1


def _select(cells: Array, r: Array) -> Array:
    """The index of the r-th set bit, counted from 0, by binary search."""
    bit = jnp.zeros_like(r)
    for width in (16, 8, 4, 2, 1):
        low = lax.population_count((cells >> bit) & ((1 << width) - 1))
        above = r >= low
        r = jnp.where(above, r - low, r)
        bit = jnp.where(above, bit + width, bit)
    return bit
