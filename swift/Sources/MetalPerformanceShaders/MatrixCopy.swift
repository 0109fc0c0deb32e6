import Metal

/// Where a copy starts in its source and its destination.
public struct MPSMatrixCopyOffsets: Sendable {
    public var sourceRowOffset: UInt32 = 0
    public var sourceColumnOffset: UInt32 = 0
    public var destinationRowOffset: UInt32 = 0
    public var destinationColumnOffset: UInt32 = 0

    public init() {}

    public init(
        sourceRowOffset: UInt32, sourceColumnOffset: UInt32, destinationRowOffset: UInt32,
        destinationColumnOffset: UInt32
    ) {
        (self.sourceRowOffset, self.sourceColumnOffset) = (sourceRowOffset, sourceColumnOffset)
        (self.destinationRowOffset, self.destinationColumnOffset) = (destinationRowOffset, destinationColumnOffset)
    }
}

/// The sources and destinations of an `MPSMatrixCopy`.
public class MPSMatrixCopyDescriptor: NSObject {
    fileprivate struct Operation {
        let source, destination: MPSMatrix
        let offsets: MPSMatrixCopyOffsets
    }
    fileprivate var operations: [Operation?]

    public init(device: any MTLDevice, count: Int) { operations = Array(repeating: nil, count: count) }

    public convenience init(sourceMatrix: MPSMatrix, destinationMatrix: MPSMatrix, offsets: MPSMatrixCopyOffsets) {
        self.init(device: sourceMatrix.device, count: 1)
        setCopyOperationAt(0, sourceMatrix: sourceMatrix, destinationMatrix: destinationMatrix, offsets: offsets)
    }

    public func setCopyOperationAt(
        _ index: Int, sourceMatrix: MPSMatrix, destinationMatrix: MPSMatrix, offsets: MPSMatrixCopyOffsets
    ) {
        operations[index] = Operation(source: sourceMatrix, destination: destinationMatrix, offsets: offsets)
    }
}

/// Copies `copyRows` x `copyColumns` elements of each source to its destination, and converts them. A transposed matrix
/// holds element (row, column) of the copy in row `column`.
public class MPSMatrixCopy: MPSKernel {
    public let copyRows: Int
    public let copyColumns: Int
    public let sourcesAreTransposed: Bool
    public let destinationsAreTransposed: Bool

    public init(
        device: any MTLDevice, copyRows: Int, copyColumns: Int, sourcesAreTransposed: Bool,
        destinationsAreTransposed: Bool
    ) {
        (self.copyRows, self.copyColumns) = (copyRows, copyColumns)
        self.sourcesAreTransposed = sourcesAreTransposed
        self.destinationsAreTransposed = destinationsAreTransposed
        super.init(device: device)
    }

    public func encode(commandBuffer: any MTLCommandBuffer, copyDescriptor: MPSMatrixCopyDescriptor) {
        for case let operation? in copyDescriptor.operations {
            let offsets = operation.offsets
            let source = part(
                operation.source, offsets.sourceRowOffset, offsets.sourceColumnOffset, "source matrix",
                isTransposed: sourcesAreTransposed)
            let result = part(
                operation.destination, offsets.destinationRowOffset, offsets.destinationColumnOffset,
                "destination matrix", isTransposed: destinationsAreTransposed)
            let (down, across) = strides(source, isTransposed: sourcesAreTransposed)
            let (resultDown, resultAcross) = strides(result, isTransposed: destinationsAreTransposed)
            dispatch(
                "copy_matrix", types: ["Source": source.type, "Result": result.type], to: commandBuffer,
                buffers: [(source.buffer, source.offset), (result.buffer, result.offset)],
                parameters: (down, across, resultDown, resultAcross),
                threads: MTLSizeMake(copyColumns, copyRows, 1))
        }
    }

    /// The elements from a row of the copy to the next one, and from a column to the next one.
    private func strides(_ part: MatrixPart, isTransposed: Bool) -> (UInt32, UInt32) {
        isTransposed ? (1, part.rowStride) : (part.rowStride, 1)
    }

    private func part(
        _ matrix: MPSMatrix, _ row: UInt32, _ column: UInt32, _ name: String, isTransposed: Bool
    ) -> MatrixPart {
        // Metal's documentation does not say whether they count rows of memory or of the copy.
        check(!isTransposed || (row == 0 && column == 0), "offsets of a transposed \(name) are not supported.")
        let part = MatrixPart(matrix, MTLOriginMake(Int(row), Int(column), 0), 0)
        require(part, name, isTransposed ? (copyColumns, copyRows) : (copyRows, copyColumns))
        return part
    }
}
