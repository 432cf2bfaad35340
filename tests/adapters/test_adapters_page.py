"""The Python of docs/adapters.md that is whole, not a part of a loop, runs, block by block."""

import re
from pathlib import Path

import pytest
import torch

PAGE = Path(__file__).parent.parent.parent / "docs" / "adapters.md"
BLOCKS = [
    block
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    if "from mastery import Curriculum" in block
]


@pytest.mark.parametrize("block", BLOCKS, ids=["gymnasium", "stable_baselines3", "trackers"])
def test_block(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        exec(compile(block, PAGE.name, "exec"), {})
    finally:
        torch.set_num_threads(before)
