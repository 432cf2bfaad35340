// Where training went: the probabilities of the tasks over time, and how much was spent on tasks
// that were mastered, learnable, or not yet learnable.
'use strict';

const MOST_ROWS = 8, MOST_LAYERS = 40;
const KIND_COLOURS = ['done', 'learnable', 'unlearnable'];  // in the style sheet
const where = { key: '' };

function drawWhere() {
  const shown = series().slice(0, MOST_ROWS), all = series().length, holder = $('where-rows');
  const key = `${page.group} ${shown.map((s) => s.key).join()}`;
  if (where.key !== key) {
    where.key = key;
    dropCharts(holder);
    holder.replaceChildren(...shown.map((s) => make('div', { class: 'row', 'data-series': s.name },
      make('div', {}, make('h3', {}, sample(s), s.name), make('div', { class: 'soft spent' })),
      make('div', { class: 'chart middle' }), make('div', { class: 'chart middle' }))));
  }
  shown.forEach((s, i) => {
    const [left, right] = holder.children[i].querySelectorAll('.chart');
    const kinds = kindsOf(s, graph.order), each = weights(s.curves.frames);
    const spent = kinds.map((of) => of.reduce((sum, x, k) => sum + x * each[k], 0));
    holder.children[i].querySelector('.spent').replaceChildren(
      ...spent.map((x, k) => make('div', {}, make('b', {}, percent(x)), ` ${KINDS[k]}`)));
    chart(left, () => layersFigure(s));
    chart(right, () => kindsFigure(s, kindsOf(s, graph.order)));
  });
  const many = shown.some((s) => s.runs.length > 1) ? ', the mean over seeds' : '';
  $('where-text').textContent = `First the probability of each task${many}; then the share of training on tasks that were, when it was given, `
    + `mastered (M ≥ ${page.threshold}), learnable (every ancestor has M ≥ ${LEARNABLE}), or not yet learnable.`
    + (all > MOST_ROWS ? ` The first ${MOST_ROWS} of ${all} programs.` : '');
  drawWhereKey();
}

// Tasks side by side, put together where there are very many.
function layers() {
  const { tasks, colours } = curriculum(), each = Math.ceil(tasks.length / MOST_LAYERS);
  return Array.from({ length: Math.ceil(tasks.length / each) }, (_, i) => {
    const inside = Array.from({ length: Math.min(each, tasks.length - i * each) }, (_, k) => i * each + k);
    const name = each === 1 ? tasks[i] : `${tasks[inside[0]]} … ${tasks[inside.at(-1)]}`;
    return { inside, name, colour: colours[inside[0]] };
  });
}

function drawWhereKey() {
  const tasks = layers();
  rebuild($('where-key'), tasks, () => [
    ...(tasks.length <= 24 ? tasks : [tasks[0], tasks.at(-1)]).map(({ name, colour }) =>
      make('span', {}, make('i', { class: 'dot', style: { background: colour } }), name)),
    make('span', { class: 'gap' }),
    ...KINDS.map((kind, i) => make('span', {}, make('i', { class: 'dot', style: { background: `var(--${KIND_COLOURS[i]})` } }), kind)),
  ]);
}

function layersFigure(s) {
  return stacked(s.curves.frames, layers().map(({ inside, name, colour }) => ({
    name, colour,
    y: s.curves.frames.map((_, i) => mean(s.runs.map((run) => inside.reduce((sum, task) => sum + s.curves.probability[run][task][i], 0)))),
  })));
}

function kindsFigure(s, kinds) {
  return stacked(s.curves.frames, kinds.map((y, i) => ({ name: KINDS[i], colour: shade(KIND_COLOURS[i]), y })));
}

function stacked(frames, areas) {
  return {
    traces: areas.map(({ name, colour, y }) => ({
      type: 'scatter', mode: 'lines', stackgroup: 'all', x: frames, y, name: plain(name),
      line: { width: 0, color: colour }, fillcolor: colour, hovertemplate: '%{y:.0%}',
    })),
    layout: {
      margin: { l: 38, r: 8, t: 6, b: 24 },
      xaxis: { ...framesAxis(), nticks: 6 }, yaxis: { range: [0, 1], tickformat: '.0%', nticks: 3 },
    },
  };
}
