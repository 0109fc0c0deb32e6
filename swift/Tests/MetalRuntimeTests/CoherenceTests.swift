import XCTest

/// `coherent(device)`: where the qualifier is allowed, from which version on, and how the checker judges exchanges
/// between threadgroups with and without it.
final class CoherenceTests: CheckerTestCase {
    private let metal31: UInt32 = 0x30001, metal32: UInt32 = 0x30002

    private func refusal(_ source: String, version: UInt32) -> String {
        do {
            _ = try KernelLibrary(source, version: version)
            return ""
        } catch { return "\(error)" }
    }

    // MARK: the language

    func testItNeedsMetal32() throws {
        let source = "kernel void k(\n    coherent(device) device float *x, device float *y) { y[0] = x[0]; }"
        XCTAssertNoThrow(try KernelLibrary(source, version: metal32))
        XCTAssertNoThrow(try KernelLibrary(source))
        let refused = refusal(source, version: metal31)
        XCTAssertTrue(
            refused.contains("program_source:2:5: error: the 'coherent' qualifier needs Metal 3.2 or newer"), refused)
        XCTAssertFalse(refusal("kernel void k(coherent device float *x) { x[0] = 1; }", version: metal31).isEmpty)
    }

    func testEveryPlaceThatItMayTake() throws {
        let library = try KernelLibrary(
            """
            struct View { coherent(device) device float *data; };
            template <typename P> float first(P data) { return data[0]; }
            float second(coherent(device) const device float *data) { return data[1]; }
            template <typename T> kernel void sum(coherent(device) device T *a [[buffer(0)]], \
            device coherent(device) T *b [[buffer(1)]],
                                                  volatile coherent(system) device float *c [[buffer(2)]], \
            coherent device float4 &d [[buffer(3)]],
                                                  device coherent(device) const float *e [[buffer(4)]], \
            device float *out [[buffer(5)]]) {
              View view = {a};
              coherent(device) device float *local = (coherent(device) device float *)b;
              out[0] = view.data[0] + first(local) + c[0] + d.w + e[0] + second(a);
            }
            template [[host_name("sum_float")]] kernel void sum<float>(coherent(device) device float *, \
            device coherent(device) float *,
                volatile coherent(system) device float *, coherent device float4 &, device coherent(device) const \
            float *, device float *);
            """)
        let values = (1...5).map { TestBuffer([Float](repeating: Float($0), count: 4)) }, out = TestBuffer([Float(0)])
        try library.function("sum_float").run(values + [out], grid: 1, group: 1)
        XCTAssertEqual(out.array(Float.self), [16])
    }

    func testItIsForDeviceMemoryAndTheDevice() {
        for (parameter, message) in [
            ("coherent(device) threadgroup float *x", "to the 'device' address space only"),
            ("coherent(device) constant float *x", "to the 'device' address space only"),
            ("coherent(threadgroup) device float *x", "takes the scope 'device', not 'threadgroup'"),
        ] {
            let text = refusal("kernel void k(\(parameter)) {}", version: metal32)
            XCTAssertTrue(text.contains(message) && text.contains("program_source:1:"), "\(parameter): \(text)")
        }
    }

    func testItMayStillBeAName() throws {
        XCTAssertEqual(
            try integers(
                2,
                "int coherent = 3; out[0] = coherent; out[1] = (coherent) - 1; Held held = {4}; out[1] += "
                    + "held.coherent;",
                declarations: "struct Held { int coherent; };"), [3, 6])
    }

    // MARK: exchanges between threadgroups

    /// The last threadgroup to arrive adds the results of the others.
    private func lastOneSums(_ qualifier: String, _ fence: String) -> String {
        """
        kernel void k(\(qualifier) device float *partial [[buffer(0)]], device float *out [[buffer(1)]], \
        device atomic_uint *arrived [[buffer(2)]],
                      uint i [[thread_position_in_threadgroup]], uint g [[threadgroup_position_in_grid]]) {
          if (i != 0) return;
          partial[g] = g;  // WRITE
          \(fence)
          uint before = atomic_fetch_add_explicit(arrived, 1, memory_order_relaxed);
          if (before != 3) return;
          \(fence)
          float sum = 0;
          for (uint j = 0; j < 4; j++) sum += partial[j];  // READ
          out[0] = sum;
        }
        """
    }

