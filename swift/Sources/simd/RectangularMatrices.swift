// Matrices of two to four columns of two to four rows that are not square, stored by columns, as in Apple's module
// `simd`. Their arithmetic is `simd_mul`, `simd_add` and `simd_sub`; operators would make expressions of numbers too
// slow for the compiler to check.

public protocol RectangularMatrix: Equatable, Sendable where Column.Scalar == Scalar, Row.Scalar == Scalar {
    associatedtype Scalar: BinaryFloatingPoint & SIMDScalar
    /// A vector as long as a column.
    associatedtype Column: SIMD
    /// A vector as long as a row.
    associatedtype Row: SIMD
    associatedtype Transpose
    init()
    subscript(column: Int) -> Column { get set }
    var transpose: Transpose { get }
}

extension RectangularMatrix {
    public init(_ columns: [Column]) {
        let size = Row().scalarCount
        precondition(columns.count == size, "expected \(size) columns, got \(columns.count)")
        self.init()
        for i in 0..<size { self[i] = columns[i] }
    }

    public init(rows: [Row]) {
        let size = Column().scalarCount
        precondition(rows.count == size, "expected \(size) rows, got \(rows.count)")
        self.init()
        for row in 0..<size {
            for column in 0..<Row().scalarCount { self[column][row] = rows[row][column] }
        }
    }

    public subscript(column: Int, row: Int) -> Scalar {
        get { self[column][row] }
        set { self[column][row] = newValue }
    }

    /// Row `index` of the matrix.
    func row(_ index: Int) -> Row {
        var row = Row()
        for column in 0..<row.scalarCount { row[column] = self[column][index] }
        return row
    }

    public static func == (left: Self, right: Self) -> Bool {
        (0..<Row().scalarCount).allSatisfy { left[$0] == right[$0] }
    }

    fileprivate func map(_ body: (Int) -> Column) -> Self { Self((0..<Row().scalarCount).map(body)) }

    /// Σ columns · elements.
    fileprivate func times(_ vector: Row) -> Column {
        var sum = Column()
        for i in 0..<vector.scalarCount { sum += self[i] * vector[i] }
        return sum
    }
}

public func simd_mul<M: RectangularMatrix>(_ x: M, _ y: M.Row) -> M.Column { x.times(y) }
public func simd_mul<M: RectangularMatrix>(_ x: M.Column, _ y: M) -> M.Row {
    var result = M.Row()
    for column in 0..<result.scalarCount { result[column] = (x * y[column]).sum() }
    return result
}
public func simd_mul<M: RectangularMatrix>(_ factor: M.Scalar, _ x: M) -> M { x.map { x[$0] * factor } }
public func simd_add<M: RectangularMatrix>(_ x: M, _ y: M) -> M { x.map { x[$0] + y[$0] } }
public func simd_sub<M: RectangularMatrix>(_ x: M, _ y: M) -> M { x.map { x[$0] - y[$0] } }
public func simd_transpose<M: RectangularMatrix>(_ x: M) -> M.Transpose { x.transpose }

public struct simd_float2x3: RectangularMatrix {
    public var columns: (SIMD3<Float>, SIMD3<Float>)
    public init() { columns = (.init(), .init()) }
    public init(columns: (SIMD3<Float>, SIMD3<Float>)) { self.columns = columns }
    public init(_ c0: SIMD3<Float>, _ c1: SIMD3<Float>) {
        columns = (c0, c1)
    }
    public subscript(column: Int) -> SIMD3<Float> {
        get { element(column, of: columns) }
        set { setElement(column, of: &columns, to: newValue) }
    }
    public var transpose: simd_float3x2 { simd_float3x2(row(0), row(1), row(2)) }
    public typealias Row = SIMD2<Float>
}
public typealias float2x3 = simd_float2x3
public typealias matrix_float2x3 = simd_float2x3

public struct simd_float2x4: RectangularMatrix {
    public var columns: (SIMD4<Float>, SIMD4<Float>)
    public init() { columns = (.init(), .init()) }
    public init(columns: (SIMD4<Float>, SIMD4<Float>)) { self.columns = columns }
    public init(_ c0: SIMD4<Float>, _ c1: SIMD4<Float>) {
        columns = (c0, c1)
    }
    public subscript(column: Int) -> SIMD4<Float> {
        get { element(column, of: columns) }
        set { setElement(column, of: &columns, to: newValue) }
    }
    public var transpose: simd_float4x2 { simd_float4x2(row(0), row(1), row(2), row(3)) }
    public typealias Row = SIMD2<Float>
}
public typealias float2x4 = simd_float2x4
public typealias matrix_float2x4 = simd_float2x4

