"""Hypothesis draws the same examples in every run, so that a failure can be repeated. What JAX has
compiled once, in whatever process, is not compiled again, and it is compiled with less care, since
that takes longer here than what it is compiled for; and several workers do not fight over the cores
with threads of their own."""

import gc
import os
import signal
from importlib.metadata import version
from pathlib import Path

import browser as browser_support
import pytest
from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, print_blob=True)
settings.load_profile("repeatable")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # so it is in a shell's background
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # the processes of the tests inherit it

_CACHE = Path(__file__).parent.parent / ".pytest_cache" / "jax"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(_CACHE))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
_FLAGS = ["--xla_backend_optimization_level=1"]
if version("jaxlib").startswith("0.10."):  # a flag that XLA does not know would end it
    _FLAGS.append("--xla_cpu_use_fusion_emitters=false")
os.environ.setdefault("XLA_FLAGS", " ".join(_FLAGS))
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("NPROC", "1")
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import jax  # noqa: E402  (it reads what is set above)

# the files that take longest begin first, so that no worker is left alone with one at the end
_LONGEST = (
    "test_survival.py",
    "test_page_browser.py",
    "test_ppo.py",
    "test_run.py",
    "test_ray.py",
    "test_minigrid_loop.py",
    "test_addition_loop.py",
    "test_reasoning_loop.py",
    "test_page_address.py",
    "test_page_tables.py",
    "test_page_clips.py",
    "test_own_program.py",
    "test_grpo.py",
    "test_reasoning_survival.py",
    "test_engine.py",
    "test_page.py",
    "test_gymnasium_loop.py",
    "test_cli.py",
    "test_parts.py",
    "test_traced.py",
    "test_vector.py",
    "test_program.py",
    "test_notebooks.py",
    "test_trl.py",
    "test_examples.py",
    "test_addition.py",
    "test_agent.py",
    "test_package.py",
    "test_encoders.py",
    "test_processes.py",
)


def pytest_configure(config):
    """With less care still in this process: those that the tests start run for longer, and so do
    the slow tests."""
    if config.option.markexpr != "slow":
        jax.config.update("jax_disable_most_optimizations", True)


@pytest.fixture
def optimised():
    """For a test that runs for longer than it compiles: what it compiles is optimised after all."""
    before = jax.config.values["jax_disable_most_optimizations"]
    jax.config.update("jax_disable_most_optimizations", False)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


def pytest_collection_modifyitems(items):
    order = {name: i for i, name in enumerate(_LONGEST)}
    items.sort(key=lambda item: order.get(item.path.name, len(order)))


def pytest_collection_finish():
    """Looking for garbage takes up to a tenth of the time of tests that compile: what is imported
    stays, and among the rest it is looked for less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(200_000, 20, 50)


_BROWSER_FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-background-networking "
    "--disable-component-update --disable-sync --no-first-run"
)


@pytest.fixture(scope="module")
def browser():
    """A real browser; tests of pages are skipped where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = browser_support.find()
    if path is None:
        assert not browser_support.REQUIRED, "there is no Chromium on this machine"
        pytest.skip("there is no Chromium on this machine")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=path, args=_BROWSER_FLAGS.split())
        yield running
        running.close()
