import Metal
import MetalPerformanceShaders
import XCTest

/// Kernels of MetalPerformanceShaders on drawn matrices, against formulas in double precision.
final class PerformanceShaderTests: MetalTestCase {
    private var generator = Draws(state: 2026)

    /// Values by rows, and a matrix that holds them as float32 with padded rows.
    private struct Drawn {
        let values: [[Double]]
        let matrix: MPSMatrix
    }

    private func drawn(_ rows: Int, _ columns: Int, padding: Int = 0) -> Drawn {
        let values = (0..<rows).map { _ in (0..<columns).map { _ in generator.number() } }
        return Drawn(values: values, matrix: matrix(values, padding: padding))
    }

    private func matrix(_ values: [[Double]], padding: Int = 0) -> MPSMatrix {
        let columns = values[0].count, rowBytes = 4 * (columns + padding)
        let data = buffer(values.flatMap { $0.map(Float.init) + [Float](repeating: 77, count: padding) })
        let descriptor = MPSMatrixDescriptor(
            rows: values.count, columns: columns, rowBytes: rowBytes, dataType: .float32)
        return MPSMatrix(buffer: data, descriptor: descriptor)
    }

    private func read(_ matrix: MPSMatrix) -> [[Double]] {
        let all = floats(matrix.data)
        return (0..<matrix.rows).map { row in
            (0..<matrix.columns).map { Double(all[(matrix.offset + row * matrix.rowBytes) / 4 + $0]) }
        }
    }

    private func run(_ encode: (any MTLCommandBuffer) -> Void) {
        let commands = queue.makeCommandBuffer()!
        encode(commands)
        commands.commit()
        commands.waitUntilCompleted()
        XCTAssertNil(commands.error)
    }

    private func transposed(_ a: [[Double]]) -> [[Double]] { a[0].indices.map { j in a.map { $0[j] } } }

    private func product(_ a: [[Double]], _ b: [[Double]]) -> [[Double]] {
        a.map { row in b[0].indices.map { j in zip(row, b).reduce(0) { $0 + $1.0 * $1.1[j] } } }
    }

    private func assertEqual(_ a: [[Double]], _ b: [[Double]], _ accuracy: Double, line: UInt = #line) {
        XCTAssertEqual(a.count, b.count, line: line)
        for (x, y) in zip(a.joined(), b.joined()) { XCTAssertEqual(x, y, accuracy: accuracy, line: line) }
    }

    func testProductsOfTransposedMatricesWithScales() {
        XCTAssertTrue(MPSSupportsMTLDevice(device))
        for (left, right) in [(false, false), (true, false), (false, true), (true, true)] {
            let (m, n, k) = (3, 5, 4)
            let a = left ? drawn(k, m, padding: 2) : drawn(m, k, padding: 2)
            let b = right ? drawn(n, k) : drawn(k, n), c = drawn(m, n, padding: 1)
            let kernel = MPSMatrixMultiplication(
                device: device, transposeLeft: left, transposeRight: right, resultRows: m, resultColumns: n,
                interiorColumns: k, alpha: 1.5, beta: -0.5)
            run {
                kernel.encode(
                    commandBuffer: $0, leftMatrix: a.matrix, rightMatrix: b.matrix, resultMatrix: c.matrix)
            }
            let plain = product(left ? transposed(a.values) : a.values, right ? transposed(b.values) : b.values)
            let expected = zip(plain, c.values).map { zip($0, $1).map { 1.5 * $0 - 0.5 * $1 } }
            assertEqual(read(c.matrix), expected, 1e-5)
        }
    }

