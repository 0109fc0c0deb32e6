// vDSP's filters, interpolations, generators and integrals of strided vectors: for float, and for double if the name
// ends in D.

public typealias VectorDecimation<T> =
    @Sendable (
        UnsafePointer<T>, vDSP_Stride, UnsafePointer<T>, UnsafeMutablePointer<T>, vDSP_Length, vDSP_Length
    ) -> Void
public typealias VectorLookup<T> =
    @Sendable (
        UnsafePointer<T>, UnsafePointer<T>, vDSP_Stride, UnsafeMutablePointer<T>, vDSP_Stride, vDSP_Length, vDSP_Length
    ) -> Void
public typealias VectorIndex<T> =
    @Sendable (
        UnsafePointer<T>, UnsafePointer<T>, vDSP_Stride, UnsafeMutablePointer<T>, vDSP_Stride, vDSP_Length
    ) -> Void
public typealias VectorTable<T> =
    @Sendable (
        UnsafePointer<T>, vDSP_Stride, UnsafePointer<T>, UnsafePointer<T>, UnsafePointer<T>, vDSP_Length,
        UnsafeMutablePointer<T>, vDSP_Stride, vDSP_Length
    ) -> Void
public typealias VectorOfPoints<T> =
    @Sendable (
        UnsafePointer<T>, vDSP_Stride, UnsafePointer<T>, vDSP_Stride, UnsafeMutablePointer<T>, vDSP_Stride,
        vDSP_Length, vDSP_Length
    ) -> Void
public typealias VectorSpread<T> =
    @Sendable (UnsafePointer<T>, UnsafePointer<T>, UnsafeMutablePointer<T>, vDSP_Stride, vDSP_Length) -> Void
public typealias VectorByRamp<T> =
    @Sendable (
        UnsafePointer<T>, vDSP_Stride, UnsafeMutablePointer<T>, UnsafePointer<T>, UnsafeMutablePointer<T>, vDSP_Stride,
        vDSP_Length
    ) -> Void
public typealias VectorSumAndDifference<T> =
    @Sendable (
        UnsafePointer<T>, vDSP_Stride, UnsafePointer<T>, vDSP_Stride, UnsafeMutablePointer<T>, vDSP_Stride,
        UnsafeMutablePointer<T>, vDSP_Stride, vDSP_Length
    ) -> Void
public typealias VectorExchange<T> =
    @Sendable (UnsafeMutablePointer<T>, vDSP_Stride, UnsafeMutablePointer<T>, vDSP_Stride, vDSP_Length) -> Void

private func decimate<T: FloatingPoint>() -> VectorDecimation<T> {
    { a, factor, filter, c, count, length in
        for i in 0..<Int(count) {
            c[i] = (0..<Int(length)).reduce(0) { $0 + a[i * factor + $1] * filter[$1] }
        }
    }
}

private func recursive<T: FloatingPoint>() -> VectorByScalar<T> {
    { a, aStride, b, c, cStride, count in
        let x = { (i: Int) in a[i * aStride] }, y = { (i: Int) in c[i * cStride] }
        for i in 2..<Int(count) + 2 {
            let forward = x(i) * b[0] + x(i - 1) * b[1] + x(i - 2) * b[2]
            c[i * cStride] = forward - y(i - 1) * b[3] - y(i - 2) * b[4]
        }
    }
}

private func linear<T: BinaryFloatingPoint>() -> VectorLookup<T> {
    { a, b, bStride, c, cStride, count, _ in
        for i in 0..<Int(count) {
            let at = Int(b[i * bStride]), part = b[i * bStride] - T(at)
            c[i * cStride] = part == 0 ? a[at] : a[at] + part * (a[at + 1] - a[at])
        }
    }
}

private func quadratic<T: BinaryFloatingPoint>() -> VectorLookup<T> {
    { a, b, bStride, c, cStride, count, _ in
        for i in 0..<Int(count) {
            let at = max(1, Int(b[i * bStride])), part = b[i * bStride] - T(at), square = part * part
            let outer = a[at - 1] * (square - part) + a[at + 1] * (square + part)
            c[i * cStride] = (outer + a[at] * (2 - 2 * square)) / 2
        }
    }
}

