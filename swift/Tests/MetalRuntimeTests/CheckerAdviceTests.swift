import XCTest

import MetalRuntime

/// The advice in findings, for mistakes that look alike.
final class CheckerAdviceTests: CheckerTestCase {
    private struct Mistake {
        let statement: String
        let says: String
        var saysNot = "\0"
    }

    private static let barrier = "put threadgroup_barrier(mem_flags::mem_threadgroup)"
    private static let accumulation = "no barrier mends"

    /// Each statement is in a loop over strides, with `s` in threadgroup memory and `y` in device memory.
    private let mistakes = [
        Mistake(statement: "if (i < n) s[i] += s[i + n];", says: barrier, saysNot: accumulation),
        Mistake(statement: "if (i < n) s[i] = s[i] + s[i + n];", says: barrier, saysNot: accumulation),
        Mistake(statement: "if (i < n) s[i] = max(s[i], s[i + n]);", says: barrier, saysNot: accumulation),
        Mistake(statement: "s[0] += i;", says: accumulation, saysNot: barrier),
        Mistake(statement: "y[0] += i;", says: accumulation, saysNot: "put threadgroup_barrier"),
        Mistake(statement: "s[n] = i;", says: "let one thread write it"),
        Mistake(statement: "y[n] = i;", says: "let one thread write it"),
        Mistake(
            statement: "atomic_fetch_add_explicit(count, 1u, memory_order_relaxed); if (*plain == n) y[i] = 0;",
            says: "make both atomic"),
        Mistake(
            statement: "if (i == 0) *plain = n; else atomic_fetch_add_explicit(count, 1u, memory_order_relaxed);",
            says: "make both atomic"),
    ]

    func testAdviceFitsTheMistake() throws {
        var random = SplitMix64(3305)
        for mistake in mistakes {
            let width = [64, 96, 128, 256].randomElement(using: &random)!
            let space = Bool.random(using: &random) ? "device" : "threadgroup"
            let type = ["float", "uint", "int"].randomElement(using: &random)!
            let source = """
                kernel void k(device \(type) *y [[buffer(0)]], device uint *counts [[buffer(1)]], \
                uint i [[thread_position_in_threadgroup]]) {
                  threadgroup \(type) s[512];
                  threadgroup uint shared;
                  s[i] = i;
                  s[i + \(width)] = i;
                  if (i == 0) shared = 0;
                  threadgroup_barrier(mem_flags::mem_threadgroup);
                  \(space) uint *plain = \(space == "device" ? "counts" : "&shared");
                  \(space) atomic_uint *count = (\(space) atomic_uint *)plain;
                  for (uint n = \(width / 2); n > 0; n /= 2) {
                    \(mistake.statement)  // HERE
                  }
                  y[i] = s[i];
                }
                """
            let y = TestBuffer(length: 4096, label: "y"), counts = TestBuffer([UInt32](repeating: 0, count: 4))
            y.address.initializeMemory(as: UInt32.self, repeating: 0, count: 1024)
            let line = sourceLine("HERE", source)
            let found = try findings(source, [y, counts], grid: width, group: width).filter {
                $0.line == line && $0.other_line == line
            }
            XCTAssertFalse(found.isEmpty, mistake.statement)
            for finding in found {
                XCTAssertTrue(finding.message.contains(mistake.says), "\(mistake.statement): \(finding.message)")
                XCTAssertFalse(finding.message.contains(mistake.saysNot), "\(mistake.statement): \(finding.message)")
            }
        }
    }

    /// The message names the argument, not whatever is nearer, such as the inline bytes of an earlier dispatch.
    func testAFarAccessNamesAnArgument() throws {
        var random = SplitMix64(3306)
        let source = """
            kernel void k(device const float *x [[buffer(0)]], device float *y [[buffer(1)]], \
            constant long &index [[buffer(2)]], constant bool &writes [[buffer(3)]]) {
              if (writes) y[index] = 1;
              else y[0] = x[index];
            }
            """
        let function = try KernelLibrary(source).function("k")
        for _ in 0..<200 { mrt_memory_free(mrt_memory_allocate(128, "")!) }
        for _ in 0..<24 {
            let x = TestBuffer([Float](repeating: 1, count: 64), label: "x")
            for _ in 0..<8 { mrt_memory_free(mrt_memory_allocate(64, "setBytes at index 2")!) }
            let y = TestBuffer([Float](repeating: 1, count: 64), label: "y")
            let writes = Bool.random(using: &random)
            let distance = Int64(1) << Int64.random(in: 12..<30, using: &random)
            let index = TestBuffer([Bool.random(using: &random) ? distance : -distance])
            let found = try checked {
                _ = try? function.run([x, y, index, TestBuffer([UInt8(writes ? 1 : 0)])], grid: 1, group: 1)
            }
            XCTAssertTrue(found.contains { $0.kind == "out-of-bounds" }, "\(found)")
            for finding in found {
                XCTAssertFalse(finding.message.contains("setBytes"), finding.message)
                // A fault may also name a buffer of an earlier test, which has a different name.
                XCTAssertFalse(finding.kind == "out-of-bounds" && finding.message.contains("freed"), finding.message)
                let names = ["buffer 'x'", "buffer 'y'"]
                XCTAssertTrue(names.contains { finding.message.contains($0) }, finding.message)
            }
        }
    }
}
