// What there is to choose from, how the jobs stand, and what could not be read.
'use strict';

function drawProblems() {
  const found = page.index.problems.map(({ path, text }) => make('p', { class: 'problem' }, make('code', {}, path), ' ', text.replaceAll(`${path}/run.db`, 'its run.db').replaceAll(path, 'it')));
  const notes = [...new Set(groupJobs().filter((job) => page.jobs.has(job.key)).flatMap((job) => job.notes))];
  $('problems').replaceChildren(...found, ...(page.trouble ? [make('p', { class: 'problem' }, page.trouble)] : []),
    ...notes.map((note) => make('p', { class: 'note' }, note)));
}

function drawHead() {
  const jobs = groupJobs(), training = jobs.filter((job) => job.state === 'training').length;
  $('title').textContent = curriculum().name;
  document.title = `Training ${curriculum().name}`;
  const programs = new Set(jobs.flatMap((job) => job.programs.map((p) => p.label)));
  const done = training ? (training === jobs.length ? 'training now' : `${training} training now`)
    : jobs.length === 1 ? (jobs[0].ended ? `finished: ${jobs[0].ended}` : `stopped after ${short(jobs[0].frames)} of ${short(jobs[0].total)} ${unit()} a run`) : '';
  $('headline').textContent = [count(curriculum().count, 'task'), count(programs.size, 'program'),
    count(jobs.reduce((sum, job) => sum + job.runs.length, 0), 'run'), jobs.length > 1 ? count(jobs.length, 'job') : '', done].filter(Boolean).join(' · ');
  $('live').hidden = !page.index.live;
  $('footer').textContent = `mastery ${page.index.mastery}. Everything on this page is in ${page.index.live ? 'the run directories' : 'this file'}; nothing is loaded from elsewhere.`;
}

function drawChoose() {
  const jobs = groupJobs(), all = allSeries();
  const seeds = [...new Set(jobs.filter((job) => page.jobs.has(job.key)).flatMap((job) => job.runs.map(([, seed]) => seed)))].sort((a, b) => a - b);
  const found = [...groups()].map(([key, own]) => [key, `${own[0].curriculum.name} (${count(own.length, 'job')})`]);
  const key = [found, page.group, jobs.map((job) => [job.key, job.name]), [...page.jobs], all.map((s) => s.key), [...page.hidden], seeds, [...page.seeds]];
  rebuild($('choose'), key, () => chooseParts(found, jobs, all, seeds));
}

function chooseParts(found, jobs, all, seeds) {
  const parts = [];
  if (found.length > 1) {
    parts.push(make('label', { class: 'field' }, make('span', {}, 'curriculum'), make('select', { id: 'group', 'data-key': 'group', on: { change: (event) => changeGroup(event.target.value) } },
      ...found.map(([key, text]) => make('option', { value: key, selected: key === page.group }, text)))));
  }
  if (jobs.length > 1) {
    parts.push(chips('directories', jobs.map((job) => ({ key: job.key, text: job.name, title: job.path, on: page.jobs.has(job.key) })), async (key, on) => {
      if (on) page.jobs.add(key); else if (page.jobs.size > 1) page.jobs.delete(key);
      await readCurves();
      draw();
    }));
  }
  parts.push(chips('programs', all.map((s) => ({ key: s.key, text: s.name, mark: sample(s), on: !page.hidden.has(s.key) })), (key, on) => {
    if (on) page.hidden.delete(key); else page.hidden.add(key);
    if (!series().length) page.hidden.delete(key);
    draw();
  }));
  if (seeds.length > 1) {
    parts.push(chips('seeds', seeds.map((seed) => ({ key: String(seed), text: String(seed), on: !page.seeds.has(seed) })), (key, on) => {
      if (on) page.seeds.delete(Number(key)); else page.seeds.add(Number(key));
      if (!series().length) page.seeds.delete(Number(key));
      draw();
    }));
  }
  return parts;
}

function chips(name, items, change) {
  return make('fieldset', { class: 'chips' }, make('legend', {}, name), ...items.map(({ key, text, title, mark, on }) =>
    make('label', { class: 'chip', title }, make('input', { type: 'checkbox', checked: on, 'data-key': key, on: { change: (event) => change(key, event.target.checked) } }), mark, text)));
}

function drawRuns() {
  const heads = ['job', 'state', 'done', 'speed', 'time left', 'last checkpoint', 'programs × seeds'];
  const rows = page.index.jobs.map((job) => {
    const share = job.total ? job.frames / job.total : 0;
    const left = job.state === 'training' && job.speed ? (job.total - job.frames) * job.runs.length / job.speed : null;
    return make('tr', { 'data-job': job.name },
      make('th', { scope: 'row', class: 'left' }, make('a', { href: `#job-${job.key}`, 'data-key': job.key }, job.name)),
      make('td', { class: 'left' }, make('span', { class: `state ${job.state}` }, job.state)),
      make('td', {}, make('meter', { min: 0, max: 1, value: share, 'aria-label': 'done' }), ` ${short(job.frames)} of ${short(job.total)} ${job.unit}`),
      make('td', {}, job.speed ? `${short(job.speed)} ${job.unit}/s` : '–'),
      make('td', {}, duration(left)), 
      make('td', { 'data-time': job.checkpoint?.time }, job.checkpoint ? `update ${job.checkpoint.step.toLocaleString('en')}` : '–'),
      make('td', {}, `${job.programs.length} × ${new Set(job.runs.map(([, seed]) => seed)).size}`));
  });
  const head = make('tr', {}, ...heads.map((text, i) => make('th', { scope: 'col', class: i < 2 ? 'left' : null }, text)));
  rebuild($('runs-table'), page.index.jobs, () => [make('table', {}, make('thead', {}, head), make('tbody', {}, ...rows))]);
  drawAges();
}

// While runs train, how long ago the last checkpoint was.
function drawAges() {
  if (!page.index.live) return;
  for (const cell of $('runs-table').querySelectorAll('[data-time]')) {
    cell.textContent = `${duration(Math.max(Date.now() / 1000 - cell.dataset.time, 0))} ago`;
  }
}

function drawDetails() {
  const open = new Set([...$('runs-details').querySelectorAll('details[open]')].map((x) => x.id));
  const key = page.index.jobs.map((job) => [job.key, job.state, job.sessions.length]);
  rebuild($('runs-details'), key, () => page.index.jobs.map((job) => make('details', { id: `job-${job.key}`, open: open.has(`job-${job.key}`) },
    make('summary', {}, job.name, ' ', make('span', { class: 'soft' }, [job.created, job.ended, duration(job.seconds)].filter(Boolean).join(' · '))),
    make('dl', {},
      make('dt', {}, 'directory'), make('dd', {}, make('code', {}, job.path)),
      ...job.sessions.flatMap(({ command, started, on }) => [make('dt', {}, 'trained by'), make('dd', {}, make('code', {}, command), ' ', make('span', { class: 'soft' }, [started, on].filter(Boolean).join(', ')))]),
      make('dt', {}, 'runs'), make('dd', {}, ...job.programs.map((program, i) => make('div', {}, make('code', {}, program.label), ' ', make('span', { class: 'soft' }, `seeds ${job.runs.filter(([own]) => own === i).map(([, seed]) => seed).join(', ')}: ${program.full}`)))),
      make('dt', {}, 'learner'), make('dd', { class: 'soft' }, Object.entries(job.settings).map(([name, value]) => `${name} ${value}`).join(', ')),
      ...(job.state === 'stopped' && page.index.live ? [make('dt', {}, 'go on'), make('dd', {}, make('code', {}, `mastery train --resume ${job.path}`))] : [])))));
}
