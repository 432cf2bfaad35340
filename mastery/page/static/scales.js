// Axes: from numbers to pixels and back, and where their ticks are.

// A linear or logarithmic axis from `start`, `length` pixels long.
export function scaleOf(kind, range, start, length) {
  const log = kind === 'log', on = log ? Math.log10 : (x) => x;
  const [first, last] = range.map(on), span = last - first || 1;
  return {
    kind, range,
    at: (x) => start + (on(x) - first) / span * length,
    from: (pixel) => {
      const y = first + (pixel - start) / length * span;
      return log ? 10 ** y : y;
    },
  };
}

// Round numbers within a range, about as many as asked for.
export function ticksOf(kind, [low, high], most) {
  return kind === 'log' ? logTicks(low, high, most) : linearTicks(low, high, most);
}

function linearTicks(low, high, most) {
  if (!(high > low)) return [low];
  const rough = (high - low) / most, size = 10 ** Math.floor(Math.log10(rough));
  const steps = [0.5, 1, 2, 5, 10], place = steps.findIndex((x) => x * size >= rough * 0.999);
  const within = (step) => [Math.ceil(low / step - 1e-9), Math.floor(high / step + 1e-9)];
  let step = steps[place] * size, [first, last] = within(step);
  if (last <= first) {  // one number does not make a scale
    step = steps[place - 1] * size;
    [first, last] = within(step);
  }
  // the product of whole numbers and a step such as 0.2 is not quite round
  const tick = (_, i) => Number(((first + i) * step).toPrecision(12));
  return Array.from({ length: last - first + 1 }, tick);
}

// Powers of ten; over less than two decades also twice and five times these.
function logTicks(low, high, most) {
  const decades = Math.log10(high / low), each = decades < 2 ? [1, 2, 5] : [1];
  const every = Math.max(1, Math.ceil(decades / most)), found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1) {
    if (power % every) continue;
    found.push(...each.map((x) => Number((x * 10 ** power).toPrecision(12))));
  }
  return found.filter((x) => x >= low * 0.9999 && x <= high * 1.0001);
}
