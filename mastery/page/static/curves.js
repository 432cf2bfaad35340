// Curves of each task: median and quartiles over seeds, one colour for each program.

import { actions, toggleTask } from './actions.js';
import { chart, dropCharts, framesAxis } from './charts.js';
import { lineColour, pale } from './colours.js';
import { plainButton, rebuild, seriesKey, tabs } from './controls.js';
import { $, make } from './elements.js';
import { curriculum, page, scoreCurves, scoreName, series, SMOOTH, unit } from './model.js';
import { quantiles } from './statistics.js';
import { digits, plain } from './text.js';

const MOST_PANELS = 24;
const MEASURED = ['training', 'greedy', 'sampled'];

export function drawCurves() {
  const shown = series();
  drawMeasured(shown);
  $('smooth').disabled = page.what !== 'training';
  $('curves-text').textContent = curvesText(shown);
  rebuild($('curves-key'), shown.map((s) => [s.name, s.colour, s.dash]), () => seriesKey(shown));
  $('curves-focus').textContent = page.task === null
    ? `All tasks: the mean ${scoreName()}` : curriculum().tasks[page.task];
  $('unfocus').hidden = page.task === null;
  chart($('curve'), () => curveFigure(page.task, true));
  drawPanels();
}

// What can be looked at: the scores in training, and those of the policies that were evaluated.
function drawMeasured(shown) {
  const policies = new Set(shown.flatMap((s) => Object.keys(s.curves.evaluations)));
  const choices = MEASURED.filter((what) => what === 'training' || policies.has(what));
  if (!choices.includes(page.what)) page.what = 'training';
  const items = choices.map((key) => ({ key, text: measuredName(key) }));
  tabs($('curves-what'), items, page.what, (key) => {
    page.what = key;
    drawCurves();
  });
}

function measuredName(what) {
  if (what === 'training') return 'training';
  return scoreName() === 'accuracy' ? 'validation' : `evaluation, ${what} policy`;
}

function curvesText(shown) {
  const several = shown.some((s) => s.runs.length > 1)
    ? `Median and quartiles over seeds of the mean ${scoreName()}` : `The mean ${scoreName()}`;
  const n = curriculum().tasks.length;
  const some = n > MOST_PANELS ? ` Small pictures of the first ${MOST_PANELS} of ${n} tasks.` : '';
  return `${several} ${howMeasured()}; along the bottom, ${unit()} of each run.${some}`;
}

function howMeasured() {
  if (page.what === 'training') {
    return page.smooth ? `in training, over the last ${SMOOTH} points` : 'in training';
  }
  return scoreName() === 'accuracy'
    ? 'on examples the teacher never sees' : 'in episodes apart from training';
}

const panels = { key: '' };  // for which curriculum they were made

function drawPanels() {
  const holder = $('panels');
  if (panels.key !== page.group) {
    panels.key = page.group;
    dropCharts(holder);
    holder.replaceChildren(...curriculum().tasks.slice(0, MOST_PANELS).map(makePanel));
  }
  [...holder.children].forEach((panel, task) => {
    panel.classList.toggle('chosen', page.task === task);
    chart(panel.lastChild, () => curveFigure(task, false));
  });
}

function makePanel(name, task) {
  return make('figure', { 'data-task': task },
    make('figcaption', {}, plainButton(() => toggleTask(task), name)),
    make('div', { class: 'chart small', on: { click: () => actions.focusTask(task) } }));
}

function curveFigure(task, large) {
  const traces = series().flatMap((s) => curveTraces(s, task, large));
  const small = { nticks: 4, tickfont: { size: 10 } };
  const title = { title: { text: unit(), standoff: 8 } };
  return {
    traces,
    layout: {
      dragmode: large ? 'zoom' : false,
      margin: large ? { l: 48, r: 16, t: 8, b: 44 } : { l: 34, r: 8, t: 4, b: 22 },
      xaxis: { ...framesAxis(), ...(large ? title : small) },
      yaxis: { range: scoreRange(task, traces), ...(large ? {} : small) },
      hovermode: large ? 'x unified' : 'x',
    },
  };
}

// The median of a series, and the area between its quartiles if it has several runs.
function curveTraces(s, task, large) {
  const { frames, values } = scoreCurves(s, task);
  if (!frames.length) return [];
  const shares = [0.25, 0.5, 0.75], several = s.runs.length > 1;
  const spread = frames.map((_, i) => quantiles(values.map((points) => points[i]), shares));
  const colour = lineColour(s.colour);
  const median = {
    type: 'scatter', mode: frames.length > 1 ? 'lines' : 'markers', name: plain(s.name),
    x: frames, y: spread.map((q) => q[1]),
    customdata: spread.map((q) => [digits(q[0], 3), digits(q[2], 3)]),
    hovertemplate: several ? '%{y:.3f} (%{customdata[0]} … %{customdata[1]})' : '%{y:.3f}',
    line: { color: colour, width: large ? 2.2 : 1.6, dash: s.dash },
    marker: { color: colour, size: large ? 8 : 5 },
  };
  return several ? [band(frames, spread, colour), median] : [median];
}

// The range of a task's scores, and of what was measured if that is wider.
function scoreRange(task, traces) {
  const { minimum, maximum } = curriculum();
  const all = traces.flatMap((trace) => trace.y).filter((y) => y !== null);
  const low = Math.min(...(task === null ? minimum : [minimum[task]]), ...all);
  const high = Math.max(...(task === null ? maximum : [maximum[task]]), ...all);
  const room = (high - low) * 0.03;
  return [low - room, high + room];
}

// Between the quartiles: an area for each unbroken part.
function band(frames, spread, colour) {
  const x = [], y = [];
  for (let i = 0; i < frames.length;) {
    if (spread[i][1] === null) { i++; continue; }
    let end = i;
    while (end < frames.length && spread[end][1] !== null) end++;
    const there = Array.from({ length: end - i }, (_, k) => i + k), back = there.slice().reverse();
    if (x.length) { x.push(null); y.push(null); }
    x.push(...there.map((k) => frames[k]), ...back.map((k) => frames[k]));
    y.push(...there.map((k) => spread[k][0]), ...back.map((k) => spread[k][2]));
    i = end;
  }
  return {
    type: 'scatter', mode: 'lines', x, y, fill: 'toself', fillcolor: pale(colour, 0.16),
    line: { width: 0 }, hoverinfo: 'skip',
  };
}
