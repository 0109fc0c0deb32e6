import Metal
import MetalRuntime
import XCTest

/// Metal 4: argument tables, residency sets, compilers, and the order of commands.
final class Metal4Tests: MetalTestCase {
    /// A queue with one residency set, an allocator and a command buffer.
    private final class Setup {
        let queue: any MTL4CommandQueue
        let allocator: any MTL4CommandAllocator
        let commands: any MTL4CommandBuffer
        let set: any MTLResidencySet

        init(_ device: any MTLDevice, _ allocations: [any MTLAllocation]) throws {
            queue = device.makeMTL4CommandQueue()!
            allocator = device.makeCommandAllocator()!
            commands = device.makeCommandBuffer()!
            set = try device.makeResidencySet(descriptor: MTLResidencySetDescriptor())
            set.addAllocations(allocations)
            set.commit()
            queue.addResidencySet(set)
        }

        /// Encodes, commits and waits. Returns the feedback's error.
        @discardableResult
        func run(_ encode: (any MTL4ComputeCommandEncoder) throws -> Void) throws -> (any Error)? {
            commands.beginCommandBuffer(allocator: allocator)
            let encoder = commands.makeComputeCommandEncoder()!
            try encode(encoder)
            encoder.endEncoding()
            commands.endCommandBuffer()
            return commit()
        }

        func commit() -> (any Error)? {
            let done = DispatchSemaphore(value: 0), options = MTL4CommitOptions()
            let outcome = Outcome()
            options.addFeedbackHandler {
                outcome.error = $0.error
                XCTAssertLessThanOrEqual($0.gpuStartTime, $0.gpuEndTime)
                done.signal()
            }
            queue.commit([commands], options: options)
            done.wait()
            allocator.reset()
            return outcome.error
        }

        private final class Outcome: @unchecked Sendable {
            var error: (any Error)?
        }
    }

    private func table(buffers: Int, textures: Int = 0) throws -> any MTL4ArgumentTable {
        let descriptor = MTL4ArgumentTableDescriptor()
        descriptor.maxBufferBindCount = buffers
        descriptor.maxTextureBindCount = textures
        return try device.makeArgumentTable(descriptor: descriptor)
    }

    func testTensorArgument() throws {
        let descriptor = MTLTensorDescriptor()
        descriptor.dimensions = MTLTensorExtents([2, 3, 2])!
        descriptor.strides = MTLTensorExtents([1, 2, 8])!
        descriptor.usage = .compute
        let elements = buffer([Float](repeating: 1000, count: 20))
        let tensor = try elements.makeTensor(descriptor: descriptor, offset: 16)
        let setup = try Setup(device, [tensor]), arguments = try table(buffers: 1)
        arguments.setResource(tensor.gpuResourceID, bufferIndex: 0)
        let state = try TensorTests.tensorPipeline("number")
        let error = try setup.run {
            $0.setComputePipelineState(state)
            $0.setArgumentTable(arguments)
            $0.dispatchThreads(threadsPerGrid: MTLSizeMake(2, 3, 2), threadsPerThreadgroup: MTLSizeMake(2, 3, 2))
        }
        XCTAssertNil(error)
        var wanted = [Float](repeating: 1000, count: 20)
        for k in 0..<2 {
            for j in 0..<3 { for i in 0..<2 { wanted[4 + 8 * k + 2 * j + i] += Float(100 * k + 10 * j + i) } }
        }
        XCTAssertEqual(floats(elements), wanted)
    }

    /// The table is copied at each dispatch; barriers order dispatches and copies.
    func testDispatchesAndCopies() throws {
        let x = buffer([1, 2, 3, 4]), y = buffer([0, 0, 0, 0]), z = buffer([0, 0, 0, 0])
        let setup = try Setup(device, [x, y, z]), arguments = try table(buffers: 2)
        let twice = try pipeline("twice"), increment = try pipeline("increment"), four = MTLSizeMake(4, 1, 1)
        let error = try setup.run {
            $0.setComputePipelineState(twice)
            $0.setArgumentTable(arguments)
            arguments.setAddress(x.gpuAddress, index: 0)
            arguments.setAddress(y.gpuAddress, index: 1)
            $0.dispatchThreads(threadsPerGrid: four, threadsPerThreadgroup: four)
            $0.barrier(afterEncoderStages: .dispatch, beforeEncoderStages: .dispatch)
            arguments.setAddress(y.gpuAddress + 8, index: 0)
            $0.setComputePipelineState(increment)
            $0.dispatchThreadgroups(
                threadgroupsPerGrid: MTLSizeMake(1, 1, 1), threadsPerThreadgroup: MTLSizeMake(2, 1, 1))
            $0.barrier(afterEncoderStages: .dispatch, beforeEncoderStages: .blit, visibilityOptions: .device)
            $0.copy(sourceBuffer: y, sourceOffset: 4, destinationBuffer: z, destinationOffset: 0, size: 12)
            $0.fill(buffer: x, range: 0..<16, value: 0)
        }
        XCTAssertNil(error)
        XCTAssertEqual(floats(y), [2, 4, 7, 9])
        XCTAssertEqual(floats(z), [4, 7, 9, 0])
        XCTAssertEqual(floats(x), [0, 0, 0, 0])
    }

