import Metal

/// Finds the largest values of each row, in descending order, and their columns. Equal values are in the order of their
/// columns. A row with NaN has fewer results.
public class MPSMatrixFindTopK: MPSMatrixUnaryKernel {
    public var sourceRows = Int.max
    public var sourceColumns = Int.max
    /// Added to each index.
    public var indexOffset = 0
    /// The number of values per row, at most 16.
    public var numberOfTopKValues: Int

    public init(device: any MTLDevice, numberOfTopKValues: Int) {
        self.numberOfTopKValues = numberOfTopKValues
        super.init(device: device)
    }

    public func encode(
        commandBuffer: any MTLCommandBuffer, inputMatrix: MPSMatrix, resultIndexMatrix: MPSMatrix,
        resultValueMatrix: MPSMatrix
    ) {
        let source = MatrixPart(inputMatrix, sourceMatrixOrigin, batchStart)
        let indices = MatrixPart(resultIndexMatrix, resultMatrixOrigin, batchStart)
        let values = MatrixPart(resultValueMatrix, resultMatrixOrigin, batchStart)
        let (rows, columns) = (min(sourceRows, source.rows), min(sourceColumns, source.columns))
        check(indices.type == .uInt32, "the indices have another data type; expected uInt32.")
        check((1...16).contains(numberOfTopKValues), "expected 1 to 16 values, got \(numberOfTopKValues).")
        check(columns >= numberOfTopKValues, "rows of \(columns) values have fewer than \(numberOfTopKValues).")
        require(indices, "matrix of indices", (rows, numberOfTopKValues))
        require(values, "matrix of values", (rows, numberOfTopKValues))
        let parameters = TopK(
            columns: UInt32(columns), count: UInt32(numberOfTopKValues), indexOffset: UInt32(indexOffset),
            sourceRow: source.rowStride, indexRow: indices.rowStride, valueRow: values.rowStride,
            sourceMatrix: source.matrixStride, indexMatrix: indices.matrixStride, valueMatrix: values.matrixStride)
        let batch = min(batchSize, source.matrices, indices.matrices, values.matrices)
        dispatch(
            "topK", types: ["Source": source.type, "Result": values.type], to: commandBuffer,
            buffers: [source, indices, values].map { ($0.buffer, $0.offset) }, parameters: parameters,
            threads: MTLSizeMake(rows, 1, batch))
    }
}

private struct TopK {
    var columns, count, indexOffset, sourceRow, indexRow, valueRow: UInt32
    var sourceMatrix, indexMatrix, valueMatrix: UInt64
}