public struct simd_float3x2: RectangularMatrix {
    public var columns: (SIMD2<Float>, SIMD2<Float>, SIMD2<Float>)
    public init() { columns = (.init(), .init(), .init()) }
    public init(columns: (SIMD2<Float>, SIMD2<Float>, SIMD2<Float>)) { self.columns = columns }
    public init(_ c0: SIMD2<Float>, _ c1: SIMD2<Float>, _ c2: SIMD2<Float>) {
        columns = (c0, c1, c2)
    }
    public subscript(column: Int) -> SIMD2<Float> {
        get { element(column, of: columns) }
        set { setElement(column, of: &columns, to: newValue) }
    }
    public var transpose: simd_float2x3 { simd_float2x3(row(0), row(1)) }
    public typealias Row = SIMD3<Float>
}
public typealias float3x2 = simd_float3x2
public typealias matrix_float3x2 = simd_float3x2

public struct simd_float3x4: RectangularMatrix {
    public var columns: (SIMD4<Float>, SIMD4<Float>, SIMD4<Float>)
    public init() { columns = (.init(), .init(), .init()) }
    public init(columns: (SIMD4<Float>, SIMD4<Float>, SIMD4<Float>)) { self.columns = columns }
    public init(_ c0: SIMD4<Float>, _ c1: SIMD4<Float>, _ c2: SIMD4<Float>) {
        columns = (c0, c1, c2)
    }
    public subscript(column: Int) -> SIMD4<Float> {
        get { element(column, of: columns) }
        set { setElement(column, of: &columns, to: newValue) }
    }
    public var transpose: simd_float4x3 { simd_float4x3(row(0), row(1), row(2), row(3)) }
    public typealias Row = SIMD3<Float>
}
public typealias float3x4 = simd_float3x4
public typealias matrix_float3x4 = simd_float3x4

public struct simd_float4x2: RectangularMatrix {
    public var columns: (SIMD2<Float>, SIMD2<Float>, SIMD2<Float>, SIMD2<Float>)
    public init() { columns = (.init(), .init(), .init(), .init()) }
    public init(columns: (SIMD2<Float>, SIMD2<Float>, SIMD2<Float>, SIMD2<Float>)) { self.columns = columns }
    public init(_ c0: SIMD2<Float>, _ c1: SIMD2<Float>, _ c2: SIMD2<Float>, _ c3: SIMD2<Float>) {
        columns = (c0, c1, c2, c3)
    }
    public subscript(column: Int) -> SIMD2<Float> {
        get { element(column, of: columns) }
        set { setElement(column, of: &columns, to: newValue) }
    }
    public var transpose: simd_float2x4 { simd_float2x4(row(0), row(1)) }
    public typealias Row = SIMD4<Float>
}
public typealias float4x2 = simd_float4x2
public typealias matrix_float4x2 = simd_float4x2

public struct simd_float4x3: RectangularMatrix {
    public var columns: (SIMD3<Float>, SIMD3<Float>, SIMD3<Float>, SIMD3<Float>)
    public init() { columns = (.init(), .init(), .init(), .init()) }
    public init(columns: (SIMD3<Float>, SIMD3<Float>, SIMD3<Float>, SIMD3<Float>)) { self.columns = columns }
    public init(_ c0: SIMD3<Float>, _ c1: SIMD3<Float>, _ c2: SIMD3<Float>, _ c3: SIMD3<Float>) {
        columns = (c0, c1, c2, c3)
    }
    public subscript(column: Int) -> SIMD3<Float> {
        get { element(column, of: columns) }
        set { setElement(column, of: &columns, to: newValue) }
    }
    public var transpose: simd_float3x4 { simd_float3x4(row(0), row(1), row(2)) }
    public typealias Row = SIMD4<Float>
}
public typealias float4x3 = simd_float4x3
public typealias matrix_float4x3 = simd_float4x3

