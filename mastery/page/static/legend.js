// What the graph's colours, sizes, lines and badges mean.

import { masteryColour } from './colours.js';
import { rebuild } from './controls.js';
import { $, make } from './elements.js';
import { LEARNED } from './model.js';

// Only what the graph has: badges if there is room, flows if the program passes attention on.
export function drawLegend(shown, given, badges) {
  const passes = shown.some((s) => s.program.attention === 'mastering-rate');
  const edges = given.edges.length > 0;
  rebuild($('legend'), [passes, edges, badges], () => [
    ...numbersKey(), ...(passes && edges ? flowKey() : []), ...orderKey(edges, badges)]);
}

function numbersKey() {
  const steps = Array.from({ length: 11 }, (_, i) => make('svg:rect', {
    x: i * 12, width: 12.5, height: 10, fill: masteryColour(i / 10)[0],
  }));
  const circles = [[0.05, 5], [0.3, 20], [1, 43]].map(([share, cx]) => make('svg:circle', {
    cx, cy: 12, r: 12 * (0.3 + 0.7 * Math.sqrt(share)) * 0.9, class: 'size',
  }));
  const bar = make('svg:svg', { width: 132, height: 10, class: 'bar' }, ...steps);
  return [
    make('span', {}, 'mastery 0 ', bar, ' 1'),
    make('span', {}, make('svg:svg', { width: 58, height: 24 }, ...circles), 'share of training'),
  ];
}

function flowKey() {
  return [
    make('span', {}, make('i', { class: 'line back' }), 'passed back to what comes before (eq. 2)'),
    make('span', {}, make('i', { class: 'line on' }), 'passed on to what comes next (eq. 3)'),
  ];
}

// On a line of its own.
function orderKey(edges, badges) {
  const mark = make('svg:svg', { width: 20, height: 20, viewBox: '-10 -10 20 20' },
    make('svg:g', { class: 'badge' }, ...badge('1')));
  const line = (state, text) => make('span', {},
    make('svg:svg', { width: 30, height: 8 },
      make('svg:path', { class: `edge ${state}`, d: 'M1 4H29' })), text);
  return [
    make('span', { class: 'break' }),
    badges ? make('span', {}, mark, `place in the order found (learned: M ≥ ${LEARNED})`) : '',
    ...(edges ? [
      line('agrees', 'given edge that agrees'), line('contradicts', 'contradicts'),
      line('open', 'open: not learned yet'),
    ] : []),
  ];
}

// A task's place in the order that was found.
export function badge(text) {
  return [
    make('svg:circle', { r: 9 }),
    make('svg:text', { 'text-anchor': 'middle', dy: '0.36em' }, text),
  ];
}
