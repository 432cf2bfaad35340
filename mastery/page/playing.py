"""The process that makes clips: a request per line, answered by a line of JSON.

`mastery.page.clips` starts it, so that the page itself needs no JAX. One process makes many clips,
since starting JAX and compiling take longer than playing. All clips of a task show the same level,
whichever run and moment of training plays it.
"""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from typing import Any

from mastery.errors import MasteryError, needs

STEPS = 120  # the most in a clip
PIXELS = 128  # about the width of a clip
SEED = 0  # of the level and of the actions
FPS = 12.0


def make(directory: str, task: str, run: int | None, at: int | None) -> dict[str, Any]:
    """Play one episode: {"frames", "text", "gif"}, with the frames that the agent had trained."""
    with needs("a clip", "train"):
        from mastery.minigrid.play import gif_bytes
        from mastery.training.agent import TrainedAgent, load_agent

        agent = load_agent(directory, run, SEED, at)
    if not isinstance(agent, TrainedAgent):
        kind = agent.job.environments
        raise MasteryError(f"{directory} holds a learner of {kind}, which cannot play")
    if agent.job.environments == "minigrid":
        frames, text = _play_minigrid(agent, task)
    else:
        frames, text = _play_gymnasium(agent, task)
    who = f"{agent.run.label}, seed {agent.run.seed}"
    gif = base64.b64encode(gif_bytes(frames, FPS)).decode()
    return {"frames": agent.frames, "text": f"{who}: {text}", "gif": gif}


def _play_minigrid(agent: Any, task: str) -> tuple[Any, str]:
    from mastery.minigrid.editions import find_edition
    from mastery.minigrid.play import pictures, play
    from mastery.minigrid.tasks import TASKS, task_id

    settings = agent.job.settings
    edition = find_edition(settings.edition)
    env = str(agent.job.curriculum[task].settings["env"])
    episode = play(env, agent.act, SEED, STEPS, settings.reward, edition)
    tile = min(max(PIXELS // TASKS[task_id(env)].width, 8), 12)
    steps = len(episode.actions)
    if episode.terminated:
        text = f"reached the goal in {steps} steps, return {episode.reward:.3f}"
    elif episode.truncated:
        text = f"ran out of steps after {steps}, return 0"
    else:
        text = f"not at the goal after {steps} steps"
    return pictures(episode.states, tile, False, edition), f"{episode.mission}; {text}"


def _play_gymnasium(agent: Any, task: str) -> tuple[Any, str]:
    import numpy as np
    from PIL import Image

    from mastery.training.playing import play_gymnasium

    played = play_gymnasium(agent, task, SEED, STEPS)
    frames = []
    for picture in map(Image.fromarray, played.frames):
        picture.thumbnail((PIXELS, PIXELS))
        frames.append(np.asarray(picture.convert("RGB")))
    end = "" if played.ended else " so far"
    return frames, f"{played.steps} steps, return {played.reward:.3f}{end}"


def main() -> None:
    """Answer requests until there are no more."""
    answers, sys.stdout = sys.stdout, sys.stderr  # an environment may print
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            found = make(str(Path(asked["directory"])), asked["task"], asked["run"], asked["at"])
        except MasteryError as error:
            found = {"error": str(error)}
        except Exception as error:  # of an environment, for one
            found = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(found), file=answers, flush=True)


if __name__ == "__main__":
    main()
