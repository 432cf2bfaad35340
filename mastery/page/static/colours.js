// Light or dark, and the colours that follow from it.

import { $ } from './elements.js';

// As it was chosen here, or else as the system has it.
export function theme() {
  const own = document.documentElement.dataset.theme;
  return own || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
}

// A colour of the style sheet, as it is in light or in dark.
export function shade(name) {
  const probe = $('tip');
  probe.style.color = `var(--${name})`;
  const found = getComputedStyle(probe).color;
  probe.style.color = '';
  return found;
}

// A program's colour on this page: black is the ink, and on a dark page all are a little lighter.
export function lineColour(colour) {
  if (colour === '#000000') return shade('ink');
  return theme() === 'dark' ? `rgb(${mixed(colour, '#ffffff', 0.22).join(',')})` : colour;
}

export const pale = (colour, opacity) => `rgba(${rgb(colour).join(',')},${opacity})`;
const mixed = (a, b, share) => rgb(a).map((x, i) => Math.round(x + (rgb(b)[i] - x) * share));
const rgb = (colour) => (colour.startsWith('#')
  ? [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16))
  : colour.match(/[\d.]+/g).slice(0, 3).map(Number));

const scale = { theme: '', ends: [] };  // the colours of no mastery and of all, by the theme

// Mastery as a colour, and an ink that can be read on it.
export function masteryColour(m) {
  if (scale.theme !== theme()) {
    Object.assign(scale, { theme: theme(), ends: [shade('nothing'), shade('mastered')] });
  }
  const found = mixed(...scale.ends, Math.min(Math.max(m, 0), 1));
  const bright = (0.299 * found[0] + 0.587 * found[1] + 0.114 * found[2]) / 255;
  return [`rgb(${found.join(',')})`, bright > 0.52 ? '#14201c' : '#ffffff'];
}
