import XCTest

import MetalRuntime

/// Reads of uninitialized memory.
final class CheckerInitializationTests: CheckerTestCase {
    private let out = TestBuffer([Float](repeating: 0, count: 64), label: "out")

    private let copy = """
        kernel void k(device const float *fresh [[buffer(0)]], device float *out [[buffer(1)]], \
        uint i [[thread_position_in_grid]]) {
          out[i] = fresh[i] + 1;  // HERE
        }
        """

    func testDeviceMemory() throws {
        let fresh = TestBuffer(length: 256, label: "fresh")
        fresh.address.storeBytes(of: 1, as: Float.self)  // like the CPU through contents(), without a notification
        assertFound(
            try findings(copy, [fresh, out], grid: 64, group: 64), "uninitialized-read", in: copy, thread: [1, 0, 0],
            buffer: "fresh", offset: 4,
            says: "nothing has written")
        fresh.address.initializeMemory(as: Float.self, repeating: 1, count: 64)
        assertSilent(try findings(copy, [fresh, out], grid: 64, group: 64))
    }

    /// Values that the checker would mistake for poison if it were chosen carelessly.
    func testValuesOfAllOnesAreValues() throws {
        let source = copy.replacingOccurrences(of: "float", with: "int")
        let fresh = TestBuffer(length: 256, label: "fresh")
        fresh.address.initializeMemory(as: Int32.self, repeating: -1, count: 64)
        assertSilent(try findings(source, [fresh, out], grid: 64, group: 64))
    }

    func testWhatTheHostWroteByAPICallAndWhatItForgot() throws {
        let fresh = TestBuffer(length: 256, label: "fresh")
        mrt_memory_mark_written(fresh.address, 128)  // a fill with any value, even the poison pattern
        let found = try findings(copy, [fresh, out], grid: 64, group: 64)
        assertFound(found, "uninitialized-read", in: copy, thread: [32, 0, 0], offset: 128)
        XCTAssertEqual(found.first?.count, 32)
        mrt_memory_mark_fresh(fresh.address, 128)
        assertFound(
            try findings(copy, [fresh, out], grid: 64, group: 64), "uninitialized-read", in: copy, thread: [0, 0, 0],
            offset: 0)
    }

    /// A blit copies the initialization state together with the bytes.
    func testCopiesCarryTheState() throws {
        let fresh = TestBuffer(length: 256, label: "source"), target = TestBuffer(length: 256, label: "target")
        mrt_memory_mark_written(fresh.address, 100)
        target.address.copyMemory(from: fresh.address, byteCount: 256)
        mrt_memory_mark_copied(target.address, fresh.address, 256)
        assertFound(
            try findings(copy, [target, out], grid: 64, group: 64), "uninitialized-read", in: copy, thread: [25, 0, 0],
            buffer: "target", offset: 100)
    }

    func testWrittenByAnEarlierDispatch() throws {
        let library = try KernelLibrary(
            copy + "\n" + """
                kernel void fill(device float *fresh [[buffer(0)]], \
                uint i [[thread_position_in_grid]]) { fresh[i] = i; }
                """)
        let fresh = TestBuffer(length: 256, label: "fresh")
        let fill = try library.function("fill"), read = try library.function("k")
        assertSilent(
            try checked {
                try fill.run([fresh], grid: 64, group: 64)
                try read.run([fresh, out], grid: 64, group: 64)
            })
    }

    func testThreadgroupMemory() throws {
        func source(_ limit: Int) -> String {
            """
            kernel void k(device const float *fresh [[buffer(0)]], device float *out [[buffer(1)]], \
            uint i [[thread_position_in_threadgroup]]) {
              threadgroup float tile[32];
              if (i < \(limit)) tile[i] = fresh[i];
              threadgroup_barrier(mem_flags::mem_threadgroup);
              out[i] = 2 * tile[31 - i] + 1;  // HERE
            }
            """
        }
        let numbers = TestBuffer([Float](repeating: 1, count: 64))
        assertFound(
            try findings(source(31), [numbers, out], grid: 32, group: 32), "uninitialized-read", in: source(31),
            thread: [0, 0, 0],
            threadgroup: [0, 0, 0], buffer: "threadgroup variable 'tile'", offset: 124,
            says: "threadgroup memory is not zeroed")
        assertSilent(try findings(source(32), [numbers, out], grid: 32, group: 32))
    }

    /// Values written by one threadgroup are not available to the next.
    func testThreadgroupMemoryOfAnEarlierThreadgroup() throws {
        let source = """
            kernel void k(device const float *fresh [[buffer(0)]], device float *out [[buffer(1)]], \
            uint g [[threadgroup_position_in_grid]]) {
              threadgroup float tile[1];
              if (g == 0) tile[0] = 1;
              out[g] = 2 * tile[0] + 1;  // HERE
            }
            """
        assertFound(
            try findings(source, [out, out], grid: 2, group: 1), "uninitialized-read", in: source,
            threadgroup: [1, 0, 0], offset: 0)
    }

