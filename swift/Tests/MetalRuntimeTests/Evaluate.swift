import XCTest

/// Evaluates MSL expressions of `x` (and of `z`, if a second operand is given) on the device, with one thread per
/// operand.
func evaluate<Operand, Value>(
    _ expression: String, of operands: [Operand], _ second: [Operand]? = nil, from operandType: String,
    to valueType: String,
    declarations: String = "", as: Value.Type = Value.self
) throws -> [Value] {
    let kernel = try KernelLibrary(
        """
        \(declarations)
        kernel void evaluate(device const \(operandType)* xs [[buffer(0)]], \
        device const \(operandType)* zs [[buffer(1)]],
                             device \(valueType)* values [[buffer(2)]], uint i [[thread_position_in_grid]]) {
          \(operandType) x = xs[i], z = zs[i];
          (void)z;
          values[i] = \(expression);
        }
        """
    ).function("evaluate")
    let result = TestBuffer(length: operands.count * MemoryLayout<Value>.stride)
    try kernel.run([TestBuffer(operands), TestBuffer(second ?? operands), result], grid: operands.count, group: 32)
    return result.array()
}

/// Returns the integers that a kernel without operands writes: `statements` may use `device int* out`.
func integers(_ count: Int, _ statements: String, declarations: String = "") throws -> [Int32] {
    let kernel = try KernelLibrary(
        """
        \(declarations)
        kernel void integers(device int* out [[buffer(0)]]) { \(statements) }
        """
    ).function("integers")
    let out = TestBuffer([Int32](repeating: -1, count: count))
    try kernel.run([out], grid: 1, group: 1)
    return out.array()
}

/// Returns the floats that a kernel without operands writes: `statements` may use `device float* out`.
func floats(_ count: Int, _ statements: String, declarations: String = "") throws -> [Float] {
    let kernel = try KernelLibrary(
        """
        \(declarations)
        kernel void floats(device float* out [[buffer(0)]]) { \(statements) }
        """
    ).function("floats")
    let out = TestBuffer([Float](repeating: -1, count: count))
    try kernel.run([out], grid: 1, group: 1)
    return out.array()
}

/// Returns the compiler's message if a program is rejected, else nil.
func refusal(_ source: String) -> String? {
    do {
        _ = try KernelLibrary(source)
        return nil
    } catch { return "\(error)" }
}

/// Reproducible random numbers (SplitMix64).
struct SplitMix64: RandomNumberGenerator {
    var state: UInt64
    init(_ seed: UInt64) { state = seed }
    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var z = state
        z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
        z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
        return z ^ (z >> 31)
    }
}