public struct simd_double2x3: RectangularMatrix {
    public var columns: (SIMD3<Double>, SIMD3<Double>)
    public init() { columns = (.init(), .init()) }
    public init(columns: (SIMD3<Double>, SIMD3<Double>)) { self.columns = columns }
    public init(_ c0: SIMD3<Double>, _ c1: SIMD3<Double>) {
        columns = (c0, c1)
    }
    public subscript(column: Int) -> SIMD3<Double> {
        get { element(column, of: columns) }
        set { setElement(column, of: &columns, to: newValue) }
    }
    public var transpose: simd_double3x2 { simd_double3x2(row(0), row(1), row(2)) }
    public typealias Row = SIMD2<Double>
}
public typealias double2x3 = simd_double2x3
public typealias matrix_double2x3 = simd_double2x3

public struct simd_double2x4: RectangularMatrix {
    public var columns: (SIMD4<Double>, SIMD4<Double>)
    public init() { columns = (.init(), .init()) }
    public init(columns: (SIMD4<Double>, SIMD4<Double>)) { self.columns = columns }
    public init(_ c0: SIMD4<Double>, _ c1: SIMD4<Double>) {
        columns = (c0, c1)
    }
    public subscript(column: Int) -> SIMD4<Double> {
        get { element(column, of: columns) }
        set { setElement(column, of: &columns, to: newValue) }
    }
    public var transpose: simd_double4x2 { simd_double4x2(row(0), row(1), row(2), row(3)) }
    public typealias Row = SIMD2<Double>
}
public typealias double2x4 = simd_double2x4
public typealias matrix_double2x4 = simd_double2x4

public struct simd_double3x2: RectangularMatrix {
    public var columns: (SIMD2<Double>, SIMD2<Double>, SIMD2<Double>)
    public init() { columns = (.init(), .init(), .init()) }
    public init(columns: (SIMD2<Double>, SIMD2<Double>, SIMD2<Double>)) { self.columns = columns }
    public init(_ c0: SIMD2<Double>, _ c1: SIMD2<Double>, _ c2: SIMD2<Double>) {
        columns = (c0, c1, c2)
    }
    public subscript(column: Int) -> SIMD2<Double> {
        get { element(column, of: columns) }
        set { setElement(column, of: &columns, to: newValue) }
    }
    public var transpose: simd_double2x3 { simd_double2x3(row(0), row(1)) }
    public typealias Row = SIMD3<Double>
}
public typealias double3x2 = simd_double3x2
public typealias matrix_double3x2 = simd_double3x2

public struct simd_double3x4: RectangularMatrix {
    public var columns: (SIMD4<Double>, SIMD4<Double>, SIMD4<Double>)
    public init() { columns = (.init(), .init(), .init()) }
    public init(columns: (SIMD4<Double>, SIMD4<Double>, SIMD4<Double>)) { self.columns = columns }
    public init(_ c0: SIMD4<Double>, _ c1: SIMD4<Double>, _ c2: SIMD4<Double>) {
        columns = (c0, c1, c2)
    }
    public subscript(column: Int) -> SIMD4<Double> {
        get { element(column, of: columns) }
        set { setElement(column, of: &columns, to: newValue) }
    }
    public var transpose: simd_double4x3 { simd_double4x3(row(0), row(1), row(2), row(3)) }
    public typealias Row = SIMD3<Double>
}
public typealias double3x4 = simd_double3x4
public typealias matrix_double3x4 = simd_double3x4

public struct simd_double4x2: RectangularMatrix {
    public var columns: (SIMD2<Double>, SIMD2<Double>, SIMD2<Double>, SIMD2<Double>)
    public init() { columns = (.init(), .init(), .init(), .init()) }
    public init(columns: (SIMD2<Double>, SIMD2<Double>, SIMD2<Double>, SIMD2<Double>)) { self.columns = columns }
    public init(_ c0: SIMD2<Double>, _ c1: SIMD2<Double>, _ c2: SIMD2<Double>, _ c3: SIMD2<Double>) {
        columns = (c0, c1, c2, c3)
    }
    public subscript(column: Int) -> SIMD2<Double> {
        get { element(column, of: columns) }
        set { setElement(column, of: &columns, to: newValue) }
    }
    public var transpose: simd_double2x4 { simd_double2x4(row(0), row(1)) }
    public typealias Row = SIMD4<Double>
}
public typealias double4x2 = simd_double4x2
public typealias matrix_double4x2 = simd_double4x2

