import Metal
import MetalRuntime
import XCTest

/// Tensors of the host: writes and reads by the program, and kernels that receive tensors.
final class TensorTests: MetalTestCase {
    static let kernels = """
        #include <metal_stdlib>
        #include <metal_tensor>
        using namespace metal;

        struct Arguments { tensor<device float, dextents<int, 3>> t; uint n; };

        // Adds 100 k + 10 j + i to element (i, j, k).
        kernel void number(tensor<device float, dextents<int, 3>> t [[buffer(0)]],
                           uint3 at [[thread_position_in_grid]]) {
          t[at.x, at.y, at.z] += 100 * at.z + 10 * at.y + at.x;
        }

        kernel void gather(constant Arguments& all [[buffer(0)]], device float* y [[buffer(1)]],
                           uint i [[thread_position_in_grid]]) {
          y[i] = all.t[i % 2, 1, i / 2] + all.n;
        }
        """

    private static let sharedLibrary = Result {
        let options = MTLCompileOptions()
        options.languageVersion = .version4_0
        return try MTLCreateSystemDefaultDevice()!.makeLibrary(source: kernels, options: options)
    }

    static func tensorPipeline(_ name: String) throws -> any MTLComputePipelineState {
        let library = try sharedLibrary.get()
        return try library.device.makeComputePipelineState(function: try XCTUnwrap(library.makeFunction(name: name)))
    }

    private func descriptor(_ sizes: [Int], strides: [Int]? = nil, _ type: MTLTensorDataType = .float32)
        -> MTLTensorDescriptor
    {
        let descriptor = MTLTensorDescriptor()
        descriptor.dimensions = MTLTensorExtents(sizes)!
        descriptor.strides = strides.map { MTLTensorExtents($0)! }
        descriptor.dataType = type
        descriptor.usage = .compute
        return descriptor
    }

    private func extents(_ values: [Int]) -> MTLTensorExtents { MTLTensorExtents(values)! }

    private func dense(_ sizes: [Int]) -> [Int] { sizes.indices.map { sizes[..<$0].reduce(1, *) } }

    /// The offsets of all elements of a slice, dimension 0 first.
    private func offsets(_ sizes: [Int], _ strides: [Int], from origin: [Int]) -> [Int] {
        (0..<sizes.reduce(1, *)).map { number in
            var rest = number, offset = 0
            for (dimension, size) in sizes.enumerated() {
                offset += (origin[dimension] + rest % size) * strides[dimension]
                rest /= size
            }
            return offset
        }
    }

    func testExtents() {
        XCTAssertEqual(extents([3, 4]).extents, [3, 4])
        XCTAssertEqual(extents([3, 4]).rank, 2)
        XCTAssertEqual(MTLTensorExtents().rank, 0)
        XCTAssertEqual(extents([3, 4]), extents([3, 4]))
        XCTAssertNotEqual(extents([3, 4]), extents([4, 3]))
        XCTAssertNil(MTLTensorExtents([Int](repeating: 1, count: 17)))
        XCTAssertNil(MTLTensorExtents(__rank: 2, values: nil))
        XCTAssertEqual(
            [5, 6].withUnsafeBufferPointer { MTLTensorExtents(__rank: 2, values: $0.baseAddress)?.extents }, [5, 6])
        XCTAssertEqual(MTLTensorDescriptor().dimensions.extents, [1])
        XCTAssertEqual(MTLTensorDescriptor().usage, [.render, .compute])
    }

