// RUN: not sandwich-import %s -m avx2 -o %t.mlir 2>&1 | FileCheck %s --implicit-check-not=error:
// RUN: not ls %t.mlir
// RUN: not sandwich-import %s --function=none 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not sandwich-import %s --function=two 2>&1 | FileCheck %s --check-prefix=TWO
// RUN: not sandwich-import %t.none.cpp 2>&1 | FileCheck %s --check-prefix=FILE
// RUN: not sandwich-import %S/Inputs/c.c --emit=python 2>&1 | FileCheck %s --check-prefix=EMIT
// RUN: sandwich-import %s --function=fine | FileCheck %s --check-prefix=FINE
//
// What kernels must not have is told with its place, all of it at once, and
// nothing is written. What is wrong elsewhere does not matter.
#include <cstdint>
#include <immintrin.h>
#include <vector>

// NONE: refused.cpp: error: there is no function 'none' with a body
// TWO: refused.cpp: error: there are several functions 'two'; name one with its namespace and what it takes, 'two(int)', 'two(float)'
// FILE: none.cpp: error: cannot be read: No such file or directory
// EMIT: --emit: python not in {ir,cpp,text}
// FINE: kernel.func @fine

// CHECK: refused.cpp:[[#@LINE+2]]:5: error: kernels must not call themselves, as 'factorial' does
// CHECK-NEXT: refused.cpp:[[#@LINE+1]]:{{.*}}: note: 'factorial' is called here
int factorial(int n) { return n < 2 ? 1 : n * factorial(n - 1); }

void forever(float *x) {
  // CHECK: refused.cpp:[[#@LINE+1]]:3: error: kernels must not have loops that nothing in them ends
  for (;;)
    x[0] += 1;
}

void still(float *x, int n) {
  // CHECK: refused.cpp:[[#@LINE+1]]:3: error: kernels must not have loops that nothing in them ends
  while (n > 0)
    x[0] += 1;
}

int jump(int n) {
// CHECK: refused.cpp:[[#@LINE+1]]:1: error: kernels must not have labels
again:
  if (n > 3) {
    n--;
    goto again;
  }
  return n;
}

int choose(int n) {
  // CHECK: refused.cpp:[[#@LINE+1]]:3: error: kernels must not have 'switch'
  switch (n) {
  default:
    return 1;
  }
}

void print(const float *);
void out(const float *x) {
  // CHECK: refused.cpp:[[#@LINE+1]]:3: error: kernels must not call 'print', which has no body here and is no intrinsic that is known
  print(x);
}

float indirect(float (*f)(float)) {
  return 1;
}
// CHECK: refused.cpp:[[#@LINE-3]]:{{.*}}: error: kernels must not have values of type 'float (float)'

float made(uintptr_t place) {
  // CHECK: refused.cpp:[[#@LINE+1]]:{{.*}}: error: kernels must not have pointers that are made of integers
  return *(float *)place;
}

float state[4];
float remembered() {
  // CHECK: refused.cpp:[[#@LINE+1]]:{{.*}}: error: kernels must not use what is defined outside of them, as 'state', whose numbers are not here
  return state[0];
}

__m256i shifted(__m256i x, int n) {
  // CHECK: refused.cpp:[[#@LINE+1]]:{{.*}}: error: kernels must not have a value that is not known as 'm' of '_mm256_slli_epi32'
  return _mm256_slli_epi32(x, n);
}

__m256i far(__m256i x) {
  // CHECK: refused.cpp:[[#@LINE+1]]:{{.*}}: error: kernels must not have 77 as 'm' of '_mm256_slli_epi32', which is between 0 and 32 where it is known
  return _mm256_slli_epi32(x, 77);
}

int assembled(int x) {
  // CHECK: refused.cpp:[[#@LINE+1]]:{{.*}}: error: kernels must not have assembly
  __asm__("incl %0" : "+r"(x));
  return x;
}

int caught(int x) {
  // CHECK: refused.cpp:[[#@LINE+1]]:3: error: kernels must not have 'try'
  try {
    ++x;
  } catch (int) {
  }
  return x;
}

struct Shape {
  virtual float area() { return 0; }
};
// CHECK: refused.cpp:[[#@LINE+1]]:{{.*}}: error: kernels must not have classes with virtual functions
float area(Shape *shape) { return shape->area(); }

struct Node {
  Node *next;
};
// CHECK: refused.cpp:[[#@LINE+1]]:{{.*}}: error: kernels must not have structures that point to their own kind
Node *follow(Node *node) { return node->next; }

float huge(float x) {
  // CHECK: refused.cpp:[[#@LINE+1]]:{{.*}}: error: kernels must not have arrays of more than 2^40 bytes
  float many[1L << 40];
  many[0] = x;
  return many[0];
}

__m256 unknown(__m256 x) {
  // CHECK: refused.cpp:[[#@LINE+1]]:{{.*}}: error: use of undeclared identifier '_mm256_none_ps'
  return _mm256_none_ps(x);
}

float fine(float x) { return x; }
int two(int x) { return x; }
float two(float x) { return x; }
