// What was found about the order, in words: of one task, and of the whole curriculum.

import { curriculum, unit } from './model.js';
import { count, ordinal, short } from './text.js';

const MOST_NAMES = 30;  // tasks that are listed

// When a task was learned, and how many of those that were given before it.
export function taskSentence(task, found, frames) {
  const { tasks, edges } = curriculum(), time = (point) => `at ${short(frames[point])} ${unit()}`;
  const given = edges.flatMap(([, b], e) => (b === task ? [e] : [])), n = given.length;
  const learned = found.learned[task], forgotten = found.forgotten[task];
  if (learned !== null) {
    const known = given.filter((e) => found.edges[e] === 'agrees').length;
    return `${tasks[task]} was learned ${ordinal(found.places[task])} of ${tasks.length}, `
      + `${time(learned)}${predecessors(known, n, 'was', 'were', ' by then')}.`;
  }
  const known = given.filter((e) => found.learned[edges[e][0]] !== null).length;
  const now = forgotten === null
    ? 'is not learned yet' : `was learned, and forgotten ${time(forgotten)}`;
  return `${tasks[task]} ${now}${predecessors(known, n, 'is', 'are', '')}.`;
}

function predecessors(known, given, one, several, when) {
  if (!given) return '';
  if (given === 1) return `; its given predecessor ${one} ${known ? '' : 'not '}learned${when}`;
  const some = `${known || 'none'} of its ${given} given predecessors`;
  return `; ${some} ${known > 1 ? several : one} learned${when}`;
}

// How many of the given edges agree with what was seen; without any, what was learned, in order.
export function orderSentence(found) {
  const { edges } = found, all = edges.length;
  if (!all) return `No order was given; ${learnedSoFar(found)}.`;
  if (all === 1) {
    const verdict = edges[0] === 'open' ? 'is open'
      : `${edges[0] === 'agrees' ? 'agrees with' : 'contradicts'} what was seen`;
    return `The one given edge ${verdict}.`;
  }
  const [agree, against, open] = ['agrees', 'contradicts', 'open'].map((state) => (
    edges.filter((x) => x === state).length));
  const say = (n, one, several) => `${n || 'none'} ${n > 1 ? several : one}`;
  return `Of ${count(all, 'given edge')} ${say(agree, 'agrees', 'agree')} with what was seen, `
    + `${say(against, 'contradicts', 'contradict')} it, ${say(open, 'is', 'are')} open.`;
}

function learnedSoFar({ learned }) {
  const { tasks } = curriculum();
  const inOrder = tasks.map((_, task) => task).filter((task) => learned[task] !== null)
    .sort((a, b) => learned[a] - learned[b]);
  if (!inOrder.length) return 'nothing is learned yet';
  const names = inOrder.slice(0, MOST_NAMES).map((task) => tasks[task]).join(', ');
  const more = inOrder.length - MOST_NAMES;
  return `learned so far: ${names}${more > 0 ? ` and ${more} more` : ''}`;
}
