// Curves of each task: median and quartiles over seeds, one colour for each program.
'use strict';

const MOST_PANELS = 24;
const WHAT = { training: 'training', greedy: 'greedy policy', sampled: 'sampled policy' };

function drawCurves() {
  const shown = series();
  const policies = new Set(shown.flatMap((s) => Object.keys(s.curves.evaluations)));
  const choices = Object.keys(WHAT).filter((what) => what === 'training' || policies.has(what));
  if (!choices.includes(page.what)) page.what = 'training';
  const named = (what) => (what === 'training' ? 'training' : score() === 'accuracy' ? 'validation' : `evaluation, ${WHAT[what]}`);
  tabs($('curves-what'), choices.map((key) => ({ key, text: named(key) })), page.what, (key) => {
    page.what = key;
    drawCurves();
  });
  $('smooth').disabled = page.what !== 'training';
  $('curves-text').textContent = curvesText(shown);
  rebuild($('curves-key'), shown.map((s) => [s.name, s.colour, s.dash]), () => seriesKey(shown));
  $('curves-focus').textContent = page.task === null ? `All tasks: the mean ${score()}` : curriculum().tasks[page.task];
  $('unfocus').hidden = page.task === null;
  chart($('curve'), () => curveFigure(page.task, true));
  drawPanels();
}

function curvesText(shown) {
  const several = shown.some((s) => s.runs.length > 1) ? `Median and quartiles over seeds of the mean ${score()}` : `The mean ${score()}`;
  const how = page.what !== 'training' ? (score() === 'accuracy' ? ' on examples the teacher never sees' : ' in episodes apart from training')
    : page.smooth ? ` in training, over the last ${SMOOTH} points` : ' in training';
  const n = curriculum().tasks.length;
  return `${several}${how}; along the bottom, ${unit()} of each run.${n > MOST_PANELS ? ` Small pictures of the first ${MOST_PANELS} of ${n} tasks.` : ''}`;
}

const panels = { key: '' };

function drawPanels() {
  const tasks = curriculum().tasks.slice(0, MOST_PANELS), holder = $('panels');
  if (panels.key !== page.group) {
    panels.key = page.group;
    dropCharts(holder);
    holder.replaceChildren(...tasks.map((name, task) => make('figure', { 'data-task': task },
      make('figcaption', {}, make('button', { type: 'button', class: 'plain', on: { click: () => focusTask(page.task === task ? null : task) } }, name)),
      make('div', { class: 'chart small', on: { click: () => focusTask(task) } }))));
  }
  [...holder.children].forEach((panel, task) => {
    panel.classList.toggle('chosen', page.task === task);
    chart(panel.lastChild, () => curveFigure(task, false));
  });
}

function curveFigure(task, large) {
  const traces = [];
  for (const s of series()) {
    const { frames, values } = scores(s, task);
    if (!frames.length) continue;
    const spread = frames.map((_, i) => quantiles(values.map((points) => points[i]), [0.25, 0.5, 0.75]));
    const colour = lineColour(s.colour);
    if (s.runs.length > 1) traces.push(band(frames, spread, colour));
    traces.push({
      type: 'scatter', mode: frames.length > 1 ? 'lines' : 'markers', x: frames, y: spread.map((q) => q[1]),
      customdata: spread.map((q) => [digits(q[0], 3), digits(q[2], 3)]), name: plain(s.name),
      line: { color: colour, width: large ? 2.2 : 1.6, dash: s.dash }, marker: { color: colour, size: large ? 8 : 5 },
      hovertemplate: s.runs.length > 1 ? '%{y:.3f} (%{customdata[0]} … %{customdata[1]})' : '%{y:.3f}',
    });
  }
  const { minimum, maximum } = curriculum(), all = traces.flatMap((t) => t.y).filter((y) => y !== null);
  const low = task === null ? Math.min(...minimum) : minimum[task], high = task === null ? Math.max(...maximum) : maximum[task];
  const bottom = Math.min(low, ...all), top = Math.max(high, ...all), room = (top - bottom) * 0.03;
  return {
    traces,
    layout: {
      dragmode: large ? 'zoom' : false,
      margin: large ? { l: 48, r: 16, t: 8, b: 44 } : { l: 34, r: 8, t: 4, b: 22 },
      xaxis: { ...framesAxis(), ...(large ? { title: { text: unit(), standoff: 8 } } : { nticks: 4, tickfont: { size: 10 } }) },
      yaxis: { range: [bottom - room, top + room], ...(large ? {} : { nticks: 4, tickfont: { size: 10 } }) },
      hovermode: large ? 'x unified' : 'x',
    },
  };
}

// Between the quartiles: an area for each unbroken part.
function band(frames, spread, colour) {
  const x = [], y = [];
  for (let i = 0; i < frames.length;) {
    if (spread[i][1] === null) { i++; continue; }
    let end = i;
    while (end < frames.length && spread[end][1] !== null) end++;
    const part = Array.from({ length: end - i }, (_, k) => i + k), back = part.slice().reverse();
    if (x.length) { x.push(null); y.push(null); }
    x.push(...part.map((k) => frames[k]), ...back.map((k) => frames[k]));
    y.push(...part.map((k) => spread[k][0]), ...back.map((k) => spread[k][2]));
    i = end;
  }
  return {
    type: 'scatter', mode: 'lines', x, y, fill: 'toself', fillcolor: pale(colour, 0.16),
    line: { width: 0 }, hoverinfo: 'skip',
  };
}
