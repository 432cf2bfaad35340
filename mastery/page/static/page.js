// The page: from the data to the parts, the time they share, and what is new while runs train.

import { actions } from './actions.js';
import { drawAllParts, lazily, moveCursors, redrawParts } from './charts.js';
import { drawChoose, missingChoice } from './choose.js';
import { theme } from './colours.js';
import { drawComparison } from './comparison.js';
import { sample, tabs } from './controls.js';
import { drawCurves } from './curves.js';
import { $ } from './elements.js';
import { drawGraph } from './graph.js';
import {
  chooseGroup, chosenJobs, currentPoint, focus, jobGroups, page, series, unit,
} from './model.js';
import { drawAges, drawDetails, drawHead, drawProblems, drawRuns } from './runs.js';
import { drawSettings } from './settings.js';
import { chooseSource } from './source.js';
import { short } from './text.js';
import { drawWhere } from './where.js';
import { drawWhy } from './why.js';

const EVERY = 1000;  // milliseconds between two looks for something new
const SHARE = 12;  // a page that draws for so long waits that many times as long
const LONG = 14000;  // milliseconds in which the whole training is played back

const transport = { playing: 0, drawn: 0 };

async function begin() {
  Object.assign(actions, { draw, readAndDraw, changeGroup, focusTask });
  page.source = chooseSource();
  page.index = await page.source.index();
  setTheme();
  listen();
  if (page.index.jobs.length) chooseFirstGroup();
  await readAndDraw();
  document.querySelector('main').setAttribute('aria-busy', 'false');
  performance.mark('interactive');
  if (page.index.live) follow();
}

function chooseFirstGroup() {
  chooseGroup([...jobGroups().keys()][0]);
}

// The curves of the chosen jobs, as far as they are not here yet.
async function readCurves() {
  page.trouble = '';
  await Promise.all(chosenJobs().map(async (job) => {
    let had = page.curves.get(job.key);
    if (had && had.version === job.version) return;
    if (had && had.created !== job.created) had = null;  // another job, in a directory of that name
    try {
      const found = await page.source.curves(job, had);
      page.curves.set(job.key, { ...found, version: job.version, created: job.created });
    } catch (error) {
      page.trouble = `${job.name} cannot be read: ${error.message}`;
    }
  }));
}

async function readAndDraw() {
  await readCurves();
  draw();
}

function draw() {
  const shown = series(), any = shown.length > 0;
  for (const part of document.querySelectorAll('main > section, main > .pair')) {
    part.hidden = !any && part.id !== 'runs' && part.id !== 'choose';
  }
  $('transport').hidden = !any;
  drawProblems();
  drawRuns();
  drawDetails();
  drawHead();
  drawChoose();
  if (any) drawShown(shown);
  else if (chosenJobs().length && !missingChoice()) {
    $('headline').append(' · the curves begin when the first chunk of training is done');
  }
}

function drawShown(shown) {
  page.program = focus().key;
  const items = shown.map((s) => ({ key: s.key, text: s.name, mark: sample(s) }));
  tabs($('program-tabs'), items, page.program, (key) => {
    page.program = key;
    draw();
  });
  drawTime();
  drawCurves();
  drawWhere();
  lazily($('comparison'), drawComparison);
  lazily($('settings'), drawSettings);
}

// What depends on the time alone.
function drawTime() {
  const { frames } = focus().curves, point = currentPoint();
  const slider = $('time');
  slider.max = frames.length - 1;
  slider.value = point;
  slider.setAttribute('aria-valuetext', `${short(frames[point])} ${unit()}`);
  $('now').textContent = `${short(frames[point])} of ${short(frames.at(-1))} ${unit()}`;
  drawGraph();
  drawWhy();
  moveCursors();
}

function goTo(point) {
  const { frames } = focus().curves;
  page.frames = point >= frames.length - 1 ? Infinity : frames[point];
  drawTime();
}

function focusTask(task) {
  page.task = task;
  drawTime();
  drawCurves();
}

async function changeGroup(group) {
  stop();
  page.frames = Infinity;
  chooseGroup(group);
  await readAndDraw();
}

function play() {
  if (transport.playing) return stop();
  const last = focus().curves.frames.length - 1;
  let from = currentPoint();
  if (from >= last) from = 0;
  const began = performance.now();
  const step = (now) => {
    const point = from + Math.floor((now - began) / LONG * last);
    if (point !== transport.drawn) goTo(Math.min(point, last));
    transport.drawn = point;
    transport.playing = point < last ? requestAnimationFrame(step) : stop();
  };
  goTo(from);
  transport.playing = requestAnimationFrame(step);
  $('play').textContent = '❚❚';
  $('play').setAttribute('aria-label', 'Stop');
}

function stop() {
  cancelAnimationFrame(transport.playing);
  transport.playing = 0;
  $('play').textContent = '▶';
  $('play').setAttribute('aria-label', 'Play the training back');
  return 0;
}

// Look for something new as long as the page can be seen.
async function follow() {
  let busy = 0;
  try {
    const found = document.hidden ? null : await page.source.index();
    $('live').classList.remove('lost');
    if (found) {
      page.index = found;
      if (!page.group && found.jobs.length) chooseFirstGroup();
      await readCurves();
      const began = performance.now();
      draw();
      busy = performance.now() - began;
    } else drawAges();
  } catch {
    $('live').classList.add('lost');  // mastery watch has ended, or the machine is away
  }
  setTimeout(follow, Math.max(EVERY, SHARE * busy));
}

function listen() {
  listenToControls();
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => setTheme());
  addEventListener('resize', () => { if (series().length) drawTime(); });
  addEventListener('beforeprint', () => printing(true));
  addEventListener('afterprint', () => printing(false));
  addEventListener('hashchange', openDetails);
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && page.task !== null) focusTask(null);
  });
}

function listenToControls() {
  const when = (id, event, f) => $(id).addEventListener(event, ({ target }) => f(target));
  when('time', 'input', ({ value }) => { stop(); goTo(Number(value)); });
  when('play', 'click', play);
  when('log', 'change', ({ checked }) => { page.log = checked; drawCurves(); drawWhere(); });
  when('smooth', 'change', ({ checked }) => { page.smooth = checked; drawCurves(); });
  when('unfocus', 'click', () => focusTask(null));
  when('score', 'change', ({ value }) => {
    page.score = value;
    drawComparison();
    drawSettings();
  });
  when('against', 'change', ({ value }) => { page.against = value; drawComparison(); });
  when('threshold', 'change', ({ value }) => {
    page.threshold = Number(value);
    drawWhere();
    drawComparison();
  });
  when('theme', 'click', () => setTheme(theme() === 'dark' ? 'light' : 'dark'));
}

// On paper everything is drawn, and as wide as the style sheet has it there.
function printing(on) {
  document.documentElement.classList.toggle('printing', on);
  if (!page.group || !series().length) return;
  drawTime();
  drawAllParts();
}

function openDetails() {
  const part = location.hash.startsWith('#job-') && $(location.hash.slice(1));
  if (part) part.open = true;
}

// Light or dark; if nothing is chosen, as it is.
function setTheme(chosen) {
  if (chosen) document.documentElement.dataset.theme = chosen;
  $('theme').textContent = theme() === 'dark' ? '☀' : '☾';
  if (!page.group || !series().length) return;
  draw();
  redrawParts();
}

begin();