private func indexed<T: BinaryFloatingPoint>() -> VectorIndex<T> {
    { a, b, bStride, c, cStride, count in
        for i in 0..<Int(count) { c[i * cStride] = a[Int(b[i * bStride])] }
    }
}

private func tabulated<T: BinaryFloatingPoint>() -> VectorTable<T> {
    { a, aStride, scale, offset, table, length, d, dStride, count in
        let last = Int(length) - 1
        for i in 0..<Int(count) {
            let position = min(max(a[i * aStride] * scale.pointee + offset.pointee, 0), T(last))
            let at = Int(position), next = min(at + 1, last)
            d[i * dStride] = table[at] + (position - T(at)) * (table[next] - table[at])
        }
    }
}

/// The coefficients are those of the powers from the highest, whose exponent is the last argument.
private func polynomial<T: FloatingPoint>() -> VectorOfPoints<T> {
    { a, aStride, b, bStride, c, cStride, count, degree in
        for i in 0..<Int(count) {
            c[i * cStride] = (0...Int(degree)).reduce(0) { $0 * b[i * bStride] + a[$1 * aStride] }
        }
    }
}

/// Line segments between points: a has their values, and b their ascending positions.
private func segments<T: BinaryFloatingPoint>() -> VectorOfPoints<T> {
    { a, aStride, b, bStride, c, cStride, count, points in
        let value = { (m: Int) in a[m * aStride] }, place = { (m: Int) in b[m * bStride] }
        let last = Int(points) - 1
        for i in 0..<Int(count) {
            let m = (0..<last).first { T(i) <= place($0 + 1) }
            if T(i) <= place(0) {
                c[i * cStride] = value(0)
            } else if let m {
                let slope = (value(m + 1) - value(m)) / (place(m + 1) - place(m))
                c[i * cStride] = value(m) + (T(i) - place(m)) * slope
            } else {
                c[i * cStride] = value(last)
            }
        }
    }
}

private func spread<T: BinaryFloatingPoint>() -> VectorSpread<T> {
    { first, last, c, cStride, count in
        let step = count > 1 ? (last.pointee - first.pointee) / T(count - 1) : 0
        for i in 0..<Int(count) { c[i * cStride] = first.pointee + T(i) * step }
    }
}

private func byRamp<T: FloatingPoint>(_ body: @escaping @Sendable (T, T) -> T) -> VectorByRamp<T> {
    { a, aStride, start, step, c, cStride, count in
        for i in 0..<Int(count) {
            c[i * cStride] = body(c[i * cStride], start.pointee * a[i * aStride])
            start.pointee += step.pointee
        }
    }
}

private func tapered<T: BinaryFloatingPoint>() -> BinaryVector<T> {
    { a, aStride, b, bStride, c, cStride, count in
        for i in 0..<Int(count) {
            let share = count > 1 ? T(i) / T(count - 1) : 0
            c[i * cStride] = a[i * aStride] + share * (b[i * bStride] - a[i * aStride])
        }
    }
}

private func averaged<T: FloatingPoint>() -> VectorByScalar<T> {
    { a, aStride, n, c, cStride, count in
        for i in 0..<Int(count) {
            c[i * cStride] = (c[i * cStride] * n.pointee + a[i * aStride]) / (n.pointee + 1)
        }
    }
}

private func simpson<T: FloatingPoint>() -> VectorByScalar<T> {
    { a, aStride, step, c, cStride, count in
        let x = { (i: Int) in a[i * aStride] }
        for i in 0..<Int(count) {
            switch i {
            case 0: c[0] = 0
            case 1: c[cStride] = step.pointee * (x(0) + x(1)) / 2
            default:
                let parabola = x(i - 2) + 4 * x(i - 1) + x(i)
                c[i * cStride] = c[(i - 2) * cStride] + step.pointee * parabola / 3
            }
        }
    }
}

