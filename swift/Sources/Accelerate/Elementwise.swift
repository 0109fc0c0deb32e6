// Arithmetic of each element, by the Swift forms of vDSP.

extension vDSP {
    public static func add<U: AccelerateBuffer, V: AccelerateBuffer>(_ a: U, _ b: V) -> [U.Element]
    where U.Element: FloatingPoint, V.Element == U.Element { a.mapped(with: b) { $0 + $1 } }
    public static func add<U: AccelerateBuffer, V: AccelerateBuffer, R: AccelerateMutableBuffer>(
        _ a: U, _ b: V, result: inout R
    ) where U.Element: FloatingPoint, V.Element == U.Element, R.Element == U.Element { result.store(add(a, b)) }
    public static func add<U: AccelerateBuffer>(_ scalar: U.Element, _ vector: U) -> [U.Element]
    where U.Element: FloatingPoint { vector.mapped { scalar + $0 } }
    public static func add<U: AccelerateBuffer, R: AccelerateMutableBuffer>(
        _ scalar: U.Element, _ vector: U, result: inout R
    ) where U.Element: FloatingPoint, R.Element == U.Element { result.store(add(scalar, vector)) }

    public static func subtract<U: AccelerateBuffer, V: AccelerateBuffer>(_ a: U, _ b: V) -> [U.Element]
    where U.Element: FloatingPoint, V.Element == U.Element { a.mapped(with: b) { $0 - $1 } }
    public static func subtract<U: AccelerateBuffer, V: AccelerateBuffer, R: AccelerateMutableBuffer>(
        _ a: U, _ b: V, result: inout R
    ) where U.Element: FloatingPoint, V.Element == U.Element, R.Element == U.Element { result.store(subtract(a, b)) }

    public static func multiply<U: AccelerateBuffer, V: AccelerateBuffer>(_ a: U, _ b: V) -> [U.Element]
    where U.Element: FloatingPoint, V.Element == U.Element { a.mapped(with: b) { $0 * $1 } }
    public static func multiply<U: AccelerateBuffer, V: AccelerateBuffer, R: AccelerateMutableBuffer>(
        _ a: U, _ b: V, result: inout R
    ) where U.Element: FloatingPoint, V.Element == U.Element, R.Element == U.Element { result.store(multiply(a, b)) }
    public static func multiply<U: AccelerateBuffer>(_ scalar: U.Element, _ vector: U) -> [U.Element]
    where U.Element: FloatingPoint { vector.mapped { scalar * $0 } }
    public static func multiply<U: AccelerateBuffer, R: AccelerateMutableBuffer>(
        _ scalar: U.Element, _ vector: U, result: inout R
    ) where U.Element: FloatingPoint, R.Element == U.Element { result.store(multiply(scalar, vector)) }

    public static func divide<U: AccelerateBuffer, V: AccelerateBuffer>(_ a: U, _ b: V) -> [U.Element]
    where U.Element: FloatingPoint, V.Element == U.Element { a.mapped(with: b) { $0 / $1 } }
    public static func divide<U: AccelerateBuffer, V: AccelerateBuffer, R: AccelerateMutableBuffer>(
        _ a: U, _ b: V, result: inout R
    ) where U.Element: FloatingPoint, V.Element == U.Element, R.Element == U.Element { result.store(divide(a, b)) }
    public static func divide<U: AccelerateBuffer>(_ vector: U, _ scalar: U.Element) -> [U.Element]
    where U.Element: FloatingPoint { vector.mapped { $0 / scalar } }
    public static func divide<U: AccelerateBuffer, R: AccelerateMutableBuffer>(
        _ vector: U, _ scalar: U.Element, result: inout R
    ) where U.Element: FloatingPoint, R.Element == U.Element { result.store(divide(vector, scalar)) }
    public static func divide<U: AccelerateBuffer>(_ scalar: U.Element, _ vector: U) -> [U.Element]
    where U.Element: FloatingPoint { vector.mapped { scalar / $0 } }
    public static func divide<U: AccelerateBuffer, R: AccelerateMutableBuffer>(
        _ scalar: U.Element, _ vector: U, result: inout R
    ) where U.Element: FloatingPoint, R.Element == U.Element { result.store(divide(scalar, vector)) }

    public static func hypot<U: AccelerateBuffer, V: AccelerateBuffer>(_ a: U, _ b: V) -> [U.Element]
    where U.Element: BinaryFloatingPoint, V.Element == U.Element { a.mapped(with: b) { distance($0, $1) } }
    public static func hypot<U: AccelerateBuffer, V: AccelerateBuffer, R: AccelerateMutableBuffer>(
        _ a: U, _ b: V, result: inout R
    ) where U.Element: BinaryFloatingPoint, V.Element == U.Element, R.Element == U.Element { result.store(hypot(a, b)) }

    public static func maximum<U: AccelerateBuffer, V: AccelerateBuffer>(_ a: U, _ b: V) -> [U.Element]
    where U.Element: FloatingPoint, V.Element == U.Element { a.mapped(with: b) { $0 > $1 ? $0 : $1 } }
    public static func maximum<U: AccelerateBuffer, V: AccelerateBuffer, R: AccelerateMutableBuffer>(
        _ a: U, _ b: V, result: inout R
    ) where U.Element: FloatingPoint, V.Element == U.Element, R.Element == U.Element { result.store(maximum(a, b)) }

