import Accelerate
import XCTest

/// Checks each function by the equation that its result satisfies. The tests are skipped on a machine without LAPACK.
final class LAPACKTests: XCTestCase {
    private var seed: UInt32 = 11

    override func setUpWithError() throws {
        let named = ProcessInfo.processInfo.environment["ORCHARD_BLAS"] ?? ""
        let found = [named, "libopenblas.so.0", "liblapack.so.3"].contains { name in
            !name.isEmpty && (FileManager.default.fileExists(atPath: name) || dlopen(name, RTLD_LAZY) != nil)
        }
        try XCTSkipUnless(found, "no LAPACK on this machine")
    }

    /// Stored column by column.
    private func drawn(_ count: Int) -> [Double] {
        (0..<count).map { _ in
            seed = seed &* 1_664_525 &+ 1_013_904_223
            return Double(Int(seed >> 16) % 255 - 127) / 64
        }
    }

    private func product(_ a: [Double], _ b: [Double], _ m: Int, _ k: Int, _ n: Int) -> [Double] {
        (0..<m * n).map { (at: Int) -> Double in
            let (row, column) = (at % m, at / m)
            var sum = 0.0
            for i in 0..<k { sum += a[i * m + row] * b[column * k + i] }
            return sum
        }
    }

    private func transposed(_ a: [Double], _ m: Int, _ n: Int) -> [Double] {
        (0..<m * n).map { a[$0 / n + $0 % n * m] }
    }

    private func assertEqual(_ a: [Double], _ b: [Double], _ what: String) {
        XCTAssertEqual(a.count, b.count)
        for (x, y) in zip(a, b) { XCTAssertEqual(x, y, accuracy: 1e-10 * max(1, abs(y)), what) }
    }

    func testInverseAndSolution() {
        for size in [1, 3, 8] {
            let a = drawn(size * size).enumerated().map { $1 + ($0 % (size + 1) == 0 ? Double(4 * size) : 0) }
            var n = Int32(size), lda = n, info: Int32 = 9, ipiv = [Int32](repeating: 0, count: size)
            var inverse = a, lwork = n * n, work = [Double](repeating: 0, count: size * size)
            var m = n
            dgetrf_(&m, &n, &inverse, &lda, &ipiv, &info)
            XCTAssertEqual(info, 0)
            dgetri_(&n, &inverse, &lda, &ipiv, &work, &lwork, &info)
            let one = (0..<size * size).map { $0 % (size + 1) == 0 ? 1.0 : 0 }
            assertEqual(product(a, inverse, size, size, size), one, "inverse")
            let b = drawn(2 * size)
            var factors = a, x = b, nrhs: Int32 = 2, ldb = n
            XCTAssertEqual(dgesv_(&n, &nrhs, &factors, &lda, &ipiv, &x, &ldb, &info), 0)
            assertEqual(product(a, x, size, size, 2), b, "solution")
        }
    }

    /// Functions with string arguments, whose lengths are hidden arguments.
    func testSingularValuesAndNorm() {
        let (rows, columns) = (5, 3), a = drawn(15)
        var m = Int32(rows), n = Int32(columns), lda = m, ldu = m, ldvt = n, info: Int32 = 9
        var job = CChar(UInt8(ascii: "S")), lwork: Int32 = 512, work = [Double](repeating: 0, count: 512)
        var iwork = [Int32](repeating: 0, count: 24), s = [Double](repeating: 0, count: 3)
        var copy = a, u = [Double](repeating: 0, count: 15), vt = [Double](repeating: 0, count: 9)
        dgesdd_(&job, &m, &n, &copy, &lda, &s, &u, &ldu, &vt, &ldvt, &work, &lwork, &iwork, &info)
        XCTAssertEqual(info, 0)
        XCTAssertEqual(s, s.sorted(by: >))
        let scaled = u.enumerated().map { $1 * s[$0 / rows] }
        assertEqual(product(scaled, vt, rows, columns, columns), a, "U S Vᵀ")
        var norm = CChar(UInt8(ascii: "F"))
        copy = a
        XCTAssertEqual(
            dlange_(&norm, &m, &n, &copy, &lda, &work),
            a.map { $0 * $0 }.reduce(0, +).squareRoot(), accuracy: 1e-12)
        XCTAssertEqual(s.map { $0 * $0 }.reduce(0, +), a.map { $0 * $0 }.reduce(0, +), accuracy: 1e-12)
    }

    func testSymmetricMatrices() {
        let size = 6, half = drawn(36)
        var a = product(half, transposed(half, size, size), size, size, size)
        for i in 0..<size { a[i * (size + 1)] += 1 }
        var n = Int32(size), lda = n, info: Int32 = 9, lower = CChar(UInt8(ascii: "L"))
        var factor = a
        dpotrf_(&lower, &n, &factor, &lda, &info)
        XCTAssertEqual(info, 0)
        for at in factor.indices where at % size < at / size { factor[at] = 0 }
        assertEqual(product(factor, transposed(factor, size, size), size, size, size), a, "L Lᵀ")
        var vectors = a, values = [Double](repeating: 0, count: size), job = CChar(UInt8(ascii: "V"))
        var lwork: Int32 = 256, work = [Double](repeating: 0, count: 256)
        dsyev_(&job, &lower, &n, &vectors, &lda, &values, &work, &lwork, &info)
        let scaled = vectors.enumerated().map { $1 * values[$0 / size] }
        assertEqual(product(a, vectors, size, size, size), scaled, "A v = λ v")
    }
}
