"""The eighteen tasks as data: rooms, doors, keys and goals.

A map is a grid of up to 3 × 3 square rooms that share walls. The wall between two neighbouring
rooms may have a door. These twelve places for a door are numbered:

     (0,0)  0  (1,0)  1  (2,0)
       6         7         8
     (0,1)  2  (1,1)  3  (2,1)
       9        10        11
     (0,2)  4  (1,2)  5  (2,2)
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from mastery.errors import MasteryError, did_you_mean

Room = tuple[int, int]  # column, row

EAST, SOUTH, WEST, NORTH = range(4)
SIDE = 16  # every map is stored as 16 × 16 cells, filled up with wall


def place_of_door(room: Room, side: int) -> int | None:
    """The place for a door on a side of a room; None at the edge of the 3 × 3 rooms."""
    i, j = room
    if side in (WEST, NORTH):
        i, j = (i - 1, j) if side == WEST else (i, j - 1)
    if side in (EAST, WEST):
        return 2 * j + i if 0 <= i < 2 else None
    return 6 + 3 * j + i if 0 <= j < 2 else None


@dataclass(frozen=True)
class Lock:
    """A locked door and its key: the key is in `room`, and the door is on this side of it."""

    room: Room
    side: int
    colour: int  # which of the level's colours


@dataclass(frozen=True)
class MiniGridTask:
    """One of MiniGrid's environments. An episode has at most `n_max` steps."""

    name: str
    version: int
    room_size: int  # walls included
    rows: int
    columns: int
    n_max: int
    goal: str  # "door": open it; "box" and "ball": pick it up
    agent_room: Room
    goal_rooms: tuple[Room, ...] = ()  # the goal is in one of them
    closed: tuple[tuple[Room, int, int], ...] = ()  # unlocked doors: room, side, colour
    locks: tuple[Lock, ...] = ()
    blocked: bool = False  # a ball stands before each locked door
    hidden: bool = False  # each key is in a box
    corridor: bool = False  # KeyCorridor: each level draws its own doors
    maze: bool = False  # ObstructedMaze: blue goal, green balls, grey boxes, distinct colours

    @property
    def id(self) -> str:
        """The environment's name in the package."""
        return f"MiniGrid-{self.name}-v{self.version}"

    @property
    def width(self) -> int:
        return (self.room_size - 1) * self.columns + 1

    @property
    def height(self) -> int:
        return (self.room_size - 1) * self.rows + 1


def _two_rooms(name: str, n_max: int, goal: str, **settings: Any) -> MiniGridTask:
    return MiniGridTask(
        name,
        version=0,
        room_size=6,
        rows=1,
        columns=2,
        n_max=n_max,
        goal=goal,
        agent_room=(0, 0),
        goal_rooms=((1, 0),),
        locks=(Lock((0, 0), EAST, 0),),
        **settings,
    )


def _corridor(size: int, rows: int) -> MiniGridTask:
    return MiniGridTask(
        f"KeyCorridorS{size}R{rows}",
        version=0,
        room_size=size,
        rows=rows,
        columns=3,
        n_max=30 * size**2,
        goal="ball",
        agent_room=(1, rows // 2),
        corridor=True,
    )


def _maze(
    name: str, quarters: int, rooms: int, agent_room: Room, blocked: bool, hidden: bool
) -> MiniGridTask:
    """The first `quarters` rooms beside the middle one, clockwise from the right, have an unlocked
    door to it, and each has locked doors to its two corner rooms. The goal is in a corner room."""
    beside = ((2, 1), (1, 2), (0, 1), (1, 0))[:quarters]
    return MiniGridTask(
        f"ObstructedMaze-{name}",
        version=1 if blocked else 0,
        room_size=6,
        rows=3,
        columns=3,
        n_max=4 * rooms * 6**2,
        goal="ball",
        agent_room=agent_room,
        goal_rooms=((2, 0), (2, 2), (0, 2), (0, 0))[:quarters],
        closed=tuple(((1, 1), i, i) for i in range(quarters)),
        locks=tuple(
            Lock(room, (i + k) % 4, (i + k) % 6) for i, room in enumerate(beside) for k in (-1, 1)
        ),
        blocked=blocked,
        hidden=hidden,
        maze=True,
    )


TASKS = (
    _two_rooms("Unlock", 288, "door"),
    _two_rooms("UnlockPickup", 288, "box"),
    _two_rooms("BlockedUnlockPickup", 576, "box", blocked=True),
    _corridor(3, 1),
    _corridor(3, 2),
    _corridor(3, 3),
    _corridor(4, 3),
    _corridor(5, 3),
    _corridor(6, 3),
    _two_rooms("ObstructedMaze-1Dl", 288, "ball", maze=True),
    _two_rooms("ObstructedMaze-1Dlh", 288, "ball", maze=True, hidden=True),
    _two_rooms("ObstructedMaze-1Dlhb", 288, "ball", maze=True, hidden=True, blocked=True),
    _maze("2Dl", 1, 4, (2, 1), blocked=False, hidden=False),
    _maze("2Dlh", 1, 4, (2, 1), blocked=False, hidden=True),
    _maze("2Dlhb", 1, 4, (2, 1), blocked=True, hidden=True),
    _maze("1Q", 1, 5, (1, 1), blocked=True, hidden=True),
    _maze("2Q", 2, 11, (2, 1), blocked=True, hidden=True),
    _maze("Full", 4, 25, (1, 1), blocked=True, hidden=True),
)
"""The eighteen tasks. A task's number is its index here."""

NAMES = tuple(task.name for task in TASKS)
"""The names of the tasks, in the same order."""


def task_id(name: str) -> int:
    """Find the index of a task in TASKS.

    Args:
        name: The task's name, with or without the package's `MiniGrid-` and `-v0`.

    Returns:
        The index.

    Raises:
        MasteryError: If there is no such task, or not in this version.
    """
    found = re.fullmatch(r"(?:MiniGrid-)?(.+?)(?:-v(\d+))?", str(name))
    short, version = found.groups() if found else (str(name), None)
    if short not in NAMES:
        raise MasteryError(f"there is no MiniGrid task {name!r} here{did_you_mean(short, NAMES)}")
    task = TASKS[NAMES.index(short)]
    if version is not None and int(version) != task.version:
        raise MasteryError(
            f"{name!r} is not here: of {short} there is version {task.version}, {task.id!r}"
        )
    return NAMES.index(short)
