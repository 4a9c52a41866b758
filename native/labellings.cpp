// Pairwise dual ascent over the labellings that each example keeps: of those with a share, the one whose plane is lowest
// gives some of it to the one whose plane is highest. Nothing is decoded here.
#include "labellings.h"
#include "vector.h"

namespace {

struct Entry {
  int32_t label;
  double by;
};

struct Change {
  int64_t pair;
  double by;
};

// What one step adds to the features at a position: at most three labels.
struct Move {
  Entry entry[3];
  int count;
};

template <class A, class B> __attribute__((noinline)) double dot(const A *a, const B *b, int64_t n) {
  double sum[8] = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int j = 0; j < 8; j++) sum[j] += (double)a[i + j] * (double)b[i + j];
  for (; i < n; i++) sum[0] += (double)a[i] * (double)b[i];
  return ((sum[0] + sum[4]) + (sum[1] + sum[5])) + ((sum[2] + sum[6]) + (sum[3] + sum[7]));
}
template <class A> __attribute__((noinline)) void add(double by, const A *from, double *to, int64_t n) {
  for (int64_t i = 0; i < n; i++) to[i] += by * (double)from[i];
}

// One example while it is visited.
struct Visit {
  const TmAscend &c;
  int64_t K, T, at, example;
  const int32_t *gold;
  int32_t *labels;
  double *factor, *offset, *share;
  double *scores, *inner, *pending, *value, *pairs;  // (T, K), (T, T), (T, K), (capacity), (K, K) of zeros
  uint8_t *known;                                    // (T, K): which scores have been computed
  Move *moves;                                       // (T)
  Change *changed;                                   // (3 T)
  int64_t changes;
  bool inner_known, moved;

  Visit(const TmAscend &c, int64_t longest, char *memory) : c(c), K(c.num_labels) {
    Arena arena{aligned(memory)};
    scores = arena.take<double>(longest * K);
    pending = arena.take<double>(longest * K);
    inner = arena.take<double>(longest * longest);
    value = arena.take<double>(c.capacity);
    pairs = arena.take<double>(K * K);
    known = arena.take<uint8_t>(longest * K);
    moves = arena.take<Move>(longest);
    changed = arena.take<Change>(3 * longest);
    for (int64_t i = 0; i < K * K; i++) pairs[i] = 0;
  }

  const float *single(int64_t t) const { return (const float *)c.rows + (at + t) * c.width; }
  const double *row(int64_t t) const { return (const double *)c.rows + (at + t) * c.width; }
  double entry(int64_t s, int64_t t) const { return c.single ? single(s)[at + t] : row(s)[at + t]; }
  double product(int64_t s, int64_t t) const {
    return c.single ? dot(single(s), single(t), c.width) : dot(row(s), row(t), c.width);
  }
  double product(int64_t t, const double *b) const {
    return c.single ? dot(single(t), b, c.width) : dot(row(t), b, c.width);
  }

  void begin(int64_t i) {
    example = i;
    at = c.first[i];
    T = c.first[i + 1] - at;
    gold = c.gold + at;
    labels = c.labels + at * c.capacity;
    factor = c.factor + i * c.capacity;
    offset = c.offset + i * c.capacity;
    share = c.share + i * c.capacity;
    memset(known, 0, T * K);
    inner_known = moved = false;
  }

  __attribute__((noinline)) double score(int64_t t, int32_t k) {
    if (!known[t * K + k]) {
      known[t * K + k] = 1;
      pending[t * K + k] = 0;
      scores[t * K + k] = c.gram ? c.state[k * c.width + at + t] : product(t, c.state + k * c.width);
    }
    return scores[t * K + k];
  }

