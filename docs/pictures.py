"""Draws the pictures of the README: `make pictures`."""

from pathlib import Path

import numpy as np

from mastery import Curriculum, Teacher
from mastery.draw import curriculum_svg, curves_svg
from mastery.simulate import simulate

FOLDER = Path(__file__).parent / "img"


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
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