    private let record = """
        struct Record { uint a; uchar b; uint c; uint more[9]; };
        kernel void k(device Record *records [[buffer(0)]], device float *out [[buffer(1)]], \
        uint i [[thread_position_in_grid]]) {
          records[i].a = 1;
          records[i].b = 2;
          for (uint j = 0; j < 9; j++) records[i].more[j] = j;
          FIELD
          records[i + 4] = records[i];
          out[i] = records[i + 4].c;  // HERE
        }
        """

    /// The 3 bytes after `b` are padding: a copy of the struct reads them, which is allowed.
    func testPaddingIsNotReportedButAFieldIs() throws {
        let whole = record.replacingOccurrences(of: "FIELD", with: "records[i].c = 3;")
        assertSilent(try findings(whole, [TestBuffer(length: 384, label: "records"), out], grid: 4, group: 4))
        let partial = record.replacingOccurrences(of: "FIELD", with: "")
        let found = try findings(partial, [TestBuffer(length: 384, label: "records"), out], grid: 4, group: 4)
        XCTAssertEqual(found.count, 1)
        assertFound(found, "uninitialized-read", in: partial, thread: [0, 0, 0], buffer: "records", offset: 4 * 48 + 8)
    }

    func testUnionsAndPackedVectors() throws {
        assertSilent(
            try findings(
                """
                union Bits { float f; uint u; uchar4 bytes; };
                kernel void k(device packed_float3 *points [[buffer(0)]], device float *out [[buffer(1)]], \
                uint i [[thread_position_in_grid]]) {
                  points[i] = packed_float3(i, 2, 3);
                  float3 p = points[i];
                  Bits bits;
                  bits.f = p.x;
                  bits.bytes.x = uchar(i);
                  out[i] = float(bits.u) + p.z;
                }
                """, [TestBuffer(length: 768, label: "points"), out], grid: 64, group: 33))
    }

    /// The effect of a value determines the severity. Here, every result is independent of the value, or is the value.
    private let harmless = [
        "y[i] = x[i];", "as_char(y)[31 - i] = as_char(x)[i];", "as_half(y)[i + 7] = as_half(x)[i];",
        "as_vector(y)[i] = as_vector(x)[i].yxwz;", "float v = x[i]; y[i] = i < 16 ? float(i) : v;",
        "y[i] = select(x[i], 1.0f, i < 32);", "y[i] = (as_type<uint>(x[i]) & set.y) + i;",
        "y[i] = simd_shuffle(x[i], 31 - i);", "if (x[i] > 1.0f) y[i] = 2; else y[i] = 2;",
        "tile[i] = x[i]; threadgroup_barrier(mem_flags::mem_threadgroup); y[i] = tile[31 - i];",
    ]

    /// Here, some result depends on the value.
    private let harmful = [
        "y[i] = x[i] + 1;", "y[i] = -x[i];", "y[i] = as_type<uint>(x[i]) >> 1;", "if (x[i] > 1.0f) y[i] = 2;",
        "y[as_type<uint>(x[i]) & 31] = 1;", "y[as_type<uint>(x[i])] = 1;", "y[i] = simd_sum(x[i]);",
        "y[i] = x[i] * float(set.y);", "uint n = as_type<uint>(x[i]) >> 24; while (n-- > 0) y[i] += 1;",
    ]

    func testAValueThatIsMovedOnOrLeftOut() throws {
        let cases = (harmless + harmful).enumerated().map { "case \($0): { \($1) break; }  // CASE\($0)" }
        let source = """
            device uchar *as_char(device float *x) { return (device uchar *)x; }
            device const uchar *as_char(device const float *x) { return (device const uchar *)x; }
            device half *as_half(device float *x) { return (device half *)x; }
            device const half *as_half(device const float *x) { return (device const half *)x; }
            device float4 *as_vector(device float *x) { return (device float4 *)x; }
            device const float4 *as_vector(device const float *x) { return (device const float4 *)x; }
            kernel void k(device const float *x [[buffer(0)]], device float *y [[buffer(1)]], \
            constant uint2 &set [[buffer(2)]], uint i [[thread_position_in_grid]]) {
              threadgroup float tile[32];
              switch (set.x) {
              \(cases.joined(separator: "\n"))
              }
            }
            """
        let function = try KernelLibrary(source).function("k")
        for index in cases.indices {
            let fresh = TestBuffer(length: 512, label: "fresh"), set = TestBuffer([UInt32(index), 0])
            let out = TestBuffer([Float](repeating: 3, count: 128), label: "out")
            let found = try withSetting("poison", "auto") {
                try checked { try function.run([fresh, out, set], grid: 32, group: 32) }
            }
            let isNote = index < harmless.count
            assertFound(
                found, "uninitialized-read", in: source, at: "CASE\(index)", buffer: "fresh",
                severity: isNote ? "note" : "error",
                says: isNote ? "moved on as it is, or left out" : "nothing has written")
        }
    }

