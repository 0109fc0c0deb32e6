// vDSP's conversions between floating point and integers, for float, and for double if the name ends in D. In a name,
// the number is the width of the integers, u means unsigned, and r rounds to the nearest integer instead of toward 0.

/// Returns the nearest integer that the type can represent; 0 for NaN.
private func integer<From: BinaryFloatingPoint, To: FixedWidthInteger>(
    _ rule: FloatingPointRoundingRule
) -> VectorToVector<From, To> {
    unary { (value: From) -> To in
        let limit = From(sign: .plus, exponent: 62, significand: 1)
        return value.isNaN ? 0 : To(clamping: Int64(max(-limit, min(value.rounded(rule), limit))))
    }
}

public let vDSP_vdpsp: VectorToVector<Double, Float> = unary { Float($0) }
public let vDSP_vspdp: VectorToVector<Float, Double> = unary { Double($0) }
public let vDSP_vflt8: VectorToVector<Int8, Float> = unary { Float($0) }
public let vDSP_vflt16: VectorToVector<Int16, Float> = unary { Float($0) }
public let vDSP_vflt32: VectorToVector<Int32, Float> = unary { Float($0) }
public let vDSP_vfltu8: VectorToVector<UInt8, Float> = unary { Float($0) }
public let vDSP_vfltu16: VectorToVector<UInt16, Float> = unary { Float($0) }
public let vDSP_vfltu32: VectorToVector<UInt32, Float> = unary { Float($0) }
public let vDSP_vflt8D: VectorToVector<Int8, Double> = unary { Double($0) }
public let vDSP_vflt16D: VectorToVector<Int16, Double> = unary { Double($0) }
public let vDSP_vflt32D: VectorToVector<Int32, Double> = unary { Double($0) }
public let vDSP_vfltu8D: VectorToVector<UInt8, Double> = unary { Double($0) }
public let vDSP_vfltu16D: VectorToVector<UInt16, Double> = unary { Double($0) }
public let vDSP_vfltu32D: VectorToVector<UInt32, Double> = unary { Double($0) }
public let vDSP_vfix8: VectorToVector<Float, Int8> = integer(.towardZero)
public let vDSP_vfix16: VectorToVector<Float, Int16> = integer(.towardZero)
public let vDSP_vfix32: VectorToVector<Float, Int32> = integer(.towardZero)
public let vDSP_vfixu8: VectorToVector<Float, UInt8> = integer(.towardZero)
public let vDSP_vfixu16: VectorToVector<Float, UInt16> = integer(.towardZero)
public let vDSP_vfixu32: VectorToVector<Float, UInt32> = integer(.towardZero)
public let vDSP_vfixr8: VectorToVector<Float, Int8> = integer(.toNearestOrEven)
public let vDSP_vfixr16: VectorToVector<Float, Int16> = integer(.toNearestOrEven)
public let vDSP_vfixr32: VectorToVector<Float, Int32> = integer(.toNearestOrEven)
public let vDSP_vfixru8: VectorToVector<Float, UInt8> = integer(.toNearestOrEven)
public let vDSP_vfixru16: VectorToVector<Float, UInt16> = integer(.toNearestOrEven)
public let vDSP_vfixru32: VectorToVector<Float, UInt32> = integer(.toNearestOrEven)
public let vDSP_vfix8D: VectorToVector<Double, Int8> = integer(.towardZero)
public let vDSP_vfix16D: VectorToVector<Double, Int16> = integer(.towardZero)
public let vDSP_vfix32D: VectorToVector<Double, Int32> = integer(.towardZero)
public let vDSP_vfixu8D: VectorToVector<Double, UInt8> = integer(.towardZero)
public let vDSP_vfixu16D: VectorToVector<Double, UInt16> = integer(.towardZero)
public let vDSP_vfixu32D: VectorToVector<Double, UInt32> = integer(.towardZero)
public let vDSP_vfixr8D: VectorToVector<Double, Int8> = integer(.toNearestOrEven)
public let vDSP_vfixr16D: VectorToVector<Double, Int16> = integer(.toNearestOrEven)
public let vDSP_vfixr32D: VectorToVector<Double, Int32> = integer(.toNearestOrEven)
public let vDSP_vfixru8D: VectorToVector<Double, UInt8> = integer(.toNearestOrEven)
public let vDSP_vfixru16D: VectorToVector<Double, UInt16> = integer(.toNearestOrEven)
public let vDSP_vfixru32D: VectorToVector<Double, UInt32> = integer(.toNearestOrEven)
