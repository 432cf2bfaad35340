"""Solves a level: from a map, an agent and a goal to the actions that reach the goal.

The planner looks for the cheapest way to the goal as if what stands in the way could be passed at
a price, takes the first obstacle on it out of the way (for a locked door: gets the key and opens
it; for a thing: picks it up), and looks again. To get a key is a goal like any other, with its own
way and its own obstacles. Each action is simulated as it is planned.
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

# What it costs to enter a cell, by its byte, about in actions; 0: there is no way in. What has to
# be moved or unlocked costs more than it takes, so that a clear way is taken wherever there is one:
# else what was put down beside the way could be what the next way leads through.
CLEAR_PRICES = [0] * (KINDS << 3)
for _colour in range(8):
    for _kind in (OPEN, EMPTY, UNLOCKED):
        CLEAR_PRICES[_kind << 3 | _colour] = 1
    CLEAR_PRICES[CLOSED << 3 | _colour] = 2
PRICES = [20 if is_movable(_cell) else price for _cell, price in enumerate(CLEAR_PRICES)]
UNLOCK_WITH_KEY_IN_HAND, UNLOCK = 2, 50

MOST_ROUNDS = 16  # of looking for a way to one goal
MOST_SEARCHES = 300  # in one attempt: a level takes about 20
MOST_ATTEMPTS = 16


def plan(
    grid: NDArray[np.uint8],
    agent: int,
    direction: int,
    target: int,
    carrying: int = EMPTY_CELL,
    edition: Edition = TODAY,
) -> list[int]:
    """The actions from here to the goal; they are few, if not the fewest.

    `grid` is [16, 16] cells indexed [y, x] with a wall around the map, and `agent` is y · 16 + x.
    `target` is the thing to pick up or, of kind OPEN or UNLOCKED, the door to open. A
    `MasteryError` says that the thing is gone or that no way to it was found.
    """
    grid = np.asarray(grid)
    if grid.shape != (SIDE, SIDE) or grid.dtype != np.uint8:
        raise MasteryError(
            f"grid is {grid.dtype} of shape {grid.shape}: give uint8 of shape {(SIDE, SIDE)}, as "
            "`unpack(state.grid)` is"
        )
    target, carrying = int(target), int(carrying)
    is_door = kind(target) in (OPEN, UNLOCKED)
    if not (is_door or kind(target) in (BALL, BOX)) or direction not in range(4):
        raise MasteryError(
            f"target {target} or direction {direction} is not one: a target is a cell, an open "
            "door, ball or empty box, and a direction 0 to 3"
        )
    cells = grid.tobytes()
    if not 0 <= agent < len(cells) or not is_walkable(cells[agent]):
        raise MasteryError(f"the agent cannot stand at {agent}: give {SIDE} y + x of a free cell")
    if target == carrying or (is_door and target in cells):
        return []  # nothing is left to do
    wanted = {target}
    if is_door:
        wanted = {state << 3 | colour(target) for state in (LOCKED, CLOSED)}
    found = next((at for at, cell in enumerate(cells) if cell in wanted), None)
    if found is None:
        raise MasteryError(f"there is no {_name(target)} on the map: the level cannot be solved")
    chance = Random(0)  # the same for the same level
    for attempt in range(MOST_ATTEMPTS):
        world = _World(cells, int(agent), int(direction), carrying, edition)
        # amid many things the first way tried may go in circles: then try after a few random acts
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


class _NoWay(Exception):
    """A goal cannot be reached from here."""


class _World:
    """What the rules say an action does, and the actions so far."""

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

    def copy(self) -> _World:
        world = _World(self.cells, self.agent, self.direction, self.carrying, self.edition)
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
        """Along a path on which nothing but closed doors is in the way, to face its last cell."""
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
    """The cheapest way from a cell to each other cell, and to the nearest of the goals."""

    def __init__(
        self, world: _World, goals: Collection[int], shut: Collection[int], prices: list[int]
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
        """The cells of the way, the first one left out."""
        path: list[int] = []
        step = self.last_step(cell)
        while step:
            path.append(cell)
            cell -= step
            step = self.last_step(cell, step)
        return path[::-1]

    def last_step(self, cell: int, preferred: int = 1) -> int:
        """The step by which the way enters the cell; 0 at the start. Ways of the same cost differ
        in how often they turn: to prefer the step that comes after this one makes them straight."""
        if not self._prices[cell]:
            return 0
        before = self.costs[cell] - self._prices[cell]
        return next(s for s in (preferred, *STEPS) if self.costs.get(cell - s) == before)


class _Planner:
    """Extends the actions of its world by what it is asked to do, or raises `_NoWay`.

    `shut` are the cells that no way may lead through: those that it is about to make passable, and
    those that it could not.
    """

    def __init__(self, world: _World) -> None:
        self.world = world
        self.searches = 0

    def reach(self, find: Callable[[], set[int]], hold: int | None, shut: frozenset[int]) -> None:
        """Stands before one of the cells found, with this in its hands (None: whatever).

        What is carried is put down as late as can be, and a key is fetched only once the way from
        here to its door is clear: to clear the way takes free hands.
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
        """Takes the nearest key of this colour, out of its box if it is in one."""
        sources = _sources(colour(key))
        if self.world.carrying in sources:  # in a box: only what stands on the floor is opened
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
        """Drops what is carried beside the path, where it cuts nothing off and is the least detour;
        where there is no such cell, where the way to the path's end is then the cheapest."""
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
        """How many cells can be walked on or touched while nothing is moved or unlocked."""
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
    """The cells a key of this colour can be got from: the key itself, and boxes that hold it."""
    return {KEY << 3 | c, *(BOX_WITH_KEY + c << 3 | box for box in range(len(COLOURS)))}


def _name(target: int) -> str:
    what = {OPEN: "door", UNLOCKED: "door", KEY: "key", BALL: "ball"}.get(kind(target), "box")
    return f"{COLOURS[colour(target)]} {what}"
