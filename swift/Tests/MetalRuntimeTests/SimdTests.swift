import Foundation
import XCTest

/// SIMD-group and quad-group functions compared with LaneOracle.swift: with all lanes, at the end of a threadgroup, in
/// divergent branches, and after threads have returned; and what the checker reports for lanes and parameters that the
/// specification leaves undefined.
final class SimdTests: XCTestCase {
    private static let threads = 64
    private static let operands = (0..<threads).map { Int32(($0 * 37 + 11) % 101) }

    private static func source(_ cases: [LaneCase], width: Int, guarded: String) -> String {
        let stores = cases.enumerated().map { "    out[i * \(cases.count) + \($0)] = \($1.expression);" }
        return """
            kernel void lanes(device const int *in [[buffer(0)]], device int *out [[buffer(1)]], \
            constant uint &active [[buffer(2)]],
                              uint lane [[thread_index_in_simdgroup]], uint i [[thread_position_in_grid]]) {
              int x = in[i];
              uint position = lane % \(width);
              \(guarded) {
            \(stores.joined(separator: "\n"))
              }
            }
            """
    }

    /// Runs every case with the lanes in `active` of each SIMD-group of `count` threads, and compares lane by lane.
    private func check(
        _ cases: [LaneCase], width: Int, in function: KernelFunction, count: Int, active: UInt32,
        file: StaticString = #filePath, line: UInt = #line
    ) throws {
        let out = TestBuffer([Int32](repeating: 7_777, count: Self.threads * cases.count), label: "out")
        try function.run(
            [TestBuffer(Self.operands, label: "in"), out, TestBuffer([active], label: "active")], grid: count,
            group: count)
        let results = out.array(Int32.self)
        for thread in 0..<count {
            let lane = thread % 32
            let first = thread - lane % width
            let inside = (first..<min(first + width, count)).filter { active >> UInt32($0 % 32) & 1 == 1 }
            let group = LaneGroup(
                width: width,
                operands: Dictionary(uniqueKeysWithValues: inside.map { ($0 - first, Int(Self.operands[$0])) }))
            for (index, lanes) in cases.enumerated() {
                let isActive = active >> UInt32(lane) & 1 == 1
                let expected =
                    isActive ? lanes.expected(group, lane % width).map { Int32(truncatingIfNeeded: $0) } ?? -1 : 7_777
                let got = results[thread * cases.count + index]
                XCTAssertEqual(
                    got, expected,
                    "\(lanes.expression), thread \(thread) of \(count), active \(String(active, radix: 2))", file: file,
                    line: line)
            }
        }
    }

    private func checkEverySetOfLanes(_ group: String, width: Int, guarded: String) throws {
        let cases = laneCases(group, width: width)
        let function = try KernelLibrary(Self.source(cases, width: width, guarded: guarded)).function("lanes")
        for seed in ["0", "1", "99"] {
            try withSetting("seed", seed) {
                try check(cases, width: width, in: function, count: 64, active: .max)
                try check(cases, width: width, in: function, count: 45, active: .max)
                try check(cases, width: width, in: function, count: 64, active: 0x7ff)
                try check(cases, width: width, in: function, count: 64, active: 0xa5a5_0f31)
                try check(cases, width: width, in: function, count: 1, active: .max)
            }
        }
        _ = takeFindings()
    }

    func testSimdFunctionsInABranch() throws {
        try checkEverySetOfLanes("simd", width: 32, guarded: "if (active >> lane & 1)")
    }

    func testSimdFunctionsAfterThreadsThatReturned() throws {
        try checkEverySetOfLanes("simd", width: 32, guarded: "if (!(active >> lane & 1)) return;")
    }

    func testQuadFunctionsInABranch() throws {
        try checkEverySetOfLanes("quad", width: 4, guarded: "if (active >> lane & 1)")
    }

    func testTheOtherBranchHasItsOwnLanes() throws {
        let function = try KernelLibrary(
            """
            kernel void branches(device int *out [[buffer(0)]], uint lane [[thread_index_in_simdgroup]]) {
              if (lane < 11) out[lane] = simd_sum(1); else out[lane] = simd_sum(100);
            }
            """
        ).function("branches")
        let out = TestBuffer([Int32](repeating: 0, count: 32))
        try function.run([out], grid: 32, group: 32)
        XCTAssertEqual(out.array(Int32.self), (0..<32).map { $0 < 11 ? 11 : 2100 })
    }

