"""The command `mastery`. It says in one line what to install when the extra is missing."""

import sys


def main() -> None:
    try:
        from mastery.cli import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        print("mastery: the command line needs an extra: pip install 'mastery[cli]'")
        sys.exit(1)
    app()


if __name__ == "__main__":
    main()
