/// Sizes and strides of a tensor, in elements, and the rules of MTLTensorDescriptor for them.
struct TensorLayout {
    let extents: [Int]
    let strides: [Int]
    let type: MTLTensorDataType

    /// Strides of a tensor without gaps: each is the product of the sizes of all inner dimensions.
    static func dense(_ extents: [Int]) -> [Int] {
        extents.indices.map { extents[..<$0].reduce(1) { $0.multipliedReportingOverflow(by: $1).partialValue } }
    }

    init(_ descriptor: MTLTensorDescriptor) {
        extents = descriptor.dimensions.extents
        strides = descriptor.strides?.extents ?? Self.dense(extents)
        type = descriptor.dataType
    }

    /// The number of bytes from the first element to the end of the last; nil if an Int cannot hold it.
    var byteCount: Int? {
        var last = 0
        for (extent, stride) in zip(extents, strides) {
            let (step, overflows) = (extent - 1).multipliedReportingOverflow(by: stride)
            let (sum, alsoOverflows) = last.addingReportingOverflow(step)
            guard !overflows && !alsoOverflows else { return nil }
            last = sum
        }
        let (bytes, overflows) = (last + 1).multipliedReportingOverflow(by: type.size)
        return overflows ? nil : bytes
    }

    /// Returns the first rule that a descriptor violates.
    static func problem(of descriptor: MTLTensorDescriptor, hasBuffer: Bool) -> String? {
        let layout = TensorLayout(descriptor), extents = layout.extents, strides = layout.strides
        let isTight = descriptor.usage.contains(.machineLearning)
        let pairs = extents.indices.dropFirst().map {
            ($0, extents[$0 - 1].multipliedReportingOverflow(by: strides[$0 - 1]))
        }
        let rules: [(holds: () -> Bool, otherwise: String)] = [
            ({ descriptor.dataType != .none }, "dataType must not be MTLTensorDataTypeNone."),
            ({ !descriptor.usage.isEmpty }, "usage must not be empty."),
            ({ extents.allSatisfy { $0 > 0 } }, "dimensions \(extents) must be positive."),
            ({ descriptor.storageMode != .memoryless }, "storageMode must not be MTLStorageModeMemoryless."),
            (
                { hasBuffer == (descriptor.strides != nil) },
                hasBuffer
                    ? "strides are required for a tensor of a buffer." : "strides are only for a tensor of a buffer."
            ),
            (
                { strides.count == extents.count },
                "strides \(strides) must have the rank of dimensions \(extents)."
            ),
            ({ strides.first.map { $0 == 1 } ?? true }, "the first of strides \(strides) must be 1."),
            (
                { pairs.allSatisfy { !$1.overflow && strides[$0] >= $1.partialValue } },
                "each of strides \(strides) must be at least the one before times its dimension, of \(extents)."
            ),
            (
                { !isTight || !hasBuffer || strides.count < 2 || strides[1] * layout.type.size % 64 == 0 },
                "with MTLTensorUsageMachineLearning, the second of strides \(strides) must be a multiple of 64 bytes."
            ),
            (
                { !isTight || pairs.dropFirst().allSatisfy { strides[$0] == $1.partialValue } },
                "with MTLTensorUsageMachineLearning, strides \(strides) from the third on must leave no gaps."
            ),
            ({ layout.byteCount != nil }, "dimensions \(extents) are too large."),
        ]
        return rules.first { !$0.holds() }?.otherwise
    }
}

/// A slice of a tensor, or of the host's memory: an address, and the distance of a step in each dimension, in bytes.
struct TensorSlice {
    let address: UnsafeMutableRawPointer
    let steps: [Int]

    init(_ address: UnsafeMutableRawPointer, strides: [Int], size: Int) {
        self.address = address
        steps = strides.map { $0 * size }
    }

    /// Copies `extents` elements of `size` bytes in each dimension, row by row where elements are adjacent in both
    /// slices.
    static func copy(
        _ extents: [Int], size: Int, from source: TensorSlice, to target: TensorSlice,
        _ move: (UnsafeMutableRawPointer, UnsafeMutableRawPointer, Int) -> Void
    ) {
        let isRow = source.steps.first == size && target.steps.first == size
        let row = isRow ? extents[0] * size : size, first = isRow ? 1 : 0
        var position = [Int](repeating: 0, count: extents.count)
        var from = source.address, to = target.address
        while true {
            move(to, from, row)
            var dimension = first
            while dimension < extents.count {
                position[dimension] += 1
                from += source.steps[dimension]
                to += target.steps[dimension]
                if position[dimension] < extents[dimension] { break }
                from -= extents[dimension] * source.steps[dimension]
                to -= extents[dimension] * target.steps[dimension]
                position[dimension] = 0
                dimension += 1
            }
            if dimension == extents.count { return }
        }
    }
}
