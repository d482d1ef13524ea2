// RUN: sandwich-opt %s -phase-insert-marks -split-input-file -verify-diagnostics

// How many ranks there are, the weights say alike.
lm.weight @w : tensor<64x64xf32> from ["w"] shard <rows, ranks = 2>
// expected-error @below {{'lm.weight' op is a shard of 4 ranks, others are of 2}}
lm.weight @v : tensor<64x64xf32> from ["v"] shard <rows, ranks = 4>

// -----

// One rank has no sums of several.
func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @below {{'lm.all_reduce' op does not fit weights that are divided among 1 rank}}
  %y = lm.all_reduce %x : tensor<?x64xf32> -> tensor<?x64xf32>
  return
}

// -----

// Channels are gathered of all ranks.
lm.weight @w : tensor<64x64xf32> from ["w"] shard <rows, ranks = 2>
func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @below {{'lm.all_gather' op does not fit weights that are divided among 2 ranks}}
  %y = lm.all_gather %x : tensor<?x64xf32> -> tensor<?x256xf32>
  return
}

// -----

// Rows are dealt to all of them.
lm.weight @w : tensor<64x64xf32> from ["w"] shard <rows, ranks = 2>
func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @below {{'lm.deal_rows' op does not fit weights that are divided among 2 ranks}}
  %y = lm.deal_rows %x among 4 : tensor<?x64xf32>
  return
}
