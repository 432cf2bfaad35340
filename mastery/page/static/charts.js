// The charts, and when they are drawn: a part of the page is drawn when it comes into sight, and
// again when what it shows has changed. Plotly is a script of its own, and global.

import { shade } from './colours.js';
import { make } from './elements.js';
import { currentPoint, focus, page, series } from './model.js';

const parts = new Map();  // by element: how it is drawn, and whether that is due
const sight = new IntersectionObserver((seen) => {
  for (const { target, isIntersecting } of seen) {
    const part = parts.get(target);
    if (!part) continue;
    part.visible = isIntersecting;
    if (isIntersecting && part.due) drawPart(target);
  }
}, { rootMargin: '150px' });
const widths = new ResizeObserver((seen) => {
  for (const { target } of seen) {
    const part = parts.get(target);
    if (part?.width && Math.abs(part.width - target.clientWidth) > 1) lazily(target, part.draw);
  }
});

export function lazily(element, draw) {
  const known = parts.get(element), { visible = false, width = 0 } = known ?? {};
  parts.set(element, { draw, due: true, visible, width });
  if (visible) drawPart(element);
  if (known) return;
  sight.observe(element);
  widths.observe(element);
}

function drawPart(element) {
  const part = parts.get(element);
  part.due = false;
  part.width = element.clientWidth;
  part.draw();
}

// All parts, also those that are not in sight, such as before the page is printed.
export function drawAllParts() {
  for (const element of parts.keys()) drawPart(element);
}

// All parts again: now those that can be seen, the others when they come into sight.
export function redrawParts() {
  for (const [element, { draw }] of parts) lazily(element, draw);
}

export function dropCharts(holder) {
  for (const element of [...parts.keys()]) {
    if (!holder.contains(element)) continue;
    sight.unobserve(element);
    widths.unobserve(element);
    Plotly.purge(element);
    parts.delete(element);
  }
}

// A chart by Plotly; `figure` gives its traces and layout when it is drawn.
export function chart(element, figure) {
  lazily(element, () => drawChart(element, figure));
}

function drawChart(element, figure) {
  const { traces, layout } = figure();
  const soft = shade('soft'), line = shade('line');
  const axis = {
    gridcolor: line, linecolor: line, zeroline: false, tickcolor: line, automargin: false,
  };
  const whole = {
    width: element.clientWidth, height: element.clientHeight, showlegend: false, dragmode: false,
    paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)', hovermode: 'x unified',
    font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: soft },
    hoverlabel: {
      bgcolor: shade('card'), bordercolor: line, font: { color: shade('ink'), size: 12 },
      namelength: 40,
    },
    margin: { l: 44, r: 12, t: 8, b: 30 },
    ...layout,
    xaxis: { ...axis, showgrid: false, ticks: 'outside', ticklen: 4, ...layout.xaxis },
    yaxis: { ...axis, ...layout.yaxis },
  };
  const config = { displayModeBar: false, displaylogo: false, doubleClick: 'reset' };
  Plotly.react(element, traces, whole, config);
  moveCursor(element);
}

export function framesAxis() {
  const all = series().map((s) => s.curves.frames);
  const end = Math.max(...all.map((frames) => frames.at(-1)));
  const first = Math.min(...all.map((frames) => frames[0]));
  return {
    type: page.log ? 'log' : 'linear', tickformat: '~s', hoverformat: '.4~s', nticks: 7,
    range: page.log ? [Math.log10(first * 0.9), Math.log10(end * 1.02)] : [0, end * 1.005],
  };
}

export function moveCursors() {
  for (const [element, part] of parts) if (part.visible && !part.due) moveCursor(element);
}

// Where the page's time is in a chart.
function moveCursor(element) {
  const layout = element._fullLayout;
  if (!layout?.xaxis) return;
  let cursor = element.querySelector(':scope > .cursor');
  if (!cursor) {
    cursor = make('div', { class: 'cursor', 'aria-hidden': 'true' });
    element.append(cursor);
  }
  const s = focus(), axis = layout.xaxis, at = s ? s.curves.frames[currentPoint()] : NaN;
  const x = axis.d2p(at) + axis._offset;
  const inside = x >= axis._offset - 1 && x <= axis._offset + axis._length + 1;
  cursor.hidden = !inside || page.frames === Infinity;
  if (inside) {
    cursor.style.left = `${x}px`;
    cursor.style.top = `${layout.yaxis._offset}px`;
    cursor.style.height = `${layout.yaxis._length}px`;
  }
}
