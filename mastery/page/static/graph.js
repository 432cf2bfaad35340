// The curriculum: tasks in topological layers, coloured by mastery, sized by their share of
// training; edges as wide as what is passed on along them.
'use strict';

const NAMED = 60;  // tasks that can still have a name in the picture
const LATELY = 3;  // points over which the share of training is averaged

const graph = { key: '', order: null, nodes: [], edges: [], now: null, turned: false, size: [4, 30] };

function drawGraph() {
  const holder = $('graph'), given = curriculum();
  const key = `${page.group} ${holder.clientWidth}`;
  if (graph.key !== key) {
    graph.key = key;
    graph.order = orderOf(given);
    buildGraph(holder, given);
    drawLegend();
  }
  updateGraph();
}

function buildGraph(holder, given) {
  const n = given.tasks.length, named = n <= NAMED, width = holder.clientWidth;
  const levels = 1 + Math.max(...given.places.map(([level]) => level));
  const rows = 1 + Math.max(...given.places.map(([, row]) => row));
  const least = named ? 104 : 34;
  const turned = width / levels < least && rows * least <= width;  // from the top down
  const dx = turned ? width / Math.ceil(rows) : Math.max(width / levels, least);
  const largest = named ? Math.min(44, dx * 0.34) : 11;
  const dy = named ? 2 * largest + 30 : 2 * largest + 8;
  const lift = named ? 9 : -2;  // so that there is room for a name below a task
  const place = ([level, row]) => (turned
    ? [width / 2 + (row - (rows - 1) / 2) * dx, (level + 0.5) * dy - lift]
    : [(level + 0.5) * dx, (row + 0.5) * dy - lift]);
  const high = (turned ? levels : rows) * dy + 8, wide = turned ? width : Math.max(width, levels * dx);
  const root = make('svg:svg', {
    class: named ? null : 'crowd', viewBox: `0 0 ${wide} ${high}`, width: wide, height: high, role: 'group',
    'aria-label': `The order of ${given.name}, ${count(n, 'task')}`,
  });
  graph.turned = turned;
  graph.size = named ? [largest * 0.3, largest] : [4, largest];
  graph.edges = given.edges.map(([a, b]) => {
    const path = edgePath(place(given.places[a]), place(given.places[b]), given.places[b][0] - given.places[a][0], turned, largest);
    const lines = [
      make('svg:path', { class: 'edge', d: path }),
      make('svg:path', { class: 'edge back', d: path }),
      make('svg:path', { class: 'edge on', d: path }),
    ];
    root.append(...lines);
    return lines;
  });
  graph.nodes = given.tasks.map((name, task) => {
    const [x, y] = place(given.places[task]);
    const room = Math.max(Math.floor((turned ? width / Math.ceil(rows) : dx) / 7.4), 4);
    const node = make('svg:g', {
      class: 'node', tabindex: 0, role: 'button', transform: `translate(${x} ${y})`,
      'data-task': task,
      on: {
        click: () => focusTask(page.task === task ? null : task),
        keydown: (event) => {
          if (event.key !== 'Enter' && event.key !== ' ') return;
          event.preventDefault();
          focusTask(page.task === task ? null : task);
        },
      },
    },
    make('svg:circle', { class: 'ring' }),
    make('svg:circle', { class: 'disc', r: graph.size[0] }),
    named ? make('svg:text', { class: 'inside', 'text-anchor': 'middle', dy: '0.36em' }) : null,
    named ? make('svg:text', { class: 'name', 'text-anchor': 'middle' },
      name.length > room ? `${name.slice(0, room - 1)}…` : name) : null);
    tipFor(node, () => taskTip(task));
    root.append(node);
    return node;
  });
  holder.replaceChildren(root);
}

// From one task to another: a curve, or a bow around the tasks between them.
function edgePath([x0, y0], [x1, y1], levels, turned, radius) {
  const bow = levels > 1 && (turned ? x0 === x1 : y0 === y1) ? radius * 3.4 : 0;
  if (turned) return `M${x0} ${y0}C${x0 + bow} ${(y0 + y1) / 2} ${x1 + bow} ${(y0 + y1) / 2} ${x1} ${y1}`;
  return `M${x0} ${y0}C${(x0 + x1) / 2} ${y0 - bow} ${(x0 + x1) / 2} ${y1 - bow} ${x1} ${y1}`;
}

