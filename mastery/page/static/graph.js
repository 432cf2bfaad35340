// The curriculum: tasks in topological layers, coloured by mastery, sized by their share of
// training; edges as wide as what is passed on along them. And what was found about their order:
// each task's place, and the given edges by whether they agree.

import { toggleTask } from './actions.js';
import { masteryColour, theme } from './colours.js';
import { sample, tipFor } from './controls.js';
import { $, make } from './elements.js';
import { orderOf } from './equations.js';
import { badge, drawLegend } from './legend.js';
import {
  beside, curriculum, factorsAt, focus, mean, meanAt, meanUntil, orderFound, page, pointOf, unit,
} from './model.js';
import { count, digits, ordinal, percent, short, significant } from './text.js';

const NAMED = 60;  // tasks that can still have a name in the picture
const SMALLEST = 8;  // pixels of a text that can be read
const LARGEST_TEXT = 12;  // and of one on a large disc
const LATELY = 3;  // points over which the share of training is averaged

const newGraph = () => ({
  key: '',  // for what it was built
  series: null,  // whose numbers it shows; null before the first point
  order: null, nodes: [], edges: [],
  now: null,  // by what it is: the numbers of each task, or each edge, at this time
  found: null,  // what was found about the order by this time
  turned: false,  // the layers go from the top down, not from left to right
  size: [4, 30],  // the smallest and the largest radius
});
export const graph = newGraph();  // of the series in focus
const second = newGraph();  // of the series beside it

export function drawGraphs() {
  const other = beside(), given = curriculum();
  $('beside').hidden = $('graph-title').hidden = !other;
  $('graphs').classList.toggle('two', Boolean(other));
  drawGraph(graph, $('graph'), focus());
  if (other) {
    drawGraph(second, $('beside-graph'), other);
    for (const [title, s] of [['graph-title', focus()], ['beside-title', other]]) {
      $(title).replaceChildren(sample(s), ` ${s.name}`);
    }
  }
  $('curriculum-text').textContent = graphText(graph.series, other);
  drawLegend([focus(), ...(other ? [other] : [])], given, given.tasks.length <= NAMED);
}

// The curriculum before there is a point: its tasks and their order.
export function drawEmptyGraph() {
  const { tasks, edges } = curriculum(), none = tasks.map(() => 0);
  $('beside').hidden = $('graph-title').hidden = true;
  buildIfNew(graph, $('graph'));
  graph.series = null;
  graph.now = { mastery: none, share: none, redistributed: [null], back: [], on: [] };
  graph.found = { places: tasks.map(() => null), edges: edges.map(() => 'open') };
  updateNodes(graph);
  $('curriculum-text').textContent = 'The first point of training is on its way.';
}

function drawGraph(g, holder, s) {
  buildIfNew(g, holder);
  g.series = s;
  g.now = numbersNow(g, s, pointOf(s));
  g.found = orderFound(s, pointOf(s));
  updateNodes(g);
}

function buildIfNew(g, holder) {
  const key = `${page.group} ${holder.clientWidth} ${theme()}`;
  if (g.key === key) return;
  g.key = key;
  g.order = orderOf(curriculum());
  buildGraph(g, holder, curriculum());
}

function buildGraph(g, holder, given) {
  const n = given.tasks.length, named = n <= NAMED;
  const places = placesIn(given, holder.clientWidth, named);
  const { turned, largest, wide, high, place, room } = (
    graphLayout(places, holder.clientWidth, named));
  const root = make('svg:svg', {
    class: named ? null : 'crowd', viewBox: `0 0 ${wide} ${high}`, width: wide, height: high,
    role: 'group', 'aria-label': `The order of ${given.name}, ${count(n, 'task')}`,
  });
  g.turned = turned;
  g.size = named ? [largest * 0.3, largest] : [4, largest];
  g.edges = given.edges.map(([a, b]) => {
    const levels = places[b][0] - places[a][0];
    const d = edgePath(place(places[a]), place(places[b]), levels, turned, largest);
    return ['edge', 'edge back', 'edge on'].map((kind) => make('svg:path', { class: kind, d }));
  });
  g.nodes = given.tasks.map((name, task) => {
    const label = name.length > room ? `${name.slice(0, room - 1)}…` : name;
    return makeNode(g, task, place(places[task]), named ? label : null);
  });
  root.append(...g.edges.flat(), ...g.nodes);
  holder.replaceChildren(root);
}

const leastWidth = (named) => (named ? 104 : 34);  // of a level

// The level and row of each task. Without an order all have one level: they fill rows instead.
function placesIn({ edges, places, tasks }, width, named) {
  if (edges.length) return places;
  const most = Math.max(Math.floor(width / leastWidth(named)), 1), n = tasks.length;
  const columns = Math.ceil(n / Math.ceil(n / most));
  return tasks.map((_, task) => [task % columns, Math.floor(task / columns)]);
}

