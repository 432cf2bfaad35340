"""The command `mastery`. Invalid input and a missing extra each give a one-line error."""

import io
import os
import sys
import warnings

from mastery.errors import MasteryError, MasteryWarning, needs


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show "●" shows "?"
    usual = warnings.formatwarning

    def one_line(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        line: str | None = None,
    ) -> str:
        if issubclass(category, MasteryWarning):
            return f"warning: {message}\n"
        return usual(message, category, filename, lineno, line)

    warnings.formatwarning = one_line
    try:
        with needs("the command line", "cli"):
            from mastery.cli import app
        app()
        sys.stdout.flush()
    except MasteryError as error:
        print(f"mastery: {error}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        print(f"mastery: {error.strerror}", file=sys.stderr)
        os._exit(2)  # exit at once: a normal exit would flush, and fail again


if __name__ == "__main__":
    main()