    public static func minimum<U: AccelerateBuffer, V: AccelerateBuffer>(_ a: U, _ b: V) -> [U.Element]
    where U.Element: FloatingPoint, V.Element == U.Element { a.mapped(with: b) { $0 < $1 ? $0 : $1 } }
    public static func minimum<U: AccelerateBuffer, V: AccelerateBuffer, R: AccelerateMutableBuffer>(
        _ a: U, _ b: V, result: inout R
    ) where U.Element: FloatingPoint, V.Element == U.Element, R.Element == U.Element { result.store(minimum(a, b)) }

    public static func absolute<U: AccelerateBuffer>(_ vector: U) -> [U.Element] where U.Element: FloatingPoint {
        vector.mapped { $0.magnitude }
    }
    public static func absolute<U: AccelerateBuffer, R: AccelerateMutableBuffer>(_ vector: U, result: inout R)
    where U.Element: FloatingPoint, R.Element == U.Element { result.store(absolute(vector)) }

    public static func negative<U: AccelerateBuffer>(_ vector: U) -> [U.Element] where U.Element: FloatingPoint {
        vector.mapped { -$0 }
    }
    public static func negative<U: AccelerateBuffer, R: AccelerateMutableBuffer>(_ vector: U, result: inout R)
    where U.Element: FloatingPoint, R.Element == U.Element { result.store(negative(vector)) }

    public static func square<U: AccelerateBuffer>(_ vector: U) -> [U.Element] where U.Element: FloatingPoint {
        vector.mapped { $0 * $0 }
    }
    public static func square<U: AccelerateBuffer, R: AccelerateMutableBuffer>(_ vector: U, result: inout R)
    where U.Element: FloatingPoint, R.Element == U.Element { result.store(square(vector)) }

    public static func signedSquare<U: AccelerateBuffer>(_ vector: U) -> [U.Element] where U.Element: FloatingPoint {
        vector.mapped { $0 * $0.magnitude }
    }
    public static func signedSquare<U: AccelerateBuffer, R: AccelerateMutableBuffer>(_ vector: U, result: inout R)
    where U.Element: FloatingPoint, R.Element == U.Element { result.store(signedSquare(vector)) }

    public static func clip<U: AccelerateBuffer>(_ vector: U, to bounds: ClosedRange<U.Element>) -> [U.Element]
    where U.Element: FloatingPoint { vector.mapped { min(max($0, bounds.lowerBound), bounds.upperBound) } }
    public static func clip<U: AccelerateBuffer, R: AccelerateMutableBuffer>(
        _ vector: U, to bounds: ClosedRange<U.Element>, result: inout R
    ) where U.Element: FloatingPoint, R.Element == U.Element { result.store(clip(vector, to: bounds)) }

    /// a b + c, with a scalar or vectors of the same length.
    public static func add<U: AccelerateBuffer, V: AccelerateBuffer>(
        multiplication: (a: U, b: U.Element), _ c: V
    ) -> [U.Element] where U.Element: FloatingPoint, V.Element == U.Element {
        multiplication.a.mapped(with: c) { $0 * multiplication.b + $1 }
    }
    public static func add<T: AccelerateBuffer, U: AccelerateBuffer, V: AccelerateBuffer>(
        multiplication: (a: T, b: U), _ c: V
    ) -> [U.Element] where U.Element: FloatingPoint, T.Element == U.Element, V.Element == U.Element {
        add(multiply(multiplication.a, multiplication.b), c)
    }

    public static func fill<R: AccelerateMutableBuffer>(_ vector: inout R, with value: R.Element)
    where R.Element: FloatingPoint { vector.store(Array(repeating: value, count: vector.count)) }
    public static func clear<R: AccelerateMutableBuffer>(_ vector: inout R) where R.Element: FloatingPoint {
        fill(&vector, with: 0)
    }
    public static func reverse<R: AccelerateMutableBuffer>(_ vector: inout R) where R.Element: FloatingPoint {
        vector.withUnsafeMutableBufferPointer { $0.reverse() }
    }
    /// `count` values from the first, each larger than the one before by `increment`.
    public static func ramp<T: FloatingPoint>(withInitialValue initialValue: T, increment: T, count: Int) -> [T] {
        (0..<count).map { initialValue + T($0) * increment }
    }
    /// `count` values from the lower bound to the upper.
    public static func ramp<T: FloatingPoint>(in range: ClosedRange<T>, count: Int) -> [T] {
        let step = (range.upperBound - range.lowerBound) / T(max(count - 1, 1))
        return ramp(withInitialValue: range.lowerBound, increment: step, count: count)
    }
    public static func floatToDouble<U: AccelerateBuffer>(_ source: U) -> [Double] where U.Element == Float {
        source.mapped(Double.init)
    }
    public static func doubleToFloat<U: AccelerateBuffer>(_ source: U) -> [Float] where U.Element == Double {
        source.mapped { Float($0) }
    }
}
