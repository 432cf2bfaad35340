"""Editions of MiniGrid: rules, view and levels of September 2018, worked out by hand.

No release of that MiniGrid can be installed, so the expected values come from its description.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from minigrid.core.grid import Grid
from minigrid.core.world_object import Wall
from typer.testing import CliRunner

from mastery import MasteryError
from mastery.cli import app
from mastery.minigrid import make, make_vec
from mastery.minigrid.actions import DONE, DROP, FORWARD, LEFT, PICK_UP, RIGHT, TOGGLE
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
    RED,
    UNLOCKED,
    UNSEEN,
    WALL_CELL,
    YELLOW,
)
from mastery.minigrid.editions import EDITIONS, find_edition
from mastery.minigrid.exchange import to_package
from mastery.minigrid.grid import pack, unpack
from mastery.minigrid.planner import plan
from mastery.minigrid.play import play
from mastery.minigrid.rendering import render
from mastery.minigrid.rules import MINIGRID_REWARD, PAPER_REWARD, act
from mastery.minigrid.state import State
from mastery.minigrid.tasks import NAMES
from mastery.minigrid.vision import observe, visible

TODAY, OLD, OLD_RULES, OLD_VIEW, PLAIN_DOORS = map(
    find_edition, ("3.2.0", "2018", "2018-rules", "2018-view", "2018-plain-doors")
)
editions = pytest.mark.parametrize("edition", EDITIONS.values(), ids=tuple(EDITIONS))
old_rules = pytest.mark.parametrize("edition", [OLD, OLD_RULES, PLAIN_DOORS], ids=lambda e: e.name)

# each is compiled once for an edition
step = jax.jit(act, static_argnums=3)
look = jax.jit(observe, static_argnums=1)
lit = jax.jit(visible, static_argnums=1)

RED_KEY, YELLOW_KEY, GREEN_BALL = KEY << 3 | RED, KEY << 3 | YELLOW, BALL << 3 | GREEN
LOCKED_RED, UNLOCKED_RED, OPEN_RED = LOCKED << 3 | RED, UNLOCKED << 3 | RED, OPEN << 3 | RED
SIGNS = {
    "#": WALL_CELL,
    " ": EMPTY_CELL,
    "L": LOCKED_RED,
    "U": UNLOCKED_RED,
    "C": CLOSED << 3 | BLUE,
    "O": OPEN << 3 | BLUE,
    "r": RED_KEY,
    "y": YELLOW_KEY,
    "b": GREEN_BALL,
    "x": BOX << 3 | GREY,
    "h": (BOX_WITH_KEY + YELLOW) << 3 | GREY,
    "t": BOX << 3 | GREEN,  # the target
}


def world(
    *rows: str, carrying: int = EMPTY_CELL, target: int = SIGNS["t"], task: str = ""
) -> State:
    """A state drawn with SIGNS; the agent is > v < or ^."""
    cells = np.full((16, 16), WALL_CELL, np.uint8)
    for y, row in enumerate(rows):
        for x, sign in enumerate(row):
            if sign in ">v<^":
                agent, direction, sign = 16 * y + x, ">v<^".index(sign), " "
            cells[y, x] = SIGNS[sign]
    numbers = agent, direction, NAMES.index(task or "UnlockPickup"), 0
    agent, direction, number, steps = (jnp.int32(n) for n in numbers)
    return State(
        pack(cells), agent, direction, jnp.uint8(target), number, jnp.uint8(carrying), steps
    )


def do(state: State, actions: list[int], edition=OLD):
    """The state after these actions, and the outcome of the last."""
    for action in actions:
        state, outcome = step(state, jnp.int32(action), MINIGRID_REWARD, edition)
    return state, outcome


def at(state: State, x: int, y: int) -> int:
    return int(unpack(state.grid)[y, x])


def agent_at(state: State) -> tuple[int, int]:
    y, x = divmod(int(state.agent), 16)
    return x, y


# ---- rules

DOOR = (3, 1)
ROOMS = "#######", "#y>L t#", "#######"


@old_rules
def test_unlocking_a_door_uses_up_its_key(edition):
    state, _ = do(world(*ROOMS, carrying=RED_KEY), [TOGGLE], edition)
    assert at(state, *DOOR) == UNLOCKED_RED
    assert state.carrying == EMPTY_CELL
    # the hands are free, so the next thing can be picked up at once
    state, _ = do(state, [LEFT, LEFT, PICK_UP], edition)
    assert state.carrying == YELLOW_KEY
    assert at(state, 1, 1) == EMPTY_CELL


@old_rules
@pytest.mark.parametrize("carrying", [EMPTY_CELL, YELLOW_KEY, BALL << 3 | RED, BOX << 3 | RED])
def test_only_its_key_unlocks_a_door(edition, carrying):
    before = world(*ROOMS, carrying=carrying)
    state, _ = do(before, [TOGGLE, FORWARD], edition)
    assert np.array_equal(state.grid, before.grid)
    assert state.carrying == carrying
    assert agent_at(state) == (2, 1)


@old_rules
@pytest.mark.parametrize("carrying", [EMPTY_CELL, YELLOW_KEY, GREEN_BALL])
def test_an_unlocked_door_stays_open(edition, carrying):
    state = world("#######", "#y>U t#", "#######", carrying=carrying)
    for _ in range(3):
        state, _ = do(state, [TOGGLE], edition)
        assert at(state, *DOOR) == UNLOCKED_RED
        assert state.carrying == carrying
    state, _ = do(state, [FORWARD, FORWARD, RIGHT, RIGHT, TOGGLE], edition)  # from behind, too
    assert agent_at(state) == (4, 1)
    assert at(state, *DOOR) == UNLOCKED_RED


@old_rules
def test_a_second_key_of_its_colour_is_used_up_on_an_unlocked_door(edition):
    """Full has two doors and two keys of some colours."""
    state, _ = do(world("#######", "#y>U t#", "#######", carrying=RED_KEY), [TOGGLE], edition)
    assert at(state, *DOOR) == UNLOCKED_RED
    assert state.carrying == EMPTY_CELL


@old_rules
def test_nothing_is_picked_up_from_or_dropped_in_an_unlocked_door(edition):
    before = world("#######", "#y>U t#", "#######", carrying=YELLOW_KEY)
    state, _ = do(before, [DROP], edition)
    assert (at(state, *DOOR), state.carrying) == (UNLOCKED_RED, YELLOW_KEY)
    state, _ = do(before._replace(carrying=jnp.uint8(EMPTY_CELL)), [PICK_UP], edition)
    assert (at(state, *DOOR), state.carrying) == (UNLOCKED_RED, EMPTY_CELL)


@pytest.mark.parametrize("edition", [TODAY, OLD_VIEW], ids=lambda e: e.name)
def test_the_rules_of_today_keep_the_key_and_close_the_door(edition):
    state, _ = do(world(*ROOMS, carrying=RED_KEY), [TOGGLE], edition)
    # only the view of 2018 tells an unlocked door from an open one
    assert at(state, *DOOR) == (OPEN_RED if edition is TODAY else UNLOCKED_RED)
    assert state.carrying == RED_KEY
    through, _ = do(state, [FORWARD], edition)
    assert agent_at(through) == DOOR
    state, _ = do(state, [TOGGLE], edition)
    assert at(state, *DOOR) == CLOSED << 3 | RED
    assert state.carrying == RED_KEY
    state, _ = do(state, [LEFT, LEFT, DROP, TOGGLE, LEFT, LEFT, TOGGLE], edition)
    assert at(state, *DOOR) == OPEN_RED


@editions
def test_other_things_are_the_same_in_every_edition(edition):
    state, _ = do(world("######", "#>C t#", "######", carrying=KEY << 3 | BLUE), [TOGGLE], edition)
    assert at(state, 2, 1) == OPEN << 3 | BLUE
    assert state.carrying == KEY << 3 | BLUE  # a door without a lock takes no key
    state, _ = do(state, [TOGGLE], edition)
    assert at(state, 2, 1) == CLOSED << 3 | BLUE
    state, _ = do(state, [TOGGLE, FORWARD], edition)
    assert agent_at(state) == (2, 1)

    state, _ = do(world("####", "#>h#", "####"), [TOGGLE], edition)
    assert at(state, 2, 1) == YELLOW_KEY
    state, _ = do(state, [PICK_UP, TOGGLE, DROP], edition)
    assert at(state, 2, 1) == YELLOW_KEY
    state, _ = do(world("####", "#>h#", "####"), [PICK_UP], edition)
    assert state.carrying == SIGNS["h"]
    state, _ = do(world("####", "#>x#", "####"), [TOGGLE], edition)
    assert at(state, 2, 1) == EMPTY_CELL
    before = world("#####", "#b>b#", "#####")
    state, _ = do(before, [TOGGLE, FORWARD, DONE], edition)
    assert np.array_equal(state.grid, before.grid)
    state, _ = do(before, [PICK_UP, LEFT, LEFT, PICK_UP], edition)  # hands hold one thing
    assert (at(state, 3, 1), at(state, 1, 1), state.carrying) == (
        EMPTY_CELL,
        GREEN_BALL,
        GREEN_BALL,
    )
    assert do(world("####", "#>t#", "####"), [PICK_UP], edition)[1].terminated


@pytest.mark.parametrize("edition", [TODAY, OLD], ids=lambda e: e.name)
def test_unlock_succeeds_when_the_locked_door_opens(edition):
    target = OPEN_RED if edition is TODAY else UNLOCKED_RED
    state = world("#####", "#r^L#", "#####", target=target, task="Unlock")
    state, outcome = do(state, [LEFT, PICK_UP], edition)
    assert not outcome.terminated
    _, wrong = do(state._replace(carrying=jnp.uint8(YELLOW_KEY)), [RIGHT, RIGHT, TOGGLE], edition)
    assert not wrong.terminated
    assert wrong.reward == 0
    _, outcome = do(state, [RIGHT, RIGHT, TOGGLE], edition)
    assert outcome.terminated
    assert outcome.reward == np.float32(1 - 0.9 * 5 / 288)
    paper = step(do(state, [RIGHT, RIGHT], edition)[0], jnp.int32(TOGGLE), PAPER_REWARD, edition)
    assert paper[1].reward == np.float32(1 - 5 / 288)


def test_the_planner_uses_free_hands():
    """After the door nothing needs to be put down in 2018: the key is gone."""
    state = world("#######", "#r>L t#", "#######")
    grid, target = unpack(state.grid), SIGNS["t"]
    turn = [RIGHT, RIGHT]
    fetch = [*turn, PICK_UP, *turn, TOGGLE]
    assert plan(grid, 18, 0, target, edition=OLD) == [*fetch, FORWARD, FORWARD, PICK_UP]
    assert DROP in plan(grid, 18, 0, target)


# ---- what a cell looks like

COLOURED = (CLOSED, OPEN, LOCKED, UNLOCKED, KEY, BALL, BOX, BOX_WITH_KEY + YELLOW)
TYPES_AND_STATES = {  # in the order of COLOURED
    "3.2.0": ((4, 1), (4, 0), (4, 2), (4, 0), (5, 0), (6, 0), (7, 0), (7, 0)),
    "2018": ((3, 0), (3, 1), (4, 0), (4, 1), (5, 0), (6, 0), (7, 0), (7, 0)),
    "2018-plain-doors": ((3, 0), (3, 1), (4, 0), (3, 1), (5, 0), (6, 0), (7, 0), (7, 0)),
}
TYPES_AND_STATES["2018-rules"] = TYPES_AND_STATES["3.2.0"]
TYPES_AND_STATES["2018-view"] = TYPES_AND_STATES["2018"]


def seen_as(edition) -> dict[int, tuple[int, int, int]]:
    """Type, colour and state of every cell that can be seen, by hand."""
    old = edition in (OLD, OLD_VIEW, PLAIN_DOORS)
    empty, wall = ((0, 0, 0), (1, 5, 0)) if old else ((1, 0, 0), (2, 5, 0))
    table = {UNSEEN: (0, 0, 0), EMPTY_CELL: empty, WALL_CELL: wall}
    for kind, (type_, state) in zip(COLOURED, TYPES_AND_STATES[edition.name], strict=True):
        table |= {kind << 3 | colour: (type_, colour, state) for colour in range(6)}
    return table


@editions
def test_the_numbers_of_every_cell(edition):
    """Each cell once before the agent, with nothing in its hands, and each thing in its hands."""
    table = {cell: numbers for cell, numbers in seen_as(edition).items() if cell != UNSEEN}
    empty = table[EMPTY_CELL]
    room = world("#####", "#   #", "#>  #", "#   #", "#####")
    ahead = []
    for cell in table:
        cells = unpack(room.grid).copy()
        cells[2, 2] = cell
        ahead.append(room._replace(grid=pack(cells)))
    things = [cell for cell in table if KEY << 3 <= cell < UNLOCKED << 3]
    held = [room._replace(carrying=jnp.uint8(cell)) for cell in things]
    images = np.asarray(look(jax.tree.map(lambda *x: jnp.stack(x), *ahead, *held), edition))
    assert images.dtype == np.uint8
    for image, (cell, numbers) in zip(images, table.items(), strict=False):
        assert tuple(image[3, 5]) == numbers, cell
        assert tuple(image[3, 6]) == empty  # carries nothing
    for image, cell in zip(images[len(table) :], things, strict=True):
        assert tuple(image[3, 6]) == table[cell]
        assert tuple(image[3, 5]) == empty


@editions
def test_a_shut_door_hides_what_is_behind_it_and_an_open_one_does_not(edition):
    key = (5, YELLOW, 0)
    for sign, seen in (("C", False), ("L", False), ("O", True), ("U", True)):
        image = np.asarray(look(world("######", f"#>{sign}y #", "######"), edition))
        assert tuple(image[3, 4]) == (key if seen else (0, 0, 0))
    image = np.asarray(look(world("######", "#> #y#", "######"), edition))
    assert tuple(image[3, 3]) == (0, 0, 0)  # behind a wall


@editions
def test_observations_become_cells_and_observations_again(edition):
    table = seen_as(edition)
    cells = np.array(list(table), np.uint8)
    images = np.array(list(table.values()), np.uint8)
    assert np.array_equal(edition.decoded[cells], images)
    again = edition.encode(images)
    assert again.dtype == np.uint8
    assert np.array_equal(edition.decoded[again], images)
    assert np.array_equal(edition.encode(images.reshape(3, -1, 3)), again.reshape(3, -1))
    # nobody sees what a box holds; where two kinds look the same, it is the plainer one
    plain = {cell: cell for cell in table}
    for colour in range(6):
        plain[BOX_WITH_KEY + YELLOW << 3 | colour] = BOX << 3 | colour
        if edition not in (OLD, OLD_VIEW):
            plain[UNLOCKED << 3 | colour] = OPEN << 3 | colour
    if edition in (OLD, OLD_VIEW, PLAIN_DOORS):
        plain[UNSEEN] = EMPTY_CELL
    assert again.tolist() == list(plain.values())


# ---- what is seen


def light(clear: np.ndarray, farthest: int) -> np.ndarray:
    """`process_vis`: rows from near to far, in each from left to right and back. A lit cell that
    one can see through lights its neighbour in that direction, and both cells before them.
    `farthest`: the last row to be gone through. Indexed [i, j]; the agent is at [3, 6]."""
    lit = np.zeros((7, 7), bool)
    lit[3, 6] = True
    for j in range(6, farthest - 1, -1):
        for way in (1, -1):
            for i in range(7)[::way]:
                if lit[i, j] and clear[i, j]:
                    for u in (i, i + way):
                        if 0 <= u < 7:
                            lit[u, j] = True
                            if j > 0:
                                lit[u, j - 1] = True
    return lit


def drawn(*rows: str) -> np.ndarray:
    """Rows from far to near, indexed [i, j]."""
    return np.array([list(row) for row in rows]).T


CORRIDOR = drawn("       ", *6 * ["### ###"])


def test_in_2018_light_does_not_spread_sideways_in_the_farthest_row():
    cells = np.where(CORRIDOR == "#", WALL_CELL, EMPTY_CELL).astype(np.uint8)
    old = drawn(*7 * ["--xxx--"]) == "x"
    today = drawn("xxxxxxx", *6 * ["--xxx--"]) == "x"
    for edition in EDITIONS.values():
        expected = old if edition in (OLD, OLD_VIEW, PLAIN_DOORS) else today
        assert np.array_equal(lit(cells, edition), expected)
    assert np.array_equal(light(CORRIDOR == " ", farthest=1), old)
    assert np.array_equal(light(CORRIDOR == " ", farthest=0), today)


def test_in_2018_light_spreads_sideways_in_the_other_rows():
    view = drawn("#######", "       ", *5 * ["### ###"])
    cells = np.where(view == "#", WALL_CELL, EMPTY_CELL).astype(np.uint8)
    expected = drawn("xxxxxxx", "xxxxxxx", *5 * ["--xxx--"]) == "x"
    for edition in (OLD, TODAY):
        assert np.array_equal(lit(cells, edition), expected)


views = arrays(np.uint8, (7, 7), elements=st.sampled_from(list(SIGNS.values())))


@given(views)
def test_what_is_seen_is_what_process_vis_finds(cells):
    clear = ~np.isin(cells >> 3, (WALL_CELL >> 3, LOCKED, CLOSED))
    assert np.array_equal(lit(cells, OLD), light(clear, farthest=1))
    assert np.array_equal(lit(cells, TODAY), light(clear, farthest=0))
    grid = Grid(7, 7)
    for i, j in np.argwhere(~clear):
        grid.set(int(i), int(j), Wall())
    assert np.array_equal(lit(cells, TODAY), grid.process_vis((3, 6)))


# ---- the ways in


def test_an_unknown_edition_is_named_with_those_that_there_are():
    for call in (
        lambda: play("Unlock", edition="2017"),
        lambda: make_vec("Unlock", 2, edition="2017"),
        lambda: make("Unlock", edition="2017"),
    ):
        with pytest.raises(MasteryError, match="there is no edition '2017' of MiniGrid") as error:
            call()
        for name in ("3.2.0", "2018", "2018-rules", "2018-view", "2018-plain-doors"):
            assert repr(name) in str(error.value)


def test_play_plays_by_the_rules_of_2018():
    episode = play("UnlockPickup", "planner", seed=3, reward="minigrid", edition="2018")
    assert episode.terminated
    assert episode.reward == np.float32(1 - 0.9 * len(episode.actions) / 288)
    assert DROP not in episode.actions
    key_is_held = episode.states.carrying >> 3 == KEY
    door_is_open = (unpack(episode.states.grid) >> 3 == UNLOCKED).any((1, 2))
    assert key_is_held.any()
    assert door_is_open[-1]
    assert not (key_is_held & door_is_open).any()


def test_many_environments_show_the_numbers_of_2018():
    names = ["Unlock", "KeyCorridorS3R2", "ObstructedMaze-1Dlh"]
    envs, today = (make_vec(names, 64, edition=name) for name in ("2018", "3.2.0"))
    seen, shown = envs.reset(seed=0)[0]["image"], today.reset(seed=0)[0]["image"]
    # the same levels, so cell by cell the same things in other numbers
    numbers = {(0, 0, 0): (0, 0, 0), (1, 0, 0): (0, 0, 0), (2, 5, 0): (1, 5, 0)}
    for colour in range(6):
        numbers |= {(4, colour, 0): (3, colour, 1), (4, colour, 1): (3, colour, 0)}
        numbers |= {(4, colour, 2): (4, colour, 0)}
        numbers |= {(kind, colour, 0): (kind, colour, 0) for kind in (5, 6, 7)}
    expected = [numbers[tuple(cell)] for cell in shown.reshape(-1, 3).tolist()]
    expected = np.reshape(expected, shown.shape)
    assert np.array_equal(seen[:, :, 1:], expected[:, :, 1:])
    farthest = seen[:, :, 0] != expected[:, :, 0]
    assert (seen[:, :, 0][farthest] == 0).all()  # seen today, and not then
    found = {tuple(cell) for cell in seen.reshape(-1, 3).tolist()}
    assert {(0, 0, 0), (1, 5, 0)} < found
    assert {3, 4, 5, 7} <= {type_ for type_, _, _ in found}


def test_one_environment_takes_the_key_and_shows_the_unlocked_door():
    env = make("UnlockPickup", edition="2018", reward="minigrid")
    observation, _ = env.reset(seed=0)
    state = env.state
    where = int(state.agent), int(state.direction), int(state.target)
    actions = plan(unpack(state.grid), *where, edition=OLD)
    for action in actions:
        before, door = observation["image"][3, 6], observation["image"][3, 5]
        observation, reward, terminated, *_ = env.step(action)
        image = observation["image"]
        if action == TOGGLE:
            assert tuple(door) == (4, door[1], 0)
            assert tuple(before) == (5, door[1], 0)
            assert tuple(image[3, 5]) == (4, door[1], 1)
            assert tuple(image[3, 6]) == (0, 0, 0)
    assert actions.count(TOGGLE) == 1
    assert terminated
    assert reward == np.float32(1 - 0.9 * len(actions) / 288)


def test_an_unlocked_door_is_drawn_as_an_open_one():
    drawings = {}
    for kind in (LOCKED, OPEN, UNLOCKED):
        cells = unpack(world(*ROOMS).grid).copy()
        cells[1, 3] = kind << 3 | RED
        drawings[kind] = render(cells, 18, 0, width=7, height=3, tile=8)
    assert np.array_equal(drawings[UNLOCKED], drawings[OPEN])
    assert not np.array_equal(drawings[UNLOCKED], drawings[LOCKED])


def test_the_package_gets_an_open_door_for_an_unlocked_one():
    rows = ["###########", "#   #     #", "#  >U    t#", *2 * ["#   #     #"], "###########"]
    for task, target in (("UnlockPickup", SIGNS["t"]), ("Unlock", UNLOCKED_RED)):
        env = to_package(world(*rows, target=target, task=task))
        door = env.grid.get(4, 2)
        assert (door.type, door.color, door.is_open, door.is_locked) == ("door", "red", True, False)
        assert tuple(env.gen_obs()["image"][3, 5]) == (4, RED, 0)
        if task == "Unlock":
            assert env.door is door


def test_the_command_plays_an_edition():
    command = ["play", "Unlock", "--edition", "2018", "--agent", "planner"]
    result = CliRunner().invoke(app, command, catch_exceptions=False)
    assert result.exit_code == 0
    assert "open the door" in result.output
    assert "reached the goal" in result.output
    steps = len(play("Unlock", "planner", edition="2018").actions)
    assert f"{steps} steps" in result.output
    result = CliRunner().invoke(app, ["play", "Unlock", "--edition", "2017"])
    assert "there is no edition '2017'" in str(result.exception)
