// RUN: sandwich-opt %s -tile-to-llvm -verify-diagnostics

// Tiles are a thread's, which runs functions.
// expected-error @below {{'tile.zero' op is in no function, whose thread has tiles}}
tile.zero 0
