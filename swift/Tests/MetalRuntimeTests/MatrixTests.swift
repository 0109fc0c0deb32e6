import Foundation
import XCTest

/// simdgroup_matrix compared with products in float64. The operands are multiples of 1/8 below 8, which every element
/// type represents exactly, and their products and sums are exact in float32. So a result is the exact one, rounded
/// once to its type.
final class MatrixTests: XCTestCase {
    enum Element: String, CaseIterable {
        case float, half, bfloat

        func rounded(_ value: Double) -> Double {
            switch self {
            case .float: return Double(Float(value))
            case .half: return Double(Float16(value))
            case .bfloat:
                let bits = Float(value).bitPattern
                return Double(Float(bitPattern: (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff_0000))
            }
        }

        func buffer(_ values: [Double], label: String) -> TestBuffer {
            switch self {
            case .float: return TestBuffer(values.map { Float($0) }, label: label)
            case .half: return TestBuffer(values.map { Float16($0) }, label: label)
            case .bfloat: return TestBuffer(values.map { UInt16(Float($0).bitPattern >> 16) }, label: label)
            }
        }

        func values(_ buffer: TestBuffer) -> [Double] {
            switch self {
            case .float: return buffer.array(Float.self).map { Double($0) }
            case .half: return buffer.array(Float16.self).map { Double($0) }
            case .bfloat: return buffer.array(UInt16.self).map { Double(Float(bitPattern: UInt32($0) << 16)) }
            }
        }
    }

    private func operands(_ count: Int, seed: Int) -> [Double] {
        (0..<count).map { index -> Double in
            let step = (index * 7_919 + seed * 104_729) % 127 - 63
            return Double(step) / 8
        }
    }

    /// a b + c for row-major 8 x 8 matrices.
    private func product(_ a: [Double], _ b: [Double], _ c: [Double]) -> [Double] {
        (0..<64).map { index -> Double in
            let row = index / 8 * 8, column = index % 8
            var sum = c[index]
            for k in 0..<8 { sum += a[row + k] * b[k * 8 + column] }
            return sum
        }
    }

    func testProductsOfEveryElementType() throws {
        let a = operands(64, seed: 1), b = operands(64, seed: 2), c = operands(64, seed: 3)
        let mixes: [(a: Element, b: Element, c: Element, d: Element)] = [
            (.float, .float, .float, .float), (.half, .half, .half, .half), (.half, .half, .float, .float),
            (.bfloat, .bfloat, .float, .float),
            (.bfloat, .bfloat, .bfloat, .bfloat), (.half, .float, .float, .float), (.half, .bfloat, .half, .float),
            (.float, .half, .float, .half),
        ]
        let kernels = mixes.enumerated().map { index, mix in
            """
            kernel void product\(index)(device const \(mix.a) *a [[buffer(0)]], device const \(mix.b) *b [[buffer(1)]],
                                        device const \(mix.c) *c [[buffer(2)]], device \(mix.d) *d [[buffer(3)]]) {
              simdgroup_matrix<\(mix.a), 8, 8> ma; simdgroup_\(mix.b)8x8 mb; simdgroup_\(mix.c)8x8 mc; \
            simdgroup_\(mix.d)8x8 md;
              simdgroup_load(ma, a); simdgroup_load(mb, b); simdgroup_load(mc, c);
              simdgroup_multiply_accumulate(md, ma, mb, mc);
              simdgroup_store(md, d);
              simdgroup_multiply(md, ma, mb);
              simdgroup_store(md, d + 64);
            }
            """
        }
        let library = try KernelLibrary(kernels.joined(separator: "\n"))
        for (index, mix) in mixes.enumerated() {
            let d = mix.d.buffer([Double](repeating: 0, count: 128), label: "d")
            let buffers = [mix.a.buffer(a, label: "a"), mix.b.buffer(b, label: "b"), mix.c.buffer(c, label: "c"), d]
            try library.function("product\(index)").run(buffers, grid: 32, group: 32)
            let exact = product(a, b, c) + product(a, b, [Double](repeating: 0, count: 64))
            XCTAssertEqual(mix.d.values(d), exact.map(mix.d.rounded), "\(mix)")
        }
    }