    /// Random slices, written and read, compared with an array that is indexed by the formula of strides.
    func testReplaceAndGetBytes() throws {
        var random = SystemRandom(seed: 3302)
        for round in 0..<60 {
            let rank = Int.random(in: 0...4, using: &random)
            let sizes = (0..<rank).map { _ in Int.random(in: 1...5, using: &random) }
            let isOfBuffer = round % 2 == 0
            var strides: [Int] = []
            for (dimension, _) in sizes.enumerated() {
                let least = dimension == 0 ? 1 : strides[dimension - 1] * sizes[dimension - 1]
                strides.append(dimension == 0 || !isOfBuffer ? least : least + Int.random(in: 0...2, using: &random))
            }
            let shift = isOfBuffer ? Int.random(in: 0...3, using: &random) : 0
            let span = zip(sizes, strides).reduce(1) { $0 + ($1.0 - 1) * $1.1 }
            var wanted = (0..<span + shift).map { _ in Int16.random(in: -99...99, using: &random) }
            let tensor: any MTLTensor
            if isOfBuffer {
                let buffer = device.makeBuffer(bytes: wanted, length: wanted.count * 2, options: [])!
                tensor = try buffer.makeTensor(
                    descriptor: descriptor(sizes, strides: strides, .int16), offset: 2 * shift)
                XCTAssertEqual(tensor.strides?.extents, strides)
            } else {
                tensor = try device.makeTensor(descriptor: descriptor(sizes, .int16))
                XCTAssertNil(tensor.strides)
                wanted.withUnsafeBytes {
                    tensor.replace(
                        sliceOrigin: extents(sizes.map { _ in 0 }), sliceDimensions: extents(sizes),
                        withBytes: $0.baseAddress!, strides: extents(strides))
                }
            }
            let origin = sizes.map { Int.random(in: 0..<$0, using: &random) }
            let part = zip(sizes, origin).map { Int.random(in: 1...($0 - $1), using: &random) }
            let beside = dense(part).map { $0 * 2 }, room = zip(part, beside).reduce(1) { $0 + ($1.0 - 1) * $1.1 }
            let fresh = (0..<room).map { _ in Int16.random(in: -99...99, using: &random) }
            fresh.withUnsafeBytes {
                tensor.replace(
                    sliceOrigin: extents(origin), sliceDimensions: extents(part), withBytes: $0.baseAddress!,
                    strides: extents(beside))
            }
            let zero = sizes.map { _ in 0 }
            for (to, from) in zip(
                offsets(part, strides, from: origin), offsets(part, beside, from: part.map { _ in 0 }))
            {
                wanted[shift + to] = fresh[from]
            }
            var whole = [Int16](repeating: 0, count: sizes.reduce(1, *))
            tensor.getBytes(
                &whole, strides: extents(dense(sizes)), sliceOrigin: extents(zero), sliceDimensions: extents(sizes))
            XCTAssertEqual(whole, offsets(sizes, strides, from: zero).map { wanted[shift + $0] }, "round \(round)")
            XCTAssertEqual(tensor.dimensions.extents, sizes)
            XCTAssertEqual(tensor.bufferOffset, 2 * shift)
        }
    }

    func testDescriptors() throws {
        let buffer = device.makeBuffer(length: 96, options: [])!
        XCTAssertNoThrow(try buffer.makeTensor(descriptor: descriptor([4, 6], strides: [1, 4]), offset: 0))
        let wrong: [(MTLTensorDescriptor, offset: Int, String)] = [
            (descriptor([4, 6]), 0, "strides are required"),
            (descriptor([4, 6], strides: [1, 4]), 4, "must lie inside"),
            (descriptor([4, 5], strides: [1, 4]), 3, "multiple of 4"),
            (descriptor([4, 5], strides: [1, 3]), 0, "at least the one before"),
            (descriptor([4, 5], strides: [2, 8]), 0, "must be 1"),
            (descriptor([4, 5], strides: [1]), 0, "rank of dimensions"),
            (descriptor([4, 0], strides: [1, 4]), 0, "must be positive"),
            (descriptor([4, 5], strides: [1, 4], .none), 0, "MTLTensorDataTypeNone"),
        ]
        for (descriptor, offset, text) in wrong {
            XCTAssertThrowsError(try buffer.makeTensor(descriptor: descriptor, offset: offset), text) {
                XCTAssertTrue($0.localizedDescription.contains(text), $0.localizedDescription)
                XCTAssertEqual(($0 as? MTLTensorError)?.code, .invalidDescriptor)
            }
        }
        XCTAssertThrowsError(try device.makeTensor(descriptor: descriptor([4, 5], strides: [1, 4])))
        let learning = descriptor([4, 6], strides: [1, 4])
        learning.usage = .machineLearning
        XCTAssertThrowsError(try buffer.makeTensor(descriptor: learning, offset: 0))
        XCTAssertEqual(device.tensorSizeAndAlign(descriptor: descriptor([4, 6])).size, 96)
        XCTAssertEqual(device.tensorSizeAndAlign(descriptor: descriptor([4, 6], strides: [1, 5])).size, 116)
    }