    func testIndirect() throws {
        let x = buffer([1, 2, 3, 4]), heap = MTLHeapDescriptor()
        heap.size = 4096
        heap.storageMode = .shared
        let counts = device.makeHeap(descriptor: heap)!.makeBuffer(length: 32, options: [])!
        counts.contents().assumingMemoryBound(to: UInt32.self).update(from: [9, 3, 1, 1], count: 4)
        let setup = try Setup(device, [x, counts.heap!]), arguments = try table(buffers: 1)
        arguments.setAddress(x.gpuAddress, index: 0)
        let increment = try pipeline("increment")
        XCTAssertNil(
            try setup.run {
                $0.setComputePipelineState(increment)
                $0.setArgumentTable(arguments)
                $0.dispatchThreadgroups(
                    indirectBuffer: counts.gpuAddress + 4, threadsPerThreadgroup: MTLSizeMake(1, 1, 1))
            })
        XCTAssertEqual(floats(x), [2, 3, 4, 4])
    }

    func testCompiler() throws {
        let compiler = try device.makeCompiler(descriptor: MTL4CompilerDescriptor())
        let source = MTL4LibraryDescriptor()
        source.source = """
            #include <metal_stdlib>
            using namespace metal;
            constant float factor [[function_constant(0)]];
            kernel void scale(device float* x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[i] *= factor; }
            """
        source.name = "scaling"
        let library = try compiler.makeLibrary(descriptor: source)
        XCTAssertEqual(library.label, "scaling")
        let function = MTL4LibraryFunctionDescriptor(), special = MTL4SpecializedFunctionDescriptor()
        function.library = library
        function.name = "scale"
        special.functionDescriptor = function
        let constants = MTLFunctionConstantValues()
        var factor: Float = 3
        constants.setConstantValue(&factor, type: .float, index: 0)
        special.constantValues = constants
        let descriptor = MTL4ComputePipelineDescriptor()
        descriptor.computeFunctionDescriptor = special
        descriptor.requiredThreadsPerThreadgroup = MTLSizeMake(4, 1, 1)
        let state = try compiler.makeComputePipelineState(descriptor: descriptor)
        let x = buffer([1, 2, 3, 4]), setup = try Setup(device, [x]), arguments = try table(buffers: 1)
        arguments.setAddress(x.gpuAddress, index: 0)
        let encode = { (encoder: any MTL4ComputeCommandEncoder, width: Int) in
            encoder.setComputePipelineState(state)
            encoder.setArgumentTable(arguments)
            encoder.dispatchThreads(
                threadsPerGrid: MTLSizeMake(4, 1, 1), threadsPerThreadgroup: MTLSizeMake(width, 1, 1))
        }
        XCTAssertNil(try setup.run { encode($0, 4) })
        XCTAssertEqual(floats(x), [3, 6, 9, 12])
        try assertMisuse("must be the pipeline's requiredThreadsPerThreadgroup") {
            XCTAssertNotNil(try setup.run { encode($0, 2) })
        }
        descriptor.computeFunctionDescriptor = nil
        XCTAssertThrowsError(try compiler.makeComputePipelineState(descriptor: descriptor))
    }