    /// With inexact numbers, the error corresponds to nine float32 roundings, not to half roundings.
    func testHalfOperandsAccumulateInFloat32() throws {
        let function = try KernelLibrary(
            """
            kernel void chain(device const half *a [[buffer(0)]], device const half *b [[buffer(1)]], \
            device float *d [[buffer(2)]]) {
              simdgroup_float8x8 sum = make_filled_simdgroup_matrix<float, 8>(0.0f);
              for (uint k = 0; k < 4; ++k) {
                simdgroup_half8x8 ma, mb;
                simdgroup_load(ma, a + k * 8, 32);
                simdgroup_load(mb, b + k * 64, 8);
                simdgroup_multiply_accumulate(sum, ma, mb, sum);
              }
              simdgroup_store(sum, d);
            }
            """
        ).function("chain")
        let a = (0..<256).map { (index: Int) -> Double in Double(Float16(sin(Double(index)))) }
        let b = (0..<256).map { (index: Int) -> Double in Double(Float16(cos(Double(3 * index)))) }
        let d = Element.float.buffer([Double](repeating: 0, count: 64), label: "d")
        try function.run(
            [Element.half.buffer(a, label: "a"), Element.half.buffer(b, label: "b"), d], grid: 32, group: 32)
        for (index, got) in Element.float.values(d).enumerated() {
            var sum = 0.0, size = 0.0
            for k in 0..<32 {
                let term = a[index / 8 * 32 + k] * b[k * 8 + index % 8]
                sum += term
                size += abs(term)
            }
            XCTAssertEqual(got, sum, accuracy: 32 * 6e-8 * size)
        }
    }

    /// Origin, stride and transposition, from and to device and threadgroup memory. Element (row, column) of a
    /// transposed matrix with origin (x, y) is at memory row x + column, memory column y + row.
    func testOriginStrideAndTransposition() throws {
        let function = try KernelLibrary(
            """
            kernel void elements(device const float *in [[buffer(0)]], device float *out [[buffer(1)]],
                               uint lane [[thread_index_in_simdgroup]]) {
              threadgroup float tile[20 * 24];
              for (uint i = lane; i < 20 * 24; i += 32) tile[i] = in[i];
              threadgroup_barrier(mem_flags::mem_threadgroup);
              simdgroup_float8x8 m;
              simdgroup_load(m, in, 24, ulong2(5, 3)); simdgroup_store(m, out);
              simdgroup_load(m, in, 24, ulong2(5, 3), true); simdgroup_store(m, out + 64);
              simdgroup_load(m, tile, 24, ulong2(2, 9)); simdgroup_store(m, out + 128, 8, 0, true);
              simdgroup_load(m, tile + 24, 24, 0, true);
              threadgroup_barrier(mem_flags::mem_threadgroup);
              simdgroup_store(m, tile, 24, ulong2(7, 6), true);
              threadgroup_barrier(mem_flags::mem_threadgroup);
              simdgroup_load(m, tile + 7 * 24 + 6, 24); simdgroup_store(m, out + 192);
            }
            """
        ).function("elements")
        let memory = (0..<20 * 24).map { Double($0) }
        let out = Element.float.buffer([Double](repeating: -1, count: 256), label: "out")
        try function.run([Element.float.buffer(memory, label: "in"), out], grid: 32, group: 32)
        func tile(_ at: (_ row: Int, _ column: Int) -> (row: Int, column: Int)) -> [Double] {
            (0..<64).map { index -> Double in
                let source = at(index / 8, index % 8)
                return memory[source.row * 24 + source.column]
            }
        }
        let expected =
            tile { (3 + $0, 5 + $1) } + tile { (5 + $1, 3 + $0) } + tile { (9 + $1, 2 + $0) } + tile { (1 + $0, $1) }
        XCTAssertEqual(Element.float.values(out), expected)
    }