  // The loss that a labelling stands for, linear in the weights.
  __attribute__((noinline)) double plane(int64_t a) {
    const int32_t *y = labels + a * T;
    double sum = 0;
    for (int64_t t = 0; t < T; t++)
      if (y[t] != gold[t]) sum += score(t, y[t]) - score(t, gold[t]);
    if (c.transitions) {
      for (int64_t t = 1; t < T; t++) sum += c.transitions[y[t - 1] * K + y[t]] - c.transitions[gold[t - 1] * K + gold[t]];
      sum += c.start[y[0]] - c.start[gold[0]] + c.end[y[T - 1]] - c.end[gold[T - 1]];
    }
    return offset[a] + factor[a] * sum;
  }

  // False where there is no room for another labelling.
  bool keep(const int32_t *y, double found_factor, double found_offset) {
    int64_t &count = c.count[example];
    int64_t free = -1;
    for (int64_t a = 0; a < count; a++) {
      if (!memcmp(labels + a * T, y, T * sizeof *y)) return true;
      if (share[a] == 0 && (free < 0 || value[a] < value[free])) free = a;
    }
    if (count < c.capacity) free = count++;
    if (free < 0) return false;
    memcpy(labels + free * T, y, T * sizeof *y);
    factor[free] = found_factor;
    offset[free] = found_offset;
    share[free] = 0;
    value[free] = plane(free);
    return true;
  }

  void add_to(Move &move, int32_t label, double by) {
    for (int i = 0; i < move.count; i++)
      if (move.entry[i].label == label) {
        move.entry[i].by += by;
        return;
      }
    move.entry[move.count++] = {label, by};
  }

  // Adds by times the features of labelling y, less those of the gold one, to the moves.
  __attribute__((noinline)) void add(const int32_t *y, double by) {
    for (int64_t t = 0; t < T; t++)
      if (y[t] != gold[t]) {
        add_to(moves[t], y[t], by);
        add_to(moves[t], gold[t], -by);
      }
    if (!c.transitions) return;
    for (int64_t t = 1; t < T; t++) {
      pairs[y[t - 1] * K + y[t]] += by;
      pairs[gold[t - 1] * K + gold[t]] -= by;
    }
  }

  // The pairs of neighbours that the moves change are taken out of the table, which is 0 again, into the list.
  void list_pairs(const int32_t *const *some, int n) {
    changes = 0;
    for (int s = 0; s < n; s++)
      for (int64_t t = 1; t < T; t++) {
        int64_t pair = some[s][t - 1] * K + some[s][t];
        if (pairs[pair] != 0) changed[changes++] = {pair, pairs[pair]};
        pairs[pair] = 0;
      }
  }

  __attribute__((noinline)) void gram_of_example() {
    if (inner_known) return;
    inner_known = true;
    for (int64_t s = 0; s < T; s++)
      for (int64_t t = 0; t <= s; t++)
        inner[s * T + t] = inner[t * T + s] = c.gram ? entry(s, t) : product(s, t);
  }

