// Functions of each element, by the Swift forms of vForce.

/// For each form that returns an array, another form stores the elements in `result`.
public enum vForce {}

extension AccelerateBuffer {
    /// Computes in double precision. Rounding to float then gives the nearest float in all but rare cases.
    fileprivate func computed(_ function: (Double) -> Double) -> [Element] where Element: BinaryFloatingPoint {
        mapped { Element(function(Double($0))) }
    }
}

extension vForce {
    public static func exp<U: AccelerateBuffer>(_ vector: U) -> [U.Element] where U.Element: BinaryFloatingPoint {
        vector.computed { Foundation.exp($0) }
    }
    public static func exp<U: AccelerateBuffer, R: AccelerateMutableBuffer>(_ vector: U, result: inout R)
    where U.Element: BinaryFloatingPoint, R.Element == U.Element { result.store(exp(vector)) }

    public static func exp2<U: AccelerateBuffer>(_ vector: U) -> [U.Element] where U.Element: BinaryFloatingPoint {
        vector.computed { Foundation.exp2($0) }
    }
    public static func exp2<U: AccelerateBuffer, R: AccelerateMutableBuffer>(_ vector: U, result: inout R)
    where U.Element: BinaryFloatingPoint, R.Element == U.Element { result.store(exp2(vector)) }

    public static func expm1<U: AccelerateBuffer>(_ vector: U) -> [U.Element] where U.Element: BinaryFloatingPoint {
        vector.computed { Foundation.expm1($0) }
    }
    public static func expm1<U: AccelerateBuffer, R: AccelerateMutableBuffer>(_ vector: U, result: inout R)
    where U.Element: BinaryFloatingPoint, R.Element == U.Element { result.store(expm1(vector)) }

    public static func log<U: AccelerateBuffer>(_ vector: U) -> [U.Element] where U.Element: BinaryFloatingPoint {
        vector.computed { Foundation.log($0) }
    }
    public static func log<U: AccelerateBuffer, R: AccelerateMutableBuffer>(_ vector: U, result: inout R)
    where U.Element: BinaryFloatingPoint, R.Element == U.Element { result.store(log(vector)) }

    public static func log2<U: AccelerateBuffer>(_ vector: U) -> [U.Element] where U.Element: BinaryFloatingPoint {
        vector.computed { Foundation.log2($0) }
    }
    public static func log2<U: AccelerateBuffer, R: AccelerateMutableBuffer>(_ vector: U, result: inout R)
    where U.Element: BinaryFloatingPoint, R.Element == U.Element { result.store(log2(vector)) }

    public static func log10<U: AccelerateBuffer>(_ vector: U) -> [U.Element] where U.Element: BinaryFloatingPoint {
        vector.computed { Foundation.log10($0) }
    }
    public static func log10<U: AccelerateBuffer, R: AccelerateMutableBuffer>(_ vector: U, result: inout R)
    where U.Element: BinaryFloatingPoint, R.Element == U.Element { result.store(log10(vector)) }

    public static func log1p<U: AccelerateBuffer>(_ vector: U) -> [U.Element] where U.Element: BinaryFloatingPoint {
        vector.computed { Foundation.log1p($0) }
    }
    public static func log1p<U: AccelerateBuffer, R: AccelerateMutableBuffer>(_ vector: U, result: inout R)
    where U.Element: BinaryFloatingPoint, R.Element == U.Element { result.store(log1p(vector)) }

    public static func sin<U: AccelerateBuffer>(_ vector: U) -> [U.Element] where U.Element: BinaryFloatingPoint {
        vector.computed { Foundation.sin($0) }
    }
    public static func sin<U: AccelerateBuffer, R: AccelerateMutableBuffer>(_ vector: U, result: inout R)
    where U.Element: BinaryFloatingPoint, R.Element == U.Element { result.store(sin(vector)) }

    public static func cos<U: AccelerateBuffer>(_ vector: U) -> [U.Element] where U.Element: BinaryFloatingPoint {
        vector.computed { Foundation.cos($0) }
    }
    public static func cos<U: AccelerateBuffer, R: AccelerateMutableBuffer>(_ vector: U, result: inout R)
    where U.Element: BinaryFloatingPoint, R.Element == U.Element { result.store(cos(vector)) }

    public static func tan<U: AccelerateBuffer>(_ vector: U) -> [U.Element] where U.Element: BinaryFloatingPoint {
        vector.computed { Foundation.tan($0) }
    }
    public static func tan<U: AccelerateBuffer, R: AccelerateMutableBuffer>(_ vector: U, result: inout R)
    where U.Element: BinaryFloatingPoint, R.Element == U.Element { result.store(tan(vector)) }

    public static func asin<U: AccelerateBuffer>(_ vector: U) -> [U.Element] where U.Element: BinaryFloatingPoint {
        vector.computed { Foundation.asin($0) }
    }
    public static func asin<U: AccelerateBuffer, R: AccelerateMutableBuffer>(_ vector: U, result: inout R)
    where U.Element: BinaryFloatingPoint, R.Element == U.Element { result.store(asin(vector)) }

    public static func acos<U: AccelerateBuffer>(_ vector: U) -> [U.Element] where U.Element: BinaryFloatingPoint {
        vector.computed { Foundation.acos($0) }
    }
    public static func acos<U: AccelerateBuffer, R: AccelerateMutableBuffer>(_ vector: U, result: inout R)
    where U.Element: BinaryFloatingPoint, R.Element == U.Element { result.store(acos(vector)) }

