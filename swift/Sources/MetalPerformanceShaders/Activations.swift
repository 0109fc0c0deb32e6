import Metal

/// Computes the softmax of each row: result[i] = exp(x[i]) / Σ exp(x[j]).
public class MPSMatrixSoftMax: MPSMatrixUnaryKernel {
    public var sourceRows = Int.max
    public var sourceColumns = Int.max

    var isLogarithm: Bool { false }

    public func encode(commandBuffer: any MTLCommandBuffer, inputMatrix: MPSMatrix, resultMatrix: MPSMatrix) {
        let source = MatrixPart(inputMatrix, sourceMatrixOrigin, batchStart)
        let result = MatrixPart(resultMatrix, resultMatrixOrigin, batchStart)
        let (rows, columns) = (min(sourceRows, source.rows), min(sourceColumns, source.columns))
        require(source, "source matrix", (rows, columns))
        require(result, "result matrix", (rows, columns))
        let parameters = Rows(
            columns: UInt32(columns), sourceRow: source.rowStride, resultRow: result.rowStride,
            isLogarithm: isLogarithm ? 1 : 0, sourceMatrix: source.matrixStride, resultMatrix: result.matrixStride)
        dispatch(
            "softmax", types: ["Source": source.type, "Result": result.type], to: commandBuffer,
            buffers: [(source.buffer, source.offset), (result.buffer, result.offset)], parameters: parameters,
            threads: MTLSizeMake(rows, 1, min(batchSize, source.matrices, result.matrices)))
    }
}

/// Computes the logarithm of the softmax of each row: result[i] = x[i] - log Σ exp(x[j]).
public class MPSMatrixLogSoftMax: MPSMatrixSoftMax {
    override var isLogarithm: Bool { true }
}

private struct Rows {
    var columns, sourceRow, resultRow, isLogarithm: UInt32
    var sourceMatrix, resultMatrix: UInt64
}

/// Activations with parameters a, b and c.
public enum MPSCNNNeuronType: Int32, Sendable {
    /// x
    case none = 0
    /// x if x ≥ 0, else a x
    case reLU = 1
    /// a x + b
    case linear = 2
    /// 1 / (1 + exp(-x))
    case sigmoid = 3
    /// a x + b, limited to 0 … 1
    case hardSigmoid = 4
    /// a tanh(b x)
    case tanH = 5
    /// |x|
    case absolute = 6
    /// a log(1 + exp(b x))
    case softPlus = 7
    /// x / (1 + |x|)
    case softSign = 8
    /// x if x ≥ 0, else a (exp(x) - 1)
    case eLU = 9
    /// As `reLU`, with one a for each channel. Not supported.
    case pReLU = 10
    /// The smaller of `reLU` and b
    case reLUN = 11
    /// (a x + b) ^ c
    case power = 12
    /// c ^ (a x + b), where c = -1 means e
    case exponential = 13
    /// The logarithm of a x + b to the base c, where c = -1 means e
    case logarithm = 14
    /// x (1 + erf(x / √2)) / 2. Not supported.
    case geLU = 15
}

/// Computes result = activation(alpha · source + bias), where the bias has one element for each column.
public class MPSMatrixNeuron: MPSMatrixUnaryKernel {
    public var sourceNumberOfFeatureVectors = Int.max
    public var sourceInputFeatureChannels = Int.max
    public var alpha = 1.0
    private var type = MPSCNNNeuronType.none
    private var parameters: (Float, Float, Float) = (0, 0, 0)

    public func setNeuronType(
        _ neuronType: MPSCNNNeuronType, parameterA: Float, parameterB: Float, parameterC: Float
    ) {
        check(
            neuronType != .pReLU && neuronType != .geLU,
            "\(neuronType) is not supported on this system; compute it with a kernel.")
        (type, parameters) = (neuronType, (parameterA, parameterB, parameterC))
    }

    public func neuronType() -> MPSCNNNeuronType { type }

    public func encode(
        commandBuffer: any MTLCommandBuffer, inputMatrix: MPSMatrix, biasVector: MPSVector?, resultMatrix: MPSMatrix
    ) {
        let source = MatrixPart(inputMatrix, sourceMatrixOrigin, batchStart)
        let result = MatrixPart(resultMatrix, resultMatrixOrigin, batchStart)
        let rows = min(sourceNumberOfFeatureVectors, source.rows)
        let columns = min(sourceInputFeatureChannels, source.columns)
        let bias = biasVector.map { MatrixPart($0, MTLOrigin(), 0) }
        require(source, "source matrix", (rows, columns))
        require(result, "result matrix", (rows, columns))
        if let bias { require(bias, "bias", (columns, 1)) }
        let neurons = Neurons(
            sourceRow: source.rowStride, resultRow: result.rowStride, type: UInt32(type.rawValue),
            hasBias: bias == nil ? 0 : 1, sourceMatrix: source.matrixStride, resultMatrix: result.matrixStride,
            alpha: Float(alpha), a: parameters.0, b: parameters.1, c: parameters.2)
        let given = bias ?? source
        dispatch(
            "neuron", types: ["Source": source.type, "Bias": given.type, "Result": result.type], to: commandBuffer,
            buffers: [(source.buffer, source.offset), (given.buffer, given.offset), (result.buffer, result.offset)],
            parameters: neurons,
            threads: MTLSizeMake(columns, rows, min(batchSize, source.matrices, result.matrices)))
    }
}

private struct Neurons {
    var sourceRow, resultRow, type, hasBias: UInt32
    var sourceMatrix, resultMatrix: UInt64
    var alpha, a, b, c: Float
}
