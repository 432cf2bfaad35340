"""The command `mastery`: wrong input gives one line, and so does a missing extra."""

import sys

from mastery.errors import MasteryError


def main() -> None:
    try:
        from mastery.cli import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit("mastery: the command line needs an extra: pip install 'mastery[cli]'")
    try:
        app()
    except MasteryError as error:
        print(f"mastery: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
