"""The wheel: what is in it, and what it does in clean environments with each extra.

An environment grows along a chain of extras, since each needs all that the ones before it
installed. `make test-slow` prints, for each extra, the installed size and the seconds.
"""

import fcntl
import os
import subprocess
import sys
import tarfile
import time
import venv
import zipfile
from pathlib import Path

import pytest

import mastery
from mastery.errors import install

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parent.parent
LARGEST = 7_000_000  # bytes of the wheel; most of them are the curves that ship
TORCH = "torch==2.13.0"  # installed first, so that pip takes the CPU build if it has one


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with the wheel and the source distribution, built once for all test processes."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "dist"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            run(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    return folder


def run(*command, cwd=None, refused=None):
    """The output of a command; `refused` is a part of the message with which it must fail."""
    # the wheel's own copy, and a Ray cluster of its own, whatever else there is on the machine
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    bare["RAY_ADDRESS"] = "local"
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True, text=True, cwd=cwd, timeout=1800, env=bare,
    )  # fmt: skip
    if refused is None:
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout
    assert done.returncode != 0
    assert refused in done.stderr
    return done.stderr


def test_pypi_would_accept_both_files(built):
    files = sorted(built.iterdir())
    assert [path.name for path in files] == [
        f"mastery_curriculum-{mastery.__version__}-py3-none-any.whl",
        f"mastery_curriculum-{mastery.__version__}.tar.gz",
    ]
    said = run(sys.executable, "-m", "twine", "--no-color", "check", "--strict", *files)
    assert said.count("PASSED") == 2


def test_the_wheel_holds_the_package_and_nothing_else(built):
    wheel = next(built.glob("*.whl"))
    with zipfile.ZipFile(wheel) as opened:
        inside = {i.filename: i.compress_size for i in opened.infolist() if not i.is_dir()}
    command = ["git", "ls-files", "-z", "mastery"]
    tracked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    package = {name for name in inside if not name.startswith("mastery_curriculum-")}
    assert package == set(filter(None, tracked.stdout.split("\0")))
    rest = {name.partition("/")[2] for name in inside if name not in package}
    assert rest == {
        *("METADATA", "RECORD", "WHEEL", "entry_points.txt", "top_level.txt"),
        "licenses/LICENSE",
    }
    assert wheel.stat().st_size < LARGEST
    sizes = {}
    for name, size in inside.items():
        sizes[Path(name).suffix] = sizes.get(Path(name).suffix, 0) + size
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB in {len(inside)} files")
    for kind, size in sorted(sizes.items(), key=lambda item: -item[1]):
        print(f"  {kind or 'other'} {size / 1e3:,.0f} kB")


def test_the_source_distribution_holds_no_tests(built):
    with tarfile.open(next(built.glob("*.tar.gz"))) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    assert {"README.md", "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE"} <= names
    assert not any(name.startswith("tests") for name in names)


class Environment:
    """A virtual environment with the wheel, without pip, and a folder to work in."""

    def __init__(self, folder, wheel):
        self.folder, self.wheel = folder / "work", wheel
        self.folder.mkdir()
        venv.create(folder / "venv", symlinks=True)
        self.bin = folder / "venv" / "bin"
        (self.folder / "cartpole.toml").write_text(CARTPOLE)

    def pip(self, *arguments):
        run(sys.executable, "-m", "pip", "-q", "--python", self.bin / "python", *arguments)

    def install(self, extra, first):
        for requirement in (*first, f"{self.wheel}[{extra}]" if extra else self.wheel):
            self.pip("install", requirement)
        self.pip("check")

    def size(self):
        """Bytes of all that is installed."""
        site = next(self.bin.parent.glob("lib/python*/site-packages"))
        return sum(path.stat().st_size for path in site.rglob("*") if path.is_file())

    def python(self, text, refused=None):
        return run(
            self.bin / "python", "-W", "ignore", "-c", text, cwd=self.folder, refused=refused
        )

    def example(self, name):
        return run(self.bin / "python", ROOT / "examples" / f"{name}.py", cwd=self.folder)

    def mastery(self, *arguments, refused=None):
        return run(self.bin / "mastery", *arguments, cwd=self.folder, refused=refused)


