// The page: from the data to the parts, the time they share, and what is new while runs train.
'use strict';

const EVERY = 1000;  // milliseconds between two looks for something new
const SHARE = 12;  // a page that draws for so long waits that many times as long
const LONG = 14000;  // milliseconds in which the whole training is played back

const transport = { playing: 0, drawn: 0 };

async function begin() {
  page.source = chooseSource();
  page.index = await page.source.index();
  setTheme();
  listen();
  if (page.index.jobs.length) chooseGroup([...groups().keys()][0]);
  await readCurves();
  draw();
  document.querySelector('main').setAttribute('aria-busy', 'false');
  performance.mark('interactive');
  if (page.index.live) follow();
}

// The curves of the chosen jobs, as far as they are not here yet.
async function readCurves() {
  page.trouble = '';
  await Promise.all(groupJobs().filter((job) => page.jobs.has(job.key)).map(async (job) => {
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

function draw() {
  const any = series().length > 0;
  for (const part of document.querySelectorAll('main > section, main > .pair')) part.hidden = !any && part.id !== 'runs' && part.id !== 'choose';
  $('transport').hidden = !any;
  drawProblems();
  drawRuns();
  drawDetails();
  if (!page.index.jobs.length) {
    $('title').textContent = 'Nothing to see yet';
    $('headline').textContent = page.index.live ? 'There is no training job here; it will be shown when it begins.' : '';
    $('choose').hidden = true;
    return;
  }
  drawHead();
  drawChoose();
  if (!any) {
    $('headline').textContent += ' · the curves begin when the first chunk of training is done';
    return;
  }
  const shown = series();
  page.program = focus().key;
  tabs($('program-tabs'), shown.map((s) => ({ key: s.key, text: s.name, mark: sample(s) })), page.program, (key) => {
    page.program = key;
    draw();
  });
  drawTime();
  drawCurves();
  drawWhere();
  lazily($('comparison'), drawComparison);
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

function currentPoint() {
  const { frames } = focus().curves;
  return page.frames === Infinity ? frames.length - 1 : pointAt(frames, page.frames);
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
  await readCurves();
  draw();
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
      if (!page.group && found.jobs.length) chooseGroup([...groups().keys()][0]);
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
  $('time').addEventListener('input', (event) => { stop(); goTo(Number(event.target.value)); });
  $('play').addEventListener('click', play);
  $('log').addEventListener('change', (event) => { page.log = event.target.checked; drawCurves(); drawWhere(); });
  $('smooth').addEventListener('change', (event) => { page.smooth = event.target.checked; drawCurves(); });
  $('unfocus').addEventListener('click', () => focusTask(null));
  for (const name of ['score', 'against']) $(name).addEventListener('change', (event) => { page[name] = event.target.value; drawComparison(); });
  $('threshold').addEventListener('change', (event) => { page.threshold = Number(event.target.value); drawWhere(); drawComparison(); });
  $('theme').addEventListener('click', () => setTheme(theme() === 'dark' ? 'light' : 'dark'));
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => setTheme());
  addEventListener('resize', () => { if (series().length) drawTime(); });
  addEventListener('beforeprint', () => printing(true));
  addEventListener('afterprint', () => printing(false));
  addEventListener('hashchange', openDetails);
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && page.task !== null) focusTask(null);
  });
}

// On paper everything is drawn, and as wide as the style sheet has it there.
function printing(on) {
  document.documentElement.classList.toggle('printing', on);
  if (!page.group || !series().length) return;
  drawTime();
  for (const element of parts.keys()) drawPart(element);
}

function openDetails() {
  const part = location.hash.startsWith('#job-') && $(location.hash.slice(1));
  if (part) part.open = true;
}

// Light or dark: as it was chosen here, or else as the system has it.
function theme() {
  const own = document.documentElement.dataset.theme;
  return own || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
}

function setTheme(chosen) {
  if (chosen) document.documentElement.dataset.theme = chosen;
  $('theme').textContent = theme() === 'dark' ? '☀' : '☾';
  scale = null;
  if (!page.group || !series().length) return;
  graph.key = why.key = where.key = '';
  draw();
  redrawParts();
}

begin();
