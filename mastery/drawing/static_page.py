"""An HTML page without scripts: one file that works offline."""

from __future__ import annotations

from collections.abc import Iterable

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root{{color-scheme:light dark;
 --back:#fbfaf8;--card:#fff;--ink:#1d2327;--soft:#5c666d;--line:#e3e1dc}}
@media (prefers-color-scheme:dark){{:root{{
 --back:#15181b;--card:#1d2125;--ink:#e8eaec;--soft:#a9b2b8;--line:#333a40}}}}
body{{margin:0;background:var(--back);color:var(--ink);
 font:16px/1.55 ui-sans-serif,system-ui,'Segoe UI',Helvetica,Arial,sans-serif}}
main{{max-width:{width}px;margin:0 auto;padding:40px 20px 80px}}
h1{{font-size:28px;line-height:1.2;margin:0 0 8px}} h2{{font-size:19px;margin:0 0 6px}}
p{{margin:0 0 12px}} .soft{{color:var(--soft)}}
section{{background:var(--card);border:1px solid var(--line);border-radius:12px;
 padding:22px;margin-top:22px;overflow-x:auto}}
svg{{max-width:100%;min-width:560px;height:auto}} section.graph svg{{max-width:none;min-width:0}}
table{{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}}
th,td{{text-align:right;padding:7px 10px;border-bottom:1px solid var(--line);white-space:nowrap}}
th:first-child,td:first-child{{text-align:left}}
th{{color:var(--soft);font-weight:600;font-size:13px}}
.split{{display:flex;height:16px;min-width:150px;border-radius:8px;overflow:hidden}}
.k0{{background:#086852}}.k1{{background:#56B4E9}}.k2{{background:#D55E00}}
.key span{{white-space:nowrap;margin-right:16px}} td.left,th.left{{text-align:left}}
small{{color:var(--soft)}} summary{{cursor:pointer;color:var(--soft)}} details{{margin-top:16px}}
.key i{{display:inline-block;width:12px;height:12px;border-radius:4px;margin:0 5px 0 14px}}
code{{font-size:14px}} td.wrap{{white-space:normal;vertical-align:top}}
img{{width:100%;background:#fff;border-radius:8px;margin:8px 0}}
</style></head><body><main>
<h1>{title}</h1>
<p class="soft">{subtitle}</p>
{sections}
</main></body></html>
"""


def static_page(title: str, subtitle: str, sections: Iterable[str], width: int = 860) -> str:
    """The whole page.

    Args:
        title: The title, as HTML.
        subtitle: The line below it, as HTML.
        sections: The sections, from `section`.
        width: The width of the text, in pixels.
    """
    text = "\n".join(sections)
    return _PAGE.format(title=title, subtitle=subtitle, sections=text, width=width)


def section(title: str, inside: str, kind: str = "") -> str:
    """A section of a page, as HTML."""
    return f'<section class="{kind}"><h2>{title}</h2>{inside}</section>'
