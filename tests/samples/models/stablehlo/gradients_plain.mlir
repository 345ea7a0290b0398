module @jit_stack attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<32xf32>, %arg1: tensor<32x4xf32>, %arg2: tensor<5x32x32xf32>, %arg3: tensor<16x32xf32>, %arg4: tensor<8x16xf32>) -> (tensor<f32> {jax.result_info = "result[0]"}, tensor<32xf32> {jax.result_info = "result[1]['bias']"}, tensor<32x4xf32> {jax.result_info = "result[1]['head']"}, tensor<5x32x32xf32> {jax.result_info = "result[1]['layers']"}, tensor<16x32xf32> {jax.result_info = "result[1]['stem']"}) {
    %0 = stablehlo.dot_general %arg4, %arg3, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [1] : (tensor<32xf32>) -> tensor<1x32xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<1x32xf32>) -> tensor<8x32xf32>
    %3 = stablehlo.add %0, %2 : tensor<8x32xf32>
    %4 = stablehlo.tanh %3 : tensor<8x32xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<8x32xf32>
    %6 = stablehlo.subtract %5, %4 : tensor<8x32xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %7 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %8 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<5x8x32xf32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %9 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<5x8x32xf32>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %10 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<5x8x32xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %11:7 = stablehlo.while(%iterArg = %arg2, %iterArg_14 = %c, %iterArg_15 = %4, %iterArg_16 = %7, %iterArg_17 = %8, %iterArg_18 = %9, %iterArg_19 = %10) : tensor<5x32x32xf32>, tensor<i32>, tensor<8x32xf32>, tensor<5xf32>, tensor<5x8x32xf32>, tensor<5x8x32xf32>, tensor<5x8x32xf32>
    cond {
      %c_20 = stablehlo.constant dense<5> : tensor<i32>
      %33 = stablehlo.compare LT, %iterArg_14, %c_20, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %33 : tensor<i1>
    } do {
      %33 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_14) : (tensor<5x32x32xf32>, tensor<i32>) -> tensor<32x32xf32>
      %34:5 = func.call @closed_call(%iterArg_15, %33) : (tensor<8x32xf32>, tensor<32x32xf32>) -> (tensor<8x32xf32>, tensor<f32>, tensor<8x32xf32>, tensor<8x32xf32>, tensor<8x32xf32>)
      %35 = func.call @dynamic_update_index_in_dim(%iterArg_16, %34#1, %iterArg_14) : (tensor<5xf32>, tensor<f32>, tensor<i32>) -> tensor<5xf32>
      %36 = func.call @dynamic_update_index_in_dim_0(%iterArg_17, %34#2, %iterArg_14) : (tensor<5x8x32xf32>, tensor<8x32xf32>, tensor<i32>) -> tensor<5x8x32xf32>
      %37 = func.call @dynamic_update_index_in_dim_0(%iterArg_18, %34#3, %iterArg_14) : (tensor<5x8x32xf32>, tensor<8x32xf32>, tensor<i32>) -> tensor<5x8x32xf32>
      %38 = func.call @dynamic_update_index_in_dim_0(%iterArg_19, %34#4, %iterArg_14) : (tensor<5x8x32xf32>, tensor<8x32xf32>, tensor<i32>) -> tensor<5x8x32xf32>
      %c_20 = stablehlo.constant dense<1> : tensor<i32>
      %39 = stablehlo.add %iterArg_14, %c_20 : tensor<i32>
      stablehlo.return %iterArg, %39, %34#0, %35, %36, %37, %38 : tensor<5x32x32xf32>, tensor<i32>, tensor<8x32xf32>, tensor<5xf32>, tensor<5x8x32xf32>, tensor<5x8x32xf32>, tensor<5x8x32xf32>
    }
    %12 = stablehlo.dot_general %11#2, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x32xf32>, tensor<32x4xf32>) -> tensor<8x4xf32>
    %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %13 = stablehlo.reduce(%12 init: %cst_4) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<f32>
    %cst_5 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %14 = stablehlo.divide %13, %cst_5 : tensor<f32>
    %cst_6 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %15 = stablehlo.reduce(%11#3 init: %cst_6) applies stablehlo.add across dimensions = [0] : (tensor<5xf32>, tensor<f32>) -> tensor<f32>
    %16 = stablehlo.add %14, %15 : tensor<f32>
    %cst_7 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %17 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %cst_8 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_9 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %18 = stablehlo.divide %cst_8, %cst_9 : tensor<f32>
    %19 = stablehlo.broadcast_in_dim %18, dims = [] : (tensor<f32>) -> tensor<8x4xf32>
    %20 = stablehlo.dot_general %19, %11#2, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x4xf32>, tensor<8x32xf32>) -> tensor<4x32xf32>
    %21 = stablehlo.transpose %20, dims = [1, 0] : (tensor<4x32xf32>) -> tensor<32x4xf32>
    %22 = stablehlo.dot_general %19, %arg1, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<8x4xf32>, tensor<32x4xf32>) -> tensor<8x32xf32>
    %cst_10 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %23 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<5x32x32xf32>
    %c_11 = stablehlo.constant dense<0> : tensor<i32>
    %24:8 = stablehlo.while(%iterArg = %17, %iterArg_14 = %arg2, %iterArg_15 = %11#4, %iterArg_16 = %11#5, %iterArg_17 = %11#6, %iterArg_18 = %c_11, %iterArg_19 = %22, %iterArg_20 = %23) : tensor<5xf32>, tensor<5x32x32xf32>, tensor<5x8x32xf32>, tensor<5x8x32xf32>, tensor<5x8x32xf32>, tensor<i32>, tensor<8x32xf32>, tensor<5x32x32xf32>
    cond {
      %c_21 = stablehlo.constant dense<5> : tensor<i32>
      %33 = stablehlo.compare LT, %iterArg_18, %c_21, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %33 : tensor<i1>
    } do {
      %c_21 = stablehlo.constant dense<5> : tensor<i32>
      %33 = stablehlo.subtract %c_21, %iterArg_18 : tensor<i32>
      %c_22 = stablehlo.constant dense<1> : tensor<i32>
      %34 = stablehlo.subtract %33, %c_22 : tensor<i32>
      %35 = func.call @dynamic_index_in_dim_1(%iterArg, %34) : (tensor<5xf32>, tensor<i32>) -> tensor<f32>
      %36 = func.call @dynamic_index_in_dim(%iterArg_14, %34) : (tensor<5x32x32xf32>, tensor<i32>) -> tensor<32x32xf32>
      %37 = func.call @dynamic_index_in_dim_2(%iterArg_15, %34) : (tensor<5x8x32xf32>, tensor<i32>) -> tensor<8x32xf32>
      %38 = func.call @dynamic_index_in_dim_2(%iterArg_16, %34) : (tensor<5x8x32xf32>, tensor<i32>) -> tensor<8x32xf32>
      %39 = func.call @dynamic_index_in_dim_2(%iterArg_17, %34) : (tensor<5x8x32xf32>, tensor<i32>) -> tensor<8x32xf32>
      %40:2 = func.call @closed_call_3(%iterArg_19, %35, %36, %37, %38, %39) : (tensor<8x32xf32>, tensor<f32>, tensor<32x32xf32>, tensor<8x32xf32>, tensor<8x32xf32>, tensor<8x32xf32>) -> (tensor<8x32xf32>, tensor<32x32xf32>)
      %41 = func.call @dynamic_update_index_in_dim_4(%iterArg_20, %40#1, %34) : (tensor<5x32x32xf32>, tensor<32x32xf32>, tensor<i32>) -> tensor<5x32x32xf32>
      %c_23 = stablehlo.constant dense<1> : tensor<i32>
      %42 = stablehlo.add %iterArg_18, %c_23 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_14, %iterArg_15, %iterArg_16, %iterArg_17, %42, %40#0, %41 : tensor<5xf32>, tensor<5x32x32xf32>, tensor<5x8x32xf32>, tensor<5x8x32xf32>, tensor<5x8x32xf32>, tensor<i32>, tensor<8x32xf32>, tensor<5x32x32xf32>
    }
    %25 = stablehlo.multiply %24#6, %6 : tensor<8x32xf32>
    %26 = stablehlo.multiply %25, %4 : tensor<8x32xf32>
    %27 = stablehlo.add %25, %26 : tensor<8x32xf32>
    %cst_12 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %28 = stablehlo.reduce(%27 init: %cst_12) applies stablehlo.add across dimensions = [0] : (tensor<8x32xf32>, tensor<f32>) -> tensor<32xf32>
    %29 = stablehlo.reshape %28 : (tensor<32xf32>) -> tensor<1x32xf32>
    %cst_13 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %30 = stablehlo.reduce(%29 init: %cst_13) applies stablehlo.add across dimensions = [0] : (tensor<1x32xf32>, tensor<f32>) -> tensor<32xf32>
    %31 = stablehlo.dot_general %27, %arg4, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x32xf32>, tensor<8x16xf32>) -> tensor<32x16xf32>
    %32 = stablehlo.transpose %31, dims = [1, 0] : (tensor<32x16xf32>) -> tensor<16x32xf32>
    return %16, %30, %21, %24#7, %32 : tensor<f32>, tensor<32xf32>, tensor<32x4xf32>, tensor<5x32x32xf32>, tensor<16x32xf32>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<5x32x32xf32>, %arg1: tensor<i32>) -> tensor<32x32xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, sizes = [1, 32, 32] : (tensor<5x32x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x32x32xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x32x32xf32>) -> tensor<32x32xf32>
    return %1 : tensor<32x32xf32>
  }
  func.func private @closed_call(%arg0: tensor<8x32xf32>, %arg1: tensor<32x32xf32>) -> (tensor<8x32xf32>, tensor<f32>, tensor<8x32xf32>, tensor<8x32xf32>, tensor<8x32xf32>) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x32xf32>, tensor<32x32xf32>) -> tensor<8x32xf32>
    %1 = stablehlo.tanh %0 : tensor<8x32xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<8x32xf32>
    %3 = stablehlo.subtract %2, %1 : tensor<8x32xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.reduce(%arg0 init: %cst_0) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x32xf32>, tensor<f32>) -> tensor<f32>
    return %1, %4, %arg0, %1, %3 : tensor<8x32xf32>, tensor<f32>, tensor<8x32xf32>, tensor<8x32xf32>, tensor<8x32xf32>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<5xf32>, %arg1: tensor<f32>, %arg2: tensor<i32>) -> tensor<5xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2 : (tensor<5xf32>, tensor<1xf32>, tensor<i32>) -> tensor<5xf32>
    return %1 : tensor<5xf32>
  }
  func.func private @dynamic_update_index_in_dim_0(%arg0: tensor<5x8x32xf32>, %arg1: tensor<8x32xf32>, %arg2: tensor<i32>) -> tensor<5x8x32xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<8x32xf32>) -> tensor<1x8x32xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0 : (tensor<5x8x32xf32>, tensor<1x8x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<5x8x32xf32>
    return %1 : tensor<5x8x32xf32>
  }
  func.func private @dynamic_index_in_dim_1(%arg0: tensor<5xf32>, %arg1: tensor<i32>) -> tensor<f32> {
    %0 = stablehlo.dynamic_slice %arg0, %arg1, sizes = [1] : (tensor<5xf32>, tensor<i32>) -> tensor<1xf32>
    %1 = stablehlo.reshape %0 : (tensor<1xf32>) -> tensor<f32>
    return %1 : tensor<f32>
  }
  func.func private @dynamic_index_in_dim_2(%arg0: tensor<5x8x32xf32>, %arg1: tensor<i32>) -> tensor<8x32xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, sizes = [1, 8, 32] : (tensor<5x8x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x32xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x8x32xf32>) -> tensor<8x32xf32>
    return %1 : tensor<8x32xf32>
  }
  func.func private @closed_call_3(%arg0: tensor<8x32xf32>, %arg1: tensor<f32>, %arg2: tensor<32x32xf32>, %arg3: tensor<8x32xf32>, %arg4: tensor<8x32xf32>, %arg5: tensor<8x32xf32>) -> (tensor<8x32xf32>, tensor<32x32xf32>) {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<8x32xf32>
    %1 = stablehlo.multiply %arg0, %arg5 : tensor<8x32xf32>
    %2 = stablehlo.multiply %1, %arg4 : tensor<8x32xf32>
    %3 = stablehlo.add %1, %2 : tensor<8x32xf32>
    %4 = stablehlo.dot_general %3, %arg3, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x32xf32>, tensor<8x32xf32>) -> tensor<32x32xf32>
    %5 = stablehlo.transpose %4, dims = [1, 0] : (tensor<32x32xf32>) -> tensor<32x32xf32>
    %6 = stablehlo.dot_general %3, %arg2, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<8x32xf32>, tensor<32x32xf32>) -> tensor<8x32xf32>
    %7 = stablehlo.add %0, %6 : tensor<8x32xf32>
    return %7, %5 : tensor<8x32xf32>, tensor<32x32xf32>
  }
  func.func private @dynamic_update_index_in_dim_4(%arg0: tensor<5x32x32xf32>, %arg1: tensor<32x32xf32>, %arg2: tensor<i32>) -> tensor<5x32x32xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<32x32xf32>) -> tensor<1x32x32xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0 : (tensor<5x32x32xf32>, tensor<1x32x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<5x32x32xf32>
    return %1 : tensor<5x32x32xf32>
  }
}
