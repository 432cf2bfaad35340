"""Every example runs, as the command in its first lines says."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))
# what they show is in another test or example too, so that they are left to the slow tests
SHOWN = {
    "corridor": "test_mr_beats_uniform_in_the_corridor, below",
    "minigrid_jax": "docs/minigrid.md's Python, in tests/docs/test_code.py",
    "minigrid_vector": "tests/minigrid/test_vector.py",
    "ppo": "ppo_curriculum",
    "ray_workers": "tests/adapters/test_ray.py",
    "rllib_ppo": "tests/adapters/test_rllib.py",
    "sb3_minigrid": "tests/minigrid/test_stable_baselines3.py",
    "supervised": "supervised_curriculum",
    "torch_sampler": "tests/adapters/test_torch.py",
    "trl_grpo": "tests/adapters/test_trl.py",
}


def test_every_example_says_its_command():
    assert {path.stem for path in EXAMPLES} > SHOWN.keys()
    for path in EXAMPLES:
        assert f"python examples/{path.name}" in path.read_text()


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.slow] * (path.stem in SHOWN))
        for path in EXAMPLES
    ],
)
def test_example(path, tmp_path):
    done = subprocess.run(  # elsewhere, so that what it writes is new each time
        [sys.executable, path], capture_output=True, text=True, timeout=300, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_mr_beats_uniform_in_the_corridor():
    """The README's claim, on seeds that it does not show."""
    sys.path.insert(0, str(EXAMPLES[0].parent))
    try:
        from corridor import train
    finally:
        sys.path.pop(0)
    mr, uniform = (
        [train(program, seed) for seed in range(100, 108)] for program in ("mr", "uniform")
    )
    assert sorted(mr)[4] < sorted(uniform)[4]