// Where everything is: from left to right, or from the top down if it is too narrow for that.
function graphLayout(places, width, named) {
  const levels = 1 + Math.max(...places.map(([level]) => level));
  const rows = 1 + Math.max(...places.map(([, row]) => row));
  const least = leastWidth(named);
  const turned = width / levels < least && rows * least <= width;
  const dx = turned ? width / Math.ceil(rows) : Math.max(width / levels, least);
  const largest = named ? Math.min(44, dx * 0.34) : 11;
  const dy = named ? 2 * largest + 30 : 2 * largest + 8;
  const lift = named ? 9 : -2;  // so that there is room for a name below a task
  return {
    turned, largest,
    wide: turned ? width : Math.max(width, levels * dx),
    high: (turned ? levels : rows) * dy + 8,
    place: ([level, row]) => (turned
      ? [width / 2 + (row - (rows - 1) / 2) * dx, (level + 0.5) * dy - lift]
      : [(level + 0.5) * dx, (row + 0.5) * dy - lift]),
    room: Math.max(Math.floor(dx / 7.4), 4),  // for the letters of a name
  };
}

function makeNode(g, task, [x, y], name) {
  const press = (event) => {
    if (event.key !== 'Enter' && event.key !== ' ') return;
    event.preventDefault();
    toggleTask(task);
  };
  const inside = name === null ? [] : [
    make('svg:text', { class: 'inside', 'text-anchor': 'middle', dy: '0.36em' }),
    make('svg:text', { class: 'name', 'text-anchor': 'middle' }, name),
    make('svg:g', { class: 'badge' }, ...badge('')),
  ];
  const node = make('svg:g', {
    class: 'node', tabindex: 0, role: 'button', transform: `translate(${x} ${y})`,
    'data-task': task, on: { click: () => toggleTask(task), keydown: press },
  },
  make('svg:circle', { class: 'ring' }),
  make('svg:circle', { class: 'disc', r: g.size[0] }),
  ...inside);
  tipFor(node, () => taskTip(g, task));
  return node;
}

// From one task to another: a curve, or a bow around the tasks between them.
function edgePath([x0, y0], [x1, y1], levels, turned, radius) {
  const bow = levels > 1 && (turned ? x0 === x1 : y0 === y1) ? radius * 3.4 : 0;
  const x = (x0 + x1) / 2, y = (y0 + y1) / 2;
  return turned
    ? `M${x0} ${y0}C${x0 + bow} ${y} ${x1 + bow} ${y} ${x1} ${y1}`
    : `M${x0} ${y0}C${x} ${y0 - bow} ${x} ${y1 - bow} ${x1} ${y1}`;
}

function updateNodes(g) {
  const many = g.nodes.length > NAMED;
  const whole = many ? Math.max(...g.now.share, 1e-9) : 1;  // of the largest
  g.nodes.forEach((node, task) => updateNode(g, node, task, whole));
  updateEdges(g);
}

function numbersNow(g, s, point) {
  const now = {
    ...factorsAt(s, g.order, point),
    probability: meanAt(s, 'probability', point), until: meanUntil(s, 'probability', point),
  };
  const from = Math.max(point - LATELY + 1, 0);
  const lately = Array.from({ length: point - from + 1 }, (_, i) => meanAt(s, 'share', from + i));
  now.share = now.mastery.map((_, task) => mean(lately.map((shares) => shares[task])));
  now.episodes = s.curves.episodes ? meanAt(s, 'episodes', point) : now.mastery.map(() => null);
  return now;
}

// About how many returns a mastery rests on: those of the last K time-steps.
function support(s, episodes) {
  if (episodes === null || !s.program.settings?.window) return undefined;
  return `of about ${significant(episodes * s.program.settings.window)} returns`;
}

function updateNode(g, node, task, whole) {
  const mastery = g.now.mastery[task], share = g.now.share[task];
  const [least, largest] = g.size, [fill, ink] = masteryColour(mastery);
  const r = least + (largest - least) * Math.sqrt(share / whole);
  const place = g.found.places[task];
  const [ring, disc, inside, name, found] = node.children;
  ring.setAttribute('r', r + 5);
  disc.style.setProperty('r', `${r}px`);
  disc.style.fill = fill;
  if (inside) {
    const text = percent(mastery), size = Math.min(LARGEST_TEXT, 1.8 * r / textWidth(inside, text));
    inside.textContent = size >= SMALLEST && g.series ? text : '';
    inside.style.fontSize = `${size}px`;  // so that it fits into the disc
    inside.style.fill = ink;
    name.style.transform = `translateY(${r + 18}px)`;
    const aside = r * Math.SQRT1_2 + 5;
    found.style.transform = `translate(${aside}px, ${-aside}px)`;
    found.style.display = place === null ? 'none' : '';
    found.lastChild.textContent = place ?? '';
  }
  node.classList.toggle('chosen', page.task === task);
  node.setAttribute('aria-pressed', page.task === task ? 'true' : 'false');
  node.setAttribute('aria-label', `${curriculum().tasks[task]}: mastery ${percent(mastery)}, `
    + `${percent(share)} of training${place === null ? '' : `, learned ${ordinal(place)}`}`);
}

