"""The look of the HTML pages: one style sheet in light and dark, and the few lines of script of the report."""

from __future__ import annotations

from html import escape

# Nothing may be fetched: the browser itself enforces what the page promises.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"

CSS = """
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1f2328; --soft: #59636e; --rule: #d8dee4;
  --panel: #f6f8fa;
  --good: #1a7f37; --bad: #b3261e; --c0: #1257a6; --c1: #c8601c; --c2: #2a8a57; --c3: #8a3f98;
  --c4: #8c6d1f;
  --c5: #b8324a; --c6: #2f7886; --c7: #5a5a5a; --on: #ffffff; }
@media (prefers-color-scheme: dark) { :root { --paper: #14171c; --ink: #e6e9ee; --soft: #a0a9b4;
  --rule: #343b45;
  --panel: #1c2128; --good: #5fc97c; --bad: #ff8a80; --c0: #74aef2; --c1: #f0985c; --c2: #66c795;
  --c3: #cb92d8;
  --c4: #d3b866; --c5: #f0869a; --c6: #7fc4d2; --c7: #b4b8be; --on: #14171c; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 20px 16px 48px; }
h1 { font-size: 26px; line-height: 1.2; margin: 0 0 6px; overflow-wrap: anywhere; }
h2 { font-size: 20px; margin: 40px 0 4px; border-top: 1px solid var(--rule); padding-top: 22px;
  overflow-wrap: anywhere; }
h3 { font-size: 15px; margin: 22px 0 4px; }
p { margin: 4px 0 10px; }
.soft { color: var(--soft); font-size: 13.5px; }
figure { margin: 8px 0; min-width: 0; }
figcaption { color: var(--soft); font-size: 13.5px; }
.grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(320px, 100%), 1fr));
  gap: 8px 28px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 14px; }
th, td { padding: 5px 12px 5px 0; text-align: right; white-space: nowrap;
  border-bottom: 1px solid var(--rule); }
th { color: var(--soft); font-weight: 600; }
.left { text-align: left; }
.good { color: var(--good); }
.bad { color: var(--bad); }
td.name { white-space: normal; min-width: 150px; max-width: 340px; overflow-wrap: break-word;
  text-align: left; }
.key { display: flex; flex-wrap: wrap; gap: 4px 18px; list-style: none; margin: 4px 0 0; padding: 0;
  font-size: 14px; }
.key li { overflow-wrap: anywhere; }
.dot { display: inline-block; min-width: 19px; height: 19px; border-radius: 10px;
  color: var(--on); font: 600 11.5px/19px system-ui, sans-serif; text-align: center; margin-right: 6px; }
pre { background: var(--panel); border: 1px solid var(--rule); border-radius: 6px; padding: 10px;
  overflow-x: auto; font-size: 13px; }
summary { cursor: pointer; margin: 8px 0; }
button { font: inherit; font-size: 14px; color: var(--ink); background: var(--panel);
  border: 1px solid var(--rule); border-radius: 6px; padding: 3px 12px; cursor: pointer; }
button[aria-pressed="true"] { background: var(--c0); border-color: var(--c0); color: var(--on); }
.bar { display: flex; flex-wrap: wrap; gap: 6px; align-items: center; margin: 12px 0 0; }
svg { width: 100%; height: auto; display: block; }
.chart text { font: 12px system-ui, sans-serif; fill: var(--ink); }
.chart .t { fill: var(--soft); }
.chart .m { text-anchor: middle; }
.chart .e { text-anchor: end; }
.chart .n { font-weight: 600; font-size: 11px; fill: var(--on); }
.chart .g { stroke: var(--rule); stroke-width: .7; fill: none; }
.chart .a { stroke: var(--soft); stroke-width: 1; fill: none; }
.chart .l { fill: none; stroke-width: 2; stroke-linejoin: round; }
.chart .f { stroke: none; opacity: .16; }
.chart .d { stroke-dasharray: 6 4; }
.chart .b { stroke: none; }
.chart .h { opacity: .5; }
""" + "".join(
    f".chart .l.c{i} {{ stroke: var(--c{i}); }} .chart .f.c{i}, .chart .b.c{i} {{ fill: var(--c{i}); }} "
    f".dot.c{i} {{ background: var(--c{i}); }}\n"
    for i in range(8)
)

# Three scales of every regret figure are in the page, each wide and narrow; one of the six is shown.
SCALES = (("linear", "linear"), ("semi", "log rounds"), ("log", "log\u2013log"))

REPORT_CSS = """
.chart.scaled { display: none; }
@media (min-width: 701px) { SHOWN { display: block; } }
@media (max-width: 700px) { SLIM { display: block; } h1 { font-size: 22px; } th, td { padding-right: 10px; }
  .pairs td.name { min-width: 0; } .pairs .label { display: none; }
  .pairs td .soft { display: block; } }
@media print { button { display: none; } }
""".replace(
    "SHOWN", ", ".join(f'body[data-scale="{name}"] .chart.{name}.wide' for name, _ in SCALES)
).replace("SLIM", ", ".join(f'body[data-scale="{name}"] .chart.{name}.slim' for name, _ in SCALES))

REPORT_SCRIPT = """
for (const button of document.querySelectorAll("button[data-scale]")) {
  button.addEventListener("click", () => {
    document.body.dataset.scale = button.dataset.scale;
    for (const other of document.querySelectorAll("button[data-scale]"))
      other.setAttribute("aria-pressed", String(other.dataset.scale === button.dataset.scale));
  });
}
"""


def page(title: str, body: str, style: str = "", script: str = "", attributes: str = "") -> str:
    """A whole HTML page that needs nothing from outside. `title` is escaped here, `body` is not."""
    return (
        "<!DOCTYPE html>\n"
        '<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="data:,">'
        f"<title>{escape(title)}</title><style>{CSS}{style}</style></head>\n"
        f"<body{attributes}><main>\n{body}\n</main>"
        + (f"<script>{script}</script>" if script else "")
        + "</body></html>\n"
    )
