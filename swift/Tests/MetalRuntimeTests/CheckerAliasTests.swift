import XCTest

/// Two arguments that share memory, one of which is const: the kernel reads through the const one after a write through
/// the other.
final class CheckerAliasTests: CheckerTestCase {
    /// Runs a kernel with `x` and `y` bound to one buffer of 64 floats 0, 1, 2, ….
    private func run(
        _ body: String, x: String = "device const float *x", threads: Int = 8, data: TestBuffer? = nil,
        out: TestBuffer? = nil
    ) throws -> (source: String, findings: [Finding]) {
        let source = """
            struct Pair { float a, b; };
            kernel void k(\(x) [[buffer(0)]], device float *y [[buffer(1)]], device float *out [[buffer(2)]],
                          uint i [[thread_position_in_threadgroup]]) {
            \(body)
            }
            """
        let data = data ?? TestBuffer((0..<64).map { Float($0) }, label: "data")
        let out = out ?? TestBuffer([Float](repeating: 0, count: 64), label: "out")
        return (source, try findings(source, [data, data, out], grid: threads, group: threads))
    }

    // MARK: found

    func testItsOwnWriteAndThatOfAnother() throws {
        let own = try run("  y[i] = 2; // WRITE\n  out[i] = x[i]; // HERE")
        assertFound(
            own.findings, "const-alias", in: own.source, other: "WRITE", thread: [0, 0, 0], otherThread: [0, 0, 0],
            buffer: "data", offset: 0,
            says: "reads bytes 0 to 3 (element 0) of buffer 'data' through the `device const` argument 'x', which "
                + "thread (0, 0, 0) of threadgroup (0, 0, 0) has written through 'y' at line 4; ")
        XCTAssertEqual(own.findings.map(\.kind), ["const-alias"])
        XCTAssertEqual(own.findings.first?.count, 8)
        let other = try run(
            "  y[i] = x[i] + 1; // WRITE\n  threadgroup_barrier(mem_flags::mem_device);\n  out[i] = x[i ^ 1]; // HERE")
        assertFound(
            other.findings, "const-alias", in: other.source, other: "WRITE", thread: [0, 0, 0], otherThread: [1, 0, 0],
            buffer: "data", offset: 4, says: "read it through 'y', or bind other memory")
        XCTAssertEqual(other.findings.map(\.kind), ["const-alias"])
    }

    func testWhateverReads() throws {
        for (x, read) in [
            ("device const float &x", "out[0] = x;"), ("constant float *x", "out[0] = x[i];"),
            ("constant Pair &x", "out[0] = x.b;"), ("device const float4 *x", "out[0] = x[0].y;"),
            ("device const Pair *x", "Pair pair = x[0]; out[0] = pair.a + pair.b;"),
            ("const device uchar *x", "out[0] = x[3];"), ("device const half2 *x", "out[0] = x[1].y;"),
            ("device const atomic_uint *x", "out[0] = atomic_load_explicit(x, memory_order_relaxed);"),
            (
                "device const float *x",
                "simdgroup_float8x8 m; simdgroup_load(m, x, 8); simdgroup_store(m, out, 8); // HERE"
            ),
        ] {
            let threads = read.contains("simdgroup") ? 32 : 1
            let (source, found) = try run(
                "  if (i == 0) { y[0] = 2; y[1] = 3; }\n  simdgroup_barrier(mem_flags::mem_device);\n"
                    + (read.contains("HERE") ? read : "  " + read + " // HERE"),
                x: x, threads: threads)
            XCTAssertEqual(Set(found.map(\.kind)), ["const-alias"], "\(x): \(found)")
            XCTAssertEqual(found.first?.line, sourceLine("HERE", source), x)
            let says = x.hasPrefix("constant") ? "`constant` argument 'x'" : "`device const` argument 'x'"
            XCTAssertTrue(found.first?.message.contains(says) ?? false, "\(found)")
        }
    }

