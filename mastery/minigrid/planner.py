"""Solve a level: find actions that take the agent to its goal.

The planner finds the cheapest path to the goal, where obstacles can be passed at a price. It clears
the first obstacle on that path (for a locked door, it gets the key and opens it; for an object, it
picks it up) and searches again. Getting a key is a goal like any other, with its own path and
obstacles. Each action is simulated as it is planned.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from heapq import heappop, heappush
from random import Random

import numpy as np
from numpy.typing import NDArray

from mastery.errors import MasteryError
from mastery.minigrid.actions import DROP, FORWARD, LEFT, PICK_UP, RIGHT, TOGGLE
from mastery.minigrid.cells import (
    BALL,
    BOX,
    BOX_WITH_KEY,
    CLOSED,
    COLOURS,
    EMPTY,
    EMPTY_CELL,
    KEY,
    KINDS,
    LOCKED,
    OPEN,
    UNLOCKED,
    colour,
    is_movable,
    is_walkable,
    kind,
)
from mastery.minigrid.editions import TODAY, Edition
from mastery.minigrid.tasks import SIDE

STEPS = (1, SIDE, -1, -SIDE)  # to the next cell in each direction

# The cost of entering a cell, indexed by its byte, roughly in actions; 0 means it cannot be
# entered. Moving or unlocking something costs more than the actions it takes, so the planner
# prefers a clear path wherever there is one. Otherwise the next path could lead through an object
# that was just put down.
CLEAR_PRICES = [0] * (KINDS << 3)
for _colour in range(8):
    for _kind in (OPEN, EMPTY, UNLOCKED):
        CLEAR_PRICES[_kind << 3 | _colour] = 1
    CLEAR_PRICES[CLOSED << 3 | _colour] = 2
PRICES = [20 if is_movable(_cell) else price for _cell, price in enumerate(CLEAR_PRICES)]
UNLOCK_WITH_KEY_IN_HAND, UNLOCK = 2, 50

MOST_ROUNDS = 16  # of searching for a path to one goal
MOST_SEARCHES = 300  # per attempt; a level takes about 20
MOST_ATTEMPTS = 16


def plan(
    grid: NDArray[np.uint8],
    agent: int,
    direction: int,
    target: int,
    carrying: int = EMPTY_CELL,
    edition: Edition = TODAY,
) -> list[int]:
    """Find a short, though not always the shortest, list of actions that reaches the goal.

    Args:
        grid: uint8 (16, 16) cells indexed [y, x], with a wall around the map.
        agent: The agent's position, 16 · y + x.
        direction: 0 right, 1 down, 2 left, 3 up.
        target: The cell to pick up or, if of kind OPEN or UNLOCKED, the door to open.
        carrying: The cell that the agent carries; EMPTY_CELL for nothing.
        edition: The edition whose rules apply.

    Returns:
        The actions, empty if the goal is already reached.

    Raises:
        MasteryError: If an argument is invalid, the target is not on the map, or the planner finds
            no path to it.

    Example:
        >>> plan(unpack(state.grid), int(state.agent), int(state.direction), int(state.target))
    """
    target, carrying = int(target), int(carrying)
    cells = _checked(np.asarray(grid), agent, direction, target)
    is_door = kind(target) in (OPEN, UNLOCKED)
    if target == carrying or (is_door and target in cells):
        return []  # the goal is already reached
    wanted = {target}
    if is_door:
        wanted = {state << 3 | colour(target) for state in (LOCKED, CLOSED)}
    found = next((at for at, cell in enumerate(cells) if cell in wanted), None)
    if found is None:
        raise MasteryError(f"there is no {_name(target)} on the map: the level cannot be solved")
    chance = Random(0)  # the same plan for the same level
    for attempt in range(MOST_ATTEMPTS):
        world = _Episode(cells, int(agent), int(direction), carrying, edition)
        # among many objects the planner may go in circles: retry after some random actions
        for _ in range(10 * attempt):
            action = chance.randrange(6)
            if world.front != found or action <= FORWARD:
                world.act(action)
        planner = _Planner(world)
        try:
            (planner.open_door if is_door else planner.take)(found, frozenset())
        except _NoWay:
            continue
        return planner.world.actions
    raise MasteryError(f"no way was found to the {_name(target)}: things may block it for good")


def _checked(grid: NDArray[np.generic], agent: int, direction: int, target: int) -> bytes:
    """The grid's cells; MasteryError if an argument of `plan` is invalid."""
    if grid.shape != (SIDE, SIDE) or grid.dtype != np.uint8:
        raise MasteryError(
            f"grid is {grid.dtype} of shape {grid.shape}: give uint8 of shape {(SIDE, SIDE)}, as "
            "`unpack(state.grid)` is"
        )
    if kind(target) not in (OPEN, UNLOCKED, BALL, BOX) or direction not in range(4):
        raise MasteryError(
            f"target {target} or direction {direction} is not one: a target is a cell, an open "
            "door, ball or empty box, and a direction 0 to 3"
        )
    cells = grid.tobytes()
    if not 0 <= agent < len(cells) or not is_walkable(cells[agent]):
        raise MasteryError(f"the agent cannot stand at {agent}: give {SIDE} y + x of a free cell")
    return cells


