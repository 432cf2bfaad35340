"""An HTML page without scripts: one file that works offline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root{{color-scheme:light dark;--link:#0b5cad;--yes:#0a7d5c;--no:#c04a00;
 --back:#fbfaf8;--card:#fff;--ink:#1d2327;--soft:#5c666d;--line:#e3e1dc}}
@media screen and (prefers-color-scheme:dark){{:root{{--link:#7fb8f0;--yes:#35c79b;--no:#ff8a4c;
 --back:#15181b;--card:#1d2125;--ink:#e8eaec;--soft:#a9b2b8;--line:#333a40}}}}
body{{margin:0;background:var(--back);color:var(--ink);
 font:16px/1.55 ui-sans-serif,system-ui,'Segoe UI',Helvetica,Arial,sans-serif}}
main{{max-width:{width}px;margin:0 auto;padding:40px 20px 80px}}
h1{{font-size:28px;line-height:1.2;margin:0 0 8px}} h2{{font-size:19px;margin:0 0 6px}}
p{{margin:0 0 12px}} .soft{{color:var(--soft)}} a{{color:var(--link)}}
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
{style}</style></head><body>{contents}<main>
<h1>{title}</h1>
<p class="soft">{subtitle}</p>
{sections}
</main></body></html>
"""

# Contents at the side, folded where there is no room; folded sections, which print unfolds.
_FOLDED = """
html{{scroll-padding-top:16px}}
section.folded{{padding:0;margin-top:10px;overflow:visible}} section.folded>details{{margin:0}}
section.folded>details>summary{{padding:12px 22px;border-radius:12px}}
section.folded h2{{display:inline;font-size:17px;color:var(--ink);overflow-wrap:normal}}
section.folded summary small{{margin-left:10px}}
section.folded .inside{{padding:2px 22px 22px;scroll-margin-top:70px}}
.scroll{{overflow-x:auto}} .scroll td.wrap{{min-width:8em}} .scroll th{{white-space:normal}}
figure{{margin:0}} :focus-visible{{outline:2px solid var(--link);outline-offset:2px}}
nav.contents{{padding:16px 20px 0;max-width:{width}px;margin:0 auto}}
nav.contents>details{{margin:0}} nav.contents ol{{list-style:none;margin:6px 0 0;padding:0}}
nav.contents a{{display:block;padding:3px 0;text-decoration:none;line-height:1.35}}
nav.contents a:hover{{text-decoration:underline}}
@media screen and (min-width:1100px){{
 body{{display:grid;grid-template-columns:250px minmax(0,1fr);max-width:calc({width}px + 290px);
  margin:0 auto}}
 nav.contents{{position:sticky;top:0;align-self:start;max-height:100vh;overflow-y:auto;
  box-sizing:border-box;padding:44px 0 20px 20px;margin:0;font-size:14px}}
 nav.contents summary{{list-style:none;font-weight:600;pointer-events:none}}
 nav.contents summary::-webkit-details-marker{{display:none}}
 nav.contents details::details-content{{content-visibility:visible;block-size:auto}}}}
@media (max-width:600px){{main{{padding:20px 12px 60px}} section{{padding:14px}}
 section.folded>details>summary{{padding:12px 14px}} section.folded .inside{{padding:2px 14px 14px}}
 section.folded summary small{{display:block;margin-left:0}}}}
@media print{{:root{{color-scheme:light;--back:#fff}} nav.contents{{display:none}}
 body{{font-size:11px}} main{{max-width:none;padding:0}}
 details::details-content{{content-visibility:visible;block-size:auto}}
 section,section.folded{{border:0;padding:0;margin-top:14px}}
 section.folded>details>summary{{padding:0;list-style:none}} section.folded .inside{{padding:0}}
 summary::-webkit-details-marker{{display:none}} h2{{break-after:avoid}}
 .scroll{{overflow:visible}} th,td{{padding:3px 5px;white-space:normal}} code{{font-size:10px}}
 .scroll td.wrap{{min-width:0}} tr,figure{{break-inside:avoid}}
 section.folded summary small{{display:none}}}}
"""


def static_page(
    title: str,
    subtitle: str,
    sections: Iterable[str],
    width: int = 860,
    contents: Mapping[str, str] | None = None,
    style: str = "",
) -> str:
    """The whole page.

    Args:
        title: The title, as HTML.
        subtitle: The line below it, as HTML.
        sections: The sections, from `section` or `folded`.
        width: The width of the text, in pixels.
        contents: A table of contents, by the id of each section: its title, as HTML.
        style: More CSS.
    """
    items = "".join(
        f'<li><a href="#{key}">{name}</a></li>' for key, name in (contents or {}).items()
    )
    nav = (
        '<nav class="contents" aria-label="Contents"><details><summary>Contents</summary>'
        f"<ol>{items}</ol></details></nav>"
    )
    return _PAGE.format(
        title=title,
        subtitle=subtitle,
        sections="\n".join(sections),
        width=width,
        contents=nav if items else "",
        style=(_FOLDED.format(width=width) if items else "") + style,
    )


def section(title: str, inside: str, kind: str = "", key: str = "") -> str:
    """A section of a page, as HTML. The key is its id."""
    at = f' id="{key}"' if key else ""
    return f'<section class="{kind}"{at}><h2>{title}</h2>{inside}</section>'


def folded(title: str, inside: str, key: str, note: str = "") -> str:
    """A section that a click, or a link to anything inside, unfolds. Printing unfolds all.

    Its id is inside the folded part, so that the browser opens it when a link leads there.
    """
    about = f"<small>{note}</small>" if note else ""
    return (
        f'<section class="folded"><details><summary><h2>{title}</h2>{about}</summary>'
        f'<div class="inside" id="{key}">{inside}</div></details></section>'
    )
