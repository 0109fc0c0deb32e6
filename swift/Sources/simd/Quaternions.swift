// Quaternions: a vector of three imaginary parts and the real part, as in Apple's module `simd`. Their products are
// `simd_mul`; operators would make expressions of numbers too slow for the compiler to check.
import Glibc

public protocol Quaternion: Equatable, Sendable {
    associatedtype Scalar: BinaryFloatingPoint & SIMDScalar
    /// The imaginary parts, then the real part.
    var vector: SIMD4<Scalar> { get set }
    init(vector: SIMD4<Scalar>)
}

extension Quaternion {
    public init() { self.init(vector: SIMD4()) }
    public init(ix: Scalar, iy: Scalar, iz: Scalar, r: Scalar) { self.init(vector: SIMD4(ix, iy, iz, r)) }
    public init(real: Scalar, imag: SIMD3<Scalar>) { self.init(vector: SIMD4(imag, real)) }

    /// The rotation by an angle about an axis of length 1.
    public init(angle: Scalar, axis: SIMD3<Scalar>) {
        let half = Double(angle) / 2
        self.init(real: Scalar(Glibc.cos(half)), imag: axis * Scalar(Glibc.sin(half)))
    }

    /// The shortest rotation that takes one vector of length 1 to another.
    public init(from: SIMD3<Scalar>, to: SIMD3<Scalar>) {
        let sum = from + to
        if dot(sum, sum) > Scalar.ulpOfOne * 16 {
            let half = normalize(sum)  // halfway: q = (from × half, from · half)
            self.init(real: dot(from, half), imag: cross(from, half))
        } else {
            // Opposite vectors: half a turn about any axis perpendicular to them.
            let size = abs(from), least = size.min()
            let other = SIMD3<Scalar>(
                size.x == least ? 1 : 0, size.x != least && size.y == least ? 1 : 0,
                size.x != least && size.y != least ? 1 : 0)
            self.init(real: 0, imag: normalize(cross(from, other)))
        }
    }

    /// The rotation of a matrix, whose columns are orthogonal and of length 1 (Shepperd's method).
    fileprivate init(columns c: [SIMD3<Scalar>]) {
        let trace = c[0].x + c[1].y + c[2].z
        let largest = [c[0].x, c[1].y, c[2].z].enumerated().max { $0.element < $1.element }!
        if trace > largest.element {
            let r = 2 * (1 + trace).squareRoot()
            self.init(ix: (c[1].z - c[2].y) / r, iy: (c[2].x - c[0].z) / r, iz: (c[0].y - c[1].x) / r, r: r / 4)
            return
        }
        let i = largest.offset, j = (i + 1) % 3, k = (i + 2) % 3
        let r = 2 * (1 + c[i][i] - c[j][j] - c[k][k]).squareRoot()
        var imag = SIMD3<Scalar>()
        (imag[i], imag[j], imag[k]) = (r / 4, (c[i][j] + c[j][i]) / r, (c[i][k] + c[k][i]) / r)
        self.init(real: (c[j][k] - c[k][j]) / r, imag: imag)
    }

    public var real: Scalar {
        get { vector.w }
        set { vector.w = newValue }
    }

    public var imag: SIMD3<Scalar> {
        get { SIMD3(vector.x, vector.y, vector.z) }
        set { vector = SIMD4(newValue, vector.w) }
    }

    public var length: Scalar { (vector * vector).sum().squareRoot() }
    public var normalized: Self { Self(vector: vector / length) }
    public var conjugate: Self { Self(real: real, imag: -imag) }
    public var inverse: Self { Self(vector: conjugate.vector / (vector * vector).sum()) }
    public var axis: SIMD3<Scalar> { normalize(imag) }

    /// The angle of the rotation, from 0 to 2π.
    public var angle: Scalar {
        Scalar(2 * Glibc.atan2(Double(dot(imag, imag).squareRoot()), Double(real)))
    }

    /// Returns the vector rotated by this quaternion of length 1: v + 2r (u × v) + 2u × (u × v).
    public func act(_ v: SIMD3<Scalar>) -> SIMD3<Scalar> {
        let t = cross(imag, v) * 2
        return v + t * real + cross(imag, t)
    }

    fileprivate func scaled(_ factor: Scalar) -> Self { Self(vector: vector * factor) }
    fileprivate func plus(_ q: Self) -> Self { Self(vector: vector + q.vector) }

    fileprivate func times(_ q: Self) -> Self {
        let (a, b) = (imag, q.imag)
        let imag: SIMD3<Scalar> = b * real + a * q.real
        return Self(real: real * q.real - dot(a, b), imag: imag + cross(a, b))
    }

    /// The images of the axes.
    fileprivate var columns: [SIMD3<Scalar>] {
        [act(SIMD3(1, 0, 0)), act(SIMD3(0, 1, 0)), act(SIMD3(0, 0, 1))]
    }
}

