"""Draws what each program does in the simulator: `make pictures`.

    python docs/program_pictures.py [mr auto …]

One picture per program, in docs/img/programs: the skills of synthetic learners on obstructed-maze,
and beside them the share of training that the program gives to each task.
"""

import sys
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mastery import Curriculum, Recipe, simulate
from mastery.drawing.axes import STYLE, Plot, heading, label, stroke, svg, task_colours
from mastery.drawing.colours import program_style
from mastery.programs.named import PROGRAMS

FOLDER = Path(__file__).parent / "img" / "programs"
SEEDS, STEPS, POINTS = 10, 1200, 75
WIDE, HIGH = 360, 210


class Watched:
    """A program that keeps the probabilities it has given."""

    def __init__(self, program: Any) -> None:
        self.program, self.given = program, []

    def init(self, noise: Any) -> Any:
        return self.program.init(noise)

    def observe(self, state: Any, evidence: Any, noise: Any) -> Any:
        return self.program.observe(state, evidence, noise)

    def distribution(self, state: Any) -> Any:
        found = self.program.distribution(state)
        self.given.append(np.asarray(found))
        return found


def main(names: list[str]) -> None:
    FOLDER.mkdir(exist_ok=True)
    curriculum = Curriculum.load("obstructed-maze")
    for name in names or PROGRAMS:
        skill, share, end = watch(curriculum, name)
        (FOLDER / f"{name}.svg").write_text(draw(name, curriculum, skill, share, end))
        print(f"{name}: mastered after {end:,.0f} time-steps")


def watch(curriculum: Curriculum, name: str) -> tuple[NDArray[Any], NDArray[Any], float]:
    """Median skills and mean shares, (time-steps, tasks), and when all tasks are mastered.

    A learner stops once it has mastered every task. Until the median learner stops, one that has
    stopped counts with its last skills, and no longer in the shares.
    """
    skills = np.empty((SEEDS, STEPS, len(curriculum)))
    shares = np.full((SEEDS, STEPS, len(curriculum)), np.nan)
    ends = []
    for seed in range(SEEDS):
        watched = Watched(Recipe.parse(name).build(curriculum))
        (outcome,) = simulate(
            curriculum, [watched], seeds=1, seed=seed, steps=STEPS, backend="numpy"
        )
        ends.append(float(outcome.steps[0]))
        for task in range(len(curriculum)):
            curve = np.interp(np.arange(STEPS), outcome.times, outcome.skill[:, 0, task])
            skills[seed, :, task] = curve
        given = np.array(watched.given)[:STEPS]
        shares[seed, : len(given)] = given
    end = sorted(ends)[SEEDS // 2]
    until = int(min(end, STEPS))
    return np.median(skills, axis=0)[:until], np.nanmean(shares[:, :until], axis=0), end


def draw(
    name: str, curriculum: Curriculum, skill: NDArray[Any], share: NDArray[Any], end: float
) -> str:
    """Skills on the left, shares of training on the right, the tasks' colours below."""
    colours = task_colours(len(curriculum))
    plot = Plot(STEPS, wide=WIDE, high=HIGH, left=44, right=14, top=34, bottom=28)
    parts = np.array_split(np.arange(len(skill)), min(POINTS, len(skill)))
    x = np.array([part.mean() for part in parts])
    skill = np.stack([skill[part].mean(0) for part in parts])
    share = np.stack([share[part].mean(0) for part in parts])
    lines = [
        f'<polyline points="{plot.points(x, one)}" fill="none" stroke="{colour}" '
        'stroke-width="2" stroke-linejoin="round"/>'
        for one, colour in zip(skill.T, colours, strict=True)
    ]
    said = f"all mastered at {end:,.0f}" if np.isfinite(end) else f"not all by {STEPS:,}"
    axes = plot.x_axis("") + plot.y_axis("")
    left = axes + "".join(lines) + heading(f"skill of each task: {said}")
    there_and_back = np.concatenate([x, x[::-1]])
    tops = np.cumsum(share, axis=1)
    areas = [
        f'<polygon points="{plot.points(there_and_back, np.concatenate([low, top[::-1]]))}" '
        f'fill="{colour}" opacity="0.9"/>'
        for low, top, colour in zip((tops - share).T, tops.T, colours, strict=True)
    ]
    right = axes + "".join(areas) + heading("share of training, by time-step")
    at = 110.0 + 9 * len(name)
    legend = [
        f'<line x1="44" x2="70" y1="{HIGH + 15}" y2="{HIGH + 15}" {stroke(program_style(name))} '
        f'stroke-width="4"/><text class="ink" x="78" y="{HIGH + 20}" font-size="13" '
        f'font-weight="600">{escape(name)}</text>'
    ]
    for task, colour in zip(curriculum.names, colours, strict=True):
        legend.append(f'<rect x="{at}" y="{HIGH + 9}" width="12" height="12" fill="{colour}"/>')
        legend.append(label(at + 17, HIGH + 20, task, "start"))
        at += 36 + 8 * len(task)
    inside = f'{STYLE}<g>{left}</g><g transform="translate({WIDE} 0)">{right}</g>'
    title = f"{name}: skills and shares of training over time-steps"
    return svg(2 * WIDE, HIGH + 32, title, inside + "".join(legend))


if __name__ == "__main__":
    main(sys.argv[1:])