    private func fence(_ order: String = "seq_cst", _ scope: String = "device", flags: String = "mem_device") -> String
    {
        "atomic_thread_fence(mem_flags::\(flags), memory_order_\(order), thread_scope_\(scope));"
    }

    private let partial = TestBuffer([Float](repeating: 0, count: 64), label: "partial")
    private let out = TestBuffer([Float](repeating: 0, count: 64), label: "out")

    private func findings(_ source: String) throws -> [Finding] {
        try findings(source, [partial, out, TestBuffer([UInt32(0)])], grid: 128, group: 32)
    }

    func testCoherentMemoryWithFencesIsOrdered() throws {
        assertSilent(try findings(lastOneSums("coherent(device)", fence())))
        XCTAssertEqual(out.array(Float.self)[0], 0 + 1 + 2 + 3)
        assertSilent(try findings(lastOneSums("coherent(device)", fence("acq_rel"))))
        assertSilent(
            try findings(
                lastOneSums(
                    "volatile coherent(system)",
                    "atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope(3));")))
    }

    /// Fences alone do not make memory coherent: another threadgroup may read old values from its cache.
    func testFencesWithoutCoherenceAreARace() throws {
        let source = lastOneSums("", fence())
        assertFound(
            try findings(source), "device-race", in: source, at: "READ", other: "WRITE", threadgroup: [3, 0, 0],
            otherThreadgroup: [0, 0, 0],
            buffer: "partial", offset: 0, says: "declare the kernel's parameter coherent(device)")
    }

    func testCoherenceWithoutAFenceOverTheDeviceIsARace() throws {
        let useless = [
            "", fence("relaxed"), fence("acquire"), fence("release"), fence("seq_cst", "threadgroup"),
            fence(flags: "mem_threadgroup"),
        ]
        for fence in useless {
            let source = lastOneSums("coherent(device)", fence)
            assertFound(
                try findings(source), "device-race", in: source, at: "READ", other: "WRITE", threadgroup: [3, 0, 0],
                otherThreadgroup: [0, 0, 0], says: "nothing orders the threadgroups of a dispatch")
        }
    }

    /// Of two readers, the first is ordered by its fence and the second is not; the checker must remember the second.
    func testAReaderWithoutAFenceIsSeenBesideOneWithIt() throws {
        func source(_ fenced: String) -> String {
            """
            kernel void k(coherent(device) device float *partial [[buffer(0)]], \
            device float *out [[buffer(1)]], device atomic_uint *arrived [[buffer(2)]],
                          uint i [[thread_position_in_threadgroup]], uint g [[threadgroup_position_in_grid]]) {
              if (i != 0) return;
              if (g == 3) { \(fence()) partial[0] = 1; } // WRITE
              if (g < 3) out[g] = partial[0]; // READ
              if (g \(fenced)) { \(fence()) }
              atomic_fetch_add_explicit(arrived, 1, memory_order_relaxed);
            }
            """
        }
        let broken = source("== 0")
        assertFound(
            try findings(broken), "device-race", in: broken, at: "WRITE", other: "READ", threadgroup: [3, 0, 0],
            otherThreadgroup: [1, 0, 0])
        assertSilent(try findings(source("< 3")))
    }

    /// If one way to access the memory is not coherent, values may be stale.
    func testABufferThatIsAlsoBoundWithoutItIsNotCoherent() throws {
        let source = lastOneSums("coherent(device)", fence()).replacingOccurrences(
            of: "uint i [[", with: "device float *same [[buffer(3)]], uint i [["
        ).replacingOccurrences(of: "sum += partial[j]", with: "sum += same[j]")
        let arrived = TestBuffer([UInt32(0)])
        assertFound(
            try findings(source, [partial, out, arrived, partial], grid: 128, group: 32), "device-race", in: source,
            at: "READ", other: "WRITE")
    }
}