private func sumAndDifference<T: FloatingPoint>() -> VectorSumAndDifference<T> {
    { a, aStride, b, bStride, c, cStride, d, dStride, count in
        for i in 0..<Int(count) {
            let (x, y) = (a[i * aStride], b[i * bStride])
            (c[i * cStride], d[i * dStride]) = (y + x, y - x)
        }
    }
}

private func swapped<T>() -> VectorExchange<T> {
    { a, aStride, b, bStride, count in
        for i in 0..<Int(count) { (a[i * aStride], b[i * bStride]) = (b[i * bStride], a[i * aStride]) }
    }
}

/// Filters, and keeps one of `factor` samples: c[i] = Σ a[i · factor + k] · filter[k]
public let vDSP_desamp: VectorDecimation<Float> = decimate()
public let vDSP_desampD: VectorDecimation<Double> = decimate()
/// A biquadratic filter with five coefficients: c[i], from 2 on, is b₀ a[i] + b₁ a[i − 1] + b₂ a[i − 2] − b₃ c[i − 1] −
/// b₄ c[i − 2].
public let vDSP_deq22: VectorByScalar<Float> = recursive()
public let vDSP_deq22D: VectorByScalar<Double> = recursive()
/// Interpolates between the elements of a at the positions b.
public let vDSP_vlint: VectorLookup<Float> = linear()
public let vDSP_vlintD: VectorLookup<Double> = linear()
/// Interpolates by a parabola through three elements of a at the positions b.
public let vDSP_vqint: VectorLookup<Float> = quadratic()
public let vDSP_vqintD: VectorLookup<Double> = quadratic()
/// c = a[b], rounded toward 0
public let vDSP_vindex: VectorIndex<Float> = indexed()
public let vDSP_vindexD: VectorIndex<Double> = indexed()
/// Interpolates in a table at the positions a · scale + offset.
public let vDSP_vtabi: VectorTable<Float> = tabulated()
public let vDSP_vtabiD: VectorTable<Double> = tabulated()
public let vDSP_vpoly: VectorOfPoints<Float> = polynomial()
public let vDSP_vpolyD: VectorOfPoints<Double> = polynomial()
public let vDSP_vgenp: VectorOfPoints<Float> = segments()
public let vDSP_vgenpD: VectorOfPoints<Double> = segments()
/// Numbers at equal distances, from the first to the last.
public let vDSP_vgen: VectorSpread<Float> = spread()
public let vDSP_vgenD: VectorSpread<Double> = spread()
/// c = a · ramp; the start of the ramp is advanced.
public let vDSP_vrampmul: VectorByRamp<Float> = byRamp { $1 }
public let vDSP_vrampmulD: VectorByRamp<Double> = byRamp { $1 }
/// c += a · ramp
public let vDSP_vrampmuladd: VectorByRamp<Float> = byRamp { $0 + $1 }
public let vDSP_vrampmuladdD: VectorByRamp<Double> = byRamp { $0 + $1 }
/// Goes from a to b.
public let vDSP_vtmerg: BinaryVector<Float> = tapered()
public let vDSP_vtmergD: BinaryVector<Double> = tapered()
/// The mean of n earlier vectors, in c, and a.
public let vDSP_vavlin: VectorByScalar<Float> = averaged()
public let vDSP_vavlinD: VectorByScalar<Double> = averaged()
/// The integral by Simpson's rule with steps of the scalar.
public let vDSP_vsimps: VectorByScalar<Float> = simpson()
public let vDSP_vsimpsD: VectorByScalar<Double> = simpson()
/// c = b + a, d = b − a
public let vDSP_vaddsub: VectorSumAndDifference<Float> = sumAndDifference()
public let vDSP_vaddsubD: VectorSumAndDifference<Double> = sumAndDifference()
public let vDSP_vswap: VectorExchange<Float> = swapped()
public let vDSP_vswapD: VectorExchange<Double> = swapped()
