"""Make the README's relative links absolute, since PyPI does not show relative ones.

python .github/absolute_links.py https://github.com/OWNER/NAME v0.2.0
"""

import re
import sys
from pathlib import Path

README = Path("README.md")


def absolute(text: str, address: str, version: str) -> str:
    """The text with links to files of that version; pictures are linked as they are shown."""

    def link(match: re.Match[str]) -> str:
        kind = "raw" if match[1] else "blob"
        return f"{match[1]}[{match[2]}]({address}/{kind}/{version}/{match[3]})"

    return re.sub(r"(!?)\[([^\]]*)\]\((?![a-z]+:|#)([^)\s]+)\)", link, text)


if __name__ == "__main__":
    README.write_text(absolute(README.read_text("utf-8"), *sys.argv[1:]), "utf-8")
