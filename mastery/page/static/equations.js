// Equations 1 to 3 for one run at one time, as mastery/programs/attention.py and mastery/programs/graph.py have them.
'use strict';

// Who comes before and after whom; tasks are in topological order.
function orderOf(curriculum) {
  const n = curriculum.tasks.length;
  const lists = () => Array.from({ length: n }, () => []);
  const order = { n, edges: curriculum.edges, before: lists(), after: lists(), ancestors: [] };
  for (const [a, b] of curriculum.edges) {
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
function learnability(order, mastery) {
  const least = [];  // of a task and its ancestors
  return mastery.map((m, c) => {
    const anc = order.before[c].reduce((x, p) => Math.min(x, least[p]), 1);
    least.push(Math.min(m, anc));
    return anc;
  });
}

// Eq. 1:  a_c = [(M_Anc)^p] [δ (1 − M_c) + (1 − δ) |β̂_c|] [1 − M_Succ]
// Eq. 2:  a'_c  = (1 − γ_pred) a_c  + Σ_{c→c'} γ_pred / n_{→c'} a'_c'
// Eq. 3:  a''_c = (1 − γ_succ) a'_c + Σ_{c'→c} γ_succ / n_{c'→} a'_c'
// What a program without equation 1 does not have is null, and so is what needs a β that is not
// known.
function factors(program, order, mastery, beta) {
  const s = program.settings, all = Array.from({ length: order.n }, (_, c) => c);
  const anc = learnability(order, mastery);
  const succ = all.map((c) => order.after[c].reduce((x, q) => Math.min(x, mastery[q]), order.after[c].length ? 1 : 0));
  const none = all.map(() => null);
  const found = {
    mastery, learnability: anc, successors: succ, progress: beta ?? none, betaHat: none,
    first: none, second: none, third: none, attention: none, redistributed: none,
    next: none, back: order.edges.map(() => null), on: order.edges.map(() => null),
  };
  if (beta) {
    const largest = Math.max(...beta.map(Math.abs));
    found.betaHat = beta.map((b) => (largest > 0 ? Math.abs(b) / largest : 0));
  }
  if (program.attention === 'learning-progress' && beta) {
    found.attention = beta.map((b) => Math.abs(b) ** s.exponent);
    found.redistributed = found.attention;
    found.next = converted(program, found.redistributed);
  }
  if (program.attention !== 'mastering-rate') return found;
  found.first = anc.map((m) => m ** s.power);
  found.third = succ.map((m) => 1 - s.successors * m);
  if (!beta) return found;
  found.second = all.map((c) => {
    const unlearned = s.delta * (1 - mastery[c]) + (1 - s.delta) * found.betaHat[c];
    return s.unlearned * unlearned + 1 - s.unlearned;
  });
  found.attention = all.map((c) => found.first[c] * found.second[c] * found.third[c]);
  const prime = found.attention.map((a) => (1 - s.gamma_pred) * a);
  const passedBack = (c) => s.gamma_pred / order.before[c].length * prime[c];  // to each of them
  const passedOn = (c) => s.gamma_succ / order.after[c].length * prime[c];
  for (let c = order.n - 1; c >= 0; c--) for (const q of order.after[c]) prime[c] += passedBack(q);
  found.redistributed = all.map((c) => order.before[c].reduce(
    (sum, p) => sum + passedOn(p), (1 - s.gamma_succ) * prime[c]));
  found.next = converted(program, found.redistributed);
  found.back = order.edges.map(([, q]) => passedBack(q));
  found.on = order.edges.map(([p]) => passedOn(p));
  return found;
}

// Attention to probabilities, as mastery/programs/distribution.py has it (of several largest, a part each).
// With the estimator Naive a task is held, and they do not follow from attention.
function converted(program, a) {
  const { epsilon = 0, temperature } = program.settings, n = a.length;
  const largest = Math.max(...a), total = a.reduce((sum, x) => sum + x, 0);
  if (program.progress === 'naive') return a.map(() => null);
  if (program.distribution === 'boltzmann') {
    const e = a.map((x) => Math.exp((x - largest) / temperature)), sum = e.reduce((s, x) => s + x, 0);
    return e.map((x) => x / sum);
  }
  const first = a.filter((x) => x === largest).length;
  const plain = program.distribution.endsWith('amax')
    ? a.map((x) => (x === largest ? 1 / first : 0))
    : a.map((x) => (total > 0 ? x / total : 1 / n));
  return plain.map((p) => (1 - epsilon) * p + epsilon / n);
}

// The mean over runs of everything that `factors` gives; null where it is not known.
function meanFactors(each) {
  const mean = {};
  for (const name of Object.keys(each[0])) {
    mean[name] = each[0][name].map((_, i) => {
      let sum = 0;
      for (const one of each) {
        if (one[name][i] === null) return null;
        sum += one[name][i];
      }
      return sum / each.length;
    });
  }
  return mean;
}