    /// Each copy of parts, of which at most one side is transposed, keeps the destination's other elements.
    func testCopiesOfPartsOfMatrices() {
        for (fromTransposed, toTransposed) in [(false, false), (true, false), (false, true), (true, true)] {
            let (m, n) = (3, 5)
            let source = fromTransposed ? drawn(n, m, padding: 3) : drawn(m + 1, n + 2, padding: 1)
            let result = toTransposed ? drawn(n + 1, m, padding: 2) : drawn(m + 2, n + 1)
            var offsets = MPSMatrixCopyOffsets()
            if !fromTransposed { (offsets.sourceRowOffset, offsets.sourceColumnOffset) = (1, 2) }
            if !toTransposed { (offsets.destinationRowOffset, offsets.destinationColumnOffset) = (2, 1) }
            let kernel = MPSMatrixCopy(
                device: device, copyRows: m, copyColumns: n, sourcesAreTransposed: fromTransposed,
                destinationsAreTransposed: toTransposed)
            let copies = MPSMatrixCopyDescriptor(
                sourceMatrix: source.matrix, destinationMatrix: result.matrix, offsets: offsets)
            run { kernel.encode(commandBuffer: $0, copyDescriptor: copies) }
            var expected = result.values
            for i in 0..<m {
                for j in 0..<n {
                    let value = fromTransposed ? source.values[j][i] : source.values[i + 1][j + 2]
                    if toTransposed { expected[j][i] = value } else { expected[i + 2][j + 1] = value }
                }
            }
            assertEqual(read(result.matrix), expected, 1e-6)
        }
    }

    /// An origin is (row, column). The result keeps its elements outside the product.
    func testAProductOfPartsOfMatrices() {
        let a = drawn(4, 5), b = drawn(6, 4), c = drawn(5, 5)
        let kernel = MPSMatrixMultiplication(device: device, resultRows: 2, resultColumns: 3, interiorColumns: 4)
        kernel.leftMatrixOrigin = MTLOriginMake(2, 1, 0)
        kernel.rightMatrixOrigin = MTLOriginMake(1, 1, 0)
        kernel.resultMatrixOrigin = MTLOriginMake(3, 2, 0)
        run { kernel.encode(commandBuffer: $0, leftMatrix: a.matrix, rightMatrix: b.matrix, resultMatrix: c.matrix) }
        let part = product(a.values[2..<4].map { Array($0[1...]) }, b.values[1..<5].map { Array($0[1...]) })
        var expected = c.values
        for i in 0..<2 { for j in 0..<3 { expected[3 + i][2 + j] = part[i][j] } }
        assertEqual(read(c.matrix), expected, 1e-5)
    }

    func testABatchOfHalfMatrices() {
        let count = 2, n = 4
        let numbers = (0..<count * n * n).map { _ in Float16(generator.number()) }
        let half = device.makeBuffer(bytes: numbers, length: 2 * numbers.count)!
        let data = device.makeBuffer(length: 4 * numbers.count)!
        func batch(_ buffer: any MTLBuffer, _ size: Int, _ type: MPSDataType) -> MPSMatrix {
            let descriptor = MPSMatrixDescriptor(
                rows: n, columns: n, matrices: count, rowBytes: n * size, matrixBytes: n * n * size, dataType: type)
            return MPSMatrix(buffer: buffer, descriptor: descriptor)
        }
        let a = batch(half, 2, .float16), c = batch(data, 4, .float32)
        let kernel = MPSMatrixMultiplication(device: device, resultRows: n, resultColumns: n, interiorColumns: n)
        run { kernel.encode(commandBuffer: $0, leftMatrix: a, rightMatrix: a, resultMatrix: c) }
        for index in 0..<count {
            let values = (0..<n).map { i in (0..<n).map { Double(numbers[index * n * n + i * n + $0]) } }
            let result = floats(data)[index * n * n..<(index + 1) * n * n].map(Double.init)
            assertEqual([result], [product(values, values).flatMap { $0 }], 1e-5)
        }
    }

    func testAProductOfAMatrixAndAVector() {
        let a = drawn(3, 5, padding: 3), x = drawn(5, 1), y = drawn(3, 1)
        func vector(_ drawn: Drawn) -> MPSVector {
            let descriptor = MPSVectorDescriptor(length: drawn.values.count, dataType: .float32)
            return MPSVector(buffer: drawn.matrix.data, descriptor: descriptor)
        }
        let kernel = MPSMatrixVectorMultiplication(
            device: device, transpose: false, rows: 3, columns: 5, alpha: 2, beta: 1)
        run { kernel.encode(commandBuffer: $0, inputMatrix: a.matrix, inputVector: vector(x), resultVector: vector(y)) }
        let expected = zip(product(a.values, x.values), y.values).map { [2 * $0[0] + $1[0]] }
        assertEqual(read(y.matrix), expected, 1e-5)
    }

