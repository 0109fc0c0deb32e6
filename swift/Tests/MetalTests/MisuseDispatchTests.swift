import Metal
import XCTest

final class MisuseDispatchTests: MetalTestCase {
    func testNoPipeline() {
        run { encoder in
            assertMisuse("No pipeline state is set") { encoder.dispatchThreads(one, threadsPerThreadgroup: one) }
        }
    }

    func testMissingBuffer() throws {
        let x = buffer([1, 2, 3, 4]), y = buffer([0, 0, 0, 0])
        try run { encoder in
            encoder.setComputePipelineState(try pipeline("twice"))
            encoder.setBuffer(x, offset: 0, index: 0)
            assertMisuse("Compute Function(twice): missing Buffer binding at index 1 for y[0]") { dispatch(encoder) }
            encoder.setBuffer(y, offset: 0, index: 1)
            dispatch(encoder)
            encoder.setBuffer(nil, offset: 0, index: 0)
            assertMisuse("missing Buffer binding at index 0 for x[0]") { dispatch(encoder) }
        }
        XCTAssertEqual(floats(y), [2, 4, 6, 8])
    }

    func testReferenceThatIsTooShort() throws {
        let x = buffer([1, 2, 3, 4]), short = buffer([2])
        var scale: (Float, Float) = (2, 1)
        try run { encoder in
            encoder.setComputePipelineState(try pipeline("scale"))
            encoder.setBuffer(x, offset: 0, index: 0)
            encoder.setBuffer(short, offset: 0, index: 1)
            let message =
                "argument s[0] from buffer(1) with offset(0) and length(4) has space for 4 bytes, but argument has a "
                + "length(8)"
            assertMisuse(message) { dispatch(encoder) }
            encoder.setBytes(&scale, length: 4, index: 1)
            assertMisuse(message) { dispatch(encoder) }
            encoder.setBytes(&scale, length: 8, index: 1)
            dispatch(encoder)
        }
        XCTAssertEqual(floats(x), [3, 5, 7, 9])
    }

    func testBytesForAnArgumentThatIsWritten() throws {
        var values: [Float] = [1, 2, 3, 4]
        let x = buffer([1, 2, 3, 4])
        let commands = try run { encoder in
            encoder.setComputePipelineState(try pipeline("increment"))
            encoder.setBytes(&values, length: 16, index: 0)
            assertMisuse("Bytes are being bound at index 0 to a shader argument (x) with write access enabled") {
                dispatch(encoder)
            }
            // The kernel reads the bound bytes but writes to a copy.
            encoder.setComputePipelineState(try pipeline("twice"))
            encoder.setBytes(&values, length: 16, index: 0)
            encoder.setBuffer(x, offset: 0, index: 1)
            dispatch(encoder)
        }
        XCTAssertEqual(commands.status, .completed)
        XCTAssertEqual(values, [1, 2, 3, 4])
        XCTAssertEqual(floats(x), [2, 4, 6, 8])
    }

    func testARefusedDispatchFailsItsCommandBuffer() throws {
        let commands = try run { encoder in
            encoder.setComputePipelineState(try pipeline("increment"))
            assertMisuse("missing Buffer binding at index 0") { dispatch(encoder) }
        }
        XCTAssertEqual(commands.status, .error)
        XCTAssertTrue(commands.error?.localizedDescription.contains("was refused") ?? false)
    }

    func testBytesLengths() {
        let bytes = [UInt8](repeating: 0, count: 5000)
        run { encoder in
            assertMisuse("length(4097) must be <= 4096") { encoder.setBytes(bytes, length: 4097, index: 0) }
            assertMisuse("length(0) must be > 0") { encoder.setBytes(bytes, length: 0, index: 0) }
            encoder.setBytes(bytes, length: 4096, index: 0)
        }
    }

    func testIndices() {
        let x = buffer([1])
        run { encoder in
            assertMisuse("index(31) must be < 31") { encoder.setBuffer(x, offset: 0, index: 31) }
            assertMisuse("index(-1) must be < 31") { encoder.setBytes([1], length: 4, index: -1) }
            assertMisuse("index(31) must be < 31") { encoder.setBufferOffset(0, index: 31) }
            assertMisuse("index(31) must be < 31") { encoder.setThreadgroupMemoryLength(16, index: 31) }
            encoder.setBuffer(x, offset: 0, index: 30)
            encoder.setThreadgroupMemoryLength(16, index: 30)
            assertMisuse("range has 2 indices") { encoder.setBuffers([x], offsets: [0], range: 0..<2) }
            encoder.setBuffers([x, nil], offsets: [0, 0], range: 0..<2)
        }
    }

