"""Play an episode and draw it, as frames or as a GIF."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from mastery.checkpoint import replace_file
from mastery.errors import MasteryError, check_whole, needs
from mastery.minigrid.actions import ACTIONS
from mastery.minigrid.editions import TODAY, Edition, find_edition
from mastery.minigrid.grid import unpack
from mastery.minigrid.levels import generate
from mastery.minigrid.missions import mission
from mastery.minigrid.planner import plan
from mastery.minigrid.rendering import Image, render, render_view
from mastery.minigrid.rules import PAPER_REWARD, REWARDS, StepResult, act
from mastery.minigrid.state import State, start
from mastery.minigrid.tasks import TASKS, task_id
from mastery.minigrid.vision import observe, view, visible

AGENTS = ("random", "planner")
_GAP = 16  # pixels between the map and the agent's view


class Episode(NamedTuple):
    """An episode in NumPy: its states and actions, in order."""

    states: State  # arrays with one leading axis, one longer than `actions`
    actions: NDArray[np.int32]
    reward: float  # the last step's reward, which is the return
    terminated: bool
    truncated: bool

    @property
    def mission(self) -> str:
        return mission(int(self.states.target[0]))


Policy = Callable[[NDArray[np.uint8]], int]  # observation (7, 7, 3) → action


def play(
    task: str,
    agent: str | Policy = "random",
    seed: int = 0,
    steps: int = 300,
    reward: str = "paper",
    edition: str | Edition = TODAY,
) -> Episode:
    """Play one episode on a new level of a task.

    Args:
        task: A task name, with or without the package's `MiniGrid-` and `-v0`.
        agent: "random", "planner", or a function from an observation, uint8 (7, 7, 3), to an
            action.
        seed: Seed of the level and of the random agent.
        steps: Most steps to play. An episode never lasts longer than the task's n_max.
        reward: "paper" (1 − n/n_max) or "minigrid" (1 − 0.9 n/n_max), after n steps.
        edition: "3.2.0", "2018" or another edition of MiniGrid.

    Returns:
        The episode.

    Raises:
        MasteryError: If an argument is invalid, or if the planner finds no solution.

    Example:
        >>> episode = play("Unlock", agent="planner")
        >>> write_gif("unlock.gif", pictures(episode.states))
    """
    number, edition = task_id(task), find_edition(edition)
    if reward not in REWARDS:
        raise MasteryError(f"reward is {reward!r}; choose from {', '.join(REWARDS)}")
    if not callable(agent) and agent not in AGENTS:
        raise MasteryError(f"there is no agent {agent!r}; choose from {', '.join(AGENTS)}")
    check_whole("seed", seed, 0, 2**32 - 1)
    steps = min(check_whole("steps", steps), TASKS[number].n_max)  # n_max ends every episode
    level_key, action_key = jax.random.split(jax.random.key(seed))
    state = start(_generate(level_key, jnp.int32(number), edition))
    actions = _actions(agent, state, steps, action_key, edition)
    padded = np.zeros(-(-len(actions) // 64) * 64, np.int32)  # few lengths, so few compilations
    padded[: len(actions)] = actions
    later, outcome = jax.tree.map(np.asarray, _run(state, padded, REWARDS[reward], edition))
    ended = np.flatnonzero(outcome.terminated | outcome.truncated)
    count = min(len(actions), int(ended[0]) + 1 if len(ended) else len(actions))
    states = jax.tree.map(
        lambda first, rest: np.concatenate([np.asarray(first)[None], rest[:count]]), state, later
    )
    last = jax.tree.map(lambda x: x[count - 1], outcome)
    return Episode(
        State(*states),
        actions[:count],
        float(last.reward),
        bool(last.terminated),
        bool(last.truncated),
    )


def _actions(
    agent: str | Policy, state: State, steps: int, key: Any, edition: Edition
) -> NDArray[np.int32]:
    """The actions of an agent from a state on, at most `steps`."""
    if callable(agent):
        return _asked(state, agent, steps, edition)
    if agent == "random":
        return np.asarray(jax.random.randint(key, (steps,), 0, len(ACTIONS)), np.int32)
    level = unpack(state.grid), int(state.agent), int(state.direction), int(state.target)
    return np.array(plan(*level, edition=edition)[:steps], np.int32)


def _asked(state: State, policy: Policy, steps: int, edition: Edition) -> NDArray[np.int32]:
    """Play a policy to the end of the episode and return its actions."""
    actions = []
    for _ in range(steps):
        actions.append(int(policy(np.asarray(_observe(state, edition)))))
        state, outcome = _act(state, jnp.int32(actions[-1]), PAPER_REWARD, edition)
        if outcome.terminated | outcome.truncated:
            break
    return np.array(actions, np.int32)


_observe = jax.jit(observe, static_argnums=1)
_act = jax.jit(act, static_argnums=3)
_generate = jax.jit(generate, static_argnums=2)


@partial(jax.jit, static_argnums=3)
def _run(state: State, actions: Any, reward: int, edition: Edition) -> tuple[State, StepResult]:
    def one(state: State, action: Any) -> tuple[State, tuple[State, StepResult]]:
        after, outcome = act(state, action, reward, edition)
        return after, (after, outcome)

    return jax.lax.scan(one, state, actions)[1]


def pictures(
    states: State, tile: int = 32, with_view: bool = True, edition: Edition = TODAY
) -> Iterator[Image]:
    """Draw each state: the map, with the agent's view beside it.

    Pictures are drawn one at a time, because many of them take a lot of memory.

    Args:
        states: States with one leading axis, such as `Episode.states`.
        tile: Width of a cell in pixels.
        with_view: Whether to draw the agent's view as well.
        edition: The edition whose rules decide what the agent sees.

    Yields:
        One picture per state, uint8 (height, width, 3).
    """
    cells = np.asarray(_view(states))
    lit = np.asarray(_visible(cells, edition))
    grids = unpack(states.grid)
    for n, number in enumerate(np.asarray(states.task).tolist()):
        task = TASKS[number]
        whole = render(
            grids[n],
            int(states.agent[n]),
            int(states.direction[n]),
            width=task.width,
            height=task.height,
            visible=lit[n],
            tile=tile,
        )
        if with_view:
            seen = render_view(cells[n], lit[n], int(states.carrying[n]), tile=tile)
            whole = _side_by_side(whole, seen)
        yield whole


_view = jax.jit(view)
_visible = jax.jit(visible, static_argnums=1)


def _side_by_side(left: Image, right: Image) -> Image:
    height = max(len(left), len(right))
    page = np.full((height, left.shape[1] + _GAP + right.shape[1], 3), 255, np.uint8)
    for picture, x in ((left, 0), (right, left.shape[1] + _GAP)):
        y = (height - len(picture)) // 2
        page[y : y + len(picture), x : x + picture.shape[1]] = picture
    return page


def check_gif(fps: float) -> None:
    """Raise a `MasteryError` if Pillow is missing or if `fps` is not from 1 to 50."""
    with needs("a GIF", "minigrid"):
        import PIL  # noqa: F401
    if not 1 <= fps <= 50:
        raise MasteryError(f"{fps:g} frames a second cannot be shown: give 1 to 50")


def write_gif(path: str | Path, frames: Iterable[Image], fps: float = 8.0) -> None:
    """Write frames as an endlessly looping GIF that shows the last frame for a second.

    Args:
        path: The file to write.
        frames: Pictures, uint8 (height, width, 3).
        fps: Frames per second, 1 to 50.

    Raises:
        MasteryError: If Pillow is missing, `fps` is out of range or there are no frames.
    """
    replace_file(path, [gif_bytes(frames, fps)])


def gif_bytes(frames: Iterable[Image], fps: float = 8.0) -> bytes:
    """Like `write_gif`, but return the content of the file."""
    check_gif(fps)
    from PIL import Image as Pillow

    octree = Pillow.Quantize.FASTOCTREE
    images = [Pillow.fromarray(frame).quantize(64, method=octree) for frame in frames]
    if not images:
        raise MasteryError("there is no frame to write")
    lasts = [round(1000 / fps)] * (len(images) - 1) + [1000]
    buffer = io.BytesIO()
    images[0].save(buffer, "GIF", save_all=True, append_images=images[1:], duration=lasts, loop=0)
    return buffer.getvalue()