class _NoWay(Exception):
    """A goal cannot be reached from here."""


class _Episode:
    """A simulated episode: its state and the actions so far."""

    def __init__(
        self,
        cells: bytes | bytearray,
        agent: int,
        direction: int,
        carrying: int,
        edition: Edition,
    ) -> None:
        self.edition = edition
        self.cells = bytearray(cells)
        self.agent = agent
        self.direction = direction
        self.carrying = carrying
        self.actions: list[int] = []

    @property
    def front(self) -> int:
        return self.agent + STEPS[self.direction]

    def copy(self) -> _Episode:
        world = _Episode(self.cells, self.agent, self.direction, self.carrying, self.edition)
        world.actions = self.actions.copy()
        return world

    def act(self, action: int) -> None:
        self.actions.append(action)
        front = self.front
        cell = self.cells[front]
        if action == LEFT:
            self.direction = (self.direction - 1) % 4
        elif action == RIGHT:
            self.direction = (self.direction + 1) % 4
        elif action == FORWARD and is_walkable(cell):
            self.agent = front
        elif (action == PICK_UP and is_movable(cell) and self.carrying == EMPTY_CELL) or (
            action == DROP and cell == EMPTY_CELL
        ):
            self.cells[front], self.carrying = self.carrying, cell
        elif action == TOGGLE:
            self.cells[front] = self._toggled(cell)
            fits = kind(cell) in (LOCKED, UNLOCKED) and self.carrying == _key_of(cell)
            if fits and self.edition.uses_up_keys:
                self.carrying = EMPTY_CELL

    def _toggled(self, cell: int) -> int:
        if kind(cell) == UNLOCKED and self.edition.uses_up_keys:
            return cell
        if kind(cell) in (OPEN, UNLOCKED):
            return CLOSED << 3 | cell & 7
        if kind(cell) == CLOSED:
            return OPEN << 3 | cell & 7
        if kind(cell) == LOCKED:
            fits = self.carrying == _key_of(cell)
            return self.edition.unlocked << 3 | cell & 7 if fits else cell
        if kind(cell) == BOX:
            return EMPTY_CELL
        if kind(cell) >= BOX_WITH_KEY:
            return KEY << 3 | (cell >> 3) - BOX_WITH_KEY
        return cell

    def walk(self, path: list[int]) -> None:
        """Walk a path blocked only by closed doors, and stop facing its last cell."""
        for cell in path[:-1]:
            self._face(cell)
            if kind(self.cells[cell]) == CLOSED:
                self.act(TOGGLE)
            self.act(FORWARD)
        self._face(path[-1])

    def _face(self, cell: int) -> None:
        turns = (STEPS.index(cell - self.agent) - self.direction) % 4
        for action in ((), (RIGHT,), (RIGHT, RIGHT), (LEFT,))[turns]:
            self.act(action)