    func testConstructorsAndTheProductOperator() throws {
        let function = try KernelLibrary(
            """
            kernel void made(device const float *a [[buffer(0)]], device float *out [[buffer(1)]]) {
              simdgroup_float8x8 m, none;
              simdgroup_load(m, a);
              simdgroup_store(simdgroup_float8x8(2.5f), out);
              simdgroup_store(make_filled_simdgroup_matrix<float, 8, 8>(7.0f), out + 64);
              simdgroup_store(m * simdgroup_float8x8(2.0f) * m, out + 128);
              simdgroup_store(none, out + 192);
            }
            """
        ).function("made")
        let a = operands(64, seed: 4), zero = [Double](repeating: 0, count: 64)
        let out = Element.float.buffer([Double](repeating: -1, count: 256), label: "out")
        try function.run([Element.float.buffer(a, label: "a"), out], grid: 32, group: 32)
        let values = Element.float.values(out)
        XCTAssertEqual(Array(values[..<64]), (0..<64).map { $0 / 8 == $0 % 8 ? 2.5 : 0 })
        XCTAssertEqual(Array(values[64..<128]), [Double](repeating: 7, count: 64))
        XCTAssertEqual(Array(values[128..<192]), product(a, a, zero).map { 2 * $0 })
        XCTAssertTrue(values[192...].allSatisfy(\.isNaN), "a matrix that was never set is poison")
    }

    /// Lane l has (row, column) and (row, column + 1), with row = (q & 4) + (l / 2) % 4, column = (q & 2) * 2 + (l % 2)
    /// * 2 and q = l / 4.
    func testTheLaneLayout() throws {
        let function = try KernelLibrary(
            """
            kernel void layout(device const float *in [[buffer(0)]], device float *lanes [[buffer(1)]], \
            device half *out [[buffer(2)]],
                               ushort lane [[thread_index_in_simdgroup]]) {
              simdgroup_float8x8 m;
              simdgroup_load(m, in);
              thread auto &own = m.thread_elements();
              lanes[lane * 2] = own[0];
              lanes[lane * 2 + 1] = own[1];
              simdgroup_half8x8 written;
              reinterpret_cast<thread half2 &>(written.thread_elements()) = half2(lane, lane + 0.5h);
              simdgroup_store(written, out);
            }
            """
        ).function("layout")
        let lanes = Element.float.buffer([Double](repeating: -1, count: 64), label: "lanes")
        let out = Element.half.buffer([Double](repeating: -1, count: 64), label: "out")
        _ = takeFindings()
        try withSetting("check", "1") {
            _ = try function.run(
                [Element.float.buffer((0..<64).map { Double($0) }, label: "in"), lanes, out], grid: 32, group: 32)
        }
        var written = [Double](repeating: 0, count: 64)
        for lane in 0..<32 {
            let quad = lane / 4
            let first = ((quad & 4) + lane / 2 % 4) * 8 + (quad & 2) * 2 + lane % 2 * 2
            XCTAssertEqual(
                Array(Element.float.values(lanes)[2 * lane...2 * lane + 1]), [Double(first), Double(first + 1)],
                "lane \(lane)")
            written[first] = Double(lane)
            written[first + 1] = Double(lane) + 0.5
        }
        XCTAssertEqual(Element.half.values(out), written)
        let notes = takeFindings()
        XCTAssertEqual(
            Set(notes.map { "\($0.kind) \($0.severity) \($0.line)" }),
            ["layout-dependence note 5", "layout-dependence note 9"], "\(notes)")
    }

    func testEachProductCounts512() throws {
        let function = try KernelLibrary(
            """
            kernel void counted(device const float *a [[buffer(0)]], device float *out [[buffer(1)]]) {
              simdgroup_float8x8 m;
              simdgroup_load(m, a);
              simdgroup_multiply(m, m, m);
              simdgroup_store(m * m, out);
            }
            """
        ).function("counted")
        let a = Element.float.buffer([Double](repeating: 1, count: 64), label: "a"),
            out = Element.float.buffer([Double](repeating: 0, count: 64), label: "out")
        let counters = try function.run([a, out], grid: 32, group: 32, count: true)
        XCTAssertEqual(counters.matrix_multiply_accumulates, 2 * 512)
        XCTAssertEqual(counters.device_bytes_read, 256)
        XCTAssertEqual(counters.device_bytes_written, 256)
    }

    // MARK: - undefined uses

    private struct Suspect { let kind: String?, body: String, length: Int, threads: Int }

    private func suspect(_ kind: String?, _ body: String, length: Int = 64, threads: Int = 32) -> Suspect {
        Suspect(kind: kind, body: body, length: length, threads: threads)
    }

