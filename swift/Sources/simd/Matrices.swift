// Square matrices, stored by columns, as in Apple's module `simd`.

public struct simd_float2x2: SquareMatrix {
    public static var size: Int { 2 }
    public var columns: (SIMD2<Float>, SIMD2<Float>)

    public init() { columns = (.zero, .zero) }

    public init(columns: (SIMD2<Float>, SIMD2<Float>)) { self.columns = columns }

    public init(_ c0: SIMD2<Float>, _ c1: SIMD2<Float>) { columns = (c0, c1) }

    public subscript(column: Int) -> SIMD2<Float> {
        get { element(column, of: columns) }
        set { setElement(column, of: &columns, to: newValue) }
    }
}

public typealias float2x2 = simd_float2x2
public typealias matrix_float2x2 = simd_float2x2
public let matrix_identity_float2x2 = simd_float2x2(1)

public struct simd_float3x3: SquareMatrix {
    public static var size: Int { 3 }
    public var columns: (SIMD3<Float>, SIMD3<Float>, SIMD3<Float>)

    public init() { columns = (.zero, .zero, .zero) }

    public init(columns: (SIMD3<Float>, SIMD3<Float>, SIMD3<Float>)) { self.columns = columns }

    public init(_ c0: SIMD3<Float>, _ c1: SIMD3<Float>, _ c2: SIMD3<Float>) { columns = (c0, c1, c2) }

    public subscript(column: Int) -> SIMD3<Float> {
        get { element(column, of: columns) }
        set { setElement(column, of: &columns, to: newValue) }
    }
}

public typealias float3x3 = simd_float3x3
public typealias matrix_float3x3 = simd_float3x3
public let matrix_identity_float3x3 = simd_float3x3(1)

public struct simd_float4x4: SquareMatrix {
    public static var size: Int { 4 }
    public var columns: (SIMD4<Float>, SIMD4<Float>, SIMD4<Float>, SIMD4<Float>)

    public init() { columns = (.zero, .zero, .zero, .zero) }

    public init(columns: (SIMD4<Float>, SIMD4<Float>, SIMD4<Float>, SIMD4<Float>)) { self.columns = columns }

    public init(_ c0: SIMD4<Float>, _ c1: SIMD4<Float>, _ c2: SIMD4<Float>, _ c3: SIMD4<Float>) {
        columns = (c0, c1, c2, c3)
    }

    public subscript(column: Int) -> SIMD4<Float> {
        get { element(column, of: columns) }
        set { setElement(column, of: &columns, to: newValue) }
    }
}

public typealias float4x4 = simd_float4x4
public typealias matrix_float4x4 = simd_float4x4
public let matrix_identity_float4x4 = simd_float4x4(1)

public struct simd_double2x2: SquareMatrix {
    public static var size: Int { 2 }
    public var columns: (SIMD2<Double>, SIMD2<Double>)

    public init() { columns = (.zero, .zero) }

    public init(columns: (SIMD2<Double>, SIMD2<Double>)) { self.columns = columns }

    public init(_ c0: SIMD2<Double>, _ c1: SIMD2<Double>) { columns = (c0, c1) }

    public subscript(column: Int) -> SIMD2<Double> {
        get { element(column, of: columns) }
        set { setElement(column, of: &columns, to: newValue) }
    }
}

public typealias double2x2 = simd_double2x2
public typealias matrix_double2x2 = simd_double2x2
public let matrix_identity_double2x2 = simd_double2x2(1)

public struct simd_double3x3: SquareMatrix {
    public static var size: Int { 3 }
    public var columns: (SIMD3<Double>, SIMD3<Double>, SIMD3<Double>)

    public init() { columns = (.zero, .zero, .zero) }

    public init(columns: (SIMD3<Double>, SIMD3<Double>, SIMD3<Double>)) { self.columns = columns }

    public init(_ c0: SIMD3<Double>, _ c1: SIMD3<Double>, _ c2: SIMD3<Double>) { columns = (c0, c1, c2) }

    public subscript(column: Int) -> SIMD3<Double> {
        get { element(column, of: columns) }
        set { setElement(column, of: &columns, to: newValue) }
    }
}

public typealias double3x3 = simd_double3x3
public typealias matrix_double3x3 = simd_double3x3
public let matrix_identity_double3x3 = simd_double3x3(1)

public struct simd_double4x4: SquareMatrix {
    public static var size: Int { 4 }
    public var columns: (SIMD4<Double>, SIMD4<Double>, SIMD4<Double>, SIMD4<Double>)

    public init() { columns = (.zero, .zero, .zero, .zero) }

    public init(columns: (SIMD4<Double>, SIMD4<Double>, SIMD4<Double>, SIMD4<Double>)) { self.columns = columns }

    public init(_ c0: SIMD4<Double>, _ c1: SIMD4<Double>, _ c2: SIMD4<Double>, _ c3: SIMD4<Double>) {
        columns = (c0, c1, c2, c3)
    }

    public subscript(column: Int) -> SIMD4<Double> {
        get { element(column, of: columns) }
        set { setElement(column, of: &columns, to: newValue) }
    }
}

public typealias double4x4 = simd_double4x4
public typealias matrix_double4x4 = simd_double4x4
public let matrix_identity_double4x4 = simd_double4x4(1)

/// Gives access to a tuple of columns by position.
func element<Tuple, Column>(_ position: Int, of tuple: Tuple) -> Column {
    precondition((0..<MemoryLayout<Tuple>.stride / MemoryLayout<Column>.stride).contains(position), "no such column")
    return withUnsafeBytes(of: tuple) { $0.bindMemory(to: Column.self)[position] }
}

func setElement<Tuple, Column>(_ position: Int, of tuple: inout Tuple, to column: Column) {
    precondition((0..<MemoryLayout<Tuple>.stride / MemoryLayout<Column>.stride).contains(position), "no such column")
    withUnsafeMutableBytes(of: &tuple) { $0.bindMemory(to: Column.self)[position] = column }
}
