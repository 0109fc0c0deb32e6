import MetalRuntime
import XCTest

/// Function constants under the checker: loading them into a kernel does not count as traffic. A kernel may read an
/// argument that a function constant disables, as long as it does not use the value.
final class CheckerConstantTests: CheckerTestCase {
    private static let int: UInt32 = 29, bool: UInt32 = 53  // MTLDataType

    private func constant<T>(_ index: Int, _ type: UInt32, _ value: T) -> mrt_constant_value {
        var constant = mrt_constant_value()
        constant.index = UInt32(index)
        constant.type = type
        withUnsafeMutableBytes(of: &constant.value) { bytes in withUnsafeBytes(of: value) { bytes.copyMemory(from: $0) }
        }
        return constant
    }

    /// Enough constants for the compiler to load them in a function that is not inlined.
    func testManyConstantsAreNoTraffic() throws {
        let count = 64
        let source =
            (0..<count).map { "constant int c\($0) [[function_constant(\($0))]];\n" }.joined() + """
                kernel void k(device int *y) { y[0] = \((0..<count).map { "c\($0)" }.joined(separator: " + ")); }
                """
        let function = try KernelLibrary(source).function(
            "k", constants: (0..<count).map { constant($0, Self.int, Int32($0)) })
        let y = TestBuffer(length: 4)
        assertSilent(try checked { try function.run([y], grid: 1, group: 1) })
        XCTAssertEqual(y.array(Int32.self), [Int32(count * (count - 1) / 2)])
    }

    private let gated = """
        struct Blend { float old, fresh; };
        constant bool blends [[function_constant(0)]];
        kernel void k(device float *y [[buffer(0)]], device const float *x [[buffer(1)]],
                      constant Blend *blend [[buffer(2), function_constant(blends)]], \
        uint i [[thread_position_in_grid]]) {
          float old = blend->old, fresh = blend->fresh; // HERE
          y[i] = blends ? old * y[i] + fresh * x[i] : x[i];
        }
        kernel void spoil(device float *blend [[buffer(2), function_constant(blends)]], \
        device float *y [[buffer(0)]]) { blend[1] = y[0]; }
        """

    private func run(blends: Bool, _ extra: [TestBuffer]) throws -> [Float] {
        let y = TestBuffer([Float(10), 20]), x = TestBuffer([Float(1), 2])
        let function = try KernelLibrary(gated).function("k", constants: [constant(0, Self.bool, blends)])
        try function.run([y, x] + extra, grid: 2, group: 2)
        return y.array()
    }

    func testAnArgumentThatIsLeftOutMayBeReadInVain() throws {
        XCTAssertEqual(try run(blends: false, []), [1, 2])
        XCTAssertEqual(try run(blends: true, [TestBuffer([Float(0.5), 3])]), [8, 16])
    }

    func testReadingAnArgumentThatIsLeftOutIsANote() throws {
        var result: [Float] = []
        let found = try checked { result = try run(blends: false, []) }
        XCTAssertEqual(result, [1, 2])
        XCTAssertEqual(Set(found.map(\.kind)), ["absent-argument"], "\(found)")
        assertFound(found, "absent-argument", in: gated, severity: "note", says: "its function constant leaves out")
    }

    func testWritingToAnArgumentThatIsLeftOutFaults() throws {
        let function = try KernelLibrary(gated).function("spoil", constants: [constant(0, Self.bool, false)])
        XCTAssertThrowsError(try function.run([TestBuffer([Float(1)])], grid: 1, group: 1)) {
            XCTAssertTrue("\($0)".contains("an argument that its function constant leaves out"), "\($0)")
        }
        _ = takeFindings()
    }
}
