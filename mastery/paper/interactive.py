"""Show the paper's jobs on the page of `mastery report`, from their thinned curves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from mastery.curriculum import Curriculum
from mastery.page.assemble import write
from mastery.page.data import NO_PROGRESS, Entry, fixed_entry, span_of
from mastery.page.thinned import document
from mastery.paper.curves import Found, PaperCurves, with_baselines
from mastery.rundir.metrics import SCORES


def write_interactive(found: Found, path: Path) -> None:
    """Write all jobs to one file; baselines join their job if both have the same frames."""
    whole = {name: with_baselines(found, name) for name in found}
    joined = {f"{name}-baselines" for name in found if whole[name] is not found[name]}
    found = {name: kept for name, kept in whole.items() if name not in joined}
    entries = [kept_entry(name, kept) for name, kept in found.items()]
    write(path, "The paper, reproduced", entries, [kept_curves(kept) for kept in found.values()])


def kept_entry(name: str, kept: PaperCurves) -> Entry:
    """A job of which only the thinned curves exist, as an entry of the page."""
    about = kept.about
    curriculum = Curriculum.load(about["curriculum"])
    runs = [
        (label, label.partition(" ")[0], seed)
        for label, seed in zip(kept.programs.tolist(), kept.seeds.tolist(), strict=True)
    ]
    versions = ", ".join(f"{k} {v}" for k, v in about["versions"].items())
    return {
        "key": name,
        "name": name,
        "path": name,
        "version": "1",
        **fixed_entry(curriculum, curriculum.to_dict(), runs),
        "unit": about["unit"],
        "score": SCORES[about["unit"]],
        "state": "finished" if about["ended"] else "stopped",
        "ended": about["ended"],
        "created": "",
        "frames": int(kept.frames[-1]),
        "total": about["planned"],
        "points": len(kept.frames),
        "seconds": about["seconds"],
        "speed": int(kept.frames[-1]) * len(runs) / max(about["seconds"], 1e-9),
        "checkpoint": None,
        "sessions": [
            {
                "started": "",
                "command": f"mastery paper {name}",
                "on": f"{about['devices']} × {about['device']}; {versions}",
            }
        ],
        "settings": about["settings"],
        "clips": False,
        "moments": [],
        "clip_runs": [],
        "notes": _notes(kept),
    }


def _notes(kept: PaperCurves) -> list[str]:
    """Say where learning progress is missing: in the job, or for some of its programs."""
    without = [
        program for program, runs in kept.runs.items() if np.isnan(kept.progress[:, runs]).all()
    ]
    if not without:
        return []
    if len(without) == len(kept.runs):
        return [NO_PROGRESS]
    return [NO_PROGRESS.replace("in this job", f"for {', '.join(without)}")]


def kept_curves(kept: PaperCurves) -> dict[str, Any]:
    """The curves as data for the page."""
    found = {
        "probability": np.round(kept.probability, 3),  # saved in half precision
        "share": kept.share,
        "mastery": kept.mastery,
        "progress": kept.progress,
        "returns": np.round(kept.returns, 3),  # saved in half precision
    }
    tests = {
        policy: (kept.frames[-1:], scores[None])
        for policy, scores in (("greedy", kept.greedy), ("sampled", kept.sampled))
        if not np.isnan(scores).all()
    }
    solved = None if np.isnan(kept.solved).all() else kept.solved
    span = span_of(Curriculum.load(kept.about["curriculum"]))
    return {
        "bins": 0,
        "from": 0,
        "sessions": 1,
        **document(kept.frames, found, tests, solved, span),
    }
