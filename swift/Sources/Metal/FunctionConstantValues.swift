/// The values that specialize a function, by index or by name; the last value set for a key applies.
public class MTLFunctionConstantValues: NSObject, NSCopying {
    enum Key: Hashable {
        case index(Int)
        case name(String)
    }

    struct Value {
        let type: MTLDataType
        let bytes: [UInt8]
    }

    /// The maximum number of function constants in a library, from the Metal Feature Set Tables.
    private static let maxCount = 65536

    private(set) var values: [Key: Value] = [:]

    public func setConstantValue(_ value: UnsafeRawPointer, type: MTLDataType, index: Int) {
        set(value, type, .index(index), "setConstantValue:type:atIndex:")
    }

    public func setConstantValue(_ value: UnsafeRawPointer, type: MTLDataType, withName name: String) {
        set(value, type, .name(name), "setConstantValue:type:withName:")
    }

    public func setConstantValues(_ values: UnsafeRawPointer, type: MTLDataType, range: Range<Int>) {
        let size = type.constantSize ?? 0
        for (position, index) in range.enumerated() {
            set(values + position * size, type, .index(index), "setConstantValues:type:withRange:")
        }
    }

    public func reset() { values = [:] }

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTLFunctionConstantValues()
        copy.values = values
        return copy
    }

    private func set(_ pointer: UnsafeRawPointer, _ type: MTLDataType, _ key: Key, _ selector: String) {
        guard let size = type.constantSize else {
            return misuse(
                "MTLFunctionConstantValues", selector,
                "type (\(type)) is not a scalar or vector type, so no function constant can have it")
        }
        if case .index(let index) = key, !(0..<Self.maxCount).contains(index) {
            return misuse(
                "MTLFunctionConstantValues", selector, "index(\(index)) must be from 0 to \(Self.maxCount - 1).")
        }
        values[key] = Value(type: type, bytes: Array(UnsafeRawBufferPointer(start: pointer, count: size)))
    }
}

extension MTLDataType {
    /// The size of a scalar or vector of this type, or nil if a function constant can't have the type. A vector of 3
    /// has the size of a vector of 4.
    var constantSize: Int? {
        let scalars: [(first: MTLDataType, size: Int)] = [
            (.float, 4), (.half, 2), (.int, 4), (.uint, 4), (.short, 2), (.ushort, 2), (.char, 1), (.uchar, 1),
            (.bool, 1), (.long, 8), (.ulong, 8), (.bfloat, 2),
        ]
        for scalar in scalars where (scalar.first.rawValue..<scalar.first.rawValue + 4).contains(rawValue) {
            return scalar.size * [1, 2, 4, 4][Int(rawValue - scalar.first.rawValue)]
        }
        return nil
    }
}