    func testALoopThatLanesLeaveOneByOne() throws {
        let function = try KernelLibrary(
            """
            kernel void leaving(device int *out [[buffer(0)]], uint lane [[thread_index_in_simdgroup]]) {
              int total = 0;
              for (uint round = 0; round <= lane; ++round) total += simd_sum(1);
              out[lane] = total + 1000 * simd_sum(1);
            }
            """
        ).function("leaving")
        let out = TestBuffer([Int32](repeating: 0, count: 32))
        try function.run([out], grid: 32, group: 32)
        let expected = (0..<32).map { lane -> Int32 in
            let rounds = (0...lane).map { Int32(32 - $0) }
            return rounds.reduce(32_000, +)
        }
        XCTAssertEqual(out.array(Int32.self), expected)
    }

    /// Each element type and vector length that MSL lists, in a reduction, a prefix sum, a permutation and a fill.
    func testEveryElementTypeAndLength() throws {
        let types = ["char", "uchar", "short", "ushort", "int", "uint", "half", "float"]
        var stores: [String] = []
        for type in types {
            for length in 1...4 {
                let name = length == 1 ? type : type + "\(length)"
                let ramp = (1...length).map { "\(type)(\($0))" }.joined(separator: ", ")
                let last = length == 1 ? "" : "[\(length - 1)]"
                for call in [
                    "simd_sum(v)", "simd_prefix_exclusive_sum(v)", "simd_shuffle_xor(v, 1)",
                    "simd_shuffle_and_fill_up(v, \(name)(9), 1)",
                ] {
                    stores.append(
                        "{ \(name) v = \(name)(\(ramp)) * \(type)(lane % 2); out[i++] = float((\(call))\(last)); }")
                }
            }
        }
        let function = try KernelLibrary(
            """
            kernel void types(device float *out [[buffer(0)]], uint lane [[thread_index_in_simdgroup]]) {
              uint i = lane * \(stores.count);
            \(stores.joined(separator: "\n"))
            }
            """
        ).function("types")
        let out = TestBuffer([Float](repeating: -1, count: 32 * stores.count))
        try function.run([out], grid: 32, group: 32)
        var expected: [Float] = []
        for lane in 0..<32 {
            for _ in types {
                for length in 1...4 {
                    let left = lane == 0 ? 9 : (lane - 1) % 2 * length
                    expected += [16 * length, lane / 2 * length, (lane ^ 1) % 2 * length, left].map { Float($0) }
                }
            }
        }
        XCTAssertEqual(out.array(Float.self), expected)
    }

    /// Under the checker, which instruments each load and store, a vector's components equal the scalar results, and
    /// nothing is found.
    func testVectorsUnderTheChecker() throws {
        let cases = laneCases("simd", width: 32).filter(\.takesVectors)
        for length in 2...4 {
            try checkVectors(of: "int", length: length, cases, width: 32)
            for type in ["float", "half"] {
                try checkVectors(of: type, length: length, cases.filter { !$0.isOfBits }, width: 32)
            }
        }
        try checkVectors(of: "int", length: 3, laneCases("quad", width: 4).filter(\.takesVectors), width: 4)
    }

    /// Component c of a lane's vector is its operand plus c. Sums of 32 such operands are integers that half represents
    /// exactly.
    private func checkVectors(of type: String, length: Int, _ cases: [LaneCase], width: Int) throws {
        let name = "\(type)\(length)"
        let stores = cases.enumerated().map { index, lanes in
            "{ \(name) y = \(lanes.vectorExpression(of: name)); for (uint c = 0; c < \(length); c++) out[(i * "
                + "\(cases.count) + \(index)) * \(length) + c] = int(y[c]); }"
        }
        let function = try KernelLibrary(
            """
            kernel void vectors(device const int *in [[buffer(0)]], device int *out [[buffer(1)]], \
            uint i [[thread_position_in_grid]]) {
              \(name) x;
              for (uint c = 0; c < \(length); c++) x[c] = \(type)(in[i] + int(c));
              uint position = i % \(width);
              \(stores.joined(separator: "\n  "))
            }
            """
        ).function("vectors")
        let operands = Self.operands.prefix(32).map { $0 % 61 }
        let out = TestBuffer(length: 32 * cases.count * length * 4, label: "out")
        _ = takeFindings()
        try withSetting("check", "1") {
            _ = try function.run([TestBuffer(operands, label: "in"), out], grid: 32, group: 32)
        }
        XCTAssertEqual(takeFindings().map(\.description), [], name)
        let results = out.array(Int32.self)
        for thread in 0..<32 {
            for (index, lanes) in cases.enumerated() {
                for component in 0..<length {
                    let first = thread - thread % width
                    let inside = (0..<width).map { ($0, Int(operands[first + $0]) + component) }
                    let expected = lanes.expected(
                        LaneGroup(width: width, operands: Dictionary(uniqueKeysWithValues: inside)), thread % width)!
                    let got = Int(results[(thread * cases.count + index) * length + component])
                    XCTAssertEqual(
                        got, expected, "\(lanes.expression) of \(name), thread \(thread), component \(component)")
                }
            }
        }
    }

