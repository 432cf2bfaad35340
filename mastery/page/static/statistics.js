// The statistics of a comparison, as mastery/statistics.py has them: scores are by run and task,
// and intervals are of the percentile bootstrap with 95 %, stratified by task.

// Linear interpolation, of what is not null; null if there is nothing.
export function quantiles(values, shares) {
  const known = values.filter((x) => x !== null && x !== undefined).sort((a, b) => a - b);
  if (!known.length) return shares.map(() => null);
  return shares.map((share) => {
    const at = share * (known.length - 1), low = Math.floor(at);
    const high = Math.min(low + 1, known.length - 1);
    return known[low] + (at - low) * (known[high] - known[low]);
  });
}

// The mean without the lowest and the highest quarter.
export function interquartileMean(scores) {
  const ordered = Float64Array.from(scores.flat()).sort();
  const cut = Math.floor(ordered.length / 4);
  let sum = 0;
  for (let i = cut; i < ordered.length - cut; i++) sum += ordered[i];
  return sum / (ordered.length - 2 * cut);
}

// The probability that a run of ours scores more than one of theirs, the mean over tasks; a tie
// counts half.
export function improvement(ours, theirs) {
  const tasks = ours[0].length;
  let won = 0;
  for (const a of ours) for (const b of theirs) for (let t = 0; t < tasks; t++) {
    won += a[t] > b[t] ? 1 : a[t] === b[t] ? 0.5 : 0;
  }
  return won / (ours.length * theirs.length * tasks);
}

// The value of a statistic of one or several groups of runs, and the interval it lies in.
export function interval(statistic, groups, draws = 1000) {
  const random = generator(0), found = new Float64Array(draws);
  for (let i = 0; i < draws; i++) {
    found[i] = statistic(...groups.map((scores) => resampled(scores, random)));
  }
  const [low, high] = quantiles(Array.from(found), [0.025, 0.975]);
  return { value: statistic(...groups), low, high };
}

// As many runs again, drawn anew for each task.
function resampled(scores, random) {
  const any = () => scores[Math.floor(random() * scores.length)];
  return scores.map(() => scores[0].map((_, task) => any()[task]));
}

// The frames at which a curve first reaches a threshold; infinite if it never does.
export function firstTime(frames, values, threshold) {
  const at = values.findIndex((x) => x !== null && x >= threshold);
  return at < 0 ? Infinity : frames[at];
}

// Of an even number the higher of the two in the middle: nothing is said that was not seen.
export function upperMedian(times) {
  return times.slice().sort((a, b) => a - b)[Math.floor(times.length / 2)];
}

// Random numbers in [0, 1), the same each time (mulberry32).
function generator(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6D2B79F5) >>> 0;
    let x = Math.imul(state ^ (state >>> 15), state | 1);
    x = (x + Math.imul(x ^ (x >>> 7), x | 61)) ^ x;
    return ((x ^ (x >>> 14)) >>> 0) / 4294967296;
  };
}
