@testable import OrchardMetal

/// Kernels that the tests run.
enum Kernels {
    static let add = """
        #include <metal_stdlib>
        using namespace metal;
        kernel void add(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]], \
        device float *sum [[buffer(2)]],
                        constant float &scale [[buffer(3)]], uint i [[thread_position_in_grid]]) {
            sum[i] = (a[i] + b[i]) * scale;
        }
        kernel void bump(device uint *values [[buffer(0)]], uint i [[thread_position_in_grid]]) {
            values[i] += 1;
        }
        kernel void reverse(device const uint *from [[buffer(0)]], device uint *to [[buffer(1)]], \
        threadgroup uint *scratch [[threadgroup(0)]],
                            uint i [[thread_position_in_threadgroup]], uint n [[threads_per_threadgroup]]) {
            scratch[i] = from[i];
            threadgroup_barrier(mem_flags::mem_threadgroup);
            to[i] = scratch[n - 1 - i];
        }
        """

    static let constants = """
        #include <metal_stdlib>
        using namespace metal;
        constant uint factor [[function_constant(0)]];
        constant bool negate [[function_constant(1)]];
        constant float shift [[function_constant(2)]];
        constant float applied = is_function_constant_defined(shift) ? shift : 0.5f;
        kernel void scale(device float *values [[buffer(0)]], uint i [[thread_position_in_grid]]) {
            float value = values[i] * factor + applied;
            values[i] = negate ? -value : value;
        }
        kernel void plain(device float *values [[buffer(0)]], uint i [[thread_position_in_grid]]) { values[i] = 1.0f; }
        """
}

extension Float {
    var bytes: [UInt8] { withUnsafeBytes(of: self, Array.init) }
}
