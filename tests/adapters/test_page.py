"""The Python of docs/adapters.md runs, block by block."""

import re
from pathlib import Path

import pytest
import torch

PAGE = Path(__file__).parent.parent.parent / "docs" / "adapters.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)


@pytest.mark.parametrize("block", BLOCKS, ids=["gymnasium", "stable_baselines3", "trackers"])
def test_block(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        exec(compile(block, PAGE.name, "exec"), {})
    finally:
        torch.set_num_threads(before)
