// How the jobs stand, and what could not be read.

import { rebuild } from './controls.js';
import { csvButton } from './downloads.js';
import { $, make } from './elements.js';
import { chosenJobs, curriculum, groupJobs, page } from './model.js';
import { count, duration, percent, short } from './text.js';

export function drawProblems() {
  const problems = page.index.problems.map(({ path, text }) => {
    const brief = text.replaceAll(`${path}/run.db`, 'its run.db').replaceAll(path, 'it');
    return make('p', { class: 'problem' }, make('code', {}, path), ' ', brief);
  });
  if (page.trouble) problems.push(make('p', { class: 'problem' }, page.trouble));
  const notes = [...new Set(chosenJobs().flatMap((job) => job.notes))];
  $('problems').replaceChildren(
    ...problems, ...notes.map((note) => make('p', { class: 'note' }, note)));
}

// What is trained, and how far. If its job is gone, nothing of it stays.
export function drawHead() {
  const jobs = groupJobs(), place = page.index.live ? 'the run directories' : 'this file';
  $('live').hidden = !page.index.live || !jobs.length;
  $('footer').textContent = `mastery ${page.index.mastery}. Everything on this page is in `
    + `${place}; nothing is loaded from elsewhere.`;
  if (!jobs.length) return drawNoHead();
  const { name, count: tasks } = curriculum();
  const programs = new Set(jobs.flatMap((job) => job.programs.map(({ label }) => label)));
  const runs = jobs.reduce((sum, job) => sum + job.runs.length, 0);
  $('title').textContent = name;
  document.title = `${stateNow(jobs)} · ${name}`;
  $('headline').textContent = [
    count(tasks, 'task'), count(programs.size, 'program'), count(runs, 'run'),
    jobs.length > 1 ? count(jobs.length, 'job') : '', howFar(jobs),
  ].filter(Boolean).join(' · ');
}

function drawNoHead() {
  document.title = 'mastery';
  $('title').textContent = 'Nothing to see yet';
  $('headline').textContent = page.index.live
    ? 'There is no training job here; it will be shown when it begins.' : '';
}

// For the title of the window: while some train, how much of those is done.
function stateNow(jobs) {
  const training = jobs.filter((job) => job.state === 'training');
  if (!training.length) {
    return jobs.every((job) => job.state === 'finished') ? 'finished' : 'stopped';
  }
  if (!training.every((job) => job.total)) return 'training';
  const sum = (of) => training.reduce((all, job) => all + of(job) * job.runs.length, 0);
  return `training ${percent(sum((job) => job.frames) / sum((job) => job.total))}`;
}

function howFar(jobs) {
  const training = jobs.filter((job) => job.state === 'training').length;
  if (training) return training === jobs.length ? 'training now' : `${training} training now`;
  if (jobs.length > 1) return '';
  const [job] = jobs;
  if (job.ended) return `finished: ${job.ended}`;
  return `stopped after ${framesDone(job)} a run`;
}

// The length of a job that is recorded from someone's own loop may not be known.
function framesDone({ frames, total, unit }) {
  return `${short(frames)} ${total ? `of ${short(total)} ` : ''}${unit}`;
}

export function drawRuns() {
  const texts = [
    'job', 'state', 'done', 'speed', 'time left', 'last checkpoint', 'programs × seeds',
  ];
  rebuild($('runs-save'), 'csv', () => [csvButton('the runs', () => 'runs', runsCsv)]);
  rebuild($('runs-table'), page.index.jobs, () => {
    const heads = texts.map((text, i) => (
      make('th', { scope: 'col', class: i < 2 ? 'left' : null }, text)));
    return [make('table', {},
      make('thead', {}, make('tr', {}, ...heads)),
      make('tbody', {}, ...page.index.jobs.map(runsRow)))];
  });
  drawAges();
}

