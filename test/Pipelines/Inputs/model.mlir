// The model IR of a random Qwen3 checkpoint; model-ir.test says which one, and
// that it is still what the compiler builds.
module {
  lm.weight @embedding : tensor<320x64xbf16> from ["model.embed_tokens.weight"]
  lm.weight @layers.input_layernorm : tensor<64xf32> layers 2 from ["model.layers.{}.input_layernorm.weight"]
  lm.weight @layers.self_attn.q_proj : tensor<64x64xbf16> layers 2 from ["model.layers.{}.self_attn.q_proj.weight"]
  lm.weight @layers.self_attn.k_proj : tensor<32x64xbf16> layers 2 from ["model.layers.{}.self_attn.k_proj.weight"]
  lm.weight @layers.self_attn.v_proj : tensor<32x64xbf16> layers 2 from ["model.layers.{}.self_attn.v_proj.weight"]
  lm.weight @layers.self_attn.q_norm : tensor<32xf32> layers 2 from ["model.layers.{}.self_attn.q_norm.weight"]
  lm.weight @layers.self_attn.k_norm : tensor<32xf32> layers 2 from ["model.layers.{}.self_attn.k_norm.weight"]
  lm.weight @layers.self_attn.o_proj : tensor<64x64xbf16> layers 2 from ["model.layers.{}.self_attn.o_proj.weight"]
  lm.weight @layers.post_attention_layernorm : tensor<64xf32> layers 2 from ["model.layers.{}.post_attention_layernorm.weight"]
  lm.weight @layers.mlp.gate_proj : tensor<96x64xbf16> layers 2 from ["model.layers.{}.mlp.gate_proj.weight"]
  lm.weight @layers.mlp.up_proj : tensor<96x64xbf16> layers 2 from ["model.layers.{}.mlp.up_proj.weight"]
  lm.weight @layers.mlp.down_proj : tensor<64x96xbf16> layers 2 from ["model.layers.{}.mlp.down_proj.weight"]
  lm.weight @final_norm : tensor<64xf32> from ["model.norm.weight"]
  lm.weight @head : tensor<320x64xbf16> from ["lm_head.weight"]
  func.func @prefill(%arg0: tensor<?xi32>, %arg1: tensor<?xi32>, %arg2: tensor<?xi32>, %arg3: tensor<?x4xi32>, %arg4: tensor<?xi32>, %arg5: tensor<?xi32>, %arg6: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, bf16>) -> tensor<?x320xf32> attributes {lm.phase = #lm.phase<prefill>} {
    %0 = lm.rotary_table %arg1 frequencies [1.000000e+00, 0.562341332, 0.316227764, 0.177827939, 1.000000e-01, 0.0562341288, 0.0316227786, 0.0177827943, 0.00999999977, 0.00562341325, 0.00316227786, 0.00177827943, 1.000000e-03, 5.62341302E-4, 3.16227786E-4, 1.7782794E-4] : tensor<?xi32> -> tensor<?x32xf32>
    %1 = lm.embed %arg0, @embedding : tensor<?xi32> -> tensor<?x64xf32>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %2 = scf.for %arg7 = %c0 to %c2 step %c1 iter_args(%arg8 = %1) -> (tensor<?x64xf32>) {
      %6 = lm.rms_norm %arg8, @layers.input_layernorm[%arg7] epsilon 9.99999974E-6 : tensor<?x64xf32> -> tensor<?x64xf32>
      %7 = lm.linear %6, @layers.self_attn.q_proj[%arg7] : tensor<?x64xf32> -> tensor<?x64xf32>
      %8 = lm.linear %6, @layers.self_attn.k_proj[%arg7] : tensor<?x64xf32> -> tensor<?x32xf32>
      %9 = lm.linear %6, @layers.self_attn.v_proj[%arg7] : tensor<?x64xf32> -> tensor<?x32xf32>
      %10 = lm.rms_norm %7, @layers.self_attn.q_norm[%arg7] epsilon 9.99999974E-6 : tensor<?x64xf32> -> tensor<?x64xf32>
      %11 = lm.rms_norm %8, @layers.self_attn.k_norm[%arg7] epsilon 9.99999974E-6 : tensor<?x32xf32> -> tensor<?x32xf32>
      %12 = lm.rotate %10, %0 : tensor<?x64xf32>, tensor<?x32xf32>
      %13 = lm.rotate %11, %0 : tensor<?x32xf32>, tensor<?x32xf32>
      lm.append_kv %13, %9 to %arg6[%arg7] slots %arg2 : tensor<?x32xf32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, bf16>, tensor<?xi32>
      %14 = lm.attention %12, %arg6[%arg7] segments %arg3 blocks %arg4 scale 0.176776692 : tensor<?x64xf32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, bf16>, tensor<?x4xi32>, tensor<?xi32> -> tensor<?x64xf32>
      %15 = lm.linear %14, @layers.self_attn.o_proj[%arg7] : tensor<?x64xf32> -> tensor<?x64xf32>
      %16 = lm.add %arg8, %15 : tensor<?x64xf32>
      %17 = lm.rms_norm %16, @layers.post_attention_layernorm[%arg7] epsilon 9.99999974E-6 : tensor<?x64xf32> -> tensor<?x64xf32>
      %18 = lm.linear %17, @layers.mlp.gate_proj[%arg7] : tensor<?x64xf32> -> tensor<?x96xf32>
      %19 = lm.linear %17, @layers.mlp.up_proj[%arg7] : tensor<?x64xf32> -> tensor<?x96xf32>
      %20 = lm.silu_mul %18, %19 : tensor<?x96xf32>
      %21 = lm.linear %20, @layers.mlp.down_proj[%arg7] : tensor<?x96xf32> -> tensor<?x64xf32>
      %22 = lm.add %16, %21 : tensor<?x64xf32>
      scf.yield %22 : tensor<?x64xf32>
    }
    %3 = lm.gather_rows %2, %arg5 : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
    %4 = lm.rms_norm %3, @final_norm epsilon 9.99999974E-6 : tensor<?x64xf32> -> tensor<?x64xf32>
    %5 = lm.linear %4, @head : tensor<?x64xf32> -> tensor<?x320xf32>
    return %5 : tensor<?x320xf32>
  }
  func.func @decode(%arg0: tensor<?xi32>, %arg1: tensor<?xi32>, %arg2: tensor<?xi32>, %arg3: tensor<?x4xi32>, %arg4: tensor<?xi32>, %arg5: tensor<?xi32>, %arg6: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, bf16>) -> tensor<?x320xf32> attributes {lm.phase = #lm.phase<decode>} {
    %0 = lm.rotary_table %arg1 frequencies [1.000000e+00, 0.562341332, 0.316227764, 0.177827939, 1.000000e-01, 0.0562341288, 0.0316227786, 0.0177827943, 0.00999999977, 0.00562341325, 0.00316227786, 0.00177827943, 1.000000e-03, 5.62341302E-4, 3.16227786E-4, 1.7782794E-4] : tensor<?xi32> -> tensor<?x32xf32>
    %1 = lm.embed %arg0, @embedding : tensor<?xi32> -> tensor<?x64xf32>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %2 = scf.for %arg7 = %c0 to %c2 step %c1 iter_args(%arg8 = %1) -> (tensor<?x64xf32>) {
      %6 = lm.rms_norm %arg8, @layers.input_layernorm[%arg7] epsilon 9.99999974E-6 : tensor<?x64xf32> -> tensor<?x64xf32>
      %7 = lm.linear %6, @layers.self_attn.q_proj[%arg7] : tensor<?x64xf32> -> tensor<?x64xf32>
      %8 = lm.linear %6, @layers.self_attn.k_proj[%arg7] : tensor<?x64xf32> -> tensor<?x32xf32>
      %9 = lm.linear %6, @layers.self_attn.v_proj[%arg7] : tensor<?x64xf32> -> tensor<?x32xf32>
      %10 = lm.rms_norm %7, @layers.self_attn.q_norm[%arg7] epsilon 9.99999974E-6 : tensor<?x64xf32> -> tensor<?x64xf32>
      %11 = lm.rms_norm %8, @layers.self_attn.k_norm[%arg7] epsilon 9.99999974E-6 : tensor<?x32xf32> -> tensor<?x32xf32>
      %12 = lm.rotate %10, %0 : tensor<?x64xf32>, tensor<?x32xf32>
      %13 = lm.rotate %11, %0 : tensor<?x32xf32>, tensor<?x32xf32>
      lm.append_kv %13, %9 to %arg6[%arg7] slots %arg2 : tensor<?x32xf32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, bf16>, tensor<?xi32>
      %14 = lm.attention %12, %arg6[%arg7] segments %arg3 blocks %arg4 scale 0.176776692 : tensor<?x64xf32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, bf16>, tensor<?x4xi32>, tensor<?xi32> -> tensor<?x64xf32>
      %15 = lm.linear %14, @layers.self_attn.o_proj[%arg7] : tensor<?x64xf32> -> tensor<?x64xf32>
      %16 = lm.add %arg8, %15 : tensor<?x64xf32>
      %17 = lm.rms_norm %16, @layers.post_attention_layernorm[%arg7] epsilon 9.99999974E-6 : tensor<?x64xf32> -> tensor<?x64xf32>
      %18 = lm.linear %17, @layers.mlp.gate_proj[%arg7] : tensor<?x64xf32> -> tensor<?x96xf32>
      %19 = lm.linear %17, @layers.mlp.up_proj[%arg7] : tensor<?x64xf32> -> tensor<?x96xf32>
      %20 = lm.silu_mul %18, %19 : tensor<?x96xf32>
      %21 = lm.linear %20, @layers.mlp.down_proj[%arg7] : tensor<?x96xf32> -> tensor<?x64xf32>
      %22 = lm.add %16, %21 : tensor<?x64xf32>
      scf.yield %22 : tensor<?x64xf32>
    }
    %3 = lm.gather_rows %2, %arg5 : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
    %4 = lm.rms_norm %3, @final_norm epsilon 9.99999974E-6 : tensor<?x64xf32> -> tensor<?x64xf32>
    %5 = lm.linear %4, @head : tensor<?x64xf32> -> tensor<?x320xf32>
    return %5 : tensor<?x320xf32>
  }
  lm.sampling 320
}