    public static func atan<U: AccelerateBuffer>(_ vector: U) -> [U.Element] where U.Element: BinaryFloatingPoint {
        vector.computed { Foundation.atan($0) }
    }
    public static func atan<U: AccelerateBuffer, R: AccelerateMutableBuffer>(_ vector: U, result: inout R)
    where U.Element: BinaryFloatingPoint, R.Element == U.Element { result.store(atan(vector)) }

    public static func sinh<U: AccelerateBuffer>(_ vector: U) -> [U.Element] where U.Element: BinaryFloatingPoint {
        vector.computed { Foundation.sinh($0) }
    }
    public static func sinh<U: AccelerateBuffer, R: AccelerateMutableBuffer>(_ vector: U, result: inout R)
    where U.Element: BinaryFloatingPoint, R.Element == U.Element { result.store(sinh(vector)) }

    public static func cosh<U: AccelerateBuffer>(_ vector: U) -> [U.Element] where U.Element: BinaryFloatingPoint {
        vector.computed { Foundation.cosh($0) }
    }
    public static func cosh<U: AccelerateBuffer, R: AccelerateMutableBuffer>(_ vector: U, result: inout R)
    where U.Element: BinaryFloatingPoint, R.Element == U.Element { result.store(cosh(vector)) }

    public static func tanh<U: AccelerateBuffer>(_ vector: U) -> [U.Element] where U.Element: BinaryFloatingPoint {
        vector.computed { Foundation.tanh($0) }
    }
    public static func tanh<U: AccelerateBuffer, R: AccelerateMutableBuffer>(_ vector: U, result: inout R)
    where U.Element: BinaryFloatingPoint, R.Element == U.Element { result.store(tanh(vector)) }

    public static func ceil<U: AccelerateBuffer>(_ vector: U) -> [U.Element] where U.Element: BinaryFloatingPoint {
        vector.computed { $0.rounded(.up) }
    }
    public static func ceil<U: AccelerateBuffer, R: AccelerateMutableBuffer>(_ vector: U, result: inout R)
    where U.Element: BinaryFloatingPoint, R.Element == U.Element { result.store(ceil(vector)) }

    public static func floor<U: AccelerateBuffer>(_ vector: U) -> [U.Element] where U.Element: BinaryFloatingPoint {
        vector.computed { $0.rounded(.down) }
    }
    public static func floor<U: AccelerateBuffer, R: AccelerateMutableBuffer>(_ vector: U, result: inout R)
    where U.Element: BinaryFloatingPoint, R.Element == U.Element { result.store(floor(vector)) }

    public static func trunc<U: AccelerateBuffer>(_ vector: U) -> [U.Element] where U.Element: BinaryFloatingPoint {
        vector.computed { $0.rounded(.towardZero) }
    }
    public static func trunc<U: AccelerateBuffer, R: AccelerateMutableBuffer>(_ vector: U, result: inout R)
    where U.Element: BinaryFloatingPoint, R.Element == U.Element { result.store(trunc(vector)) }

    public static func nearestInteger<U: AccelerateBuffer>(_ vector: U) -> [U.Element]
    where U.Element: BinaryFloatingPoint {
        vector.computed { $0.rounded(.toNearestOrEven) }
    }
    public static func nearestInteger<U: AccelerateBuffer, R: AccelerateMutableBuffer>(_ vector: U, result: inout R)
    where U.Element: BinaryFloatingPoint, R.Element == U.Element { result.store(nearestInteger(vector)) }

    public static func sqrt<U: AccelerateBuffer>(_ vector: U) -> [U.Element] where U.Element: BinaryFloatingPoint {
        vector.computed { $0.squareRoot() }
    }
    public static func sqrt<U: AccelerateBuffer, R: AccelerateMutableBuffer>(_ vector: U, result: inout R)
    where U.Element: BinaryFloatingPoint, R.Element == U.Element { result.store(sqrt(vector)) }

    public static func rsqrt<U: AccelerateBuffer>(_ vector: U) -> [U.Element] where U.Element: BinaryFloatingPoint {
        vector.computed { 1 / $0.squareRoot() }
    }
    public static func rsqrt<U: AccelerateBuffer, R: AccelerateMutableBuffer>(_ vector: U, result: inout R)
    where U.Element: BinaryFloatingPoint, R.Element == U.Element { result.store(rsqrt(vector)) }

    public static func reciprocal<U: AccelerateBuffer>(_ vector: U) -> [U.Element]
    where U.Element: BinaryFloatingPoint {
        vector.computed { 1 / $0 }
    }
    public static func reciprocal<U: AccelerateBuffer, R: AccelerateMutableBuffer>(_ vector: U, result: inout R)
    where U.Element: BinaryFloatingPoint, R.Element == U.Element { result.store(reciprocal(vector)) }

    public static func pow<U: AccelerateBuffer, V: AccelerateBuffer>(bases: U, exponents: V) -> [U.Element]
    where U.Element: BinaryFloatingPoint, V.Element == U.Element {
        bases.mapped(with: exponents) { U.Element(Foundation.pow(Double($0), Double($1))) }
    }
    public static func atan2<U: AccelerateBuffer, V: AccelerateBuffer>(x: U, y: V) -> [U.Element]
    where U.Element: BinaryFloatingPoint, V.Element == U.Element {
        y.mapped(with: x) { U.Element(Foundation.atan2(Double($0), Double($1))) }
    }
}
