// Why each task has its probability at this time: the factors of its attention, as bars. And the
// task in focus, with a clip of the agent on it.
'use strict';

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
    ['learnability', 'learnability', 'M_Anc', true],
    ['probability', 'probability', '', true],
  ],
};

const why = { key: '', cells: [], tasks: [] };

function drawWhy() {
  const s = focus(), kind = COLUMNS[s.program.attention] ? s.program.attention : 'other';
  const all = curriculum().tasks.map((_, task) => task);
  const tasks = all.length <= MOST_BARS ? all : all
    .sort((a, b) => graph.now.probability[b] - graph.now.probability[a]).slice(0, MOST_BARS).sort((a, b) => a - b);
  const key = `${page.group} ${s.key} ${tasks.join()}`;
  if (why.key !== key) {
    Object.assign(why, { key, tasks });
    buildWhy(s, COLUMNS[kind], tasks);
  }
  for (const [name, bars, whole] of why.cells) {
    const largest = whole ? 1 : Math.max(...graph.now[name].map((x) => x ?? 0), 1e-12);
    bars.forEach(([bar, text], i) => {
      const x = graph.now[name][tasks[i]];
      bar.style.width = `${Math.min((x ?? 0) / largest, 1) * 100}%`;
      text.textContent = name === 'next' || name === 'probability' ? percent(x) : x === null ? '–' : whole ? digits(x) : significant(x);
    });
  }
  $('why-bars').querySelectorAll('tbody tr').forEach((row, i) => row.classList.toggle('chosen', tasks[i] === page.task));
  $('why-text').textContent = whyText(s, kind, tasks.length < curriculum().tasks.length);
  drawTask();
}

function buildWhy(s, columns, tasks) {
  why.cells = columns.map(([name, , , whole]) => [name, [], whole]);
  const rows = tasks.map((task) => make('tr', {},
    make('th', { scope: 'row' }, make('button', { type: 'button', class: 'plain', on: { click: () => focusTask(page.task === task ? null : task) } }, curriculum().tasks[task])),
    ...why.cells.map(([name, bars]) => {
      const bar = make('i', {}), text = make('span', {});
      if (name === 'next' || name === 'probability') bar.style.background = lineColour(s.colour);
      bars.push([bar, text]);
      return make('td', { class: 'bar' }, make('div', { class: 'track' }, bar), text);
    })));
  const heads = columns.map(([, text, symbol]) => make('th', { scope: 'col' }, text, make('small', {}, symbol)));
  $('why-bars').replaceChildren(make('table', { class: 'bars' },
    make('thead', {}, make('tr', {}, make('th', { scope: 'col' }, 'task'), ...heads)), make('tbody', {}, ...rows)));
}

function whyText(s, kind, some) {
  const given = s.program.settings;
  const after = `After ${short(s.curves.frames[currentPoint()])} ${unit()}, `;
  const missing = graph.now.progress.includes(null) && kind !== 'other'
    ? ' Learning progress was not kept, so what needs it is not known.' : '';
  const few = some ? ` The ${MOST_BARS} most probable tasks.` : '';
  if (kind === 'mastering-rate') {
    return `${after}${s.name}: attention is the product of three factors (p = ${given.power}, δ = ${given.delta}); of it `
      + `${percent(given.gamma_pred)} goes to predecessors and ${percent(given.gamma_succ)} to successors.${missing}${few}`;
  }
  if (kind === 'learning-progress') return `${after}${s.name}: attention is learning progress alone.${missing}${few}`;
  return `${after}${s.name}: this program does not look at progress or order as equation 1 does.${few}`;
}

// The task in focus, or the likeliest one.
const clip = { key: '', state: null };

function drawTask() {
  const s = focus(), now = graph.now;
  const chance = now.next.includes(null) ? now.probability : now.next;
  const likeliest = chance.indexOf(Math.max(...chance));
  const task = page.task ?? likeliest, name = curriculum().tasks[task];
  $('agent-title').textContent = name;
  const facts = [
    page.task === null ? 'the likeliest task now' : '',
    `mastery ${percent(now.mastery[task])}`, `probability ${percent(chance[task])}`,
  ].filter(Boolean).join(' · ');
  const key = `${s.job.key} ${task} ${s.runs[0]} ${page.index.live ? s.job.checkpoint?.step : ''}`;
  if (!$('agent-body').firstChild) {
    $('agent-body').append(make('p', { class: 'soft', id: 'agent-facts' }), make('div', { id: 'agent-clip' }));
  }
  $('agent-facts').textContent = facts;
  if (clip.key === key) return;
  Object.assign(clip, { key, state: null });
  drawClip(s, task, name);
}

async function drawClip(s, task, name) {
  const holder = $('agent-clip'), key = clip.key;
  const say = (text) => holder.replaceChildren(make('p', { class: 'soft' }, text));
  const show = (found) => {
    if (clip.key !== key) return;
    if (found?.gif) {
      holder.replaceChildren(make('img', { src: `data:image/gif;base64,${found.gif}`, alt: `The agent on ${name}` }), make('p', { class: 'soft' }, found.text));
    } else say(found?.error ? `There is no clip: ${found.error}` : 'There is no clip in this file; mastery report --clips makes some.');
  };
  if (unit() !== 'frames') say('In supervised learning there is nothing to see of an agent.');
  else if (!page.index.live) show(await page.source.clip(s.job, task, s.runs[0]));
  else if (!s.job.clips) say('The agent can be seen after the first checkpoint.');
  else {
    const seed = s.job.runs[s.runs[0]][1];
    holder.replaceChildren(make('button', {
      type: 'button',
      on: {
        click: async () => {
          say('playing …');
          show(await page.source.clip(s.job, task, s.runs[0]).catch(() => ({ error: 'mastery watch does not answer' })));
        },
      },
    }, `▶ watch the agent of ${s.program.label}, seed ${seed}`));
  }
}
