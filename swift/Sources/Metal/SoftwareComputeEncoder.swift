import MetalRuntime

/// Encodes dispatches: it keeps the current bindings, and records a copy of them with each dispatch.
final class SoftwareComputeEncoder: SoftwareEncoder, MTLComputeCommandEncoder, @unchecked Sendable {
    let dispatchType: MTLDispatchType
    private(set) var pipeline: SoftwarePipeline?
    private(set) var bindings = [Binding](repeating: .none, count: SoftwareDevice.maxBuffers)
    var textures = [SoftwareTexture?](repeating: nil, count: Int(MRT_MAX_TEXTURES))
    var samplers = [SoftwareSampler?](repeating: nil, count: Int(MRT_MAX_SAMPLERS))
    private(set) var threadgroupLengths = [Int](repeating: 0, count: SoftwareDevice.maxBuffers)
    private var hazards: HazardScope
    private var touchedPixels: Set<UnsafeRawPointer> = []
    private var used: [UnsafeRawPointer] = []
    private var usedHolders: [AnyObject] = []
    /// Nil on the software device.
    private var forGPU: GPUDispatches?

    init(buffer: SoftwareCommandBuffer, dispatchType: MTLDispatchType) {
        self.dispatchType = dispatchType
        hazards = HazardScope()
        super.init(buffer: buffer, debugName: "MTLDebugComputeCommandEncoder")
        forGPU = buffer.queue.softwareDevice.gpu.map {
            GPUDispatches(gpu: $0, encoder: record, retainsReferences: buffer.retainedReferences)
        }
    }

    // MARK: Binding

    func setComputePipelineState(_ state: any MTLComputePipelineState) {
        let selector = "setComputePipelineState:"
        guard encodes(selector) else { return }
        guard let state = state as? SoftwarePipeline, state.softwareDevice === buffer.queue.softwareDevice else {
            return misuse(
                debugName, selector, "computePipelineState is not one of this device (\(device.name)).")
        }
        pipeline = state
    }

    func setBytes(_ bytes: UnsafeRawPointer, length: Int, index: Int) {
        let selector = "setBytes:length:atIndex:"
        guard encodes(selector), isBufferIndex(index, selector), isConstantLength(length, selector) else { return }
        if let forGPU {
            bindings[index] = .staged(forGPU.stage(bytes, length), length: length)
        } else if let memory = DeviceMemory(bytes: bytes, count: length, label: "setBytes at index \(index)") {
            bindings[index] = .bytes(memory)
        }
    }

    func setBytes(_ bytes: UnsafeRawPointer, length: Int, attributeStride stride: Int, index: Int) {
        refuseStride("setBytes:length:attributeStride:atIndex:")
    }

    func setBuffer(_ buffer: (any MTLBuffer)?, offset: Int, index: Int) {
        let selector = "setBuffer:offset:atIndex:"
        guard encodes(selector), isBufferIndex(index, selector) else { return }
        guard let buffer else { return bindings[index] = .none }
        guard let target = known(buffer, selector), isOffset(offset, in: target, selector) else { return }
        bindings[index] = .buffer(target, offset: offset)
    }

    func setBuffer(_ buffer: any MTLBuffer, offset: Int, attributeStride stride: Int, index: Int) {
        refuseStride("setBuffer:offset:attributeStride:atIndex:")
    }

    func setBuffers(_ buffers: [(any MTLBuffer)?], offsets: [Int], range: Range<Int>) {
        let selector = "setBuffers:offsets:withRange:"
        guard encodes(selector) else { return }
        guard
            buffers.count >= range.count && offsets.count >= range.count
                || refuse(
                    debugName, selector,
                    """
                    range has \(range.count) indices, but there are \(buffers.count) buffers and \(offsets.count) \
                    offsets.
                    """)
        else { return }
        for (position, index) in range.enumerated() {
            setBuffer(buffers[position], offset: offsets[position], index: index)
        }
    }

    func setBuffers(_ buffers: [(any MTLBuffer)?], offsets: [Int], attributeStrides: [Int], range: Range<Int>) {
        refuseStride("setBuffers:offsets:attributeStrides:withRange:")
    }

