"""The command line as a process of its own."""

import subprocess
import sys


def mastery(*arguments, rc=0):
    command = [sys.executable, "-m", "mastery", *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=3600)
    assert result.returncode == rc, result.stderr
    assert "Traceback" not in result.stderr
    return result.stdout if rc == 0 else result.stderr
