"""The page's own files: short lines, and modules that can be put into one script."""

import base64
import hashlib
import re
from collections import Counter
from importlib.resources import files as resources

import pytest

from mastery import MasteryError
from mastery.page import assemble, files

STATIC = resources("mastery.page") / "static"
OURS = sorted(path.name for path in STATIC.iterdir())
MODULES = [name for name in OURS if name.endswith(".js")]
IMPORT = re.compile(r"^import \{([^}]*)\} from '\./([\w.-]+)';$", re.MULTILINE)
DECLARED = re.compile(
    r"^(export )?(?:async function|function|const|let|class) ([\w$]+)", re.MULTILINE
)


def declared(name, exported=False):
    """The names that a module declares at its top level."""
    found = DECLARED.findall(files.static(name))
    return [word for export, word in found if export or not exported]


def imports(name):
    """What a module imports: (module, name)."""
    return [
        (module, word)
        for words, module in IMPORT.findall(files.static(name))
        for word in re.findall(r"[\w$]+", words)
    ]


@pytest.mark.parametrize("name", OURS)
def test_lines_are_short(name):
    lines = files.static(name).splitlines()
    assert [line for line in lines if len(line.encode()) > 100] == []
    assert [line for line in lines if line != line.rstrip()] == []


def test_every_file_is_part_of_the_page():
    assert sorted(files.parts()) == sorted({*OURS} - {"page.html"})
    assert len(files.parts()) == len(set(files.parts()))


@pytest.mark.parametrize("name", MODULES)
def test_a_module_imports_what_others_export_and_uses_it(name):
    rest = IMPORT.sub("", files.static(name))
    for module, word in imports(name):
        assert word in declared(module, exported=True), (module, word)
        assert re.search(rf"(?<![\w$.]){re.escape(word)}(?![\w$])", rest.replace("...", "")), word


@pytest.mark.parametrize("name", MODULES)
def test_a_module_imports_all_that_it_uses_of_others(name):
    """In one script it would have them without; `mastery watch` would fail, perhaps much later."""
    known = {*declared(name), *(word for _, word in imports(name))}
    code = re.sub(r"//.*|'[^'\n]*'", "", IMPORT.sub("", files.static(name)))
    for other in MODULES:
        for word in set(declared(other)) - known:
            used = r"\b" if word.isupper() else r"[(.]"  # a constant, or called, or an object
            assert not re.search(rf"(?<![\w$.]){re.escape(word)}{used}", code), (other, word)


def test_no_two_modules_declare_the_same_name():
    every = Counter(word for name in MODULES for word in declared(name))
    assert [word for word, times in every.items() if times > 1] == []


@pytest.mark.parametrize("name", MODULES)
def test_the_top_level_has_only_declarations(name):
    """So that the test above sees all of them, and nothing but page.js does anything."""
    rest = IMPORT.sub("", files.static(name))
    begun = [line for line in rest.splitlines() if re.match(r"[^\s/)}\]]", line)]
    others = [line for line in begun if not DECLARED.match(line)]
    assert others == (["begin();"] if name == "page.js" else [])


def test_one_script_has_all_modules_each_after_what_it_imports():
    order = files.modules("page.js")
    assert sorted(order) == MODULES
    for name in order:
        for module, _ in imports(name):
            assert order.index(module) < order.index(name)
    script = files.one_script("page.js")
    assert not re.search(r"^(import|export)\b", script, re.MULTILINE)
    found = [word for _, word in DECLARED.findall(script)]
    assert found == [word for name in order for word in declared(name)]
    ours = sum(len(IMPORT.sub("", files.static(name)).split()) for name in order)
    exports = sum(len(declared(name, exported=True)) for name in order)
    assert len(script.split()) == ours - exports  # nothing else is lost


def made(monkeypatch, **modules):
    monkeypatch.setattr(files, "static", lambda name: modules[name.removesuffix(".js")])


def test_modules_are_put_together(monkeypatch):
    made(
        monkeypatch,
        a="import { b } from './b.js';\nimport {\n  c, d,\n} from './c.js';\n\nb(c, d);\n",
        b="import { c } from './c.js';\nexport function b() { return c; }\n",
        c="export const c = 'export const';\nexport async function d() {}\n",
    )
    assert files.modules("a.js") == ["c.js", "b.js", "a.js"]
    assert files.one_script("a.js") == (
        "const c = 'export const';\nasync function d() {}\n"
        "\nfunction b() { return c; }\n"
        "\n\nb(c, d);\n"
    )


def test_modules_that_import_each_other_are_refused(monkeypatch):
    made(
        monkeypatch,
        a="import { b } from './b.js';\nexport const a = 1;\n",
        b="import { a } from './a.js';\nexport const b = 1;\n",
    )
    with pytest.raises(MasteryError, match=r"each other: a\.js → b\.js → a\.js"):
        files.modules("a.js")


@pytest.mark.parametrize(
    "line",
    [
        "import './b.js';",
        "import b from './b.js';",
        "import * as b from './b.js';",
        "import { b } from 'b';",
        "export default 1;",
        "export { a };",
        "export * from './b.js';",
        "const b = await import('./b.js');",
        "const here = import.meta.url;",
    ],
)
def test_other_ways_to_import_and_export_are_refused(monkeypatch, line):
    made(monkeypatch, a=f"const a = 1;\n{line}\n")
    with pytest.raises(MasteryError, match=r"a\.js cannot be put into one script"):
        files.one_script("a.js")


def test_the_single_file_allows_its_own_scripts_alone(tmp_path):
    assemble.write(tmp_path / "page.html", "a < b", [], [])
    text = (tmp_path / "page.html").read_text()
    assert "<title>a &lt; b</title>" in text
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    for tag, count in (("script", 1), ("style", 1)):
        inside = re.findall(rf'<{tag}(?: type="module")?>(.*?)</{tag}>', text, re.DOTALL)
        hashes = [hashlib.sha256(x.encode()).digest() for x in inside]
        allowed = [f"'sha256-{base64.b64encode(x).decode()}'" for x in hashes]
        assert len(allowed) == count
        assert rules[f"{tag}-src"].split() == allowed
    rest = re.sub(r"<(script|style)\b.*?</\1>", "", text, flags=re.DOTALL)
    assert len(rest) < 10_000
    assert set(re.findall(r'(?:src|href)="([^"]*)"', rest)) == {"data:,", "#curriculum"}