public func simd_act<Q: Quaternion>(_ q: Q, _ v: SIMD3<Q.Scalar>) -> SIMD3<Q.Scalar> { q.act(v) }
public func simd_mul<Q: Quaternion>(_ p: Q, _ q: Q) -> Q { p.times(q) }
public func simd_normalize<Q: Quaternion>(_ q: Q) -> Q { q.normalized }
public func simd_add<Q: Quaternion>(_ p: Q, _ q: Q) -> Q { p.plus(q) }
public func simd_sub<Q: Quaternion>(_ p: Q, _ q: Q) -> Q { p.plus(q.scaled(-1)) }
public func simd_mul<Q: Quaternion>(_ factor: Q.Scalar, _ q: Q) -> Q { q.scaled(factor) }
public func simd_conjugate<Q: Quaternion>(_ q: Q) -> Q { q.conjugate }
public func simd_inverse<Q: Quaternion>(_ q: Q) -> Q { q.inverse }
public func simd_length<Q: Quaternion>(_ q: Q) -> Q.Scalar { q.length }
public func simd_dot<Q: Quaternion>(_ p: Q, _ q: Q) -> Q.Scalar { dot(p.vector, q.vector) }
public func simd_angle<Q: Quaternion>(_ q: Q) -> Q.Scalar { q.angle }
public func simd_axis<Q: Quaternion>(_ q: Q) -> SIMD3<Q.Scalar> { q.axis }

/// Interpolates between rotations along the shorter arc.
public func simd_slerp<Q: Quaternion>(_ p: Q, _ q: Q, _ t: Q.Scalar) -> Q {
    interpolate(p, simd_dot(p, q) < 0 ? q.scaled(-1) : q, t)
}

/// Interpolates between rotations along the longer arc.
public func simd_slerp_longest<Q: Quaternion>(_ p: Q, _ q: Q, _ t: Q.Scalar) -> Q {
    interpolate(p, simd_dot(p, q) < 0 ? q : q.scaled(-1), t)
}

/// (sin((1 − t) θ) p + sin(t θ) q) / sin θ, where θ is the angle between p and q. If they are nearly equal, they are
/// mixed linearly.
private func interpolate<Q: Quaternion>(_ p: Q, _ q: Q, _ t: Q.Scalar) -> Q {
    let angle = 2 * Glibc.atan2(Double(p.plus(q.scaled(-1)).length), Double(p.plus(q).length)), sine = Glibc.sin(angle)
    guard sine > 1e-6 else { return p.scaled(1 - t).plus(q.scaled(t)).normalized }
    let start = Glibc.sin((1 - Double(t)) * angle) / sine, end = Glibc.sin(Double(t) * angle) / sine
    return p.scaled(Q.Scalar(start)).plus(q.scaled(Q.Scalar(end))).normalized
}

public struct simd_quatf: Quaternion {
    public var vector: SIMD4<Float>
    public init(vector: SIMD4<Float>) { self.vector = vector }
    public init(_ matrix: simd_float3x3) { self.init(columns: (0..<3).map { matrix[$0] }) }
    public init(_ matrix: simd_float4x4) {
        self.init(columns: (0..<3).map { SIMD3(matrix[$0].x, matrix[$0].y, matrix[$0].z) })
    }
}

extension simd_float3x3 {
    public init(_ q: simd_quatf) { self.init(q.columns) }
}

extension simd_float4x4 {
    public init(_ q: simd_quatf) { self.init(q.columns.map { SIMD4($0, 0) } + [SIMD4(0, 0, 0, 1)]) }
}

public func simd_quaternion(_ angle: Float, _ axis: SIMD3<Float>) -> simd_quatf { simd_quatf(angle: angle, axis: axis) }
public func simd_quaternion(_ from: SIMD3<Float>, _ to: SIMD3<Float>) -> simd_quatf { simd_quatf(from: from, to: to) }
public func simd_quaternion(_ ix: Float, _ iy: Float, _ iz: Float, _ r: Float) -> simd_quatf {
    simd_quatf(ix: ix, iy: iy, iz: iz, r: r)
}
public func simd_quaternion(_ matrix: simd_float3x3) -> simd_quatf { simd_quatf(matrix) }
public func simd_quaternion(_ matrix: simd_float4x4) -> simd_quatf { simd_quatf(matrix) }
public func simd_matrix3x3(_ q: simd_quatf) -> simd_float3x3 { simd_float3x3(q) }
public func simd_matrix4x4(_ q: simd_quatf) -> simd_float4x4 { simd_float4x4(q) }

public struct simd_quatd: Quaternion {
    public var vector: SIMD4<Double>
    public init(vector: SIMD4<Double>) { self.vector = vector }
    public init(_ matrix: simd_double3x3) { self.init(columns: (0..<3).map { matrix[$0] }) }
    public init(_ matrix: simd_double4x4) {
        self.init(columns: (0..<3).map { SIMD3(matrix[$0].x, matrix[$0].y, matrix[$0].z) })
    }
}

extension simd_double3x3 {
    public init(_ q: simd_quatd) { self.init(q.columns) }
}

extension simd_double4x4 {
    public init(_ q: simd_quatd) { self.init(q.columns.map { SIMD4($0, 0) } + [SIMD4(0, 0, 0, 1)]) }
}

public func simd_quaternion(_ angle: Double, _ axis: SIMD3<Double>) -> simd_quatd {
    simd_quatd(angle: angle, axis: axis)
}
public func simd_quaternion(_ from: SIMD3<Double>, _ to: SIMD3<Double>) -> simd_quatd { simd_quatd(from: from, to: to) }
public func simd_quaternion(_ ix: Double, _ iy: Double, _ iz: Double, _ r: Double) -> simd_quatd {
    simd_quatd(ix: ix, iy: iy, iz: iz, r: r)
}
public func simd_quaternion(_ matrix: simd_double3x3) -> simd_quatd { simd_quatd(matrix) }
public func simd_quaternion(_ matrix: simd_double4x4) -> simd_quatd { simd_quatd(matrix) }
public func simd_matrix3x3(_ q: simd_quatd) -> simd_double3x3 { simd_double3x3(q) }
public func simd_matrix4x4(_ q: simd_quatd) -> simd_double4x4 { simd_double4x4(q) }