  // A pairwise step from labelling `low` to `high`, -1 being the gold one.
  __attribute__((noinline)) void step(int64_t high, int64_t low, double slope, double most) {
    gram_of_example();
    for (int64_t t = 0; t < T; t++) moves[t].count = 0;
    const int32_t *some[3] = {gold, gold, gold};
    int n = 1;
    if (high >= 0) add(some[n++] = labels + high * T, factor[high]);
    if (low >= 0) add(some[n++] = labels + low * T, -factor[low]);
    double square = 0, ends = 0;
    for (int64_t s = 0; s < T; s++)
      for (int64_t t = 0; t <= s; t++) {
        double match = 0;
        for (int i = 0; i < moves[s].count; i++)
          for (int j = 0; j < moves[t].count; j++)
            if (moves[s].entry[i].label == moves[t].entry[j].label) match += moves[s].entry[i].by * moves[t].entry[j].by;
        square += (s == t ? 1 : 2) * match * inner[s * T + t];
      }
    if (c.transitions) {
      const Move &one = moves[0], &other = moves[T - 1];
      for (int i = 0; i < one.count; i++) ends += one.entry[i].by * one.entry[i].by;
      for (int i = 0; i < other.count; i++) ends += other.entry[i].by * other.entry[i].by;
      list_pairs(some, n);
      for (int64_t i = 0; i < changes; i++) ends += changed[i].by * changed[i].by;
      square += c.scale * ends;
    }
    double size = slope < most * square ? slope / square : most;
    if (high >= 0) share[high] += size;
    if (low >= 0) share[low] = size == most ? 0 : share[low] - size;
    for (int64_t s = 0; s < T; s++)
      for (int i = 0; i < moves[s].count; i++) {
        int32_t k = moves[s].entry[i].label;
        double by = -size * moves[s].entry[i].by;
        if (by == 0) continue;
        moved = true;
        pending[s * K + k] += by;
        for (int64_t t = 0; t < T; t++)
          if (known[t * K + k]) scores[t * K + k] += by * inner[s * T + t];
      }
    if (c.transitions) {
      double by = size * c.scale;
      const Move &one = moves[0], &other = moves[T - 1];
      for (int i = 0; i < one.count; i++) c.start[one.entry[i].label] -= by * one.entry[i].by;
      for (int i = 0; i < other.count; i++) c.end[other.entry[i].label] -= by * other.entry[i].by;
      for (int64_t i = 0; i < changes; i++) c.transitions[changed[i].pair] -= by * changed[i].by;
    }
  }

  void ascend() {
    int64_t count = c.count[example];
    for (int64_t taken = 0; taken < c.steps; taken++) {
      double rest = c.strength[example];
      int64_t high = -1, low = -2;
      double top = 0, bottom = 0;
      for (int64_t a = 0; a < count; a++) {
        value[a] = plane(a);
        rest -= share[a];
        if (value[a] > top) top = value[a], high = a;
        if (share[a] > 0 && (low == -2 || value[a] < bottom)) bottom = value[a], low = a;
      }
      if (rest <= 1e-12 * c.strength[example]) rest = 0;
      if (rest > 0 && (low == -2 || bottom > 0)) bottom = 0, low = -1;
      if (low == -2 || !(top > bottom)) break;
      step(high, low, top - bottom, low < 0 ? rest : share[low]);
    }
    if (moved)
      for (int64_t t = 0; t < T; t++)
        for (int64_t k = 0; k < K; k++)
          if (known[t * K + k] && pending[t * K + k] != 0) {
            double by = pending[t * K + k], *to = c.state + k * c.width;
            if (c.single)
              ::add(by, single(t), to, c.width);
            else
              ::add(by, row(t), to, c.width);
          }
  }
};

int64_t longest_of(const TmAscend &c) {
  int64_t longest = 1;
  for (int64_t v = 0; v < c.visits; v++) {
    int64_t length = c.first[c.order[v] + 1] - c.first[c.order[v]];
    longest = length > longest ? length : longest;
  }
  return longest;
}

// For how many examples there was no room.
int64_t ascend(const TmAscend *call) {
  const TmAscend &c = *call;
  Visit visit(c, longest_of(c), (char *)c.work);
  int64_t left = 0;
  for (int64_t v = 0; v < c.visits; v++) {
    int64_t i = c.order[v];
    visit.begin(i);
    if (visit.T == 0) continue;
    for (int64_t a = 0; a < c.count[i]; a++) visit.value[a] = c.found ? visit.plane(a) : 0;
    if (c.found && c.found_factor[i] > 0) left += !visit.keep(c.found + c.first[i], c.found_factor[i], c.found_offset[i]);
    visit.ascend();
  }
  return left;
}

}  // namespace

TM_EXPORT int64_t tm_ascend_work(int64_t longest, int64_t K, int64_t capacity) {
  const int64_t a_position = K * 17 + longest * 8 + (int64_t)(sizeof(Move) + 3 * sizeof(Change));
  return longest * a_position + K * K * 8 + capacity * 8 + 9 * 64;
}
TM_EXPORT int64_t tm_ascend(const TmAscend *call) { return ascend(call); }