    /// A GPU faults on memory that is in no residency set.
    func testResidency() throws {
        let x = buffer([1, 2, 3, 4]), y = buffer([0, 0, 0, 0])
        let setup = try Setup(device, [x]), arguments = try table(buffers: 2)
        let twice = try pipeline("twice"), four = MTLSizeMake(4, 1, 1)
        arguments.setAddress(x.gpuAddress, index: 0)
        arguments.setAddress(y.gpuAddress, index: 1)
        let encode = { (encoder: any MTL4ComputeCommandEncoder) in
            encoder.setComputePipelineState(twice)
            encoder.setArgumentTable(arguments)
            encoder.dispatchThreads(threadsPerGrid: four, threadsPerThreadgroup: four)
        }
        try assertMisuse("the address at index 1 is in no buffer or heap of a residency set") {
            let error = try setup.run(encode)
            XCTAssertEqual((error as? MTL4CommandQueueError)?.code, .internal)
        }
        setup.set.addAllocation(y)
        try assertMisuse("the address at index 1") { try setup.run(encode) }
        setup.set.commit()
        XCTAssertNil(try setup.run(encode))
        XCTAssertEqual(floats(y), [2, 4, 6, 8])
    }

    /// Without a barrier two dispatches may run at once, which the checker finds.
    func testMissingBarrier() throws {
        XCTAssertTrue(mrt_setting_set("check", "1", nil))
        defer { XCTAssertTrue(mrt_setting_set("check", "0", nil)) }
        for hasBarrier in [true, false] {
            if let json = mrt_findings_json(true) { mrt_string_free(json) }
            let x = buffer([1, 2, 3, 4]), setup = try Setup(device, [x]), arguments = try table(buffers: 1)
            arguments.setAddress(x.gpuAddress, index: 0)
            let increment = try pipeline("increment"), four = MTLSizeMake(4, 1, 1)
            try setup.run {
                $0.setComputePipelineState(increment)
                $0.setArgumentTable(arguments)
                $0.dispatchThreads(threadsPerGrid: four, threadsPerThreadgroup: four)
                if hasBarrier { $0.barrier(afterEncoderStages: .dispatch, beforeEncoderStages: .dispatch) }
                $0.dispatchThreads(threadsPerGrid: four, threadsPerThreadgroup: four)
            }
            let text = mrt_findings_json(true)!
            defer { mrt_string_free(text) }
            XCTAssertEqual(String(cString: text).contains("dispatch-race"), !hasBarrier)
        }
    }

    func testOrderOfCalls() throws {
        let setup = try Setup(device, [])
        assertMisuse("has not begun") { XCTAssertNil(setup.commands.makeComputeCommandEncoder()) }
        setup.commands.beginCommandBuffer(allocator: setup.allocator)
        assertMisuse("has already begun") { setup.commands.beginCommandBuffer(allocator: setup.allocator) }
        assertMisuse("has not ended") { setup.queue.commit([setup.commands]) }
        let encoder = setup.commands.makeComputeCommandEncoder()!
        assertMisuse("already encoding") { XCTAssertNil(setup.commands.makeComputeCommandEncoder()) }
        assertMisuse("an encoder has not ended") { setup.commands.endCommandBuffer() }
        encoder.endEncoding()
        assertMisuse("encoding after endEncoding") { encoder.setArgumentTable(nil) }
        setup.commands.endCommandBuffer()
        XCTAssertNil(setup.commit())
        assertMisuse("index(1) must be < the descriptor's maxBufferBindCount(1)") {
            try! table(buffers: 1).setAddress(16, index: 1)
        }
    }

    func testEvents() throws {
        let x = buffer([1, 2, 3, 4]), setup = try Setup(device, [x]), arguments = try table(buffers: 1)
        let event = device.makeSharedEvent()!, increment = try pipeline("increment"), four = MTLSizeMake(4, 1, 1)
        arguments.setAddress(x.gpuAddress, index: 0)
        setup.queue.waitForEvent(event, value: 1)
        setup.commands.beginCommandBuffer(allocator: setup.allocator)
        let encoder = setup.commands.makeComputeCommandEncoder()!
        encoder.setComputePipelineState(increment)
        encoder.setArgumentTable(arguments)
        encoder.dispatchThreads(threadsPerGrid: four, threadsPerThreadgroup: four)
        encoder.endEncoding()
        setup.commands.endCommandBuffer()
        setup.queue.commit([setup.commands])
        setup.queue.signalEvent(event, value: 2)
        assertMisuse("still runs") { setup.allocator.reset() }
        XCTAssertEqual(floats(x), [1, 2, 3, 4])
        event.signaledValue = 1
        XCTAssertTrue(event.wait(untilSignaledValue: 2, timeoutMS: 60_000))
        XCTAssertEqual(floats(x), [2, 3, 4, 5])
    }
}