function updateGraph() {
  const s = focus(), point = currentPoint();
  const now = { ...factorsAt(s, graph.order, point), probability: meanAt(s, 'probability', point) };
  const from = Math.max(point - LATELY + 1, 0);
  const lately = Array.from({ length: point - from + 1 }, (_, i) => meanAt(s, 'share', from + i));
  now.share = now.mastery.map((_, task) => mean(lately.map((shares) => shares[task])));
  graph.now = now;
  const [least, largest] = graph.size;
  const whole = graph.nodes.length <= NAMED ? 1 : Math.max(...now.share, 1e-9);  // of the largest
  graph.nodes.forEach((node, task) => {
    const [fill, ink] = masteryColour(now.mastery[task]);
    const r = least + (largest - least) * Math.sqrt(now.share[task] / whole);
    const [ring, disc, inside, name] = node.children;
    ring.setAttribute('r', r + 5);
    disc.style.setProperty('r', `${r}px`);
    disc.style.fill = fill;
    if (inside) {
      inside.textContent = r > 15 ? percent(now.mastery[task]) : '';
      inside.style.fill = ink;
      name.style.transform = `translateY(${r + 18}px)`;
    }
    node.classList.toggle('chosen', page.task === task);
    node.setAttribute('aria-pressed', page.task === task ? 'true' : 'false');
    node.setAttribute('aria-label', `${curriculum().tasks[task]}: mastery ${percent(now.mastery[task])}, `
      + `${percent(now.share[task])} of training`);
  });
  const total = now.redistributed.includes(null) ? 0 : now.redistributed.reduce((a, b) => a + b, 0);
  graph.edges.forEach(([, back, on], e) => {
    for (const [line, flow, side] of [[back, now.back[e], -1], [on, now.on[e], 1]]) {
      const wide = total > 0 && flow !== null ? Math.min(100 * flow / total, 12) : 0;
      const aside = side * (wide / 2 + 0.8);
      line.style.strokeWidth = `${wide < 0.25 ? 0 : wide}px`;
      line.style.transform = graph.turned ? `translateX(${aside}px)` : `translateY(${aside}px)`;
    }
  });
  $('curriculum-text').textContent = graphText(s);
}

function graphText(s) {
  const many = s.runs.length > 1 ? `, the mean over ${s.runs.length} seeds` : '';
  const passes = s.program.attention !== 'mastering-rate' ? ' This program passes no attention on.'
    : graph.now.back.includes(null) && graph.now.back.length ? ' What is passed on is not known: learning progress was not kept.' : '';
  return `Under ${s.name}, after ${short(s.curves.frames[currentPoint()])} ${unit()}${many}.${passes} Click a task to look closer.`;
}

// The numbers of equation 1.
function taskTip(task) {
  const now = graph.now, s = focus(), rows = [];
  const row = (name, value, note = '') => rows.push(make('tr', {}, make('th', {}, name), make('td', {}, value), make('td', { class: 'soft' }, note)));
  const formula = s.program.attention === 'mastering-rate';
  row('mastery M', digits(now.mastery[task], 3));
  row('learnability M_Anc', digits(now.learnability[task], 3), 'the least among its ancestors');
  row('successors M_Succ', digits(now.successors[task], 3), 'the least among its successors');
  if (now.progress[task] !== null) row('progress β', significant(now.progress[task]), `|β̂| = ${digits(now.betaHat[task])}`);
  if (formula) {
    row('[M_Anc^p]', digits(now.first[task], 3), `p = ${s.program.settings.power}`);
    row('[δ(1−M) + (1−δ)|β̂|]', digits(now.second[task], 3), `δ = ${s.program.settings.delta}`);
    row('[1 − M_Succ]', digits(now.third[task], 3));
  }
  if (now.attention[task] !== null) row('attention a', significant(now.attention[task]), formula ? 'their product' : '|β|');
  if (formula && now.redistributed[task] !== null) row('passed on: a″', significant(now.redistributed[task]), 'equations 2 and 3');
  if (now.next[task] !== null) row('probability', percent(now.next[task]), 'from here on');
  row(now.next[task] === null ? 'probability' : 'and until here', percent(now.probability[task]), 'the mean over this point');
  row('share of training', percent(now.share[task]));
  const many = s.runs.length > 1 ? `mean over ${s.runs.length} seeds` : '';
  return [make('strong', {}, curriculum().tasks[task]), ' ', make('span', { class: 'soft' }, many), make('table', {}, ...rows)];
}

function drawLegend() {
  const steps = Array.from({ length: 11 }, (_, i) => make('svg:rect', { x: i * 12, width: 12.5, height: 10, fill: masteryColour(i / 10)[0] }));
  const circles = [0.05, 0.3, 1].map((share, i) => make('svg:circle', { cx: [5, 20, 43][i], cy: 12, r: 12 * (0.3 + 0.7 * Math.sqrt(share)) * 0.9, class: 'size' }));
  $('legend').replaceChildren(
    make('span', {}, 'mastery 0 ', make('svg:svg', { width: 132, height: 10, class: 'bar' }, ...steps), ' 1'),
    make('span', {}, make('svg:svg', { width: 58, height: 24 }, ...circles), 'share of training'),
    make('span', {}, make('i', { class: 'line back' }), 'passed back to what comes before (eq. 2)'),
    make('span', {}, make('i', { class: 'line on' }), 'passed on to what comes next (eq. 3)'),
  );
}
