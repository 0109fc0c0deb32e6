// Operands of the Swift forms of Accelerate: arrays, array slices and buffer pointers.

public protocol AccelerateBuffer {
    associatedtype Element
    var count: Int { get }
    func withUnsafeBufferPointer<R>(_ body: (UnsafeBufferPointer<Element>) throws -> R) rethrows -> R
}

public protocol AccelerateMutableBuffer: AccelerateBuffer {
    mutating func withUnsafeMutableBufferPointer<R>(
        _ body: (inout UnsafeMutableBufferPointer<Element>) throws -> R
    ) rethrows -> R
}

extension Array: AccelerateMutableBuffer {}
extension ContiguousArray: AccelerateMutableBuffer {}
extension ArraySlice: AccelerateMutableBuffer {}
extension UnsafeBufferPointer: AccelerateBuffer {
    public func withUnsafeBufferPointer<R>(_ body: (UnsafeBufferPointer<Element>) throws -> R) rethrows -> R {
        try body(self)
    }
}
extension UnsafeMutableBufferPointer: AccelerateMutableBuffer {
    public func withUnsafeBufferPointer<R>(_ body: (UnsafeBufferPointer<Element>) throws -> R) rethrows -> R {
        try body(UnsafeBufferPointer(self))
    }
    public func withUnsafeMutableBufferPointer<R>(
        _ body: (inout UnsafeMutableBufferPointer<Element>) throws -> R
    ) rethrows -> R {
        var copy = self
        return try body(&copy)
    }
}

extension AccelerateBuffer {
    /// The value of each element.
    func mapped<Result>(_ value: (Element) -> Result) -> [Result] { withUnsafeBufferPointer { $0.map(value) } }

    /// The value for each pair of elements; both vectors must have the same length.
    func mapped<Other: AccelerateBuffer, Result>(
        with other: Other, _ value: (Element, Other.Element) -> Result
    ) -> [Result] {
        precondition(count == other.count, "vectors must have the same number of elements (\(count), \(other.count))")
        return withUnsafeBufferPointer { a in other.withUnsafeBufferPointer { b in zip(a, b).map(value) } }
    }

    func joined<Result>(_ first: Result, _ next: (Result, Element) -> Result) -> Result {
        withUnsafeBufferPointer { $0.reduce(first, next) }
    }
}

extension AccelerateMutableBuffer {
    /// Stores values in place of all elements.
    mutating func store(_ values: [Element]) {
        precondition(count == values.count, "the result must have \(values.count) elements, not \(count)")
        withUnsafeMutableBufferPointer { target in
            for (index, value) in values.enumerated() { target[index] = value }
        }
    }
}
