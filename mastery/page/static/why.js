// Why each task has its probability at this time: the factors of its attention, as bars. And the
// task in focus, with a clip of the agent on it.

import { toggleTask } from './actions.js';
import { lineColour, theme } from './colours.js';
import { plainButton } from './controls.js';
import { $, make } from './elements.js';
import { orderSentence, taskSentence } from './found.js';
import { graph } from './graph.js';
import { curriculum, currentPoint, focus, page, unit } from './model.js';
import { digits, percent, short, significant } from './text.js';

const MOST_BARS = 40;  // tasks that have bars

// By the kind of attention: what is shown of it, and whether 1 is the whole width of a bar.
const COLUMNS = {
  'mastering-rate': [
    ['first', 'learnable', '[M_Anc^p]', true],
    ['second', 'unlearned', '[δ(1−M) + (1−δ)|β̂|]', true],
    ['third', 'successors', '[1 − M_Succ]', true],
    ['attention', 'attention', 'a, eq. 1', false],
    ['redistributed', 'passed on', 'a″, eq. 2, 3', false],
    ['next', 'probability', 'from here on', true],
    ['probability', 'until here', 'the mean', true],
  ],
  'learning-progress': [
    ['mastery', 'mastery', 'M', true],
    ['betaHat', 'learning progress', '|β̂|', true],
    ['next', 'probability', 'from here on', true],
    ['probability', 'until here', 'the mean', true],
  ],
  other: [
    ['mastery', 'mastery', 'M', true],
    ['learnability', 'given ancestors', 'M_Anc, the least', true],
    ['probability', 'probability', '', true],
  ],
};

const why = { key: '', cells: [] };  // for what the bars were built; the bars and texts by column

export function drawWhy() {
  const s = focus(), kind = COLUMNS[s.program.attention] ? s.program.attention : 'other';
  const tasks = tasksWithBars();
  const key = `${page.group} ${s.key} ${tasks.join()} ${theme()}`;
  if (why.key !== key) {
    why.key = key;
    buildWhy(s, columnsOf(kind), tasks);
  }
  for (const cells of why.cells) updateBars(cells, tasks);
  $('why-bars').querySelectorAll('tbody tr').forEach((row, i) => {
    row.classList.toggle('chosen', tasks[i] === page.task);
  });
  $('why-text').textContent = whyText(s, kind, tasks.length < curriculum().tasks.length);
  $('why-order').textContent = orderText(s);
  drawTask();
}

// Without an order there are no ancestors.
function columnsOf(kind) {
  const { edges } = curriculum();
  return COLUMNS[kind].filter(([name]) => name !== 'learnability' || edges.length);
}

function orderText(s) {
  const whole = orderSentence(graph.found);
  if (page.task === null) return whole;
  return `${taskSentence(page.task, graph.found, s.curves.frames)} ${whole}`;
}

// All, or the most probable ones.
function tasksWithBars() {
  const all = curriculum().tasks.map((_, task) => task), { probability } = graph.now;
  if (all.length <= MOST_BARS) return all;
  const likeliest = all.sort((a, b) => probability[b] - probability[a]).slice(0, MOST_BARS);
  return likeliest.sort((a, b) => a - b);
}

const isProbability = (name) => name === 'next' || name === 'probability';

function buildWhy(s, columns, tasks) {
  why.cells = columns.map(([name, , , whole]) => ({ name, whole, bars: [] }));
  const rows = tasks.map((task) => make('tr', {},
    make('th', { scope: 'row' }, plainButton(() => toggleTask(task), curriculum().tasks[task])),
    ...why.cells.map(({ name, bars }) => {
      const bar = make('i', {}), text = make('span', {});
      if (isProbability(name)) bar.style.background = lineColour(s.colour);
      bars.push([bar, text]);
      return make('td', { class: 'bar' }, make('div', { class: 'track' }, bar), text);
    })));
  const heads = columns.map(([, text, symbol]) => (
    make('th', { scope: 'col' }, text, make('small', {}, symbol))));
  $('why-bars').replaceChildren(make('table', { class: 'bars' },
    make('thead', {}, make('tr', {}, make('th', { scope: 'col' }, 'task'), ...heads)),
    make('tbody', {}, ...rows)));
}

