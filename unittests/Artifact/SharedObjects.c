/*===- SharedObjects.c - What compiled phases do not have -----------------===*
 *
 * Part of the Sandwich project, under the Apache License v2.0 with LLVM
 * Exceptions. See LICENSE for license information.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===*
 *
 * One function and one constant, and what the macro says. CMakeLists.txt makes
 * a shared object for each, some of them by how they are linked.
 *
 *===----------------------------------------------------------------------===*/

const long constant = 7;

/* Whoever runs code of these files before it was asked to does not survive. */
static void trap(void) { __builtin_trap(); }

int function(void) { return 3; }

#ifdef POINTERS
/* Relocated relative to where the object is loaded. */
static int own(void) { return 4; }
static int (*volatile functions[])(void) = {own, own};
int call(int index) { return functions[index](); }
#endif

#ifdef CONSTRUCTOR
__attribute__((constructor)) static void construct(void) { trap(); }
#endif

#ifdef DESTRUCTOR
__attribute__((destructor)) static void destruct(void) { trap(); }
#endif

#if defined(INIT) || defined(FINI)
void first(void) { trap(); }
#endif

#if defined(INDIRECT) || defined(HIDDEN_INDIRECT)
static int (*resolve(void))(void) {
  trap();
  return function;
}
#endif
#ifdef INDIRECT
int chosen(void) __attribute__((ifunc("resolve")));
#endif
#ifdef HIDDEN_INDIRECT
__attribute__((visibility("hidden"))) int chosen(void)
    __attribute__((ifunc("resolve")));
static int (*volatile pointer)(void) = chosen;
int call(void) { return pointer(); }
#endif

#ifdef UNDEFINED_FUNCTION
int puts(const char *);
int call(void) { return puts(""); }
#endif

#ifdef UNDEFINED_OBJECT
extern char **environ;
char **call(void) { return environ; }
#endif

#ifdef TEXT_RELOCATION
__asm__(".text\n.quad function\n");
#endif

#ifdef THREAD_LOCAL
__thread int perThread = 1;
#endif

#ifdef VARIABLE
int variable = 1;
#endif

/* For those that need none of it. */
__attribute__((unused)) static void (*const unused)(void) = trap;