    func setBufferOffset(_ offset: Int, index: Int) {
        let selector = "setBufferOffset:atIndex:"
        guard encodes(selector), isBufferIndex(index, selector) else { return }
        guard case .buffer(let target, _) = bindings[index] else {
            return misuse(debugName, selector, "no buffer is bound at index \(index), so it has no offset to set.")
        }
        guard isOffset(offset, in: target, selector) else { return }
        bindings[index] = .buffer(target, offset: offset)
    }

    func setBufferOffset(offset: Int, attributeStride stride: Int, index: Int) {
        refuseStride("setBufferOffset:attributeStride:atIndex:")
    }

    func setThreadgroupMemoryLength(_ length: Int, index: Int) {
        let selector = "setThreadgroupMemoryLength:atIndex:"
        guard encodes(selector), isThreadgroupLength(length, index: index, selector) else { return }
        threadgroupLengths[index] = length
    }

    /// Removes all bindings: in Metal 4, each dispatch uses only the bindings of its argument table.
    func removeBindings() {
        bindings = bindings.map { _ in .none }
        textures = textures.map { _ in nil }
        samplers = samplers.map { _ in nil }
        threadgroupLengths = threadgroupLengths.map { _ in 0 }
    }

    // MARK: Residency

    func useResource(_ resource: any MTLResource, usage: MTLResourceUsage) {
        use(resource, usage, "useResource:usage:")
    }

    func useResources(_ resources: [any MTLResource], usage: MTLResourceUsage) {
        resources.forEach { use($0, usage, "useResources:count:usage:") }
    }

    func useHeap(_ heap: any MTLHeap) { useHeaps([heap]) }

    func useHeaps(_ heaps: [any MTLHeap]) {
        guard encodes("useHeaps:count:") else { return }
        for case let heap as SoftwareHeap in heaps { keep(heap, heap.memory) }
    }

    private func use(_ resource: any MTLResource, _ usage: MTLResourceUsage, _ selector: String) {
        guard encodes(selector), let target = memory(of: resource, selector) else { return }
        guard !usage.isEmpty || refuse(debugName, selector, "usage must name read or write.") else { return }
        keep(resource, target)
    }

    private func memory(of resource: any MTLResource, _ selector: String) -> DeviceMemory? {
        if resource is SoftwareBuffer { return known(resource, selector)?.memory }
        return (resource as? SoftwareTexture)?.memory ?? (resource as? SoftwareTensor)?.memory
            ?? known(resource, selector)?.memory
    }

    private func keep(_ holder: AnyObject, _ memory: DeviceMemory) {
        used.append(memory.address)
        guard buffer.retainedReferences else { return }
        usedHolders.append(holder)
        forGPU?.hold(holder)
    }

    // MARK: Order

    func memoryBarrier(scope: MTLBarrierScope) {
        let selector = "memoryBarrierWithScope:"
        guard encodes(selector) else { return }
        guard
            !scope.contains(.renderTargets)
                || refuse(debugName, selector, "MTLBarrierScopeRenderTargets is for render encoders.")
        else { return }
        if scope.contains(.buffers) {
            hazards.orderAll()
        } else if scope.contains(.textures) {
            hazards.order(Array(touchedPixels))
        }
    }

    func memoryBarrier(resources: [any MTLResource]) {
        let selector = "memoryBarrierWithResources:count:"
        guard encodes(selector) else { return }
        if forGPU != nil { return }  // all dispatches of a queue are ordered
        let targets = resources.compactMap { memory(of: $0, selector) }
        guard targets.count == resources.count else { return }
        hazards.order(targets.map { UnsafeRawPointer($0.address) })
    }

    // MARK: Dispatching

    func dispatchThreadgroups(_ threadgroupsPerGrid: MTLSize, threadsPerThreadgroup: MTLSize) {
        let selector = "dispatchThreadgroups:threadsPerThreadgroup:"
        guard isGrid(threadgroupsPerGrid, of: threadsPerThreadgroup, named: "threadgroupsPerGrid", selector) else {
            return refuseDispatch(selector)
        }
        dispatch(.threads(threadgroupsPerGrid * threadsPerThreadgroup), threadsPerThreadgroup, selector)
    }