    func testOffsets() throws {
        let x = buffer([1, 2, 3, 4])
        try run { encoder in
            assertMisuse("offset(16) must be < [buffer length](16)") { encoder.setBuffer(x, offset: 16, index: 0) }
            assertMisuse("offset(-4) must be < [buffer length](16)") { encoder.setBuffer(x, offset: -4, index: 0) }
            assertMisuse("no buffer is bound at index 0") { encoder.setBufferOffset(4, index: 0) }
            encoder.setComputePipelineState(try pipeline("increment"))
            encoder.setBuffer(x, offset: 2, index: 0)
            assertMisuse("the offset(2) of argument x[0] at index 0 must be a multiple of 4") {
                dispatch(encoder, threads: 1)
            }
            assertMisuse("offset(20) must be < [buffer length](16)") { encoder.setBufferOffset(20, index: 0) }
            encoder.setBufferOffset(4, index: 0)
            dispatch(encoder, threads: 1)
        }
        XCTAssertEqual(floats(x), [1, 3, 3, 4])
    }

    func testOffsetsOfConstantMemory() throws {
        let x = buffer((0..<16).map(Float.init)), y = buffer([0, 0, 0, 0])
        try run { encoder in
            encoder.setComputePipelineState(try pipeline("gather"))
            encoder.setBuffer(x, offset: 16, index: 0)
            encoder.setBuffer(y, offset: 0, index: 1)
            assertMisuse("the offset(16) of argument x[0] at index 0 must be a multiple of 32") {
                dispatch(encoder, threads: 1)
            }
            encoder.setBufferOffset(32, index: 0)
            dispatch(encoder, threads: 1)
        }
        XCTAssertEqual(floats(y), [8, 9, 10, 11])
    }

    func testThreadgroupMemory() throws {
        let x = buffer([1, 2, 3, 4])
        try run { encoder in
            encoder.setComputePipelineState(try pipeline("reverse"))
            encoder.setBuffer(x, offset: 0, index: 0)
            assertMisuse("Compute Function(reverse): missing threadgroup memory binding at index 0 for t[0]") {
                dispatch(encoder)
            }
            assertMisuse("length(20) must be a multiple of 16 bytes") {
                encoder.setThreadgroupMemoryLength(20, index: 0)
            }
            assertMisuse("length(32784) must be <= 32768") { encoder.setThreadgroupMemoryLength(32784, index: 0) }
            encoder.setThreadgroupMemoryLength(16, index: 0)
            dispatch(encoder)
        }
        XCTAssertEqual(floats(x), [4, 3, 2, 1])
    }

    func testThreadgroupMemoryInAll() throws {
        let x = buffer([1, 2, 3, 4])
        try run { encoder in
            encoder.setComputePipelineState(try pipeline("fixedReverse"))
            encoder.setBuffer(x, offset: 0, index: 0)
            encoder.setThreadgroupMemoryLength(16400, index: 0)
            assertMisuse(
                "(static(16384) + setThreadgroupMemoryLength(16400))(32784) threadgroup memory must be <= 32768"
            ) { dispatch(encoder) }
            encoder.setThreadgroupMemoryLength(16384, index: 0)
            dispatch(encoder)
        }
    }

    /// A length that an earlier pipeline needed also counts for a pipeline without such an argument.
    func testThreadgroupMemoryStaysSet() throws {
        let x = buffer([1, 2, 3, 4])
        try run { encoder in
            encoder.setBuffer(x, offset: 0, index: 0)
            encoder.setThreadgroupMemoryLength(32768, index: 3)
            encoder.setComputePipelineState(try pipeline("reverse"))
            encoder.setThreadgroupMemoryLength(16, index: 0)
            assertMisuse(
                "(static(0) + setThreadgroupMemoryLength(32784))(32784) threadgroup memory must be <= 32768"
            ) { dispatch(encoder) }
            encoder.setThreadgroupMemoryLength(0, index: 3)
            dispatch(encoder)
        }
        XCTAssertEqual(floats(x), [4, 3, 2, 1])
    }

    func testThreadgroupSizes() throws {
        let x = buffer([Float](repeating: 0, count: 2048))
        try run { encoder in
            encoder.setComputePipelineState(try pipeline("increment"))
            encoder.setBuffer(x, offset: 0, index: 0)
            let dispatch = { (threads: MTLSize) in encoder.dispatchThreadgroups(one, threadsPerThreadgroup: threads) }
            assertMisuse(
                """
                (threadsPerThreadgroup.width(1024) * threadsPerThreadgroup.height(2) * \
                threadsPerThreadgroup.depth(1))(2048) \
                must be <= 1024. (device threadgroup size limit)
                """
            ) { dispatch(MTLSizeMake(1024, 2, 1)) }
            assertMisuse("threadsPerThreadgroup.height(0) must be >= 1") { dispatch(MTLSizeMake(1, 0, 1)) }
            assertMisuse("must be <= 1024") {
                encoder.dispatchThreads(one, threadsPerThreadgroup: MTLSizeMake(.max, 3, 1))
            }
            dispatch(MTLSizeMake(1024, 1, 1))
        }
    }