    /// Each body is in a separate kernel of four lines; its findings must all be of the given kind, in the body's line.
    private func check(_ suspects: [Suspect], file: StaticString = #filePath, line: UInt = #line) throws {
        let kernels = suspects.enumerated().map { index, suspect in
            """
            kernel void suspect\(index)(device float *a [[buffer(0)]], uint lane [[thread_index_in_simdgroup]]) {
              simdgroup_float8x8 m = simdgroup_float8x8(1.0f);
              \(suspect.body)
            }
            """
        }
        let library = try KernelLibrary(kernels.joined(separator: "\n"))
        _ = takeFindings()
        for (index, suspect) in suspects.enumerated() {
            let function = try library.function("suspect\(index)")
            let a = Element.float.buffer([Double](repeating: 1, count: suspect.length), label: "a")
            withSetting("check", "1") { _ = try? function.run([a], grid: suspect.threads, group: suspect.threads) }
            let found = takeFindings()
            XCTAssertEqual(
                Set(found.map(\.kind)), suspect.kind.map { [$0] } ?? [], "\(suspect.body): \(found)", file: file,
                line: line)
            XCTAssertTrue(found.allSatisfy { $0.line == 4 * index + 3 }, "\(found)", file: file, line: line)
        }
    }

    func testAMatrixOperationWithoutAllLanesIsFound() throws {
        try check([
            suspect("nonuniform-matrix", "if (lane < 16) simdgroup_multiply(m, m, m);"),
            suspect(nil, "if (lane < 32) simdgroup_multiply(m, m, m);"),
            suspect("nonuniform-matrix", "if (lane != 3) simdgroup_load(m, a);"),
            suspect(nil, "if (a != nullptr) simdgroup_load(m, a);"),
            suspect("nonuniform-matrix", "if (lane != 3) simdgroup_store(m, a);"),
            suspect("nonuniform-matrix", "simdgroup_multiply(m, m, m);", threads: 24),
        ])
    }

    func testTheCheckerSeesEachElement() throws {
        try check([
            suspect(
                "out-of-bounds",
                "simdgroup_load(m, a + 1); simdgroup_barrier(mem_flags::mem_device); simdgroup_store(m, a);"),
            suspect(nil, "simdgroup_load(m, a); simdgroup_store(m, a);"),
            suspect("out-of-bounds", "simdgroup_store(m, a, 8, ulong2(0, 1));"),
            suspect(nil, "simdgroup_store(m, a, 8, ulong2(0, 1));", length: 72),
        ])
    }

    // MARK: - types

    private func expectRefused(_ body: String, _ message: String, file: StaticString = #filePath, line: UInt = #line) {
        let source = """
            kernel void refused(device float *a [[buffer(0)]], constant float *c [[buffer(1)]]) {
              \(body)
            }
            """
        XCTAssertThrowsError(try KernelLibrary(source), body, file: file, line: line) {
            XCTAssertTrue(
                "\($0)".contains(message) && "\($0)".contains("program_source:2:"), "\($0)", file: file, line: line)
        }
    }

    /// A program may name a matrix of bool, as in this struct of a mask, but can't create an object of that type.
    func testTheMatrixOfBoolIsOnlyAName() throws {
        XCTAssertEqual(
            try integers(
                1, "Fragment<bool> mask = {{true, false}}; out[0] = mask.elements[0] + 2 * mask.elements[1];",
                declarations: """
                    template <typename T> struct Fragment { typedef simdgroup_matrix<T, 8, 8> matrix_type; T \
                    elements[2]; };
                    """), [1])
    }

    func testWhatMetalRefusesDoesNotCompile() throws {
        expectRefused("simdgroup_matrix<int, 8, 8> m; (void)m;", "error")
        expectRefused("simdgroup_matrix<float, 4, 4> m; (void)m;", "error")
        expectRefused("simdgroup_matrix<bool, 8, 8> m; (void)m;", "call to deleted constructor")
        expectRefused("auto m = simdgroup_matrix<bool, 8, 8>(true); (void)m;", "uses deleted function")
        expectRefused("auto m = make_filled_simdgroup_matrix<bool, 8>(true); (void)m;", "error")
        expectRefused(
            "simdgroup_float8x8 m; simdgroup_load(m, c);", "no matching function for call to 'simdgroup_load'")
        expectRefused("simdgroup_half8x8 m; simdgroup_load(m, a);", "no matching function for call to 'simdgroup_load'")
        expectRefused("simdgroup_float8x8 m = 1.0f; (void)m;", "error")
        expectRefused(
            "simdgroup_float8x8 m; simdgroup_store(m, (constant float *)c);",
            "no matching function for call to 'simdgroup_store'")
    }
}