CARTPOLE = """
[tasks.short]
maximum = 20.0
settings = { env = "CartPole-v1", max_episode_steps = 20 }
[tasks.long]
maximum = 60.0
after = ["short"]
settings = { env = "CartPole-v1", max_episode_steps = 60 }
"""


def numpy_alone(env):
    """the README's loop, Prompts, record; nothing else is imported"""
    env.python("""if True:
        import sys
        import mastery

        tasks = [mastery.Task("easy"), mastery.Task("hard", after=("easy",))]
        teacher = mastery.Teacher(mastery.Curriculum(tasks), program="mr", seed=0)
        with mastery.record(teacher, "runs/mine"):
            for episode in range(100):
                task = teacher.sample()
                teacher.update({task: 0.9 if task == "easy" else 0.2})
        print(teacher.explain())
        teacher.save("teacher.mastery")
        assert mastery.Teacher.load("teacher.mastery").mastery == teacher.mastery

        dataset = [{"task": t, "prompt": f"{t} {i}"} for t in ("easy", "hard") for i in range(9)]
        prompts = mastery.Prompts(dataset, teacher, update_every=4)
        prompts.report(prompts.next(4), [[0, 1]] * 4)
        mastery.simulate(mastery.Curriculum.load("key-corridor"), ["mr"], seeds=1, steps=9)

        files = {name: getattr(module, "__file__", None) for name, module in sys.modules.items()}
        foreign = {n.partition(".")[0] for n, file in files.items() if "site-packages" in str(file)}
        assert foreign == {"mastery", "numpy"}, foreign
    """)
    for name in ("corridor", "minibatches", "own_program", "prompts"):
        env.example(name)
    env.mastery("--help", refused=f"the command line needs typer: {install('cli')}")
    for adapter, extra in {
        "gymnasium": "gymnasium",
        "stable_baselines3": "sb3",
        "torch": "torch",
        "ray": "ray",
        "rllib": "rllib",
        "trl": "trl",
        "trl_async": "trl",
    }.items():
        text = f"import mastery.adapters.{adapter}"
        env.python(text, refused=install(extra))
    env.python("import mastery; mastery.train", refused=install("train"))
    env.python("from mastery.minigrid import make_vec", refused=install("minigrid"))


def cli(env):
    """--help, show, programs, simulate; runs, report and export of a recorded loop"""
    assert "simulate" in env.mastery("--help")
    assert "2Dlhb" in env.mastery("show", "obstructed-maze")
    assert "gprop-linreg" in env.mastery("programs")
    env.mastery("simulate", "obstructed-maze", "--against", "uniform", "--seeds", "2")
    env.mastery("runs", "runs")
    env.mastery("report", "runs/mine", "--out", "report.html")
    env.mastery("export", "runs/mine", "--csv", "curves.csv", "--tensorboard", "events")
    env.mastery("export", "runs/mine", "--parquet", "x", refused="pip install pyarrow")
    env.mastery("play", "Unlock", refused=install("minigrid"))
    env.mastery("train", "key-corridor", refused=install("train"))
    env.mastery("pretrain", "reasoning", refused=install("train"))
    env.mastery("paper", "--redraw", refused=install("paper"))
    env.mastery("benchmark", "reasoning", "--redraw", refused=install("paper"))


def minigrid(env):
    """make_vec; play --gif"""
    env.python("""if True:
        from mastery.minigrid import make_vec

        envs = make_vec(["Unlock", "ObstructedMaze-2Dlh"], num_envs=8)
        observations, infos = envs.reset(seed=0)
        envs.step(envs.action_space.sample())
    """)
    env.mastery("play", "Unlock", "--agent", "planner", "--gif", "unlock.gif")
    env.mastery("train", "key-corridor", refused=install("train"))


