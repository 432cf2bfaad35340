// Numbers and names as text.

const missing = (x) => x === null || x === undefined;

// 1,234; 12.3k; 4.56M
export function short(x) {
  if (missing(x)) return '–';
  for (const [size, letter] of [[1e9, 'G'], [1e6, 'M'], [1e3, 'k']]) {
    if (Math.abs(x) >= size * 0.99995) return `${Number((x / size).toPrecision(3))}${letter}`;
  }
  return `${Number(x.toPrecision(3))}`;
}

export const digits = (x, n = 2) => (missing(x) || Number.isNaN(x) ? '–' : x.toFixed(n));
export const percent = (x) => (missing(x) ? '–' : `${Math.round(100 * x)} %`);
export const count = (n, of) => `${n.toLocaleString('en')} ${of}${n === 1 ? '' : 's'}`;

// 1st, 2nd, 3rd, 4th; 11th, 12th, 13th; 21st
export function ordinal(n) {
  const teen = n % 100 > 10 && n % 100 < 14;
  return `${n}${(!teen && ['th', 'st', 'nd', 'rd'][n % 10]) || 'th'}`;
}

export function significant(x) {
  if (x === null) return '–';
  return x === 0 ? '0' : Number(x.toPrecision(3)).toString();
}

export function duration(seconds) {
  if (missing(seconds) || !Number.isFinite(seconds)) return '–';
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${(seconds / 3600).toFixed(1)} h`;
  return `${(seconds / 86400).toFixed(1)} days`;
}
