// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What an importer of C++ may get wrong, a function for each: what is evaluated
// when, how often, and for which object. Each writes to memory of integers.
#include <algorithm>
#include <cstdint>
#include <immintrin.h>

struct Pair {
  int a, b;
  Pair rotated() const { return {b, a}; }
  Pair &operator+=(const Pair &other) {
    a += other.a;
    b += other.b;
    return *this;
  }
};
static Pair swapped(const Pair &p) { return {p.b, p.a}; }

// Places are evaluated once.
extern "C" void places(int *m) {
  int i = 0;
  m[20] = ++m[i++];
  int j = 5;
  m[i++] = m[j++] = 5;
  m[21] = (m[i++] += 5);
  int k = 8, b;
  while ((b = m[k++]) < 0)
    m[22] += b;
  m[23] = i * 100 + j * 10 + k;
  int *p = m + 30;
  *p++ = 1;
  *p++;
  *p = (m[24] = 3, m[24] + 1);
}

// A structure is complete before it is assigned.
extern "C" void structures(int *m) {
  Pair p = {m[0], m[1]};
  p = {p.b, p.a};
  p = Pair{p.b + 1, p.a};
  p = swapped(p);
  p = p.rotated();
  Pair q[4] = {{1, 2}, {3, 4}, {5, 6}, {7, 8}};
  int i = 0;
  q[i] = q[++i];
  i = 0;
  q[i++] += q[i];
  auto turn = [](Pair x) { return Pair{x.b, x.a}; };
  q[2] = turn(q[2]);
  q[3] = m[2] > 0 ? Pair{q[3].b, q[3].a} : q[3];
  m[10] = p.a;
  m[11] = p.b;
  for (int n = 0; n < 4; ++n) {
    m[12 + 2 * n] = q[n].a;
    m[13 + 2 * n] = q[n].b;
  }
}

// Objects that are changed by a callee are its own.
static int drained(Pair p) {
  int n = 0;
  while (p.a-- > 0)
    n += p.b++;
  return n;
}
extern "C" void copies(int *m) {
  Pair p = {4, 3};
  m[0] = drained(p) + drained(p);
  m[1] = p.a * 10 + p.b;
}

// Conditions that are known still do what they do.
extern "C" void known(int *m) {
  int i = 0;
  m[1] = (i++, 1) ? 3 : 4;
  m[2] = (i++ && 0) ? 1 : 2;
  m[3] = (i++ || 1) ? 7 : 8;
  do {
    m[4] += 1;
  } while ((i++, 0));
  m[5] = i;
}

// Lambdas refer to what is, copy what was, and belong to their object.
template <typename F> static void twice(F f, int &changed) {
  f();
  changed += 10;
  f();
}
struct Scaler {
  int factor;
  template <typename F> void each(F f) {
    for (int i = 0; i < 3; ++i)
      factor += f(i);
  }
  void both(Scaler &other) {
    other.each([&](int i) { return i + factor; });
  }
};
extern "C" void lambdas(int *m) {
  int x = 1;
  auto copied = [=] { return x; };
  x = 5;
  m[0] = copied();
  m[1] = x;
  auto nested = [&](int a) {
    x += a;
    auto inner = [x] { return x; };
    m[10 + a] = inner();
    x += a;
  };
  nested(1);
  nested(2);
  m[2] = x;
  twice([x, m] { m[3] += x; }, x);
  twice([&] { m[4] += x; }, x);
  Scaler one = {2}, two = {100};
  one.both(two);
  m[5] = one.factor;
  m[6] = two.factor;
  auto plus = [](int v) { return v + 1; };
  m[7] = plus(plus(m[7]));
}

// What members and elements are by default.
struct Defaults {
  int p = 4;
  int q = p + 1;
};
struct Wanting {
  int p = 100;
  int made() {
    Defaults d{10};
    return d.q;
  }
};
struct Filled {
  int x = 5;
};
struct Cleared {
  int a;
  int b = 5;
  Cleared() = default;
};
extern "C" void defaults(int *m) {
  Wanting w;
  m[0] = w.made();
  Filled a[4] = {{1}};
  m[1] = a[0].x * 10 + a[2].x;
  Filled b[3];
  m[2] = b[1].x;
  struct Several {
    Filled s[3];
    int k;
  } t = {};
  m[3] = t.s[2].x + t.k;
  Cleared c = Cleared();
  m[4] = c.a * 10 + c.b;
}

// References to arrays, and names that stand for several things.
static const int table[4] = {1, 2, 3, 4};
static void fill(int (&acc)[2][4], const int *m) {
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 4; ++j)
      acc[i][j] = m[i] + j;
}
template <int N> static int product(const int (&values)[N]) {
  int all = 1;
  for (int i = 0; i < N; ++i)
    all *= values[i];
  return all;
}
template <typename F> static int apply(F f, int i) { return f(table[i & 3]); }
extern "C" void names(int *m) {
  int acc[2][4];
  fill(acc, m);
  m[10] = acc[1][2] + product(acc[0]);
  int (*row)[4] = &acc[1];
  (*row)[1] = 8;
  m[11] = acc[1][1];
  int sum = table[m[0] & 3];
  {
    int table[4] = {9, 9, 9, m[3]};
    sum += table[m[1] & 3];
  }
  m[12] = sum + table[m[1] & 3];
  const int *table = m;
  m[13] = apply([&](int v) { return v + table[2]; }, 2);
  int concept = 3, abs = 4;
  /* What ends so: \ */
  m[14] = concept + abs;
  const int known = 3;
  int other = 7;
  const int &r = m[0] > 0 ? known : other;
  m[15] = r + std::min(known, 9) + std::max(m[2], m[3]);
}

// Vectors of fewer values than lanes, and objects that are aligned.
extern "C" void vectors(int *m) {
  __m256i few = {m[0], m[1]};
  alignas(32) int lanes[8];
  _mm256_store_si256((__m256i *)lanes, few);
  for (int i = 0; i < 8; ++i)
    m[10 + i] = lanes[i];
}

// Loops whose bounds change, helpers in conditions, pointers that are set late.
static int isLess(int a, int b) {
  int r = a;
  r -= b;
  return r < 0;
}
static void clear(int *p, int n) {
  while (n-- > 0)
    *p++ = 0;
}
static int lastOf(const int *x, int n) {
  int i;
  for (i = 0; i < n; i++)
    if (x[i] < 0)
      n--;
  return i;
}
static int early(int *x, int n) {
  int *p;
  if (n < 0)
    return 7;
  p = x + n;
  *p += 1;
  return *p;
}
extern "C" void loops(int *m) {
  int *p;
  int i;
  for (i = 0; i < 4; i++) {
    p = m + 2 * i;
    *p += 3;
  }
  m[20] = i + lastOf(m, 9) * 10;
  for (int j = 0; isLess(j, 6); j++)
    if (m[j] > 2)
      m[j] = isLess(m[j], 5) * 100 + j;
  clear(m + 30, 2);
  for (int j = 0; j < 2; ++j)
    clear(m + 34 + 3 * j, 2);
  m[21] = early(m, -1) + early(m, 3);
  struct {
    float a;
    int b;
  } pairs[3];
  for (int j = 0; j < 3; ++j) {
    pairs[j].a = (float)m[j] * 0.5f;
    pairs[j].b = j;
  }
  m[22] = (int)(pairs[m[0] & 1].a * 2) + pairs[2].b;
  unsigned k = 3;
  for (; k < 17u; k += 5)
    m[23] += (int)k;
  m[24] = (int)k;
}
