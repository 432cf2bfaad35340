"""Draws the pictures of the documentation: `make pictures`."""

import csv
import runpy
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from mastery import Curriculum, Teacher
from mastery.drawing.axes import STYLE, label, stroke, svg
from mastery.drawing.colours import Style, numbered_styles, program_styles
from mastery.drawing.pictures import curriculum_svg, curves_svg
from mastery.minigrid import TASKS, generate, start, to_package
from mastery.minigrid.play import pictures, play, write_gif
from mastery.paper.curves import last_known
from mastery.paper.page import DATA as SHIPPED
from mastery.paper.page import draw_figures, read_shipped
from mastery.simulation.simulate import simulate

FOLDER = Path(__file__).parent / "img"
DATA = Path(__file__).parent / "data"

BASE = "as it is"
FINDINGS = {  # variants of the agent, by the picture that compares them
    "novelty": {
        "": BASE,
        "novelty=0.0": "none",
        "novelty=0.001": "novelty 0.001",
        "novelty=0.01": "novelty 0.01",
    },
    "scale": {
        "": BASE,
        "reward_scale=1.0 entropy=0.0005": "reward × 1, entropy 0.0005",
        "reward_scale=20.0 entropy=0.01": "reward × 20, entropy 0.01",
    },
    "entropy": {"": BASE, "entropy=0.01": "entropy 0.01", "entropy=0.0005": "entropy 0.0005"},
    "rate": {
        "": BASE,
        "learning_rate=0.0003": "learning rate 3e-4",
        "learning_rate=0.001": "learning rate 1e-3",
    },
}
THREE = {"bup": "BlockedUnlockPickup", "kc": "KeyCorridor", "om": "ObstructedMaze"}


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    draw_agent()
    draw_paper()
    draw_stable_baselines3()
    draw_curricula()
    draw_corridor()
    draw_minigrid()


def draw_agent() -> None:
    """The agent under four programs, and what becomes of it when a setting is changed."""
    with np.load(DATA / "agent.npz") as data:
        programs = dict.fromkeys(data["kc/labels"].tolist())
        pictures = [
            curves_svg(
                {
                    p: (data[f"{job}/evaluated"] / 1e6, evaluated(data, job, p).mean(2))
                    for p in programs
                },
                "M frames", "mean return over the tasks", title=title,
            )
            for job, title in THREE.items()
        ]  # fmt: skip
        picture = side_by_side(pictures, program_styles(programs))
        (FOLDER / "agent-programs.svg").write_text(picture)
        for name, variants in FINDINGS.items():
            styles = numbered_styles(variants.values())
            pictures = [
                curves_svg(
                    {
                        shown: (data[f"a-{job}/frames"] / 1e6, trained(data, f"a-{job}", variant))
                        for variant, shown in variants.items()
                    },
                    "M frames", "mean return over the tasks", title=title, styles=styles,
                )
                for job, title in THREE.items()
            ]  # fmt: skip
            picture = side_by_side(pictures, styles)
            (FOLDER / f"agent-{name}.svg").write_text(picture)


def draw_paper() -> None:
    """The figures of `mastery paper --redraw`."""
    for name in draw_figures(read_shipped(SHIPPED), FOLDER / "paper"):
        (FOLDER / "paper" / f"{name}.png").unlink()


def evaluated(data: Any, job: str, label: str) -> Any:
    return data[f"{job}/sampled"][:, data[f"{job}/labels"] == label].astype(float)


def trained(data: Any, job: str, variant: str) -> Any:
    """The mean over the tasks, (points, runs): where a task was not trained on, as it was last."""
    runs = data[f"{job}/labels"] == f"mr {variant}".strip()
    return last_known(data[f"{job}/training"][:, runs].astype(float)).mean(2)


def draw_stable_baselines3() -> None:
    """Each task of BlockedUnlockPickup, learned by Stable-Baselines3's PPO under two programs."""
    with (DATA / "sb3.csv").open() as file:
        rows = list(csv.DictReader(file))
    programs, tasks, steps, seeds = (
        list(dict.fromkeys(row[column] for row in rows))
        for column in ("program", "task", "steps", "seed")
    )
    found = {tuple(row.values())[:4]: float(row["return"]) for row in rows}
    x = np.array(steps, float) / 1e3
    pictures = [
        curves_svg(
            {
                p: (x, np.array([[found[p, seed, n, task] for seed in seeds] for n in steps]))
                for p in programs
            },
            "thousand steps", "return", title=task,
        )
        for task in tasks
    ]  # fmt: skip
    styles = program_styles(programs)
    picture = side_by_side(pictures, styles, "return in evaluations, by thousand steps of a run")
    (FOLDER / "sb3.svg").write_text(picture)


def side_by_side(
    pictures: list[str],
    styles: dict[str, Style],
    caption: str = "mean return over the tasks, by frames of a run (M)",
) -> str:
    """Small pictures in a row, over a list of what their lines are."""
    wide, high = 330, 196
    placed = [p.replace("<svg ", f'<svg x="{i * wide}" y="0" ', 1) for i, p in enumerate(pictures)]
    legend, x = [], 44.0
    for name, style in styles.items():
        legend.append(
            f'<line x1="{x}" x2="{x + 22}" y1="{high + 16}" y2="{high + 16}" {stroke(style)} '
            'stroke-width="3"/>' + label(x + 30, high + 20, name, "start")
        )
        x += 58 + 7.2 * len(name)
    legend.append(
        label(
            wide * len(pictures) - 14,
            high + 20,
            caption,
            "end",
        )
    )
    inside = STYLE + "".join(placed) + "".join(legend)
    return svg(wide * len(pictures), high + 30, "Returns over frames", inside)


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


def draw_corridor() -> None:
    """How many of ten Q-learners have learned every start, by episode: examples/corridor.py."""
    train = runpy.run_path(str(FOLDER.parent.parent / "examples" / "corridor.py"))["train"]
    episodes = np.arange(0, 351)
    curves = {}
    for program in ("mr", "sequential", "uniform", "gprop-linreg"):
        needed = np.array([train(program, seed) for seed in range(10)])
        curves[program] = (episodes, (needed <= episodes[:, None]).mean(1)[:, None])
    svg = curves_svg(curves, "episodes", "share of learners that are done")
    (FOLDER / "corridor.svg").write_text(svg)


if __name__ == "__main__":
    main()