function runsRow(job) {
  const link = make('a', { href: `#job-${job.key}`, 'data-key': job.key }, job.name);
  const state = make('span', { class: `state ${job.state}` }, job.state);
  const meter = job.total ? make('meter', {
    min: 0, max: 1, value: job.frames / job.total, 'aria-label': 'done',
  }) : null;
  const { checkpoint } = job, step = checkpoint?.step.toLocaleString('en');
  const seeds = new Set(job.runs.map(([, seed]) => seed)).size;
  return make('tr', { 'data-job': job.name },
    make('th', { scope: 'row', class: 'left' }, link),
    make('td', { class: 'left' }, state),
    make('td', {}, meter, ` ${framesDone(job)}`),
    make('td', {}, job.speed ? `${short(job.speed)} ${job.unit}/s` : '–'),
    make('td', {}, duration(secondsLeft(job))),
    make('td', { 'data-time': checkpoint?.time }, checkpoint ? `update ${step}` : '–'),
    make('td', {}, `${job.programs.length} × ${seeds}`));
}

function secondsLeft(job) {
  if (job.state !== 'training' || !job.speed || !job.total) return null;
  return (job.total - job.frames) * job.runs.length / job.speed;
}

// While runs train, how long ago the last checkpoint was.
export function drawAges() {
  if (!page.index.live) return;
  for (const cell of $('runs-table').querySelectorAll('[data-time]')) {
    cell.textContent = `${duration(Math.max(Date.now() / 1000 - cell.dataset.time, 0))} ago`;
  }
}

export function drawDetails() {
  const open = new Set([...$('runs-details').querySelectorAll('details[open]')].map((x) => x.id));
  const key = page.index.jobs.map((job) => (
    [job.key, job.created, job.state, job.sessions.length, job.remarks]));
  rebuild($('runs-details'), key, () => page.index.jobs.map((job) => {
    const id = `job-${job.key}`;
    const when = [job.created, job.ended, duration(job.seconds)].filter(Boolean).join(' · ');
    return make('details', { id, open: open.has(id) },
      make('summary', {}, job.name, ' ', make('span', { class: 'soft' }, when)),
      jobFacts(job));
  }));
}

function jobFacts(job) {
  const fact = (name, ...inside) => [make('dt', {}, name), make('dd', {}, ...inside)];
  const withNote = (code, note) => [
    make('code', {}, code), ' ', make('span', { class: 'soft' }, note),
  ];
  const seeds = (i) => job.runs.filter(([own]) => own === i).map(([, seed]) => seed).join(', ');
  const settings = Object.entries(job.settings).map(([name, value]) => `${name} ${value}`);
  const recorded = job.kind === 'recorded', remarks = job.remarks ?? [];
  const goesOn = job.state === 'stopped' && page.index.live && !recorded;
  return make('dl', {},
    ...fact('directory', make('code', {}, job.path)),
    ...job.sessions.flatMap(({ command, started, on }) => fact(
      recorded ? 'recorded' : 'trained by',
      ...withNote(recorded ? 'from Python' : command, [started, on].filter(Boolean).join(', ')))),
    ...fact('runs', ...job.programs.map((program, i) => (
      make('div', {}, ...withNote(program.label, `seeds ${seeds(i)}: ${program.full}`))))),
    ...(settings.length ? fact('learner', settings.join(', ')) : []),
    ...(remarks.length ? fact('remarks', ...remarks.map((one) => remarkLine(job, one))) : []),
    ...(goesOn ? fact('go on', make('code', {}, `mastery train --resume ${job.path}`)) : []));
}

// When, in which run if there are several, and what the user wrote.
function remarkLine(job, { run, frames, text, time }) {
  const [program, seed] = job.runs[run] ?? [];
  const which = job.runs.length > 1 && program !== undefined
    ? `${job.programs[program].label}, seed ${seed}` : '';
  const when = typeof time === 'number' ? new Date(1000 * time).toLocaleString() : time;
  const about = [`${short(frames)} ${job.unit}`, which, when].filter(Boolean).join(' · ');
  return make('div', { class: 'remark' }, text, ' ', make('span', { class: 'soft' }, about));
}

function runsCsv() {
  const heads = [
    'job', 'directory', 'curriculum', 'state', 'unit', 'done', 'total', 'units per second',
    'seconds left', 'seconds', 'last checkpoint', 'programs', 'seeds', 'runs', 'created', 'ended',
  ];
  return [heads, ...page.index.jobs.map((job) => [
    job.name, job.path, job.curriculum.name, job.state, job.unit, job.frames, job.total, job.speed,
    secondsLeft(job), job.seconds, job.checkpoint?.step, job.programs.length,
    new Set(job.runs.map(([, seed]) => seed)).size, job.runs.length, job.created, job.ended,
  ])];
}