def train(env):
    """train on MiniGrid and on CartPole; play --gif of a run; report --clips"""
    tiny = "--frames 256 --seeds 1 --set envs=4 --set frames=32 --set batch=32 --set ahead=4"
    for curriculum in ("blocked-unlock-pickup", "cartpole.toml"):
        env.mastery("train", curriculum, *tiny.split(), "--out", f"runs/{curriculum}")
    trained = "runs/blocked-unlock-pickup"
    env.mastery("play", trained, "--steps", "9", "--gif", "agent.gif")
    env.mastery("report", trained, "--clips", "--out", "clips.html")
    env.mastery("paper", "--redraw", refused=install("paper"))


def paper(env):
    """paper --redraw and benchmark --redraw, from the curves in the wheel"""
    env.mastery("paper", "key-corridor", "--redraw", "--out", "paper")
    env.mastery("benchmark", "reasoning", "--redraw", "--out", "reasoning")


def gymnasium(env):
    """CurriculumVectorEnv on CartPole; examples/record_loop.py"""
    env.python("""if True:
        from mastery import Curriculum, Teacher
        from mastery.adapters.gymnasium import CurriculumVectorEnv

        teacher = Teacher(Curriculum.load("cartpole.toml"), seed=0)
        envs = CurriculumVectorEnv(None, teacher, num_envs=2, update_every=100)
        envs.reset(seed=0)
        for _ in range(200):
            envs.step(envs.action_space.sample())
        envs.close()
        assert teacher.time_step > 0
    """)
    env.example("record_loop")


def sb3(env):
    """PPO on CartPole with a curriculum, saved and loaded"""
    env.python("""if True:
        from stable_baselines3 import PPO
        from mastery import Curriculum, Teacher
        from mastery.adapters.stable_baselines3 import (
            CurriculumCallback, CurriculumVecEnv, last_checkpoint
        )

        teacher = Teacher(Curriculum.load("cartpole.toml"), seed=0)
        envs = CurriculumVecEnv(None, teacher, num_envs=2)
        model = PPO("MlpPolicy", envs, n_steps=64, batch_size=64, device="cpu")
        model.learn(256, callback=CurriculumCallback(teacher, save="checkpoints"))
        saved = last_checkpoint("checkpoints")
        assert Teacher.load(saved.teacher).time_step == 2
    """)


def example(name):
    """A step that runs an example, which names the extra in its first lines."""

    def steps(env):
        env.example(name)

    steps.__doc__ = f"examples/{name}.py"
    return steps


def trl(env):
    """examples/trl_grpo.py; the asynchronous trainer is imported"""
    env.example("trl_grpo")
    env.python("import mastery.adapters.trl_async")


# extra, what is installed before it, and what is done with it
CHAINS = {
    "paper": [
        ("", (), numpy_alone),
        ("cli", (), cli),
        ("minigrid", (), minigrid),
        ("train", (), train),
        ("paper", (), paper),
    ],
    "sb3": [("gymnasium", (), gymnasium), ("sb3", (TORCH,), sb3)],
    "trl": [("torch", (TORCH,), example("torch_sampler")), ("trl", (), trl)],
    "rllib": [("ray", (), example("ray_workers")), ("rllib", (TORCH,), example("rllib_ppo"))],
}


@pytest.mark.parametrize("chain", CHAINS)
def test_each_extra_does_what_it_promises(chain, built, tmp_path):
    env = Environment(tmp_path, next(built.glob("*.whl")))
    for extra, first, steps in CHAINS[chain]:
        started = time.monotonic()
        env.install(extra, first)
        installed = time.monotonic()
        steps(env)
        done = time.monotonic()
        print(
            f"| {extra or 'NumPy alone'} | {env.size() / 1e6:,.0f} MB | {steps.__doc__} | "
            f"{installed - started:.0f} s | {done - installed:.0f} s |"
        )


def test_every_extra_is_tried():
    import tomllib

    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    tried = {extra for chain in CHAINS.values() for extra, _, _ in chain}
    assert tried - {""} == set(extras["optional-dependencies"]) - {"docs", "test"}
