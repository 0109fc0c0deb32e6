import COrchard
import Metal

/// A number in each dimension. An array would be allocated for each dispatch.
struct Extent: CustomStringConvertible {
    let x, y, z: UInt32

    init(_ size: (UInt32, UInt32, UInt32)) { (x, y, z) = size }

    var description: String { "[\(x), \(y), \(z)]" }
    var isEmpty: Bool { x == 0 || y == 0 || z == 0 }
    /// The product, or the largest number on overflow.
    var product: UInt64 { Work.product(UInt64(x) * UInt64(y), UInt64(z)) }
    var size: MTLSize { MTLSize(width: Int(x), height: Int(y), depth: Int(z)) }

    /// Returns how many parts of this size each dimension has, rounded up.
    func divided(by parts: Extent) -> Extent {
        func quotient(_ count: UInt32, _ part: UInt32) -> UInt32 { count / part + (count % part == 0 ? 0 : 1) }
        return Extent((quotient(x, parts.x), quotient(y, parts.y), quotient(z, parts.z)))
    }
}

/// A dispatch as requested by the caller, with its handles resolved.
struct DispatchRequest {
    struct Binding {
        let buffer: Buffer
        let index: Int
        let range: Range<Int>
        let access: UInt32
    }

    struct Inline {
        let index: Int
        let bytes: [UInt8]
    }

    struct ThreadgroupMemory {
        let index: Int
        let length: Int
    }

    let pipeline: Pipeline
    var grid: Extent
    var gridIsThreads: Bool
    var threadgroup: Extent
    var bindings: [Binding] = []
    var inlines: [Inline] = []
    var threadgroupMemory: [ThreadgroupMemory] = []
    var label: String?
    /// The caller's estimate; 0 if there is none.
    var work: UInt64 = 0
}

extension Context {
    /// Checks everything, then encodes; a rejected dispatch has no effect.
    func encode(_ request: DispatchRequest) throws -> UInt64 {
        try DispatchValidation(request: request, device: limits).check()
        return try locked {
            let uses = request.bindings.map(\.use)
            return try stream.compute(uses, work: request.estimatedWork(uses)) { request.encode(uses, on: $0) }
        }
    }
}

extension DispatchRequest.Binding {
    fileprivate var use: Use {
        buffer.use(
            range, writes: access & UInt32(ORCHARD_ACCESS_WRITE) != 0,
            updates: access == UInt32(ORCHARD_ACCESS_READ_WRITE))
    }
}

extension DispatchRequest {
    /// `uses` has the allocations of the bindings at the time of the call: if the dispatch is encoded again, a buffer
    /// may have moved since.
    fileprivate func encode(_ uses: [Use], on encoder: any MTLComputeCommandEncoder) {
        if let label { encoder.pushDebugGroup(label) }
        encoder.setComputePipelineState(pipeline.state)
        for (binding, use) in zip(bindings, uses) {
            encoder.setBuffer(use.allocation.buffer, offset: use.range.lowerBound, index: binding.index)
        }
        for inline in inlines { encoder.setBytes(inline.bytes, length: inline.bytes.count, index: inline.index) }
        for memory in threadgroupMemory { encoder.setThreadgroupMemoryLength(memory.length, index: memory.index) }
        if gridIsThreads {
            encoder.dispatchThreads(grid.size, threadsPerThreadgroup: threadgroup.size)
        } else {
            encoder.dispatchThreadgroups(grid.size, threadsPerThreadgroup: threadgroup.size)
        }
        // Other pipelines share the encoder, so a length would stay set and count for them too.
        for memory in threadgroupMemory { encoder.setThreadgroupMemoryLength(0, index: memory.index) }
        if label != nil { encoder.popDebugGroup() }
    }
}

extension DispatchRequest {
    /// Returns the estimated work, in operations of a GPU whose cores are all busy.
    fileprivate func estimatedWork(_ uses: [Use]) -> UInt64 {
        let groups = gridIsThreads ? grid.divided(by: threadgroup).product : grid.product
        let threads = gridIsThreads ? grid.product : Work.product(groups, threadgroup.product)
        let bytes = uses.reduce(0) { $0 + UInt64($1.range.count) }
        return Work.estimate(given: work, threads: threads, groups: groups, bytes: bytes)
    }
}