class _Ways:
    """The cheapest paths from the agent to other cells, up to the nearest goal (Dijkstra)."""

    def __init__(
        self, world: _Episode, goals: Collection[int], shut: Collection[int], prices: list[int]
    ) -> None:
        cells = world.cells
        self.goal: int | None = None
        self.costs = {world.agent: 0}
        self._prices = {world.agent: 0}
        queue = [world.agent]  # cost << 8 | cell
        while queue:
            cost, cell = divmod(heappop(queue), SIDE * SIDE)
            if cell in goals:
                self.goal = cell
                return
            if cost > self.costs[cell]:
                continue
            for step in STEPS:
                to = cell + step
                price = 1 if to in goals else 0 if to in shut else prices[cells[to]]
                if price and cost + price < self.costs.get(to, 1 << 16):
                    self.costs[to] = cost + price
                    self._prices[to] = price
                    heappush(queue, (cost + price) << 8 | to)

    def to(self, cell: int) -> list[int]:
        """The cells of the path to a cell, without the start."""
        path: list[int] = []
        step = self.last_step(cell)
        while step:
            path.append(cell)
            cell -= step
            step = self.last_step(cell, step)
        return path[::-1]

    def last_step(self, cell: int, preferred: int = 1) -> int:
        """The step by which the path enters the cell; 0 at the start. Paths of equal cost differ
        in their number of turns: passing the next step as `preferred` keeps the path straight."""
        if not self._prices[cell]:
            return 0
        before = self.costs[cell] - self._prices[cell]
        return next(s for s in (preferred, *STEPS) if self.costs.get(cell - s) == before)


