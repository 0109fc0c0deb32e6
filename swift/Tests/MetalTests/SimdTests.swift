import XCTest
import simd

/// Quaternions and matrices that are not square, compared element by element with formulas in double precision.
final class SimdTests: XCTestCase {
    private func unit() -> SIMD3<Double> {
        while true {
            let v = SIMD3<Double>.random(in: -1..<1)
            if length_squared(v) > 0.01 { return normalize(v) }
        }
    }

    private func assertEqual(_ a: SIMD3<Double>, _ b: SIMD3<Double>, _ accuracy: Double, line: UInt = #line) {
        for i in 0..<3 { XCTAssertEqual(a[i], b[i], accuracy: accuracy, "\(a) \(b)", line: line) }
    }

    /// Rodrigues' formula: v cos a + (k × v) sin a + k (k · v)(1 − cos a).
    private func turned(_ v: SIMD3<Double>, _ angle: Double, _ axis: SIMD3<Double>) -> SIMD3<Double> {
        let sine = cross(axis, v) * Foundation.sin(angle), cosine = Foundation.cos(angle)
        return v * cosine + sine + axis * (dot(axis, v) * (1 - cosine))
    }

    func testCommonFunctionsOfNumbersAndVectors() {
        let v = SIMD4<Double>(-2, 0, 0.5, 4)
        XCTAssertEqual(sign(v), SIMD4(-1, 0, 1, 1))
        XCTAssertEqual(recip(SIMD2<Float>(2, -4)), SIMD2(0.5, -0.25))
        XCTAssertEqual(simd_rsqrt(SIMD2<Double>(4, 16)), SIMD2(0.5, 0.25))
        XCTAssertEqual([norm_one(v), norm_inf(v)], [6.5, 4])
        XCTAssertEqual(simd_muladd(v, v, v), v * v + v)
        XCTAssertEqual([sign(-3.0), recip(4.0), rsqrt(4.0), fract(-0.25)], [-1, 0.25, 0.5, 0.75])
        XCTAssertEqual([mix(1.0, 3, t: 0.25), clamp(5.0, min: 0, max: 2), step(1.0, edge: 2)], [1.5, 2, 0])
        XCTAssertEqual(smoothstep(Float(1), edge0: 0, edge1: 4), 0.15625)  // t = 1/4: t² (3 - 2 t)
        XCTAssertEqual(sinpi(SIMD4<Double>(0.5, 1, -0.5, 1e15 + 2)), SIMD4(1, 0, -1, 0))
        XCTAssertEqual(cospi(SIMD2<Float>(1, 0.5)), SIMD2(-1, 0))
        for x in [-3.7, 0.1, 0.24, 12.3] {
            XCTAssertEqual(sinpi(x), Foundation.sin(Double.pi * x), accuracy: 1e-14)
            XCTAssertEqual(tanpi(x), Foundation.tan(Double.pi * x), accuracy: 1e-12)
        }
    }

    func testRotations() {
        for _ in 0..<50 {
            let axis = unit(), angle = Double.random(in: 0.1..<6.1), v = SIMD3<Double>.random(in: -9..<9)
            let q = simd_quaternion(angle, axis), expected = turned(v, angle, axis)
            assertEqual(simd_act(q, v), expected, 1e-13)
            assertEqual(simd_double3x3(q) * v, expected, 1e-13)
            let four = simd_double4x4(q) * SIMD4(v, 1)
            assertEqual(simd_make_double3(four), expected, 1e-13)
            XCTAssertEqual(q.angle, angle, accuracy: 1e-12)
            assertEqual(q.axis, axis, 1e-12)
            assertEqual(simd_quatd(simd_double3x3(q)).act(v), expected, 1e-12)
            assertEqual(simd_quatd(simd_double4x4(q)).act(v), expected, 1e-12)
            assertEqual(simd_mul(simd_inverse(q), q).act(v), v, 1e-13)
            let other = simd_quaternion(angle / 3, unit())
            assertEqual(simd_mul(other, q).act(v), other.act(expected), 1e-12)
            let single = simd_quatf(angle: Float(angle), axis: SIMD3<Float>(axis))
            assertEqual(SIMD3<Double>(single.act(SIMD3<Float>(v))), expected, 1e-4)
        }
    }

    func testRotationsBetweenVectors() {
        for _ in 0..<50 {
            let from = unit()
            for to in [unit(), from, -from] {
                let q = simd_quatd(from: from, to: to)
                assertEqual(q.act(from), to, 1e-13)
                XCTAssertEqual(q.length, 1, accuracy: 1e-13)
                XCTAssertEqual(q.angle, Foundation.acos(Swift.max(-1, Swift.min(1, dot(from, to)))), accuracy: 1e-6)
            }
        }
    }