    /// If nothing orders the two accesses, only a race is reported.
    func testARaceIsToldAsOne() throws {
        let (source, found) = try run("  y[i] = 2; // WRITE\n  out[i] = x[i ^ 1]; // HERE")
        XCTAssertFalse(found.isEmpty, source)
        XCTAssertEqual(Set(found.map(\.kind)), ["device-race"], "\(found)")
    }

    // MARK: not found

    func testTwinsAreSilent() throws {
        for (body, x) in [
            ("  out[i] = x[i]; y[i] = out[i] + 1;", "device const float *x"),  // in place, each thread its element
            ("  y[i] = 2; out[i] = y[i];", "device const float *x"),  // through the argument that writes
            ("  y[i] = 2; out[i] = x[i + 8];", "device const float *x"),  // other bytes
            ("  y[i] = 2; out[i] = x[i];", "device float *x"),  // not const
            ("  y[i] = 2; out[i] = x[i];", "coherent(device) device const float *x"),
            (
                "  const float a = x[i ^ 1]; threadgroup_barrier(mem_flags::mem_device); y[i] = a;",
                "device const float *x"
            ),
        ] { assertSilent(try run(body, x: x).findings) }
    }

    /// A dispatch may read, through a const argument, bytes that an earlier dispatch wrote.
    func testTheNextDispatchMayReadIt() throws {
        let source = """
            kernel void k(device const float *x [[buffer(0)]], device float *y [[buffer(1)]],
                          constant uint &from [[buffer(2)]], uint i [[thread_position_in_grid]]) {
              y[from + i + 8] = x[from + i];
            }
            """
        let data = TestBuffer((0..<64).map { Float($0) })
        let function = try KernelLibrary(source).function("k")
        for from in [0, 8] as [UInt32] {
            assertSilent(try checked { try function.run([data, data, TestBuffer([from])], grid: 8, group: 8) })
        }
        XCTAssertEqual(Array(data.array(Float.self)[16..<24]), (0..<8).map { Float($0) })
    }

    // MARK: a view is the memory itself

