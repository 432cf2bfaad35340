"""Draws the pictures of the documentation: `make pictures`."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from mastery import Curriculum, Teacher
from mastery.draw import curriculum_svg, curves_svg
from mastery.minigrid import TASKS, generate, start, to_package
from mastery.minigrid.play import pictures, play, write_gif
from mastery.simulate import simulate

FOLDER = Path(__file__).parent / "img"


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    draw_curricula()
    draw_minigrid()


def draw_minigrid() -> None:
    """The eighteen tasks, each as drawn here and, to its right, as drawn by the package."""
    tile, column, caption, gap = 12, 16 * 12, 22, 14
    states = start(jax.jit(generate)(jax.random.key(4), jnp.arange(len(TASKS))))
    ours = list(pictures(states, tile=tile, with_view=False))
    theirs = [
        to_package(jax.tree.map(lambda x, n=n: x[n], states)).get_frame(tile_size=tile)
        for n in range(len(TASKS))
    ]
    rows = [range(first, first + 3) for first in range(0, len(TASKS), 3)]
    heights = [max(len(ours[n]) for n in row) for row in rows]
    width = 3 * (2 * column + gap) + 4 * gap
    page = Image.new("RGB", (width, sum(heights) + len(rows) * (caption + gap) + gap), "white")
    pen, font = ImageDraw.Draw(page), ImageFont.load_default(size=13)
    y = gap
    for row, height in zip(rows, heights, strict=True):
        for place, n in enumerate(row):
            x = gap + place * (2 * column + 2 * gap)
            pen.text((x, y), TASKS[n].name, fill="black", font=font)
            pen.text((x + column + gap, y), "the package's", fill="grey", font=font)
            page.paste(Image.fromarray(ours[n]), (x, y + caption))
            page.paste(Image.fromarray(theirs[n]), (x + column + gap, y + caption))
        y += height + caption + gap
    page.save(FOLDER / "minigrid.png", optimize=True)

    episode = play("ObstructedMaze-Full", agent="planner", seed=7)
    write_gif(FOLDER / "obstructed-maze-full.gif", pictures(episode.states, tile=20))


def draw_curricula() -> None:
    outcomes = simulate(
        Curriculum.load("obstructed-maze"),
        ["mr", "gprop-linreg", "gamax-window", "uniform", "sequential"],
    )
    curves = {o.program: (o.times, (o.skill >= 0.9).mean(axis=2)) for o in outcomes}
    svg = curves_svg(curves, "time-steps", "share of tasks mastered")
    (FOLDER / "mastered.svg").write_text(svg)

    # the same learner, stopped in the middle of its training with `mr`
    mr = outcomes[0]
    middle = int(np.searchsorted(mr.times, 300))
    curriculum = Curriculum.load("obstructed-maze")
    teacher = Teacher(curriculum, "mr", seed=0)
    for skill in mr.skill[max(middle - 12, 0) : middle, 0]:
        teacher.update(dict(zip(curriculum.names, (0.5 * skill).tolist(), strict=True)))
    (FOLDER / "curriculum.svg").write_text(curriculum_svg(curriculum, teacher.mastery))


if __name__ == "__main__":
    main()
