"""Claims judged on curves that are made by hand, so that the verdict is known."""

from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest

from mastery import MasteryError
from mastery.learners.ppo import PAPER, PPO, PPOSettings
from mastery.paper import curves as curves_module
from mastery.paper import interactive
from mastery.paper.claims import CLAIMS, WORLDS, judge
from mastery.paper.configurations import configurations
from mastery.paper.curves import PaperCurves, last_known, with_baselines
from mastery.paper.experiments import (
    DIFFERENCES,
    PAPER_JOBS,
    THREE,
    chosen,
    shown_beside,
)
from mastery.paper.learned import measure

FRAMES = np.arange(1, 101) * 100_000  # 10M
TASKS = {
    "blocked-unlock-pickup": ["Unlock", "UnlockPickup", "BlockedUnlockPickup"],
    "key-corridor": ["S3R1", "S3R2", "S3R3", "S4R3", "S5R3", "S6R3"],
    "obstructed-maze": ["1Dl", "1Dlh", "2Dl", "1Dlhb", "2Dlh", "2Dlhb"],
}


def made(tasks, programs, seeds=10, **changes):
    """Curves in which a program's return is constant, a little apart from seed to seed."""
    runs, spread = len(programs) * seeds, np.linspace(-0.02, 0.02, seeds)
    level = np.concatenate([value + spread for value in programs.values()])
    returns = np.broadcast_to(level[None, :, None], (len(FRAMES), runs, len(tasks))).copy()
    whole = {
        "tasks": np.array(tasks),
        "programs": np.repeat(list(programs), seeds),
        "seeds": np.tile(np.arange(seeds), len(programs)),
        "frames": FRAMES,
        "returns": returns,
        "probability": np.full(returns.shape, 1 / len(tasks)),
        "share": np.full(returns.shape, 1 / len(tasks)),
        "mastery": returns,
        "progress": np.full(returns.shape, np.nan),
        "sampled": returns[-1],
        "greedy": returns[-1],
        "solved": np.full(runs, np.nan),
        "about": {"unit": "frames", "planned": 10_000_000, "seconds": 1.0, "ended": "done"},
    }
    return PaperCurves(**(whole | changes))


def verdicts(found):
    """In the paper's own world, or the only one."""
    return {j.claim.words: next(iter(j.verdicts.values())) for j in judge(found)}


def all_three(**programs):
    programs = {name.replace("_", "-"): value for name, value in programs.items()}
    return {f"{name}-2018": made(tasks, programs) for name, tasks in TASKS.items()}


def test_the_paper_as_it_is_told():
    found = verdicts(all_three(gamax_window=0.05, gamax_linreg=0.05, gprop_linreg=0.02, mr=0.9))
    holds = {words: verdict.holds for words, verdict in found.items()}
    assert holds.pop("gProp Linreg performs better than gAmax Linreg and gAmax Window") is False
    shortcomings = [words for words in holds if "is trained" in words or "trained 90" in words]
    for words in shortcomings:
        holds.pop(words)
    assert len(holds) == 9
    assert set(holds.values()) == {True, False}
    # equal spreads: neither is more stable
    assert [w for w, h in holds.items() if not h] == [
        "gAmax Linreg seems more stable than gAmax Window"
    ]


def test_the_paper_turned_round():
    found = verdicts(all_three(gamax_window=0.5, gamax_linreg=0.9, gprop_linreg=0.95, mr=0.6))
    holds = [words for words, verdict in found.items() if verdict.holds]
    assert holds == ["gProp Linreg performs better than gAmax Linreg and gAmax Window"]
    open_ = [words for words, verdict in found.items() if verdict.holds is None]
    assert len(open_) == 2  # Unlock is learned from the first point on, and so is everything else
    assert all(words.startswith("BlockedUnlockPickup, gProp Linreg") for words in open_)
    numbers = found["MR outperforms gProp Linreg on KeyCorridor"].numbers
    assert numbers == "KC: P(mr > gprop-linreg) = 0.00 (0.00 … 0.00); medians 0.60, 0.95"


def test_a_threshold_is_read_at_its_frames():
    """MR is at 0.79 up to 6M on one of the three tasks, and only then above 0.8."""
    maze = made(TASKS["key-corridor"], {"gprop-linreg": 0.0, "mr": 0.9})
    maze.returns[:61, 10:, 4] = 0.79
    found = verdicts({"key-corridor-2018": maze})
    words = "KeyCorridor: the first quartile of MR is higher than 0.8 after 6M on them"
    assert not found[words].holds
    assert found[words].numbers.startswith("S4R3 0.89 (0.88 … 0.90), S5R3 0.79 (0.79 … 0.79), ")
    maze.returns[50:61, 10:, 4] = 0.9
    assert verdicts({"key-corridor-2018": maze})[words].holds