    func testThreadgroupSizesOfThePipeline() throws {
        let descriptor = MTLComputePipelineDescriptor()
        descriptor.computeFunction = try library().makeFunction(name: "increment")
        descriptor.maxTotalThreadsPerThreadgroup = 128
        descriptor.threadGroupSizeIsMultipleOfThreadExecutionWidth = true
        let state = try device.makeComputePipelineState(descriptor: descriptor, options: [], reflection: nil)
        XCTAssertEqual(state.maxTotalThreadsPerThreadgroup, 128)
        let x = buffer([Float](repeating: 0, count: 256))
        run { encoder in
            encoder.setComputePipelineState(state)
            encoder.setBuffer(x, offset: 0, index: 0)
            assertMisuse("must be <= 128. (kernel threadgroup size limit)") { dispatch(encoder, threads: 256) }
            assertMisuse("a multiple of 32, as threadGroupSizeIsMultipleOfThreadExecutionWidth promised") {
                dispatch(encoder, threads: 48)
            }
            dispatch(encoder, threads: 96)
        }
        descriptor.maxTotalThreadsPerThreadgroup = 2000
        try assertMisuse("maxTotalThreadsPerThreadgroup(2000) must be <= 1024") {
            XCTAssertThrowsError(
                try device.makeComputePipelineState(descriptor: descriptor, options: [], reflection: nil))
        }
    }

    func testGridOfZero() throws {
        let x = buffer([1])
        try run { encoder in
            encoder.setComputePipelineState(try pipeline("increment"))
            encoder.setBuffer(x, offset: 0, index: 0)
            assertMisuse("threadgroupsPerGrid.width(0) must be >= 1") {
                encoder.dispatchThreadgroups(MTLSizeMake(0, 1, 1), threadsPerThreadgroup: one)
            }
            assertMisuse("threadsPerGrid.depth(0) must be >= 1") {
                encoder.dispatchThreads(MTLSizeMake(1, 1, 0), threadsPerThreadgroup: one)
            }
        }
    }

    func testGridOfTooMany() throws {
        let x = buffer([1])
        try run { encoder in
            encoder.setComputePipelineState(try pipeline("increment"))
            encoder.setBuffer(x, offset: 0, index: 0)
            assertMisuse("must give <= 4294967295 threads in each dimension") {
                encoder.dispatchThreadgroups(MTLSizeMake(.max, 1, 1), threadsPerThreadgroup: MTLSizeMake(2, 1, 1))
            }
            assertMisuse("must give <= 4294967295 threads in each dimension") {
                encoder.dispatchThreads(MTLSizeMake(1, 1 << 32, 1), threadsPerThreadgroup: one)
            }
        }
    }

    func testIndirectOffsets() throws {
        let x = buffer([1]), counts = buffer([0, 0, 0, 0])
        try run { encoder in
            encoder.setComputePipelineState(try pipeline("increment"))
            encoder.setBuffer(x, offset: 0, index: 0)
            let dispatch = { (offset: Int) in
                encoder.dispatchThreadgroups(
                    indirectBuffer: counts, indirectBufferOffset: offset, threadsPerThreadgroup: one)
            }
            assertMisuse("indirectBufferOffset(2) must be a multiple of 4") { dispatch(2) }
            assertMisuse("(indirectBufferOffset(8) + 12)(20) must be <= [indirectBuffer length](16)") { dispatch(8) }
        }
    }

    func testBarriersAndResidency() {
        let x = buffer([1])
        run(dispatchType: .concurrent) { encoder in
            assertMisuse("MTLBarrierScopeRenderTargets is for render encoders") {
                encoder.memoryBarrier(scope: .renderTargets)
            }
            assertMisuse("usage must name read or write") { encoder.useResource(x, usage: []) }
            encoder.useResource(x, usage: [.read, .write])
            encoder.memoryBarrier(scope: [.buffers, .textures])
            encoder.memoryBarrier(resources: [x])
        }
    }

    func testAttributeStrides() {
        let x = buffer([1])
        run { encoder in
            assertMisuse("attribute strides") { encoder.setBuffer(x, offset: 0, attributeStride: 4, index: 0) }
            assertMisuse("attribute strides") { encoder.setBytes([1], length: 4, attributeStride: 4, index: 0) }
        }
    }

    func testConstantsOfNoConstantType() {
        let values = MTLFunctionConstantValues()
        assertMisuse("no function constant can have it") { values.setConstantValue([1], type: .texture, index: 0) }
        assertMisuse("index(-1) must be") { values.setConstantValue([1], type: .int, index: -1) }
        assertMisuse("index(65536) must be") { values.setConstantValue([1], type: .int, index: 65536) }
        values.setConstantValue([1], type: .int, index: 65535)
        values.setConstantValue([1], type: .int, index: 0)
    }

    func testPipelineOfNoFunction() throws {
        try assertMisuse("computeFunction must not be nil") {
            XCTAssertThrowsError(
                try device.makeComputePipelineState(
                    descriptor: MTLComputePipelineDescriptor(), options: [], reflection: nil))
        }
    }

    private func library() throws -> any MTLLibrary { try device.makeLibrary(source: Self.source, options: nil) }

    private func dispatch(_ encoder: any MTLComputeCommandEncoder, threads: Int = 4) {
        encoder.dispatchThreads(MTLSizeMake(threads, 1, 1), threadsPerThreadgroup: MTLSizeMake(threads, 1, 1))
    }
}
