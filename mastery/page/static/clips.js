// Clips of the agent on the task in focus: as it was at the last moment up to the page's time at
// which it was kept. In a file they are there; `mastery watch` makes one when it is asked.

import { actions } from './actions.js';
import { $, make } from './elements.js';
import { beside, curriculum, focus, page, pointAt, unit } from './model.js';
import { short } from './text.js';
import { taskShown } from './why.js';

const madeClips = new Map();  // by job, task, run and moment: a clip, or the promise of one
const askedFor = new Map();  // by job, task and run: the moment asked for last
const holders = new Map();  // by element: who is in it, the moment that is shown, and its text

// For the series in focus beside its task, or, if another is beside it, both below their graphs.
export function drawClips() {
  const other = beside(), task = taskShown();
  for (const id of ['graph-clip', 'beside-clip']) $(id).hidden = !other;
  $('agent-clip').hidden = Boolean(other);
  if (!other) return drawClip($('agent-clip'), focus(), task);
  const changed = [
    drawClip($('graph-clip'), focus(), task), drawClip($('beside-clip'), other, task),
  ];
  if (changed.some(Boolean)) startTogether([$('graph-clip'), $('beside-clip')]);
}

// Returns whether there is another clip in it than before.
function drawClip(holder, s, task) {
  const run = s.runs.find((one) => momentsOf(s, task, one).length) ?? s.runs[0];
  const who = `${s.job.key} ${s.job.created} ${task} ${run}`, moments = momentsOf(s, task, run);
  const known = holders.get(holder);
  const state = known?.who === who ? known : { who, shown: null, text: '' };
  holders.set(holder, state);
  const wanted = moments.length ? moments[pointAt(moments, page.frames)] : null;
  const ask = { s, task, run, moments, wanted, who };
  const clip = madeClips.get(`${who} ${wanted}`);
  if (wanted === null) return sayOfClip(holder, state, whyNone(s));
  if (!page.index.live) {
    const found = page.source.clips(s.job, task)[run].find(({ frames }) => frames === wanted);
    return showClip(holder, state, ask, found);
  }
  if (clip && !(clip instanceof Promise)) return showClip(holder, state, ask, clip);
  if (clip) return sayOfClip(holder, state, 'playing …', wanted);
  // while runs train, a newer agent is offered, and the clip of an older one comes and stays
  const before = askedFor.get(who), older = madeClips.get(`${who} ${before}`);
  if (page.frames < Infinity || !older || older.error) return offerClip(holder, state, ask);
  if (older instanceof Promise) return sayOfClip(holder, state, 'playing …', before);
  return showClip(holder, state, ask, older);
}

// The moments, in frames, at which a run's agent can be seen on a task.
function momentsOf(s, task, run) {
  if (!page.index.live) {
    return (page.source.clips(s.job, task)?.[run] ?? []).map(({ frames }) => frames);
  }
  const { clips, clip_runs: runs = [], moments = [] } = s.job;
  if (!clips) return [];
  return runs.includes(run) ? moments : moments.slice(-1);
}

function whyNone(s) {
  if (s.job.kind === 'recorded') return '';
  if (unit() !== 'frames') return 'This learner does not play, so there is nothing to see of it.';
  return page.index.live ? 'The agent can be seen after the first checkpoint.'
    : 'There is no clip in this file; mastery report --clips makes some.';
}

function sayOfClip(holder, state, text, key = text) {
  if (state.text === key) return false;
  Object.assign(state, { text: key, shown: null });
  holder.replaceChildren(text ? make('p', { class: 'soft' }, text) : '');
  return false;
}

function offerClip(holder, state, ask) {
  const key = `offer ${ask.wanted}`;
  if (state.text === key) return false;
  Object.assign(state, { text: key, shown: null });
  holder.replaceChildren(watchButton(ask), momentButtons(ask));
  return false;
}

function watchButton({ s, task, run, wanted, who }) {
  const click = () => {
    const asked = page.source.clip(s.job, task, run, wanted)
      .catch(() => ({ error: 'mastery watch does not answer' }));
    madeClips.set(`${who} ${wanted}`, asked);
    askedFor.set(who, wanted);
    asked.then((found) => {
      madeClips.set(`${who} ${wanted}`, { ...found, frames: wanted });
      drawClips();
    });
    drawClips();
  };
  const which = `${s.program.label}, seed ${s.job.runs[run][1]}, after ${short(wanted)} ${unit()}`;
  return make('button', { type: 'button', on: { click } }, `▶ watch the agent of ${which}`);
}

function showClip(holder, state, ask, clip) {
  const newer = ask.wanted !== clip.frames, key = `${clip.frames} ${ask.moments.length} ${newer}`;
  if (state.text === key) return false;
  const another = state.shown !== clip.frames;
  Object.assign(state, { text: key, shown: clip.frames });
  if (!clip.gif) return sayOfClip(holder, state, `There is no clip: ${clip.error}`);
  const name = curriculum().tasks[ask.task];
  const image = another ? clipPicture(clip, name) : holder.querySelector('img');
  holder.replaceChildren(
    image, make('p', { class: 'soft' }, `After ${short(clip.frames)} ${unit()}: ${clip.text}`),
    newer ? watchButton(ask) : '', momentButtons(ask, clip.frames));
  return another;
}

function clipPicture({ gif }, name) {
  return make('img', { src: `data:image/gif;base64,${gif}`, alt: `The agent on ${name}` });
}

// One button for each moment: it sets the page's time.
function momentButtons({ moments }, shown = null) {
  if (moments.length < 2) return '';
  return make('div', { class: 'moments', role: 'group', 'aria-label': 'The agent after' },
    ...moments.map((frames) => make('button', {
      type: 'button', 'aria-pressed': frames === shown ? 'true' : 'false',
      on: { click: () => actions.goToFrames(frames) },
    }, short(frames))));
}

const clipStarts = { count: 0 };

// A browser plays a GIF from its beginning when its address is new.
function startTogether(both) {
  clipStarts.count += 1;
  for (const holder of both) {
    const image = holder.querySelector('img');
    if (image) image.src = `${image.src.replace(/#.*/, '')}#${clipStarts.count}`;
  }
}