const textWidths = new Map();  // by the number of letters, since digits are equally wide

// How wide a text is in letters of one pixel; it depends on the fonts that are there.
function textWidth(element, text) {
  if (!textWidths.has(text.length)) {
    element.textContent = text;
    element.style.fontSize = `${LARGEST_TEXT}px`;
    const wide = element.getComputedTextLength() / LARGEST_TEXT;
    if (!wide) return 0.7 * text.length;  // it is not on the screen
    textWidths.set(text.length, wide);
  }
  return textWidths.get(text.length);
}

function updateEdges(g) {
  const { now } = g;
  const total = now.redistributed.includes(null) ? 0 : now.redistributed.reduce((a, b) => a + b, 0);
  g.edges.forEach(([given, back, on], e) => {
    given.setAttribute('class', `edge ${g.found.edges[e]}`);
    for (const [line, flow, side] of [[back, now.back[e], -1], [on, now.on[e], 1]]) {
      const wide = total > 0 && flow ? Math.min(100 * flow / total, 12) : 0;
      const aside = side * (wide / 2 + 0.8);
      line.style.strokeWidth = `${wide < 0.25 ? 0 : wide}px`;
      line.style.transform = g.turned ? `translateX(${aside}px)` : `translateY(${aside}px)`;
    }
  });
}

function graphText(s, other) {
  const after = `${short(s.curves.frames[pointOf(s)])} ${unit()}`;
  const many = s.runs.length > 1 ? `, the mean over ${s.runs.length} seeds` : '';
  const both = other ? `${s.name} and ${other.name}` : s.name;
  let passes = '';
  if (s.program.attention !== 'mastering-rate') {
    passes = ` ${other ? s.name : 'This program'} passes no attention on.`;
  } else if (graph.now.back.includes(null)) {
    passes = ' What is passed on is not known: learning progress was not kept.';
  }
  return `Under ${both}, after ${after}${many}.${passes} Click a task to look closer.`;
}

// The numbers of equation 1.
function taskTip(g, task) {
  const s = g.series;
  if (!s) return [make('strong', {}, curriculum().tasks[task])];
  const many = s.runs.length > 1 ? `mean over ${s.runs.length} seeds` : '';
  const rows = tipRows(g, task).map(([name, value, note = '']) => make('tr', {},
    make('th', {}, name), make('td', {}, value), make('td', { class: 'soft' }, note)));
  return [
    make('strong', {}, curriculum().tasks[task]), ' ', make('span', { class: 'soft' }, many),
    make('table', {}, ...rows),
  ];
}

function tipRows(g, task) {
  const s = g.series, formula = s.program.attention === 'mastering-rate', { settings } = s.program;
  const now = Object.fromEntries(Object.entries(g.now).map(([name, x]) => [name, x[task]]));
  const place = g.found.places[task], learned = s.curves.frames[g.found.learned[task]];
  const rows = [
    ['mastery M', digits(now.mastery, 3), support(s, now.episodes)],
    ['learnability M_Anc', digits(now.learnability, 3), 'the least among its ancestors'],
    ['successors M_Succ', digits(now.successors, 3), 'the least among its successors'],
  ];
  if (place !== null) {
    rows.push(['learned', ordinal(place), `at ${short(learned)} ${unit()}`]);
  }
  if (now.progress !== null) {
    rows.push(['progress β', significant(now.progress), `|β̂| = ${digits(now.betaHat)}`]);
  }
  if (formula) {
    rows.push(['[M_Anc^p]', digits(now.first, 3), `p = ${settings.power}`]);
    rows.push(['[δ(1−M) + (1−δ)|β̂|]', digits(now.second, 3), `δ = ${settings.delta}`]);
    rows.push(['[1 − M_Succ]', digits(now.third, 3)]);
  }
  if (now.attention !== null) {
    rows.push(['attention a', significant(now.attention), formula ? 'their product' : '|β|']);
  }
  if (formula && now.redistributed !== null) {
    rows.push(['passed on: a″', significant(now.redistributed), 'equations 2 and 3']);
  }
  if (now.next !== null) rows.push(['probability', percent(now.next), 'from here on']);
  const before = now.next === null ? 'probability' : 'at this point';
  rows.push([before, percent(now.probability), 'the mean over its time-steps']);
  rows.push(['until here', percent(now.until), 'the mean since the start']);
  rows.push(['share of training', percent(now.share)]);
  return rows;
}