    /// A random program on a buffer: each step is one thread's read or write of some bytes, followed by a barrier. The
    /// steps determine the findings and every value that is read.
    func testDrawnProgramsAgainstAModel() throws {
        let source = """
            struct Step { uint owner, action, size, at; };
            template <typename T> void read(device const uchar *from, thread uint &sum) {
              const T value = *(device const T *)from; // HERE
              for (uint b = 0; b < sizeof(T); b++) sum = sum * 31 + ((thread const uchar *)&value)[b];
            }
            template <typename T> void write(device uchar *to, uint value) {
              T bytes;
              for (uint b = 0; b < sizeof(T); b++) ((thread uchar *)&bytes)[b] = value + b;
              *(device T *)to = bytes;
            }
            kernel void k(device const uchar *x [[buffer(0)]], device uchar *y [[buffer(1)]],
                          device uint *sums [[buffer(2)]], constant Step *steps [[buffer(3)]],
                          constant uint &count [[buffer(4)]], uint t [[thread_position_in_threadgroup]]) {
              uint sum = 0;
              for (uint s = 0; s < count; s++) {
                const Step step = steps[s];
                if (step.owner == t && step.action == 2) {
                  if (step.size == 1) write<uchar>(y + step.at, s);
                  else if (step.size == 4) write<uint>(y + step.at, s);
                  else write<uint4>(y + step.at, s);
                } else if (step.owner == t) {
                  device const uchar *from = step.action ? y : x;
                  if (step.size == 1) read<uchar>(from + step.at, sum);
                  else if (step.size == 4) read<uint>(from + step.at, sum);
                  else read<uint4>(from + step.at, sum);
                }
                threadgroup_barrier(mem_flags::mem_device);
              }
              sums[t] = sum;
            }
            """
        let function = try KernelLibrary(source).function("k")
        var random = SplitMix64(5417)
        for length in 1...60 {
            let steps = (0..<length % 12 + 1).map { _ -> [UInt32] in
                let size = [1, 4, 16].randomElement(using: &random)!
                let at = Int.random(in: 0..<(64 / size), using: &random) * size
                return [
                    .random(in: 0..<4, using: &random), .random(in: 0..<3, using: &random), UInt32(size), UInt32(at),
                ]
            }
            var bytes = (0..<64).map { UInt8($0) }, sums = [UInt32](repeating: 0, count: 4)
            var written = Set<Int>(), isFound = false
            for (index, step) in steps.enumerated() {
                let range = Int(step[3])..<Int(step[3] + step[2])
                if step[1] == 2 {
                    for (b, at) in range.enumerated() { bytes[at] = UInt8(index + b); written.insert(at) }
                } else {
                    for at in range { sums[Int(step[0])] = sums[Int(step[0])] &* 31 &+ UInt32(bytes[at]) }
                    isFound = isFound || (step[1] == 0 && range.contains { written.contains($0) })
                }
            }
            let data = TestBuffer((0..<64).map { UInt8($0) }), out = TestBuffer([UInt32](repeating: 0, count: 4))
            let found = try checked {
                try function.run(
                    [data, data, out, TestBuffer(steps.flatMap { $0 }), TestBuffer([UInt32(steps.count)])], grid: 4,
                    group: 4)
            }
            XCTAssertEqual(Set(found.map(\.kind)), isFound ? ["const-alias"] : [], "\(steps): \(found)")
            XCTAssertEqual(Set(found.map(\.line)), isFound ? [sourceLine("HERE", source)] : [], "\(steps)")
            XCTAssertEqual(out.array(UInt32.self), sums, "\(steps)")
            XCTAssertEqual(data.array(UInt8.self), bytes, "\(steps)")
        }
    }

    /// A kernel may cast const away: then it writes to the memory itself.
    func testWritesThroughACast() throws {
        let data = TestBuffer([Float](repeating: 1, count: 64)), out = TestBuffer([Float](repeating: 0, count: 64))
        let (_, found) = try run(
            """
              device float *z = (device float *)x;
              z[i] = 100 + i;
              out[i] = y[i] + x[i];
              y[i] = 7;
              out[i + 8] = z[i];
              z[i + 32] = 5;
            """, data: data, out: out)
        assertSilent(found)
        XCTAssertEqual(
            Array(out.array(Float.self)[..<16]), (0..<8).map { Float(200 + 2 * $0) } + Array(repeating: 7, count: 8))
        let values = [(7, 8), (1, 24), (5, 8), (1, 24)] as [(Float, Int)]
        XCTAssertEqual(data.array(Float.self), values.flatMap { Array(repeating: $0.0, count: $0.1) })
    }

    func testWhatElseIsFoundNamesTheMemoryItself() throws {
        let past = try run("  y[i] = 1; out[i] = x[64 + i]; // HERE", threads: 1)
        assertFound(past.findings, "out-of-bounds", in: past.source, buffer: "data", offset: 256)
        XCTAssertThrowsError(try run("  y[i] = 1; out[i] = x[100000000 + i];", threads: 1)) {
            XCTAssertTrue("\($0)".contains("bytes past the end of buffer '"), "\($0)")
        }
        _ = takeFindings()
        let far = TestBuffer(length: 256, label: "data"), out = TestBuffer([Float(0)])
        let source = """
            kernel void k(device const float *x [[buffer(0)]], device float *y [[buffer(1)]],
                          device float *out [[buffer(2)]]) {
              y[0] = 1;
              out[0] = x[1] + 1; // HERE
            }
            """
        assertFound(
            try findings(source, [far, far, out], grid: 1, group: 1), "uninitialized-read", in: source, buffer: "data",
            offset: 4)
    }
}