function updateBars({ name, whole, bars }, tasks) {
  const now = graph.now[name];
  const largest = whole ? 1 : Math.max(...now.map((x) => x ?? 0), 1e-12);
  const asText = isProbability(name) ? percent : whole ? digits : significant;
  bars.forEach(([bar, text], i) => {
    const x = now[tasks[i]];
    bar.style.width = `${Math.min((x ?? 0) / largest, 1) * 100}%`;
    text.textContent = asText(x);
  });
}

function whyText(s, kind, some) {
  const { power, delta, gamma_pred: toBefore, gamma_succ: toAfter } = s.program.settings;
  const start = `After ${short(s.curves.frames[currentPoint()])} ${unit()}, ${s.name}: `;
  const few = some ? ` The ${MOST_BARS} most probable tasks.` : '';
  if (s.program.attention === 'auto') return start + autoText(s.program.settings) + few;
  if (kind === 'other') {
    return `${start}this program does not look at progress or order as equation 1 does.${few}`;
  }
  const unknown = graph.now.progress.includes(null)
    ? ' Learning progress was not kept, so what needs it is not known.' : '';
  if (kind === 'learning-progress') {
    return `${start}attention is learning progress alone.${unknown}${few}`;
  }
  return `${start}attention is the product of three factors (p = ${power}, δ = ${delta}); of it `
    + `${percent(toBefore)} goes to predecessors and ${percent(toAfter)} to successors.`
    + `${unknown}${few}`;
}

function autoText({ dark, hint }) {
  const blocks = dark > 0
    ? '; while nothing succeeds, it trains on one task at a time, in blocks' : '';
  const hinted = hint > 0 ? ' and takes the given one as a hint' : ' and ignores the given one';
  const given = curriculum().edges.length ? hinted : '';
  return `this program needs no order${given}. It trains on what answers to training${blocks}. It `
    + 'does not use equation 1, and its own estimate of mastery can differ from M.';
}

const shownClip = { key: '' };  // of what a clip is shown, or offered

// The task in focus, or the likeliest one.
function drawTask() {
  const s = focus(), { now } = graph;
  const chance = now.next.includes(null) ? now.probability : now.next;
  const likeliest = chance.indexOf(Math.max(...chance));
  const task = page.task ?? likeliest, name = curriculum().tasks[task];
  $('agent-title').textContent = name;
  if (!$('agent-body').firstChild) {
    $('agent-body').append(
      make('p', { class: 'soft', id: 'agent-facts' }), make('div', { id: 'agent-clip' }));
  }
  $('agent-facts').textContent = [
    page.task === null ? 'the likeliest task now' : '',
    `mastery ${percent(now.mastery[task])}`, `probability ${percent(chance[task])}`,
  ].filter(Boolean).join(' · ');
  const checkpoint = page.index.live ? s.job.checkpoint?.step : '';
  const key = `${s.job.key} ${task} ${s.runs[0]} ${checkpoint}`;
  if (shownClip.key === key) return;
  shownClip.key = key;
  drawClip(s, task, name);
}

async function drawClip(s, task, name) {
  const { key } = shownClip, ask = () => page.source.clip(s.job, task, s.runs[0]);
  const show = (found) => { if (shownClip.key === key) showClip(found, name); };
  if (unit() !== 'frames') sayOfClip('In supervised learning there is nothing to see of an agent.');
  else if (!page.index.live) show(await ask());
  else if (!s.job.clips) sayOfClip('The agent can be seen after the first checkpoint.');
  else {
    const seed = s.job.runs[s.runs[0]][1];
    const click = async () => {
      sayOfClip('playing …');
      show(await ask().catch(() => ({ error: 'mastery watch does not answer' })));
    };
    $('agent-clip').replaceChildren(make('button', { type: 'button', on: { click } },
      `▶ watch the agent of ${s.program.label}, seed ${seed}`));
  }
}

function showClip(found, name) {
  if (found?.gif) {
    const src = `data:image/gif;base64,${found.gif}`;
    $('agent-clip').replaceChildren(
      make('img', { src, alt: `The agent on ${name}` }), make('p', { class: 'soft' }, found.text));
  } else if (found?.error) {
    sayOfClip(`There is no clip: ${found.error}`);
  } else {
    sayOfClip('There is no clip in this file; mastery report --clips makes some.');
  }
}

function sayOfClip(text) {
  $('agent-clip').replaceChildren(make('p', { class: 'soft' }, text));
}
