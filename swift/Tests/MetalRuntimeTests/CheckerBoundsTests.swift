import XCTest

import MetalRuntime

/// Accesses outside objects, through misaligned pointers, past the ends of arrays, and to read-only memory.
final class CheckerBoundsTests: CheckerTestCase {
    private let numbers = TestBuffer((0..<100).map(Float.init), label: "numbers")
    private let out = TestBuffer([Float](repeating: 0, count: 100), label: "out")

    /// The most common mistake: a grid that is rounded up, without a bounds check. 400 bytes end within a page, so
    /// nothing faults.
    func testReadAndWritePastTheEndAtTheLastThreadsOnly() throws {
        func source(_ guardian: String) -> String {
            """
            kernel void k(device const float *numbers [[buffer(0)]], device float *out [[buffer(1)]], \
            uint i [[thread_position_in_grid]]) {
              \(guardian)
              float x = numbers[i];  // READ
              out[i] = x;  // WRITE
            }
            """
        }
        let broken = source("")
        let found = try findings(broken, [numbers, out], grid: 102, group: 34)
        XCTAssertEqual(found.count, 2)
        let read = assertFound(
            found, "out-of-bounds", in: broken, at: "READ", thread: [32, 0, 0], threadgroup: [2, 0, 0],
            buffer: "numbers", offset: 400,
            says: "up to 4 bytes past its end")
        XCTAssertEqual(read?.count, 2)
        assertFound(found, "out-of-bounds", in: broken, at: "WRITE", buffer: "out", offset: 400, says: "writes 4 bytes")
        assertSilent(try findings(source("if (i >= 100) return;"), [numbers, out], grid: 102, group: 34))
    }

    func testOffByOneRead() throws {
        func source(_ step: Int) -> String {
            """
            kernel void k(device const float *numbers [[buffer(0)]], device float *out [[buffer(1)]], \
            uint i [[thread_position_in_grid]]) {
              out[i] = numbers[i + \(step)] - numbers[i];  // HERE
            }
            """
        }
        let found = try findings(source(1), [numbers, out], grid: 100, group: 50)
        XCTAssertEqual(found.count, 1)
        assertFound(
            found, "out-of-bounds", in: source(1), thread: [49, 0, 0], threadgroup: [1, 0, 0], buffer: "numbers",
            offset: 400)
        assertSilent(try findings(source(0), [numbers, out], grid: 100, group: 50))
    }

    func testBeforeTheStart() throws {
        let source = """
            kernel void k(device const float *numbers [[buffer(0)]], device float *out [[buffer(1)]], \
            uint i [[thread_position_in_grid]]) {
              out[i] = numbers[int(i) - 2];  // HERE
            }
            """
        let function = try KernelLibrary(source).function("k")
        // The address is in a guard range.
        let found = try checked { XCTAssertThrowsError(try function.run([numbers, out], grid: 4, group: 4)) }
        assertFound(
            found, "out-of-bounds", in: source, thread: [0, 0, 0], buffer: "numbers",
            says: "8 bytes before its start")
    }

    func testAllocationThatIsNotBound() throws {
        let source = """
            kernel void k(device const float *numbers [[buffer(0)]], device float *out [[buffer(1)]], \
            device const ulong *addresses [[buffer(2)]],
                          uint i [[thread_position_in_grid]]) {
              out[i] = *(device const float *)addresses[0];  // HERE
            }
            """
        let secret = TestBuffer([Float](repeating: 1, count: 64), label: "secret")
        let pointer = TestBuffer([UInt64(UInt(bitPattern: secret.address)) + 16], label: "addresses")
        assertFound(
            try findings(source, [numbers, out, pointer], grid: 4, group: 4), "out-of-bounds", in: source,
            buffer: "secret", offset: 16,
            says: "does not bind")
        let known = TestBuffer([UInt64(UInt(bitPattern: numbers.address)) + 16], label: "addresses")
        assertSilent(try findings(source, [numbers, out, known], grid: 4, group: 4))
    }