    func testMisuse() throws {
        let tensor = try device.makeTensor(descriptor: descriptor([4, 3]))
        var bytes = [Float](repeating: 1, count: 12)
        let get = { (strides: [Int], origin: [Int], sizes: [Int]) in
            tensor.getBytes(
                &bytes, strides: self.extents(strides), sliceOrigin: self.extents(origin),
                sliceDimensions: self.extents(sizes))
        }
        assertMisuse("must lie inside of the tensor's dimensions [4, 3]") { get([1, 4], [1, 0], [4, 3]) }
        assertMisuse("must have the tensor's rank(2)") { get([1], [0], [4]) }
        assertMisuse("each of strides [1, 3]") { get([1, 3], [0, 0], [4, 3]) }
        let hidden = descriptor([4, 3])
        hidden.storageMode = .private
        let secret = try device.makeTensor(descriptor: hidden)
        assertMisuse("MTLStorageModePrivate") {
            secret.replace(
                sliceOrigin: extents([0, 0]), sliceDimensions: extents([4, 3]), withBytes: bytes,
                strides: extents([1, 4]))
        }
    }

    /// Passes the tensor through an argument buffer, whose bytes contain the tensor's number.
    func testBindless() throws {
        let tensor = try device.makeTensor(descriptor: descriptor([2, 3, 2]))
        let values = (0..<12).map(Float.init)
        tensor.replace(
            sliceOrigin: extents([0, 0, 0]), sliceDimensions: extents([2, 3, 2]), withBytes: values,
            strides: extents([1, 2, 6]))
        let y = buffer([0, 0, 0, 0])
        let state = try Self.tensorPipeline("gather")
        struct Arguments {
            var t: MTLResourceID
            var n: UInt32
        }
        let commands = run {
            $0.setComputePipelineState(state)
            var arguments = Arguments(t: tensor.gpuResourceID, n: 50)
            $0.setBytes(&arguments, length: MemoryLayout<Arguments>.stride, index: 0)
            $0.setBuffer(y, offset: 0, index: 1)
            $0.useResource(tensor, usage: .read)
            $0.dispatchThreads(MTLSizeMake(4, 1, 1), threadsPerThreadgroup: MTLSizeMake(4, 1, 1))
        }
        XCTAssertNil(commands.error)
        XCTAssertEqual(floats(y), [52, 53, 58, 59])
    }

    func testCopy() throws {
        let source = try device.makeTensor(descriptor: descriptor([3, 2])), hidden = descriptor([4, 4])
        hidden.storageMode = .private
        let middle = try device.makeTensor(descriptor: hidden)
        source.replace(
            sliceOrigin: extents([0, 0]), sliceDimensions: extents([3, 2]), withBytes: [Float]([1, 2, 3, 4, 5, 6]),
            strides: extents([1, 3]))
        let target = try device.makeTensor(descriptor: descriptor([2, 2]))
        let commands = queue.makeCommandBuffer()!, blit = commands.makeBlitCommandEncoder()!
        blit.copy(
            from: source, sourceOrigin: extents([0, 0]), sourceDimensions: extents([3, 2]), to: middle,
            destinationOrigin: extents([1, 2]), destinationDimensions: extents([3, 2]))
        blit.copy(
            from: middle, sourceOrigin: extents([2, 2]), sourceDimensions: extents([2, 2]), to: target,
            destinationOrigin: extents([0, 0]), destinationDimensions: extents([2, 2]))
        assertMisuse("must be equal") {
            blit.copy(
                from: middle, sourceOrigin: extents([2, 2]), sourceDimensions: extents([2, 2]), to: target,
                destinationOrigin: extents([0, 0]), destinationDimensions: extents([2, 1]))
        }
        blit.endEncoding()
        commands.commit()
        commands.waitUntilCompleted()
        var values = [Float](repeating: 0, count: 4)
        target.getBytes(
            &values, strides: extents([1, 2]), sliceOrigin: extents([0, 0]), sliceDimensions: extents([2, 2]))
        XCTAssertEqual(values, [2, 3, 5, 6])
    }
}

/// A seeded generator (SplitMix64).
struct SystemRandom: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