    func testSoftmaxAndItsLogarithm() {
        let a = drawn(4, 7), b = drawn(4, 7, padding: 1)
        let sums = a.values.map { $0.reduce(0) { $0 + exp($1) } }
        let softmax = MPSMatrixSoftMax(device: device)
        run { softmax.encode(commandBuffer: $0, inputMatrix: a.matrix, resultMatrix: b.matrix) }
        assertEqual(read(b.matrix), zip(a.values, sums).map { row, sum in row.map { exp($0) / sum } }, 1e-6)
        let logarithm = MPSMatrixLogSoftMax(device: device)
        run { logarithm.encode(commandBuffer: $0, inputMatrix: a.matrix, resultMatrix: b.matrix) }
        assertEqual(read(b.matrix), zip(a.values, sums).map { row, sum in row.map { $0 - log(sum) } }, 1e-5)
    }

    func testActivations() {
        let (a, b, c): (Double, Double, Double) = (0.25, 1.5, 2)
        let formulas: [(MPSCNNNeuronType, (Double) -> Double)] = [
            (.none, { $0 }), (.reLU, { $0 >= 0 ? $0 : a * $0 }), (.linear, { a * $0 + b }),
            (.sigmoid, { 1 / (1 + exp(-$0)) }), (.hardSigmoid, { min(max(a * $0 + b, 0), 1) }),
            (.tanH, { a * tanh(b * $0) }), (.absolute, { abs($0) }), (.softPlus, { a * log(1 + exp(b * $0)) }),
            (.softSign, { $0 / (1 + abs($0)) }), (.eLU, { $0 >= 0 ? $0 : a * (exp($0) - 1) }),
            (.reLUN, { min($0 >= 0 ? $0 : a * $0, b) }), (.power, { pow(a * $0 + b, c) }),
            (.exponential, { pow(c, a * $0 + b) }), (.logarithm, { log(a * $0 + b) / log(c) }),
        ]
        let source = drawn(3, 4), bias = drawn(4, 1)
        let vector = MPSVector(
            buffer: bias.matrix.data, descriptor: MPSVectorDescriptor(length: 4, dataType: .float32))
        for (type, formula) in formulas {
            let kernel = MPSMatrixNeuron(device: device)
            kernel.setNeuronType(type, parameterA: Float(a), parameterB: Float(b), parameterC: Float(c))
            kernel.alpha = 0.5
            let result = drawn(3, 4)
            run {
                kernel.encode(
                    commandBuffer: $0, inputMatrix: source.matrix, biasVector: vector, resultMatrix: result.matrix)
            }
            let expected = source.values.map { row in row.indices.map { formula(0.5 * row[$0] + bias.values[$0][0]) } }
            assertEqual(read(result.matrix), expected, 1e-5)
        }
    }

    func testCholeskyFactorsSolveSystems() {
        let n = 5, root = drawn(n, n).values, right = drawn(n, 2)
        var symmetric = product(root, transposed(root))
        for i in 0..<n { symmetric[i][i] += 2 }
        for isLower in [true, false] {
            let source = matrix(symmetric), factor = drawn(n, n, padding: 1), solution = drawn(n, 2)
            let status = device.makeBuffer(length: 4)!
            let decomposition = MPSMatrixDecompositionCholesky(device: device, lower: isLower, order: n)
            let solve = MPSMatrixSolveCholesky(device: device, upper: !isLower, order: n, numberOfRightHandSides: 2)
            run {
                decomposition.encode(
                    commandBuffer: $0, sourceMatrix: source, resultMatrix: factor.matrix, status: status)
                solve.encode(
                    commandBuffer: $0, sourceMatrix: factor.matrix, rightHandSideMatrix: right.matrix,
                    solutionMatrix: solution.matrix)
            }
            XCTAssertEqual(status.contents().load(as: Int32.self), MPSMatrixDecompositionStatus.success.rawValue)
            assertEqual(product(symmetric, read(solution.matrix)), right.values, 1e-4)
        }
        let status = device.makeBuffer(length: 4)!
        let indefinite = matrix([[1, 2], [2, 1]])
        let decomposition = MPSMatrixDecompositionCholesky(device: device, lower: true, order: 2)
        run {
            decomposition.encode(
                commandBuffer: $0, sourceMatrix: indefinite, resultMatrix: indefinite, status: status)
        }
        XCTAssertEqual(
            status.contents().load(as: Int32.self), MPSMatrixDecompositionStatus.nonPositiveDefinite.rawValue)
    }

