import COrchard

/// A checked view of a buffer's elements: every element is within the buffer.
struct View {
    let buffer: Buffer
    let offset: UInt64
    let elementSize: Int
    let shape: [UInt64]
    let strides: [Int64]
    let count: UInt64
    /// The bytes from the lowest element to the end of the highest.
    let range: Range<Int>

    init(_ view: orchard_view, _ buffer: Buffer) throws {
        guard [1, 2, 4, 8].contains(view.element_size) else {
            throw OrchardError.invalid(
                "view: expected element_size to be 1, 2, 4 or 8 bytes, got \(view.element_size).")
        }
        guard view.rank <= ORCHARD_MAX_RANK else {
            throw OrchardError.invalid("view: expected rank to be at most \(ORCHARD_MAX_RANK), got \(view.rank).")
        }
        guard view.offset % UInt64(view.element_size) == 0 else {
            throw OrchardError.invalid(
                "view: offset \(view.offset) is not a multiple of the element size \(view.element_size).")
        }
        self.buffer = buffer
        offset = view.offset
        elementSize = Int(view.element_size)
        let rank = Int(view.rank)
        shape = withUnsafeBytes(of: view.shape) { Array($0.bindMemory(to: UInt64.self).prefix(rank)) }
        strides = withUnsafeBytes(of: view.strides) { Array($0.bindMemory(to: Int64.self).prefix(rank)) }
        guard let extent = Self.extent(shape, strides, offset, elementSize), extent.range.upperBound <= buffer.length
        else {
            throw OrchardError.invalid(
                "view: shape \(shape) with strides \(strides) of \(elementSize) bytes at offset \(offset) does not "
                    + "lie inside "
                    + "\(buffer.name), which has \(buffer.length) bytes.")
        }
        (count, range) = extent
    }

    /// Returns nil if a number overflows, or if an element is before the start of the buffer.
    private static func extent(_ shape: [UInt64], _ strides: [Int64], _ offset: UInt64, _ size: Int) -> (
        count: UInt64, range: Range<Int>
    )? {
        guard let offset = Int(exactly: offset) else { return nil }
        if shape.contains(0) { return (0, offset..<offset) }
        var (lowest, highest, count, overflows) = (offset, offset, 1, false)
        func checked(_ result: (partialValue: Int, overflow: Bool)) -> Int {
            overflows = overflows || result.overflow
            return result.partialValue
        }
        for (elements, stride) in zip(shape, strides) {
            guard let elements = Int(exactly: elements), let stride = Int(exactly: stride) else { return nil }
            count = checked(count.multipliedReportingOverflow(by: elements))
            let step = checked(stride.multipliedReportingOverflow(by: size))
            let extent = checked(step.multipliedReportingOverflow(by: elements - 1))
            lowest = checked(lowest.addingReportingOverflow(min(extent, 0)))
            highest = checked(highest.addingReportingOverflow(max(extent, 0)))
        }
        let end = checked(highest.addingReportingOverflow(size))
        return overflows || lowest < 0 ? nil : (UInt64(count), lowest..<end)
    }

    static func rowMajorStrides(_ shape: [UInt64]) -> [Int64] {
        var stride: Int64 = 1
        return shape.reversed().map { size in
            defer { stride = stride &* Int64(truncatingIfNeeded: max(size, 1)) }
            return stride
        }.reversed()
    }

    /// Whether the view is contiguous, row-major. The stride of a dimension of length 1 is ignored.
    var isRowMajor: Bool {
        count == 0 || zip(shape, zip(strides, Self.rowMajorStrides(shape))).allSatisfy { $0 == 1 || $1.0 == $1.1 }
    }

    /// Whether the strides guarantee that no two elements share bytes: each stride is longer than the extent of the
    /// dimensions with shorter strides.
    var isInjective: Bool {
        var extent: UInt64 = 0
        for (size, stride) in zip(shape, strides.map(\.magnitude)).sorted(by: { $0.1 < $1.1 })
        where size > 1 && count > 0 {
            guard stride > extent else { return false }
            extent += stride * (size - 1)
        }
        return true
    }

    /// The offset of the element with index 0, in elements from the start of `range`.
    var start: UInt64 { (offset - UInt64(range.lowerBound)) / UInt64(elementSize) }
}
