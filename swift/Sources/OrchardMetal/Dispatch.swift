import COrchard
import Metal

/// One dispatch as the caller gives it, with its handles looked up.
struct DispatchRequest {
    struct Binding {
        let buffer: Buffer
        let index: Int
        let range: Range<Int>
        let access: UInt32
    }

    struct Inline {
        let index: Int
        let bytes: UnsafeRawBufferPointer
    }

    struct ThreadgroupMemory {
        let index: Int
        let length: Int
    }

    let pipeline: Pipeline
    var grid: [UInt32]
    var gridIsThreads: Bool
    var threadgroup: [UInt32]
    var bindings: [Binding] = []
    var inlines: [Inline] = []
    var threadgroupMemory: [ThreadgroupMemory] = []
    var label: String?
}

extension Context {
    /// Checks everything, then encodes: a dispatch that is refused leaves no trace.
    func encode(_ request: DispatchRequest) throws -> UInt64 {
        try DispatchValidation(request: request, device: limits).check()
        return try locked {
            let uses = request.bindings.flatMap(Self.uses)
            return try stream.compute(uses) { request.encode(on: $0) }
        }
    }

    private static func uses(_ binding: DispatchRequest.Binding) -> [Use] {
        [binding.buffer.use(binding.range, writes: binding.access & UInt32(ORCHARD_ACCESS_WRITE) != 0)]
    }
}

extension DispatchRequest {
    fileprivate func encode(on encoder: any MTLComputeCommandEncoder) {
        if let label { encoder.pushDebugGroup(label) }
        encoder.setComputePipelineState(pipeline.state)
        for binding in bindings {
            encoder.setBuffer(binding.buffer.allocation.buffer, offset: binding.range.lowerBound, index: binding.index)
        }
        for inline in inlines {
            encoder.setBytes(inline.bytes.baseAddress!, length: inline.bytes.count, index: inline.index)
        }
        for memory in threadgroupMemory { encoder.setThreadgroupMemoryLength(memory.length, index: memory.index) }
        let threads = MTLSize(threadgroup)
        if gridIsThreads {
            encoder.dispatchThreads(MTLSize(grid), threadsPerThreadgroup: threads)
        } else {
            encoder.dispatchThreadgroups(MTLSize(grid), threadsPerThreadgroup: threads)
        }
        // A length stays set on the encoder, which other pipelines share: it would count for theirs, too.
        for memory in threadgroupMemory { encoder.setThreadgroupMemoryLength(0, index: memory.index) }
        if label != nil { encoder.popDebugGroup() }
    }
}

extension MTLSize {
    fileprivate init(_ size: [UInt32]) { self.init(width: Int(size[0]), height: Int(size[1]), depth: Int(size[2])) }
}