    func testLUFactorsSolveSystems() {
        let n = 5, source = drawn(n, n), right = drawn(n, 3)
        for isTransposed in [false, true] {
            let factors = drawn(n, n), solution = drawn(n, 3), status = device.makeBuffer(length: 4)!
            let pivots = MPSMatrix(
                device: device,
                descriptor: MPSMatrixDescriptor(rows: 1, columns: n, rowBytes: 4 * n, dataType: .uInt32))
            let decomposition = MPSMatrixDecompositionLU(device: device, rows: n, columns: n)
            let solve = MPSMatrixSolveLU(
                device: device, transpose: isTransposed, order: n, numberOfRightHandSides: 3)
            run {
                decomposition.encode(
                    commandBuffer: $0, sourceMatrix: source.matrix, resultMatrix: factors.matrix,
                    pivotIndices: pivots, info: status)
                solve.encode(
                    commandBuffer: $0, sourceMatrix: factors.matrix, rightHandSideMatrix: right.matrix,
                    pivotIndices: pivots, solutionMatrix: solution.matrix)
            }
            XCTAssertEqual(status.contents().load(as: Int32.self), 0)
            let matrix = isTransposed ? transposed(source.values) : source.values
            assertEqual(product(matrix, read(solution.matrix)), right.values, 1e-4)
        }
    }

    func testTriangularSystems() {
        let n = 4
        for choice in 0..<8 {
            let (isRight, isUpper, isTransposed) = (choice & 1 == 1, choice & 2 == 2, choice & 4 == 4)
            var values = drawn(n, n).values
            for i in 0..<n { values[i][i] += 3 }
            let source = matrix(values)
            for i in 0..<n { for j in 0..<n where isUpper ? j < i : j > i { values[i][j] = 0 } }
            let right = isRight ? drawn(2, n) : drawn(n, 2), solution = isRight ? drawn(2, n) : drawn(n, 2)
            let kernel = MPSMatrixSolveTriangular(
                device: device, right: isRight, upper: isUpper, transpose: isTransposed, unit: false, order: n,
                numberOfRightHandSides: 2, alpha: 0.5)
            run {
                kernel.encode(
                    commandBuffer: $0, sourceMatrix: source, rightHandSideMatrix: right.matrix,
                    solutionMatrix: solution.matrix)
            }
            let given = isTransposed ? transposed(values) : values, x = read(solution.matrix)
            assertEqual(isRight ? product(x, given) : product(given, x), right.values.map { $0.map { 0.5 * $0 } }, 1e-4)
        }
    }

    /// Includes rows with equal values: the one with the smallest index comes first.
    func testTheLargestValuesOfRows() {
        let rows = 3, k = 4, values = drawn(rows, k)
        let rounded = drawn(rows, 9).values.map { $0.map { $0.rounded() } }
        let source = Drawn(values: rounded, matrix: matrix(rounded))
        let indices = MPSMatrix(
            device: device,
            descriptor: MPSMatrixDescriptor(rows: rows, columns: k, rowBytes: 4 * k, dataType: .uInt32))
        let kernel = MPSMatrixFindTopK(device: device, numberOfTopKValues: k)
        kernel.indexOffset = 100
        run {
            kernel.encode(
                commandBuffer: $0, inputMatrix: source.matrix, resultIndexMatrix: indices,
                resultValueMatrix: values.matrix)
        }
        let found = indices.data.contents().assumingMemoryBound(to: UInt32.self)
        for row in 0..<rows {
            let x = source.values[row]
            let order = x.indices.sorted { x[$0] == x[$1] ? $0 < $1 : x[$0] > x[$1] }.prefix(k)
            XCTAssertEqual((0..<k).map { Int(found[row * k + $0]) - 100 }, Array(order))
            assertEqual([read(values.matrix)[row]], [order.map { source.values[row][$0] }], 1e-6)
        }
    }
}

/// Numbers from -2 to 2, by the generator SplitMix64.
struct Draws {
    var state: UInt64

    mutating func number() -> Double {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return Double((z ^ (z >> 31)) >> 11) / Double(1 << 51) - 2
    }
}