class _Planner:
    """Plans actions in its world; each method raises `_NoWay` if it cannot reach its goal.

    `shut` are cells that no path may cross: those that it is about to clear and those that it
    could not clear.
    """

    def __init__(self, world: _Episode) -> None:
        self.world = world
        self.searches = 0

    def reach(self, find: Callable[[], set[int]], hold: int | None, shut: frozenset[int]) -> None:
        """Face one of the cells that `find` returns, while carrying `hold` (None: anything).

        The agent puts down what it carries as late as possible. It fetches a key only once the path
        from here to the door is clear, because clearing a path takes free hands.
        """
        for _ in range(MOST_ROUNDS):
            ways = self._ways(find(), shut)
            if ways.goal is None:
                raise _NoWay
            path = ways.to(ways.goal)
            obstacle = next((c for c in path[:-1] if self._is_obstacle(c)), None)
            if obstacle is not None:
                before = self.world.copy()
                try:
                    is_door = kind(self.world.cells[obstacle]) == LOCKED
                    (self.open_door if is_door else self.take)(obstacle, shut)
                except _NoWay:
                    self.world = before
                    shut |= {obstacle}
            elif hold is None or self.world.carrying == hold:
                return self.world.walk(path)
            elif hold == EMPTY_CELL:
                self._put_down(path, shut)
            else:
                self._fetch(hold, path, shut)
        raise _NoWay

    def _ways(self, goals: Collection[int], shut: Collection[int], clear: bool = False) -> _Ways:
        self.searches += 1
        if self.searches > MOST_SEARCHES:
            raise _NoWay
        if clear:
            return _Ways(self.world, goals, shut, CLEAR_PRICES)
        prices = PRICES.copy()
        there = {self.world.carrying, *self.world.cells}
        for c in range(len(COLOURS)):
            if self.world.carrying == KEY << 3 | c:
                prices[LOCKED << 3 | c] = UNLOCK_WITH_KEY_IN_HAND
            elif there & _sources(c):
                prices[LOCKED << 3 | c] = UNLOCK
        return _Ways(self.world, goals, shut, prices)

    def _is_obstacle(self, at: int) -> bool:
        cell = self.world.cells[at]
        return bool(kind(cell) == LOCKED or is_movable(cell))

    def open_door(self, at: int, shut: frozenset[int]) -> None:
        door = self.world.cells[at]
        self.reach(lambda: {at}, _key_of(door) if kind(door) == LOCKED else None, shut | {at})
        self.world.act(TOGGLE)

    def take(self, at: int, shut: frozenset[int]) -> None:
        self.reach(lambda: {at}, EMPTY_CELL, shut | {at})
        self.world.act(PICK_UP)

    def _fetch(self, key: int, path: list[int], shut: frozenset[int]) -> None:
        """Pick up the nearest key of this colour, and open its box first if it is in one."""
        sources = _sources(colour(key))
        if self.world.carrying in sources:  # in a box, which opens only on the floor
            self._put_down(path, shut)
        self.reach(
            lambda: {at for at, cell in enumerate(self.world.cells) if cell in sources},
            EMPTY_CELL,
            shut,
        )
        if self.world.cells[self.world.front] != key:
            self.world.act(TOGGLE)
        self.world.act(PICK_UP)

    def _put_down(self, path: list[int], shut: frozenset[int]) -> None:
        """Drop what is carried beside the path, at the least detour that cuts nothing off. If there
        is no such cell, drop it where the path to the goal is then cheapest."""
        ways = self._ways((), (), clear=True)
        places = []  # detour, cost, where to stand, where to drop
        for stand, cost in ways.costs.items():
            arrival = ways.last_step(stand) or STEPS[self.world.direction]
            there_and_back = 2 * cost + 2 if cost and stand not in path else 0
            for step in STEPS:
                if self.world.cells[stand + step] == EMPTY_CELL:
                    turns = 0 if step == arrival else 2 if step == -arrival else 1
                    places.append((there_and_back + 2 * turns, cost, stand, stand + step))
        places.sort()
        all_in_reach = self._count_in_reach(self.world.agent)
        for _, _, stand, drop in places:
            if drop not in path and self._count_in_reach(stand, drop) == all_in_reach:
                break
        else:
            priced = [
                (cost + after, stand, drop)
                for _, cost, stand, drop in places
                if (after := self._cost_after(stand, drop, path[-1], shut)) is not None
            ]
            if not priced:
                raise _NoWay
            _, stand, drop = min(priced)
        self.world.walk([*ways.to(stand), drop])
        self.world.act(DROP)

    def _count_in_reach(self, start: int, without: int = -1) -> int:
        """Count the cells that can be walked on or touched without moving or unlocking anything."""
        cells = self.world.cells
        seen = {start}
        stack = [start]
        while stack:
            cell = stack.pop()
            for step in STEPS:
                to = cell + step
                if to not in seen and kind(cells[to]) >= LOCKED:
                    seen.add(to)
                    if to != without and CLEAR_PRICES[cells[to]]:
                        stack.append(to)
        return len(seen)

    def _cost_after(self, stand: int, drop: int, goal: int, shut: frozenset[int]) -> int | None:
        before = self.world
        self.world = before.copy()
        self.world.agent = stand
        self.world.cells[drop], self.world.carrying = self.world.carrying, EMPTY_CELL
        ways = self._ways({goal}, shut)
        self.world = before
        return None if ways.goal is None else ways.costs[ways.goal]


def _key_of(door: int) -> int:
    return KEY << 3 | (door & 7)


def _sources(c: int) -> set[int]:
    """Cells that provide a key of this colour: the key itself, and boxes that hold it."""
    return {KEY << 3 | c, *(BOX_WITH_KEY + c << 3 | box for box in range(len(COLOURS)))}


def _name(target: int) -> str:
    what = {OPEN: "door", UNLOCKED: "door", KEY: "key", BALL: "ball"}.get(kind(target), "box")
    return f"{COLOURS[colour(target)]} {what}"