    func testInterpolation() {
        for _ in 0..<50 {
            let axis = unit(), angle = Double.random(in: 0.1..<3), t = Double.random(in: 0..<1)
            let p = simd_quaternion(0.5, axis), q = simd_quaternion(0.5 + angle, axis), v = unit()
            assertEqual(simd_slerp(p, q, t).act(v), turned(v, 0.5 + t * angle, axis), 1e-12)
            let negative = simd_mul(-1, q)
            assertEqual(simd_slerp(p, negative, t).act(v), turned(v, 0.5 + t * angle, axis), 1e-12)
            assertEqual(simd_slerp_longest(p, q, t).act(v), turned(v, 0.5 + t * (angle - 2 * .pi), axis), 1e-12)
            assertEqual(simd_slerp(p, p, t).act(v), p.act(v), 1e-12)
        }
    }

    /// Products and transposes of random matrices.
    private func check<M: RectangularMatrix>(_ type: M.Type) where M.Transpose: RectangularMatrix {
        var m = M()
        let columns = M.Row().scalarCount, rows = M.Column().scalarCount
        for column in 0..<columns {
            for row in 0..<rows { m[column, row] = M.Scalar(Int.random(in: -9...9)) }
        }
        var v = M.Row(), u = M.Column()
        for i in 0..<columns { v[i] = M.Scalar(Int.random(in: -9...9)) }
        for i in 0..<rows { u[i] = M.Scalar(Int.random(in: -9...9)) }
        let right = simd_mul(m, v), left = simd_mul(u, m), transpose = simd_transpose(m)
        for row in 0..<rows {
            XCTAssertEqual(right[row], (0..<columns).reduce(0) { $0 + m[$1, row] * v[$1] })
            for column in 0..<columns {
                let turned = transpose[row, column] as? M.Scalar
                XCTAssertEqual(turned, m[column, row])
            }
        }
        for column in 0..<columns {
            XCTAssertEqual(left[column], (0..<rows).reduce(0) { $0 + m[column, $1] * u[$1] })
        }
        XCTAssertEqual(
            M(
                rows: (0..<rows).map { row in
                    var line = M.Row()
                    for column in 0..<columns { line[column] = m[column, row] }
                    return line
                }), m)
        XCTAssertEqual(simd_sub(simd_add(m, m), m), m)
        XCTAssertEqual(simd_mul(2, m), simd_add(m, m))
    }

    func testMatricesThatAreNotSquare() {
        check(simd_float2x3.self)
        check(simd_float2x4.self)
        check(simd_float3x2.self)
        check(simd_float3x4.self)
        check(simd_float4x2.self)
        check(simd_float4x3.self)
        check(simd_double2x3.self)
        check(simd_double2x4.self)
        check(simd_double3x2.self)
        check(simd_double3x4.self)
        check(simd_double4x2.self)
        check(simd_double4x3.self)
        let a = simd_double2x3(SIMD3(1, 2, 3), SIMD3(4, 5, 6)),
            b = simd_double3x2(rows: [SIMD3(1, 0, 2), SIMD3(0, 1, 3)])
        XCTAssertEqual(simd_mul(a, b), simd_double3x3(SIMD3(1, 2, 3), SIMD3(4, 5, 6), SIMD3(14, 19, 24)))
        XCTAssertEqual(simd_mul(b, a), simd_double2x2(SIMD2(7, 11), SIMD2(16, 23)))
        XCTAssertEqual(MemoryLayout<simd_float4x3>.size, 64)
    }

    func testMakers() {
        let v = SIMD4<Int32>(1, 2, 3, 4)
        XCTAssertEqual(simd_make_int3(v), SIMD3(1, 2, 3))
        XCTAssertEqual(simd_make_int2(v), SIMD2(1, 2))
        XCTAssertEqual(simd_make_int4(SIMD2(5, 6)), SIMD4(5, 6, 0, 0))
        XCTAssertEqual(simd_make_int4(SIMD3(5, 6, 7), 8), SIMD4(5, 6, 7, 8))
        XCTAssertEqual(simd_make_int4(9, SIMD3(5, 6, 7)), SIMD4(9, 5, 6, 7))
        XCTAssertEqual(simd_make_int3(9, SIMD2(5, 6)), SIMD3(9, 5, 6))
        XCTAssertEqual(clamp(SIMD3<Float>(-1, 0.5, 3), min: 0, max: 1), SIMD3(0, 0.5, 1))
    }
}
