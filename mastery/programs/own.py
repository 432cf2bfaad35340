"""A user's own program by text: `package.module:Class`, `file.py:Class` or `file.py:Class:a=2,b=x`.

The text alone is data: a job or a saved teacher holds it. Nothing is imported until `build`.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import re
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any

from mastery.curriculum import Curriculum
from mastery.curriculum.importing import importable
from mastery.errors import ProgramError, did_you_mean
from mastery.programs.check import check_fits, check_trainable
from mastery.programs.named import PROGRAMS
from mastery.programs.program import ProgramLike
from mastery.programs.recipe import Recipe

_TEXT = re.compile(r"(?P<place>.+?\.py|[^\W\d][\w.]*):(?P<name>[^\W\d]\w*)(?::(?P<rest>.*))?")
_PACKAGE = str(Path(__file__).parent.parent)


@dataclass(frozen=True)
class OwnRecipe:
    """Where a user's own program is, and the arguments to make it with.

    It has what a `Recipe` has to name and to build a program. The object in the module or file
    may be a class or a function that returns a program, which are called with the arguments, and
    with `curriculum` if they have a parameter of that name; or a program, ready for use.
    """

    place: str  # a module, or a file that ends in .py
    name: str  # of the class, function or program in it
    arguments: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> OwnRecipe | None:
        """Read the text of an own program; None if it names one of the library's programs.

        Raises:
            ProgramError: If the text is that of an own program, but incomplete.
        """
        text = text.strip()
        head = text.partition(":")[0].strip()
        if head in PROGRAMS:
            return None
        match = _TEXT.fullmatch(text)
        if match is None:
            if ".py" in text or "." in head:
                raise ProgramError(
                    f"{text!r} does not name a program of your own; write file.py:Class or "
                    "package.module:Class, with arguments file.py:Class:name=value,…"
                )
            return None
        arguments: dict[str, str] = {}
        for item in filter(None, (item.strip() for item in (match["rest"] or "").split(","))):
            key, equals, value = (part.strip() for part in item.partition("="))
            if not equals or not key.isidentifier():
                raise ProgramError(f"{item!r} in {text!r} does not have the form argument=value")
            if key in arguments:
                raise ProgramError(f"{key!r} is set twice in {text!r}")
            arguments[key] = value
        return cls(match["place"], match["name"], arguments)

    @property
    def full(self) -> str:
        """The text; it holds every argument that was given."""
        return str(self)

    @property
    def is_file(self) -> bool:
        """Whether the program is in a file, not in a module to import by name."""
        return self.place.endswith(".py")

    def without_order(self, curriculum: Curriculum) -> str | None:
        """None: whether the program follows an order is unknown; see `Recipe.without_order`."""
        return None

    def build(self, curriculum: Curriculum) -> ProgramLike:
        """Import the program and make it for a curriculum.

        Raises:
            ProgramError: If the file, the module or the name in it does not exist, its code
                raises an error, or what it makes is not a program.
        """
        with importable(*[Path(self.place).parent] * self.is_file):
            module = self._file() if self.is_file else self._module()
            made = self._make(self._find(module), module, curriculum)
            if isinstance(made, Recipe):
                made = made.build(curriculum)
        try:
            check_fits(made, curriculum)
        except ProgramError as error:
            raise ProgramError(f"{self}: {error}") from None
        program: ProgramLike = made
        return program

    def source(self) -> dict[str, str]:
        """The path of the source file and its SHA-256; nothing if there is no such file.

        A module must have been imported.
        """
        module = sys.modules.get(self.place)
        path = Path(self.place if self.is_file else getattr(module, "__file__", None) or "")
        if not path.is_file():
            return {}
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        return {"file": str(path.resolve()), "sha256": digest}

    def _file(self) -> ModuleType:
        """The module of a file: a new one whenever its content has changed."""
        path = Path(self.place).resolve()
        if not path.is_file():
            raise ProgramError(f"there is no file {str(path)!r} for the program {str(self)!r}")
        content = path.read_bytes()
        digest = hashlib.sha256(str(path).encode() + b"\0" + content).hexdigest()[:12]
        name = "_".join(["mastery_own", re.sub(r"\W", "_", path.stem), digest])
        if name not in sys.modules:
            spec = importlib.util.spec_from_file_location(name, path)
            assert spec
            module = sys.modules[name] = importlib.util.module_from_spec(spec)
            try:  # not by the module's loader: it may take an older compiled file
                exec(compile(content, str(path), "exec"), module.__dict__)
            except BaseException as error:
                del sys.modules[name]
                raise self._failed("cannot be imported", error, path) from error
        return sys.modules[name]

    def _module(self) -> ModuleType:
        try:
            return importlib.import_module(self.place)
        except ModuleNotFoundError as error:
            if error.name and f"{self.place}.".startswith(f"{error.name}."):
                close = get_close_matches(self.place, PROGRAMS, n=1)
                raise ProgramError(
                    f"there is no module {error.name!r} for the program {str(self)!r}; it is "
                    f"neither installed nor in the current directory, {Path.cwd()}"
                    + (f"; did you mean {close[0]!r}?" if close else "")
                ) from None
            raise self._failed("cannot be imported", error, None) from error
        except BaseException as error:
            raise self._failed("cannot be imported", error, None) from error

    def _find(self, module: ModuleType) -> Any:
        if hasattr(module, self.name):
            return getattr(module, self.name)
        known = [
            name
            for name, value in vars(module).items()
            if not name.startswith("_")
            and (getattr(value, "__module__", None) == module.__name__ or hasattr(value, "observe"))
        ]
        raise ProgramError(f"{self.place!r} has no {self.name!r}{did_you_mean(self.name, known)}")

    def _make(self, found: Any, module: ModuleType, curriculum: Curriculum) -> Any:
        ready = not callable(found) or (hasattr(found, "init") and not inspect.isclass(found))
        if ready and self.arguments:
            raise ProgramError(
                f"{self.name!r} in {self.place!r} is an object, so it takes no arguments; write "
                f"{self.place}:{self.name}"
            )
        if ready:
            return found
        given = self._arguments(found)
        if given and not self.is_file:
            self._check_harmless(found)
        if "curriculum" in _parameters(found):
            given["curriculum"] = curriculum
        try:
            return found(**given)
        except BaseException as error:
            said = ", ".join(f"{k}={v!r}" for k, v in given.items() if k != "curriculum")
            what = f"cannot be made: {self.name}({said}) failed"
            raise self._failed(what, error, getattr(module, "__file__", None)) from error

    def _arguments(self, found: Any) -> dict[str, Any]:
        """The arguments as numbers and texts, if the class or function has such parameters."""
        parameters = _parameters(found)
        names = [name for name in parameters if name != "curriculum"]
        if inspect.Parameter.VAR_KEYWORD not in (p.kind for p in parameters.values()):
            for key in self.arguments:
                if key not in names:
                    hint = did_you_mean(key, names) or "; it takes none"
                    raise ProgramError(
                        f"{self.name!r} in {self.place!r} has no argument {key!r}{hint}"
                    )
        return {key: _number(value) for key, value in self.arguments.items()}

    def _check_harmless(self, found: Any) -> None:
        """Refuse what is not made for this, such as `subprocess:run`.

        The text may be from a checkpoint that someone else wrote.
        """
        methods = all(hasattr(found, name) for name in ("init", "observe", "distribution"))
        if not methods and "curriculum" not in _parameters(found):
            raise ProgramError(
                f"{self.name!r} in {self.place!r} is not called with arguments: it is neither a "
                "class with init, observe and distribution, nor a function with a parameter "
                "curriculum"
            )

    def _failed(self, what: str, error: BaseException, file: str | Path | None) -> BaseException:
        """The user's code raised an error: what, and where in the user's code."""
        if isinstance(error, KeyboardInterrupt | GeneratorExit | MemoryError):
            return error
        return ProgramError(f"the program {str(self)!r} {what}: {said(error, file)}")

    def __str__(self) -> str:
        """The text that `parse` reads as this recipe."""
        arguments = ",".join(f"{key}={value}" for key, value in self.arguments.items())
        return f"{self.place}:{self.name}" + f":{arguments}" * bool(arguments)

    def __hash__(self) -> int:
        return hash(str(self))


def read_program(text: str) -> Recipe | OwnRecipe:
    """Read a program's text: `mr`, `mr:delta=0.8`, `package.module:Class`, `file.py:Class:a=2`.

    Nothing is imported; `build` of the result does that.

    Raises:
        ProgramError: If there is no such program, or a setting is not allowed.
    """
    own = OwnRecipe.parse(text) if isinstance(text, str) else None
    return Recipe.parse(text) if own is None else own


def check_own(text: str, program: ProgramLike, curriculum: Curriculum, *, compiled: bool) -> None:
    """Test an own program on random returns before it is used for long.

    Raises:
        ProgramError: If it breaks the contract or raises an error, or, if it is to be compiled,
            does not run under JAX.
    """
    try:
        check_trainable(program, curriculum, compiled=compiled)
    except ProgramError as error:
        remedy = ""
        if "under jax.jit" in str(error):
            remedy = (
                "; take the namespace from the inputs (xp = x.__array_namespace__()), and use "
                "xp.where instead of if; or train in Gymnasium's environments (--environments "
                "gymnasium), where NumPy is enough"
            )
        raise ProgramError(f"the program {text!r}: {error}{remedy}") from error
    except Exception as error:  # a user's program may raise anything
        raise ProgramError(f"the program {text!r} fails: {said(error)}") from error


def same_program(one: str, other: str) -> bool:
    """Whether two texts of saved programs name the same one.

    A text may give fewer settings, and a file or module may have moved. An object that was given
    instead of a text has the text `own Class`; its arguments are unknown.
    """
    if one == other:
        return True
    if any(text.startswith("own ") for text in (one, other)):
        names = [text.removeprefix("own ") for text in (one, other)]
        read = [OwnRecipe.parse(n) if ":" in n else None for n in names]
        both = {r.name if r else n.rpartition(".")[2] for r, n in zip(read, names, strict=True)}
        return any(read) and len(both) == 1
    first, second = read_program(one), read_program(other)
    if isinstance(first, OwnRecipe) and isinstance(second, OwnRecipe):
        return (first.name, first.arguments) == (second.name, second.arguments)
    return first == second


def said(error: BaseException, file: str | Path | None = None) -> str:
    """An error of the user's code, with the line in `file`, or the last one outside mastery."""
    text = f"{type(error).__name__}: {error}".strip().rstrip(":")
    frames = [
        f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith("<")
    ]
    outside = [f for f in frames if not f.filename.startswith(_PACKAGE)]
    own = [f for f in frames if file and f.filename == str(file)]
    if isinstance(error, SyntaxError) or not (own or outside):
        return text
    where = (own or outside)[-1]
    return f"{text} ({where.filename}, line {where.lineno})"


def _parameters(found: Any) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(found).parameters
    except (TypeError, ValueError):  # some functions that are written in C
        return {}


def _number(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text