    func dispatchThreads(_ threadsPerGrid: MTLSize, threadsPerThreadgroup: MTLSize) {
        let selector = "dispatchThreads:threadsPerThreadgroup:"
        guard isGrid(threadsPerGrid, of: MTLSizeMake(1, 1, 1), named: "threadsPerGrid", selector) else {
            return refuseDispatch(selector)
        }
        dispatch(.threads(threadsPerGrid), threadsPerThreadgroup, selector)
    }

    func dispatchThreadgroups(
        indirectBuffer: any MTLBuffer, indirectBufferOffset: Int, threadsPerThreadgroup: MTLSize
    ) {
        let selector = "dispatchThreadgroupsWithIndirectBuffer:indirectBufferOffset:threadsPerThreadgroup:"
        guard encodes(selector), let counts = known(indirectBuffer, selector),
            isIndirectOffset(indirectBufferOffset, in: counts, selector)
        else { return }
        let reference = BufferReference(counts, retained: buffer.retainedReferences)
        dispatch(.indirect(reference, offset: indirectBufferOffset), threadsPerThreadgroup, selector)
    }

    /// If misuse does not end the process, the command buffer fails, because its results are missing.
    private func refuseDispatch(_ selector: String) {
        guard isOpen else { return }
        buffer.record(RefusedCommand(encoder: record, selector: selector))
    }

    private func dispatch(_ grid: DispatchCommand.Grid, _ threadsPerThreadgroup: MTLSize, _ selector: String) {
        guard let pipeline = canDispatch(threadsPerThreadgroup, selector) else { return refuseDispatch(selector) }
        if let forGPU {
            return buffer.record(forGPU.add(pipeline, grid, threadsPerThreadgroup, bindings, threadgroupLengths))
        }
        let bound = pipeline.usedBuffers.map {
            DispatchCommand.Bound(index: $0, content: bindings[$0], retained: buffer.retainedReferences)
        }
        let textures = pipeline.hasTextures ? self.textures : []
        let pixels = textures.compactMap { $0.map { UnsafeRawPointer($0.memory.address) } }
        buffer.record(
            DispatchCommand(
                encoder: record, pipeline: pipeline, path: path, bound: bound,
                threadgroupLengths: threadgroupLengths, grid: grid, threadsPerThreadgroup: threadsPerThreadgroup,
                order: order(bound, pixels), used: used + pixels, usedHolders: usedHolders,
                textures: textures, samplers: pipeline.hasSamplers ? samplers : []))
    }

    private func order(_ bound: [DispatchCommand.Bound], _ pixels: [UnsafeRawPointer]) -> HazardScope.Order {
        touchedPixels.formUnion(pixels)
        return hazards.next(
            touching: bound.compactMap(\.address) + pixels + used, isConcurrent: dispatchType == .concurrent)
    }
}

/// The binding at an index.
enum Binding {
    case none
    case buffer(SoftwareBuffer, offset: Int)
    case bytes(DeviceMemory)
    /// Bytes for a GPU, at an offset of ``GPUDispatches``.
    case staged(Int, length: Int)

    /// The number of bytes from the first accessible byte to the end.
    var length: Int {
        switch self {
        case .none: return 0
        case .buffer(let buffer, let offset): return buffer.length - offset
        case .bytes(let memory): return memory.length
        case .staged(_, let length): return length
        }
    }
}

/// Saturates on overflow; the grid check then rejects the size.
func * (counts: MTLSize, sizes: MTLSize) -> MTLSize {
    func product(_ count: Int, _ size: Int) -> Int {
        let (value, overflows) = count.multipliedReportingOverflow(by: size)
        return overflows ? .max : value
    }
    return MTLSizeMake(
        product(counts.width, sizes.width), product(counts.height, sizes.height), product(counts.depth, sizes.depth))
}