def test_a_job_that_was_not_trained_to_the_end_cannot_be_judged():
    short = made(TASKS["key-corridor"], {"gprop-linreg": 0.0, "mr": 0.9}, frames=FRAMES // 100)
    near_0 = "KeyCorridor: the median of gProp Linreg is near 0 at 10M on S4R3, S5R3 and S6R3"
    assert verdicts({"key-corridor-2018": short})[near_0].holds is None


def test_an_unfinished_job_is_not_judged():
    found = all_three(gprop_linreg=0.02, mr=0.9)
    for curves in found.values():
        curves.about["ended"] = None
    assert {verdict.holds for verdict in verdicts(found).values()} == {None}


def test_early_and_late_training_on_the_wrong_tasks():
    """Unlock is begun after 300k frames and learned with UnlockPickup after 600k; two thirds, and
    then nine tenths, go to the wrong ones."""
    curves = made(TASKS["blocked-unlock-pickup"], {"gprop-linreg": 0.0, "mr": 0.0})
    curves.returns[3:, :, 0] = curves.returns[6:, :, 1] = 0.9
    curves.returns[20:, :, 2] = 0.9
    curves.probability[:3] = [0.34, 0.33, 0.33]
    curves.probability[6:] = [0.46, 0.46, 0.08]
    found = verdicts({"blocked-unlock-pickup-2018": curves})
    early, late = (next(v for w, v in found.items() if text in w) for text in ("66 %", "90 %"))
    assert early.holds
    assert early.numbers.startswith(
        "66% (66% … 66%) on them until Unlock is begun (median of 10 runs)"
    )
    assert late.holds
    assert late.numbers.startswith(
        "92% (92% … 92%) on them when it is most (median of the 10 runs of 10"
    )
    curves.probability[6:] = [0.4, 0.4, 0.2]
    found = verdicts({"blocked-unlock-pickup-2018": curves})
    assert not next(v for w, v in found.items() if "90 %" in w).holds


def addition(programs, times):
    return made(["1", "2"], dict.fromkeys(programs, 0.5), seeds=4, solved=np.array(times))


NEVER = np.nan


def test_addition_pairs_every_configuration_with_every_other():
    ours, theirs = ("mr", "mr:distribution=gamax"), ("gprop-linreg", "gamax-linreg", "uniform")
    mr = addition([*ours, *theirs], [1e6, 2e6, 2e6, 3e6, 4e6, 4e6, 4e6, NEVER] + [NEVER] * 12)
    late = addition(theirs, [5e6, 5e6, 3e6, NEVER] + [NEVER] * 8)
    found = {"addition-128": mr, "addition-1024": late, "addition-1024-long": late}
    bars = {(b.group, b.name): b for b in configurations(found)}
    assert len(bars) == 8
    assert bars["MR, batch 128", "Linreg Prop"].median == 2e6
    assert bars["MR, batch 128", "Linreg gAmax"].median == 4e6
    assert bars["Teacher-Student, batch 1024", "Linreg gProp"].median == 5e6
    assert bars["Baselines, batch 1024", "uniform"].median == np.inf
    paper, every, same = verdicts(found).values()
    assert paper.holds  # against gAmax Linreg alone: Sampling was not trained
    assert paper.numbers == (
        "faster in 2 of 2 pairs, slower in 0; medians: MR 2.0M (Linreg Prop) to 4.0M "
        "(Linreg gAmax); Teacher-Student 1 of 1 later than 10M"
    )
    assert every.holds
    assert every.numbers.startswith("faster in 4 of 4 pairs, slower in 0; medians: MR 2.0M")
    assert same.holds


def test_pairs_that_are_undecided_leave_a_claim_open_unless_others_decide_it():
    """MR learned it in one of two configurations, Teacher-Student never, or within the budget."""
    ours = ["mr", "mr:distribution=gamax"]
    some = addition([*ours, "gprop-linreg"], [1e6] * 4 + [NEVER] * 8)
    (same,) = verdicts({"addition-128": some}).values()
    assert same.holds is None
    assert same.numbers.startswith("faster in 1 of 2 pairs, slower in 0, 1 undecided; ")
    some = addition([*ours, "gprop-linreg"], [1e6] * 4 + [NEVER] * 4 + [2e6] * 4)
    (same,) = verdicts({"addition-128": some}).values()
    assert same.holds is False
    assert same.numbers.startswith("faster in 1 of 2 pairs, slower in 1; ")


def test_a_stopped_job_that_only_adds_to_others_does_not_void_a_verdict():
    both = addition(["mr", "gprop-linreg"], [1e6] * 4 + [2e6] * 4)
    stopped = replace(both, about={**both.about, "ended": None})
    (same,) = verdicts({"addition-128": both, "addition-128-long": stopped}).values()
    assert same.holds


def test_of_two_jobs_of_the_same_configuration_the_longer_one_counts():
    name = "gprop-linreg:distribution=gamax"
    short = addition([name], [NEVER] * 4)
    long = replace(addition([name], [9e6, 12e6, 15e6, NEVER]), frames=2 * FRAMES)
    (bar,) = configurations({"addition-1024": short, "addition-1024-long": long})
    assert (bar.median, bar.budget) == (15e6, 20_000_000)
    (bar,) = configurations({"addition-1024-long": long, "addition-1024": short})
    assert bar.budget == 20_000_000


def test_addition_is_open_where_one_had_less_time():
    """MR had not learned it after 10M, Teacher-Student had after 12M: who is slower?"""
    ours = addition(["mr", "gprop-linreg"], [NEVER] * 4 + [12e6] * 4)
    (same,) = verdicts({"addition-128": ours}).values()
    assert same.holds is None
    ours = addition(["mr", "gprop-linreg"], [NEVER] * 4 + [9e6] * 4)
    (same,) = verdicts({"addition-128": ours}).values()
    assert same.holds is False


def test_addition_that_nobody_learned_is_open():
    never = addition(["mr", "gprop-linreg"], [NEVER] * 8)
    paper, same = verdicts({"addition-128": never, "addition-1024": never}).values()
    assert paper.holds is None
    assert "1 undecided" in same.numbers


def test_returns_between_two_episodes_are_the_last_known():
    curves = made(["a", "b"], {"mr": 0.5}, seeds=1)
    curves.returns[:, 0, 0] = np.nan
    curves.returns[10, 0, 0] = 0.8
    assert last_known(curves.returns)[[0, 9, 10, 11, 99], 0, 0].tolist() == [0, 0, 0.8, 0.8, 0.8]
    assert curves.smooth()[12, 0, 0] == pytest.approx(0.8 * 3 / 5)
    assert curves.area("mr")[0, 0] == pytest.approx(0.8 * 90 / 100)


def test_curves_come_back_from_their_file(tmp_path):
    curves = made(TASKS["key-corridor"], {"mr": 0.5, "uniform": 0.25})
    curves_module.save(curves, tmp_path / "c.npz")
    again = curves_module.load(tmp_path / "c.npz")
    assert again.programs.tolist() == curves.programs.tolist()
    assert np.allclose(again.returns, curves.returns, atol=1e-3)
    assert again.about == curves.about
    assert again.runs.keys() == {"mr", "uniform"}
    (tmp_path / "c.npz").write_bytes(b"PK nonsense")
    with pytest.raises(MasteryError, match="cannot read the curves in"):
        curves_module.load(tmp_path / "c.npz")


def test_learning_progress_survives_its_file_however_small(tmp_path):
    """Over nine decades in one run, all zero in another, missing in a third."""
    curves = made(["a", "b"], {"mr": 0.5, "uniform": 0.5, "target": 0.5}, seeds=1)
    small = 0.7 * 10.0 ** np.linspace(-9, 0, len(FRAMES))
    curves.progress[:, 0] = np.stack([small, -small], axis=1)
    curves.progress[:, 1] = 0.0
    curves_module.save(curves, tmp_path / "c.npz")
    again = curves_module.load(tmp_path / "c.npz").progress
    assert np.allclose(again[:, 0], curves.progress[:, 0], rtol=0.004, atol=0)
    assert (again[:, 1] == 0).all()
    assert np.isnan(again[:, 2]).all()
    without = replace(curves, progress=np.full(curves.progress.shape, np.nan))
    curves_module.save(without, tmp_path / "without.npz")
    with np.load(tmp_path / "without.npz") as file:
        assert "progress" not in file  # as in files of before
    assert np.isnan(curves_module.load(tmp_path / "without.npz").progress).all()


def test_the_interactive_page_has_learning_progress_where_it_was_kept():
    about = {
        "curriculum": "addition-3", "unit": "examples", "planned": 1, "seconds": 1.0,
        "ended": "done", "versions": {}, "devices": 1, "device": "", "settings": {},
    }  # fmt: skip
    curves = made(["1", "2", "3"], {"mr": 0.5, "uniform": 0.5}, seeds=1, about=about)
    (note,) = interactive.kept_entry("x", curves)["notes"]
    assert note.startswith("Learning progress β was not kept in this job")
    assert "progress" not in interactive.kept_curves(curves)
    curves.progress[:, 0] = 0.0123456
    (note,) = interactive.kept_entry("x", curves)["notes"]
    assert note.startswith("Learning progress β was not kept for uniform, so")
    shown = interactive.kept_curves(curves)["progress"]
    assert shown[0][2][99] == 0.01235
    curves.progress[:] = 1e-7
    assert interactive.kept_entry("x", curves)["notes"] == []


def test_worlds_are_judged_apart_and_of_nine_tasks_six_count():
    """In the world of 2018 only the three tasks that the paper does not show are learned."""
    tasks = [*TASKS["obstructed-maze"], "1Q", "2Q", "Full"]
    then = made(tasks, {"gprop-linreg": 0.5, "mr": 0.9})
    then.returns[:, :, :6] = 0.0
    today = made(TASKS["obstructed-maze"], {"gprop-linreg": 0.0, "mr": 0.9})
    found = judge({"obstructed-maze-2018": then, "obstructed-maze-today": today})
    near_0, quartile, better = [[v.holds for v in j.verdicts.values()] for j in found]
    assert near_0 == [True, True]
    assert quartile == [False, True]
    assert better == [False, True]
    assert list(found[0].verdicts) == list(WORLDS.values())
    assert "Full" not in found[0].verdicts[WORLDS["-2018"]].numbers


def test_shares_of_runs_that_learn():
    """Of ten runs of mr six learn every task, four only the first; the mean is 0.8 from 5M on."""
    curves = made(["a", "b"], {"mr": 0.9, "uniform": 0.1})
    curves.returns[:49] = 0.0
    curves.returns[:, :4, 1] = 0.0
    row = measure(curves, (), ("mr", "uniform", "target"))
    assert list(row) == ["mr", "uniform"]
    assert (row["mr"].learned, row["mr"].runs, row["mr"].frames) == (6, 10, 10_000_000)
    assert row["mr"].good.value == 5_400_000  # the fifth point after it began: they are averaged
    assert row["uniform"].learned == 0
    assert row["uniform"].good.value == np.inf
    wilson = binomtest(6, 10).proportion_ci(method="wilson")
    assert row["mr"].share == pytest.approx((0.6, wilson.low, wilson.high), abs=1e-6)
    assert measure(curves, ["a"], ["mr"])["mr"].learned == 10
    assert measure(curves, ["a"], ["mr"], 4_000_000)["mr"].learned == 0


def test_curves_of_some_tasks_and_runs_and_of_two_jobs():
    curves = made(["a", "b", "c"], {"mr": 0.9, "uniform": 0.1})
    curves.returns[..., 2] = 0.5
    some = curves.of_tasks(["c", "a"])
    assert some.tasks.tolist() == ["c", "a"]
    assert (some.returns[0, 0, 0], some.returns[0, 0, 1]) == (0.5, curves.returns[0, 0, 0])
    assert some.sampled.shape == (20, 2)
    other = made(["a", "b", "c"], {"target": 0.3}, seeds=2)
    both = curves.joined(other)
    assert both.programs.tolist() == ["mr"] * 10 + ["uniform"] * 10 + ["target"] * 2
    assert both.seeds.tolist() == [*range(10), *range(10), 0, 1]
    assert np.array_equal(both.returns[:, 20:], other.returns)
    with pytest.raises(MasteryError, match="other tasks"):
        curves.joined(some)
    found = {"job": curves, "job-baselines": other}
    assert len(with_baselines(found, "job").seeds) == 22
    shorter = {"job": curves, "job-baselines": replace(other, frames=FRAMES // 2)}
    assert len(with_baselines(shorter, "job").seeds) == 20


def test_experiments_are_the_papers():
    """In its own world: its programs, 10M frames, the agent and the MiniGrid of 2018."""
    runs = {name: len(PAPER_JOBS[f"{name}-2018"].job().runs) for name in THREE}
    assert list(runs.values()) == [4 * 30, 4 * 30, 2 * 30]
    for name in THREE:
        job = PAPER_JOBS[f"{name}-2018"].job()
        assert (job.frames, job.settings) == (10_000_000, PAPER)
        assert PAPER_JOBS[f"{name}-today"].job().settings == PPOSettings()
    assert [
        len(PAPER_JOBS[n].job().curriculum)
        for n in ("obstructed-maze-2018", "obstructed-maze-today")
    ] == [9, 6]
    mr = [p for p in PAPER_JOBS["addition-128"].job().programs if p.startswith("mr")]
    assert len(mr) == 20
    assert (
        len({p for p in PAPER_JOBS["addition-1024"].job().programs if p.startswith("gprop")}) == 20
    )
    for claim in CLAIMS:
        for ending in WORLDS if claim.several_worlds else [""]:
            assert {part + ending for part in claim.parts} <= set(PAPER_JOBS)
        assert set(claim.more) <= set(PAPER_JOBS)


def test_a_job_scaled_down_is_small_from_a_tenth_on():
    half, tenth = (PAPER_JOBS["addition-128"].job(scale) for scale in (0.5, 0.1))
    assert (len(half.curriculum), half.frames, half.settings.width) == (9, 20_000_000, 128)
    assert (len(tenth.curriculum), tenth.frames, tenth.settings.width) == (3, 400_000, 32)
    assert len(half.runs) == 2 * len(half.programs)
    assert half.settings.batch == tenth.settings.batch == 128
    half, tenth = (PAPER_JOBS["key-corridor-2018"].job(scale) for scale in (0.5, 0.1))
    assert (half.frames, half.settings.width, half.chunk) == (5_000_000, 64, 10)
    assert (tenth.frames, tenth.settings.width) == (1_000_000, 32)
    assert half.settings.encoding == tenth.settings.encoding == "raw"
    least = PAPER_JOBS["ablation"].job(0.01)
    assert (len(least.runs), least.chunk, least.updates) == (17, 2, 26)  # 13 points of the curves


def test_experiments_by_name():
    ends = ("-2018", "-2018-baselines", "-today", "-today-baselines")
    assert [part.name for part in chosen(["key-corridor"])] == [f"key-corridor{e}" for e in ends]
    assert [part.name for part in chosen(["addition-64"])] == ["addition-64"]
    assert [part.name for part in chosen(["key-corridor-2018"])] == ["key-corridor-2018"]
    assert len(chosen([])) == 3 * 4 + 3 + 1
    assert shown_beside(["apart", "ablation"]) == ["key-corridor-2018", "obstructed-maze-2018"]
    assert {part.name for part in chosen(["apart"])} & {part.name for part in chosen([])} == set()
    with pytest.raises(MasteryError, match="did you mean 'key-corridor'"):
        chosen(["key-coridor"])
    with pytest.raises(MasteryError, match="the scale is 2"):
        chosen([])[0].job(2)


def test_taken_apart_every_difference_is_taken_away_and_added_alone():
    """Together they are all in which the agent of 2018 differs from that of 2019."""
    gone, added = {}, {}
    for key, difference in DIFFERENCES.items():
        if key == "doors":  # part of the view
            continue
        for name, changes in (("2018-without-" + key, gone), ("2019-with-" + key, added)):
            part = PAPER_JOBS[f"obstructed-maze-{name}"]
            base = PAPER if changes is gone else PPO.presets["paper-2019"]
            own = asdict(part.job().settings)
            changed = {k: v for k, v in own.items() if v != asdict(base)[k]}
            assert not set(changed) & set(changes) - {"edition"}
            changes |= changed
        assert difference.curriculum == (key == "nine")
    differ = {k for k, v in asdict(PAPER).items() if v != asdict(PPO.presets["paper-2019"])[k]}
    assert set(gone) == set(added) == differ
    sizes = [
        len(PAPER_JOBS[f"obstructed-maze-{n}"].job().curriculum)
        for n in ("2018-without-nine", "2019-with-nine")
    ]
    assert sizes == [6, 9]


def test_no_file_that_ships_is_large():
    data = Path(curves_module.__file__).parent / "data"
    assert sum(file.stat().st_size for file in data.glob("*")) <= 5_000_000


def test_the_interactive_page_has_every_run_once(monkeypatch, tmp_path):
    """Baselines are beside their job, or a job of their own where they were stopped earlier."""
    shown = {}
    monkeypatch.setattr(interactive, "kept_entry", lambda name, kept: shown.update({name: kept}))
    monkeypatch.setattr(interactive, "kept_curves", lambda kept: None)
    monkeypatch.setattr(interactive, "write", lambda *given: None)
    job, rest = made(["a"], {"mr": 0.9}), made(["a"], {"uniform": 0.1}, seeds=3)
    short = replace(rest, frames=FRAMES // 2)
    found = {"x": job, "x-baselines": rest, "y": job, "y-baselines": short}
    interactive.write_interactive(found, tmp_path / "page.html")
    assert {name: len(kept.seeds) for name, kept in shown.items()} == {
        "x": 13, "y": 10, "y-baselines": 3,
    }  # fmt: skip
