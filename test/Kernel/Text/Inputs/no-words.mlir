func.func @no_words(%x: memref<?xf32> {block.sizes = #block.sizes<n>}, %f: f32)
    attributes {block.parameters = #block.parameters<>} {
  %0 = math.atan %f : f32
  return
}