    /// Threadgroup memory has arbitrary contents: its values may be ignored, but not copied to a result.
    func testAValueOfThreadgroupMemory() throws {
        for (statement, severity) in [("y[i] = v;", "error"), ("y[i] = i < 32 ? float(i) : v;", "note")] {
            let source = """
                kernel void k(device float *y [[buffer(0)]], uint i [[thread_position_in_threadgroup]]) {
                  threadgroup float tile[32];
                  threadgroup float *p = tile;
                  volatile float v = p[i];  // HERE
                  \(statement)
                }
                """
            assertFound(
                try findings(source, [out], grid: 32, group: 32), "uninitialized-read", in: source,
                buffer: "threadgroup variable 'tile'", severity: severity,
                says: severity == "note" ? "here the value is left out" : "threadgroup memory is not zeroed")
        }
    }

    /// Two uninitialized values hide each other: 0 * x is 0 and NaN * x is NaN for every x.
    func testTwoValuesInOneResult() throws {
        var random = SplitMix64(3301)
        let results = [
            "a * b", "fma(a, b, s)", "a - b", "(a - b) * 2", "a * b + b * a", "max(a, b) * b", "a == b ? a : s",
            "a / b", "a * a - b * b",
        ]
        let ignored = ["i < 64 ? s : a * b", "select(a + b, s, i < 64)", "(i >= 64 ? a : s) + (i >= 64 ? b : s)"]
        for round in 0..<24 {
            let isUsed = round % 3 != 2
            let result = (isUsed ? results : ignored).randomElement(using: &random)!
            let type = ["float", "half"].randomElement(using: &random)!
            let written = Int.random(in: 0..<40, using: &random)
            let space = Bool.random(using: &random) ? "threadgroup" : "device"
            let isThreadgroup = space == "threadgroup"
            let source = """
                kernel void k(device \(type) *x [[buffer(0)]], device \(type) *y [[buffer(1)]], \
                device \(type) *out [[buffer(2)]], uint i [[thread_position_in_threadgroup]]) {
                  threadgroup \(type) first[64], second[64];
                  \(space) \(type) *p = \(isThreadgroup ? "first" : "x"), *q = \(isThreadgroup ? "second" : "y");
                  if (i < \(written)) { p[i] = \(type)(i); q[i] = \(type)(1); }
                  threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
                  \(type) s = \(type)(i);
                  for (uint k = 0; k < 64; k++) {
                    \(type) a = p[k];
                    \(type) b = q[k];
                    s += \(type)(\(result));
                  }
                  out[i] = s;
                }
                """
            let x = TestBuffer(length: 512, label: "x"), y = TestBuffer(length: 512, label: "y")
            let target = TestBuffer(length: 512, label: "out")
            let found = try withSetting("poison", "auto") {
                try findings(source, [x, y, target], grid: 64, group: 64)
            }
            XCTAssertEqual(Set(found.map(\.kind)), ["uninitialized-read"], source)
            let severities = Set(found.map(\.severity))
            let isRight = isUsed ? severities.contains("error") : severities == ["note"]
            XCTAssertTrue(isRight, "\(severities) for\n\(source)")
        }
    }

    /// Each read is judged separately, and the trials leave nothing behind in memory.
    func testSeveralValuesInOneDispatch() throws {
        let source = """
            kernel void k(device const float *fresh [[buffer(0)]], device float *out [[buffer(1)]], \
            uint i [[thread_position_in_grid]]) {
              float v = fresh[i];  // MOVED
              float w = fresh[i + 32];  // HERE
              out[i] = v;
              out[i + 32] = w * w + 2;
            }
            """
        let fresh = TestBuffer(length: 256, label: "fresh")
        let found = try withSetting("poison", "auto") { try findings(source, [fresh, out], grid: 32, group: 32) }
        XCTAssertEqual(found.map(\.severity), ["note", "error"])
        assertFound(found, "uninitialized-read", in: source, at: "MOVED", severity: "note")
        assertFound(found, "uninitialized-read", in: source)
        XCTAssertEqual(out.array(Float.self), (0..<64).map { $0 < 32 ? 0 : 2 })
    }

    func testAVariableOfAThread() throws {
        func source(_ declaration: String) -> String {
            """
            template <typename T> T add(device const T *x, uint n) {
              \(declaration)
              for (uint j = 0; j < n; j++) sum += x[j];  // HERE
              return sum;
            }
            kernel void k(device const float *x [[buffer(0)]], device float *y [[buffer(1)]]) {
              y[0] = add<float>(x, 4);
            }
            """
        }
        func found(_ source: String) throws -> [Finding] {
            try checked { _ = try KernelLibrary(source).function("k") }
        }
        for _ in 0..<2 {  // the second time from the record of the first
            let findings = try found(source("T sum;"))
            XCTAssertEqual(findings.map(\.kind), ["uninitialized-read"])
            XCTAssertEqual(findings.first?.line, sourceLine("HERE", source("T sum;")))
            XCTAssertTrue(findings.first?.message.contains("variable 'sum' is read before") ?? false)
        }
        assertSilent(try found(source("T sum = 0;")))
    }
}