    /// The checker still finds a program's mistakes with vectors that it exchanges.
    func testMistakesBesideExchangesOfVectorsAreFound() throws {
        func findings(_ statement: String) throws -> [Finding] {
            let function = try KernelLibrary(
                """
                kernel void mistake(device float2 *out [[buffer(0)]], uint lane [[thread_index_in_simdgroup]]) {
                  float2 x = float2(lane, 1);
                  \(statement)
                }
                """
            ).function("mistake")
            _ = takeFindings()
            try withSetting("check", "1") {
                _ = try function.run([TestBuffer(length: 256, label: "out")], grid: 32, group: 32)
            }
            return takeFindings()
        }
        XCTAssertEqual(try findings("out[lane] = simd_shuffle_xor(x, 1);").map(\.description), [])
        let beyond = try findings("out[lane + 1] = simd_shuffle_xor(x, 1);")
        XCTAssertEqual(beyond.map(\.kind), ["out-of-bounds"])
        XCTAssertEqual(beyond.first?.line, 3, "\(beyond)")
        XCTAssertEqual(
            try findings("x = simd_sum(x); out[lane] = x; out[31] = x + float2(lane);").map(\.kind), ["device-race"])
        XCTAssertEqual(try findings("if (lane < 11) out[lane] = simd_shuffle(x, 20);").map(\.kind), ["inactive-lane"])
    }

    /// Programs that support an additional element type use the compiler's internal names.
    func testTheCompilersOwnNames() throws {
        let function = try KernelLibrary(
            """
            struct bits16 { ushort bits; };
            namespace metal {
            METAL_FUNC bits16 simd_shuffle_down(bits16 data, ushort delta) { return \
            bits16{__metal_simd_shuffle_down(data.bits, delta)}; }
            METAL_FUNC bits16 simd_sum(bits16 data) { return bits16{ushort(__metal_simd_sum(float(data.bits)))}; }
            METAL_FUNC bits16 simd_shuffle_and_fill_up(bits16 data, bits16 filling, ushort delta) {
              return bits16{__metal_simd_shuffle_and_fill_up(data.bits, filling.bits, delta, \
            __metal_get_simdgroup_size(ushort()))};
            }
            }
            template <typename T, bool = __is_valid_simdgroup_type<T>::value> struct way { static uint number() { \
            return 1; } };
            template <typename T> struct way<T, false> { static uint number() { return 2; } };
            kernel void names(device uint *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
              ushort lane = __metal_get_thread_index_in_simdgroup(ushort());
              bits16 p = {lane};
              out[4 * i] = simd_shuffle_down(p, 1).bits;
              out[4 * i + 1] = simd_sum(p).bits;
              out[4 * i + 2] = simd_shuffle_and_fill_up(p, bits16{99}, 1).bits;
              out[4 * i + 3] = way<float4>::number() * 100 + way<long>::number() * 10 + way<bool>::number();
            }
            """
        ).function("names")
        let out = TestBuffer([UInt32](repeating: 0, count: 128))
        try function.run([out], grid: 32, group: 32)
        let expected = (0..<32).flatMap { (lane: UInt32) -> [UInt32] in
            [min(lane + 1, 31), 496, lane == 0 ? 99 : lane - 1, 122]
        }
        XCTAssertEqual(out.array(UInt32.self), expected)
    }

    /// The order of a reduction is unspecified: different seeds give different orders, which float32 shows; seed 0
    /// gives the ascending order.
    func testTheOrderOfAReductionFollowsTheSeed() throws {
        let function = try KernelLibrary(
            """
            kernel void order(device const float *in [[buffer(0)]], device float *out [[buffer(1)]], \
            uint i [[thread_position_in_grid]]) {
              out[i] = simd_sum(in[i]);
            }
            """
        ).function("order")
        let values = (0..<32).map { (index: Int) -> Float in exp(Float(index) / 3) * (1.5 + sin(Float(index))) }
        var sums = Set<Float>()
        for seed in 0..<20 {
            let out = TestBuffer([Float](repeating: 0, count: 32))
            try withSetting("seed", "\(seed)") { _ = try function.run([TestBuffer(values), out], grid: 32, group: 32) }
            let results = out.array(Float.self)
            XCTAssertEqual(Set(results).count, 1, "one sum for all lanes")
            sums.insert(results[0])
            let exact = values.map { Double($0) }.reduce(0, +)
            XCTAssertEqual(Double(results[0]), exact, accuracy: 32 * 6e-8 * exact)
            if seed == 0 { XCTAssertEqual(results[0], values.reduce(0, +)) }
        }
        XCTAssertGreaterThan(sums.count, 1)
    }