    func testMemoryThatWasFreed() throws {
        let source = """
            kernel void k(device const ulong *addresses [[buffer(0)]], device float *out [[buffer(1)]], \
            device const float *bound [[buffer(2)]]) {
              out[0] = *(device const float *)addresses[0];  // HERE
            }
            """
        let function = try KernelLibrary(source).function("k")
        var buffer: TestBuffer? = TestBuffer([Float](repeating: 7, count: 64), label: "stale")
        let pointer = TestBuffer([UInt64(UInt(bitPattern: buffer!.address))], label: "addresses")
        assertSilent(try checked { try function.run([pointer, out, buffer!], grid: 1, group: 1) })
        XCTAssertEqual(out.array(Float.self)[0], 7)
        buffer = nil
        // The pages are unmapped, so the dispatch fails too.
        let found = try checked { XCTAssertThrowsError(try function.run([pointer, out, numbers], grid: 1, group: 1)) }
        assertFound(found, "out-of-bounds", in: source, buffer: "stale", says: "has been freed")
    }

    func testThreadgroupVariable() throws {
        func source(_ step: Int) -> String {
            """
            kernel void k(device const float *numbers [[buffer(0)]], device float *out [[buffer(1)]], \
            uint i [[thread_position_in_threadgroup]]) {
              threadgroup float first[32];
              threadgroup float second[32];
              threadgroup float *p = first;
              p[i + \(step)] = numbers[i];  // HERE
              second[i] = 0;
              threadgroup_barrier(mem_flags::mem_threadgroup);
              out[i] = first[i] + second[i];
            }
            """
        }
        let found = try findings(source(1), [numbers, out], grid: 32, group: 32)
        assertFound(
            found, "out-of-bounds", in: source(1), thread: [31, 0, 0], buffer: "threadgroup variable 'first'",
            offset: 128,
            says: "up to 4 bytes past its end")
        assertSilent(try findings(source(0), [numbers, out], grid: 32, group: 32))
    }

    func testThreadgroupArgument() throws {
        let source = """
            kernel void k(device const float *numbers [[buffer(0)]], device float *out [[buffer(1)]], \
            threadgroup float *scratch [[threadgroup(0)]],
                          uint i [[thread_position_in_threadgroup]]) {
              scratch[i] = numbers[i];  // HERE
              out[i] = scratch[i];
            }
            """
        assertFound(
            try findings(source, [numbers, out], grid: 32, group: 32, lengths: [64]), "out-of-bounds", in: source,
            thread: [16, 0, 0],
            buffer: "threadgroup variable 'scratch'", offset: 64, says: "64 bytes long")
        assertSilent(try findings(source, [numbers, out], grid: 32, group: 32, lengths: [128]))
    }

    // MARK: subscripts of arrays of known size

    func testSubscriptOfAPrivateArray() throws {
        func source(_ count: Int) -> String {
            """
            kernel void k(device const float *numbers [[buffer(0)]], device float *out [[buffer(1)]], \
            uint i [[thread_position_in_grid]]) {
              float mine[8];
              for (uint j = 0; j < 8; j++) mine[j] = numbers[j];
              out[i] = mine[i % \(count)];  // HERE
            }
            """
        }
        let function = try KernelLibrary(source(9)).function("k")
        let found = try checked { XCTAssertThrowsError(try function.run([numbers, out], grid: 9, group: 9)) }
        assertFound(
            found, "out-of-bounds", in: source(9), thread: [8, 0, 0],
            says: "the subscript 8 of an array of type 'float[8]'")
        assertSilent(try findings(source(8), [numbers, out], grid: 9, group: 9))
    }

