// RUN: sandwich-opt %s -test-emulate-amx -verify-diagnostics

// Tiles are a thread's, whose state a function keeps.
// expected-error @below {{'tile.zero' op is in no function, whose thread has tiles}}
tile.zero 0
