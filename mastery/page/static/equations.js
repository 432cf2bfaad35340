// Equations 1 to 3 for one run at one time, as mastery/programs/attention.py and
// mastery/programs/graph.py have them.

// Who comes before and after whom; tasks are in topological order.
export function orderOf({ tasks, edges }) {
  const n = tasks.length;
  const lists = () => Array.from({ length: n }, () => []);
  const order = { n, edges, before: lists(), after: lists(), ancestors: [] };
  for (const [a, b] of edges) {
    order.before[b].push(a);
    order.after[a].push(b);
  }
  for (let c = 0; c < n; c++) {
    const found = new Set(order.before[c]);
    for (const p of order.before[c]) for (const q of order.ancestors[p]) found.add(q);
    order.ancestors.push(found);
  }
  return order;
}

// M_Anc: the least mastery among the ancestors; 1 if there is none (section 4.1).
export function learnability(order, mastery) {
  const least = [];  // of a task and its ancestors
  return mastery.map((m, c) => {
    const anc = order.before[c].reduce((x, p) => Math.min(x, least[p]), 1);
    least.push(Math.min(m, anc));
    return anc;
  });
}

// M_Succ: the least mastery among the direct successors; 0 if there is none.
function leastOfSuccessors(order, mastery) {
  return order.after.map((after) => (
    after.reduce((x, q) => Math.min(x, mastery[q]), after.length ? 1 : 0)));
}

// Eq. 1:  a_c = [(M_Anc)^p] [δ (1 − M_c) + (1 − δ) |β̂_c|] [1 − M_Succ]
// What a program without equation 1 does not have is null, and so is what needs a β that is not
// known.
export function factors(program, order, mastery, beta) {
  const { settings } = program;
  const anc = learnability(order, mastery), succ = leastOfSuccessors(order, mastery);
  const none = mastery.map(() => null), ofEdges = order.edges.map(() => null);
  const found = {
    mastery, learnability: anc, successors: succ, progress: beta ?? none, betaHat: none,
    first: none, second: none, third: none, attention: none, redistributed: none,
    next: none, back: ofEdges, on: ofEdges,
  };
  if (beta) {
    const largest = Math.max(...beta.map(Math.abs));
    found.betaHat = beta.map((b) => (largest > 0 ? Math.abs(b) / largest : 0));
  }
  if (program.attention === 'learning-progress' && beta) {
    found.attention = beta.map((b) => Math.abs(b) ** settings.exponent);
    found.redistributed = found.attention;
    found.next = converted(program, found.redistributed);
  }
  if (program.attention !== 'mastering-rate') return found;
  found.first = anc.map((m) => m ** settings.power);
  found.third = succ.map((m) => 1 - settings.successors * m);
  if (!beta) return found;
  found.second = mastery.map((m, c) => {
    const unlearned = settings.delta * (1 - m) + (1 - settings.delta) * found.betaHat[c];
    return settings.unlearned * unlearned + 1 - settings.unlearned;
  });
  found.attention = mastery.map((_, c) => found.first[c] * found.second[c] * found.third[c]);
  Object.assign(found, passedAlong(order, settings, found.attention));
  found.next = converted(program, found.redistributed);
  return found;
}

// Eq. 2:  a'_c  = (1 − γ_pred) a_c  + Σ_{c→c'} γ_pred / n_{→c'} a'_c'
// Eq. 3:  a''_c = (1 − γ_succ) a'_c + Σ_{c'→c} γ_succ / n_{c'→} a'_c'
// The attention of each task then, and what goes back and on along each edge.
function passedAlong(order, { gamma_pred: toBefore, gamma_succ: toAfter }, attention) {
  const prime = attention.map((a) => (1 - toBefore) * a);
  const passedBack = (c) => toBefore / order.before[c].length * prime[c];  // to each of them
  const passedOn = (c) => toAfter / order.after[c].length * prime[c];
  for (let c = order.n - 1; c >= 0; c--) for (const q of order.after[c]) prime[c] += passedBack(q);
  return {
    redistributed: prime.map((a, c) => order.before[c].reduce(
      (sum, p) => sum + passedOn(p), (1 - toAfter) * a)),
    back: order.edges.map(([, q]) => passedBack(q)),
    on: order.edges.map(([p]) => passedOn(p)),
  };
}

// Attention to probabilities, as mastery/programs/distribution.py has it (of several largest, a
// part each). With the estimator Naive a task is held, and they do not follow from attention.
function converted(program, a) {
  const { epsilon = 0, temperature } = program.settings, n = a.length;
  const largest = Math.max(...a), total = a.reduce((sum, x) => sum + x, 0);
  if (program.progress === 'naive') return a.map(() => null);
  if (program.distribution === 'boltzmann') {
    const powers = a.map((x) => Math.exp((x - largest) / temperature));
    const all = powers.reduce((sum, x) => sum + x, 0);
    return powers.map((x) => x / all);
  }
  const first = a.filter((x) => x === largest).length;
  const pure = program.distribution.endsWith('amax')
    ? a.map((x) => (x === largest ? 1 / first : 0))
    : a.map((x) => (total > 0 ? x / total : 1 / n));
  return pure.map((p) => (1 - epsilon) * p + epsilon / n);
}

// The mean over runs of everything that `factors` gives; null where it is not known.
export function meanFactors(each) {
  const found = {};
  for (const name of Object.keys(each[0])) {
    found[name] = each[0][name].map((_, i) => {
      let sum = 0;
      for (const one of each) {
        if (one[name][i] === null) return null;
        sum += one[name][i];
      }
      return sum / each.length;
    });
  }
  return found;
}