    // MARK: - undefined uses

    private struct Suspect { let kind: String?, body: String, threads: Int }

    private func suspect(_ kind: String?, _ body: String, threads: Int = 32) -> Suspect {
        Suspect(kind: kind, body: body, threads: threads)
    }

    /// Each body is in a separate kernel of five lines; its findings must all be of the given kind, in the body's line.
    private func check(_ suspects: [Suspect], file: StaticString = #filePath, line: UInt = #line) throws {
        let kernels = suspects.enumerated().map { index, suspect in
            """
            kernel void suspect\(index)(device int *out [[buffer(0)]], uint lane [[thread_index_in_simdgroup]]) {
              int x = int(lane);
              \(suspect.body)
              out[lane] = x;
            }
            """
        }
        let library = try KernelLibrary(kernels.joined(separator: "\n"))
        _ = takeFindings()
        for (index, suspect) in suspects.enumerated() {
            let function = try library.function("suspect\(index)")
            let out = TestBuffer([Int32](repeating: 0, count: 32))
            try withSetting("check", "1") { _ = try function.run([out], grid: suspect.threads, group: suspect.threads) }
            let found = takeFindings()
            XCTAssertEqual(
                Set(found.map(\.kind)), suspect.kind.map { [$0] } ?? [], "\(suspect.body): \(found)", file: file,
                line: line)
            XCTAssertTrue(
                found.allSatisfy { $0.line == 5 * index + 3 && $0.kernel == "suspect\(index)" }, "\(found)", file: file,
                line: line)
        }
    }

    func testReadingAnInactiveLaneIsFound() throws {
        try check([
            suspect("inactive-lane", "if (lane < 11) x = simd_shuffle(x, 20);"),
            suspect(nil, "x = simd_shuffle(x, 20);"),
            suspect("inactive-lane", "x = simd_shuffle_down(x, 4);", threads: 20),
            suspect(nil, "x = simd_shuffle_up(x, 4);", threads: 20),
            suspect("inactive-lane", "if (lane % 4 == 0) x = quad_broadcast(x, 1);"),
            suspect(nil, "if (lane % 4 == 0) x = quad_broadcast(x, 0);"),
            suspect("inactive-lane", "x = simd_shuffle(x, 32);"),
        ])
    }

    func testAParameterThatMustBeUniformIsFound() throws {
        try check([
            suspect("nonuniform-argument", "x = simd_shuffle_down(x, lane % 2);"),
            suspect(nil, "x = simd_shuffle_down(x, 1);"),
            suspect("nonuniform-argument", "x = simd_broadcast(x, lane / 16);"),
            suspect(nil, "x = simd_shuffle(x, lane / 16);"),
            suspect("nonuniform-argument", "x = simd_shuffle_and_fill_up(x, 0, 1, lane < 16 ? 8 : 16);"),
            suspect(nil, "x = quad_shuffle_xor(x, 1 + lane / 4 % 2);"),
            suspect("nonuniform-argument", "x = quad_shuffle_xor(x, 1 + lane % 2);"),
        ])
    }

    // MARK: - types

    private func expectRefused(_ body: String, _ message: String, file: StaticString = #filePath, line: UInt = #line) {
        let source =
            "kernel void refused(device uint *out [[buffer(0)]], uint lane [[thread_index_in_simdgroup]]) {\n  "
            + "\(body)\n}"
        XCTAssertThrowsError(try KernelLibrary(source), body, file: file, line: line) {
            XCTAssertTrue(
                "\($0)".contains(message) && "\($0)".contains("program_source:2:"), "\($0)", file: file, line: line)
        }
    }

    func testTypesThatMetalRefusesDoNotCompile() throws {
        expectRefused("out[0] = simd_sum(ulong(lane));", "no matching function for call to 'simd_sum'")
        expectRefused("out[0] = simd_shuffle(bfloat(lane), 1);", "no matching function for call to 'simd_shuffle'")
        expectRefused("out[0] = simd_broadcast(lane > 1, 1);", "no matching function for call to 'simd_broadcast'")
        expectRefused("out[0] = simd_xor(float(lane));", "no matching function for call to 'simd_xor'")
        expectRefused("out[0] = quad_and(half(lane));", "no matching function for call to 'quad_and'")
        expectRefused("uint ballot = simd_ballot(lane > 1);", "simd_vote")
    }
}