public struct simd_double4x3: RectangularMatrix {
    public var columns: (SIMD3<Double>, SIMD3<Double>, SIMD3<Double>, SIMD3<Double>)
    public init() { columns = (.init(), .init(), .init(), .init()) }
    public init(columns: (SIMD3<Double>, SIMD3<Double>, SIMD3<Double>, SIMD3<Double>)) { self.columns = columns }
    public init(_ c0: SIMD3<Double>, _ c1: SIMD3<Double>, _ c2: SIMD3<Double>, _ c3: SIMD3<Double>) {
        columns = (c0, c1, c2, c3)
    }
    public subscript(column: Int) -> SIMD3<Double> {
        get { element(column, of: columns) }
        set { setElement(column, of: &columns, to: newValue) }
    }
    public var transpose: simd_double3x4 { simd_double3x4(row(0), row(1), row(2)) }
    public typealias Row = SIMD4<Double>
}
public typealias double4x3 = simd_double4x3
public typealias matrix_double4x3 = simd_double4x3

public func simd_mul(_ x: simd_float2x2, _ y: simd_float3x2) -> simd_float3x2 {
    simd_float3x2(simd_mul(x, y[0]), simd_mul(x, y[1]), simd_mul(x, y[2]))
}
public func simd_mul(_ x: simd_float2x2, _ y: simd_float4x2) -> simd_float4x2 {
    simd_float4x2(simd_mul(x, y[0]), simd_mul(x, y[1]), simd_mul(x, y[2]), simd_mul(x, y[3]))
}
public func simd_mul(_ x: simd_float2x3, _ y: simd_float2x2) -> simd_float2x3 {
    simd_float2x3(simd_mul(x, y[0]), simd_mul(x, y[1]))
}
public func simd_mul(_ x: simd_float2x3, _ y: simd_float3x2) -> simd_float3x3 {
    simd_float3x3(simd_mul(x, y[0]), simd_mul(x, y[1]), simd_mul(x, y[2]))
}
public func simd_mul(_ x: simd_float2x3, _ y: simd_float4x2) -> simd_float4x3 {
    simd_float4x3(simd_mul(x, y[0]), simd_mul(x, y[1]), simd_mul(x, y[2]), simd_mul(x, y[3]))
}
public func simd_mul(_ x: simd_float2x4, _ y: simd_float2x2) -> simd_float2x4 {
    simd_float2x4(simd_mul(x, y[0]), simd_mul(x, y[1]))
}
public func simd_mul(_ x: simd_float2x4, _ y: simd_float3x2) -> simd_float3x4 {
    simd_float3x4(simd_mul(x, y[0]), simd_mul(x, y[1]), simd_mul(x, y[2]))
}
public func simd_mul(_ x: simd_float2x4, _ y: simd_float4x2) -> simd_float4x4 {
    simd_float4x4(simd_mul(x, y[0]), simd_mul(x, y[1]), simd_mul(x, y[2]), simd_mul(x, y[3]))
}
public func simd_mul(_ x: simd_float3x2, _ y: simd_float2x3) -> simd_float2x2 {
    simd_float2x2(simd_mul(x, y[0]), simd_mul(x, y[1]))
}
public func simd_mul(_ x: simd_float3x2, _ y: simd_float3x3) -> simd_float3x2 {
    simd_float3x2(simd_mul(x, y[0]), simd_mul(x, y[1]), simd_mul(x, y[2]))
}
public func simd_mul(_ x: simd_float3x2, _ y: simd_float4x3) -> simd_float4x2 {
    simd_float4x2(simd_mul(x, y[0]), simd_mul(x, y[1]), simd_mul(x, y[2]), simd_mul(x, y[3]))
}
public func simd_mul(_ x: simd_float3x3, _ y: simd_float2x3) -> simd_float2x3 {
    simd_float2x3(simd_mul(x, y[0]), simd_mul(x, y[1]))
}
public func simd_mul(_ x: simd_float3x3, _ y: simd_float4x3) -> simd_float4x3 {
    simd_float4x3(simd_mul(x, y[0]), simd_mul(x, y[1]), simd_mul(x, y[2]), simd_mul(x, y[3]))
}
public func simd_mul(_ x: simd_float3x4, _ y: simd_float2x3) -> simd_float2x4 {
    simd_float2x4(simd_mul(x, y[0]), simd_mul(x, y[1]))
}
public func simd_mul(_ x: simd_float3x4, _ y: simd_float3x3) -> simd_float3x4 {
    simd_float3x4(simd_mul(x, y[0]), simd_mul(x, y[1]), simd_mul(x, y[2]))
}
public func simd_mul(_ x: simd_float3x4, _ y: simd_float4x3) -> simd_float4x4 {
    simd_float4x4(simd_mul(x, y[0]), simd_mul(x, y[1]), simd_mul(x, y[2]), simd_mul(x, y[3]))
}
public func simd_mul(_ x: simd_float4x2, _ y: simd_float2x4) -> simd_float2x2 {
    simd_float2x2(simd_mul(x, y[0]), simd_mul(x, y[1]))
}
public func simd_mul(_ x: simd_float4x2, _ y: simd_float3x4) -> simd_float3x2 {
    simd_float3x2(simd_mul(x, y[0]), simd_mul(x, y[1]), simd_mul(x, y[2]))
}
public func simd_mul(_ x: simd_float4x2, _ y: simd_float4x4) -> simd_float4x2 {
    simd_float4x2(simd_mul(x, y[0]), simd_mul(x, y[1]), simd_mul(x, y[2]), simd_mul(x, y[3]))
}
public func simd_mul(_ x: simd_float4x3, _ y: simd_float2x4) -> simd_float2x3 {
    simd_float2x3(simd_mul(x, y[0]), simd_mul(x, y[1]))
}
public func simd_mul(_ x: simd_float4x3, _ y: simd_float3x4) -> simd_float3x3 {
    simd_float3x3(simd_mul(x, y[0]), simd_mul(x, y[1]), simd_mul(x, y[2]))
}
public func simd_mul(_ x: simd_float4x3, _ y: simd_float4x4) -> simd_float4x3 {
    simd_float4x3(simd_mul(x, y[0]), simd_mul(x, y[1]), simd_mul(x, y[2]), simd_mul(x, y[3]))
}
public func simd_mul(_ x: simd_float4x4, _ y: simd_float2x4) -> simd_float2x4 {
    simd_float2x4(simd_mul(x, y[0]), simd_mul(x, y[1]))
}
public func simd_mul(_ x: simd_float4x4, _ y: simd_float3x4) -> simd_float3x4 {
    simd_float3x4(simd_mul(x, y[0]), simd_mul(x, y[1]), simd_mul(x, y[2]))
}
public func simd_mul(_ x: simd_double2x2, _ y: simd_double3x2) -> simd_double3x2 {
    simd_double3x2(simd_mul(x, y[0]), simd_mul(x, y[1]), simd_mul(x, y[2]))
}
public func simd_mul(_ x: simd_double2x2, _ y: simd_double4x2) -> simd_double4x2 {
    simd_double4x2(simd_mul(x, y[0]), simd_mul(x, y[1]), simd_mul(x, y[2]), simd_mul(x, y[3]))
}
public func simd_mul(_ x: simd_double2x3, _ y: simd_double2x2) -> simd_double2x3 {
    simd_double2x3(simd_mul(x, y[0]), simd_mul(x, y[1]))
}
public func simd_mul(_ x: simd_double2x3, _ y: simd_double3x2) -> simd_double3x3 {
    simd_double3x3(simd_mul(x, y[0]), simd_mul(x, y[1]), simd_mul(x, y[2]))
}
public func simd_mul(_ x: simd_double2x3, _ y: simd_double4x2) -> simd_double4x3 {
    simd_double4x3(simd_mul(x, y[0]), simd_mul(x, y[1]), simd_mul(x, y[2]), simd_mul(x, y[3]))
}
public func simd_mul(_ x: simd_double2x4, _ y: simd_double2x2) -> simd_double2x4 {
    simd_double2x4(simd_mul(x, y[0]), simd_mul(x, y[1]))
}
public func simd_mul(_ x: simd_double2x4, _ y: simd_double3x2) -> simd_double3x4 {
    simd_double3x4(simd_mul(x, y[0]), simd_mul(x, y[1]), simd_mul(x, y[2]))
}
public func simd_mul(_ x: simd_double2x4, _ y: simd_double4x2) -> simd_double4x4 {
    simd_double4x4(simd_mul(x, y[0]), simd_mul(x, y[1]), simd_mul(x, y[2]), simd_mul(x, y[3]))
}
public func simd_mul(_ x: simd_double3x2, _ y: simd_double2x3) -> simd_double2x2 {
    simd_double2x2(simd_mul(x, y[0]), simd_mul(x, y[1]))
}
public func simd_mul(_ x: simd_double3x2, _ y: simd_double3x3) -> simd_double3x2 {
    simd_double3x2(simd_mul(x, y[0]), simd_mul(x, y[1]), simd_mul(x, y[2]))
}
public func simd_mul(_ x: simd_double3x2, _ y: simd_double4x3) -> simd_double4x2 {
    simd_double4x2(simd_mul(x, y[0]), simd_mul(x, y[1]), simd_mul(x, y[2]), simd_mul(x, y[3]))
}
public func simd_mul(_ x: simd_double3x3, _ y: simd_double2x3) -> simd_double2x3 {
    simd_double2x3(simd_mul(x, y[0]), simd_mul(x, y[1]))
}
public func simd_mul(_ x: simd_double3x3, _ y: simd_double4x3) -> simd_double4x3 {
    simd_double4x3(simd_mul(x, y[0]), simd_mul(x, y[1]), simd_mul(x, y[2]), simd_mul(x, y[3]))
}
public func simd_mul(_ x: simd_double3x4, _ y: simd_double2x3) -> simd_double2x4 {
    simd_double2x4(simd_mul(x, y[0]), simd_mul(x, y[1]))
}
public func simd_mul(_ x: simd_double3x4, _ y: simd_double3x3) -> simd_double3x4 {
    simd_double3x4(simd_mul(x, y[0]), simd_mul(x, y[1]), simd_mul(x, y[2]))
}
public func simd_mul(_ x: simd_double3x4, _ y: simd_double4x3) -> simd_double4x4 {
    simd_double4x4(simd_mul(x, y[0]), simd_mul(x, y[1]), simd_mul(x, y[2]), simd_mul(x, y[3]))
}
public func simd_mul(_ x: simd_double4x2, _ y: simd_double2x4) -> simd_double2x2 {
    simd_double2x2(simd_mul(x, y[0]), simd_mul(x, y[1]))
}
public func simd_mul(_ x: simd_double4x2, _ y: simd_double3x4) -> simd_double3x2 {
    simd_double3x2(simd_mul(x, y[0]), simd_mul(x, y[1]), simd_mul(x, y[2]))
}
public func simd_mul(_ x: simd_double4x2, _ y: simd_double4x4) -> simd_double4x2 {
    simd_double4x2(simd_mul(x, y[0]), simd_mul(x, y[1]), simd_mul(x, y[2]), simd_mul(x, y[3]))
}
public func simd_mul(_ x: simd_double4x3, _ y: simd_double2x4) -> simd_double2x3 {
    simd_double2x3(simd_mul(x, y[0]), simd_mul(x, y[1]))
}
public func simd_mul(_ x: simd_double4x3, _ y: simd_double3x4) -> simd_double3x3 {
    simd_double3x3(simd_mul(x, y[0]), simd_mul(x, y[1]), simd_mul(x, y[2]))
}
public func simd_mul(_ x: simd_double4x3, _ y: simd_double4x4) -> simd_double4x3 {
    simd_double4x3(simd_mul(x, y[0]), simd_mul(x, y[1]), simd_mul(x, y[2]), simd_mul(x, y[3]))
}
public func simd_mul(_ x: simd_double4x4, _ y: simd_double2x4) -> simd_double2x4 {
    simd_double2x4(simd_mul(x, y[0]), simd_mul(x, y[1]))
}
public func simd_mul(_ x: simd_double4x4, _ y: simd_double3x4) -> simd_double3x4 {
    simd_double3x4(simd_mul(x, y[0]), simd_mul(x, y[1]), simd_mul(x, y[2]))
}