    /// The write would overwrite other data on the stack, so the dispatch ends there, each time.
    func testAWriteThatLeavesAPrivateArray() throws {
        for index in ["int(i) - 16", "8 + i", "(int)i * 100000 - 50000"] {
            let source = """
                kernel void k(device const float *numbers [[buffer(0)]], device float *out [[buffer(1)]], \
                uint i [[thread_position_in_grid]]) {
                  float mine[8];
                  for (uint j = 0; j < 8; j++) mine[j] = numbers[j];
                  mine[\(index)] = 1;  // HERE
                  out[i] = mine[i % 8];
                }
                """
            let function = try KernelLibrary(source).function("k")
            for _ in 0..<20 {
                let found = try checked { XCTAssertThrowsError(try function.run([numbers, out], grid: 4, group: 4)) }
                let subscripts = ["int(i) - 16": -16, "8 + i": 8, "(int)i * 100000 - 50000": -50000]
                assertFound(
                    found, "out-of-bounds", in: source, thread: [0, 0, 0],
                    says: "the subscript \(subscripts[index]!) of")
            }
        }
    }

    func testSubscriptOfAThreadgroupArray() throws {
        func source(_ column: String) -> String {
            """
            kernel void k(device const float *numbers [[buffer(0)]], device float *out [[buffer(1)]], \
            uint i [[thread_position_in_threadgroup]]) {
              threadgroup float tile[4][8];
              tile[i / 8][i % 8] = numbers[i];
              threadgroup_barrier(mem_flags::mem_threadgroup);
              out[i] = tile[i / 8][\(column)];  // HERE
            }
            """
        }
        // The address is within the variable, in the next row: only the type shows the mistake.
        assertFound(
            try findings(source("i % 8 + (i == 3 ? 7 : 0)"), [numbers, out], grid: 24, group: 24), "out-of-bounds",
            in: source("i % 8 + (i == 3 ? 7 : 0)"), thread: [3, 0, 0], says: "the subscript 10")
        assertSilent(try findings(source("7 - i % 8"), [numbers, out], grid: 24, group: 24))
    }

    // MARK: alignment

    func testMisalignedPointer() throws {
        func source(_ step: Int) -> String {
            """
            kernel void k(device const float *numbers [[buffer(0)]], device float *out [[buffer(1)]], \
            uint i [[thread_position_in_grid]]) {
              device const uchar *bytes = (device const uchar *)numbers + \(step);
              out[i] = ((device const float *)bytes)[i];  // HERE
            }
            """
        }
        assertFound(
            try findings(source(2), [numbers, out], grid: 4, group: 4), "misaligned", in: source(2), thread: [0, 0, 0],
            buffer: "numbers",
            offset: 2, says: "not a multiple of 4")
        assertSilent(try findings(source(4), [numbers, out], grid: 4, group: 4))
    }

    func testMisalignedVector() throws {
        func source(_ step: Int) -> String {
            """
            kernel void k(device const float *numbers [[buffer(0)]], device float *out [[buffer(1)]], \
            uint i [[thread_position_in_grid]]) {
              device const float4 *vectors = (device const float4 *)(numbers + \(step));
              out[i] = vectors[i].x;  // HERE
            }
            """
        }
        assertFound(
            try findings(source(1), [numbers, out], grid: 4, group: 4), "misaligned", in: source(1), thread: [0, 0, 0],
            buffer: "numbers",
            offset: 4, says: "not a multiple of 16")
        assertSilent(try findings(source(4), [numbers, out], grid: 4, group: 4))
    }

    // MARK: constants

    func testWriteToAConstantBuffer() throws {
        let source = """
            kernel void k(constant float *table [[buffer(0)]], device float *out [[buffer(1)]], \
            device const ulong *addresses [[buffer(2)]]) {
              ((device float *)addresses[0])[3] = table[0];  // HERE
            }
            """
        let toTable = TestBuffer([UInt64(UInt(bitPattern: numbers.address))], label: "addresses")
        assertFound(
            try findings(source, [numbers, out, toTable], grid: 1, group: 1), "constant-write", in: source,
            thread: [0, 0, 0],
            buffer: "numbers", offset: 12, says: "'table'")
        let toOut = TestBuffer([UInt64(UInt(bitPattern: out.address))], label: "addresses")
        assertSilent(try findings(source, [numbers, out, toOut], grid: 1, group: 1))
    }
}
