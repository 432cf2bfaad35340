"""What the page of speed says of the kernels' learning is what the benchmark prints."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_table_of_areas_is_the_benchmark_s():
    command = [sys.executable, ROOT / "benchmarks" / "same_learning.py"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    page = (ROOT / "docs" / "results" / "speed.md").read_text()
    assert len(printed.splitlines()) == 13
    assert printed.strip() in page
